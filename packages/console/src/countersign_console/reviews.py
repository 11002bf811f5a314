"""Buyers who wait for a decision. A buyer is named in forms, never in an address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from countersign.console_host import PageReply
from countersign_console.visit import Refused, Visit

_DECISIONS: Final = ("accept_zip", "dismiss")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviews:
    """`reviews`: each buyer with a form."""

    async def show(self, visit: Visit, problem: str = "", status: int = 200) -> PageReply:
        """Those who wait, the longest first."""
        return visit.show(
            "reviews.html",
            visit.words["page_reviews"],
            status=status,
            problem=problem,
            waiting=await visit.all_of("/v1/buyers/reviews"),
            decisions=_DECISIONS,
            form=visit.form,
        )

    async def show_item(self, visit: Visit) -> PageReply:
        """There are no items."""
        return await self.show(visit)

    async def do(self, visit: Visit, action: str) -> PageReply:  # noqa: ARG002 - one form
        """Decide one."""
        body = {"decision": visit.form.get("decision", ""), "reason": visit.form.get("reason", "")}
        body |= {
            name: sent for name in ("zip", "document") if (sent := visit.form.get(name, "").strip())
        }
        cbid = visit.form.get("cbid", "")
        try:
            await visit.call("POST", f"/v1/buyers/{cbid}/review", body=body)
        except Refused as refused:
            if refused.needs_passkey:
                return visit.lead_to_passkey("reviews")
            return await self.show(visit, refused.message, refused.status)
        return visit.lead("reviews", said="decided")
