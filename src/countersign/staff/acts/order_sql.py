"""Orders in the database: found by anything that names one, and read in a few queries.

Nothing is decrypted: names that vendors and buyers chose are found by their keyed hash.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from sqlalchemy import Connection, Row, or_, select

from countersign.base.db.tables import (
    PERSONAL_INFO,
    acknowledgment_uses,
    checkout_sessions,
    clearances,
    disclosures,
    erasures,
    fulfilments,
    log_entries,
    personal_columns,
    records,
    started_checks,
    verifications,
)
from countersign.base.values import (
    ACKNOWLEDGMENT,
    BUYER,
    CHECKOUT_SESSION,
    CLEARANCE,
    EARLIER_SESSION,
    FACT,
    FULFILMENT,
    SANDBOX_BUYER,
    VERIFICATION,
    is_id,
)
from countersign.core.access.key import Principal
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.acknowledgments.acknowledge import CHECKOUT_FIELD
from countersign.core.buyers.model import BuyerStatus
from countersign.core.log.blind_runs import found_by
from countersign.core.privacy.held import orders_of
from countersign.core.privacy.person_sql import accounts_of, identifiers_of
from countersign_evidence.record import CBID_FIELD, REFERENCE_FIELD, SESSION_FIELD

ORDERS_MAX: Final = 20
_FOUND_MAX: Final = 200
_RECORDS: Final = (ACKNOWLEDGMENT, CLEARANCE, FULFILMENT)
_s: Final = checkout_sessions.c


_Row: TypeAlias = Row[*tuple[Any, ...]]


class Found(NamedTuple):
    """Starting points for orders: record ids and checkout session ids."""

    record_ids: set[str]
    session_ids: set[str]
    by: str
    """`identifier`, `buyer`, or `text`: a session of the vendor's or an order reference."""


class StoredOrder(NamedTuple):
    """The rows of an order."""

    key: str
    sessions: Sequence[_Row]
    checks: Sequence[_Row]
    records: Sequence[_Row]
    """With their place in the log, and when they were erased."""
    cbid: str | None
    closed_at: Any
    verified: _Row | None
    """The account's own check of the buyer, where none of a checkout session is there."""


def find(connection: Connection, secret: DeploymentSecret, who: Principal, text: str) -> Found:
    """The objects that this text identifies, within the caller's reach."""
    if any(is_id(kind, text) for kind in (CHECKOUT_SESSION, EARLIER_SESSION)):
        return Found(set(), {text}, "identifier")
    if any(is_id(kind, text) for kind in _RECORDS):
        return Found({text}, set(), "identifier")
    if is_id(FACT, text):
        return Found({*_erased_by(connection, who, text)}, set(), "identifier")
    if is_id(VERIFICATION, text):
        return _of_check(connection, who, text)
    if is_id(BUYER, text) or is_id(SANDBOX_BUYER, text):
        cbids = identifiers_of(connection, text)
        return Found(*_by_index(connection, secret, who, {CBID_FIELD: cbids}), "buyer")
    given = {SESSION_FIELD: [text], REFERENCE_FIELD: [text], CHECKOUT_FIELD: [text]}
    return Found(*_by_index(connection, secret, who, given), "text")


def _erased_by(connection: Connection, who: Principal, fact_id: str) -> Sequence[str]:
    """The records that an erasure's own record names."""
    body = select(records.c.body).where(records.c.id == fact_id, records.c.mode == who.mode)
    found = connection.execute(body).scalar()
    erased: Sequence[str] = json.loads(found).get("erased", ()) if found else ()
    return erased


def _of_check(connection: Connection, who: Principal, verification_id: str) -> Found:
    """The checkout session of a check, and the orders that rest on its buyer."""
    nothing = Found(set(), set(), "identifier")
    v = verifications.c
    own = select(v.cbid).where(v.id == verification_id, v.mode == who.mode)
    cbid = connection.execute(own.where(who.reach.rows(verifications))).scalar()
    if cbid is None:
        return nothing
    sessions = select(started_checks.c.reference).where(
        started_checks.c.cbid == cbid, started_checks.c.verification_id == verification_id
    )
    uses = select(acknowledgment_uses.c.ack_id).where(acknowledgment_uses.c.cbid == cbid)
    return Found(
        {*connection.execute(uses.limit(_FOUND_MAX)).scalars()},
        {*connection.execute(sessions).scalars()},
        "identifier",
    )


def _by_index(
    connection: Connection,
    secret: DeploymentSecret,
    who: Principal,
    sought: dict[str, list[str]],
) -> tuple[set[str], set[str]]:
    """Records and checkout sessions with one of these values in one of these fields."""
    owners, found, sessions = accounts_of(connection, who.reach), set[str](), set[str]()
    for column in personal_columns("order", "session"):
        own = [
            secret.blind_index(owner, field, one)
            for field in column.info[PERSONAL_INFO].fields
            for owner in owners
            for one in sought.get(field, ())
        ]
        if own and column.table is disclosures:
            wanted = select(disclosures.c.record_id).where(found_by(connection, column, *own))
            wanted = wanted.where(disclosures.c.mode == who.mode)
            wanted = wanted.order_by(disclosures.c.record_id.desc())
            found |= {*connection.execute(wanted.limit(_FOUND_MAX)).scalars()}
        elif own and column.table is checkout_sessions:
            hosted = select(_s.id).where(column.in_(own), _s.mode == who.mode)
            sessions |= {*connection.execute(hosted.limit(_FOUND_MAX)).scalars()}
    of_orders = {id_ for id_ in found if any(is_id(kind, id_) for kind in _RECORDS)}
    return of_orders, sessions


