"""The text of a certificate: facts in, a tree of showable text out.

A missing personal field has a reason, and each value has its source. A character that has no glyph,
or shows nothing, is written as its code point.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, Final

import msgspec

from countersign.acknowledgments.certificate_facts import CertificateFacts, Review
from countersign.acknowledgments.certificate_parties import party, party_rows, timeline
from countersign.acknowledgments.certificate_process import (
    SENTENCES,
    SERVICE_CLOCK,
    changes,
    process_rows,
)
from countersign.acknowledgments.model import Capture, VersionSource
from countersign.evidence.canonical import canonical_json
from countersign.evidence.disclosure import read_disclosure
from countersign.evidence.process import PROCESS, Surface
from countersign.instant import parse_rfc3339
from countersign.mode import Mode
from countersign.paper.text import (
    both_times,
    clocks,
    code_points,
    han_font,
    row,
    showable,
    time_text,
)

_HOW: Final[list[str]] = [*SENTENCES["how"].values()]
"""The ways to check the evidence."""
_PARTS: Final = re.compile(r"[0-9]+")
_LANGUAGE: Final = re.compile(r"[A-Za-z]{2,3}(?![A-Za-z0-9])")
_LONG_LINE: Final = 700
"""Characters from which on a line may break over pages, and has its id on each.

