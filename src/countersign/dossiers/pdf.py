"""The PDF of a dossier: what was checked, for people, made of nothing else.

The same dossier gives the same bytes, so that a reader of this release can make it again. The
template is `pdf.typ`, after the parts that it shares with a certificate.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, Final

from countersign.acknowledgments.certificate_parties import described
from countersign.acknowledgments.certificate_process import process_rows
from countersign.acknowledgments.certificate_words import is_hosted, lines_of, notice_words
from countersign.dossiers.pdf_timeline import timeline
from countersign.evidence.checkpoint import cosigned_at
from countersign.evidence.dossier import (
    ACCOUNT,
    CAPTURE_PROCESS,
    CLEARANCE,
    OPERATOR,
    Dossier,
    DossierRecord,
)
from countersign.evidence.process import PROCESS
from countersign.evidence.record import ACKNOWLEDGMENT, VERIFICATION
from countersign.mode import Mode
from countersign.paper.text import both_times, row, showable, time_text
from countersign.paper.typeset import maker as made_with
from countersign.paper.typeset import typeset

_SOURCES: Final = ("pdf.py", "pdf.toml", "pdf.typ", "pdf_timeline.py")
_WORDS: Final = tomllib.loads((resources.files(__package__) / "pdf.toml").read_text("utf-8"))
_PARTS: Final = re.compile(r"[0-9]+")
_ELSEWHERE: Final = {OPERATOR, ACCOUNT, CAPTURE_PROCESS}
"""Types of records that have no section: the parties are at the top."""
_TECHNICAL: Final = {
    *("_sd", "_sd_alg", "nonce", "v", "type", "id", "mode", "bullets", "log", "origin"),
}
_SHOWN_ABOVE: Final = {"initials_per_line", PROCESS}
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


@cache
def maker() -> bytes:
    """What is in the bytes of each PDF that this release makes, and in no other's."""
    return made_with(*(_source(name) for name in _SOURCES)).encode()


def dossier_pdf(dossier: Dossier) -> bytes:
    """The PDF (PDF/A-3b and PDF/UA-1), made of nothing but what was checked."""
    return typeset(_source("pdf.typ"), _words(dossier))


@cache
def _source(name: str) -> bytes:
    return (resources.files(__package__) / name).read_bytes()


def _words(dossier: Dossier) -> dict[str, Any]:
    acknowledgment = next(iter(dossier.of(ACKNOWLEDGMENT)), None)
    first = next(iter(dossier.of(CLEARANCE)), acknowledgment)
    assert first is not None  # noqa: S101 - a dossier has one of both
    count = len(dossier.records)
    words: dict[str, Any] = {
        "title": "Dossier of an order",
        "id": first.id,
        "origin": dossier.origin,
        "summary": _WORDS["summary"].format(
            count=_many(count, "record"),
            origin=dossier.origin,
            size=_many(dossier.size, "entry", "entries"),
        ),
        "parties": _parties(dossier, first),
        "timeline": timeline(dossier, _WORDS),
        "joins": list(dossier.joins),
        "missing": list(dossier.missing),
        "process": _process(acknowledgment),
        "sections": [
            {"title": f"{_WORDS['titles'][one.type]} {one.id}", "rows": _rows(one)}
            for one in dossier.records
            if one.type not in _ELSEWHERE
        ],
        "seal": _seal(dossier),
        "proves": _claims("proves", _holds(dossier)),
        "said": _claims("said", _stated(dossier)),
        "proves_not": _proves_not(dossier, test=first.record["mode"] == Mode.TEST),
        "how": list(_WORDS["how"].values()),
    }
    shown: dict[str, Any] = showable(words)
    at = first.record.get("accepted_at") or first.record["at"]
    return shown | {
        "keywords": [maker().decode()],
        "test": first.record["mode"] == Mode.TEST,
        "date": [int(part) for part in _PARTS.findall(at)[:6]],
        "capture": showable(_capture(dossier, acknowledgment), keep="\n"),
        **_notice(dossier, acknowledgment),
    }


def _notice(dossier: Dossier, acknowledgment: DossierRecord | None) -> dict[str, Any]:
    if acknowledgment is None or dossier.notice is None:
        return {"notice": None, "lines": []}
    absent = "withheld or erased"
    lines = lines_of(dossier.notice["bullets"], acknowledgment.shown, absent)
    return {"notice": notice_words(dossier.notice), "lines": lines}


