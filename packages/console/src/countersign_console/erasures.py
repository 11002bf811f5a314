"""Erasing: first a preview of the erased and the held data; then the act, which is final."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from countersign.server.console_host import PageReply
from countersign_console.visit import Refused, Visit

_REASONS: Final = ("request", "retention", "court_order", "other")


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasures:
    """`erasures`. A buyer is named in a form, never in an address."""

    async def show(self, visit: Visit, problem: str = "", status: int = 200) -> PageReply:
        """The requests that wait, and the form. The cursor names a buyer: it is sent as a form."""
        found = await visit.page_of("/v1/erasures/requests", after=visit.form.get("after", ""))
        return visit.show(
            "erasures.html",
            visit.words["page_erasures"],
            status=status,
            problem=problem,
            requests=found["data"],
            more=found["next_cursor"],
            preview=None,
            done=None,
            reasons=_REASONS,
            form=visit.form,
        )

    async def show_item(self, visit: Visit) -> PageReply:
        """There are no items."""
        return await self.show(visit)

    async def do(self, visit: Visit, action: str) -> PageReply:
        """Show what would be erased; or erase; or show the next page of requests."""
        if action == "more":
            return await self.show(visit)
        body = {
            "subject": visit.form.get("subject", "").strip(),
            "with_acknowledgments": bool(visit.form.get("with_acknowledgments")),
        }
        try:
            if action != "erase":
                preview = await visit.call("POST", "/v1/erasures/preview", body=body, is_look=True)
                return self._shown(visit, preview=preview)
            if not visit.form.get("sure"):
                preview = await visit.call("POST", "/v1/erasures/preview", body=body, is_look=True)
                problem = visit.words["tick_sure"]
                return self._shown(visit, preview=preview, problem=problem)
            why = {"reason": visit.form.get("why", "request")}
            done = await visit.call("POST", "/v1/erasures", body=body | why)
            return self._shown(visit, done=done)
        except Refused as refused:
            if refused.needs_passkey:
                return visit.lead_to_passkey("erasures")
            return await self.show(visit, refused.message, refused.status)

    def _shown(
        self, visit: Visit, preview: object = None, done: object = None, problem: str = ""
    ) -> PageReply:
        return visit.show(
            "erasures.html",
            visit.words["page_erasures"],
            requests=(),
            more=None,
            reasons=_REASONS,
            form=visit.form,
            preview=preview,
            may_erase=visit.may_do("erasure:write"),
            done=done,
            problem=problem,
        )
