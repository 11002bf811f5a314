"""Many acknowledgments in one statement, with everything that belongs to each.

`Journal.write` and `keep_answers` do the same for other records, statement by statement. One
statement for a batch saves PostgreSQL's round trips; on the embedded database the commit's thread
runs it without the interpreter's lock, and requests continue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Final

import msgspec
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
from countersign.base.values import to_ms
from countersign.core.access.idempotency import IdempotencyEntry, Keep, taken
from countersign.core.acknowledgments.model import Receipt
from countersign.core.events.sql import defer_acknowledged
from countersign.core.log.journal import Journal
from countersign.core.log.record import NewRecord, SealedDisclosures
from countersign.core.parties import Bound, PartiesInForce

_NOT_KEPT: Final = (None,) * 8
_NOT_PLACED: Final = (None,) * 3


class Made(msgspec.Struct):
    """An acknowledgment that is ready to be written, and its response."""

    journal: Journal
    record: NewRecord
    disclosures: SealedDisclosures
    receipt: Receipt
    entry: Keep | None
    kept: IdempotencyEntry | None
    bound: Bound
    """The parties' records that the record binds."""
    rebound: Callable[[Bound], Made]
    """Makes the same acknowledgment, bound to other descriptions."""
    order_key: bytes | None = None
    """Of an order that exists already; None: the one that its session or reference names."""
    checkout_session: str = ""


_TYPES: Final = {
    **dict.fromkeys(("id", "account_id", "mode", "notice_id"), "text"),
    "at": "bigint",
    **dict.fromkeys(("digest", "body", "payload", "session_index", "cbid_index"), "bytea"),
    **dict.fromkeys(("reference_index", "shred_key", "slot", "fingerprint", "response"), "bytea"),
    "order_key": "bytea",
    **dict.fromkeys(("kept_at", "expires_at", "log_id", "leaf_index"), "bigint"),
}
"""The columns of a batch, with their types on PostgreSQL."""


def _insert(table: Table, same: str, where: str = "", **others: str) -> str:
    """An INSERT from the row `new`; `same` are the columns that have the same name there."""
    values = {column: f"new.{column}" for column in same.split()} | others
    unknown = values.keys() - table.c.keys()
    if unknown:
        raise ValueError(f"{table.name} has no columns {sorted(unknown)}")
    condition = f" WHERE new.{where}" if where else ""
    return (
        f"INSERT INTO {table.name} ({', '.join(values)})"
        f" SELECT {', '.join(values.values())}{{source}}{condition}"
    )


_WRITTEN: Final = (
    _insert(records, "id account_id mode notice_id at digest body", type="'acknowledgment'"),
    _insert(
        disclosures,
        "account_id mode session_index cbid_index payload reference_index",
        record_id="new.id",
    ),
    _insert(shred_keys, "", record_id="new.id", key="new.shred_key"),
    _insert(log_pending, "mode digest", "log_id IS NULL", record_id="new.id"),
    _insert(
        order_acts,
        "account_id mode at notice_id",
        key="coalesce(new.order_key, new.session_index, new.reference_index, {own_key})",
        member_id="new.id",
        state="'acknowledged'",
        indexed="(new.order_key IS NOT NULL)",
    ),
    _insert(
        idempotency_keys,
        "slot account_id mode fingerprint response expires_at",
        "slot IS NOT NULL",
        created_at="new.kept_at",
        about="new.id",
    ),
)
_SEALED: Final = (
    _insert(log_entries, "log_id leaf_index digest", "log_id IS NOT NULL", record_id="new.id"),
)
"""Only if the log is written in the same transaction: on the embedded database."""


# SQLite has no statement for many tables; a trigger on a view of the connection's own is one.
_VIEW: Final = DriverStatement(
    "CREATE TEMP VIEW IF NOT EXISTS new_acknowledgments AS SELECT "
    + ", ".join(f"NULL AS {column}" for column in _TYPES)
)
_TRIGGER: Final = DriverStatement(  # the names in it are our own
    "CREATE TEMP TRIGGER IF NOT EXISTS write_acknowledgment INSTEAD OF INSERT ON"
    " new_acknowledgments WHEN new.id IS NOT NULL BEGIN "
    + "; ".join(_WRITTEN + _SEALED).format(source="", own_key="CAST(substr(new.id, -26) AS BLOB)")
    + "; END"
)
_STEP: Final = 8
"""Rows are filled up to a multiple of this with empty ones: so few statements are prepared."""
_ROW: Final = f"({', '.join('?' * len(_TYPES))})"
_NO_ROW: Final = (None,) * len(_TYPES)

_FIRST, *_OTHERS = (
    text.format(source=" FROM new", own_key="convert_to(right(new.id, 26), 'UTF8')")
    for text in _WRITTEN
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
    connection: Connection, new: Sequence[Made]
) -> Sequence[Receipt | CountersignError]:
    """Write acknowledgments that share a transaction, all of them on the database of one room.

    See `slot_taken` for an entry that was written before.
    """
    left = taken(connection, [made.entry for made in new])
    written = bound_as_now(connection, [m for m, known in zip(new, left, strict=True) if not known])
    if written:
        defer(connection, written)
    receipts = iter(written)
    return [known or next(receipts).receipt for known in left]


def bound_as_now(connection: Connection, new: Sequence[Made]) -> Sequence[Made]:
    """These, each bound to the parties' records that are in force in this transaction.

    They were made before it, and almost always stay as they are.
    """
    now = PartiesInForce(connection, {made.record.account_id or "" for made in new})
    return [
        made if made.bound == bound else made.rebound(bound)
        for made in new
        for bound in [now.of(made.record.account_id or "", made.record.mode)]
    ]


def defer(connection: Connection, new: Sequence[Made]) -> None:
    """Leave them to be written with the commit, and give them their places in the log."""
    journal, deferred = new[0].journal, deferred_statements(connection)
    if deferred is None:
        raise ValueError("this connection defers no statements")
    rows: list[tuple[object, ...]] = []
    for mode in {made.record.mode for made in new}:
        own = [made for made in new if made.record.mode is mode]
        placed = journal.place(connection, mode, [made.record for made in own])
        (log_id, index, sealed_at), mode_text = placed or _NOT_PLACED, mode.value
        for made in own:
            record, hidden, kept = made.record, made.disclosures, made.kept
            slot, _, _, fingerprint, response, kept_at, expires_at, _ = kept or _NOT_KEPT
            row = (
                record.id,
                record.account_id,
                mode_text,
                record.notice_id,
                to_ms(record.at),
                record.digest,
                record.body,
                hidden.payload,
                hidden.session_index,
                hidden.cbid_index,
                hidden.reference_index,
                hidden.shred_key,
                slot,
                fingerprint,
                response,
                made.order_key,
                kept_at,
                expires_at,
                log_id,
                index,
            )
            rows.append(row)
            if index is not None:
                index += 1
        acknowledged = [(made.record.account_id or "", made.record.id) for made in own]
        defer_acknowledged(connection, deferred, mode, acknowledged, sealed_at)
    if connection.dialect.name == "sqlite":
        if not deferred.is_prepared:
            _VIEW(connection)
            _TRIGGER(connection)
            # If this transaction is undone, so is the connection.
            deferred.is_prepared = True
        rows += [_NO_ROW] * (-len(rows) % _STEP)
        text = f"INSERT INTO new_acknowledgments VALUES {', '.join([_ROW] * len(rows))}"  # noqa: S608 - marks
        deferred.statements.append((text, [*chain.from_iterable(rows)]))
        return
    deferred.statements.append((_POSTGRESQL, [*map(list, zip(*rows, strict=True))]))
