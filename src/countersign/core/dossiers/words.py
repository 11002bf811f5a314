"""What a dossier says: of parties, processes and acknowledgments."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from importlib import resources
from typing import Any, Final

from countersign import __version__
from countersign.base.values import Mode
from countersign.core.acknowledgments.model import Capture, VersionSource
from countersign.core.paper.typeset import clocks, code_points, han_font, row, showable, time_text
from countersign_evidence.offline.verify import explain_process
from countersign_evidence.process import PROCESS, Binding, Surface

SENTENCES: Final = tomllib.loads(
    (resources.files(__package__) / "acknowledged.toml").read_text("utf-8")
)
SERVICE_CLOCK: Final = "by this service's own clock, on its operator's word"
TEST_CLOCK: Final = "by the sandbox's test clock"
_TWO: Final = "by line: initials and agreement came from two clients"
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def clock_of(record: Mapping[str, Any]) -> str:
    """The clock of the process's times."""
    return TEST_CLOCK if "test_clock" in record else SERVICE_CLOCK


def process_words(process: Mapping[str, Any], ids: Sequence[str], clock: str) -> list[str]:
    """How the initials were made, as a reader says it, by this clock.

    `process` was checked by a reader; `ids` are those of the notice's lines.
    """
    said = [_TIME.sub(lambda at: time_text(at[0]), line) for line in explain_process(process, ids)]
    return [f"The times are {clock}.", *said]


_WORDS: Final = SENTENCES["parties"]
_CLOCKS: Final = SENTENCES["clocks"]
Event = tuple[datetime, str, str]
"""Time, event, and whose clock."""
Seen = tuple[tuple[str, datetime | None], ...]
"""Names of third parties that saw a checkpoint, with their times."""


def closing_rows(identifiers: Sequence[str]) -> list[dict[str, Any]]:
    """The rows for the buyer, with identifiers if any, and for the maker of the document."""
    also = f"; as buyer identifier: {', '.join(identifiers)}" if identifiers else ""
    return [
        row("Buyer", f"not named in the evidence{also}", _WORDS["buyer"]),
        row("Made with", f"Countersign {__version__}", _WORDS["made"]),
    ]


def with_name(account: str, described: Mapping[str, Any] | None) -> str:
    """An account, with its legal name if it is described with one."""
    name = described and described["legal_name"]
    return f"{account} ({name})" if name else account


def described(record: Mapping[str, Any] | None, otherwise: str, role: str) -> tuple[str, str]:
    """A party in words, with their source."""
    if record is None:
        return otherwise, f"{_WORDS[role]}; {_WORDS['undescribed']}"
    name = record["legal_name"] or record.get("name") or otherwise
    labels = ("account", "address", "licence", "contact")
    stated = [f"{label} {record[label]}" for label in labels if record.get(label)]
    return name, "; ".join([_WORDS[role], *stated, _WORDS["described"]])


def moment(at: datetime, what: str, clock: str) -> dict[str, str]:
    """A row of a timeline."""
    utc, pacific = clocks(at)
    return {"utc": utc, "pacific": pacific, "what": what, "clock": clock}


def seen_events(witnesses: Seen, timestamps: Seen) -> Iterator[Event]:
    """Times at which third parties saw the checkpoint, if they state one."""
    cosigned, stamped = "The checkpoint was cosigned", "The checkpoint was time-stamped"
    for anchors, what, clock in (
        (witnesses, cosigned, _CLOCKS["witness"]),
        (timestamps, stamped, _CLOCKS["authority"]),
    ):
        for name, at in anchors:
            if at is not None:
                yield at, what, clock.format(name=name)


_LANGUAGE: Final = re.compile(r"[A-Za-z]{2,3}(?![A-Za-z0-9])")
_LONG_LINE: Final = 700
"""A line with more characters may break over pages, and has its id on each.

An initial counts for ten: there may be code points below it.
"""
_CHECKED: Final = frozenset({Binding.IDENTITY_SESSION, Binding.PASSKEY, Binding.COOKIE})
"""Bindings of a session where this service itself identified the buyer."""
_SAYERS: Final = ("operator", "vendor", "client", "provider")
"""The parties whose word can stand alone, in the order of the table."""


