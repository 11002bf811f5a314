"""The parties of an acknowledgment, and the times of events, as rows of tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from countersign import __version__
from countersign.base.values import parse_rfc3339
from countersign.core.dossiers.process_words import SENTENCES
from countersign.core.paper.typeset import clocks, row

_WORDS: Final = SENTENCES["parties"]
_CLOCKS: Final = SENTENCES["clocks"]
Event = tuple[datetime, str, str]
"""When, what, and by whose clock."""
Seen = tuple[tuple[str, datetime | None], ...]
"""Names of those who saw a checkpoint, with their times."""


def closing_rows(identifiers: Sequence[str]) -> list[dict[str, Any]]:
    """The buyer, of whom there may be identifiers, and what made the document."""
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
    """A party in words, and where they come from."""
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


def accepted(record: Mapping[str, Any]) -> Event:
    """That an acknowledgment was accepted."""
    at = parse_rfc3339(record["accepted_at"])
    return at, "The acknowledgment was accepted", _CLOCKS["service"]


def process_events(process: Mapping[str, Any], record: Mapping[str, Any]) -> Iterator[Event]:
    """The service's observations before it accepted a hosted acknowledgment."""
    clock = _CLOCKS["test" if "test_clock" in record else "service"]
    received = [parse_rfc3339(line["initialed_at"]) for line in process["lines"]]
    yield parse_rfc3339(process["opened_at"]), "The notice was opened", clock
    yield min(received), "The first initials were received", clock
    yield max(received), "The last initials were received", clock
    if process["reviewed_at"]:
        yield parse_rfc3339(process["reviewed_at"]), "The review step was served", clock


def seen_events(witnesses: Seen, timestamps: Seen) -> Iterator[Event]:
    """When others saw the checkpoint: those that say when."""
    cosigned, stamped = "The checkpoint was cosigned", "The checkpoint was time-stamped"
    for anchors, what, clock in (
        (witnesses, cosigned, _CLOCKS["witness"]),
        (timestamps, stamped, _CLOCKS["authority"]),
    ):
        for name, at in anchors:
            if at is not None:
                yield at, what, clock.format(name=name)
