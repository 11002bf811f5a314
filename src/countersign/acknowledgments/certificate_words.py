"""The text of a certificate: facts in, a tree of showable text out.

A missing personal field has a reason, and each value has its source. A character that has no glyph,
or shows nothing, is written as its code point.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from importlib import resources
from typing import Any, Final

import msgspec

from countersign.acknowledgments.model import Capture, VersionSource
from countersign.evidence.canonical import canonical_json
from countersign.evidence.disclosure import read_disclosure
from countersign.evidence.process import PROCESS, Surface
from countersign.mode import Mode

SENTENCES: Final = tomllib.loads(
    (resources.files(__package__) / "certificate.toml").read_text("utf-8")
)
_HOW: Final[list[str]] = [*SENTENCES["how"].values()]
"""The ways to check the evidence."""
_PARTS: Final = re.compile(r"[0-9]+")
_LANGUAGE: Final = re.compile(r"[A-Za-z]{2,3}(?![A-Za-z0-9])")
_SERVICE_CLOCK: Final = "by this service's own clock"
_TEST_CLOCK: Final = "by the sandbox's test clock"
_CLAIMED: Final = "claimed by the browser; not observed by this service"
_RANGES: Final = [found.split("-") for found in SENTENCES["showable"].split()]
SHOWABLE: Final = [(int(first, 16), int(last, 16)) for first, last in _RANGES]
"""Ranges of code points that a page shows as they are."""
# A bracket that was typed is escaped too, to differ from those that are put in.
_UNSHOWABLE: Final = re.compile(
    r"\[(?=U\+)|[^" + "".join(f"\\u{first}-\\u{last}" for first, last in _RANGES) + "]"
)
_LATIN: Final = re.compile(r"(?:[!-~\u00c0-\u017f]+(?: [!-~\u00c0-\u017f]+)*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """Who compared the text of a notice, against which address, and when, as the operator says."""

    by: str
    against: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateFacts:
    """What a certificate is made from.

    `review` is the last one before the acknowledgment, `account_name` how the operator calls the
    vendor; neither is in the record.
    `shown` are the encoded disclosures that are shown; `index` and `size` are the place of the
    entry and the number of entries under the checkpoint of the proof; `checkpoint_at` is when that
    checkpoint was made, by the service's clock; `witnesses` and `timestamps` are names with the
    times that they attest, None for a time that was not read or is no date.
    """

    record: bytes
    shown: tuple[str, ...]
    erased_at: datetime | None
    notice: bytes
    review: Review | None
    account_name: str | None
    proof: bytes
    origin: str
    index: int
    size: int
    root: bytes
    checkpoint_at: datetime
    key_fingerprint: str
    witnesses: tuple[tuple[str, datetime | None], ...]
    timestamps: tuple[tuple[str, datetime | None], ...]
    verify_url: str


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
        "summary": SENTENCES["summary_hosted" if _is_hosted(record) else "summary"].format(
            at=_time_text(record["accepted_at"]), account=record["account"], index=facts.index
        ),
        "record_id": record["id"],
        "origin": facts.origin,
        "notice_rows": _notice_rows(notice, record, facts.review),
        "process": _process(record, fields, absent, notice["bullets"]),
        "recorded": _recorded(record, fields, absent, facts.account_name),
        "seal": _seal(facts, digest),
        "proves": proves(record, facts),
        "proves_not": proves_not(record, facts, fields.get(PROCESS)),
        "how": [way.format(verify_url=facts.verify_url, digest=digest) for way in _HOW],
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
    # A screen reader needs the language's first subtag.
    language = _LANGUAGE.match(notice.get("language") or "")
    shown = {
        "title": notice["title"],
        "heading": notice["heading"],
        "language": language[0].lower() if language else "en",
        "attestation": notice["attestation_text"],
        "lines": [{"id": line["id"], "text": line["text"]} for line in notice["bullets"]],
    }
    return showable(shown, keep="\n")


def _row(label: str, value: str, note: str | None = None, *, mono: bool = False) -> dict[str, Any]:
    return {"label": label, "value": value, "note": note, "mono": mono}


def _review(review: Review | None) -> tuple[str, str]:
    """Who compared the notice with the official text, and the source of that statement."""
    text = "not reviewed when it was acknowledged"
    if review is not None:
        text = f"by {review.by}, against {review.against}, on {_instant(review.at)}"
    return text, "according to the operator; not in the record"


def _notice_rows(
    notice: dict[str, Any], record: dict[str, Any], review: Review | None
) -> list[dict[str, Any]]:
    editorial, gaps = notice.get("editorial"), notice.get("text_gaps")
    asserted = record["notice_version_source"] == VersionSource.ASSERTED
    version = "assumed"
    if asserted:
        version = "hosted" if _is_hosted(record) else "asserted"
    rows = [
        _row("Notice", f"{record['notice_id']}, version {record['notice_version']}"),
        _row("Version", SENTENCES["versions"][version]),
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
    sources = SENTENCES["sources"][Capture.HOSTED if _is_hosted(record) else Capture.VENDOR_API]
    by = SENTENCES["credentials"].get(record["credential"], record["credential"])
    return [
        _row("Accepted", _time_text(record["accepted_at"]), _SERVICE_CLOCK),
        _row("Account (vendor)", record["account"], named),
        _row("Mode", record["mode"]),
        _row(
            "Captured",
            SENTENCES["captures"].get(record["capture"], record["capture"]),
            f"submitted with {by}",
        ),
        _row("Session", given("session_id", fields.get("session_id"))),
        _row(
            "Buyer identifier",
            given("cbid", cbid),
            "as given; not checked whether it exists" if cbid else None,
        ),
        _row("IP address", given("ip", ip.get("ip")), _ip_note(ip, sources)),
        _row("User agent", given("user_agent", agent.get("user_agent")), _source(agent, sources)),
    ]


def _is_hosted(record: dict[str, Any]) -> bool:
    return bool(record["capture"] == Capture.HOSTED)


def _process(
    record: dict[str, Any], fields: dict[str, Any], absent: str, bullets: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """How the initials of a hosted acknowledgment were made; nothing for any other."""
    if not _is_hosted(record):
        return []
    process = fields.get(PROCESS)
    if process is None:
        return [_row("How", absent)]
    return process_rows(process, [bullet["id"] for bullet in bullets], record)


def process_rows(
    process: dict[str, Any], ids: Sequence[str], record: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """What the service observed, then what the browser claims, which each row says.

    `process` was checked by a reader; `ids` are those of the notice's lines. Its times are by the
    clock of the sandbox if the record has that clock's time.
    """
    page = process["surface"] == Surface.PAGE
    clock = _TEST_CLOCK if "test_clock" in record else _SERVICE_CLOCK
    surface = SENTENCES["surfaces"].get(process["surface"])
    ran, viewport, claimed = process["script"], process["viewport"], process["claimed"]
    reviewed = process["reviewed_at"]
    return [
        _row("Hosted session", process["checkout_session"]),
        _row(
            "Shown by",
            surface.format(origin=process["origin"] or "of unknown origin")
            if surface
            else process["surface"],
        ),
        _row(
            "SHA-256 of it",
            process["rendered_digest"] or "not known",
            "of the page as it was served" if page else _CLAIMED,
            mono=True,
        ),
        _row("Interface", f"in the language {process['locale']}"),
        _row("Notice opened", _time_text(process["opened_at"]), clock),
        *(
            _row(
                "Line",
                f"({id_}) initials received {_time_text(line['initialed_at'])}",
                f"line served {_time_text(line['shown_at'])}; {_changes(line)}",
            )
            for id_, line in zip(ids, process["lines"], strict=True)
        ),
        _row("Review step", f"served {_time_text(reviewed)}" if reviewed else "not served"),
        _row("Agreed to", process["agreement"]),
        _row("Electronic form", process["consent"]),
        _row(
            "Tied to session by", SENTENCES["bindings"].get(process["binding"], process["binding"])
        ),
        _row("Identity check", process["verification"] or "none"),
        _row("JavaScript ran", "not known" if ran is None else "yes" if ran else "no", _CLAIMED),
        _row(
            "Window",
            f"{viewport['width']} x {viewport['height']} CSS pixels" if viewport else "not known",
            _CLAIMED,
        ),
        _row(
            "Events",
            f"{len(claimed)}, received from {_time_text(claimed[0]['at'])} to "
            f"{_time_text(claimed[-1]['at'])}"
            if claimed
            else "none",
            f"{_CLAIMED}; each is in the disclosure {PROCESS}",
        ),
    ]


def _changes(line: dict[str, Any]) -> str:
    if not line["changes"]:
        return "initials never changed"
    last = f", last {_time_text(line['changed_at'])}" if line["changed_at"] else ""
    return f"initials changed {line['changes']} {'time' if line['changes'] == 1 else 'times'}{last}"


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


def proves(record: dict[str, Any], facts: CertificateFacts) -> list[str]:
    """What holds once the checks pass."""
    holds = {
        "record": True,
        "notice": True,
        "shown": facts.shown,
        "witnesses": facts.witnesses,
        "timestamps": facts.timestamps,
    }
    return _claims("proves", holds, id=record["id"], index=facts.index)


def proves_not(
    record: dict[str, Any], facts: CertificateFacts, process: dict[str, Any] | None = None
) -> list[str]:
    """What the certificate does not prove, even then."""
    by_vendor = record["capture"] == Capture.VENDOR_API
    holds = {
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
    return _claims("proves_not", holds)


def _claims(section: str, holds: Mapping[str, object], **values: object) -> list[str]:
    sentences = SENTENCES[section]
    return [sentences[name].format(**values) for name, holding in holds.items() if holding]
