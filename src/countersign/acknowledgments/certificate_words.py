"""The text of a certificate: facts in, a tree of showable text out.

A missing personal field has a reason, and each value has its source.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

import msgspec

from countersign.acknowledgments.certificate_claims import how, proves, proves_not
from countersign.acknowledgments.certificate_facts import CertificateFacts, Review
from countersign.acknowledgments.model import Capture, VersionSource
from countersign.acknowledgments.text_safety import code_points, showable
from countersign.evidence.canonical import canonical_json
from countersign.evidence.disclosure import read_disclosure
from countersign.mode import Mode

_PARTS: Final = re.compile(r"[0-9]+")
_LANGUAGE: Final = re.compile(r"[A-Za-z]{2,3}(?![A-Za-z0-9])")
_CAPTURES: Final = {
    Capture.VENDOR_API: (
        "The vendor's server sent it (vendor_api). The vendor asserts what the buyer did."
    ),
    Capture.HOSTED: "The buyer's browser sent it directly to this service (hosted).",
}
_SOURCES: Final = {
    "body": "asserted by the vendor in its request",
    "header": "taken from a header that the vendor's server sent",
    "connection": "the IP address of the vendor's own connection",
}
_CREDENTIALS: Final = {
    "secret_key": "a secret API key of the account",
    "restricted_key": "a restricted API key of the account",
}
_OWN_CLOCK: Final = "by this service's own clock"


def certificate_words(facts: CertificateFacts) -> dict[str, Any]:
    """All text of the template.

    Strings under `files` and `verify_url` are exact, all others are made showable.

    Raises:
        ValueError, KeyError: the facts are not those of one acknowledgment.
    """
    record = msgspec.json.decode(facts.record)
    notice = msgspec.json.decode(facts.notice)
    digest = sha256(facts.record).hexdigest()
    fields = dict(read_disclosure(encoded)[1:] for encoded in facts.shown)
    absent = _absent(facts)
    words: dict[str, Any] = {
        "title": "Certificate of Acknowledgment",
        "summary": _summary(record, facts),
        "record_id": record["id"],
        "origin": facts.origin,
        "notice_rows": _notice_rows(notice, record, facts.review),
        "recorded": _recorded(record, fields, absent, facts.account_name),
        "seal": _seal(facts, digest),
        "proves": proves(record, facts),
        "proves_not": proves_not(record, facts),
        "how": how(facts, digest),
    }
    told: dict[str, Any] = showable(words)
    return told | {
        "test": record["mode"] == Mode.TEST,
        # Of the document too: if a clock were asked it would not be the same each time.
        "date": [int(part) for part in _PARTS.findall(record["accepted_at"])[:6]],
        "verify_url": f"{facts.verify_url}#record={digest}",
        "notice": _notice(notice),
        "initials": _initials(fields.get("initials_per_line"), absent, len(notice["bullets"])),
        "files": {
            "record": facts.record.decode(),
            "disclosures": canonical_json(list(facts.shown)).decode(),
            "notice": facts.notice.decode(),
            "proof": facts.proof.decode(),
        },
    }


def _initials(given: list[str] | None, absent: str, lines: int) -> list[dict[str, Any]]:
    """For each line the initials; where letters could be mistaken, with their code points."""
    if given is None:
        return [{"text": None, "note": absent}] * lines
    return [{"text": showable(text), "note": code_points(text)} for text in given]


def _notice(notice: dict[str, Any]) -> Any:  # noqa: ANN401 - a tree of JSON values
    shown = {
        "title": notice["title"],
        "heading": notice["heading"],
        "language": _language(notice),
        "attestation": notice["attestation_text"],
        "lines": [{"id": line["id"], "text": line["text"]} for line in notice["bullets"]],
    }
    return showable(shown, keep="\n")


def _language(notice: dict[str, Any]) -> str:
    """The notice's language by its first subtag, as a screen reader needs it."""
    found = _LANGUAGE.match(notice.get("language") or "")
    return found[0].lower() if found else "en"


def _row(label: str, value: str, note: str | None = None, *, mono: bool = False) -> dict[str, Any]:
    return {"label": label, "value": value, "note": note, "mono": mono}


def _review(review: Review | None) -> tuple[str, str]:
    """Who compared the notice with the official text, and the source of that statement."""
    if review is None:
        return (
            "not reviewed when it was acknowledged",
            "according to the operator; not in the record",
        )
    return (
        f"by {review.by}, against {review.against}, on {_instant(review.at)}",
        "according to the operator; not in the record",
    )


