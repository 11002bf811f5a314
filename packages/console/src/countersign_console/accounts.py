"""Accounts: names, how buyers see them, origins, who decides on buyers, and their end."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from countersign.server.console_host import READABLE, contrasts
from countersign_console.acts import Act, Effect, Field
from countersign_console.lists import ListPage
from countersign_console.menu import Place
from countersign_console.visit import Refused, Visit, form_id

_FONTS: Final = ("sans", "serif", "rounded")
_CLOSING: Final = (
    *("keys", "webhook_endpoints", "origins", "checkout_sessions"),
    *("records", "records_with_personal_data"),
)
_act: Final = partial(Act, scope="accounts:manage")


def _is(*statuses: str) -> Any:  # noqa: ANN401 - whether an account has one of them
    return lambda account: account["status"] in statuses


class Accounts(ListPage):
    """`accounts`, for the staff of the deployment."""

    async def extras(self, visit: Visit, item: Mapping[str, Any]) -> Mapping[str, Any]:
        """Contrast of the colour, and further acts of the person."""
        is_open = visit.may_do("accounts:manage") and item["status"] != "closed"
        found = contrasts(color) if (color := item["brand"]["color"]) else {}
        return {
            "contrasts": found,
            "weak": bool(found) and found["white"] < READABLE,
            "may_change": is_open,
        }


async def _preview(visit: Visit, _: Mapping[str, Any]) -> str:
    """The page that buyers see, by a link in test mode for this preview."""
    there = visit.of(Place(account_id=visit.parameter, mode="test"))
    notices = await there.page_of("/v1/notices", limit="1")
    if not notices["data"]:
        raise Refused(404, "notice_not_found", visit.words["no_such"])
    body = {
        "session_id": f"preview_{form_id(visit.form)}",
        "return_url": visit.host.url,
        "notice_id": notices["data"][0]["notice_id"],
    }
    made = await there.call("POST", "/v1/checkout_sessions", body=body)
    once = {"url": made["url"], "expires_at": made["expires_at"]}
    return await visit.keep("preview", result=once)


async def _closing(visit: Visit, item: Mapping[str, Any]) -> Effect:
    """What closing the account would end, and what stays."""
    found = await visit.call("GET", f"/v1/accounts/{item['account_id']}/close")
    numbers = [f"{visit.words[f'closing_{one}']}: {found[one]}" for one in _CLOSING]
    return Effect(sentences=[visit.words["closing_intro"], *numbers])


_ORIGIN: Final = (Field(name="origin", required=True),)
ACCOUNTS: Final = Accounts(
    name="accounts",
    path="/v1/accounts",
    identifier="account_id",
    title="name",
    item_path="/v1/accounts/{id}",
    columns=("name", "status", "created_at"),
    template="account.html",
    new=(
        _act(
            name="create_account",
            path="/v1/accounts",
            fields=(Field(name="name", required=True),),
        ),
    ),
    acts=(
        _act(
            name="add_origin",
            path="/v1/accounts/{id}/origins",
            fields=_ORIGIN,
            when=_is("active", "disabled"),
        ),
        _act(
            name="remove_origin",
            path="/v1/accounts/{id}/origins/remove",
            fields=_ORIGIN,
            hidden=True,
        ),
        _act(
            name="change_brand",
            within="brand",
            path="/v1/accounts/{id}/brand",
            method="PATCH",
            fields=(
                *(Field(name="name"), Field(name="color"), Field(name="contact_url")),
                *(Field(name="privacy_url"), Field(name="support_email")),
                Field(name="font", options=_FONTS),
                Field(name="initials", options=("typed", "adopted_allowed")),
            ),
            when=_is("active", "disabled"),
        ),
        _act(
            name="change_account",
            path="/v1/accounts/{id}",
            method="PATCH",
            fresh=True,
            fields=(Field(name="reviewers", kind="number", required=True),),
            when=_is("active", "disabled"),
        ),
        _act(
            name="rename_account",
            path="/v1/accounts/{id}/rename",
            fields=(Field(name="name", required=True),),
            when=_is("active", "disabled"),
        ),
        _act(
            name="disable_account",
            path="/v1/accounts/{id}/disable",
            fresh=True,
            danger=True,
            when=_is("active"),
        ),
        _act(name="enable_account", path="/v1/accounts/{id}/enable", when=_is("disabled")),
        Act(
            name="preview",
            path="/v1/checkout_sessions",
            scope="checkout_sessions:create",
            run=_preview,
            when=_is("active"),
        ),
        _act(
            name="close_account",
            path="/v1/accounts/{id}/close",
            danger=True,
            fresh=True,
            effect=_closing,
            when=_is("active", "disabled"),
        ),
    ),
)
