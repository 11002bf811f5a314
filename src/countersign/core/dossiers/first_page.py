"""The first page of a dossier's PDF: the order, who, what, when, and the checks behind it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from countersign.core.paper.typeset import row, time_text
from countersign_evidence.dossier import CLEARANCE, ERASURE, Dossier, DossierRecord
from countersign_evidence.offline.verify import how_taken
from countersign_evidence.process import PROCESS
from countersign_evidence.record import ACKNOWLEDGMENT, REFERENCE_FIELD, VERIFICATION


def first_rows(
    dossier: Dossier,
    parties: Sequence[Mapping[str, Any]],
    buyers: Sequence[str],
    words: Mapping[str, str],
) -> list[dict[str, Any]]:
    """The answers; `parties` are rows about operator and vendor, `buyers` identifiers shown."""
    first = next(iter(dossier.of(ACKNOWLEDGMENT) or dossier.of(CLEARANCE)))
    sessions = [one.shown["session_id"] for one in dossier.records if "session_id" in one.shown]
    session = next((text for text in sessions if text), None)
    references = (one.shown.get(REFERENCE_FIELD) for one in dossier.records)
    order = reference = next(filter(None, references), session)
    if session and reference != session:
        order = words["order_as"].format(reference=reference, session=session)
    unnamed = "not given" if sessions else absent(dossier, first)
    buyer = words["buyer_as"].format(identifiers=", ".join(buyers)) if buyers else words["buyer"]
    who = [f"{one['label'].lower()} {one['value']}" for one in parties]
    return [
        row(words["order"], order or unnamed, words["named"] if order else None),
        row(words["who"], "; ".join([*who, buyer])),
        row(words["what"], "; ".join(_what(dossier, words))),
        row(words["when"], time_text(_at(first)), words["clock"]),
        row(words["check"], "; ".join(_checks(dossier, words)) or words["unchecked"]),
    ]


def absent(dossier: Dossier, one: DossierRecord) -> str:
    """The text in place of a personal field: when it was erased, if a record here gives that."""
    at = next((e.record["at"] for e in dossier.of(ERASURE) if one.id in e.record["erased"]), None)
    return f"erased on {time_text(at)}" if at else "withheld or erased"


def _at(one: DossierRecord) -> str:
    at: str = one.record["accepted_at" if one.type == ACKNOWLEDGMENT else "at"]
    return at


def _what(dossier: Dossier, words: Mapping[str, str]) -> Iterator[str]:
    for one in dossier.of(ACKNOWLEDGMENT) if dossier.notice else []:
        lines = len(dossier.notice["bullets"]) if dossier.notice else 0
        given = one.shown.get("initials_per_line")
        yield words["initials"].format(
            initials=", ".join(dict.fromkeys(given)) if given else f"({absent(dossier, one)})",
            count=f"{lines} line{'' if lines == 1 else 's'}",
            taken=f"{taken}," if (taken := how_taken(one.shown.get(PROCESS))) else "",
            title=f"\u201c{dossier.notice['title']}\u201d" if dossier.notice else "",
        )
    for one in dossier.of(CLEARANCE):
        yield words["cleared" if one.record["cleared"] else "refused"]


def _checks(dossier: Dossier, words: Mapping[str, str]) -> Iterator[str]:
    for one in dossier.of(VERIFICATION):
        result = one.shown.get("result")
        name = "simulated" if one.record["simulated"] else "checked"
        yield words["elsewhere" if "endpoint" in one.record else name].format(
            provider=one.record["provider"],
            endpoint=one.record.get("endpoint"),
            result=result["status"].replace("_", " ") if result else absent(dossier, one),
        )
