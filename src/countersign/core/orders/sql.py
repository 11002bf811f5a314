"""Orders in the database: an act joins its order, and any member leads to it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    Table,
    and_,
    case,
    delete,
    or_,
    select,
    text,
    true,
    tuple_,
    type_coerce,
    update,
)

from countersign.base.db.statements import DriverStatement, SelectAmong, chunks, deferred_statements
from countersign.base.db.tables import checkout_sessions, disclosures, order_acts, records
from countersign.base.values import ACKNOWLEDGMENT, LENGTH, Mode, is_id, to_ms
from countersign.core.access.reach import AccountReach, Reach
from countersign.core.log.blind_runs import found_by
from countersign.core.log.record import RecordType
from countersign.core.orders.model import (
    AFTER_DUE,
    JoinedOrder,
    OrderAct,
    OrderState,
    key_of_member,
)

_o: Final = order_acts.c
_d: Final = disclosures.c
_at: Final = type_coerce(_o.at, BigInteger)
# SQLite chooses a partial index only for the literal text of its condition.
_INDEXED: Final = text("order_acts.indexed")
_PLACE: Final = (_o.account_id, _o.mode, _at, _o.member_id)
_IN_TIME: Final = (
    *(records.c.account_id, records.c.mode, type_coerce(records.c.at, BigInteger)),
    records.c.id,
)
"""Of a record: the columns of `_PLACE`."""
_COLUMNS: Final = (
    *(_o.account_id, _o.mode, _at.label("at"), _o.key, _o.member_id, _o.notice_id, _o.state),
    type_coerce(_o.due_at, BigInteger).label("due_at"),
)
"""Those of `OrderAct`, in its order."""
_join: Final = DriverStatement(
    "INSERT INTO order_acts VALUES (?, ?, ?, ?, ?, ?, ?, ?, (1 = 1))"
    " ON CONFLICT (account_id, mode, at, key, member_id)"
    " DO UPDATE SET state = excluded.state, due_at = excluded.due_at"
)
indexed_keys: Final = SelectAmong(
    "SELECT member_id, key FROM order_acts WHERE indexed AND member_id {}"
)
"""Of each of these members whose order is not named by its own session or reference."""
_SCANNED_MAX: Final = 5_000
"""Acts scanned at once for a page of a list."""
_SCANS_MAX: Final = 4


def key_of(session_index: bytes | None, reference_index: bytes | None, member_id: str) -> bytes:
    """The key of the order that an act names, or opens."""
    return bytes(session_index or reference_index or key_of_member(member_id))


def bound_key(
    connection: Connection, reach: Reach, session_index: bytes | None, reference_index: bytes | None
) -> bytes | None:
    """The key of the order that a reference was bound to first.

    None: it is bound to none, or the session has an order.
    """
    if reference_index is None:
        return None
    if session_index is not None and find_orders(connection, reach, [session_index]):
        return None
    s = checkout_sessions.c
    links = select(s.id).where(s.reference_index == reference_index, reach.rows(checkout_sessions))
    named = select(_d.record_id).where(
        found_by(connection, _d.reference_index, reference_index), reach.rows(disclosures)
    )
    ids = [*connection.execute(links).scalars(), *connection.execute(named).scalars()]
    known = orders_of(connection, reach, ids) if ids else []
    first = min(ids, key=key_of_member, default="")
    return next((one.first.key for one in known if first in one.members), None)


def within(reach: Reach, table: Table = order_acts) -> ColumnElement[bool]:
    """Rows in reach, as a condition that no index serves.

    SQLite would choose an index by account, and read all rows of an account.
    """
    if not isinstance(reach, AccountReach):
        return true()
    return and_(table.c.account_id + "" == reach.account_id, table.c.mode + "" == reach.mode)


def write_acts(connection: Connection, acts: Iterable[OrderAct]) -> None:
    """Write these acts with the commit."""
    deferred = deferred_statements(connection)
    for account_id, mode, at, key, member_id, notice_id, state, due_at in acts:
        place = (account_id, mode.value, at, key, member_id)
        _join.defer(connection, deferred, *place, notice_id, state and state.value, due_at)


def write_act_with(
    connection: Connection, of: str, member_id: str, at: datetime, state: OrderState | None = None
) -> None:
    """Write an act on every order of a clearance, check or checkout session, with the commit."""
    owners = select(_o.account_id, _o.mode, _o.key).where(_INDEXED, _o.member_id == of)
    write_acts(
        connection,
        [
            OrderAct(account_id, Mode(mode), to_ms(at), bytes(key), member_id, state=state)
            for account_id, mode, key in connection.execute(owners.distinct())
        ],
    )


def order_keys(connection: Connection, reach: Reach, ids: Iterable[str]) -> set[bytes]:
    """The keys of the orders in reach of these members."""
    found = set[bytes]()
    for chunk in chunks(sorted({*ids})):
        known = select(_o.member_id, _o.key).where(_INDEXED, _o.member_id.in_(chunk))
        known = known.where(within(reach))
        members = [*connection.execute(known)]
        found |= {bytes(key) for _, key in members}
        acks = {one for one in chunk if is_id(ACKNOWLEDGMENT, one)} - {one for one, _ in members}
        keys = select(_d.record_id, _d.session_index, _d.reference_index)
        keys = keys.where(reach.rows(disclosures))
        named = {
            id_: key_of(session, reference, id_)
            for id_, session, reference in connection.execute(keys.where(_d.record_id.in_(acks)))
        }
        found |= {named.get(id_) or key_of_member(id_) for id_ in acks}
    return found


def find_orders(connection: Connection, reach: Reach, keys: Collection[bytes]) -> list[JoinedOrder]:
    """The orders in reach with these keys, the newest first."""
    acts: dict[tuple[str, str, bytes], set[OrderAct]] = {}
    for chunk in chunks(sorted(keys)):
        own = select(*_COLUMNS).where(_o.key.in_(chunk), within(reach))
        same = and_(*(a == b for a, b in zip(_IN_TIME, _PLACE, strict=True)))
        ids = {f"{ACKNOWLEDGMENT}_{key.decode()}" for key in chunk if len(key) == LENGTH}
        columns = (_d.session_index, _d.reference_index)
        named = or_(*(found_by(connection, column, *chunk) for column in columns))
        hashed = select(_d.record_id).where(named, reach.rows(disclosures))
        ids |= {*connection.execute(hashed).scalars()}
        found = [*connection.execute(own.where(_INDEXED))]
        for some in chunks(sorted(ids)):
            found += connection.execute(own.join(records, same).where(records.c.id.in_(some)))
        for act in map(_act, found):
            acts.setdefault((act.account_id, act.mode, act.key), set()).add(act)
    made = [JoinedOrder((*sorted(own, key=lambda act: act[:5]),)) for own in acts.values()]
    return sorted(made, key=lambda order: order.first[2:4], reverse=True)


def orders_of(connection: Connection, reach: Reach, ids: Iterable[str]) -> list[JoinedOrder]:
    """The orders in reach that these belong to, the newest first."""
    return find_orders(connection, reach, order_keys(connection, reach, ids))


def _act(row: Any) -> OrderAct:  # noqa: ANN401 - of _COLUMNS
    account_id, mode, at, key, member_id, notice_id, state, due_at = row
    stands = state and OrderState(state)
    return OrderAct(account_id, Mode(mode), at, bytes(key), member_id, notice_id, stands, due_at)


def index_acts(connection: Connection, ids: Sequence[str]) -> None:
    """Index the acts of these acknowledgments, before their keyed hashes are erased."""
    own = (records.c.id.in_(ids), records.c.type == RecordType.ACKNOWLEDGMENT)
    places = select(*_IN_TIME).where(*own)
    for place in connection.execute(places).all():
        there = update(order_acts).where(tuple_(*_PLACE) == tuple_(*place))
        connection.execute(there.values(indexed=True))


def end_waiting(connection: Connection, ids: Sequence[str]) -> None:
    """End the deadlines of these erased checkout sessions: nobody is waited for."""
    own = update(order_acts).where(_INDEXED, _o.member_id.in_(ids))
    connection.execute(own.values(due_at=_o.at))


def delete_acts(connection: Connection, ids: Sequence[str]) -> None:
    """Delete the acts of these members, before they go."""
    connection.execute(delete(order_acts).where(_INDEXED, _o.member_id.in_(ids)))
    for place in connection.execute(select(*_IN_TIME).where(records.c.id.in_(ids))).all():
        connection.execute(delete(order_acts).where(tuple_(*_PLACE) == tuple_(*place)))


class Wanted(NamedTuple):
    """Which orders a list has; None: any."""

    states: Collection[OrderState]
    keys: Collection[bytes] | None = None
    notice_id: str | None = None
    after: int | None = None
    before: int | None = None
    place: tuple[int, bytes] | None = None
    """The cursor: time and key of the last act of the previous page."""


def find_page(
    connection: Connection, reach: AccountReach, wanted: Wanted, now: int, limit: int
) -> tuple[list[JoinedOrder], tuple[int, bytes] | None]:
    """The wanted orders of an account and mode, by their newest act of such a state.

    Second, the cursor of the next page; None: it is the last. The scan is bounded, so a page may be
    short.
    """
    acts = select(*_COLUMNS).where(reach.rows(order_acts))
    if wanted.after is not None:
        acts = acts.where(_at >= wanted.after)
    if wanted.keys is not None:
        named = find_orders(connection, reach, wanted.keys)
        times = {act.at for order in named for act in order.acts}
        acts = acts.where(_at.in_(times), _o.key.in_(wanted.keys))

    def is_wanted(act: OrderAct) -> bool:
        return act.state is not None and act.state_at(now) in wanted.states

    page, more = dict[JoinedOrder, tuple[int, bytes]](), wanted.place
    for _ in range(_SCANS_MAX):
        rest = acts if more is None else acts.where(tuple_(_at, _o.key) < tuple_(*more))
        found, more = _scan(connection, rest, wanted.states, now, 3 * limit)
        known = find_orders(connection, reach, {act.key for act in found})
        orders = {order.first.key: order for order in known}
        for act in found:
            order = orders[act.key]
            newest = max(filter(is_wanted, order.acts), key=lambda one: one[2:5])
            if (
                # Acts of one millisecond share a place: the page may end between them.
                act[2:4] == newest[2:4]
                and is_wanted(order.decisive(now))
                and (wanted.after is None or wanted.after <= order.first.at)
                and (wanted.before is None or order.first.at < wanted.before)
                and wanted.notice_id in {None, order.notice_id}
            ):
                page[order] = act[2:4]
        if more is None or len(page) > limit:
            break
    shown = [*page][:limit]
    return shown, page[shown[-1]] if len(page) > limit else more


def _scan(
    connection: Connection, acts: Select[Any], states: Collection[OrderState], now: int, limit: int
) -> tuple[list[OrderAct], tuple[int, bytes] | None]:
    """The next acts of the wanted states, and where to go on; None: at the end."""
    scanned = acts.order_by(_at.desc(), _o.key.desc()).limit(_SCANNED_MAX).subquery()
    is_over = and_(scanned.c.due_at.is_not(None), scanned.c.due_at <= now)
    moved = [(is_over & (scanned.c.state == one), then.value) for one, then in AFTER_DUE.items()]
    state = case(*moved, else_=scanned.c.state)
    matching = select(scanned).where(state.in_(states))
    found = [_act(row) for row in connection.execute(matching.limit(limit))]
    if len(found) == limit:
        return found, found[-1][2:4]
    rest = select(scanned.c.at, scanned.c.key).offset(_SCANNED_MAX - 1)
    return found, next(((at, bytes(key)) for at, key in connection.execute(rest)), None)
