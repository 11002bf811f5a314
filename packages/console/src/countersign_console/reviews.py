"""Buyers who wait for a decision: the evidence, and the decision by one or two people.

A page is named by the attempt (`ver_…`); a buyer is in no address.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from countersign.server.console_host import PageReply
from countersign_console.acts import Act, Field, Item, Page
from countersign_console.orders import decisions
from countersign_console.visit import Refused, Visit

_PATH: Final = "/v1/buyers/reviews"
_ZIP5: Final = 5
_WHY: Final = Field(name="reason", required=True, length=255)
_act: Final = partial(Act, scope="buyers:review", fresh=True)


async def _accept(visit: Visit, one: Item) -> str:
    """Accept the ZIP code of the order, or another one if the person says why."""
    said = {name: visit.form.get(name, "").strip() for name in ("zip", "document", "reason")}
    why, other = said["reason"] or said["document"], visit.form.get("why_other", "").strip()
    asked = await _asked_zips(visit, one, why) if visit.sees_personal_data else set()
    if asked and said["zip"][:_ZIP5] not in asked:
        if not other:
            text = visit.words["zip_other"]
            raise Refused(422, "zip_other", text, {"zip": text, "why_other": text})
        why = f"{why} ({other})"
    return await _decide(visit, one, said | {"reason": why})


async def _dismiss(visit: Visit, one: Item) -> str:
    return await _decide(visit, one, {"reason": visit.form.get("reason", "").strip()})


async def _asked_zips(visit: Visit, one: Item, why: str) -> set[str]:
    """The ZIP codes that this attempt was about, of its evidence; none: nothing is kept of it."""
    path = f"/v1/buyers/{one['cbid']}/evidence"
    found = await visit.call("GET", path, reason=why)
    own = [it["content"] for it in found["checks"] if it["verification_id"] == visit.parameter]
    return {content["request"]["shipping_zip"][:_ZIP5] for content in own if content}


async def _decide(visit: Visit, one: Item, what: Mapping[str, str]) -> str:
    """Decide, for a reason that the audit keeps."""
    body = {"decision": visit.action, **what}
    made = await visit.call("POST", f"/v1/buyers/{one['cbid']}/review", body=body)
    said = "proposed" if made.get("proposed") else f"decided_{visit.action}"
    return await visit.tell(said, "reviews", {**one, **body})


async def _set_block(visit: Visit, one: Item) -> str:
    """Refuse the buyer at this shop, or clear again."""
    body = {"reason": visit.form.get("reason", "").strip()}
    await visit.call("POST", f"/v1/buyers/{one['cbid']}/{visit.action}", body=body)
    return await visit.tell(visit.action, visit.here, {**one, **body})


class Reviews(Page):
    """`reviews`, and `reviews/{attempt}`."""

    name = "reviews"
    looks = frozenset({"evidence"})
    acts = (
        _act(
            name="accept_zip",
            path=_PATH,
            fields=(
                Field(name="zip", required=True),
                Field(name="document", required=True, length=120),
                Field(name="reason", length=120),
                Field(name="why_other", length=120),
            ),
            run=_accept,
        ),
        _act(name="dismiss", path=_PATH, fields=(_WHY,), run=_dismiss),
        _act(name="block", path=_PATH, fields=(_WHY,), run=_set_block),
        _act(name="unblock", path=_PATH, fields=(_WHY,), run=_set_block),
    )

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
        """One buyer: orders, attempts, decisions, acts; the provider's findings for a reason."""
        one = await self.item(visit)
        by = one.get("proposal", {}).get("by", "")
        evidence = None
        if visit.kept.action == "evidence":
            path, reason = f"/v1/buyers/{one['cbid']}/evidence", visit.form.get("reason", "")
            evidence = (await visit.call("GET", path, reason=reason.strip()))["checks"]
        names = await visit.host.names([by] if by.startswith("per_") else [])
        orders = []
        if visit.may("search:read"):
            found = await visit.call("POST", "/v1/search", body={"query": one["cbid"]})
            orders = found["orders"]
        last = {"at": one["attempted_at"], "what": f"identity_check_{one['status']}"}
        last |= {"id": visit.parameter, "reasons": one.get("reasons", ())}
        # An identity check can be part of several orders.
        steps = {(last["id"], last["what"]): last} | {
            (step["id"], step["what"]): step
            for order in orders
            for step in order["timeline"]
            if step["what"].startswith("identity_check")
        }
        return visit.show(
            "review.html",
            visit.words["item_reviews"],
            one=one,
            by=names.get(by, by),
            evidence=evidence,
            orders=orders,
            attempts=sorted(steps.values(), key=lambda step: step["at"]),
            decisions=await decisions(visit, one["cbid"]),
            acts=self.offered(visit, one),
            accept=self.acts[0],
            may_read=visit.sees_personal_data,
            passkey=visit.passkey,
        )

    async def item(self, visit: Visit) -> Any:  # noqa: ANN401 - JSON
        """The buyer who waits, by the attempt."""
        found = await visit.page_of(_PATH, verification_id=visit.parameter)
        if not found["data"]:
            raise Refused(404, "not_found", visit.words["not_waiting"])
        return found["data"][0]

    async def about(self, visit: Visit, item: Item) -> str:
        """The buyer."""
        return f"{visit.words['buyer']}: {item['cbid']}"