def is_hosted(record: Mapping[str, Any]) -> bool:
    return bool(record["capture"] == Capture.HOSTED)


def accepted_words(record: Mapping[str, Any], account: str, index: int) -> str:
    """The accepted notice, the buyer and the time in one sentence."""
    sentence: str = SENTENCES["summary_hosted" if is_hosted(record) else "summary"]
    return sentence.format(at=time_text(record["accepted_at"]), account=account, index=index)


def lines_of(
    bullets: Sequence[Mapping[str, Any]], fields: Mapping[str, Any], absent: str
) -> list[dict[str, Any]]:
    """The lines with their initials; where letters could be mistaken, with their code points."""
    given = fields.get("initials_per_line") or [None] * len(bullets)
    return [
        showable({"id": line["id"], "text": line["text"]}, keep="\n")
        | {
            "long": len(line["text"]) + 10 * len(text or "") > _LONG_LINE,
            "initials": None if text is None else showable(text),
            "note": absent if text is None else code_points(text),
            "han": han_font(text or ""),
        }
        for line, text in zip(bullets, given, strict=True)
    ]


def notice_words(notice: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a tree of JSON values
    """The notice as a page shows it, but for its lines."""
    # A screen reader needs the language's first subtag.
    language = _LANGUAGE.match(notice.get("language") or "")
    shown = {
        "title": notice["title"],
        "heading": notice["heading"],
        "language": language[0].lower() if language else "en",
        "attestation": notice["attestation_text"],
        "han": han_font(
            " ".join(line["text"] for line in notice["bullets"]), notice.get("language") or ""
        ),
    }
    return showable(shown, keep="\n")


def notice_rows(
    notice: Mapping[str, Any], record: Mapping[str, Any], review: tuple[str, str | None]
) -> list[dict[str, Any]]:
    """The notice, the source of its text, and its gaps.

    `review` has the reviewer of the official text, and its source.
    """
    editorial, gaps = notice.get("editorial"), notice.get("text_gaps")
    version = "assumed"
    if record["notice_version_source"] == VersionSource.ASSERTED:
        version = "hosted" if is_hosted(record) else "asserted"
    law = [notice[name] for name in ("source_law", "source_bill") if notice.get(name)]
    return [
        row("Notice", f"{record['notice_id']}, version {record['notice_version']}"),
        row("Version", SENTENCES["versions"][version]),
        row("Law", "; ".join(law) or "not given"),
        *(
            row(name.replace("_", " ").capitalize(), str(notice[name]))
            for name in ("jurisdiction", "language", "effective_from")
            if notice.get(name)
        ),
        row("Official text", notice.get("source_url") or "not given", link=True),
        row(
            "Editorial wording",
            f"the publisher's own words, not the law's: {', '.join(editorial)}"
            if editorial
            else "no part is marked as the publisher's own words",
        ),
        *([row("Gaps in the text", "; ".join(gaps), "as stated by the publisher")] if gaps else []),
        row("Reviewed", *review),
        row("Notice SHA-256", record["notice_digest"], mono=True),
    ]


def captured_row(record: Mapping[str, Any]) -> dict[str, Any]:
    """The sender of the initials, the channel and the credential."""
    by = SENTENCES["credentials"].get(record["credential"], record["credential"])
    how = SENTENCES["captures"].get(record["capture"], record["capture"])
    return row("Captured", how, f"submitted with {by}")


def recorded_rows(
    record: Mapping[str, Any], fields: Mapping[str, Any], absent: str
) -> list[dict[str, Any]]:
    """Data recorded with the initials, each with its source."""

    def given(name: str, value: str | None) -> str:
        if name not in fields:
            return absent
        return "not given" if value is None else value

    ip, agent = fields.get("ip") or {}, fields.get("user_agent") or {}
    cbid = fields.get("cbid")
    sources = SENTENCES["sources"][Capture.HOSTED if is_hosted(record) else Capture.VENDOR_API]
    return [
        row("Accepted", time_text(record["accepted_at"]), SERVICE_CLOCK),
        row("Account (vendor)", record["account"]),
        row("Mode", record["mode"]),
        captured_row(record),
        row("Session", given("session_id", fields.get("session_id"))),
        row(
            "Buyer identifier",
            given("cbid", cbid),
            _found_by(record, fields) if cbid else None,
        ),
        row("IP address", given("ip", ip.get("ip")), _ip_note(ip, sources)),
        row("User agent", given("user_agent", agent.get("user_agent")), _source(agent, sources)),
        *[
            row("Initials came from", "; ".join(one or "not known" for one in by_line), _TWO)
            for by_line in (ip.get("initials_from"), agent.get("initials_from"))
            if by_line
        ],
    ]


def _found_by(record: Mapping[str, Any], fields: Mapping[str, Any]) -> str:
    """The source of the buyer's identifier: a check in the session, or the vendor."""
    process = fields.get(PROCESS) or {}
    if is_hosted(record) and process.get("binding") in _CHECKED and process.get("verification"):
        return f"found by the identity check {process['verification']}"
    return "as given; not checked whether it exists"


def _source(field: Mapping[str, Any], sources: Mapping[str, str]) -> str | None:
    source: str | None = field.get("source")
    if not source:
        return None
    return sources.get(source, source) + (", shortened" if field.get("truncated") else "")


def _ip_note(ip: Mapping[str, Any], sources: Mapping[str, str]) -> str | None:
    # Only a proxy of the service is believed to know the address of a client.
    parts = [_source(ip, {**sources, "header": sources.get("proxy", sources["header"])})]
    if ip.get("peer_ip"):
        parts.append(f"the request itself came from {ip['peer_ip']}")
    if ip.get("forwarded"):
        parts.append(f"header as sent: {ip['forwarded']}")
    return "; ".join(part for part in parts if part) or None


def said_of(record: Mapping[str, Any], fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The facts that rest on one party's word alone: the party, and a sentence."""
    words = SENTENCES["said"]
    hosted = is_hosted(record)
    yield "operator", words["accepted"]
    if not hosted:
        yield "vendor", words["shown"]
    for name in ("ip", "user_agent"):
        if source := (fields.get(name) or {}).get("source"):
            yield _whose(source, name, hosted=hosted), words[name]
    if PROCESS in fields:
        yield "client", words["claimed"]


def _whose(source: str, name: str, *, hosted: bool) -> str:
    """The party that asserts a field: the service, if it or its proxy observed it."""
    if source == "connection" or (hosted and name == "ip"):
        return "operator"
    return "client" if hosted else "vendor"


def said_rows(said: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """A row for each party, with all its sentences."""
    of = {who: " ".join(words for by, words in said if by == who) for who in _SAYERS}
    return [row(SENTENCES["said_by"][who], words) for who, words in of.items() if words]


def not_proved(
    mode: str,
    record: Mapping[str, Any] | None,
    fields: Mapping[str, Any],
    *,
    seen: bool,
) -> list[str]:
    """The limits of the proof, including those of an acknowledgment if there is one.

    `seen`: whether anyone but the operator has signed the checkpoint.
    """
    process = fields.get(PROCESS)
    by_vendor, hosted = (record is not None and is_hosted(record) is way for way in (False, True))
    holds = {
        "test": mode == Mode.TEST,
        "who_vendor": by_vendor,
        "who_hosted": hosted,
        "read_hosted": hosted,
        "component": process is not None and process["surface"] != Surface.PAGE,
        "claimed": process is not None,
        "screen": by_vendor,
        "same": True,
        "facts": True,
        "others": True,
        "law": True,
        "operator": not seen,
    }
    return [SENTENCES["proves_not"][name] for name, holding in holds.items() if holding]


def how_rows(verify_url: str, id_: str, digest: str) -> list[str]:
    """The ways to check the dossier that this document comes in, and its record by hand."""
    values = {"verify_url": verify_url, "id": id_, "digest": digest}
    return [way.format_map(values) for way in SENTENCES["how"].values()]


def alone_in_time(*, seen: bool) -> str:
    """The text in place of missing witnesses or time-stamps."""
    words: str = SENTENCES["seal"]["none_here" if seen else "none"]
    return words
