"""Webhook deliveries: made from the events, claimed with a lease, and written down.

A delivery is due at a time. Claiming it moves that time to the end of a lease, so a process that
dies leaves nothing behind but a delivery that is due again; the attempt is counted when it is
claimed, so that even dying again and again comes to an end.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

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

from countersign.access.idempotency import IdempotencyEntry, keep_answers
from countersign.db.bulk import BulkInsert
from countersign.db.database import Database
from countersign.db.tables import (
    events,
    webhook_attempts,
    webhook_deliveries,
    webhook_endpoints,
)
from countersign.errors import CountersignError, NotFound, WebhookEndpointDisabled
from countersign.events.model import Event, EventType, Position
from countersign.events.sql import EVENT_COLUMNS, POSITION, after, settled, to_event
from countersign.instant import to_ms
from countersign.webhooks.model import (
    SCHEDULE,
    Attempt,
    Claimed,
    Delivery,
    DeliveryQuery,
    DeliveryStatus,
    Disabled,
    Finished,
    Outcome,
    Waiting,
    WebhookEndpoint,
)
from countersign.webhooks.sql import disable, endpoints_where, refused

PENDING_MAX: Final = 20_000
"""Deliveries of one endpoint that wait; what comes after them waits as an event."""

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
    # What a process writes whose lease was over, and who lost the delivery to another, is ignored.
    _d.attempts == bindparam("number"),
)
_SUCCEEDED: Final = (
    update(webhook_deliveries).where(_OWN).values(status=DeliveryStatus.SUCCEEDED, due_at=None)
)
# One that was stopped meanwhile stays so.
_FAILED: Final = (
    update(webhook_deliveries)
    .where(_OWN, _d.due_at.is_not(None))
    .values(status=bindparam("new_status"), due_at=bindparam("new_due_at"))
)
_GIVEN_BACK: Final = (
    update(webhook_deliveries)
    .where(_OWN, _d.due_at.is_not(None))
    .values(step=_d.step - 1, due_at=bindparam("new_due_at"))
)


class Deliveries:
    """See `ports.DeliveryStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def waiting(self, now: datetime) -> Sequence[Waiting]:
        """The endpoints for which there is something to do."""
        return await self._database.scan(_waiting, now)

    async def fan_out(self, endpoint: WebhookEndpoint, now: datetime, limit: int) -> int:
        """Make deliveries of the next events; gives how many events were gone through."""
        return await self._database.write(_fan_out, (endpoint.id, now, limit))

    async def claim(
        self, endpoint: WebhookEndpoint, now: datetime, lease_until: datetime, limit: int
    ) -> Sequence[Claimed]:
        """Take deliveries that are due, the oldest first; no other process gets them."""
        return await self._database.write(_claim, (endpoint.id, now, lease_until, limit))

    async def finish(self, finished: Finished) -> None:
        """Write down what came of a claimed delivery."""
        await self._database.write_batched(_finish, finished)

    async def disable(self, endpoint: WebhookEndpoint, reason: Disabled, now: datetime) -> None:
        """Send nothing more to an endpoint, unless its address has changed since it was read."""
        await self._database.write(_disable, (endpoint, reason, now))

    async def find(self, query: DeliveryQuery) -> Sequence[Delivery]:
        """The deliveries to an endpoint, the newest events first."""
        return await self._database.scan(_find, query)

    async def resend(
        self,
        endpoint: WebhookEndpoint,
        event: Event,
        now: datetime,
        kept: IdempotencyEntry | None,
    ) -> None:
        """Begin the schedule of a delivery again, or make the delivery."""
        await self._database.write(_resend, (endpoint, event.position.seq, now, kept))


def _waiting(connection: Connection, now: datetime) -> Sequence[Waiting]:
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
        Waiting(endpoint, *found[endpoint.id])
        for endpoint in endpoints_where(connection, table.id.in_(found))
    ]


def _fan_out(connection: Connection, item: tuple[str, datetime, int]) -> int:
    endpoint_id, now, limit = item
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
    # After going back or resending, some are there already.
    own = and_(_d.endpoint_id == endpoint_id, _d.event_seq.in_(wanted))
    there = set(connection.execute(select(_d.event_seq).where(own)).scalars()) if wanted else set()
    if there and row.recovered_at is not None:
        ended = _d.status.in_((DeliveryStatus.FAILED, DeliveryStatus.STOPPED))
        again = update(webhook_deliveries).where(own, ended)
        connection.execute(
            again.values(status=DeliveryStatus.PENDING, step=0, created_at=now, due_at=now)
        )
    new = [
        {
            "endpoint_id": endpoint_id,
            "event_seq": seq,
            "status": DeliveryStatus.PENDING,
            "attempts": 0,
            "step": 0,
            "created_at": now,
            "due_at": now,
        }
        for seq in wanted
        if seq not in there
    ]
    if new:
        connection.execute(insert(webhook_deliveries), new)
    connection.execute(
        update(webhook_endpoints)
        .where(table.id == endpoint_id)
        .values(cursor_tx=found[-1].tx, cursor_seq=found[-1].seq)
    )
    return len(found)


def _pending(connection: Connection, endpoint_id: str) -> int:
    some = (
        select(_d.event_seq)
        .where(_d.endpoint_id == endpoint_id, _d.due_at.is_not(None))
        .limit(PENDING_MAX)
        .subquery()
    )
    return connection.execute(select(func.count()).select_from(some)).scalar_one()


def _claim(connection: Connection, item: tuple[str, datetime, datetime, int]) -> Sequence[Claimed]:
    endpoint_id, now, lease_until, limit = item
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
        Claimed(endpoint_id, to_event(row), *numbers[row.seq])
        for row in rows
        if numbers[row.seq][1] <= len(SCHEDULE)
    ]
    # Whoever made the last attempt did not live to tell; or the event is no longer kept.
    ended = numbers.keys() - {c.event.position.seq for c in claimed}
    if ended:
        connection.execute(
            update(webhook_deliveries)
            .where(own, _d.event_seq.in_(ended))
            .values(status=DeliveryStatus.FAILED, due_at=None)
        )
    return sorted(claimed, key=lambda c: c.event.position)


def _finish(connection: Connection, items: Sequence[Finished]) -> Sequence[CountersignError | None]:
    succeeded: list[dict[str, object]] = []
    failed: list[dict[str, object]] = []
    given_back: list[dict[str, object]] = []
    for item in items:
        endpoint_id, event, number, _ = item.claimed
        key: dict[str, object] = {
            "endpoint": endpoint_id,
            "seq": event.position.seq,
            "number": number,
        }
        due = {"new_due_at": item.due_at}
        if item.attempt is None:
            given_back.append(key | due)
        elif item.status is DeliveryStatus.SUCCEEDED:
            succeeded.append(key)
        else:
            failed.append(key | due | {"new_status": item.status})
    for statement, rows in (
        (_SUCCEEDED, succeeded),
        (_FAILED, failed),
        (_GIVEN_BACK, given_back),
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


def _disable(connection: Connection, item: tuple[WebhookEndpoint, Disabled, datetime]) -> None:
    endpoint, reason, now = item
    disable(connection, endpoint, reason, now)


def _find(connection: Connection, query: DeliveryQuery) -> Sequence[Delivery]:
    statement = (
        select(
            _d.status.label("delivery_status"),
            _d.created_at.label("delivered_from"),
            _d.due_at,
            *EVENT_COLUMNS,
        )
        .join_from(webhook_deliveries, events, events.c.seq == _d.event_seq)
        .where(_d.endpoint_id == query.endpoint_id)
        .order_by(_d.event_seq.desc())
        .limit(query.limit)
    )
    if query.status is not None:
        statement = statement.where(_d.status == query.status)
    if query.before_seq is not None:
        statement = statement.where(_d.event_seq < query.before_seq)
    rows = connection.execute(statement).all()
    made: dict[int, list[Attempt]] = {row.seq: [] for row in rows}
    if made:
        for row in connection.execute(
            select(webhook_attempts)
            .where(
                webhook_attempts.c.endpoint_id == query.endpoint_id,
                webhook_attempts.c.event_seq.in_(made),
            )
            .order_by(webhook_attempts.c.number)
        ):
            made[row.event_seq].append(_attempt(row))
    return [_delivery(query.endpoint_id, row, made[row.seq]) for row in rows]


def _resend(
    connection: Connection, item: tuple[WebhookEndpoint, int, datetime, IdempotencyEntry | None]
) -> NotFound | WebhookEndpointDisabled | None:
    endpoint, seq, now, kept = item
    refusal = refused(connection, endpoint)
    if refusal is not None:
        return refusal
    fresh = {"status": DeliveryStatus.PENDING, "step": 0, "created_at": now, "due_at": now}
    own = and_(_d.endpoint_id == endpoint.id, _d.event_seq == seq)
    # With a new number, what comes of an attempt that is under way does not end this.
    again = update(webhook_deliveries).where(own).values(fresh).values(attempts=_d.attempts + 1)
    if not connection.execute(again).rowcount:
        key = {"endpoint_id": endpoint.id, "event_seq": seq, "attempts": 0}
        connection.execute(insert(webhook_deliveries), key | fresh)
    keep_answers(connection, [kept] if kept else [])
    return None


def delete_old_deliveries(
    connection: Connection, endpoint_id: str, *, tried_since: datetime, kept: datetime, limit: int
) -> int:
    """End what has been tried since before `tried_since`, delete what was made before `kept`.

    At most `limit` of each; gives how many were deleted.
    """
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
    # Only the oldest are looked at: else all would be, whenever there is nothing to delete.
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


def delete_old(connection: Connection, item: tuple[datetime, datetime, datetime, int]) -> int:
    """An act: delete what has served its time, at most `limit` rows of each kind.

    Takes the times before which events are deleted, before which finished deliveries are, and
    before which unfinished ones must have begun to be ended; gives the largest of the numbers.
    """
    events_kept, deliveries_kept, tried_since, limit = item
    largest = 0
    for endpoint_id, deleted_at in connection.execute(
        select(webhook_endpoints.c.id, webhook_endpoints.c.deleted_at)
    ).all():
        kept = deliveries_kept if deleted_at is None else tried_since
        number = delete_old_deliveries(
            connection, endpoint_id, tried_since=tried_since, kept=kept, limit=limit
        )
        largest = max(largest, number)
        if deleted_at is not None and deleted_at < tried_since and not number:
            connection.execute(
                delete(webhook_endpoints).where(webhook_endpoints.c.id == endpoint_id)
            )
    # The last row stays: on the embedded database it is where the numbers go on from.
    first = select(events.c.seq).order_by(events.c.seq).limit(limit)
    gone = connection.execute(
        delete(events).where(
            events.c.seq.in_(first),
            events.c.at < events_kept,
            events.c.seq < select(func.max(events.c.seq)).scalar_subquery(),
        )
    ).rowcount
    return max(largest, gone)


def _attempt(row: Row[*tuple[Any, ...]]) -> Attempt:
    return Attempt(
        number=row.number,
        at=row.at,
        duration_ms=row.duration_ms,
        outcome=Outcome(row.outcome),
        status=row.status,
    )


def _delivery(
    endpoint_id: str, row: Row[*tuple[Any, ...]], attempts: Sequence[Attempt]
) -> Delivery:
    return Delivery(
        endpoint_id=endpoint_id,
        event=to_event(row),
        status=DeliveryStatus(row.delivery_status),
        created_at=row.delivered_from,
        next_attempt_at=row.due_at,
        attempts=tuple(attempts),
    )
