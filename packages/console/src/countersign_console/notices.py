"""Notices: each version and its state; a new one from a file; a second person's review."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from countersign.server.console_host import PageReply
from countersign_console.lists import Act, Field
from countersign_console.visit import Refused, Visit

_VERSION: Final = "~"
"""Between a notice and its version in an address."""
_ACTS: Final = (
    Act(
        name="review_notice",
        path="/v1/notices/{id}/review",
        scope="notices:manage",
        fresh=True,
        fields=(
            Field(name="by", required=True),
            Field(name="against", required=True),
            Field(name="gap_closed"),
        ),
    ),
    Act(
        name="withdraw_notice",
        path="/v1/notices/{id}/withdraw",
        scope="notices:manage",
        fields=(Field(name="reason", required=True), Field(name="enjoined", kind="check")),
        danger=True,
    ),
    Act(
        name="reinstate_notice",
        path="/v1/notices/{id}/reinstate",
        scope="notices:manage",
        fields=(Field(name="by", required=True), Field(name="against", required=True)),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notices:
    """`notices`, and `notices/{notice}~{version}`."""

    looks: ClassVar = frozenset({"check"})

    async def show(self, visit: Visit) -> PageReply:
        """All versions, a form for a new one, and what was found in it."""
        checked = None
        if visit.kept.action == "check":
            checked = await visit.call("POST", "/v1/notices/check", body=await _body(visit))
        return visit.show(
            "notices.html",
            visit.words["page_notices"],
            notices=await visit.all_of("/v1/notices/lifecycle"),
            checked=checked,
            may_publish=visit.may_do("notices:manage"),
            passkey=visit.passkey,
        )

    async def show_item(self, visit: Visit) -> PageReply:
        """One version: its history, difference from its predecessor, and acts."""
        notice_id, _, version = visit.parameter.partition(_VERSION)
        query = {"notice_id": notice_id}
        versions = await visit.all_of("/v1/notices/lifecycle", query)
        own = next((one for one in versions if one["version"] == version), None)
        if own is None:
            raise Refused(404, "not_found", visit.words["no_such"])
        others = [one["version"] for one in versions if one["version"] != version]
        before = max((other for other in others if other < version), default="")
        compared: Any = None
        if before:
            path = f"/v1/notices/{notice_id}/compare"
            compared = await visit.call("GET", path, query={"old": before, "new": version})
        return visit.show(
            "notice.html",
            f"{notice_id} {version}",
            notice=own,
            compared=compared,
            acts=[act for act in _ACTS if visit.may_do(act.scope)],
            passkey=visit.passkey,
        )

    async def do(self, visit: Visit, action: str) -> str:
        """Publish a file; review, withdraw or reinstate a version."""
        if not visit.parameter:
            made = await visit.call("POST", "/v1/notices/publish", body=await _body(visit))
            place = f"notices/{made['notice_id']}{_VERSION}{made['version']}"
            return visit.at(place, said="publish_notice")
        notice_id, _, version = visit.parameter.partition(_VERSION)
        act = next((one for one in _ACTS if one.name == action), None)
        if act is None:
            return visit.at(visit.here)
        if act.danger and not visit.form.get("sure"):
            raise Refused(422, "not_sure", visit.words["tick_sure"])
        body = {"version": version, **act.body(visit.form)}
        await visit.call("POST", act.path.replace("{id}", notice_id), body=body)
        return visit.at(visit.here, said=act.name)


async def _body(visit: Visit) -> dict[str, Any]:
    """The notice in the form's file, parsed for people who may publish it."""
    if not visit.may_do("notices:manage"):
        raise Refused(403, "forbidden", visit.words["problem_forbidden"])
    read = await visit.host.notice_in(visit.form.get("file", ""))
    if isinstance(read, str):
        raise Refused(422, "invalid_notice_file", read)
    closed = visit.form.get("gap_closed", "").strip()
    return {"notice": read, **({"gap_closed": closed} if closed else {})}
