"""The operator and the vendor, as the records describe them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection, insert, select

from countersign.base.db.statements import DriverStatement, SelectAmong
from countersign.base.db.tables import parties
from countersign.base.errors import InvalidArgument
from countersign.base.values import Mode
from countersign.core.access.account import Account
from countersign.core.access.audit import AuditAction, write_audit
from countersign.core.log.record import RecordType
from countersign.core.log.room import LogRoom
from countersign_evidence.canonical import Json
from countersign_evidence.record import PARTIES_VERSION

DEPLOYMENT: Final = "deployment"
"""The scope of the operator's records; other parties have their account id as scope."""
TEXT_LENGTH_MAX: Final = 500
STATEMENT_LENGTH_MAX: Final = 20_000
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_UNPRINTABLE_IN_LINES: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


class PartyType(StrEnum):
    """The party that a record describes; the values are those of `RecordType`."""

    OPERATOR = "operator"
    ACCOUNT = "account"
    CAPTURE_PROCESS = "capture_process"


class Bound(NamedTuple):
    """The SHA-256 in hex of the records in force when another one is written; None: none is."""

    operator: str | None = None
    account: str | None = None
    capture_process: str | None = None

    def members(self) -> dict[str, Json]:
        """The members that say so in a record of a fact."""
        return {
            "v": PARTIES_VERSION,
            "operator_record": self.operator,
            "account_record": self.account,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Particulars:
    """A party's own description; None: not stated."""

    legal_name: str | None = None
    address: str | None = None
    licence: str | None = None
    contact: str | None = None

    def over(self, earlier: Particulars) -> Particulars:
        """These, completed with the earlier ones; an empty text removes one.

        Raises InvalidArgument if one is too long, or not one line of printable text.
        """
        before = asdict(earlier)
        return Particulars(**{n: checked(n, text, before[n]) for n, text in asdict(self).items()})


def checked(name: str, given: str | None, earlier: str | None) -> str | None:
    """The new description."""
    if given is None:
        return earlier
    text = given.strip()
    if len(text) > TEXT_LENGTH_MAX or _UNPRINTABLE.search(text):
        raise InvalidArgument(
            f"{name.replace('_', ' ')}: at most {TEXT_LENGTH_MAX} characters on one line, "
            "without control characters."
        )
    return text or None


def checked_statement(text: str) -> str:
    """The statement of a capture process, without white space around it.

    Raises InvalidArgument if it is empty, too long, or has control characters.
    """
    statement = text.strip()
    if not 0 < len(statement) <= STATEMENT_LENGTH_MAX or _UNPRINTABLE_IN_LINES.search(statement):
        raise InvalidArgument(
            f"A statement has 1 to {STATEMENT_LENGTH_MAX:,} characters, without control "
            "characters other than tabs and line ends."
        )
    return statement


_select_in_force: Final = SelectAmong(
    "SELECT p.scope, p.mode, p.type, p.digest FROM parties p WHERE p.scope {} AND NOT EXISTS"
    " (SELECT 1 FROM parties n WHERE n.scope = p.scope AND n.mode = p.mode AND n.type = p.type"
    " AND n.number = p.number + 1)"
)
_select_newest: Final = {
    kept: DriverStatement(
        f"SELECT r.id, p.number, r.digest, r.body FROM parties p JOIN {kept} r"  # noqa: S608 - ours
        " ON r.id = p.record_id WHERE p.scope = ? AND p.mode = ? AND p.type = ?"
        " ORDER BY p.number DESC LIMIT 1"
    )
    for kept in ("records", "deployment_records")
}
NOTHING_BOUND: Final = Bound()


class PartyRecord(NamedTuple):
    """The record of a party in one mode."""

    record_id: str
    number: int
    """Counted from 1."""
    digest: bytes
    body: bytes


def bound_in(
    connection: Connection, accounts: Collection[tuple[str, Mode]]
) -> Mapping[tuple[str, Mode], Bound]:
    """The descriptions that records of these accounts and modes bind in this transaction."""
    found = _select_in_force(connection, {DEPLOYMENT, *(id_ for id_, _ in accounts)})
    if not found:
        return dict.fromkeys(accounts, NOTHING_BOUND)
    digests = {tuple(of): bytes(digest).hex() for *of, digest in found}
    return {
        (id_, mode): Bound(
            operator=digests.get((DEPLOYMENT, mode.value, PartyType.OPERATOR)),
            account=digests.get((id_, mode.value, PartyType.ACCOUNT)),
            capture_process=digests.get((id_, mode.value, PartyType.CAPTURE_PROCESS)),
        )
        for id_, mode in accounts
    }


def bound_now(connection: Connection, account_id: str, mode: Mode) -> Bound:
    """The descriptions that a record of this account binds."""
    return bound_in(connection, [(account_id, mode)])[account_id, mode]


def record_in_force(
    connection: Connection, scope: str, mode: Mode, type_: PartyType
) -> PartyRecord | None:
    """The newest record of a party."""
    kept = "deployment_records" if type_ is PartyType.OPERATOR else "records"
    row = _select_newest[kept](connection, scope, mode.value, type_.value).fetchone()
    return None if row is None else PartyRecord(*row)


def record_ids(connection: Connection, digests: Iterable[str]) -> Sequence[str]:
    """The records of parties with these digests, in hexadecimal."""
    wanted = [bytes.fromhex(digest) for digest in digests]
    rows = select(parties.c.record_id).where(parties.c.digest.in_(wanted))
    return connection.execute(rows.order_by(parties.c.type, parties.c.number)).scalars().all()


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
    """Record who an account is; None: the operator of the service.

    Raises InvalidArgument if nothing is stated, or a text is unusable.
    """
    type_ = PartyType.OPERATOR if account is None else PartyType.ACCOUNT
    scope = DEPLOYMENT if account is None else account.id
    before = described(connection, scope, type_)
    known = {} if before is None else before.members
    earlier = msgspec.convert({n: known.get(n) for n in asdict(_NOTHING)}, Particulars)
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
    """Write the next record for each mode, and the audit entry."""
    for mode in Mode:
        before = record_in_force(connection, scope, mode, type_)
        previous = None if before is None else before.digest.hex()
        stated = {**members, "previous": previous}
        record = room.recorder.of_deployment(RecordType(type_), mode, stated)
        if scope != DEPLOYMENT:
            record = replace(record, account_id=scope)
        number = 1 if before is None else before.number + 1
        room.journal.write(connection, [record])
        row = {"scope": scope, "mode": mode, "type": type_.value, "number": number}
        connection.execute(insert(parties), row | {"record_id": record.id, "digest": record.digest})
    if (made := described(connection, scope, type_)) is None:
        raise AssertionError("it has just been written")
    named = {"changed": changed, "number": made.number}
    write_audit(connection, room.access.audit.entry(_AUDITED[type_], scope, **named))
    return made
