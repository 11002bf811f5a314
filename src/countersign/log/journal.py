"""Writing records: the rows of each, its events, and its place in the log or its queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection

from countersign.db.bulk import BulkInsert
from countersign.db.tables import (
    deployment_records,
    disclosures,
    log_pending,
    records,
    shred_keys,
)
from countersign.events.sql import write_events
from countersign.instant import to_ms
from countersign.log.record import NewRecord
from countersign.log.record_events import events_of
from countersign.log.sequencer import Sequencer, Unsealed

_insert_records: Final = BulkInsert(
    records, "id", "account_id", "mode", "type", "notice_id", "at", "digest", "body"
)
_insert_own_records: Final = BulkInsert(
    deployment_records, "id", "mode", "type", "at", "digest", "body"
)
_insert_disclosures: Final = BulkInsert(
    disclosures, "record_id", "account_id", "mode", "session_index", "cbid_index", "payload"
)
_insert_shred_keys: Final = BulkInsert(shred_keys, "record_id", "key")
_insert_pending: Final = BulkInsert(log_pending, "record_id", "mode", "digest")


class Journal:
    """Writes records in the transaction of their act.

    With a sequencer (the embedded database, whose write lock is one) their entries are sealed in
    the same transaction. Without one, or whenever sealing is not possible, they are queued: the
    act itself is never refused for that.
    """

    def __init__(self, sequencer: Sequencer | None) -> None:
        self._sequencer = sequencer

    def write(self, connection: Connection, new: Sequence[NewRecord]) -> None:
        """Insert these records and what belongs to them, and seal or queue their entries."""
        _insert(connection, new)
        # Before sealing, which writes events too.
        write_events(connection, [event for record in new for event in events_of(record)])
        waiting = [Unsealed(record.id, record.mode, record.digest) for record in new]
        if self._sequencer is not None:
            waiting = self._sequencer.seal_inline(connection, waiting)
        if waiting:
            _insert_pending(
                connection, [(entry.record_id, entry.mode.value, entry.digest) for entry in waiting]
            )


def _insert(connection: Connection, new: Sequence[NewRecord]) -> None:
    own = [
        (r.id, r.mode.value, r.type.value, to_ms(r.at), r.digest, r.body)
        for r in new
        if r.account_id is None
    ]
    if own:
        _insert_own_records(connection, own)
    if len(own) == len(new):
        return
    _insert_records(
        connection,
        [
            (
                r.id,
                r.account_id,
                r.mode.value,
                r.type.value,
                r.notice_id,
                to_ms(r.at),
                r.digest,
                r.body,
            )
            for r in new
            if r.account_id is not None
        ],
    )
    personal = [(r, r.disclosures) for r in new if r.disclosures is not None]
    if personal:
        _insert_disclosures(
            connection,
            [
                (r.id, r.account_id, r.mode.value, d.session_index, d.cbid_index, d.payload)
                for r, d in personal
            ],
        )
        _insert_shred_keys(connection, [(r.id, d.shred_key) for r, d in personal])
