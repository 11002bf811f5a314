"""The PDF of a dossier: the checked facts for people, and nothing else.

The same dossier gives the same bytes, so that a reader with this release can make it again. The
template is `pdf.typ`, after the common parts.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any, Final

from countersign.base.host import is_loopback
from countersign.base.values import Mode, parse_rfc3339
from countersign.core.dossiers.first_page import absent, first_rows
from countersign.core.dossiers.words import (
    SENTENCES,
    accepted_words,
    alone_in_time,
    captured_row,
    clock_of,
    closing_rows,
    described,
    how_rows,
    is_hosted,
    lines_of,
    moment,
    not_proved,
    notice_rows,
    notice_words,
    process_words,
    recorded_rows,
    said_of,
    said_rows,
    seen_events,
    with_name,
)
from countersign.core.paper.typeset import both_times, qr_code, row, showable, time_text, typeset
from countersign.core.paper.typeset import maker as made_with
from countersign_evidence.dossier import (
    ACCOUNT,
    CAPTURE_PROCESS,
    CLEARANCE,
    FULFILMENT,
    NOTICE_EVENT,
    OPERATOR,
    OVERRIDE,
    VERIFY_PY,
    Dossier,
    DossierRecord,
    verifier,
)
from countersign_evidence.entry import entry_host, service_of
from countersign_evidence.note import cosigned_at
from countersign_evidence.offline.verify import facts_of, is_review
from countersign_evidence.process import PROCESS
from countersign_evidence.record import ACKNOWLEDGMENT, CBID_FIELD, VERIFICATION


def timeline(dossier: Dossier) -> list[dict[str, str]]:
    """The rows of the timeline, earliest first."""
    facts = facts_of(dossier.records, dossier.notice or {})
    events = [
        (fact.time, f"{fact.words[0].upper()}{fact.words[1:]}", f"{fact.by}; {fact.id}")
        for fact in facts
    ]
    witnesses = tuple((name, cosigned_at(time)) for name, time in dossier.cosigned)
    stamps = tuple((name, parse_rfc3339(at)) for name, at in dossier.timestamps)
    events += seen_events(witnesses, stamps)
    return [moment(*event) for event in sorted(events, key=lambda event: event[0])]


_SOURCES: Final = (
    *("words.py", "acknowledged.toml", "first_page.py", "pdf.py", "pdf.toml", "pdf.typ"),
)
"""Files in this folder on which the bytes of a PDF depend, besides the words of `verify.py`."""
_WORDS: Final = tomllib.loads((resources.files(__package__) / "pdf.toml").read_text("utf-8"))
_PARTS: Final = re.compile(r"[0-9]+")
_ELSEWHERE: Final = {OPERATOR, ACCOUNT, CAPTURE_PROCESS}
"""Types of records that have no section: the parties are at the top."""
_TECHNICAL: Final = {
    *("_sd", "_sd_alg", "nonce", "v", "type", "id", "mode", "bullets", "log", "origin"),
}
_SHOWN_ABOVE: Final = {"initials_per_line", PROCESS}
_IN_ROWS: Final = {
    *("accepted_at", "account", "capture", "credential", "notice_id", "notice_version"),
    *("notice_version_source", "notice_digest", "session_id", CBID_FIELD, "ip", "user_agent"),
}
"""Members of an acknowledgment, and personal fields, that rows of their own show."""
_NOTES: Final[Mapping[str, str]] = _WORDS["notes"]
"""Meanings of members whose names do not explain them."""
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


@cache
def maker() -> bytes:
    """Bytes in every PDF of this release, and in no other's."""
    return made_with(*map(_source, _SOURCES), verifier(VERIFY_PY)).encode()


def dossier_pdf(dossier: Dossier, evidence: Mapping[str, bytes]) -> bytes:
    """The PDF (PDF/A-3b and PDF/UA-1), made only of verified data.

    `evidence` are the files that were checked. Text files are attached, so that a reader of the PDF
    alone still has the records and their proofs.
    """
    words = _words(dossier) | {"files": _attached(evidence)}
    return typeset(_source("pdf.typ"), words | {"qr": qr_code(words["verify_url"])})


def _attached(evidence: Mapping[str, bytes]) -> list[dict[str, str]]:
    """Name, text, kind and role (PDF/A-3, AFRelationship) of each attached file."""
    return [
        {
            "name": name.rpartition("/")[2],
            "text": text.decode(),
            "type": "application/json" if name.endswith(".json") else "text/plain",
            **_WORDS["attached"][_kind(name)],
        }
        for name, text in evidence.items()
        if not name.startswith("timestamps/")
    ]


def _kind(name: str) -> str:
    """The kind of an evidence file, named as in `attached` of `pdf.toml`."""
    kinds = ("disclosures.json", "tlog-proof", "notice.json", "policy.txt")
    return next((kind.partition(".")[0] for kind in kinds if name.endswith(kind)), "record")


