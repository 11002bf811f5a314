"""Webhook deliveries: made from the events, claimed with a lease, and finished.

A delivery is due at a time. Claiming it moves that time to the end of a lease, so that the
delivery of a process that dies is due again; the attempt is counted at the claim, so that even
repeated deaths come to an end.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    Connection,
    Row,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    select,
    tuple_,
    update,
)

from countersign.db.bulk import BulkInsert
from countersign.db.tables import (
    events,
    webhook_attempts,
    webhook_deliveries,
    webhook_endpoints,
)
from countersign.events.model import EventType, Position
from countersign.events.sql import (
    EVENT_COLUMNS,
    POSITION,
    after,
    delete_old_events,
    settled,
    to_event,
)
from countersign.instant import to_ms
from countersign.webhooks.endpoints_sql import endpoints_where
from countersign.webhooks.model import (
    SCHEDULE,
    ClaimedDelivery,
    Delivery,
    DeliveryAttempt,
    DeliveryStatus,
    Endpoint,
    FinishedDelivery,
    Outcome,
)

PENDING_MAX: Final = 20_000
"""Waiting deliveries of one endpoint; later events wait until there is room."""

_d: Final = webhook_deliveries.c
_enabled: Final = and_(
    webhook_endpoints.c.disabled_at.is_(None), webhook_endpoints.c.deleted_at.is_(None)
)
_insert_attempts: Final = BulkInsert(
    webhook_attempts, "endpoint_id", "event_seq", "number", "at", "duration_ms", "outcome", "status"
)
_OWN: Final = and_(
    _d.endpoint_id == bindparam("endpoint"),
    _d.event_seq == bindparam("seq"),
    # What a process writes whose lease has ended, and whose delivery another has, is ignored.
    _d.attempts == bindparam("number"),
)
_SUCCEEDED: Final = (
    update(webhook_deliveries).where(_OWN).values(status=DeliveryStatus.SUCCEEDED, due_at=None)
)
# One that was stopped stays so.
_FAILED: Final = (
    update(webhook_deliveries)
    .where(_OWN, _d.due_at.is_not(None))
    .values(status=bindparam("new_status"), due_at=bindparam("new_due_at"))
)
_RELEASED: Final = (
    update(webhook_deliveries)
    .where(_OWN, _d.due_at.is_not(None))
    .values(step=_d.step - 1, due_at=bindparam("new_due_at"))
)


class EndpointWork(NamedTuple):
    """An endpoint for which there is something to do."""

    endpoint: Endpoint
    behind: bool
    """There are events of which no deliveries were made."""
    due: bool
    """There are deliveries to attempt."""


def find_work(connection: Connection, now: datetime) -> Sequence[EndpointWork]:
    """The endpoints for which there is something to do."""
    table = webhook_endpoints.c
    behind = exists().where(
        events.c.account_id == table.account_id,
        events.c.mode == table.mode,
        tuple_(table.cursor_tx, table.cursor_seq) < POSITION,
        settled(connection),
    )
    due = exists().where(_d.endpoint_id == table.id, _d.due_at <= now)
    flags = select(table.id, behind.label("behind"), due.label("due")).where(_enabled)
    found = {
        row.id: (bool(row.behind), bool(row.due))
        for row in connection.execute(flags)
        if row.behind or row.due
    }
    if not found:
        return []
    return [
        EndpointWork(endpoint, *found[endpoint.id])
        for endpoint in endpoints_where(connection, table.id.in_(found))
    ]


def fan_out(connection: Connection, endpoint_id: str, now: datetime, limit: int) -> int:
    """Make deliveries of the next events; gives how many events were processed."""
    table = webhook_endpoints.c
    row = connection.execute(
        select(table.account_id, table.mode, table.cursor_tx, table.cursor_seq, table.recovered_at)
        .where(table.id == endpoint_id, _enabled)
        .with_for_update(skip_locked=True)
    ).one_or_none()
    if row is None or _pending(connection, endpoint_id) >= PENDING_MAX:
        return 0
    cursor = Position(row.cursor_tx, row.cursor_seq)
    next_ = after(connection, row.account_id, row.mode, cursor, limit)
    columns = (events.c.tx, events.c.seq, events.c.type)
    found = connection.execute(next_.with_only_columns(*columns)).all()
    if not found:
        return 0
    (endpoint,) = endpoints_where(connection, table.id == endpoint_id)
    wanted = [e.seq for e in found if endpoint.wants(EventType(e.type))]
    _make_deliveries(connection, endpoint_id, wanted, now, again=row.recovered_at is not None)
    connection.execute(
        update(webhook_endpoints)
        .where(table.id == endpoint_id)
        .values(cursor_tx=found[-1].tx, cursor_seq=found[-1].seq)
    )
    return len(found)


def _make_deliveries(
    connection: Connection, endpoint_id: str, wanted: Sequence[int], now: datetime, *, again: bool
) -> None:
    """After a recovery or a resend, some are there already; `again`: restart those that ended."""
    if not wanted:
        return
    own = and_(_d.endpoint_id == endpoint_id, _d.event_seq.in_(wanted))
    there = set(connection.execute(select(_d.event_seq).where(own)).scalars())
    if there and again:
        ended = _d.status.in_((DeliveryStatus.FAILED, DeliveryStatus.STOPPED))
        restarted = update(webhook_deliveries).where(own, ended)
        connection.execute(restarted.values(_fresh(now)))
    new = [
        {"endpoint_id": endpoint_id, "event_seq": seq, "attempts": 0} | _fresh(now)
        for seq in wanted
        if seq not in there
    ]
    if new:
        connection.execute(insert(webhook_deliveries), new)


def _fresh(now: datetime) -> dict[str, object]:
    return {"status": DeliveryStatus.PENDING, "step": 0, "created_at": now, "due_at": now}


def _pending(connection: Connection, endpoint_id: str) -> int:
    some = (
        select(_d.event_seq)
        .where(_d.endpoint_id == endpoint_id, _d.due_at.is_not(None))
        .limit(PENDING_MAX)
        .subquery()
    )
    return connection.execute(select(func.count()).select_from(some)).scalar_one()


def claim(
    connection: Connection, endpoint_id: str, now: datetime, lease_until: datetime, limit: int
) -> Sequence[ClaimedDelivery]:
    """Take deliveries that are due, the oldest first; no other process gets them."""
    own = _d.endpoint_id == endpoint_id
    due = (
        select(_d.event_seq)
        .where(own, _d.due_at <= now)
        .order_by(_d.due_at, _d.event_seq)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    taken = connection.execute(
        update(webhook_deliveries)
        .where(own, _d.event_seq.in_(due))
        .values(attempts=_d.attempts + 1, step=_d.step + 1, due_at=lease_until)
        .returning(_d.event_seq, _d.attempts, _d.step)
    ).all()
    if not taken:
        return []
    numbers = {row.event_seq: (row.attempts, row.step) for row in taken}
    rows = connection.execute(select(*EVENT_COLUMNS).where(events.c.seq.in_(numbers)))
    claimed = [
        ClaimedDelivery(endpoint_id, to_event(row), *numbers[row.seq])
        for row in rows
        if numbers[row.seq][1] <= len(SCHEDULE)
    ]
    # The process died during the last attempt, or the event is no longer kept.
    ended = numbers.keys() - {c.event.position.seq for c in claimed}
    if ended:
        connection.execute(
            update(webhook_deliveries)
            .where(own, _d.event_seq.in_(ended))
            .values(status=DeliveryStatus.FAILED, due_at=None)
        )
    return sorted(claimed, key=lambda c: c.event.position)


def finish(connection: Connection, items: Sequence[FinishedDelivery]) -> Sequence[None]:
    """Write the results of claimed deliveries: a batched act."""
    succeeded: list[dict[str, object]] = []
    failed: list[dict[str, object]] = []
    released: list[dict[str, object]] = []
    for item in items:
        endpoint_id, event, number, _ = item.claimed
        key: dict[str, object] = {"endpoint": endpoint_id, "seq": event.position.seq}
        key["number"] = number
        due = {"new_due_at": item.due_at}
        if item.attempt is None:
            released.append(key | due)
        elif item.status is DeliveryStatus.SUCCEEDED:
            succeeded.append(key)
        else:
            failed.append(key | due | {"new_status": item.status})
    for statement, rows in (
        (_SUCCEEDED, succeeded),
        (_FAILED, failed),
        (_RELEASED, released),
    ):
        if rows:
            connection.execute(statement, rows)
    attempts = [
        (
            item.claimed.endpoint_id,
            item.claimed.event.position.seq,
            item.attempt.number,
            to_ms(item.attempt.at),
            item.attempt.duration_ms,
            item.attempt.outcome.value,
            item.attempt.status,
        )
        for item in items
        if item.attempt is not None
    ]
    if attempts:
        _insert_attempts(connection, attempts)
    return [None] * len(items)


def list_deliveries(
    connection: Connection,
    endpoint_id: str,
    status: DeliveryStatus | None,
    before_seq: int | None,
    limit: int,
) -> Sequence[Delivery]:
    """The deliveries to an endpoint with their attempts, the newest events first."""
    statement = (
        select(
            _d.status.label("delivery_status"),
            _d.created_at.label("delivered_from"),
            _d.due_at,
            *EVENT_COLUMNS,
        )
        .join_from(webhook_deliveries, events, events.c.seq == _d.event_seq)
        .where(_d.endpoint_id == endpoint_id)
        .order_by(_d.event_seq.desc())
        .limit(limit)
    )
    if status is not None:
        statement = statement.where(_d.status == status)
    if before_seq is not None:
        statement = statement.where(_d.event_seq < before_seq)
    rows = connection.execute(statement).all()
    made: dict[int, list[DeliveryAttempt]] = {row.seq: [] for row in rows}
    if made:
        for row in connection.execute(
            select(webhook_attempts)
            .where(
                webhook_attempts.c.endpoint_id == endpoint_id,
                webhook_attempts.c.event_seq.in_(made),
            )
            .order_by(webhook_attempts.c.number)
        ):
            made[row.event_seq].append(_attempt(row))
    return [_delivery(endpoint_id, row, made[row.seq]) for row in rows]


def restart_delivery(connection: Connection, endpoint_id: str, seq: int, now: datetime) -> None:
    """Begin the schedule of a delivery again, or make the delivery."""
    fresh = _fresh(now)
    own = and_(_d.endpoint_id == endpoint_id, _d.event_seq == seq)
    # With a new number, the result of an attempt that has begun does not end this.
    again = update(webhook_deliveries).where(own).values(fresh).values(attempts=_d.attempts + 1)
    if not connection.execute(again).rowcount:
        key = {"endpoint_id": endpoint_id, "event_seq": seq, "attempts": 0}
        connection.execute(insert(webhook_deliveries), key | fresh)


def _delete_old_deliveries(
    connection: Connection, endpoint_id: str, *, tried_since: datetime, kept: datetime, limit: int
) -> int:
    own = _d.endpoint_id == endpoint_id
    too_long = (
        select(_d.event_seq)
        .where(own, _d.due_at.is_not(None), _d.created_at < tried_since)
        .order_by(_d.due_at)
        .limit(limit)
    )
    connection.execute(
        update(webhook_deliveries)
        .where(own, _d.event_seq.in_(too_long))
        .values(status=DeliveryStatus.FAILED, due_at=None)
    )
    # Only the oldest are read: else all would be, whenever there is nothing to delete.
    oldest = (
        select(_d.event_seq, _d.due_at, _d.created_at)
        .where(own)
        .order_by(_d.event_seq)
        .limit(limit)
        .subquery()
    )
    old = select(oldest.c.event_seq).where(oldest.c.due_at.is_(None), oldest.c.created_at < kept)
    seqs = connection.execute(old).scalars().all()
    if seqs:
        connection.execute(
            delete(webhook_attempts).where(
                webhook_attempts.c.endpoint_id == endpoint_id,
                webhook_attempts.c.event_seq.in_(seqs),
            )
        )
        connection.execute(delete(webhook_deliveries).where(own, _d.event_seq.in_(seqs)))
    return len(seqs)


def delete_old(
    connection: Connection,
    *,
    events_before: datetime,
    deliveries_before: datetime,
    tried_since: datetime,
    limit: int,
) -> int:
    """Delete events and finished deliveries from before these times.

    What has been attempted since before `tried_since` is ended. At most `limit` rows of each kind;
    gives the largest of the numbers.
    """
    largest = 0
    for endpoint_id, deleted_at in connection.execute(
        select(webhook_endpoints.c.id, webhook_endpoints.c.deleted_at)
    ).all():
        kept = deliveries_before if deleted_at is None else tried_since
        number = _delete_old_deliveries(
            connection, endpoint_id, tried_since=tried_since, kept=kept, limit=limit
        )
        largest = max(largest, number)
        if deleted_at is not None and deleted_at < tried_since and not number:
            connection.execute(
                delete(webhook_endpoints).where(webhook_endpoints.c.id == endpoint_id)
            )
    return max(largest, delete_old_events(connection, events_before, limit))


def _attempt(row: Row[*tuple[Any, ...]]) -> DeliveryAttempt:
    return DeliveryAttempt(
        number=row.number,
        at=row.at,
        duration_ms=row.duration_ms,
        outcome=Outcome(row.outcome),
        status=row.status,
    )


def _delivery(
    endpoint_id: str, row: Row[*tuple[Any, ...]], attempts: Sequence[DeliveryAttempt]
) -> Delivery:
    return Delivery(
        endpoint_id=endpoint_id,
        event=to_event(row),
        status=DeliveryStatus(row.delivery_status),
        created_at=row.delivered_from,
        next_attempt_at=row.due_at,
        attempts=tuple(attempts),
    )
