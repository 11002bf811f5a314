"""The text of a certificate: facts in, a tree of showable text out.

A missing personal field has a reason, and each value has its source. A character that has no glyph,
or shows nothing, is written as its code point.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

import msgspec

from countersign.acknowledgments.certificate_claims import (
    CertificateFacts,
    Review,
    how,
    proves,
    proves_not,
)
from countersign.acknowledgments.model import Capture, VersionSource
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
_SERVICE_CLOCK: Final = "by this service's own clock"
SHOWABLE: Final = (
    (0x20, 0x7E),
    (0xA1, 0xAC),
    (0xAE, 0x24F),
    (0x370, 0x377),
    (0x37A, 0x37F),
    (0x384, 0x38A),
    (0x38C, 0x38C),
    (0x38E, 0x3A1),
    (0x3A3, 0x3FF),
    (0x400, 0x481),
    (0x48A, 0x4FF),
    (0x510, 0x513),
    (0x531, 0x556),
    (0x559, 0x58A),
    (0x5D0, 0x5EA),
    (0x621, 0x63A),
    (0x641, 0x64A),
    (0x10D0, 0x10FF),
    (0x1E00, 0x1F15),
    (0x2010, 0x2027),
    (0x2030, 0x2040),
    (0x2044, 0x2052),
    (0x2070, 0x2071),
    (0x2074, 0x208E),
    (0x20A0, 0x20C0),
    (0x2100, 0x211E),
    (0x2120, 0x2120),
    (0x2122, 0x2122),
    (0x2126, 0x2151),
    (0x2153, 0x2184),
    (0x2190, 0x23FF),
    (0x2460, 0x262F),
    (0x2701, 0x2704),
    (0x2713, 0x2718),
)
"""Code points that show something by themselves, for which the compiler has a glyph in every style.

PDF/A forbids a character without a glyph, and fonts of the machine are not used: the same facts
would look different elsewhere. Nor is Python's table of characters: it grows from version to
version.
"""
# A bracket that was typed is escaped too, to differ from those that are put in.
_UNSHOWABLE: Final = re.compile(
    r"\[(?=U\+)|[^" + "".join(f"\\u{a:04x}-\\u{b:04x}" for a, b in SHOWABLE) + "]"
)
_LATIN: Final = re.compile(r"(?:[!-~\u00c0-\u017f]+(?: [!-~\u00c0-\u017f]+)*)?")


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
    shown: dict[str, Any] = showable(words)
    return shown | {
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
    def given(name: str, value: str | None) -> str:
        if name not in fields:
            return absent
        return "not given" if value is None else value

    ip, agent = fields.get("ip") or {}, fields.get("user_agent") or {}
    cbid = fields.get("cbid")
    by = _CREDENTIALS.get(record["credential"], record["credential"])
    return [
        _row("Accepted", _time_text(record["accepted_at"]), _SERVICE_CLOCK),
        _row("Account (vendor)", record["account"], _name_note(name)),
        _row("Mode", record["mode"]),
        _row(
            "Captured",
            _CAPTURES.get(record["capture"], record["capture"]),
            f"submitted with {by}",
        ),
        _row("Session", given("session_id", fields.get("session_id"))),
        _row(
            "Buyer identifier",
            given("cbid", cbid),
            "as given; not checked whether it exists" if cbid else None,
        ),
        _row("IP address", given("ip", ip.get("ip")), _ip_note(ip)),
        _row("User agent", given("user_agent", agent.get("user_agent")), _source(agent)),
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
            f"{_SERVICE_CLOCK}; in neither the record nor the proof",
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


def showable(value: Any, keep: str = "") -> Any:  # noqa: ANN401 - a tree of JSON values
    """The value, with each character that a page cannot show truly written as `[U+202E]`.

    These are the ones that the fonts lack, and those that show nothing, combine with what stands
    before them or turn the writing around. `keep` are characters to leave as they are.
    """
    if isinstance(value, str):
        return _UNSHOWABLE.sub(
            lambda found: found[0] if found[0] in keep else f"[U+{ord(found[0]):04X}]", value
        )
    if isinstance(value, dict):
        return {name: showable(item, keep) for name, item in value.items()}
    if isinstance(value, list):
        return [showable(item, keep) for item in value]
    return value


def code_points(text: str) -> str | None:
    """The code points of a text in which letters or blanks could be mistaken, such as `U+0410`.

    None for Latin letters, digits and signs with single spaces between them.
    """
    if _LATIN.fullmatch(text):
        return None
    return " ".join(f"U+{ord(char):04X}" for char in text)