def _parties(dossier: Dossier, first: DossierRecord) -> list[dict[str, Any]]:
    """The operator and the vendor; several times if they changed between two records."""
    found = [
        row(label, *_described(one, role))
        for kind, label, role in (
            (OPERATOR, "Issued by", "operator"),
            (ACCOUNT, "Vendor", "vendor"),
        )
        for one in dossier.of(kind)
    ]
    if not dossier.of(OPERATOR):
        otherwise = f"the operator of {dossier.origin}"
        found.insert(0, row("Issued by", *described(None, otherwise, "operator")))
    if not dossier.of(ACCOUNT):
        found.append(row("Vendor", *described(None, first.record["account"], "vendor")))
    return found


def _described(record: DossierRecord, role: str) -> tuple[str, str]:
    name, details = described(record.record, "without a legal name", role)
    return name, f"{details}; {record.id}, entry {record.index}"


def _capture(dossier: Dossier, acknowledgment: DossierRecord | None) -> list[dict[str, str]]:
    """How the initials were captured: in the vendor's words, or what the service observed."""
    words = _WORDS["capture"]
    if acknowledgment is None:
        return [{"about": words["absent"], "text": ""}]
    if is_hosted(acknowledgment.record):
        about = words["hosted"]
        if PROCESS not in acknowledgment.shown:
            about = f"{about} {words['withheld']}"
        return [{"about": about, "text": ""}]
    stated = [
        {
            "about": words["vendor"].format(version=one.record["version"], id=one.id),
            "text": one.record["statement"],
        }
        for one in dossier.of(CAPTURE_PROCESS)
    ]
    return stated or [{"about": words["none"], "text": ""}]


def _process(acknowledgment: DossierRecord | None) -> list[dict[str, Any]]:
    if acknowledgment is None or PROCESS not in acknowledgment.shown:
        return []
    return process_rows(acknowledgment.shown[PROCESS], None, acknowledgment.record)


def _rows(one: DossierRecord) -> list[dict[str, Any]]:
    """All that a record says: its open members, and what is disclosed of the others."""
    opened = [
        row(_label(name), _value(value), mono="digest" in name)
        for name, value in one.record.items()
        if name not in _TECHNICAL
    ]
    disclosed = [
        row(_label(name), _value(value), _WORDS["disclosed"])
        for name, value in one.shown.items()
        if name not in _SHOWN_ABOVE
    ]
    return [
        *opened,
        *disclosed,
        row("Entry of the log", f"{one.index}, counted from 0"),
        row("SHA-256", one.digest, mono=True),
    ]


def _label(name: str) -> str:
    label: str = _WORDS["labels"].get(name) or name.replace("_", " ").capitalize()
    return label


def _value(value: Any) -> str:  # noqa: ANN401 - any JSON value
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return time_text(value) if _TIME.fullmatch(value) else value
    if isinstance(value, Mapping):
        parts = [f"{name.replace('_', ' ')}: {_value(item)}" for name, item in value.items()]
        return "; ".join(parts) or "none"
    if isinstance(value, list | tuple):
        return "; ".join(_value(item) for item in value) or "none"
    return str(value)


def _seal(dossier: Dossier) -> list[dict[str, Any]]:
    alone = "none: only the operator's clock shows the time"
    if dossier.cosigned or dossier.timestamps:
        alone = "none over this checkpoint"
    witnesses = [f"{name}, {_witnessed(time)}" for name, time in dossier.cosigned]
    stamps = [f"{stamp.name}, {time_text(stamp.at)}" for stamp in dossier.timestamps]
    return [
        row("Log", dossier.origin, mono=True),
        row("Checkpoint", _many(dossier.size, "entry", "entries")),
        row("Checkpoint root", dossier.root.hex(), mono=True),
        row("Log key SHA-256", dossier.key_fingerprint, mono=True),
        row("Witness cosignatures", "; ".join(witnesses) or alone),
        row("RFC 3161 timestamps", "; ".join(stamps) or alone),
    ]


def _witnessed(time: int) -> str:
    at = cosigned_at(time)
    return both_times(at) if at else "at an invalid time"


def _holds(dossier: Dossier) -> list[str]:
    some = {"witnesses": dossier.cosigned, "timestamps": dossier.timestamps}
    return ["log", "digests", "joins", *(name for name, there in some.items() if there)]


def _stated(dossier: Dossier) -> list[str]:
    return ["operator", "vendor", *(["provider"] if dossier.of(VERIFICATION) else [])]


def _claims(section: str, names: Sequence[str]) -> list[dict[str, Any]]:
    by, what = _WORDS[section]["by"], _WORDS[section]["what"]
    return [row(by[name], what[name]) for name in names]


def _proves_not(dossier: Dossier, *, test: bool) -> list[str]:
    alone = not dossier.cosigned and not dossier.timestamps
    leave = {"test": not test, "operator": not alone}
    return [says for name, says in _WORDS["proves_not"].items() if not leave.get(name)]


def _many(number: int, one: str, several: str | None = None) -> str:
    return f"{number} {one if number == 1 else several or one + 's'}"
