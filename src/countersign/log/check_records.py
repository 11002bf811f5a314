"""Check the tables outside of the logs: each record against its row, disclosures and notice.

The log protects a record's bytes. This module checks the rest of the database: what it says of a
record in columns, that nothing was taken away, and that nothing is kept from the log.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from hashlib import sha256
from typing import Final, NamedTuple

import msgspec

from countersign.errors import DamagedValue
from countersign.evidence.disclosure import b64url
from countersign.instant import rfc3339_ms
from countersign.log import integrity_sql
from countersign.log.append_record import open_disclosures
from countersign.log.integrity_sql import RecordRow
from countersign.log.record import RecordType
from countersign.log.room import LogRoom
from countersign.mode import Mode

_PAGE: Final = 500


class _Body(msgspec.Struct):
    """The members of a record that other rows say again; a record has those of its type."""

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


class WrongRecord(NamedTuple):
    """Something that is wrong. `mode` is None for what concerns both."""

    mode: Mode | None
    message: str


async def check_records(room: LogRoom) -> AsyncIterator[WrongRecord]:
    """Go through all records, and report everything that is wrong."""
    scan = room.database.scan
    notices: _Notices = {}
    for notice in await scan(integrity_sql.notice_rows):
        notices[notice.notice_id, notice.version] = notice.digest
        if notice.body is None or sha256(notice.body).hexdigest() != notice.digest:
            message = f"version {notice.version} of the notice {notice.notice_id} has changed"
            yield WrongRecord(None, message)
    async for page in _pages(room):
        named: dict[str, RecordRow] = {}
        for row in page:
            for wrong in _wrong(row, notices, named):
                yield _finding(row, wrong)
        async for row, wrong in _wrongly_disclosed(room, page):
            yield _finding(row, wrong)
        for record_id in named.keys() - await scan(integrity_sql.erased, [*named]):
            wrong = f"says that {record_id} was erased, but it is not"
            yield _finding(named[record_id], wrong)
    for record_id in await scan(integrity_sql.unrecorded_erasures, _PAGE):
        message = f"the record {record_id} counts as erased, but no erasure record names it"
        yield WrongRecord(None, message)


async def _pages(room: LogRoom) -> AsyncIterator[Sequence[RecordRow]]:
    for read in (integrity_sql.account_records, integrity_sql.deployment_records):
        after = ""
        while page := await room.database.scan(read, after, _PAGE):
            yield page
            after = page[-1].id


async def _wrongly_disclosed(
    room: LogRoom, page: Sequence[RecordRow]
) -> AsyncIterator[tuple[RecordRow, str]]:
    """Records whose disclosures do not open, or are not those of the record."""
    rows = {row.id: row for row in page if row.disclosed is not None}
    for found in await room.database.scan(integrity_sql.disclosures_of, [*rows]):
        row = rows[found.record_id]
        if found.shred_key is None:
            if row.erasure_id is None:
                yield row, "has disclosures without their key, but no erasure is recorded"
            continue
        try:
            opened = await open_disclosures(
                room.vault.vault, found.account_id, row.id, found.payload, found.shred_key
            )
        except (DamagedValue, msgspec.DecodeError):
            yield row, "has disclosures that cannot be decrypted with their keys"
            continue
        if not _bound(row.body).issuperset(map(_digest, opened)):
            yield row, "has disclosures that do not match the record"


def _finding(row: RecordRow, wrong: str) -> WrongRecord:
    mode = Mode(row.mode) if row.mode in set(Mode) else None
    return WrongRecord(mode, f"the record {row.id} {wrong}")


def _wrong(row: RecordRow, notices: _Notices, named: dict[str, RecordRow]) -> Iterator[str]:
    """What is wrong with a row. Records that it says are erased are added to `named`."""
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
    """The digests of disclosures in a record."""
    try:
        return frozenset(_read(body or b"").sd)
    except msgspec.DecodeError:
        return frozenset()


def _digest(encoded: str) -> str:
    return b64url(sha256(encoded.encode()).digest())


def _moved(row: RecordRow, body: _Body) -> Iterator[str]:
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


def _disclosures(row: RecordRow, body: _Body) -> Iterator[str]:
    if not body.sd:
        return
    if row.disclosed is None:
        if row.erasure_id is None:
            yield "has lost its disclosures, but no erasure is recorded"
    elif row.erasure_id is not None:
        yield "was erased, but its disclosures still exist"
    elif row.disclosed != (row.account_id, row.mode):
        yield "has its disclosures stored with another account or mode"