def _notice_rows(
    notice: dict[str, Any], record: dict[str, Any], review: Review | None
) -> list[dict[str, Any]]:
    editorial, gaps = notice.get("editorial"), notice.get("text_gaps")
    asserted = record["notice_version_source"] == VersionSource.ASSERTED
    rows = [
        _row("Notice", f"{record['notice_id']}, version {record['notice_version']}"),
        _row(
            "Version",
            "asserted: the vendor named it when it submitted the initials"
            if asserted
            else "assumed: the vendor named none, so the version in force was used",
        ),
        _row("Law", f"{notice['source_law']}; {notice['source_bill']}"),
        _row("Official text", notice["source_url"]),
        _row(
            "Editorial wording",
            f"the publisher's own words, not the law's: {', '.join(editorial)}"
            if editorial
            else "no part is marked as the publisher's own words",
        ),
        _row("Reviewed", *_review(review)),
        _row("Notice SHA-256", record["notice_digest"], mono=True),
    ]
    if gaps:
        rows.insert(5, _row("Gaps in the text", "; ".join(gaps), "as stated by the publisher"))
    return rows


def _name_note(name: str | None) -> str | None:
    return (
        None
        if name is None
        else f"the operator's name for the account is {name}; the record does not contain it"
    )


def _recorded(
    record: dict[str, Any], fields: dict[str, Any], absent: str, name: str | None
) -> list[dict[str, Any]]:
    def told(name: str, value: str | None) -> str:
        if name not in fields:
            return absent
        return "not given" if value is None else value

    ip, agent = fields.get("ip") or {}, fields.get("user_agent") or {}
    cbid = fields.get("cbid")
    by = _CREDENTIALS.get(record["credential"], record["credential"])
    return [
        _row("Accepted", _time_text(record["accepted_at"]), _OWN_CLOCK),
        _row("Account (vendor)", record["account"], _name_note(name)),
        _row("Mode", record["mode"]),
        _row(
            "Captured",
            _CAPTURES.get(record["capture"], record["capture"]),
            f"submitted with {by}",
        ),
        _row("Session", told("session_id", fields.get("session_id"))),
        _row(
            "Buyer identifier",
            told("cbid", cbid),
            "as given; not checked whether it exists" if cbid else None,
        ),
        _row("IP address", told("ip", ip.get("ip")), _ip_note(ip)),
        _row("User agent", told("user_agent", agent.get("user_agent")), _source(agent)),
    ]


def _source(field: dict[str, Any]) -> str | None:
    source: str | None = field.get("source")
    if not source:
        return None
    return _SOURCES.get(source, source) + (", shortened" if field.get("truncated") else "")


def _ip_note(ip: dict[str, Any]) -> str | None:
    parts = [_source(ip)]
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
        _row("Log", facts.origin, mono=True),
        _row(
            "Entry",
            f"number {facts.index}, counted from 0",
            f"in a checkpoint of {facts.size} {'entry' if facts.size == 1 else 'entries'}",
        ),
        _row(
            "Checkpoint made",
            _instant(facts.checkpoint_at),
            f"{_OWN_CLOCK}; in neither the record nor the proof",
        ),
        _row("Checkpoint root", facts.root.hex(), mono=True),
        _row("Log key SHA-256", facts.key_fingerprint, mono=True),
        _row("Record SHA-256", digest, mono=True),
        _row("Witness cosignatures", _attested(facts.witnesses, "at an invalid time") or alone),
        _row(
            "RFC 3161 timestamps",
            _attested(facts.timestamps, "the time is in its token, in the bundle") or alone,
            "according to the tokens; the authorities' signatures were not checked here"
            if facts.timestamps
            else None,
        ),
    ]


def _attested(anchors: Sequence[tuple[str, datetime | None]], undated: str) -> str:
    return "; ".join(f"{name}, {_instant(at) if at else undated}" for name, at in anchors)


def _summary(record: dict[str, Any], facts: CertificateFacts) -> str:
    return (
        f"On {_time_text(record['accepted_at'])} this service accepted, from the account "
        f"{record['account']}, initials for every line of the notice below, and sealed the "
        f"record in a public log as entry {facts.index}."
    )


def _absent(facts: CertificateFacts) -> str:
    """The text in place of a personal field that is not shown."""
    return "withheld" if facts.erased_at is None else f"erased on {_instant(facts.erased_at)}"


def _time_text(text: str) -> str:
    return f"{text[:10]} {text[11:-1]} UTC"


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
