"""Requests of buyers: an export of all data, and an erasure after its preview."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

from countersign.server.console_host import PageReply
from countersign_console import times
from countersign_console.acts import Act, Effect, Field, Item, Page
from countersign_console.evidence import ZIP, saved
from countersign_console.view import lead
from countersign_console.visit import Visit

_REASONS: Final = ("request", "retention", "court_order", "other")


def _is_buyer(item: Item) -> bool:
    return str(item["subject"]).startswith("cbid")


def _counted(visit: Visit, ids: Iterable[str], *, buyer: bool = False) -> str:
    """How many of each kind there are, in words, and the buyer itself."""
    words = visit.words
    kinds = Counter(f"kind_{one.partition('_')[0]}" for one in ids)
    found = [f"{words.get(kind, words['kind_other'])}: {n}" for kind, n in sorted(kinds.items())]
    found += [words["letter_buyer"]] if buyer else []
    return ", ".join(found) or words["nothing"]


async def _effect(visit: Visit, item: Item) -> Effect:
    """What would be erased, alone and with acknowledgments; what stays, why, and until when."""
    words, alone = visit.words, await _preview(visit, item)
    whole = await _preview(visit, item, with_acknowledgments=True) if _is_buyer(item) else alone
    gone = _counted(visit, alone["records"], buyer=alone["buyer"])
    said = [words["erase_alone" if whole is not alone else "erase_this"].format(what=gone)]
    if whole is not alone:
        gone = _counted(visit, whole["records"], buyer=whole["buyer"])
        said.append(words["erase_whole"].format(what=gone))
    if ends := whole["retention_ends_at"]:
        said.append(words["erase_period"].format(until=times.plain(ends, visit.locale)))
    if kept := whole["kept"]:
        holds = {one["hold_id"]: one for one in kept}
        what = _counted(visit, (one["record_id"] for one in kept))
        said.append(words["erase_held"].format(what=what, holds=len(holds)))
    if asked := whole["requested_at"]:
        said.append(words["erase_asked"].format(at=times.plain(asked, visit.locale)))
    if alone["prevented_by"]:
        said.append(f"{words['erase_prevented']} {alone['prevented_by']}")
    return Effect(sentences=said, is_possible=not alone["prevented_by"])


async def _preview(visit: Visit, item: Item, *, with_acknowledgments: bool = False) -> Any:  # noqa: ANN401 - JSON
    body = {"subject": item["subject"], "with_acknowledgments": with_acknowledgments}
    return await visit.call("POST", "/v1/erasures/preview", body=body)


async def _erase(visit: Visit, item: Item) -> str:
    """Erase; the outcome has the facts for a letter."""
    body = {
        "subject": item["subject"],
        "with_acknowledgments": bool(visit.form.get("with_acknowledgments")),
        "reason": visit.form.get("why", ""),
    }
    done = await visit.call("POST", "/v1/erasures", body=body)
    result: Mapping[str, Any] = {
        "subject": done["subject"],
        "erased_at": done["erased_at"],
        "what": _counted(visit, done["records"], buyer=done["buyer"]),
        "kept": _counted(visit, (one["record_id"] for one in done["kept"])) if done["kept"] else "",
        "copies_remain": done["copies_remain"],
    }
    return await visit.keep("erase", result=result)


async def _exported(visit: Visit) -> PageReply:
    """The export of a buyer, in the chosen language. Raises Refused."""
    cbid, language = visit.form.get("subject", "").strip(), visit.form.get("language", "en")
    data = await visit.call(
        "GET",
        f"/v1/buyers/{quote(cbid, safe='')}/export",
        query={"language": language},
        reason=visit.form.get("reason", "").strip(),
    )
    return saved(data, ZIP, f"{cbid}.zip")


ERASE: Final = Act(
    name="erase",
    path="/v1/erasures",
    scope="erasure:write",
    fields=(
        Field(name="why", required=True, options=_REASONS),
        Field(name="with_acknowledgments", kind="check", when=_is_buyer),
    ),
    danger=True,
    fresh=True,
    effect=_effect,
    run=_erase,
    carries=("subject",),
    when=lambda item: bool(item["subject"]),
    outcome="erased.html",
)


class Erasures(Page):
    """`erasures`. A buyer is named in a form, never in an address."""

    name = "erasures"
    looks = frozenset({"more", "export"})
    new = (ERASE,)

    async def show(self, visit: Visit) -> PageReply:
        """The requests that wait, and forms for another buyer or record; or a buyer's file.

        The cursor names a buyer: it is sent as a form.
        """
        if visit.kept.action == "export":
            return lead(visit.passkey) if visit.passkey else await _exported(visit)
        found = await visit.page_of("/v1/erasures/requests", after=visit.form.get("after", ""))
        return visit.show(
            "erasures.html",
            visit.words["page_erasures"],
            requests=found["data"],
            more=found["next_cursor"],
            may_erase=visit.may_do(ERASE.scope),
            may_export=visit.may("buyers:review") and visit.sees_personal_data,
        )

    async def item(self, visit: Visit) -> Item:
        """What was named in the form."""
        return {"subject": visit.form.get("subject", "").strip()}

    async def about(self, visit: Visit, item: Item) -> str:
        """The buyer or record."""
        return f"{visit.words['column_subject']}: {item['subject']}"

    async def do(self, visit: Visit, action: str) -> str:
        """Erase; `preview` redirects to the page of the act."""
        if action == "preview":
            await _preview(visit, await self.item(visit))
            return await visit.keep(to="erasures/-/erase")
        return await super().do(visit, action)
