"""Persona's webhooks: `Persona-Signature`, and which inquiry an event is about.

The recipe: "Webhooks", "Checking signatures" in Persona's documentation.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from countersign.errors import WebhookRefused
from countersign.identity.model import WebhookHint
from countersign.identity.reading import Unreadable, mapping, read_object

TOLERANCE_SECONDS: Final = 300
"""Persona names none; this is what others of its kind use."""
_HEADER_MAX: Final = 2048
_SETS_MAX: Final = 4
_TIME: Final = re.compile(r"[0-9]{1,12}", re.ASCII)
_SIGNATURE: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_EVENT_ID: Final = re.compile(r"evt_[A-Za-z0-9]{1,64}", re.ASCII)

_EVENTS: Final = frozenset(
    f"inquiry.{change}"
    for change in (
        "created",
        "started",
        "expired",
        "completed",
        "failed",
        "marked-for-review",
        "approved",
        "declined",
        "transitioned",
        "redacted",
    )
)


def read(
    header: str,
    body: bytes,
    *,
    secrets: Sequence[str],
    now: int,
    session_id: re.Pattern[str],
) -> WebhookHint | None:
    """The inquiry that an authentic event is about; None if it is about something else.

    `now` is in Unix seconds.

    Raises:
        WebhookRefused: it is not authentic, too old, or unreadable.
    """
    times = [
        int(time)
        for time, signature in _sets(header)
        if _authentic(time.encode("ascii") + b"." + body, signature, secrets)
    ]
    if not any(abs(now - time) <= TOLERANCE_SECONDS for time in times):
        raise WebhookRefused
    try:
        return _hint(body, session_id)
    except Unreadable:
        raise WebhookRefused from None


def _sets(header: str) -> list[tuple[str, str]]:
    """Each time with its signature: one pair, or one by each secret while one is replaced."""
    if len(header) > _HEADER_MAX:
        raise WebhookRefused
    sets = header.split(" ")
    if len(sets) > _SETS_MAX:
        raise WebhookRefused
    return [_pair(one) for one in sets]


def _pair(written: str) -> tuple[str, str]:
    items = [item.partition("=") for item in written.split(",")]
    found = {key: value for key, _, value in items}
    if len(items) != 2 or found.keys() != {"t", "v1"}:
        raise WebhookRefused
    if not _TIME.fullmatch(found["t"]) or not _SIGNATURE.fullmatch(found["v1"]):
        raise WebhookRefused
    return found["t"], found["v1"]


def _authentic(signed: bytes, signature: str, secrets: Sequence[str]) -> bool:
    """Whether any secret made the signature; every one is tried."""
    found = False
    for secret in secrets:
        expected = hmac.new(secret.encode("utf-8"), signed, sha256).hexdigest()
        found |= hmac.compare_digest(expected, signature)
    return found


def _hint(body: bytes, session_id: re.Pattern[str]) -> WebhookHint | None:
    event = mapping(read_object(body).get("data"), "data")
    attributes = mapping(event.get("attributes"), "attributes")
    kind = attributes.get("name")
    if event.get("type") != "event" or not isinstance(kind, str):
        raise Unreadable("data.type")
    if kind not in _EVENTS:
        return None
    event_id = event.get("id")
    inquiry = mapping(mapping(attributes.get("payload"), "payload").get("data"), "payload.data")
    about = inquiry.get("id")
    if not isinstance(event_id, str) or not _EVENT_ID.fullmatch(event_id):
        raise Unreadable("data.id")
    if not isinstance(about, str) or not session_id.fullmatch(about):
        raise Unreadable("payload.data.id")
    return WebhookHint(session_id=about, event_key=event_id)
