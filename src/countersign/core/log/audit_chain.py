"""The audit as a chain, whose head is sealed in the live log: spec/evidence-format.md, section 21.

Acts write their entries without waiting for each other. Once an hour, new entries are chained in
the order of their identifiers, and if the head moved it becomes a record: from then on an entry
that is changed, removed or inserted contradicts the log.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, Row, insert, select

from countersign.base.db.statements import lock_on_server
from countersign.base.db.tables import audit_chain, audit_log, deployment_records
from countersign.base.errors import InternalError
from countersign.base.values import Entropy, Mode, from_ns, rfc3339_ms
from countersign.core.log import logs_sql, tree_sql
from countersign.core.log.check_twins import APART
from countersign.core.log.record import RecordType
from countersign.core.log.room import LogRoom
from countersign_evidence.audit import FIRST, ChainedEntry, Entry, entry_digest
from countersign_evidence.canonical import canonical_json
from countersign_evidence.note import checkpoint_of
from countersign_evidence.proof import Proof, format_proof

SEALED_EVERY: Final = timedelta(hours=1)
_SALT_BYTES: Final = 16
_PAGE: Final = 500
_c: Final = audit_chain.c
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtext('countersign audit_chain'))"


def entry_of(row: Row[*tuple[Any, ...]]) -> Entry:
    """An entry as its digest covers it. Its row may contain anything."""
    return Entry(row.id, rfc3339_ms(row.at), row.actor, row.action, row.subject, row.details)


async def seal_audit(room: LogRoom, *, now_too: bool = False) -> str | None:
    """Chain new entries, and seal the head if it moved and the last sealed head is an hour old.

    Gives the head that was sealed; None: none was. `now_too`: also if it is younger.
    """
    return await room.database.write(_seal, room, now_too=now_too)


def _seal(connection: Connection, room: LogRoom, *, now_too: bool) -> str | None:
    lock_on_server(connection, _LOCK)
    now = from_ns(room.clock.time_ns())
    last = _last_sealed(connection)
    if last is not None and now < last.at + SEALED_EVERY and not now_too:
        return None
    head = _chain(connection, room.access.entropy).hex()
    sealed = FIRST.hex() if last is None else msgspec.json.decode(last.body)["head"]
    if head == sealed:
        return None
    record = room.recorder.of_deployment(RecordType.AUDIT_HEAD, Mode.LIVE, {"head": head})
    room.journal.write(connection, [record])
    return head


def sealed_head(connection: Connection) -> tuple[str, str]:
    """The head that was sealed last, in hex, and when; "", "": none was."""
    if (last := _last_sealed(connection)) is None:
        return "", ""
    return msgspec.json.decode(last.body)["head"], rfc3339_ms(last.at)


def _last_sealed(connection: Connection) -> Row[*tuple[Any, ...]] | None:
    r = deployment_records.c
    heads = select(r.at, r.body).where(r.type == RecordType.AUDIT_HEAD, r.mode == Mode.LIVE)
    return connection.execute(heads.order_by(r.id.desc()).limit(1)).one_or_none()


def _chain(connection: Connection, entropy: Entropy) -> bytes:
    """Chain new entries; returns the head."""
    newest = select(_c.position, _c.digest).order_by(_c.position.desc()).limit(1)
    last = connection.execute(newest).one_or_none()
    position, head = (0, FIRST) if last is None else (last.position, last.digest)
    new = (
        select(audit_log)
        .outerjoin(audit_chain, _c.entry_id == audit_log.c.id)
        .where(_c.entry_id.is_(None))
        .order_by(audit_log.c.id)
    )
    for entry in connection.execute(new).all():
        position += 1
        salt = entropy(_SALT_BYTES)
        head = entry_digest(salt, head, entry_of(entry))
        row = {"position": position, "entry_id": entry.id, "salt": salt, "digest": head}
        connection.execute(insert(audit_chain), row)
    return head


async def check_audit(room: LogRoom) -> AsyncIterator[tuple[str, bool]]:
    """Errors of the chain, and the sealed heads that it lacks; each with whether it is a remark.

    An entry can be chained after a later one: its act took longer, or another machine's clock is
    ahead. More than clocks may differ is no remark: it was dated back.
    """
    found = (await room.database.scan(_head_records)).items()
    heads = {msgspec.json.decode(body)["head"]: id_ for id_, body in found}
    before, after, latest = FIRST, 0, None
    while page := await room.database.scan(_page, after):
        for link in page:
            if link.position != after + 1:
                yield f"entry {after + 1} of the audit's chain is missing", False
            if link.id is None:
                yield f"the audit lacks the entry {link.entry_id}", False
            elif entry_digest(link.salt, before, entry_of(link)) != link.digest:
                yield f"the audit's entry {link.entry_id} is not as it was chained", False
            elif latest is not None and link.at < latest:
                when = f"{(latest - link.at).total_seconds():.3f} s earlier than one before it"
                is_remark = latest - link.at <= APART
                yield f"the audit's entry {link.entry_id} is dated {when}", is_remark
            latest = max(filter(None, (latest, link.at)), default=None)
            before, after = link.digest, link.position
            heads.pop(link.digest.hex(), None)
    for record_id in heads.values():
        message = f"the audit's chain does not have the head that the record {record_id} sealed"
        yield message, False


def _page(connection: Connection, after: int) -> Sequence[Row[*tuple[Any, ...]]]:
    links = (
        select(_c.position, _c.entry_id, _c.salt, _c.digest, audit_log)
        .outerjoin(audit_log, audit_log.c.id == _c.entry_id)
        .where(_c.position > after)
        .order_by(_c.position)
        .limit(_PAGE)
    )
    return connection.execute(links).all()


async def chain_lines(room: LogRoom) -> AsyncIterator[bytes]:
    """The entries with salts and digests, as lines of an export."""
    after = 0
    while page := await room.database.scan(_page, after):
        for link in page:
            if link.id is None:
                raise InternalError(f"The audit lacks the entry {link.entry_id}.")
            line = ChainedEntry(link.digest.hex(), entry_of(link), link.salt.hex())
            yield canonical_json(line) + b"\n"
        after = page[-1].position


async def head_proofs(room: LogRoom) -> dict[str, bytes]:
    """The proofs of all sealed heads, each by the newest checkpoint of its log, by their records.

    A head that the checkpoint does not hold yet is left out.
    """
    heads = await room.database.scan(_head_records)
    places = await room.database.read(tree_sql.sealed, [*heads])
    proofs: dict[str, bytes] = {}
    for log in await room.database.read(logs_sql.all_logs):
        own = {id_: index for id_, (log_id, index) in places.items() if log_id == log.id}
        note = await room.seal.newest(log, room.policy.quorum(log.mode)) if own else b""
        size = checkpoint_of(note).size if own else 0
        for id_, index in own.items():
            if index < size:
                path = await room.database.scan(tree_sql.inclusion, log.id, index, size)
                proofs[id_] = format_proof(Proof(heads[id_], index, tuple(path), note))
    return proofs


def _head_records(connection: Connection) -> dict[str, bytes]:
    r = deployment_records.c
    found = connection.execute(select(r.id, r.body).where(r.type == RecordType.AUDIT_HEAD))
    return {row.id: row.body for row in found}
