"""The timeline of an order, each event by the clock that measured it."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from countersign.base.instant import parse_rfc3339
from countersign.core.dossiers.party_words import (
    Event,
    accepted,
    moment,
    process_events,
    seen_events,
)
from countersign.core.dossiers.process_words import SENTENCES
from countersign_evidence.dossier import CLEARANCE, Dossier, DossierRecord
from countersign_evidence.note import cosigned_at
from countersign_evidence.process import PROCESS
from countersign_evidence.record import ACKNOWLEDGMENT


def timeline(dossier: Dossier, words: Mapping[str, Any]) -> list[dict[str, str]]:
    """The rows of the timeline, earliest first."""
    events = [event for one in dossier.records for event in _events(one, words)]
    witnesses = tuple((name, cosigned_at(time)) for name, time in dossier.cosigned)
    stamps = tuple((stamp.name, parse_rfc3339(stamp.at)) for stamp in dossier.timestamps)
    events += seen_events(witnesses, stamps)
    return [moment(*event) for event in sorted(events, key=lambda event: event[0])]


def _events(one: DossierRecord, words: Mapping[str, Any]) -> Iterator[Event]:
    happened = words["happened"]
    if one.type == ACKNOWLEDGMENT:
        if PROCESS in one.shown:
            yield from process_events(one.shown[PROCESS], one.record)
        yield accepted(one.record)
        return
    name = f"clearance_{one.record['cleared']}".lower() if one.type == CLEARANCE else one.type
    what = happened[name].format(event=one.record.get("event"))
    yield parse_rfc3339(one.record["at"]), what, f"{SENTENCES['clocks']['service']}; {one.id}"
    for reported in ("shipped_at", "delivered_at"):
        if at := _instant(one.record.get(reported)):
            yield at, happened[reported], words["clocks"]["vendor"]


def _instant(text: object) -> datetime | None:
    """A time that a vendor reported; None if it is none."""
    try:
        return parse_rfc3339(text) if isinstance(text, str) else None
    except ValueError:
        return None
