"""Many acknowledgments in one statement, with everything that belongs to each.

`Journal.write` and `keep_answers` do the same for other records, statement by statement. One
statement for a batch saves PostgreSQL's round trips; on the embedded database the commit's thread
runs it without the interpreter's lock, and requests continue.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from operator import attrgetter
from typing import Final

from sqlalchemy import Connection, Table

from countersign.base.db.statements import DriverStatement, deferred_statements
from countersign.base.db.tables import (
    disclosures,
    idempotency_keys,
    log_entries,
    log_pending,
    order_acts,
    records,
    shred_keys,
)
from countersign.base.errors import CountersignError
from countersign.core.access.idempotency import taken
from countersign.core.acknowledgments.make import NewAcknowledgment, make_again
from countersign.core.events.sql import defer_acknowledged
from countersign.core.parties import bound_in

_TYPES: Final = {
    **dict.fromkeys(("id", "account_id", "mode", "notice_id"), "text"),
    "at": "bigint",
    **dict.fromkeys(("digest", "body", "payload", "session_index", "cbid_index"), "bytea"),
    **dict.fromkeys(("reference_index", "shred_key", "slot", "fingerprint", "response"), "bytea"),
    "order_key": "bytea",
    **dict.fromkeys(("kept_at", "expires_at", "log_id", "leaf_index"), "bigint"),
}
"""The columns of a batch, with their types on PostgreSQL."""
_row: Final = attrgetter(*({"mode": "mode._value_", "at": "at_ms"}.get(c, c) for c in _TYPES))
"""An acknowledgment as its row."""


def _insert(table: Table, same: str, **others: str) -> tuple[str, str]:
    """An INSERT from the row `new`, and its values; `same` are the columns of the same name."""
    values = {column: f"new.{column}" for column in same.split()} | others
    unknown = values.keys() - table.c.keys()
    if unknown:
        raise ValueError(f"{table.name} has no columns {sorted(unknown)}")
    return f"INSERT INTO {table.name} ({', '.join(values)})", ", ".join(values.values())


_WRITTEN: Final = {
    "new.id IS NOT NULL": (
        _insert(records, "id account_id mode notice_id at digest body", type="'acknowledgment'"),
        _insert(
            disclosures,
            "account_id mode session_index cbid_index payload reference_index",
            record_id="new.id",
        ),
        _insert(shred_keys, "", record_id="new.id", key="new.shred_key"),
        _insert(
            order_acts,
            "account_id mode at notice_id",
            key="coalesce(new.order_key, new.session_index, new.reference_index, {own_key})",
            member_id="new.id",
            state="'acknowledged'",
            indexed="(new.order_key IS NOT NULL)",
        ),
    ),
    "new.id IS NOT NULL AND new.log_id IS NULL": (
        _insert(log_pending, "mode digest", record_id="new.id"),
    ),
    "new.slot IS NOT NULL": (
        _insert(
            idempotency_keys,
            "slot account_id mode fingerprint response expires_at",
            created_at="new.kept_at",
            about="new.id",
        ),
    ),
}
"""The INSERTs by their condition."""
_SEALED: Final = {
    "new.log_id IS NOT NULL": (
        _insert(log_entries, "log_id leaf_index digest", record_id="new.id"),
    ),
}
"""Only if the log is written in the same transaction: on the embedded database."""


# SQLite has no statement for many tables; triggers on a view of the connection's own are one. They
# insert VALUES: SQLite would materialise each SELECT in an ephemeral table.
_VIEW: Final = DriverStatement(
    "CREATE TEMP VIEW IF NOT EXISTS new_acknowledgments AS SELECT "
    + ", ".join(f"NULL AS {column}" for column in _TYPES)
)
_TRIGGERS: Final = [
    DriverStatement(
        f"CREATE TEMP TRIGGER IF NOT EXISTS write_acknowledgment_{number} INSTEAD OF INSERT"
        f" ON new_acknowledgments WHEN {condition} BEGIN "
        + "".join(f"{into} VALUES ({values}); " for into, values in inserts).format(
            own_key="CAST(substr(new.id, -26) AS BLOB)"
        )
        + "END"
    )
    for number, (condition, inserts) in enumerate((_WRITTEN | _SEALED).items())
]
_STEP: Final = 8
"""Rows are filled up to a multiple of this with empty ones: so few statements are prepared."""
_ROW: Final = f"({', '.join('?' * len(_TYPES))})"
_NO_ROW: Final = (None,) * len(_TYPES)

_FIRST, *_OTHERS = (
    f"{into} SELECT {values} FROM new WHERE {condition}".format(  # noqa: S608 - our own names
        own_key="convert_to(right(new.id, 26), 'UTF8')"
    )
    for condition, inserts in _WRITTEN.items()
    for into, values in inserts
)
_ARRAYS: Final = ", ".join(f"%b::{type_}[]" for type_ in _TYPES.values())
_NEW: Final = f"SELECT * FROM unnest({_ARRAYS}) AS new({', '.join(_TYPES)})"  # noqa: S608 - our own names
_POSTGRESQL: Final = ", ".join(
    [
        f"WITH new AS ({_NEW})",
        *(f"other_{number} AS ({text})" for number, text in enumerate(_OTHERS)),
    ]
) + (" " + _FIRST)


def write_together(
    connection: Connection, new: Sequence[NewAcknowledgment]
) -> Sequence[NewAcknowledgment | CountersignError]:
    """Write acknowledgments that share a transaction, all of them on the database of one room.

    Each binds the parties' records that are in force in this transaction: it was made before, and
    almost always stays as it is. See `slot_taken` for an entry that was written before.
    """
    left = taken(connection, [one.entry for one in new])
    written = [one for one, refusal in zip(new, left, strict=True) if refusal is None]
    if written:
        now = bound_in(connection, {(one.account_id, one.mode) for one in written})
        for one in written:
            if one.bound != (bound := now[one.account_id, one.mode]):
                make_again(one, bound)
        defer(connection, written)
    return [refusal or one for one, refusal in zip(new, left, strict=True)]


def defer(connection: Connection, new: Sequence[NewAcknowledgment]) -> None:
    """Leave them to be written with the commit, and give them their places in the log."""
    sequencer, deferred = new[0].room.log.journal.sequencer, deferred_statements(connection)
    rows: list[tuple[object, ...]] = []
    for mode in {one.mode for one in new}:
        own = [one for one in new if one.mode is mode]
        placed = sequencer.place_inline(connection, mode, own) if sequencer else None
        log_id, index, sealed_at = placed or (None,) * 3
        for place, one in enumerate(own, index or 0):
            one.log_id, one.leaf_index = log_id, None if log_id is None else place
            rows.append(_row(one))
        named = [(one.account_id, one.id) for one in own]
        defer_acknowledged(connection, deferred, mode, named, sealed_at)
    if connection.dialect.name == "sqlite":
        if not deferred.is_prepared:
            _VIEW(connection)
            for trigger in _TRIGGERS:
                trigger(connection)
            # If this transaction is undone, so is the connection.
            deferred.is_prepared = True
        rows += [_NO_ROW] * (-len(rows) % _STEP)
        text = f"INSERT INTO new_acknowledgments VALUES {', '.join([_ROW] * len(rows))}"  # noqa: S608 - marks
        deferred.statements.append((text, [*chain.from_iterable(rows)]))
        return
    deferred.statements.append((_POSTGRESQL, [*map(list, zip(*rows, strict=True))]))
