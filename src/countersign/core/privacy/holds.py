"""Legal holds: they prevent erasure, in the reach of the account that placed them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final, TypeAlias

from sqlalchemy import Connection, and_, func, insert, select, true, update

from countersign.base.db.statements import SelectAmong, chunks, lock_on_server, of_row, row, rows
from countersign.base.db.tables import (
    accounts,
    buyer_references,
    buyers,
    checkout_sessions,
    erasures,
    legal_holds,
    matters,
    records,
)
from countersign.base.errors import InvalidArgument, UnknownSubject
from countersign.base.values import BUYER, Mode, from_ns, is_id, timed_id
from countersign.core.access.audit import (
    REFERENCE,
    AuditAction,
    AuditEntry,
    named,
    refer,
    write_audit,
)
from countersign.core.access.reach import DEPLOYMENT, AccountReach, Reach, owner_of, reach_of
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.orders.model import ORDER, keys_of_id
from countersign.core.orders.sql import find_orders, within
from countersign.core.privacy.model import Hold, Matter
from countersign.core.privacy.person_sql import (
    find_relying,
    find_ties,
    identifiers_by,
    identifiers_of,
)
from countersign.core.privacy.room import Privacy
from countersign_evidence.record import CBID_FIELD

ActiveHolds: TypeAlias = Mapping[str, Sequence[tuple[str, Reach]]]
"""Holds by subject, each with its reach."""
_HOLDS_LOCK: Final = 0x636F756E68
_h: Final = legal_holds.c
_select_records: Final = SelectAmong(
    "SELECT r.id, r.account_id, r.mode, d.cbid_index, v.cbid FROM records r"
    " LEFT JOIN disclosures d ON d.record_id = r.id"
    " LEFT JOIN verifications v ON v.id = r.id WHERE r.id {}"
)
_select_links: Final = SelectAmong(
    "SELECT id, account_id, mode, cbid_index, NULL FROM checkout_sessions WHERE id {}"
)


def place(
    connection: Connection,
    privacy: Privacy,
    reach: Reach,
    subject: str,
    reason: str,
    *,
    matter_id: str | None = None,
) -> Hold:
    """Prevent the erasure of an order, or of all data of a buyer or an account.

    On any record of an order, it keeps the records that the order needs: acknowledgment,
    clearances, reports of its fulfilment, the identity check that it rests on, and its checkout
    session. On a buyer, it also keeps the orders that name the buyer. A hold of an account binds
    that account in that mode.

    Raises UnknownSubject, or InvalidArgument without a reason.
    """
    if not reason.strip():
        raise InvalidArgument("Give a reason for the hold.")
    access = privacy.access
    time_ns = access.clock.time_ns()
    account_id, mode = owner_of(reach)
    hold = Hold(
        id=timed_id("hold", time_ns, access.entropy(8)),
        subject=subject,
        reason=reason.strip(),
        placed_at=from_ns(time_ns),
        matter_id=matter_id,
        account_id=account_id,
        mode=mode,
    )
    of_matter = {} if matter_id is None else {"matter_id": matter_id}
    about = {"hold_id": hold.id, "reason": hold.reason, **of_matter}
    audit = access.audit.entry(AuditAction.HOLD_PLACED, subject, reach, **about)
    store(connection, access.secret, hold, audit)
    return hold


def store(connection: Connection, secret: DeploymentSecret, hold: Hold, audit: AuditEntry) -> None:
    """Store a hold, which is in force when this transaction commits. Raises UnknownSubject."""
    take_turn(connection)
    if not _is_there(connection, secret, hold.subject, hold.owner):
        raise UnknownSubject(
            f"The record, buyer or account {hold.subject!r} does not exist, or was erased."
        )
    subject, reason = refer(connection, hold.id, hold.subject, hold.reason)
    connection.execute(insert(legal_holds), asdict(hold) | {"subject": subject, "reason": reason})
    write_audit(connection, audit)


def _is_there(connection: Connection, secret: DeploymentSecret, subject: str, reach: Reach) -> bool:
    """Whether this is a record in reach that is not erased, a buyer or an account in reach."""
    s = checkout_sessions.c
    left = select(records.c.id).outerjoin(erasures, erasures.c.record_id == records.c.id)
    own = left.where(records.c.id == subject, reach.rows(records), erasures.c.record_id.is_(None))
    session = select(s.id).where(s.id == subject, s.content.is_not(None))
    session = session.where(reach.rows(checkout_sessions))
    buyer = select(buyers.c.cbid).where(buyers.c.cbid == subject)
    account = select(accounts.c.id).where(accounts.c.id == subject)
    if any(connection.execute(query).first() is not None for query in (own, session)):
        return True
    if is_id(ORDER, subject):
        return bool(find_orders(connection, reach, keys_of_id(subject)))
    if isinstance(reach, AccountReach) and subject != reach.account_id:
        ties = find_ties(connection, secret, [subject], reach)
        return bool(ties) and connection.execute(buyer).first() is not None
    return any(connection.execute(query).first() is not None for query in (buyer, account))


def find_matter(
    connection: Connection, matter_id: str, reach: Reach, *, closed: bool = False
) -> Matter:
    """A matter in reach; open, unless it may be `closed`. Raises UnknownSubject."""
    own = select(matters).where(matters.c.id == matter_id, reach.rows(matters))
    found = row(connection, own, Matter)
    if found is None or not (closed or found.closed_at is None):
        raise UnknownSubject(f"The matter {matter_id!r} does not exist, or is closed.")
    return found


def release(connection: Connection, privacy: Privacy, hold_id: str, reach: Reach) -> Hold:
    """End a hold in reach; an earlier end is kept.

    Raises UnknownSubject if there is no such hold.
    """
    found = find_holds(connection, reach, hold_id=hold_id)
    if not found:
        raise UnknownSubject(f"The hold {hold_id!r} does not exist.")
    return end_hold(connection, privacy, found[0])


def take_turn(connection: Connection) -> None:
    """Wait until no other server places a hold or erases: each must see the other's result.

    The embedded database has one writer in any case.
    """
    lock_on_server(connection, "SELECT pg_advisory_xact_lock(:key)", key=_HOLDS_LOCK)


def end_hold(connection: Connection, privacy: Privacy, hold: Hold, **about: str) -> Hold:
    """End a hold, unless it has ended already.

    It is in the audit of the account that placed it, even if others release it.
    """
    lasts = update(legal_holds).where(_h.id == hold.id, _h.released_at.is_(None))
    now, released = from_ns(privacy.access.clock.time_ns()), AuditAction.HOLD_RELEASED
    if connection.execute(lasts.values(released_at=now)).rowcount > 0:
        about |= {"hold_id": hold.id}
        noted = privacy.access.audit.entry(released, hold.subject, hold.owner, **about)
        write_audit(connection, noted)
    return hold


def find_holds(
    connection: Connection,
    reach: Reach,
    *,
    hold_id: str | None = None,
    matter_id: str | None = None,
    active: bool | None = None,
    on: Collection[str] | None = None,
    after: str = "",
    limit: int | None = None,
) -> Sequence[Hold]:
    """Holds in reach, oldest first, ended ones too; an erased buyer is not named.

    `on`: only those that last on these subjects.
    """
    wanted = select(legal_holds).where(_h.id > after, reach.rows(legal_holds))
    for column, value in ((_h.id, hold_id), (_h.matter_id, matter_id)):
        if value is not None:
            wanted = wanted.where(column == value)
    if active is not None:
        wanted = wanted.where(_h.released_at.is_(None) == active)
    if on is not None:
        lasting = active_holds(connection, reach, on)
        wanted = wanted.where(_h.id.in_([id_ for one in on for id_, _ in lasting.get(one, ())]))
    holds = rows(connection, wanted.order_by(_h.id).limit(limit), Hold)
    shown = named(connection, [(hold.subject, hold.reason) for hold in holds])
    return [
        replace(hold, subject=subject, reason=reason)
        for hold, (subject, reason) in zip(holds, shown, strict=True)
    ]


def is_any_active(connection: Connection, reach: Reach) -> bool:
    """Whether a hold binds anything in reach."""
    binding = (_h.account_id == "") | reach.rows(legal_holds)
    lasting = select(true()).where(_h.released_at.is_(None), binding).limit(1)
    return connection.execute(lasting).first() is not None


def active_holds(connection: Connection, reach: Reach, on: Collection[str]) -> ActiveHolds:
    """The holds on these accounts, orders or parts, and on buyers, that bind anything in reach.

    Oldest first; holds on records out of reach are left out.
    """
    b, binding = buyer_references.c, (_h.account_id + "" == "") | within(reach, legal_holds)
    wanted = (
        select(_h.id, _h.subject, _h.account_id, _h.mode, b.cbid)
        .outerjoin(records, records.c.id == _h.subject)
        .outerjoin(buyer_references, b.reference == _h.subject)
        .where(_h.released_at.is_(None), binding, records.c.id.is_(None) | reach.rows(records))
    )
    # Both use the index of the subject: each reference of a buyer begins alike.
    of_buyer = b.cbid.is_not(None) & _h.subject.between(REFERENCE, f"{REFERENCE}zz")
    found = dict[str, Any]()
    for some in chunks(sorted(on)):
        holding = wanted.where(_h.subject.in_(some) | of_buyer).order_by(_h.id)
        found |= {one.id: one for one in connection.execute(holding)}
    known = identifiers_by(connection, {one.cbid for one in found.values() if one.cbid})
    active: dict[str, list[tuple[str, Reach]]] = {}
    for one in found.values():
        owner = reach_of(one.account_id, one.mode and Mode(one.mode))
        # A person may be known by several identifiers.
        for name in known.get(one.cbid, [one.subject]):
            active.setdefault(name, []).append((one.id, owner))
    return active


def relying_elsewhere(
    connection: Connection, secret: DeploymentSecret, cbids: Sequence[str], reach: AccountReach
) -> dict[str, str]:
    """By identifier, another account that relies on the buyer, unless that account has left.

    Data kept by an account that left may still name the buyer: acknowledgments within their
    retention period. Its later data counts, and so does its hold on the buyer.
    """
    active = active_holds(connection, DEPLOYMENT, cbids)
    found = {
        cbid: owner.account_id
        for cbid in cbids
        for _, owner in active.get(cbid, ())
        if isinstance(owner, AccountReach) and owner != reach
    }
    relying = find_relying(connection, secret, cbids, DEPLOYMENT)
    found |= {tie.cbid: tie.account_id for tie in relying if tie.owner != reach}
    names = identifiers_of(connection, cbids[0])
    # The other identifiers lead to the current one.
    owners = [found[cbid] for cbid in names if cbid in found]
    return found | ({names[0]: owners[0]} if owners else {})


def hold_on(active: ActiveHolds, subject: str, account_id: str, mode: Mode) -> str | None:
    """The oldest hold on this subject that binds this account and mode."""
    holds = active.get(subject, ())
    return next((id_ for id_, owner in holds if owner.covers(account_id, mode)), None)


def naming(connection: Connection, ids: Sequence[str]) -> list[tuple[Any, ...]]:
    """Of these records and checkout sessions: id, account, mode, hash of the buyer, and the cbid.

    That of a check alone.
    """
    ways = (_select_records, _select_links)
    return [one for some in chunks(ids) for way in ways for one in way(connection, some)]


def find_holding(
    connection: Connection,
    secret: DeploymentSecret,
    reach: Reach,
    ids: Sequence[str],
    orders: Collection[str],
) -> tuple[ActiveHolds, dict[str, tuple[str, str]]]:
    """The active holds on these records, checkout sessions and orders; by record, one on it.

    A hold on it, on its account, or on the buyer that it names: id and subject. That name is
    encrypted, so it is found by its blind index, which differs for each account.
    """
    stored = naming(connection, ids)
    owners = {account_id for _, account_id, *_ in stored}
    active = active_holds(connection, reach, {*ids, *orders, *owners})
    held_buyers = [subject for subject in active if subject.startswith(f"{BUYER}_")]
    indexes = {
        of: {secret.blind_index(of, CBID_FIELD, held): held for held in held_buyers}
        for of in owners
    }
    found = {}
    for id_, account_id, mode, index, cbid in stored:
        buyer = index and indexes[account_id].get(bytes(index))
        holds = [
            (hold, subject)
            for subject in (id_, account_id, cbid, buyer)
            if subject and (hold := hold_on(active, subject, account_id, Mode(mode)))
        ]
        if holds:
            found[id_] = holds[0]
    return active, found


def begin_matter(connection: Connection, privacy: Privacy, reach: Reach, name: str) -> Matter:
    """A matter without holds."""
    access, time_ns = privacy.access, privacy.access.clock.time_ns()
    account_id, mode = owner_of(reach)
    matter = Matter(
        id=timed_id("mat", time_ns, access.entropy(8)),
        account_id=account_id,
        mode=mode or Mode.LIVE,
        name=name.strip(),
        opened_at=from_ns(time_ns),
    )
    connection.execute(insert(matters), asdict(matter))
    write_audit(connection, access.audit.entry(AuditAction.MATTER_OPENED, matter.id))
    return matter


def close_matter(
    connection: Connection, privacy: Privacy, reach: Reach, matter_id: str
) -> list[Hold]:
    """Release all holds of a matter; returns which ended. An earlier end is kept.

    So an interrupted close can be repeated. Raises UnknownSubject.
    """
    matter = find_matter(connection, matter_id, reach, closed=True)
    if matter.closed_at is not None:
        return []
    now, audit = from_ns(privacy.access.clock.time_ns()), privacy.access.audit
    lasting = find_holds(connection, reach, matter_id=matter_id, active=True)
    ended = [end_hold(connection, privacy, hold, matter_id=matter_id) for hold in lasting]
    connection.execute(update(matters).where(matters.c.id == matter_id).values(closed_at=now))
    owner = reach_of(matter.account_id, matter.mode)
    write_audit(connection, audit.entry(AuditAction.MATTER_CLOSED, matter_id, owner))
    return ended


def find_matters(
    connection: Connection, reach: Reach, after: str, limit: int
) -> list[tuple[Matter, int]]:
    """Matters in reach, oldest first, and how many holds of each last."""
    of_matter = legal_holds.c.matter_id == matters.c.id
    lasts = and_(of_matter, legal_holds.c.released_at.is_(None), reach.rows(legal_holds))
    number = select(func.count()).select_from(legal_holds).where(lasts).scalar_subquery()
    wanted = select(matters, number.label("holds")).where(matters.c.id > after, reach.rows(matters))
    found = connection.execute(wanted.order_by(matters.c.id).limit(limit))
    return [(of_row(one, Matter), one.holds) for one in found]