def read(connection: Connection, who: Principal, found: Found) -> list[StoredOrder]:
    """The orders that these lead to, within the caller's reach; the newest first, one too many."""
    reached = _within(connection, who, found.record_ids)
    hosted = _sessions(connection, who, _s.id.in_(found.session_ids))
    reached |= {id_ for one in hosted for id_ in (one.ack_id, one.clearance_id) if id_}
    orders = orders_of(connection, reached)
    keys = sorted(orders, key=lambda key: key.partition("_")[2], reverse=True)[: ORDERS_MAX + 1]
    clears = {id_ for key in keys for id_ in orders[key] if is_id(CLEARANCE, id_)}
    known = [
        *hosted,
        *_sessions(connection, who, or_(_s.ack_id.in_(keys), _s.clearance_id.in_(clears))),
    ]
    sessions = {one.id: one for one in known}
    checks = connection.execute(
        select(started_checks)
        .where(started_checks.c.reference.in_(sessions))
        .order_by(started_checks.c.started_at)
    ).all()
    rows = _records(connection, [id_ for key in keys for id_ in orders[key]])
    uses = {
        use.ack_id: use
        for use in connection.execute(
            select(acknowledgment_uses).where(acknowledgment_uses.c.ack_id.in_(keys))
        )
    }
    v = verifications.c
    verified = connection.execute(
        select(v.id, v.account_id, v.cbid, v.at)
        .where(v.cbid.in_([use.cbid for use in uses.values()]), v.mode == who.mode)
        .where(v.status == BuyerStatus.VERIFIED)
        .order_by(v.at.desc())
        .limit(_FOUND_MAX)
    ).all()
    made, used = list[StoredOrder](), set[str]()
    for key in keys:
        members = orders[key]
        own = [s for s in sessions.values() if s.ack_id == key or s.clearance_id in members]
        used |= {one.id for one in own}
        stored = [rows[m] for m in sorted(members) if m in rows]
        order = _order(key, own, checks, stored, uses.get(key))
        made.append(order._replace(verified=_last_of_own(verified, order)))
    made += [
        _order(one.id, [one], checks, [], None) for one in sessions.values() if one.id not in used
    ]
    return made


def _order(
    key: str,
    sessions: Sequence[_Row],
    checks: Sequence[_Row],
    stored: Sequence[_Row],
    use: _Row | None,
) -> StoredOrder:
    own = {one.id for one in sessions}
    made = [one for one in checks if one.reference in own]
    cbid = use.cbid if use else next((one.cbid for one in reversed(made) if one.cbid), None)
    return StoredOrder(key, sessions, made, stored, cbid, use and use.closed_at, None)


def _last_of_own(verified: Sequence[_Row], order: StoredOrder) -> _Row | None:
    """The newest check before the order's last record, by its account and for its buyer."""
    if not order.records or any(one.status == BuyerStatus.VERIFIED for one in order.checks):
        return None
    account_id, until = order.records[0].account_id, max(one.at for one in order.records)
    known = (v for v in verified if (v.cbid, v.account_id) == (order.cbid, account_id))
    return next((one for one in known if one.at <= until), None)


def _within(connection: Connection, who: Principal, ids: Iterable[str]) -> set[str]:
    own = select(records.c.id).where(records.c.id.in_([*ids]), records.c.mode == who.mode)
    return {*connection.execute(own.where(who.reach.rows(records))).scalars()}


def _sessions(connection: Connection, who: Principal, wanted: Any) -> Sequence[_Row]:  # noqa: ANN401 - a condition
    own = select(
        *(_s.id, _s.account_id, _s.mode, _s.status, _s.created_at, _s.expires_at, _s.ended_at),
        *(_s.ack_id, _s.clearance_id),
    ).where(wanted, _s.mode == who.mode, who.reach.rows(checkout_sessions))
    return connection.execute(own.order_by(_s.id.desc()).limit(_FOUND_MAX)).all()


def _records(connection: Connection, ids: Sequence[str]) -> dict[str, _Row]:
    r = records.c
    found = connection.execute(
        select(
            *(r.id, r.account_id, r.type, r.at, r.body, erasures.c.at.label("erased_at")),
            *(log_entries.c.leaf_index, clearances.c.expires_at, fulfilments.c.closes),
        )
        .outerjoin(erasures, erasures.c.record_id == r.id)
        .outerjoin(log_entries, log_entries.c.record_id == r.id)
        .outerjoin(clearances, clearances.c.id == r.id)
        .outerjoin(fulfilments, fulfilments.c.id == r.id)
        .where(r.id.in_(ids))
    )
    return {row.id: row for row in found}
