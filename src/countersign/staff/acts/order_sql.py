"""Orders in the database: found by anything that names one, and read in a few queries.

Nothing is decrypted: names that vendors and buyers chose are found by their keyed hash.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from sqlalchemy import Connection, Row, select

from countersign.base.db.statements import chunks
from countersign.base.db.tables import (
    PERSONAL_INFO,
    Field,
    acknowledgment_uses,
    checkout_sessions,
    disclosures,
    erasures,
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
    OVERRIDE,
    SANDBOX_BUYER,
    VERIFICATION,
    is_id,
)
from countersign.core.access.key import Principal
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.acknowledgments.acknowledge import CHECKOUT_FIELD
from countersign.core.log.blind_runs import found_by
from countersign.core.orders.model import ORDER, JoinedOrder, keys_of_id
from countersign.core.orders.sql import find_orders, order_keys
from countersign.core.privacy.person_sql import accounts_of, identifiers_of
from countersign_evidence.record import CBID_FIELD, REFERENCE_FIELD, SESSION_FIELD

ORDERS_MAX: Final = 50
PARTS_MAX: Final = 100
"""Members of one order: a vendor may use one session for all."""
_MEMBERS: Final = (
    *(ACKNOWLEDGMENT, CLEARANCE, FULFILMENT, OVERRIDE),
    *(VERIFICATION, CHECKOUT_SESSION, EARLIER_SESSION),
)
_s: Final = checkout_sessions.c
_SESSIONS: Final = select(
    *(_s.id, _s.status, _s.created_at, _s.expires_at, _s.ended_at),
    _s.content.is_(None).label("is_erased"),
).order_by(_s.id)
_RECORDS: Final = (
    select(
        *(records.c.id, records.c.type, records.c.at, records.c.body),
        *(erasures.c.at.label("erased_at"), log_entries.c.leaf_index),
        *(verifications.c.status.label("checked"), disclosures.c.cbid_index),
    )
    .outerjoin(disclosures, disclosures.c.record_id == records.c.id)
    .outerjoin(erasures, erasures.c.record_id == records.c.id)
    .outerjoin(log_entries, log_entries.c.record_id == records.c.id)
    .outerjoin(verifications, verifications.c.id == records.c.id)
    .order_by(records.c.at, records.c.id)
)

_Row: TypeAlias = Row[*tuple[Any, ...]]


class ReadOrder(NamedTuple):
    """An order with the rows of its newest members."""

    order: JoinedOrder
    members: frozenset[str]
    sessions: Sequence[_Row]
    checks: Sequence[_Row]
    records: Sequence[_Row]
    """With their place in the log, and when they were erased."""
    cbid: str | None
    closed_at: Any


def find(
    connection: Connection, secret: DeploymentSecret, who: Principal, text: str
) -> tuple[set[bytes], str]:
    """The keys of the orders that this text identifies.

    Second, what it is: `identifier`, `buyer`, or `text`, a session or an order reference.
    """
    id_ = text.lower()
    if is_id(ORDER, id_):
        return {*keys_of_id(id_)}, "identifier"
    if any(is_id(kind, id_) for kind in (FACT, *_MEMBERS)):
        members = _erased_by(connection, who, id_) if is_id(FACT, id_) else [id_]
        return order_keys(connection, who.reach, members), "identifier"
    if is_id(BUYER, id_) or is_id(SANDBOX_BUYER, id_):
        cbids = identifiers_of(connection, id_)
        return keys_by(connection, secret, who, [CBID_FIELD], cbids), "buyer"
    named = keys_of_session(connection, secret, who, text)
    cases = sorted({text, text.upper(), id_})
    return named | keys_by(connection, secret, who, [REFERENCE_FIELD], cases), "text"


def keys_of_session(
    connection: Connection, secret: DeploymentSecret, who: Principal, session_id: str
) -> set[bytes]:
    """The keys of the orders of a vendor's session: its own, and those of its references."""
    owners = accounts_of(connection, who.reach)
    own = {secret.blind_index(owner, SESSION_FIELD, session_id) for owner in owners}
    fields: list[Field] = [SESSION_FIELD, CHECKOUT_FIELD]
    return own | keys_by(connection, secret, who, fields, [session_id])


def _erased_by(connection: Connection, who: Principal, fact_id: str) -> Sequence[str]:
    """The records that an erasure's own record names."""
    body = select(records.c.body).where(records.c.id == fact_id, records.c.mode == who.mode)
    found = connection.execute(body).scalar()
    erased: Sequence[str] = json.loads(found).get("erased", ()) if found else ()
    return erased


def keys_by(
    connection: Connection,
    secret: DeploymentSecret,
    who: Principal,
    fields: Sequence[Field],
    values: Sequence[str],
) -> set[bytes]:
    """The keys of the newest orders with one of these values in one of these fields."""
    owners, found = accounts_of(connection, who.reach), set[str]()
    for column in personal_columns("order", "session"):
        t = column.table.c
        own = [
            secret.blind_index(owner, name, value)
            for name in column.info[PERSONAL_INFO].fields
            if name in fields
            for owner in owners
            for value in values
        ]
        if own and column.table in {disclosures, checkout_sessions}:
            [id_] = column.table.primary_key
            is_hashed = column.table is disclosures
            named = found_by(connection, column, *own) if is_hashed else column.in_(own)
            wanted = select(id_).where(named, t.mode == who.mode).order_by(id_.desc())
            found |= {*connection.execute(wanted.limit(200)).scalars()}
    return order_keys(connection, who.reach, found)


def read(connection: Connection, who: Principal, keys: Collection[bytes]) -> list[ReadOrder]:
    """The orders with these keys within the caller's reach; the newest first, one too many."""
    own = [one for one in find_orders(connection, who.reach, keys) if one.first.mode is who.mode]
    return read_members(connection, own[: ORDERS_MAX + 1])


def read_members(connection: Connection, found: Sequence[JoinedOrder]) -> list[ReadOrder]:
    """These orders with the rows of their members, in a few queries."""
    shown = [_shown(order) for order in found]
    sessions, checks, stored, uses = list[_Row](), list[_Row](), list[_Row](), list[_Row]()
    for chunk in chunks(sorted({member for members in shown for member in members})):
        started, bound = started_checks.c.reference, acknowledgment_uses.c.ack_id
        sessions += connection.execute(_SESSIONS.where(_s.id.in_(chunk)))
        checks += connection.execute(select(started_checks).where(started.in_(chunk)))
        stored += connection.execute(_RECORDS.where(records.c.id.in_(chunk)))
        uses += connection.execute(select(acknowledgment_uses).where(bound.in_(chunk)))
    made = list[ReadOrder]()
    for order, members in zip(found, shown, strict=True):
        own = [one for one in checks if one.reference in members]
        bound_to = [use for use in uses if use.ack_id in members]
        cbids = [use.cbid for use in bound_to] + [one.cbid for one in reversed(own)]
        read_order = ReadOrder(
            order,
            members,
            [one for one in sessions if one.id in members],
            sorted(own, key=lambda one: one.started_at),
            [one for one in stored if one.id in members],
            next(filter(None, cbids), None),
            max((use.closed_at for use in bound_to if use.closed_at), default=None),
        )
        made.append(read_order)
    return made


def _shown(order: JoinedOrder) -> frozenset[str]:
    """The newest members, and those of the first and last act of each state."""
    acts = order.acts
    members = [*dict.fromkeys(act.member_id for act in reversed(acts))][:PARTS_MAX]
    for several in (acts, reversed(acts)):
        members += {act.state: act.member_id for act in several}.values()
    return frozenset(members)
