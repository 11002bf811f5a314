"""Buyers who wait for a decision: the evidence, and the decision by one or two people.

A page is named by the attempt (`ver_…`); a buyer is in no address.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from countersign.server.console_host import PageReply
from countersign_console.visit import Refused, Visit

_DECISIONS: Final = ("accept_zip", "dismiss")
_AT_THIS_SHOP: Final = ("block", "unblock")
_PATH: Final = "/v1/buyers/reviews"
_SCOPE: Final = "buyers:review"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviews:
    """`reviews`, and `reviews/{attempt}`."""

    looks: ClassVar = frozenset({"evidence"})

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

    async def show_item(self, visit: Visit) -> PageReply:
        """One buyer, with the proposal and a form; the provider's findings for a reason."""
        one = await self._waiting(visit)
        by = one.get("proposal", {}).get("by", "")
        evidence = None
        if visit.kept.action == "evidence":
            path, reason = f"/v1/buyers/{one['cbid']}/evidence", _reason(visit)
            evidence = (await visit.call("GET", path, reason=reason))["checks"]
        names = await visit.host.names([by] if by.startswith("per_") else [])
        return visit.show(
            "review.html",
            visit.words["item_reviews"],
            one=one,
            by=names.get(by, by),
            evidence=evidence,
            decisions=_DECISIONS if visit.may_do(_SCOPE) else (),
            at_this_shop=_AT_THIS_SHOP if visit.may_do(_SCOPE) else (),
            may_read=visit.sees_personal_data,
            passkey=visit.passkey,
        )

    async def do(self, visit: Visit, action: str) -> str:
        """Decide, or refuse at this shop, for a reason that the audit keeps."""
        if not visit.parameter:
            return visit.at(visit.here)
        cbid, reason = (await self._waiting(visit))["cbid"], _reason(visit)
        if action in _AT_THIS_SHOP:
            await visit.call("POST", f"/v1/buyers/{cbid}/{action}", body={"reason": reason})
            return visit.at(visit.here, said=action)
        body = {"decision": visit.form.get("decision", ""), "reason": reason}
        body |= {
            name: sent for name in ("zip", "document") if (sent := visit.form.get(name, "").strip())
        }
        made = await visit.call("POST", f"/v1/buyers/{cbid}/review", body=body)
        return visit.at("reviews", said="proposed" if made.get("proposed") else "decided")

    async def _waiting(self, visit: Visit) -> Any:  # noqa: ANN401 - JSON
        found = await visit.page_of(_PATH, verification_id=visit.parameter)
        if not found["data"]:
            raise Refused(404, "not_found", visit.words["not_waiting"])
        return found["data"][0]


def _reason(visit: Visit) -> str:
    return visit.form.get("reason", "").strip()
