"""Orders: the list, found by what was typed, one order, and checkout links made by hand.

What names an order at the shop is personal: it is typed into a form, kept for ten minutes, and
stands in no address.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final
from urllib.parse import quote
from zoneinfo import ZoneInfo

from countersign.server.console_host import ORDER_STATES, PageReply
from countersign_console import evidence, times
from countersign_console.acts import Act, Effect, Field, Item, Page, matters
from countersign_console.audit import table
from countersign_console.erasures import ERASE
from countersign_console.view import lead
from countersign_console.visit import FOUND, Refused, Visit, form_id

_GOOD: Final = frozenset(
    {"acknowledged", "cleared", "session_completed", "identity_check_verified"}
)
_BAD: Final = frozenset(
    {"not_cleared", "overridden", "session_declined", "identity_check_failed", "name_used_again"}
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
_ALL: Final = "all"
"""The parameter of an address that ticks all boxes of a list."""
_COLUMNS: Final = ("order_id", "opened_at", "state", "missing", "notice_id", "hold_id")
_HOLDS: Final = "holds:manage"


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


async def _notices(visit: Visit) -> Mapping[str, str]:
    """The notices by identifier."""
    return {one["notice_id"]: one["title"] for one in await visit.all_of("/v1/notices")}


def _is_open(order: Item) -> bool:
    return order["state"] in {"open", "waiting_for_buyer"}


async def _cancel(visit: Visit, order: Item) -> str:
    path = f"/v1/checkout_sessions/{order['checkout_session_id']}/cancel"
    await visit.call("POST", path, body={})
    return await visit.tell("cancel_link", visit.here, {})


def _newest_decision(order: Item) -> str:
    """Of an overridden order it can be a later refusal."""
    decided = (part["id"] for part in order["parts"] if part["type"] == "clearance")
    return max(decided, default="")


def _is_refused(order: Item) -> bool:
    if order["state"] == "overridden":
        return _newest_decision(order) > str(order["clearance_id"])
    return str(order["state"]) == "refused"


async def _override(visit: Visit, order: Item) -> str:
    """Override the newest refusal; where two people decide, the first one proposes it."""
    body = {"reason": _reason(visit)}
    path = f"/v1/clearances/{_newest_decision(order)}/override"
    made = await visit.call("POST", path, body=body)
    said = "overridden" if made["overridden"] else "override_proposed"
    return await visit.tell(said, visit.here, body)


async def _held_already(visit: Visit, item: Item) -> Effect:
    """How many orders it keeps, and the holds that there are."""
    words, said = visit.words, [visit.words["hold_effect"].format(number=len(item["orders"]))]
    for one in item["holds"]:
        placed = times.plain(one["placed_at"], visit.locale)
        said.append(words["hold_there"].format(**one | {"placed_at": placed}))
    return Effect(sentences=said)


async def _hold(visit: Visit, item: Item) -> str:
    """Hold each order, for the chosen matter or a new one."""
    orders, form, why = item["orders"], visit.form, {"reason": _reason(visit)}
    if name := form.get("matter_name", "").strip():
        held = [{"subject": one, **why} for one in orders]
        await visit.call("POST", "/v1/matters", body={"name": name, "orders": held})
    else:
        matter = form.get("matter_id", "")
        name = (await matters(visit)).get(matter, "") if matter else ""
        body = why | ({"matter_id": matter} if matter else {})
        for nth, one in enumerate(orders):
            await visit.call("POST", "/v1/holds", body=body | {"subject": one}, nth=f"-{nth}")
    facts = {"number": len(orders), "matter": name or visit.words["no_matter"], **why}
    return await visit.tell("hold", visit.here, facts)


_LINK: Final = Act(
    name="create_link",
    path="/v1/checkout_sessions",
    scope="checkout_sessions:create",
    fields=(
        Field(name="return_url", required=True),
        Field(name="notice_id", required=True, choices=_notices),
        Field(name="order_reference"),
        Field(name="order_text"),
        Field(name="amount"),
        Field(name="currency"),
        Field(name="expires_in_seconds", kind="number"),
    ),
    shape=_session,
    shows=("checkout_session_id", "url", "expires_at"),
)
_HOLD: Final = Act(
    name="hold",
    path="/v1/holds",
    scope=_HOLDS,
    fields=(
        Field(name="reason", required=True, length=2000),
        Field(name="matter_id", choices=matters),
        Field(name="matter_name", length=200),
        Field(name="again", kind="check", required=True, when=lambda item: item["known"] != "0"),
    ),
    effect=_held_already,
    run=_hold,
    carries=("order.",),
    stamps=("known",),
    when=lambda item: bool(item["orders"]),
)


class Orders(Page):
    """`orders`, `orders/{order}`, and the pages of what is done with one or several."""

    name = "orders"
    looks = frozenset({"find", "export", "dossiers", "read", *evidence.LOOKS})
    filters = _FILTERS
    new = (_LINK, _HOLD)
    acts = (
        _HOLD,
        replace(ERASE, when=lambda order: bool(order["cbid"])),
        Act(
            name="override",
            path="/v1/clearances/{id}/override",
            scope="clearances:override",
            fields=(Field(name="reason", required=True, length=200),),
            fresh=True,
            run=_override,
            when=_is_refused,
        ),
        Act(
            name="cancel_link",
            path="/v1/checkout_sessions/{id}/cancel",
            scope="checkout_sessions:create",
            danger=True,
            run=_cancel,
            when=_is_open,
        ),
    )

    async def show(self, visit: Visit) -> PageReply:
        """The list, that of the latest act first; what was found; or a file of the ticked ones."""
        look = visit.kept.action
        if look == "find":
            return await self._found(visit)
        if look in {"export", "dossiers"}:
            rows = [await _order(visit, one) for one in _ticked(visit)]
            if not rows:
                raise Refused(422, "none_ticked", visit.words["none_ticked"])
            if look == "dossiers":
                return await evidence.dossiers(visit, rows, _reason(visit))
            return table("orders.csv", _COLUMNS, rows)
        asked = {one.name: visit.request.query.get(one.name, "") for one in _FILTERS}
        after = visit.request.query.get("after", "")
        found = await visit.page_of("/v1/orders", after=after, **_query(asked, visit.zone))
        is_young = not (found["data"] or after or any(asked.values()))
        return await self._list(
            visit, found["data"], asked=asked, after=found["next_cursor"], is_young=is_young
        )

    async def show_item(self, visit: Visit) -> PageReply:
        """One order, and its evidence."""
        order = await self.item(visit)
        look = visit.kept.action
        if look == "read":
            return await self._read(visit, order)
        if look in evidence.LOOKS:
            return await evidence.show(visit, order, look, _reason(visit))
        name, title = await _name(visit), visit.words["item_orders"]
        return visit.show(
            "order.html",
            title,
            heading=f"{title} {name}" if name else title,
            order=order,
            parts_by_id={part["id"]: part for part in order["parts"]},
            good=_GOOD,
            bad=_BAD,
            decisions=await decisions(visit, order["cbid"], order["clearance_id"]),
            acts=self.offered(visit, order),
            may_hold=visit.may(_HOLDS),
            may_read=_may_read(visit),
        )

    async def item(self, visit: Visit) -> Item:
        """The order with its holds; or the ticked ones."""
        if not visit.parameter:
            orders = [await _order(visit, one) for one in _ticked(visit)]
            return await _with_holds(visit, orders, {"orders": _ticked(visit)})
        order = await _order(visit, visit.parameter)
        about = {"orders": [order["order_id"]], "subject": order["cbid"]}
        return await _with_holds(visit, [order], {**order, **about})

    async def about(self, visit: Visit, item: Item) -> str:
        """The order by the name that it was found by, else by its time; of several, how many."""
        if not visit.parameter:
            return ""
        name = await _name(visit) or times.plain(item["opened_at"], visit.locale)
        return f"{visit.words['item_orders']} {name}"

    async def do(self, visit: Visit, action: str) -> str:
        """Also: `select` redirects to the hold page of the ticked orders."""
        if action in {"select", "hold"} and not (visit.parameter or _ticked(visit)):
            raise Refused(422, "none_ticked", visit.words["none_ticked"])
        if action == "select":
            return await visit.keep(to="orders/-/hold")
        return await super().do(visit, action)

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
            every=f"{visit.address}{'&' if '?' in visit.address else '?'}{_ALL}=1",
            is_all=_ALL in visit.request.query,
            may_read=_may_read(visit),
            may_hold=visit.may_do(_HOLDS),
            may_link=visit.may_do(_LINK.scope),
            **{"found": "", "is_searched": False, "is_more": False, "is_young": False, **values},
        )

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


def _query(asked: Mapping[str, str], zone: str) -> dict[str, str]:
    """The filters as the API takes them; a day is one of the person's zone."""
    query = dict(asked)
    if day := query.pop("day", ""):
        query["opened_after"] = query["opened_before"] = f"{day}T00:00:00Z"
        with suppress(ValueError, OverflowError):  # the API says what is wrong with it
            begins = datetime.combine(date.fromisoformat(day), time(), ZoneInfo(zone or "UTC"))
            for name, at in (("after", begins), ("before", begins + timedelta(days=1))):
                query[f"opened_{name}"] = f"{at.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"
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


