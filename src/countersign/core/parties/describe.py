"""Describe the operator, an account, or how an account captures: a record in each mode's log."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection

from countersign.base.errors import InvalidArgument
from countersign.base.values import Mode
from countersign.core.access.account import Account
from countersign.core.access.audit import AuditAction, write_audit
from countersign.core.log.record import RecordType
from countersign.core.log.room import LogRoom
from countersign.core.parties.model import DEPLOYMENT, Particulars, PartyType, checked_statement
from countersign.core.parties.sql import put_in_force, record_in_force
from countersign_evidence.canonical import Json

_NOTHING: Final = Particulars()


@dataclass(frozen=True, slots=True)
class Described:
    """The current description of a party: the members that its records of both modes share."""

    members: dict[str, Json]
    number: int
    """How many records there are in each log, this one included."""
    records: dict[Mode, str]
    """The identifiers of its records."""
    digests: dict[Mode, str]
    """Their SHA-256 in hexadecimal, which later records bind."""


def described(connection: Connection, scope: str, type_: PartyType) -> Described | None:
    """The current description of a party; None: nothing was ever recorded."""
    found = {mode: record_in_force(connection, scope, mode, type_) for mode in Mode}
    kept = {mode: record for mode, record in found.items() if record is not None}
    if not kept:
        return None
    newest = kept[Mode.LIVE]
    said = msgspec.json.decode(newest.body, type=dict[str, Any])
    own = {*asdict(_NOTHING), "account", "name", "version", "statement"}
    return Described(
        members={name: value for name, value in said.items() if name in own},
        number=newest.number,
        records={mode: record.record_id for mode, record in kept.items()},
        digests={mode: record.digest.hex() for mode, record in kept.items()},
    )


def describe(
    connection: Connection, room: LogRoom, account: Account | None, given: Particulars
) -> Described:
    """Record who an account is; None: who operates the service.

    Raises InvalidArgument if nothing is stated, or a text is unusable.
    """
    type_ = PartyType.OPERATOR if account is None else PartyType.ACCOUNT
    scope = DEPLOYMENT if account is None else account.id
    before = described(connection, scope, type_)
    earlier = _NOTHING if before is None else _particulars(before)
    stated = given.over(earlier)
    if given == _NOTHING or stated == earlier == _NOTHING:
        raise InvalidArgument(
            "State at least one of legal name, address, licence and contact. To write a "
            "description again, as after a new epoch, repeat one of them."
        )
    members: dict[str, Json] = {**asdict(stated)}
    if account is not None:
        members |= {"account": account.id, "name": account.name}
    changed = [n for n, text in asdict(stated).items() if text != getattr(earlier, n)]
    return _record(connection, room, scope, type_, members, changed=changed)


def state_capture_process(
    connection: Connection, room: LogRoom, account: Account, statement: str
) -> Described:
    """Record how an account shows notices and takes initials, in its own words.

    Raises InvalidArgument if the statement is unusable.
    """
    type_ = PartyType.CAPTURE_PROCESS
    before = described(connection, account.id, type_)
    members: dict[str, Json] = {
        "account": account.id,
        "version": 1 if before is None else before.number + 1,
        "statement": checked_statement(statement),
    }
    return _record(connection, room, account.id, type_, members, changed=["statement"])


_AUDITED: Final = {
    PartyType.OPERATOR: AuditAction.OPERATOR_DESCRIBED,
    PartyType.ACCOUNT: AuditAction.ACCOUNT_DESCRIBED,
    PartyType.CAPTURE_PROCESS: AuditAction.CAPTURE_PROCESS_STATED,
}


def _record(
    connection: Connection,
    room: LogRoom,
    scope: str,
    type_: PartyType,
    members: dict[str, Json],
    *,
    changed: list[str],
) -> Described:
    """Write the record of each mode, which follows the one before it, and the audit entry."""
    for mode in Mode:
        before = record_in_force(connection, scope, mode, type_)
        previous = None if before is None else before.digest.hex()
        record = room.recorder.of_deployment(
            RecordType(type_), mode, {**members, "previous": previous}
        )
        if scope != DEPLOYMENT:
            record = replace(record, account_id=scope)
        number = 1 if before is None else before.number + 1
        room.journal.write(connection, [record])
        put_in_force(connection, scope, record, number)
    if (made := described(connection, scope, type_)) is None:
        raise AssertionError("it has just been written")
    named = {"changed": changed, "number": made.number}
    write_audit(connection, room.access.audit.entry(_AUDITED[type_], scope, **named))
    return made


def _particulars(found: Described) -> Particulars:
    names = asdict(_NOTHING)
    return msgspec.convert({n: found.members.get(n) for n in names}, Particulars)
