"""The text of a certificate: facts in, a tree of showable text out.

A missing personal field has a reason, and each value has its source. A character that has no glyph,
or shows nothing, is written as its code point.
"""

from __future__ import annotations

import re
from datetime import datetime
from hashlib import sha256
from typing import Any, Final

import msgspec

from countersign.acknowledgments.acknowledged_words import (
    accepted_words,
    alone_in_time,
    how_rows,
    is_hosted,
    lines_of,
    not_proved,
    notice_rows,
    notice_words,
    recorded_rows,
    said_of,
    said_rows,
)
from countersign.acknowledgments.certificate_facts import CertificateFacts, Review
from countersign.acknowledgments.certificate_parties import (
    party,
    party_rows,
    timeline,
    vendor_of,
)
from countersign.acknowledgments.certificate_process import (
    SENTENCES,
    SERVICE_CLOCK,
    process_rows,
)
from countersign.evidence.canonical import canonical_json
from countersign.evidence.disclosure import read_disclosure
from countersign.evidence.process import PROCESS
from countersign.mode import Mode
from countersign.paper.text import both_times, row, showable

_PARTS: Final = re.compile(r"[0-9]+")


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
        "clock": SENTENCES["clocks"]["own"],
        "timeline": timeline(record, fields.get(PROCESS), facts),
        "summary": accepted_words(record, vendor_of(record, facts), facts.index),
        "id": record["id"],
        "origin": facts.origin,
        "notice_rows": notice_rows(notice, record, _review(facts.review)),
        "process": _process(record, fields, absent),
        "recorded": recorded_rows(record, fields, absent, _named(facts.account_name)),
        "seal": _seal(facts, digest),
        "proves": _proves(record, facts),
        "said": said_rows([*said_of(record, fields)]),
        "proves_not": not_proved(record["mode"], record, fields, seen=_seen(facts)),
        "how": [*how_rows("bundle", facts.verify_url), *_by_hand(digest)],
    }
    shown: dict[str, Any] = showable(words)
    return shown | {
        "keywords": [],
        "capture": showable(_capture(record, facts), keep="\n"),
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


def _review(review: Review | None) -> tuple[str, str]:
    """Who compared the notice with the official text, and the source of that statement."""
    text = "not reviewed when it was acknowledged"
    if review is not None:
        text = f"by {review.by}, against {review.against}, on {both_times(review.at)}"
    return text, "according to the operator; not in the record"


def _named(account: str | None) -> str | None:
    return account and (
        f"the operator's name for the account is {account}; the record does not contain it"
    )


def _by_hand(digest: str) -> list[str]:
    return [way.format(digest=digest) for way in SENTENCES["attached"].values()]


def _process(record: dict[str, Any], fields: dict[str, Any], absent: str) -> list[dict[str, Any]]:
    """How the initials of a hosted acknowledgment were made; nothing for any other."""
    if not is_hosted(record):
        return []
    process = fields.get(PROCESS)
    return [row("How", absent)] if process is None else process_rows(process, None, record)


def _capture(record: dict[str, Any], facts: CertificateFacts) -> list[dict[str, str]]:
    """How the vendor says that it captures initials; nothing with `hosted`, where it does not."""
    if is_hosted(record):
        return []
    described = party(record, facts, "capture_process")
    if described is None:
        return [{"about": SENTENCES["capture"]["none"], "text": ""}]
    about = SENTENCES["capture"]["vendor"].format(version=described["version"])
    return [{"about": about, "text": described["statement"]}]


def _seal(facts: CertificateFacts, digest: str) -> list[dict[str, Any]]:
    alone = alone_in_time(seen=_seen(facts))
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


def _seen(facts: CertificateFacts) -> bool:
    return bool(facts.witnesses or facts.timestamps)


def _attested(anchors: tuple[tuple[str, datetime | None], ...], undated: str) -> str:
    return "; ".join(f"{name}, {both_times(at) if at else undated}" for name, at in anchors)


def _absent(facts: CertificateFacts) -> str:
    """The text in place of a personal field that is not shown."""
    return "withheld" if facts.erased_at is None else f"erased on {both_times(facts.erased_at)}"


def _proves(record: dict[str, Any], facts: CertificateFacts) -> list[dict[str, Any]]:
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
