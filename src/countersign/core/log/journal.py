"""Writing records: the rows of each, its events, and its place in the log or its queue."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Final

import msgspec
from sqlalchemy import Connection

from countersign.base.db.statements import BulkInsert, Deferred, run_deferred
from countersign.base.db.tables import (
    deployment_records,
    disclosures,
    log_pending,
    records,
    shred_keys,
)
from countersign.base.values import ACKNOWLEDGMENT, is_id, to_ms
from countersign.core.events.model import EventType, NewEvent
from countersign.core.events.sql import defer_events
from countersign.core.log.record import NewRecord, RecordType
from countersign.core.log.sequencer import Sequencer, insert_entries

_COLUMNS: Final = ("id", "mode", "type", "at", "digest", "body")
_insert_own_records: Final = BulkInsert(deployment_records, *_COLUMNS)
_insert_records: Final = BulkInsert(records, *_COLUMNS, "account_id", "notice_id")
_OF_PAYLOAD: Final = "session_index", "cbid_index", "payload", "reference_index"
_insert_disclosures: Final = BulkInsert(
    disclosures, "record_id", "account_id", "mode", *_OF_PAYLOAD
)
_disclosed: Final = attrgetter("id", "account_id", "mode.value", *_OF_PAYLOAD)
insert_shred_keys: Final = BulkInsert(shred_keys, "record_id", "key")
_insert_pending: Final = BulkInsert(log_pending, "record_id", "mode", "digest")


_CREATED: Final = {
    RecordType.ACKNOWLEDGMENT: EventType.ACKNOWLEDGMENT_CREATED,
    RecordType.CLEARANCE: EventType.CLEARANCE_CREATED,
}


class Journal(msgspec.Struct, frozen=True, eq=False):
    """Writes records in the transaction of their act.

    With a sequencer (on the embedded database, where the write lock is enough) their entries are
    sealed in the same transaction. Without one, or whenever sealing is not possible, they are
    queued: the act itself is never refused for that.
    """

    sequencer: Sequencer | None

    def write(self, connection: Connection, new: Sequence[NewRecord]) -> None:
        """Insert these records with their other rows, and seal or queue their entries."""
        deferred = Deferred()
        self.defer(connection, deferred, new)
        run_deferred(connection, deferred)

    def defer(self, connection: Connection, deferred: Deferred, new: Sequence[NewRecord]) -> None:
        """The same at the end of the transaction, for records other than acknowledgments."""
        personal = [r for r in new if r.payload is not None]
        for insert, rows in (
            (_insert_own_records, [_row(r) for r in new if not r.account_id]),
            (
                _insert_records,
                [(*_row(r), r.account_id, r.notice_id) for r in new if r.account_id],
            ),
            (_insert_disclosures, [*map(_disclosed, personal)]),
            (insert_shred_keys, [(r.id, r.shred_key) for r in personal]),
        ):
            insert.defer(connection, deferred, rows)
        told = [event for record in new for event in _events_of(record)]
        defer_events(connection, deferred, told)
        for mode in {record.mode for record in new}:
            own, sequencer = [r for r in new if r.mode is mode], self.sequencer
            placed = sequencer.place_inline(connection, mode, own) if sequencer else None
            if placed is None:
                waiting = [(r.id, mode.value, r.digest) for r in own]
                _insert_pending.defer(connection, deferred, waiting)
            else:
                log_id, start, _ = placed
                entries = [(log_id, i, r.id, r.digest) for i, r in enumerate(own, start)]
                insert_entries.defer(connection, deferred, entries)


def _row(r: NewRecord) -> tuple[object, ...]:
    return r.id, r.mode.value, r.type.value, to_ms(r.at), r.digest, r.body


def _events_of(record: NewRecord) -> list[NewEvent]:
    """The events that follow from the record alone; acts write the others themselves."""
    if not record.account_id:
        return []
    created = _CREATED.get(record.type)
    if created is not None:
        return [NewEvent(record.account_id, record.mode, created, record.id, record.at)]
    if record.type is not RecordType.ERASURE:
        return []
    erased = EventType.ACKNOWLEDGMENT_ERASED
    return [
        NewEvent(record.account_id, record.mode, erased, id_, record.at)
        for id_ in msgspec.json.decode(record.body)["erased"]
        if is_id(ACKNOWLEDGMENT, id_)
    ]
