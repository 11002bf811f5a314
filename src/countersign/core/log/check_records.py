"""Check the tables outside of the logs: each record against its row, disclosures and notice.

And the events of notices against their records.

The log protects a record's bytes. This module checks the rest of the database: columns against
their records, nothing deleted, nothing withheld from the log. It reads whole tables as they stand:
they may contain anything.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime
from hashlib import sha256
from itertools import zip_longest
from typing import Final, NamedTuple, TypeAlias

import msgspec
from sqlalchemy import Connection, TextClause, select, text, type_coerce
from sqlalchemy.types import NullType

from countersign.base.db.tables import (
    deployment_records,
    disclosures,
    erasures,
    notice_events,
    shred_keys,
)
from countersign.base.errors import DamagedValue
from countersign.base.values import Mode, from_ms, rfc3339_ms
from countersign.core.log.check_twins import APART, unmatched_rows
from countersign.core.log.model import SQL
from countersign.core.log.record import RecordType, among, open_disclosures
from countersign.core.log.room import LogRoom
from countersign_evidence.disclosure import b64url

_PAGE: Final = 500


# As plain text: SQLAlchemy's types reject values that only a dishonest service would have written.
_RECORDS: Final = (
    text(SQL["records_in"].format(table="records", own="r.account_id, r.notice_id")),
    text(SQL["records_in"].format(table="deployment_records", own="NULL, NULL")),
)
_NOTICES: Final = text(SQL["notices"])
_UNRECORDED: Final = text(SQL["unrecorded_erasures"])


class _Row(NamedTuple):
    """A record as its row says, and the rows that belong to it.

    A record of the deployment itself has no account. `digest` and `body` are None if they are not
    stored as bytes; `disclosed_…` are None without disclosures, `erasure_id` without an erasure.
    """

    id: str
    account_id: str | None
    notice_id: str | None
    mode: str
    type: str
    at: datetime
    digest: bytes | None
    body: bytes | None
    sealed: bool
    pending: bool
    disclosed_account: str | None
    disclosed_mode: str | None
    erasure_id: str | None


class _Body(msgspec.Struct):
    """Members of a record that other rows repeat; a record has those of its type."""

    id: str
    mode: str
    type: str
    sd: list[str] = msgspec.field(name="_sd")
    account: str | None = None
    at: str | None = None
    accepted_at: str | None = None
    notice_id: str | None = None
    notice_version: str | None = None
    notice_digest: str | None = None
    erased: list[str] = []


_read: Final = msgspec.json.Decoder(_Body).decode
_Notices = dict[tuple[str | None, str | None], str]


async def check_records(room: LogRoom) -> AsyncIterator[tuple[Mode | None, str]]:
    """Go through all records, and report all that is wrong, with its mode; None is both."""
    scan = room.database.scan
    notices: _Notices = {}
    for notice_id, version, digest, body in await scan(_notice_rows):
        notices[notice_id, version] = digest
        if body is None or sha256(body).hexdigest() != digest:
            yield None, f"version {version} of the notice {notice_id} has changed"
    async for page in _pages(room):
        named: dict[str, _Row] = {}
        for row in page:
            for wrong in _wrong(row, notices, named):
                yield _finding(row, wrong)
        async for row, wrong in _wrongly_disclosed(room, page):
            yield _finding(row, wrong)
        for record_id in named.keys() - await scan(among, erasures.c.record_id, [*named]):
            wrong = f"says that {record_id} was erased, but it is not"
            yield _finding(named[record_id], wrong)
    for record_id in await scan(_unrecorded_erasures):
        yield None, f"the record {record_id} counts as erased, but no erasure record names it"
    for mode, message in [*await scan(unmatched_events), *await scan(unmatched_rows)]:
        yield mode, message


async def _pages(room: LogRoom) -> AsyncIterator[Sequence[_Row]]:
    for query in _RECORDS:
        after = ""
        while page := await room.database.scan(_records, query, after):
            yield page
            after = page[-1].id


async def _wrongly_disclosed(
    room: LogRoom, page: Sequence[_Row]
) -> AsyncIterator[tuple[_Row, str]]:
    """Records with disclosures that do not open, or that belong to another record."""
    rows = {row.id: row for row in page if row.disclosed_account is not None}
    for record_id, account_id, payload, shred_key in await room.database.scan(_sealed, [*rows]):
        row = rows[record_id]
        if shred_key is None:
            if row.erasure_id is None:
                yield row, "has disclosures without their key, but no erasure is recorded"
            continue
        try:
            vault = room.vault.vault
            opened = await open_disclosures(vault, account_id, record_id, payload, shred_key)
        except (DamagedValue, msgspec.DecodeError):
            yield row, "has disclosures that cannot be decrypted with their keys"
            continue
        if not _bound(row.body).issuperset(b64url(sha256(one.encode()).digest()) for one in opened):
            yield row, "has disclosures that do not match the record"


def _finding(row: _Row, wrong: str) -> tuple[Mode | None, str]:
    mode = Mode(row.mode) if row.mode in set(Mode) else None
    return mode, f"the record {row.id} {wrong}"


def _wrong(row: _Row, notices: _Notices, named: dict[str, _Row]) -> Iterator[str]:
    """The errors in a row. Records that it says are erased are added to `named`."""
    if not row.sealed and not row.pending:
        yield "is neither sealed nor waiting to be sealed"
    if row.body is None or sha256(row.body).digest() != row.digest:
        yield "does not match its digest"
        return
    try:
        body = _read(row.body)
    except msgspec.DecodeError:
        yield "cannot be read"
        return
    yield from _moved(row, body)
    yield from _disclosures(row, body)
    if body.notice_digest is not None:
        published = notices.get((body.notice_id, body.notice_version))
        if published != body.notice_digest:
            yield "names a notice version whose stored text has another digest"
    if body.type == RecordType.ERASURE:
        named |= dict.fromkeys(body.erased, row)


def _bound(body: bytes | None) -> frozenset[str]:
    try:
        return frozenset(_read(body or b"").sd)
    except msgspec.DecodeError:
        return frozenset()


def _moved(row: _Row, body: _Body) -> Iterator[str]:
    """Columns that differ from the record itself."""
    said = {
        "id": (row.id, body.id),
        "account_id": (row.account_id, body.account),
        "mode": (row.mode, body.mode),
        "type": (row.type, body.type),
        "at": (rfc3339_ms(row.at), body.accepted_at or body.at),
    }
    if row.notice_id is not None:
        said["notice_id"] = row.notice_id, body.notice_id
    for column, (stored, written) in said.items():
        if stored != written:
            yield f"is stored with the {column} {stored}, but contains {written}"


def _disclosures(row: _Row, body: _Body) -> Iterator[str]:
    if not body.sd:
        return
    if row.disclosed_account is None:
        if row.erasure_id is None:
            yield "has lost its disclosures, but no erasure is recorded"
    elif row.erasure_id is not None:
        yield "was erased, but its disclosures still exist"
    elif (row.disclosed_account, row.disclosed_mode) != (row.account_id, row.mode):
        yield "has its disclosures stored with another account or mode"


def _records(connection: Connection, query: TextClause, after_id: str) -> Sequence[_Row]:
    return [
        _Row(*row)._replace(at=from_ms(row.at), digest=_bytes(row.digest), body=_bytes(row.body))
        for row in connection.execute(query, {"after": after_id, "limit": _PAGE})
    ]


def _notice_rows(connection: Connection) -> Sequence[tuple[str, str, str, bytes | None]]:
    return [(*row[:3], _bytes(row[3])) for row in connection.execute(_NOTICES)]


def _sealed(
    connection: Connection, record_ids: Sequence[str]
) -> Sequence[tuple[str, str, bytes, bytes | None]]:
    """Id, account, payload and shred key of the records that have disclosures."""
    query = (
        select(
            disclosures.c.record_id,
            disclosures.c.account_id,
            type_coerce(disclosures.c.payload, NullType()),
            type_coerce(shred_keys.c.key, NullType()),
        )
        .outerjoin(shred_keys, shred_keys.c.record_id == disclosures.c.record_id)
        .where(disclosures.c.record_id.in_(record_ids))
        .order_by(disclosures.c.record_id)
    )
    return [
        (id_, account, _bytes(payload) or b"", None if key is None else _bytes(key) or b"")
        for id_, account, payload, key in connection.execute(query)
    ]


def _unrecorded_erasures(connection: Connection) -> Sequence[str]:
    return connection.execute(_UNRECORDED, {"limit": _PAGE}).scalars().all()


def _bytes(value: object) -> bytes | None:
    return bytes(value) if isinstance(value, bytes | memoryview) else None


# The events of notices, and the records of them that the logs seal. Which notices are in force
# follows from rows of `notice_events`, and these are in no log: deleting a row would bring a
# withdrawn notice back. Each row has a twin, a record in the log of each mode.

_NO_RECORD: Final = "rule_published"
"""The event without a record: it says nothing about a text."""
_Event: TypeAlias = tuple[str, str, str]


class _Twin(msgspec.Struct):
    event: str
    notice_id: str
    notice_version: str


_read_twin: Final = msgspec.json.Decoder(_Twin).decode


def unmatched_events(connection: Connection) -> list[tuple[Mode, str]]:
    """Differences between the rows and their sealed records, by the mode of the log."""
    record, found = deployment_records.c, list[tuple[Mode, str]]()
    events = select(notice_events).where(notice_events.c.type != _NO_RECORD)
    kept = connection.execute(events).all()
    for mode in Mode:
        of_mode = (record.type == RecordType.NOTICE_EVENT, record.mode == mode)
        sealed = connection.execute(select(record.body, record.at).where(*of_mode)).all()
        rows = [((row.type, row.notice_id, row.version), row.at) for row in kept]
        twins = [(of, at) for body, at in sealed if (of := _named_in(body)) is not None]
        for key in sorted({key for key, _ in (*rows, *twins)}):
            event, notice_id, version = key
            pair = [sorted(at for of, at in side if of == key) for side in (rows, twins)]
            what = f"version {version} of the notice {notice_id} was {event}"
            for listed, twin in zip_longest(*pair):
                if listed is None:
                    found.append((mode, f"{what} by a record of the log, but the event is missing"))
                elif twin is None:
                    found.append((mode, f"{what} by an event of which the log has no record"))
                elif abs(listed - twin) > APART:
                    found.append((mode, f"{what} at another time than the record of the log says"))
    return found


def _named_in(body: bytes) -> _Event | None:
    """The event in a record; None if it is damaged, which is a separate finding."""
    try:
        twin = _read_twin(body)
    except (msgspec.MsgspecError, TypeError):
        return None
    return twin.event, twin.notice_id, twin.notice_version
