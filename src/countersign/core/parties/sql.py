"""Which record of a party is in force: a query for many accounts at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection, insert, select

from countersign.base.db.statements import SelectAmong
from countersign.base.db.tables import deployment_records, parties, records
from countersign.base.values import Mode
from countersign.core.log.record import NewRecord
from countersign.core.parties.model import DEPLOYMENT, Bound, PartyType

_select_in_force: Final = SelectAmong(
    "SELECT p.scope, p.mode, p.type, p.digest FROM parties p WHERE p.scope {} AND NOT EXISTS"
    " (SELECT 1 FROM parties n WHERE n.scope = p.scope AND n.mode = p.mode AND n.type = p.type"
    " AND n.number = p.number + 1)"
)
NOTHING_BOUND: Final = Bound()


class PartyRecord(NamedTuple):
    """The record of a party in one mode."""

    record_id: str
    number: int
    """Counted from 1."""
    digest: bytes
    body: bytes


class PartiesInForce:
    """The descriptions that records of some accounts bind, as one transaction sees them."""

    def __init__(self, connection: Connection, account_ids: Iterable[str]) -> None:
        self._digests: Mapping[tuple[str, str, str], str] = {
            (scope, mode, type_): bytes(digest).hex()
            for scope, mode, type_, digest in _select_in_force(
                connection, {DEPLOYMENT, *account_ids}
            )
        }

    def of(self, account_id: str, mode: Mode) -> Bound:
        digests = self._digests
        if not digests:
            return NOTHING_BOUND
        return Bound(
            operator=digests.get((DEPLOYMENT, mode.value, PartyType.OPERATOR)),
            account=digests.get((account_id, mode.value, PartyType.ACCOUNT)),
            capture_process=digests.get((account_id, mode.value, PartyType.CAPTURE_PROCESS)),
        )


def bound_now(connection: Connection, account_id: str, mode: Mode) -> Bound:
    """The descriptions that a record of this account binds."""
    return PartiesInForce(connection, [account_id]).of(account_id, mode)


def record_in_force(
    connection: Connection, scope: str, mode: Mode, type_: PartyType
) -> PartyRecord | None:
    """The newest record of a party."""
    kept = deployment_records if type_ is PartyType.OPERATOR else records
    row = connection.execute(
        select(kept.c.id, parties.c.number, kept.c.digest, kept.c.body)
        .join(kept, kept.c.id == parties.c.record_id)
        .where(parties.c.scope == scope, parties.c.mode == mode, parties.c.type == type_)
        .order_by(parties.c.number.desc())
        .limit(1)
    ).one_or_none()
    return None if row is None else PartyRecord(*row)


def record_ids(connection: Connection, digests: Iterable[str]) -> Sequence[str]:
    """The records of parties with these digests, in hexadecimal."""
    wanted = [bytes.fromhex(digest) for digest in digests]
    rows = select(parties.c.record_id).where(parties.c.digest.in_(wanted))
    return connection.execute(rows.order_by(parties.c.type, parties.c.number)).scalars().all()


def put_in_force(connection: Connection, scope: str, record: NewRecord, number: int) -> None:
    """Let this record of a party follow the one before it, `number - 1`."""
    row = {"scope": scope, "mode": record.mode, "type": record.type.value, "number": number}
    connection.execute(insert(parties), row | {"record_id": record.id, "digest": record.digest})
