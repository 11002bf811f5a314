"""Checkout links: made here for one buyer and one order if the shop has no page for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from countersign_console.lists import Act, Field, ListPage
from countersign_console.visit import form_id


def _session(read: dict[str, Any], form: Mapping[str, str]) -> dict[str, Any]:
    """The body of a link: a session of its own, and the order as the buyer sees it."""
    body: dict[str, Any] = {
        "session_id": f"console_{form_id(form)}",
        "collect": ["acknowledgment"],
    }
    line = {name: read.pop(one) for name, one in _LINE.items() if one in read}
    order = {name: read.pop(name) for name in ("currency",) if name in read}
    if line or order:
        body["order"] = {"lines": [line] if line else [], **order}
    return body | read


_LINE: Final = {"text": "order_text", "amount": "amount"}
LINKS: Final = ListPage(
    name="links",
    path="/v1/checkout_sessions",
    identifier="checkout_session_id",
    item_path="/v1/checkout_sessions/{id}",
    columns=("order_reference", "status", "created_at", "ended_at", "cleared"),
    new=(
        Act(
            name="create_link",
            path="/v1/checkout_sessions",
            scope="checkout_sessions:create",
            fields=(
                Field(name="return_url", required=True),
                Field(name="notice_id", required=True),
                Field(name="order_reference"),
                Field(name="order_text"),
                Field(name="amount"),
                Field(name="currency"),
                Field(name="expires_in_seconds", kind="number"),
            ),
            shape=_session,
            shows=("checkout_session_id", "url", "expires_at"),
        ),
    ),
    acts=(
        Act(
            name="cancel_link",
            path="/v1/checkout_sessions/{id}/cancel",
            scope="checkout_sessions:create",
            danger=True,
            when=lambda link: link["status"] == "open",
        ),
    ),
)
