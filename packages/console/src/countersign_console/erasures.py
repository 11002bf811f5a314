"""Erasing: first a preview of the erased and the held data; then the act, which is final."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from countersign.server.console_host import PageReply
from countersign_console.visit import Visit

_REASONS: Final = ("request", "retention", "court_order", "other")


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasures:
    """`erasures`. A buyer is named in a form, never in an address."""

    looks: ClassVar = frozenset({"preview", "more"})

    async def show(self, visit: Visit) -> PageReply:
        """The requests that wait, and the form; what would be erased; or what was.

        The cursor names a buyer: it is sent as a form.
        """
        found: Mapping[str, Any] = {"data": (), "next_cursor": None}
        preview, done = None, visit.kept.result
        if visit.kept.action == "preview":
            body = _body(visit)
            preview = await visit.call("POST", "/v1/erasures/preview", body=body)
        elif done is None:
            found = await visit.page_of("/v1/erasures/requests", after=visit.form.get("after", ""))
        return visit.show(
            "erasures.html",
            visit.words["page_erasures"],
            requests=found["data"],
            more=found["next_cursor"],
            preview=preview,
            may_erase=visit.may_do("erasure:write"),
            done=done,
            reasons=_REASONS,
        )

    async def show_item(self, visit: Visit) -> PageReply:
        """There are no items."""
        return await self.show(visit)

    async def do(self, visit: Visit, action: str) -> str:
        """Erase."""
        if action != "erase":
            return visit.at(visit.here)
        if not visit.form.get("sure"):
            problem = visit.words["tick_sure"]
            return await visit.keep("preview", problem=problem, status=422)
        body = _body(visit) | {"reason": visit.form.get("why", "request")}
        return await visit.keep(action, result=await visit.call("POST", "/v1/erasures", body=body))


def _body(visit: Visit) -> dict[str, Any]:
    subject = visit.form.get("subject", "").strip()
    return {
        "subject": subject,
        "with_acknowledgments": bool(visit.form.get("with_acknowledgments")),
    }
