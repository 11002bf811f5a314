"""Orders: the list, found by what was typed, one order, and checkout links made by hand.

What names an order at the shop is personal: it is typed into a form, kept for ten minutes, and
stands in no address.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, ClassVar, Final
from urllib.parse import quote

from countersign.server.console_host import ORDER_STATES, PageReply
from countersign_console import evidence
from countersign_console.audit import table
from countersign_console.lists import Act, Field, carry_out
from countersign_console.view import lead
from countersign_console.visit import FOUND, Refused, Visit, form_id

_GOOD: Final = frozenset(
    {"acknowledged", "cleared", "session_completed", "identity_check_verified"}
)
_BAD: Final = frozenset(
    {"not_cleared", "session_declined", "identity_check_failed", "name_used_again"}
)
_YES_NO: Final = ("true", "false")
_FILTERS: Final = (
    Field(name="state", options=ORDER_STATES),
    Field(name="waiting", options=_YES_NO),
    Field(name="held", options=_YES_NO),
    Field(name="day", kind="day"),
    Field(name="notice_id"),
)
"""They stand in the address, to be kept and sent: none is of a buyer."""
_LINE: Final = {"text": "order_text", "amount": "amount"}
_TICKED: Final = "order."
"""The names of the boxes of a list begin with this."""
_COLUMNS: Final = ("order_id", "opened_at", "state", "missing", "notice_id", "hold_id")
_HOLDS: Final = "holds:manage"
_NEW: Final = "new"


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


_LINK: Final = Act(
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
)
_CANCEL: Final = Act(
    name="cancel_link",
    path="/v1/checkout_sessions/{id}/cancel",
    scope="checkout_sessions:create",
    danger=True,
)
_CREATED: Final = ("checkout_session_id", "url", "expires_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """`orders`, `orders/{order}`, and `orders/new` for a link."""

    looks: ClassVar = frozenset({"find", "select", "export", "read", *evidence.LOOKS})
    filters: ClassVar = _FILTERS

    async def show(self, visit: Visit) -> PageReply:
        """The list, that of the latest act first; what was found; or what to do with the ticked."""
        look = visit.kept.action
        if look == "find":
            return await self._found(visit)
        if look in {"select", "hold"}:
            return await self._selected(visit)
        if look == "export":
            rows = [await _order(visit, one) for one in _ticked(visit)]
            return table("orders.csv", _COLUMNS, rows)
        asked = {one.name: visit.request.query.get(one.name, "") for one in _FILTERS}
        after = visit.request.query.get("after", "")
        found = await visit.page_of("/v1/orders", after=after, **_query(asked))
        is_young = not (found["data"] or after or any(asked.values()))
        return await self._list(
            visit, found["data"], asked=asked, after=found["next_cursor"], is_young=is_young
        )

    async def show_item(self, visit: Visit) -> PageReply:
        """One order, its evidence, or the form for a link."""
        if visit.parameter == _NEW:
            return self._link(visit)
        order = await _order(visit, visit.parameter)
        look = visit.kept.action
        if look == "read":
            return await self._read(visit, order)
        if look in evidence.LOOKS:
            return await evidence.show(visit, order, look, _reason(visit))
        name = await _name(visit)
        parts = {part["id"]: part for part in order["parts"]}
        waits = order["state"] == "open" or order["state"] == "waiting_for_buyer"
        return visit.show(
            "order.html",
            visit.words["item_orders"],
            heading=f"{visit.words['item_orders']} {name}" if name else visit.words["item_orders"],
            script="local.js",
            order=order,
            found=visit.request.query.get(FOUND, "") if name else "",
            parts_by_id=parts,
            holds=sorted({part["hold_id"] for part in parts.values() if part["hold_id"]}),
            good=_GOOD,
            bad=_BAD,
            decisions=await _decisions(visit, order),
            cancel=_CANCEL if waits and visit.may_do(_CANCEL.scope) else None,
            may_hold=visit.may_do(_HOLDS),
            matters=await _matters(visit),
            may_read=visit.may("evidence:read") and visit.sees_personal_data,
        )

    async def do(self, visit: Visit, action: str) -> str:
        """Hold one order or the ticked ones; make a link, or cancel one."""
        match action:
            case "create_link":
                made = await carry_out(visit, _LINK)
                once = {name: made[name] for name in _CREATED}
                return await visit.keep(action, result=once, is_last=True)
            case "hold":
                return await self._hold(visit)
            case "cancel_link":
                if not visit.form.get("sure"):
                    raise Refused(422, "not_sure", visit.words["tick_sure"])
                session = (await _order(visit, visit.parameter))["checkout_session_id"]
                path = _CANCEL.path.replace("{id}", str(session))
                await visit.call("POST", path, body={})
                return visit.back(said=action)
            case _:
                return visit.back()

    async def _found(self, visit: Visit) -> PageReply:
        """What was found; if it is one order, the order."""
        query = visit.form.get("query", "").strip()
        found = await visit.call("POST", "/v1/search", body={"query": query})
        name = visit.request.query["v"] if found["found_by"] == "text" else ""
        orders = found["orders"]
        if len(orders) == 1:
            place = f"orders/{orders[0]['order_id']}"
            return lead(visit.at(place, **({FOUND: name} if name else {})))
        return await self._list(visit, orders, found=name, is_searched=True, is_more=found["more"])

    async def _list(
        self,
        visit: Visit,
        orders: Sequence[Any],
        asked: Mapping[str, str] | None = None,
        after: str | None = None,
        **values: Any,  # noqa: ANN401 - the template's
    ) -> PageReply:
        chosen = {name: text for name, text in (asked or {}).items() if text}
        rest = {one: {n: t for n, t in chosen.items() if n != one} for one in chosen}
        return visit.show(
            "orders.html",
            visit.words["page_orders"],
            orders=orders,
            fields=[await _with_notices(visit, one) for one in _FILTERS],
            asked=asked or {},
            chips={one: visit.at("orders", **others) for one, others in rest.items()},
            more=visit.at("orders", **chosen, after=after) if after else "",
            begun="after" in visit.request.query,
            may_hold=visit.may_do(_HOLDS),
            may_link=visit.may_do(_LINK.scope),
            **{"found": "", "is_searched": False, "is_more": False, "is_young": False, **values},
        )

    async def _selected(self, visit: Visit) -> PageReply:
        """The form that holds what was ticked."""
        ticked = _ticked(visit)
        if not ticked:
            raise Refused(422, "none_ticked", visit.words["none_ticked"])
        title = visit.words["hold_several"].format(number=len(ticked))
        return visit.show("hold.html", title, ticked=ticked, matters=await _matters(visit))

    def _link(self, visit: Visit) -> PageReply:
        title, once = visit.words["act_create_link"], visit.kept.result
        if once is not None:
            return visit.show(
                "once.html", title, act="create_link", once=once, back=visit.at("orders")
            )
        act = _LINK if visit.may_do(_LINK.scope) else None
        return visit.show("link_new.html", title, act=act)

    async def _hold(self, visit: Visit) -> str:
        """Hold each order, for the chosen matter or a new one."""
        orders = [visit.parameter] if visit.parameter else _ticked(visit)
        why = {"reason": _reason(visit)}
        if name := visit.form.get("matter_name", "").strip():
            held = [{"subject": one, **why} for one in orders]
            await visit.call("POST", "/v1/matters", body={"name": name, "orders": held})
        else:
            matter = visit.form.get("matter_id", "")
            body = why | ({"matter_id": matter} if matter else {})
            for nth, one in enumerate(orders):
                await visit.call("POST", "/v1/holds", body=body | {"subject": one}, nth=f"-{nth}")
        if visit.parameter:
            return visit.back(said="hold")
        return visit.at("orders", held="true", said="hold")

    async def _read(self, visit: Visit, order: Any) -> PageReply:  # noqa: ANN401 - JSON
        """The initials under the notice, and whatever else is personal, for a reason."""
        record: Any = None
        notice: Any = None
        if order["ack_id"]:
            path = f"/v1/acknowledgments/{order['ack_id']}"
            record = await visit.call("GET", path, reason=_reason(visit))
            version = {"version": record["notice_version"]}
            notice = await visit.call("GET", f"/v1/notices/{record['notice_id']}", query=version)
        clearance: Any = None
        if order["clearance_id"]:
            path = f"/v1/clearances/{order['clearance_id']}"
            clearance = await visit.call("GET", path, reason=_reason(visit))
        return visit.show(
            "read.html",
            visit.words["act_read"],
            back=visit.back(),
            record=record,
            notice=notice,
            language=(notice or {}).get("language", "en"),
            letters=(notice or {}).get("bullet_ids", ()),
            clearance=clearance,
        )


def _query(asked: Mapping[str, str]) -> dict[str, str]:
    """The filters as the API takes them; a day is one of UTC."""
    query = dict(asked)
    if day := query.pop("day", ""):
        query["opened_after"] = query["opened_before"] = f"{day}T00:00:00Z"
        with suppress(ValueError, OverflowError):  # the API says what is wrong with it
            query["opened_before"] = f"{date.fromisoformat(day) + timedelta(days=1)}T00:00:00Z"
    return query


async def _with_notices(visit: Visit, field: Field) -> Field:
    """The filter; that by notice with the notices that there are."""
    if field.name != "notice_id":
        return field
    known = {one["notice_id"] for one in await visit.all_of("/v1/notices")}
    asked = visit.request.query.get(field.name, "")
    return replace(field, options=sorted({*known, asked} - {""}))


def _ticked(visit: Visit) -> list[str]:
    return [one.removeprefix(_TICKED) for one in visit.form if one.startswith(_TICKED)]


def _reason(visit: Visit) -> str:
    return visit.form.get("reason", "").strip()


async def _order(visit: Visit, id_: str) -> Any:  # noqa: ANN401 - JSON
    return await visit.call("GET", f"/v1/orders/{quote(id_, safe='')}")


async def _name(visit: Visit) -> str:
    """The name by which the order was found just now; "": it was not."""
    kept = await visit.kept_as(visit.request.query.get("found", ""), "orders")
    return kept.form.get("query", "").strip() if kept else ""


async def _matters(visit: Visit) -> Sequence[Any]:
    """The open matters, for people who may hold."""
    if not visit.may_do(_HOLDS):
        return ()
    return [one for one in await visit.all_of("/v1/matters") if not one["closed_at"]]


async def _decisions(visit: Visit, order: Any) -> Sequence[Any]:  # noqa: ANN401 - JSON
    """What people decided on the buyer of an order, for people who may see the audit."""
    if not order["cbid"] or not visit.may("audit:read"):
        return ()
    found = await visit.page_of("/v1/audit", subject=order["cbid"])
    names = await visit.host.names(_people(found["data"]))
    return [
        {**one, "by": names.get(one["actor"], "")}
        for one in found["data"]
        if f"decided_{one['action']}" in visit.words
    ]


def _people(entries: Iterable[Any]) -> list[str]:
    return sorted({one["actor"] for one in entries if one["actor"].startswith("per_")})
