"""Notices: the text as buyers see it, and a new version: copied, edited, compared, published.

A version is reviewed line by line beside its source, by a person who did not publish it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from countersign.server.console_host import PageReply
from countersign_console.acts import Act, Effect, Field, Item, Page
from countersign_console.view import word
from countersign_console.visit import Refused, Visit

_VERSION: Final = "~"
"""Between a notice and its version in an address."""
_DRAFT: Final = "n."
"""The names of the fields of a draft begin with this."""
_TEXTS: Final = (
    *("id", "version", "effective_from", "title", "heading", "attestation_text"),
    *("source_law", "source_bill", "source_url", "jurisdiction", "language"),
)
"""The texts of a version besides its lines."""
_NEW: Final = ("version", "effective_from")
"""What a copy does not take over."""
_PLACES: Final = ("delivered_to", "residents_of")
"""Codes of places (ISO 3166)."""
_AREAS: Final = ("heading", "attestation_text")
_RULE: Final = "rule."
_MISTAKE: Final = re.compile(r"(?m)\b([a-z_]+): (.+)$")
_YEARS: Final = Field(name=f"{_DRAFT}retention_years", kind="number")
_SPARE: Final = 2
"""Empty lines at the end of a form."""
_act: Final = partial(Act, path="/v1/notices/{id}", scope="notices:manage", fresh=True)


def _lines(form: Mapping[str, str]) -> list[dict[str, str]]:
    """The lines of a draft that have a text, as many as the form has."""
    found: list[dict[str, str]] = []
    for number in range(1, sum(name.startswith(f"{_DRAFT}text.") for name in form) + 1):
        text = " ".join(form.get(f"{_DRAFT}text.{number}", "").split())
        if text:
            found.append({"id": form.get(f"{_DRAFT}letter.{number}", "").strip(), "text": text})
    return found


def _draft(content: Item, form: Mapping[str, str]) -> dict[str, Any]:
    """The version in the form; what the form does not have is as in the version before it."""
    given = {name: form.get(f"{_DRAFT}{name}", "").strip() for name in _TEXTS}
    gaps = [one for one in form.get(f"{_DRAFT}text_gaps", "").splitlines() if one.strip()]
    given["version"] = given["version"] or given["effective_from"]
    made = {**content, **given, "bullets": _lines(form), "text_gaps": gaps}
    if years := _YEARS.read(form):
        made["retention_years"] = years
    return made


async def _asks(visit: Visit, one: Item) -> list[Field]:
    """A field for each text and line of the version, and for more lines."""
    words, content = visit.words, one["content"]
    fields = []
    for name in _TEXTS:
        kind = "area" if name in _AREAS else "day" if name == "effective_from" else "text"
        title = words[f"notice_{name}"]
        needed = name != "version"
        fields.append(Field(name=f"{_DRAFT}{name}", kind=kind, required=needed, title=title))
    known = [form for form in visit.form if form.startswith(f"{_DRAFT}text.")]
    for number in range(1, (len(known) or len(content["bullets"]) + _SPARE) + 1):
        at = words["notice_line"].format(number=number)
        letter = f"{at}: {words['notice_letter']}"
        fields.append(Field(name=f"{_DRAFT}letter.{number}", title=letter))
        fields.append(Field(name=f"{_DRAFT}text.{number}", kind="area", title=at))
    fields.append(replace(_YEARS, title=words["notice_years"]))
    fields.append(Field(name=f"{_DRAFT}text_gaps", kind="area", title=words["notice_gaps"]))
    return fields


def _begun(content: Item) -> Iterator[tuple[str, Any]]:
    """The values that the fields of a copy begin with."""
    for name in set(_TEXTS) - {*_NEW}:
        yield f"{_DRAFT}{name}", content[name]
    yield f"{_DRAFT}retention_years", content.get("retention_years", "")
    yield f"{_DRAFT}text_gaps", "\n".join(content.get("text_gaps", ()))
    for number, line in enumerate(content["bullets"], 1):
        yield f"{_DRAFT}letter.{number}", line["id"]
        yield f"{_DRAFT}text.{number}", line["text"]


async def _check(visit: Visit, draft: Item) -> Any:  # noqa: ANN401 - JSON
    """What publishing the draft would change; raises Refused with its mistakes by field."""
    try:
        return await visit.call("POST", "/v1/notices/check", body={"notice": draft})
    except Refused as refused:
        if refused.code != "invalid_notice_file":
            raise
        wrong = {}
        for name, text in _MISTAKE.findall(refused.message):
            field = "text.1" if name == "bullets" else name
            label = visit.words.get(f"notice_{name}", visit.label(name))
            wrong[f"{_DRAFT}{field}"] = f"{label}: {text}"
        raise Refused(refused.status, refused.code, refused.message, wrong) from None


async def _copy(visit: Visit, one: Item) -> str:
    """Check the draft; the page that publishes it shows what differs, and the text."""
    await _check(visit, _draft(one["content"], visit.form))
    return await visit.keep(to=f"{visit.here}/publish_notice")


async def _differs(visit: Visit, one: Item) -> Effect:
    """The draft as buyers would see it, and what differs from the version before it."""
    draft = _draft(one["content"], visit.form)
    checked = await _check(visit, draft)
    name = f"{draft['id']} {draft['version']}"
    said = [visit.words["notice_would"].format(name=name, number=len(checked["differences"]))]
    said += [f"{visit.words['notice_gaps']}: {gap}" for gap in checked["text_gaps"]]
    return Effect(sentences=said, shown={"compared": checked, "content": draft})


async def _publish(visit: Visit, one: Item) -> str:
    draft = _draft(one["content"], visit.form)
    closed = visit.form.get("gap_closed", "").strip()
    body = {"notice": draft, **({"gap_closed": closed} if closed else {})}
    made = await visit.call("POST", "/v1/notices/publish", body=body)
    place = f"notices/{made['notice_id']}{_VERSION}{made['version']}"
    said = "publish_notice_alone" if visit.host.one_reviews else "publish_notice"
    return await visit.tell(said, place, made)


async def _beside(visit: Visit, one: Item) -> Effect:
    """What the review would do; the lines are shown beside their source."""
    by = visit.words["review_by_one" if visit.host.one_reviews else "review_by"]
    said = [visit.words["about_review_notice"], by.format(name=visit.person.name)]
    content = one["content"]
    applies = _applies(visit, content.get("applies_to"))
    return Effect(sentences=said, shown={"content": content, "applies": applies})


async def _rules(visit: Visit, one: Item) -> list[Field]:
    """A box for the newest rule, named by its version: the rule that the page shows is signed."""
    title = visit.words["column_rule"]
    return [
        Field(name=f"{_RULE}{rule}", kind="check", title=title.format(version=rule))
        for rule in one["rules"][-1:]
    ]


async def _happen(visit: Visit, one: Item) -> str:
    """Review, withdraw or reinstate a version, under the own name.

    A text never changes under its version; a rule that came while the page was read is shown first.
    """
    act = next(act for act in Notices.acts if act.name == visit.action)
    is_review = any(field.name == "against" for field in act.fields)
    by = {"by": visit.person.name} if is_review else {}
    body = {"version": one["version"], **by, **act.body(visit.form)}
    ticked = [name.removeprefix(_RULE) for name in visit.form if name.startswith(_RULE)]
    if ticked and ticked != one["rules"][-1:]:
        raise Refused(409, "rule_changed", visit.words["rule_changed"])
    if ticked:
        body["rule"] = ticked[0]
    path = f"/v1/notices/{one['notice_id']}/{act.name.removesuffix('_notice')}"
    await visit.call("POST", path, body=body)
    return await visit.tell(act.name, visit.here, {**one, **body})


_CLOSED: Final = Field(name="gap_closed", when=lambda one: not one["text_gaps"])
_AGAINST: Final = Field(name="against", required=True, length=2000)


class Notices(Page):
    """`notices`, and `notices/{notice}~{version}`."""

    name = "notices"
    acts = (
        _act(
            name="review_notice",
            fields=(_AGAINST, _CLOSED),
            asks=_rules,
            effect=_beside,
            template="notice_review.html",
            run=_happen,
            when=lambda one: not one["text_gaps"] and one["live"] not in {"withdrawn", "enjoined"},
        ),
        _act(name="copy_notice", fresh=False, asks=_asks, within="begun", run=_copy),
        _act(
            name="publish_notice",
            fields=(_CLOSED,),
            carries=(_DRAFT,),
            effect=_differs,
            template="notice_publish.html",
            run=_publish,
            when=lambda one: one["is_draft"],
        ),
        _act(
            name="withdraw_notice",
            run=_happen,
            fields=(Field(name="reason", required=True), Field(name="enjoined", kind="check")),
            danger=True,
            when=lambda one: one["live"] != "withdrawn",
        ),
        _act(
            name="reinstate_notice",
            run=_happen,
            fields=(_AGAINST,),
            when=lambda one: one["live"] == "enjoined",
        ),
    )

    async def show(self, visit: Visit) -> PageReply:
        """All versions; a new one begins as a copy."""
        return visit.show(
            "notices.html",
            visit.words["page_notices"],
            notices=await visit.all_of("/v1/notices/lifecycle"),
            may_do=visit.may_do("notices:manage"),
        )

    async def show_item(self, visit: Visit) -> PageReply:
        """One version: its text, whom it is for, its history, what differs, and acts."""
        own = await self.item(visit)
        compared: Any = None
        if before := own["before"]:
            path = f"/v1/notices/{own['notice_id']}/compare"
            query = {"old": before, "new": own["version"]}
            compared = await visit.call("GET", path, query=query)
        return visit.show(
            "notice.html",
            f"{own['notice_id']} {own['version']}",
            notice=own,
            content=own["content"],
            applies=_applies(visit, own["content"].get("applies_to")),
            compared=compared,
            acts=self.offered(visit, own),
            to_review=f"{visit.host.url}{visit.at(f'{visit.here}/review_notice')}",
        )

    async def item(self, visit: Visit) -> Item:
        """A version with its members, and the one before it."""
        notice_id, _, version = visit.parameter.partition(_VERSION)
        if not notice_id:
            return {}
        versions = await visit.all_of("/v1/notices/lifecycle", {"notice_id": notice_id})
        own = next((one for one in versions if one["version"] == version), None)
        if own is None:
            raise Refused(404, "not_found", visit.words["no_such"])
        others = [one["version"] for one in versions if one["version"] != version]
        content = await visit.host.notice(notice_id, version)
        return {
            **own,
            "content": content,
            "begun": dict(_begun(content)),
            "is_draft": f"{_DRAFT}version" in visit.form,
            "before": max((other for other in others if other < version), default=""),
        }

    async def about(self, visit: Visit, item: Item) -> str:  # noqa: ARG002 - of one page
        """Its name."""
        return f"{item['notice_id']} {item['version']}: {item['title']}"

    async def do(self, visit: Visit, action: str) -> str:
        """Also: `edit` leads from the page that publishes back to the form."""
        if action == "edit":
            return await visit.keep(to=f"{visit.here}/copy_notice")
        return await super().do(visit, action)


def _applies(visit: Visit, rule: Item | None) -> list[str]:
    """Which orders a notice is for, as sentences."""
    words = visit.words
    if not rule:
        return [words["applies_none"]]
    said = []
    for name in ("product_classes", "delivered_to", "residents_of", "identity_checks"):
        given = [
            one if name in _PLACES else word(one, words, "class", "check") for one in rule[name]
        ]
        said.append(words[f"applies_{name}"].format(given=", ".join(given) or words["nothing"]))
    if age := rule.get("minimum_age"):
        said.append(words["applies_minimum_age"].format(given=age))
    for one in rule.get("exemptions", ()):
        listed = {
            name: ", ".join(word(given, words, "check", "column") for given in one[name])
            for name in ("needs", "waives")
        }
        said.append(words["applies_exemption"].format(**one | listed))
    return [*said, words["applies_source"].format(given=rule["source"], version=rule["version"])]