@cache
def _source(name: str) -> bytes:
    return (resources.files(__package__) / name).read_bytes()


def _words(dossier: Dossier) -> dict[str, Any]:
    acknowledgment = next(iter(dossier.of(ACKNOWLEDGMENT)), None)
    first = next(iter(dossier.of(CLEARANCE)), acknowledgment)
    assert first is not None  # noqa: S101 - a dossier has one of both
    mode, page = first.record["mode"], _check_page(dossier.origin)
    record, fields = (acknowledgment.record, acknowledgment.shown) if acknowledgment else (None, {})
    parties, buyers = _parties(dossier, first), _identifiers(dossier)
    words: dict[str, Any] = {
        "title": _WORDS["names"]["acknowledgment" if first is acknowledgment else "order"],
        "id": first.id,
        "origin": dossier.origin,
        "summary": " ".join(_opening(dossier, acknowledgment)),
        "verdict": list(dossier.summary),
        "first": first_rows(dossier, parties, buyers, _WORDS["first"]),
        "custodian": _WORDS["custodian"],
        "parties": [*parties, *closing_rows(buyers)],
        "clock": SENTENCES["clocks"]["own"],
        "timeline": timeline(dossier),
        "joins": dossier.order["joins"],
        "missing": dossier.order["missing"],
        "remarks": list(dossier.remarks),
        "notice_rows": _notice_rows(dossier, acknowledgment),
        "captured": _captured(dossier, acknowledgment),
        "process": _process(dossier, acknowledgment),
        "sections": [
            {"title": f"{_WORDS['titles'][one.type]} {one.id}", "rows": _rows(dossier, one)}
            for one in dossier.records
            if one.type not in _ELSEWHERE
        ],
        "seal": _seal(dossier),
        "proves": _proves(dossier),
        "said": said_rows([*_said(dossier, acknowledgment)]),
        "proves_not": not_proved(mode, record, fields, seen=_seen(dossier)),
        "how": how_rows(page, first.id, first.digest),
    }
    shown: dict[str, Any] = showable(words)
    at = first.record.get("accepted_at") or first.record["at"]
    return shown | {
        "keywords": [maker().decode()],
        "test": mode == Mode.TEST,
        "date": [int(part) for part in _PARTS.findall(at)[:6]],
        "verify_url": f"{page}#record={first.digest}",
        "capture": showable(_capture(dossier, acknowledgment), keep="\n"),
        **_notice(dossier, acknowledgment),
    }


def _check_page(origin: str) -> str:
    """The page of the service that the log is named after, where evidence is checked."""
    scheme = "http" if is_loopback(entry_host(origin)) else "https"
    return f"{scheme}://{service_of(origin)}/verify"


def _opening(dossier: Dossier, acknowledgment: DossierRecord | None) -> Iterator[str]:
    """The events in a few sentences: who, what and when."""
    if acknowledgment:
        record = acknowledgment.record
        vendors = {one.digest: one.record for one in dossier.of(ACCOUNT)}
        account = with_name(record["account"], vendors.get(record.get("account_record") or ""))
        yield accepted_words(record, account, acknowledgment.position)
    for one in dossier.of(CLEARANCE):
        what = _WORDS["cleared" if one.record["cleared"] else "refused"]
        yield what.format(at=time_text(one.record["at"]))
    for one in dossier.of(OVERRIDE):
        yield _WORDS["overridden"].format(at=time_text(one.record["at"]))
    for one in dossier.of(FULFILMENT)[:1]:
        yield _WORDS["fulfilled"].format(at=time_text(one.record["at"]))
    yield _WORDS["summary"].format(
        count=_many(len(dossier.records), "record"),
        origin=dossier.origin,
        size=_many(dossier.size, "entry", "entries"),
    )


def _identifiers(dossier: Dossier) -> list[str]:
    """The buyer identifiers that are shown, each once."""
    shown = [one.shown.get(CBID_FIELD) for one in dossier.records]
    return list(dict.fromkeys(cbid for cbid in shown if isinstance(cbid, str)))


def _notice(dossier: Dossier, acknowledgment: DossierRecord | None) -> dict[str, Any]:
    if acknowledgment is None or dossier.notice is None:
        return {"notice": None, "lines": []}
    absence = absent(dossier, acknowledgment)
    lines = lines_of(dossier.notice["bullets"], acknowledgment.shown, absence)
    return {"notice": notice_words(dossier.notice), "lines": lines}


def _notice_rows(dossier: Dossier, acknowledgment: DossierRecord | None) -> list[dict[str, Any]]:
    if acknowledgment is None or dossier.notice is None:
        return []
    words, record = _WORDS["review"], acknowledgment.record
    events = dossier.of(NOTICE_EVENT)
    reviews = [one.record["at"] for one in events if is_review(one, record)]
    review = (words["none"], None)
    if reviews:
        review = (words["reviewed"].format(at=time_text(max(reviews))), words["source"])
    return notice_rows(dossier.notice, record, review)


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
    return name, f"{details}; {record.id}, entry {record.position}"


