"""Buyers who wait for a decision: the evidence, and the decision by one or two people.

A page is named by the attempt (`ver_…`); a buyer is in no address.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from countersign.server.console_host import PageReply
from countersign_console.visit import Refused, Visit

_DECISIONS: Final = ("accept_zip", "dismiss")
_AT_THIS_SHOP: Final = ("block", "unblock")
_PATH: Final = "/v1/buyers/reviews"
_SCOPE: Final = "buyers:review"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviews:
    """`reviews`, and `reviews/{attempt}`."""

    async def show(self, visit: Visit) -> PageReply:
        """Waiting buyers, the longest first."""
        found = await visit.page_of(_PATH, after=visit.request.query.get("after", ""))
        more = found["next_cursor"]
        return visit.show(
            "reviews.html",
            visit.words["page_reviews"],
            waiting=found["data"],
            more=visit.at("reviews", after=more) if more else "",
        )

    async def show_item(
        self,
        visit: Visit,
        problem: str = "",
        status: int = 200,
        evidence: Any = None,  # noqa: ANN401 - JSON
    ) -> PageReply:
        """One buyer, with the proposal and a form."""
        one = await self._waiting(visit)
        by = one.get("proposal", {}).get("by", "")
        names = await visit.host.names([by] if by.startswith("per_") else [])
        return visit.show(
            "review.html",
            visit.words["item_reviews"],
            status=status,
            problem=problem,
            one=one,
            by=names.get(by, by),
            evidence=evidence,
            decisions=_DECISIONS if visit.may_do(_SCOPE) else (),
            at_this_shop=_AT_THIS_SHOP if visit.may_do(_SCOPE) else (),
            may_read=visit.sees_personal_data,
            form=visit.form,
            passkey=visit.passkey_for(f"reviews/{visit.parameter}"),
        )

    async def do(self, visit: Visit, action: str) -> PageReply:
        """Decide, or show the provider's findings, for a reason that the audit keeps."""
        if not visit.parameter:
            return await self.show(visit)
        cbid, reason = (await self._waiting(visit))["cbid"], visit.form.get("reason", "").strip()
        try:
            if action == "evidence":
                path = f"/v1/buyers/{cbid}/evidence"
                found = await visit.call("GET", path, reason=reason)
                return await self.show_item(visit, evidence=found["checks"])
            if action in _AT_THIS_SHOP:
                await visit.call("POST", f"/v1/buyers/{cbid}/{action}", body={"reason": reason})
                return visit.lead(f"reviews/{visit.parameter}", said=action)
            body = {"decision": visit.form.get("decision", ""), "reason": reason}
            body |= {
                name: sent
                for name in ("zip", "document")
                if (sent := visit.form.get(name, "").strip())
            }
            made = await visit.call("POST", f"/v1/buyers/{cbid}/review", body=body)
        except Refused as refused:
            if refused.needs_passkey:
                return visit.lead_to_passkey(f"reviews/{visit.parameter}")
            return await self.show_item(visit, refused.message, refused.status)
        return visit.lead("reviews", said="proposed" if made.get("proposed") else "decided")

    async def _waiting(self, visit: Visit) -> Any:  # noqa: ANN401 - JSON
        found = await visit.page_of(_PATH, verification_id=visit.parameter)
        if not found["data"]:
            raise Refused(404, "not_found", visit.words["not_waiting"])
        return found["data"][0]