def _may_read(visit: Visit) -> bool:
    """Whether the person sees evidence, for a reason."""
    return visit.may("evidence:read") and visit.sees_personal_data


async def _order(visit: Visit, id_: str) -> Any:  # noqa: ANN401 - JSON
    return await visit.call("GET", f"/v1/orders/{quote(id_, safe='')}")


async def _name(visit: Visit) -> str:
    """The name by which the order was found just now; "": it was not."""
    kept = await visit.kept_as(visit.found, "orders")
    return kept.form.get("query", "").strip() if kept else ""


async def _with_holds(visit: Visit, orders: Sequence[Any], item: Item) -> Item:
    """The same, with the holds; `known` is their number as the page of the form showed it."""
    holds = await _holds(visit, orders)
    return {**item, "holds": holds, "known": visit.request.form.get("known", str(len(holds)))}


async def _holds(visit: Visit, orders: Sequence[Any]) -> Sequence[Mapping[str, Any]]:
    """The holds that keep these orders, each with its matter; for people who may see them."""
    held = [one for one in orders if any(part["hold_id"] for part in (one, *one["parts"]))]
    if not visit.may(_HOLDS) or not held:
        return ()
    names = {one["matter_id"]: one["name"] for one in await visit.all_of("/v1/matters")}
    found = dict[str, Any]()
    for order in held:
        on_it = await visit.all_of("/v1/holds", {"order_id": order["order_id"]})
        found |= {one["hold_id"]: one for one in on_it}
    none = visit.words["no_matter"]
    return [{**one, "matter": names.get(one["matter_id"], none)} for one in found.values()]


async def decisions(visit: Visit, *subjects: str | None) -> Sequence[Any]:
    """What people decided on a buyer and a refusal, for people who may see the audit."""
    if not visit.may("audit:read"):
        return ()
    found = list[Any]()
    for subject in filter(None, subjects):
        found += (await visit.page_of("/v1/audit", subject=subject))["data"]
    names = await visit.host.names(_people(found))
    return [
        {**one, "by": names.get(one["actor"], "")}
        for one in found
        if f"decided_{one['action']}" in visit.words
    ]


def _people(entries: Iterable[Any]) -> list[str]:
    return sorted({one["actor"] for one in entries if one["actor"].startswith("per_")})