def _captured(dossier: Dossier, acknowledgment: DossierRecord | None) -> str:
    """The sender of the initials, and the credential."""
    if acknowledgment is None:
        return str(_WORDS["capture"]["absent"])
    captured = captured_row(acknowledgment.record)
    said, missing = f"{captured['value']} It was {captured['note']}.", None
    if is_hosted(acknowledgment.record):
        missing = None if PROCESS in acknowledgment.shown else "withheld"
    elif not dossier.of(CAPTURE_PROCESS):
        missing = "none"
    return f"{said} {_WORDS['capture'][missing]}" if missing else said


def _capture(dossier: Dossier, acknowledgment: DossierRecord | None) -> list[dict[str, str]]:
    """The vendor's description of how it captures initials; empty with `hosted`."""
    if acknowledgment is None or is_hosted(acknowledgment.record):
        return []
    return [
        {
            "about": SENTENCES["capture"]["vendor"].format(version=one.record["version"]),
            "text": one.record["statement"],
        }
        for one in dossier.of(CAPTURE_PROCESS)
    ]


def _process(dossier: Dossier, acknowledgment: DossierRecord | None) -> list[str]:
    if acknowledgment is None or dossier.notice is None or PROCESS not in acknowledgment.shown:
        return []
    ids, record = [line["id"] for line in dossier.notice["bullets"]], acknowledgment.record
    return process_words(acknowledgment.shown[PROCESS], ids, clock_of(record))


def _rows(dossier: Dossier, one: DossierRecord) -> list[dict[str, Any]]:
    """The whole content of a record: its public members, and its disclosures."""
    apart, known = _TECHNICAL, []
    if one.type == ACKNOWLEDGMENT:
        absence = absent(dossier, one)
        apart, known = _TECHNICAL | _IN_ROWS, recorded_rows(one.record, one.shown, absence)
    opened = [
        row(_label(name), _value(value), _NOTES.get(name), mono=_is_digest(value))
        for name, value in one.record.items()
        if name not in apart
    ]
    disclosed = [
        row(_label(name), _value(value), _WORDS["disclosed"])
        for name, value in one.shown.items()
        if name not in _SHOWN_ABOVE | apart
    ]
    return [
        *known,
        *opened,
        *disclosed,
        row("Entry of the log", f"number {one.position}, counted from 0"),
        row("SHA-256", one.digest, mono=True),
    ]


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


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
    alone, tokens = alone_in_time(seen=_seen(dossier)), _WORDS["stamped"]
    witnesses = [f"{name}, {_witnessed(time)}" for name, time in dossier.cosigned]
    stamps = [f"{name}, {time_text(at)}" for name, at in dossier.timestamps]
    return [
        row("Log", dossier.origin, mono=True),
        row("Checkpoint", _many(dossier.size, "entry", "entries")),
        row("Checkpoint root", dossier.root.hex(), mono=True),
        row("Log key SHA-256", dossier.key_fingerprint, mono=True),
        row("Witness cosignatures", "; ".join(witnesses) or alone),
        row("RFC 3161 timestamps", "; ".join(stamps) or alone, tokens if stamps else None),
    ]


def _witnessed(time: int) -> str:
    at = cosigned_at(time)
    return both_times(at) if at else "at an invalid time"


def _seen(dossier: Dossier) -> bool:
    return bool(dossier.cosigned or dossier.timestamps)


def _proves(dossier: Dossier) -> list[dict[str, Any]]:
    by, what = _WORDS["proves"]["by"], _WORDS["proves"]["what"]
    some = {"witnesses": dossier.cosigned, "timestamps": dossier.timestamps}
    names = ["log", "digests", "joins", *(name for name, there in some.items() if there)]
    return [row(by[name], what[name]) for name in names]


def _said(dossier: Dossier, acknowledgment: DossierRecord | None) -> Iterator[tuple[str, str]]:
    """The facts that rest on one party's word alone."""
    words = _WORDS["said"]
    if acknowledgment:
        yield from said_of(acknowledgment.record, acknowledgment.shown)
    if acknowledgment is None or len(dossier.records) > 1:
        yield "operator", words["times"]
    if dossier.of(CLEARANCE):
        yield "operator", words["decision"]
        yield "vendor", words["order"]
    if dossier.of(OVERRIDE):
        yield "vendor", words["override"]
    if any("exempt_from" in one.record for one in dossier.of(CLEARANCE)):
        yield "vendor", words["exemption"]
    if dossier.of(FULFILMENT):
        yield "vendor", words["delivery"]
    if dossier.of(VERIFICATION):
        yield "provider", words["verification"]


def _many(number: int, one: str, several: str | None = None) -> str:
    return f"{number} {one if number == 1 else several or one + 's'}"
