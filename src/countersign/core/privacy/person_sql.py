"""All data of one buyer for an erasure: identifiers, accounts with ties, and started checks."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    and_,
    delete,
    func,
    or_,
    select,
    union,
    update,
)

from countersign.base.db.schema import value_of
from countersign.base.db.statements import chunks
from countersign.base.db.tables import (
    PERSONAL_INFO,
    accounts,
    buyers,
    checkout_sessions,
    disclosures,
    pending_sessions,
    personal_columns,
    provider_sessions,
    shred_keys,
    started_checks,
)
from countersign.base.values import Mode
from countersign.core.access.reach import AccountReach, Reach, mode_of_buyer
from countersign.core.access.secrets import INDEX_BYTES, DeploymentSecret
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.sql import erased_name
from countersign.core.log.blind_runs import found_by

_SCOPES: Final = {"strange_buyer": "strangers"}
"""The fields of keyed hashes that are the same for all accounts: see `clearances.facts_sql`."""
_PLAIN: Final = personal_columns("check", "order", name="cbid")
_IN_SESSION: Final = checkout_sessions.c.cbid_index


class Tie(NamedTuple):
    """A tie: an account has data in a mode that names a buyer."""

    cbid: str
    account_id: str
    mode: Mode
    id: str
    """The record, session or check of the tie, which dates it."""

    @property
    def owner(self) -> AccountReach:
        """The account and mode of the tie."""
        return AccountReach(self.account_id, self.mode)


class Person(NamedTuple):
    """The person to erase."""

    cbids: tuple[str, ...]
    """The current identifier first; the others are of the same person, or of buyers that exist only
    by an undecided or failed check in one of the sessions."""
    references: tuple[str, ...]
    """The checkout sessions of the buyer in reach, whose checks are erased."""


def identifiers_of(connection: Connection, cbid: str) -> list[str]:
    """All identifiers of the person with this one, the current one first."""
    return identifiers_by(connection, [cbid])[cbid]


def identifiers_by(connection: Connection, cbids: Collection[str]) -> dict[str, list[str]]:
    """For each of these identifiers, all of its person, the current one first."""
    b, other = buyers.c, buyers.alias()
    first, found = func.coalesce(b.same_as, b.cbid), dict[str, list[str]]()
    for chunk in chunks([*cbids]):
        joined = select(b.cbid, first, other.c.cbid).outerjoin(other, other.c.same_as == first)
        for cbid, current, alias in connection.execute(joined.where(b.cbid.in_(chunk))):
            found.setdefault(cbid, [current]).extend([alias] if alias else [])
    return {cbid: found.get(cbid, [cbid]) for cbid in cbids}


def accounts_of(connection: Connection, reach: Reach) -> Sequence[str]:
    """The accounts in reach."""
    if isinstance(reach, AccountReach):
        return [reach.account_id]
    return connection.execute(select(accounts.c.id)).scalars().all()


def cbid_indexes(
    connection: Connection,
    secret: DeploymentSecret,
    cbids: Collection[str],
    reach: Reach,
    column: Column[Any] = disclosures.c.cbid_index,
) -> dict[bytes, tuple[str, str]]:
    """Identifier and account of the keyed hashes of a buyer that this column has, in reach."""
    return {
        secret.blind_index(_SCOPES.get(field, account_id), field, cbid): (cbid, account_id)
        for account_id in accounts_of(connection, reach)
        for field in column.info[PERSONAL_INFO].fields
        for cbid in cbids
    }


def find_ties(
    connection: Connection, secret: DeploymentSecret, cbids: Collection[str], reach: Reach
) -> set[Tie]:
    """The accounts in reach that have one of these identifiers in a check, a record or a session.

    A test key can name a live buyer in its records: that is no tie, or erasing would cross modes.
    """
    indexes, hashed = cbid_indexes(connection, secret, cbids, reach), disclosures.c.cbid_index
    ways = [
        *((c, c.in_(some)) for c in _PLAIN for some in chunks([*cbids])),
        *((hashed, found_by(connection, hashed, *some)) for some in chunks([*indexes])),
        *((_IN_SESSION, _IN_SESSION.in_(some)) for some in chunks([*indexes])),
    ]
    ties = set[Tie]()
    for column, among in ways:
        t = column.table.c
        own = select(column, t.account_id, t.mode, next(iter(column.table.primary_key)))
        for name, of, mode, id_ in connection.execute(own.where(among, reach.rows(column.table))):
            cbid = name if isinstance(name, str) else indexes[bytes(name)][0]
            ties.add(Tie(cbid, of, Mode(mode), id_))
    return {tie for tie in ties if tie.mode is mode_of_buyer(tie.cbid)}


def find_relying(
    connection: Connection, secret: DeploymentSecret, cbids: Collection[str], reach: Reach
) -> list[Tie]:
    """The ties in reach, except what accounts that left the buyer have kept.

    Its later data counts.
    """
    ties = sorted(find_ties(connection, secret, cbids, reach))
    marks, left = marks_of(connection, ties), dict[tuple[str, AccountReach], bytes]()
    for cbid, owner in {(tie.cbid, tie.owner) for tie in ties}:
        left[cbid, owner] = value_of(connection, erased_name(secret, cbid, owner)) or b""
    return [
        tie
        for tie in ties
        if (mark := marks.get(tie.id)) is None or mark not in left[tie.cbid, tie.owner]
    ]


def marks_of(connection: Connection, ties: Collection[Tie]) -> dict[str, bytes]:
    """Digests of the shred keys of the data that names a buyer now, not of later data.

    They reveal no erased data: its key is destroyed.
    """
    found, k = dict[str, bytes](), shred_keys.c
    for chunk in chunks([tie.id for tie in ties]):
        keys = connection.execute(select(k.record_id, k.key).where(k.record_id.in_(chunk)))
        found |= {id_: hashlib.sha256(key).digest() for id_, key in keys}
    return found


def is_played(connection: Connection, cbid: str, reach: AccountReach) -> bool:
    """Whether the sandbox of this account played this buyer: it counts nowhere else."""
    own = select(buyers.c.cbid).where(buyers.c.cbid == cbid, buyers.c.simulated)
    return connection.execute(own.where(reach.rows(buyers))).first() is not None


def find_person(
    connection: Connection, secret: DeploymentSecret, cbid: str, reach: Reach
) -> Person:
    """The buyer with this identifier, and all checks started in its sessions.

    A session that the buyer has passed can have other checks that the provider has not decided. Any
    other buyer in these checks is erased, too, if it was never verified or revoked, and is in no
    other session.
    """
    own = identifiers_of(connection, cbid)
    references = _references(connection, secret, own, reach)
    s = started_checks.c
    here = s.reference.in_(references)
    led = set(connection.execute(select(s.cbid).where(here, s.cbid.not_in(own))).scalars())
    if not led:
        return Person((*own,), references)
    indexes = union(
        select(s.session_index).where(here),
        select(pending_sessions.c.asked_index).where(_followed(references)),
    )
    b, p = buyers.c, provider_sessions.c
    kept = or_(b.verified_at.is_not(None), b.status == BuyerStatus.REVOKED, b.same_as.is_not(None))
    staying = union(
        select(s.cbid).where(s.cbid.in_(led), ~here),
        select(p.cbid).where(p.cbid.in_(led), p.session_index.not_in(indexes)),
        select(b.cbid).where(b.cbid.in_(led), kept),
        select(b.same_as).where(b.same_as.in_(led)),
    )
    going = sorted(led - set(connection.execute(staying).scalars()))
    own += [one for one in going if one is not None]
    return Person((*own,), _references(connection, secret, own, reach))


def lock_person(
    connection: Connection, secret: DeploymentSecret, cbid: str, reach: Reach
) -> Person | None:
    """The same, for this transaction alone to change; None: it changed during the wait.

    The order of locks is that of a session's checks. The embedded
    database has one writer.
    """
    person = find_person(connection, secret, cbid, reach)
    sessions, b, p = checkout_sessions.c.id, buyers.c.cbid, pending_sessions.c
    mine = pending_of(person, reach)
    s = started_checks.c
    for rows in (
        select(sessions).where(sessions.in_(person.references)).order_by(sessions),
        select(p.id).where(mine).order_by(p.id),
        select(s.session_index).where(s.reference.in_(person.references)).order_by(s.session_index),
        select(b).where(b.in_(person.cbids)).order_by(b),
    ):
        connection.execute(rows.with_for_update()).all()
    return person if find_person(connection, secret, cbid, reach) == person else None


def forget_checks(
    connection: Connection, person: Person, held: Mapping[str, object], reach: Reach
) -> None:
    """Destroy the checks started in the buyer's sessions, and pending data about the buyer.

    A session on hold keeps the results of its checks, but provider messages no longer find them.
    """
    p, s = pending_sessions.c, started_checks.c
    pending = connection.execute(select(p.id).where(pending_of(person, reach))).scalars().all()
    kept = [one for one in person.references if one in held]
    for statement in (
        delete(shred_keys).where(shred_keys.c.record_id.in_(pending)),
        delete(pending_sessions).where(p.id.in_(pending)),
        delete(started_checks).where(s.reference.in_(person.references), s.reference.not_in(kept)),
    ):
        connection.execute(statement)
    for index in connection.execute(select(s.session_index).where(s.reference.in_(kept))).scalars():
        found = update(started_checks).where(s.reference.in_(kept), s.session_index == index)
        connection.execute(found.values(session_index=os.urandom(INDEX_BYTES)))


def _references(
    connection: Connection, secret: DeploymentSecret, cbids: Sequence[str], reach: Reach
) -> tuple[str, ...]:
    s, c = started_checks.c, checkout_sessions.c
    indexes = cbid_indexes(connection, secret, cbids, reach)
    named = union(
        select(s.reference).where(s.cbid.in_(cbids), reach.rows(started_checks)),
        select(c.id).where(c.cbid_index.in_([*indexes]), reach.rows(checkout_sessions)),
    )
    return tuple(sorted(connection.execute(named).scalars()))


def pending_of(person: Person, reach: Reach) -> ColumnElement[bool]:
    """The condition that a polled session is the buyer's, or started in one of theirs."""
    mine = or_(pending_sessions.c.cbid.in_(person.cbids), _followed(person.references))
    return and_(mine, reach.rows(pending_sessions))


def _followed(references: Sequence[str]) -> ColumnElement[bool]:
    """The condition that a polled session was started for one of these."""
    p, s = pending_sessions.c, started_checks.c
    return (
        select(s.session_index)
        .where(
            s.reference.in_(references),
            s.account_id == p.account_id,
            s.mode == p.mode,
            s.session_index == p.session_index,
        )
        .exists()
    )
