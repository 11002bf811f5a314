"""All of one buyer that an erasure covers: identifiers, and the checks that were started here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, delete, or_, select, union

from countersign.access.secrets import DeploymentSecret
from countersign.buyers.model import BuyerStatus
from countersign.db.tables import (
    accounts,
    buyers,
    checkout_sessions,
    pending_sessions,
    provider_sessions,
    shred_keys,
    started_checks,
)
from countersign_evidence.record import CBID_FIELD


class Person(NamedTuple):
    """Whom an erasure is about."""

    cbids: tuple[str, ...]
    """The current identifier first; those after it are of the same person, or of buyers who exist
    only by an undecided or failed check in one of the sessions."""
    references: tuple[str, ...]
    """The checkout sessions of the buyer: what was started for these goes."""


def identifiers_of(connection: Connection, cbid: str) -> list[str]:
    """All identifiers of the person with this one, the current one first."""
    current = select(buyers.c.same_as).where(buyers.c.cbid == cbid)
    first = connection.execute(current).scalar() or cbid
    aliases = select(buyers.c.cbid).where(buyers.c.same_as == first)
    return [first, *connection.execute(aliases).scalars()]


def cbid_indexes(
    connection: Connection, secret: DeploymentSecret, cbids: Sequence[str]
) -> list[bytes]:
    """The blind indexes of a buyer in every account."""
    return [
        secret.blind_index(account_id, CBID_FIELD, cbid)
        for account_id in connection.execute(select(accounts.c.id)).scalars()
        for cbid in cbids
    ]


def find_person(connection: Connection, secret: DeploymentSecret, cbid: str) -> Person:
    """The buyer with this identifier, and what was started in its sessions, whatever came of it.

    A session that the buyer has passed can have other checks, about which the provider has not
    decided or said anything yet. A buyer that one of these has led to goes, too, if it was never
    verified or revoked, and has nothing in any other session.
    """
    own = identifiers_of(connection, cbid)
    references = _references(connection, secret, own)
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
    return Person((*own,), _references(connection, secret, own))


def lock_person(connection: Connection, secret: DeploymentSecret, cbid: str) -> Person | None:
    """The same, for this transaction alone to change; None: it has changed while this waited.

    Always in the order in which the checks of a session lock these rows themselves. The embedded
    database has one writer.
    """
    person = find_person(connection, secret, cbid)
    sessions, b, p = checkout_sessions.c.id, buyers.c.cbid, pending_sessions.c
    mine = or_(p.cbid.in_(person.cbids), _followed(person.references))
    s = started_checks.c
    for rows in (
        select(sessions).where(sessions.in_(person.references)).order_by(sessions),
        select(p.id).where(mine).order_by(p.id),
        select(s.session_index).where(s.reference.in_(person.references)).order_by(s.session_index),
        select(b).where(b.in_(person.cbids)).order_by(b),
    ):
        connection.execute(rows.with_for_update()).all()
    return person if find_person(connection, secret, cbid) == person else None


def forget_checks(connection: Connection, person: Person) -> None:
    """Destroy what was started in the buyer's sessions, and what is pending about the buyer."""
    p = pending_sessions.c
    mine = or_(p.cbid.in_(person.cbids), _followed(person.references))
    pending = connection.execute(select(p.id).where(mine)).scalars().all()
    for statement in (
        delete(shred_keys).where(shred_keys.c.record_id.in_(pending)),
        delete(pending_sessions).where(p.id.in_(pending)),
        delete(started_checks).where(started_checks.c.reference.in_(person.references)),
    ):
        connection.execute(statement)


def _references(
    connection: Connection, secret: DeploymentSecret, cbids: Sequence[str]
) -> tuple[str, ...]:
    s, c = started_checks.c, checkout_sessions.c
    named = union(
        select(s.reference).where(s.cbid.in_(cbids)),
        select(c.id).where(c.cbid_index.in_(cbid_indexes(connection, secret, cbids))),
    )
    return tuple(sorted(connection.execute(named).scalars()))


def _followed(references: Sequence[str]) -> ColumnElement[bool]:
    """That a followed session was started for one of these."""
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