An initial counts for ten: there may be code points below it.
"""


def certificate_words(facts: CertificateFacts) -> dict[str, Any]:
    """All text of the template.

    Strings under `files` and `verify_url` are exact, all others are made showable.
    """
    record = msgspec.json.decode(facts.record)
    notice = msgspec.json.decode(facts.notice)
    digest = sha256(facts.record).hexdigest()
    fields = dict(read_disclosure(encoded)[1:] for encoded in facts.shown)
    absent = _absent(facts)
    words: dict[str, Any] = {
        "title": "Certificate of Acknowledgment",
        "parties": party_rows(record, facts),
        "timeline": timeline(record, fields.get(PROCESS), facts),
        "summary": SENTENCES["summary_hosted" if is_hosted(record) else "summary"].format(
            at=time_text(record["accepted_at"]), account=record["account"], index=facts.index
        ),
        "id": record["id"],
        "origin": facts.origin,
        "notice_rows": _notice_rows(notice, record, facts.review),
        "process": _process(record, fields, absent),
        "capture": _capture(record, facts),
        "recorded": _recorded(record, fields, absent, facts.account_name),
        "seal": _seal(facts, digest),
        "proves": proves(record, facts),
        "said": said(record, fields.get(PROCESS)),
        "proves_not": proves_not(record, facts, fields.get(PROCESS)),
        "how": [way.format(verify_url=facts.verify_url, digest=digest) for way in _HOW],
    }
    shown: dict[str, Any] = showable(words)
    return shown | {
        "keywords": [],
        "test": record["mode"] == Mode.TEST,
        # Of the document too: if a clock were asked it would not be the same each time.
        "date": [int(part) for part in _PARTS.findall(record["accepted_at"])[:6]],
        "verify_url": f"{facts.verify_url}#record={digest}",
        "notice": notice_words(notice),
        "lines": lines_of(notice["bullets"], fields, absent),
        "files": {
            "record": facts.record.decode(),
            "disclosures": canonical_json(list(facts.shown)).decode(),
            "notice": facts.notice.decode(),
            "proof": facts.proof.decode(),
        },
    }


def lines_of(
    bullets: Sequence[Mapping[str, Any]], fields: Mapping[str, Any], absent: str
) -> list[dict[str, Any]]:
    """The lines with their initials; where letters could be mistaken, with their code points."""
    given = fields.get("initials_per_line") or [None] * len(bullets)
    timed = fields[PROCESS]["lines"] if fields.get(PROCESS) else [None] * len(bullets)
    return [
        showable({"id": line["id"], "text": line["text"]}, keep="\n")
        | {
            "long": len(line["text"]) + 10 * len(text or "") > _LONG_LINE,
            "initials": None if text is None else showable(text),
            "note": absent if text is None else code_points(text),
            "han": han_font(text or ""),
            "times": _line_times(times),
        }
        for line, text, times in zip(bullets, given, timed, strict=True)
    ]


def _line_times(line: Mapping[str, Any] | None) -> dict[str, str] | None:
    if line is None:
        return None
    utc, pacific = clocks(parse_rfc3339(line["initialed_at"]))
    shown, _ = clocks(parse_rfc3339(line["shown_at"]))
    return {
        "utc": utc,
        "pacific": pacific,
        "note": showable(f"line served {shown}; {changes(line)}"),
    }


def notice_words(notice: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a tree of JSON values
    """The notice as a page shows it, but for its lines."""
    # A screen reader needs the language's first subtag.
    language = _LANGUAGE.match(notice.get("language") or "")
    shown = {
        "title": notice["title"],
        "heading": notice["heading"],
        "language": language[0].lower() if language else "en",
        "attestation": notice["attestation_text"],
        "han": han_font(" ".join(line["text"] for line in notice["bullets"]), notice["language"]),
    }
    return showable(shown, keep="\n")


def _review(review: Review | None) -> tuple[str, str]:
    """Who compared the notice with the official text, and the source of that statement."""
    text = "not reviewed when it was acknowledged"
    if review is not None:
        text = f"by {review.by}, against {review.against}, on {both_times(review.at)}"
    return text, "according to the operator; not in the record"


def _notice_rows(
    notice: dict[str, Any], record: dict[str, Any], review: Review | None
) -> list[dict[str, Any]]:
    editorial, gaps = notice.get("editorial"), notice.get("text_gaps")
    asserted = record["notice_version_source"] == VersionSource.ASSERTED
    version = "assumed"
    if asserted:
        version = "hosted" if is_hosted(record) else "asserted"
    rows = [
        row("Notice", f"{record['notice_id']}, version {record['notice_version']}"),
        row("Version", SENTENCES["versions"][version]),
        row("Law", f"{notice['source_law']}; {notice['source_bill']}"),
        row("Official text", notice["source_url"], link=True),
        row(
            "Editorial wording",
            f"the publisher's own words, not the law's: {', '.join(editorial)}"
            if editorial
            else "no part is marked as the publisher's own words",
        ),
        row("Reviewed", *_review(review)),
        row("Notice SHA-256", record["notice_digest"], mono=True),
    ]
    if gaps:
        rows.insert(5, row("Gaps in the text", "; ".join(gaps), "as stated by the publisher"))
    return rows


def _recorded(
    record: dict[str, Any], fields: dict[str, Any], absent: str, name: str | None
) -> list[dict[str, Any]]:
    def given(name: str, value: str | None) -> str:
        if name not in fields:
            return absent
        return "not given" if value is None else value

    named = (
        name and f"the operator's name for the account is {name}; the record does not contain it"
    )
    ip, agent = fields.get("ip") or {}, fields.get("user_agent") or {}
    cbid = fields.get("cbid")
    sources = SENTENCES["sources"][Capture.HOSTED if is_hosted(record) else Capture.VENDOR_API]
    by = SENTENCES["credentials"].get(record["credential"], record["credential"])
    return [
        row("Accepted", time_text(record["accepted_at"]), SERVICE_CLOCK),
        row("Account (vendor)", record["account"], named),
        row("Mode", record["mode"]),
        row(
            "Captured",
            SENTENCES["captures"].get(record["capture"], record["capture"]),
            f"submitted with {by}",
        ),
        row("Session", given("session_id", fields.get("session_id"))),
        row(
            "Buyer identifier",
            given("cbid", cbid),
            "as given; not checked whether it exists" if cbid else None,
        ),
        row("IP address", given("ip", ip.get("ip")), _ip_note(ip, sources)),
        row("User agent", given("user_agent", agent.get("user_agent")), _source(agent, sources)),
    ]


def is_hosted(record: Mapping[str, Any]) -> bool:
    return bool(record["capture"] == Capture.HOSTED)


def _process(record: dict[str, Any], fields: dict[str, Any], absent: str) -> list[dict[str, Any]]:
    """How the initials of a hosted acknowledgment were made; nothing for any other."""
    if not is_hosted(record):
        return []
    process = fields.get(PROCESS)
    return [row("How", absent)] if process is None else process_rows(process, None, record)


def _capture(record: dict[str, Any], facts: CertificateFacts) -> dict[str, str] | None:
    """How the vendor says that it captures initials; None with `hosted`, where it does not."""
    if is_hosted(record):
        return None
    described = party(record, facts, "capture_process")
    if described is None:
        return {"about": SENTENCES["capture"]["none"], "statement": ""}
    about = SENTENCES["capture"]["vendor"].format(version=described["version"])
    return {"about": about, "statement": showable(described["statement"], keep="\n")}


def _source(field: dict[str, Any], sources: dict[str, str]) -> str | None:
    source: str | None = field.get("source")
    if not source:
        return None
    return sources.get(source, source) + (", shortened" if field.get("truncated") else "")


def _ip_note(ip: dict[str, Any], sources: dict[str, str]) -> str | None:
    # Only a proxy of the service is believed to know the address of a browser.
    parts = [_source(ip, {**sources, "header": sources.get("proxy", sources["header"])})]
    if ip.get("peer_ip"):
        parts.append(f"the request itself came from {ip['peer_ip']}")
    if ip.get("forwarded"):
        parts.append(f"header as sent: {ip['forwarded']}")
    return "; ".join(part for part in parts if part) or None


def _seal(facts: CertificateFacts, digest: str) -> list[dict[str, Any]]:
    alone = "none: only the operator's clock shows the time"
    if facts.witnesses or facts.timestamps:
        alone = "none over this checkpoint"
    return [
        row("Log", facts.origin, mono=True),
        row(
            "Entry",
            f"number {facts.index}, counted from 0",
            f"in a checkpoint of {facts.size} {'entry' if facts.size == 1 else 'entries'}",
        ),
        row(
            "Checkpoint made",
            both_times(facts.checkpoint_at),
            f"{SERVICE_CLOCK}; in neither the record nor the proof",
        ),
        row("Checkpoint root", facts.root.hex(), mono=True),
        row("Log key SHA-256", facts.key_fingerprint, mono=True),
        row("Record SHA-256", digest, mono=True),
        row("Witness cosignatures", _attested(facts.witnesses, "at an invalid time") or alone),
        row(
            "RFC 3161 timestamps",
            _attested(facts.timestamps, "the time is in its token, in the bundle") or alone,
            "according to the tokens; the authorities' signatures were not checked here"
            if facts.timestamps
            else None,
        ),
    ]


def _attested(anchors: tuple[tuple[str, datetime | None], ...], undated: str) -> str:
    return "; ".join(f"{name}, {both_times(at) if at else undated}" for name, at in anchors)


def _absent(facts: CertificateFacts) -> str:
    """The text in place of a personal field that is not shown."""
    return "withheld" if facts.erased_at is None else f"erased on {both_times(facts.erased_at)}"


def proves(record: dict[str, Any], facts: CertificateFacts) -> list[dict[str, Any]]:
    """What holds once the checks pass, and by what."""
    holds = {
        "record": True,
        "notice": True,
        "shown": facts.shown,
        "witnesses": facts.witnesses,
        "timestamps": facts.timestamps,
    }
    names = [name for name, holding in holds.items() if holding]
    values = {"id": record["id"], "index": facts.index}
    return [
        row(SENTENCES["proved_by"][name], SENTENCES["proves"][name].format(**values))
        for name in names
    ]


def said(record: dict[str, Any], process: dict[str, Any] | None) -> list[dict[str, Any]]:
    """What rests on the word of one party alone."""
    holds = {
        "operator": True,
        "vendor": not is_hosted(record),
        "browser": process is not None,
    }
    return [
        row(SENTENCES["said_by"][name], SENTENCES["said"][name])
        for name, holding in holds.items()
        if holding
    ]


def proves_not(
    record: dict[str, Any], facts: CertificateFacts, process: dict[str, Any] | None = None
) -> list[str]:
    """What the certificate does not prove, even then."""
    by_vendor = record["capture"] == Capture.VENDOR_API
    holds = {
        "keywords": [],
        "test": record["mode"] == Mode.TEST,
        "who_vendor": by_vendor,
        "who_hosted": not by_vendor,
        "read_hosted": not by_vendor,
        "component": process is not None and process["surface"] != Surface.PAGE,
        "claimed": process is not None,
        "screen": by_vendor,
        "facts": True,
        "others": True,
        "law": True,
        "operator": not facts.witnesses and not facts.timestamps,
    }
    return [SENTENCES["proves_not"][name] for name, holding in holds.items() if holding]
