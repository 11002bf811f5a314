"""Finding an order, and its page: history, missing parts, evidence, a hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from countersign.server.console_host import PageReply
from countersign_console import evidence
from countersign_console.lists import Act, Field
from countersign_console.visit import Refused, Visit

_GOOD: Final = frozenset(
    {"acknowledged", "cleared", "session_completed", "identity_check_verified"}
)
_BAD: Final = frozenset(
    {"not_cleared", "session_declined", "identity_check_failed", "name_used_again"}
)
_HOLD: Final = Act(
    name="place_hold",
    path="/v1/holds",
    scope="holds:manage",
    fields=(Field(name="reason", required=True), Field(name="matter_id")),
)
_DOCUMENTS: Final = {"dossier": "application/zip", "certificate": "application/pdf"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """`search`, and `search/{order}`. Search terms appear in no address."""

    async def show(self, visit: Visit) -> PageReply:
        """The one field."""
        return self._search(visit)

    async def show_item(self, visit: Visit, problem: str = "", status: int = 200) -> PageReply:
        """The order that the address names by the identifier of one of its parts."""
        order = await self._order(visit)
        return visit.show(
            "order.html",
            visit.words["item_search"],
            status=status,
            problem=problem,
            script="local.js",
            order=order,
            refusals=_refusals(order),
            parts_by_id={part["id"]: part for part in order["parts"]},
            good=_GOOD,
            bad=_BAD,
            hold=_HOLD if visit.may_do(_HOLD.scope) else None,
            may_read=visit.may("evidence:read") and visit.sees_personal_data,
            form=visit.form,
        )

    async def do(self, visit: Visit, action: str) -> PageReply:
        """Search; or, of an order: hold it, read its personal data, take its evidence along."""
        if not visit.parameter:
            return await self._find(visit)
        reason = visit.form.get("reason", "").strip()
        try:
            match action:
                case "place_hold":
                    body = {"subject": visit.parameter, **_HOLD.body(visit.form)}
                    await visit.call("POST", _HOLD.path, body=body)
                    return visit.lead(f"search/{visit.parameter}", said="place_hold")
                case "read":
                    return await self._read(visit, reason)
                case "dossier" | "certificate" | "check" | "cover":
                    return await self._evidence(visit, action, reason)
                case _:
                    return await self.show_item(visit)
        except Refused as refused:
            return await self.show_item(visit, refused.message, refused.status)

    async def _find(self, visit: Visit) -> PageReply:
        query = visit.form.get("query", "").strip()
        try:
            found = await visit.call("POST", "/v1/search", body={"query": query}, is_look=True)
        except Refused as refused:
            return self._search(visit, refused.message, refused.status)
        orders = found["orders"]
        if len(orders) == 1:
            return visit.lead(f"search/{orders[0]['order_id']}")
        return visit.show(
            "search.html", visit.words["page_search"], found=found, query=query, form=visit.form
        )

    def _search(self, visit: Visit, problem: str = "", status: int = 200) -> PageReply:
        return visit.show(
            "search.html",
            visit.words["page_search"],
            status=status,
            problem=problem,
            found=None,
            query=visit.form.get("query", ""),
        )

    async def _order(self, visit: Visit) -> Any:  # noqa: ANN401 - JSON
        found = await visit.call(
            "POST", "/v1/search", body={"query": visit.parameter}, is_look=True
        )
        if not found["orders"]:
            raise Refused(404, "not_found", visit.words["no_such"])
        return found["orders"][0]

    async def _read(self, visit: Visit, reason: str) -> PageReply:
        """The initials under the notice, and whatever else is personal, for a reason."""
        order = await self._order(visit)
        record: Any = None
        notice: Any = None
        if order["ack_id"]:
            path = f"/v1/acknowledgments/{order['ack_id']}"
            record = await visit.call("GET", path, reason=reason)
            version = {"version": record["notice_version"]}
            notice = await visit.call("GET", f"/v1/notices/{record['notice_id']}", query=version)
        clearance: Any = None
        if order["clearance_id"]:
            path = f"/v1/clearances/{order['clearance_id']}"
            clearance = await visit.call("GET", path, reason=reason)
        return visit.show(
            "read.html",
            visit.words["act_read"],
            order=order,
            record=record,
            notice=notice,
            language=(notice or {}).get("language", "en"),
            letters=(notice or {}).get("bullet_ids", ()),
            clearance=clearance,
        )

    async def _evidence(self, visit: Visit, action: str, reason: str) -> PageReply:
        order = await self._order(visit)
        if action in _DOCUMENTS:
            return await self._document(visit, order, action, reason)
        dossier = await evidence.read_dossier(visit, order["ack_id"], reason)
        show = evidence.check if action == "check" else evidence.cover
        return await show(visit, order, dossier)

    async def _document(self, visit: Visit, order: Any, name: str, reason: str) -> PageReply:  # noqa: ANN401 - JSON
        path = f"/v1/acknowledgments/{order['ack_id']}/{name}"
        data = await visit.call("GET", path, reason=reason)
        suffix = "zip" if name == "dossier" else "pdf"
        return PageReply(
            body=data,
            headers=[
                ("content-type", _DOCUMENTS[name]),
                ("content-disposition", f'attachment; filename="{order["ack_id"]}.{suffix}"'),
                ("cache-control", "no-store"),
            ],
        )


def _refusals(order: Any) -> list[str]:  # noqa: ANN401 - JSON
    """Why an order was not cleared, by the newest decision."""
    refused = [step["reasons"] for step in order["timeline"] if step["what"] == "not_cleared"]
    return refused[-1] if refused else []
