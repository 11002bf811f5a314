"""Notices: each version and its state; a new one from a file; a second person's review."""

from __future__ import annotations

from typing import Any, Final

from countersign.server.console_host import PageReply
from countersign_console.acts import Act, Field, Item, Page
from countersign_console.visit import Refused, Visit

_VERSION: Final = "~"
"""Between a notice and its version in an address."""


async def _run(visit: Visit, one: Item) -> str:
    return await _happen(visit, one)


_ACTS: Final = (
    Act(
        name="review_notice",
        path="/v1/notices/{id}/review",
        scope="notices:manage",
        run=_run,
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
        run=_run,
        fresh=True,
        fields=(Field(name="reason", required=True), Field(name="enjoined", kind="check")),
        danger=True,
    ),
    Act(
        name="reinstate_notice",
        path="/v1/notices/{id}/reinstate",
        scope="notices:manage",
        run=_run,
        fresh=True,
        when=lambda one: one["live"] == "enjoined",
        fields=(Field(name="by", required=True), Field(name="against", required=True)),
    ),
)


class Notices(Page):
    """`notices`, and `notices/{notice}~{version}`."""

    name = "notices"
    looks = frozenset({"check"})
    acts = _ACTS

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
        own = await self.item(visit)
        notice_id, version, before = own["notice_id"], own["version"], own["before"]
        compared: Any = None
        if before:
            path = f"/v1/notices/{notice_id}/compare"
            compared = await visit.call("GET", path, query={"old": before, "new": version})
        return visit.show(
            "notice.html",
            f"{notice_id} {version}",
            notice=own,
            compared=compared,
            acts=self.offered(visit, own),
        )

    async def item(self, visit: Visit) -> Item:
        """A version, and the one before it."""
        notice_id, _, version = visit.parameter.partition(_VERSION)
        if not notice_id:
            return {}
        versions = await visit.all_of("/v1/notices/lifecycle", {"notice_id": notice_id})
        own = next((one for one in versions if one["version"] == version), None)
        if own is None:
            raise Refused(404, "not_found", visit.words["no_such"])
        others = [one["version"] for one in versions if one["version"] != version]
        return {**own, "before": max((other for other in others if other < version), default="")}

    async def about(self, visit: Visit, item: Item) -> str:  # noqa: ARG002 - of one page
        """Its name."""
        return f"{item['notice_id']} {item['version']}: {item['title']}"

    async def do(self, visit: Visit, action: str) -> str:
        """Publish a file; review, withdraw or reinstate a version."""
        if not visit.parameter:
            made = await visit.call("POST", "/v1/notices/publish", body=await _body(visit))
            place = f"notices/{made['notice_id']}{_VERSION}{made['version']}"
            return visit.at(place, said="publish_notice")
        return await super().do(visit, action)


async def _happen(visit: Visit, one: Item) -> str:
    """Review, withdraw or reinstate a version."""
    act = next(act for act in _ACTS if act.name == visit.action)
    body = {"version": one["version"], **act.body(visit.form)}
    path = act.path.replace("{id}", one["notice_id"])
    await visit.call("POST", path, body=body)
    return await visit.tell(act.name, visit.here, {**one, **body})


async def _body(visit: Visit) -> dict[str, Any]:
    """The notice in the form's file, parsed for people who may publish it."""
    if not visit.may_do("notices:manage"):
        raise Refused(403, "forbidden", visit.words["problem_forbidden"])
    read = await visit.host.notice_in(visit.form.get("file", ""))
    if isinstance(read, str):
        raise Refused(422, "invalid_notice_file", read)
    closed = visit.form.get("gap_closed", "").strip()
    return {"notice": read, **({"gap_closed": closed} if closed else {})}
