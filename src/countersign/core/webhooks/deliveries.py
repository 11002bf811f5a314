"""Webhook deliveries: made from the events, claimed with a lease, and finished.

A delivery is due at a time. Claiming it moves that time to the end of a lease, so that the delivery
is due again if the process dies; the attempt is counted at the claim, so that even repeated deaths
come to an end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    Update,
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

from countersign.base.db.statements import BulkInsert
from countersign.base.db.tables import (
    accounts,
    events,
    webhook_attempts,
    webhook_deliveries,
    webhook_endpoints,
)
from countersign.base.errors import (
    InvalidRequest,
    NotFound,
    RateLimited,
    Refusal,
    WebhookEndpointDisabled,
)
from countersign.base.http.schemas import Page, page_of, view
from countersign.base.values import to_ms, to_the_second
from countersign.core.access.reach import AccountReach
from countersign.core.events.model import KEPT as EVENTS_KEPT
from countersign.core.events.model import Position
from countersign.core.events.routes import Event, event_view
from countersign.core.events.sql import (
    POSITION,
    delete_old_events,
    find_event,
    holds,
    last_before,
    next_events,
    numbered,
    settled,
)
from countersign.core.webhooks.endpoints import (
    find_endpoints,
    lock_endpoint,
    set_columns,
)
from countersign.core.webhooks.model import (
    AGE_MAX,
    LOG_KEPT,
    RECOVERIES_MAX,
    RECOVERY_WAIT,
    RESPONSES_KEPT,
    SCHEDULE,
    ClaimedDelivery,
    DeliveryStatus,
    Endpoint,
    Outcome,
)
from countersign.core.webhooks.room import Webhooks
from countersign.core.webhooks.schemas import (
    DeliveriesQuery,
    WebhookAttempt,
    WebhookDelivery,
    WebhookEndpoint,
    endpoint_body,
)

_FEW_RECOVERIES: Final = "An account can begin at most four recoveries per minute."
_ONE_RECOVERY: Final = "An endpoint can have one recovery at a time, and at most one per minute."
PENDING_MAX: Final = 20_000
"""Waiting deliveries of one endpoint; later events wait until there is room."""

_d: Final = webhook_deliveries.c
_a: Final = webhook_attempts.c
_e: Final = webhook_endpoints.c
_enabled: Final = and_(_e.disabled_at.is_(None), _e.deleted_at.is_(None))
_insert_attempts: Final = BulkInsert(
    webhook_attempts, "endpoint_id", "event_seq", "number", "at", "duration_ms", "outcome", "status"
)
_OWN: Final = and_(
    _d.endpoint_id == bindparam("endpoint"),
    _d.event_seq == bindparam("seq"),
    # A result is ignored if the lease has expired and another process has claimed the delivery.
    _d.attempts == bindparam("number"),
)
_DONE: Final = {"status": DeliveryStatus.SUCCEEDED, "due_at": None, "response": None}
_SUCCEEDED: Final = update(webhook_deliveries).where(_OWN).values(_DONE)
# A stopped delivery stays stopped.
_FAILED: Final = update(webhook_deliveries).where(_OWN, _d.due_at.is_not(None))
_RELEASED: Final = (
    update(webhook_deliveries)
    .where(_OWN, _d.due_at.is_not(None))
    .values(step=_d.step - 1, due_at=bindparam("new_due_at"))
)


class FinishedDelivery(NamedTuple):
    """A claimed delivery after its attempt.

    Without an attempt it is released as if it had not been claimed.
    """

    claimed: ClaimedDelivery
    attempt: WebhookAttempt | None
    status: DeliveryStatus
    due_at: datetime | None
    response: bytes | None = None


def find_work(connection: Connection, now: datetime) -> Sequence[tuple[Endpoint, bool, bool]]:
    """The endpoints with work to do.

    With each: whether there are events without deliveries, and the deliveries to attempt.
    """
    engine = connection.dialect.name
    if engine not in _WORK:
        _WORK[engine] = _work(settled(connection))
    flags = connection.execute(_WORK[engine], {"now": now})
    found = {id_: (bool(is_behind), bool(is_due)) for id_, is_behind, is_due in flags}
    busy = [id_ for id_, work in found.items() if any(work)]
    if not busy:
        return []
    return [(e, *found[e.id]) for e in find_endpoints(connection, _e.id.in_(busy))]


# Asked for all the time: to build it takes longer than to run it. Each engine has its own.
_WORK: Final[dict[str, Select[Any]]] = {}


def _work(is_settled: ColumnElement[bool]) -> Select[Any]:
    behind = exists().where(
        events.c.account_id == _e.account_id,
        events.c.mode == _e.mode,
        tuple_(_e.cursor_tx, _e.cursor_seq) < POSITION,
        is_settled,
    )
    due = exists().where(_d.endpoint_id == _e.id, _d.due_at <= bindparam("now"))
    return select(_e.id, behind, due).where(_enabled)


def fan_out(connection: Connection, endpoint_id: str, now: datetime, limit: int) -> int:
    """Make deliveries of the next events; returns how many events were processed."""
    row = connection.execute(
        select(_e.account_id, _e.mode, _e.cursor_tx, _e.cursor_seq, _e.recovered_at)
        .where(_e.id == endpoint_id, _enabled)
        .with_for_update(skip_locked=True)
    ).one_or_none()
    if row is None or _pending(connection, endpoint_id) >= PENDING_MAX:
        return 0
    cursor = Position(row.cursor_tx, row.cursor_seq)
    found = next_events(connection, AccountReach(row.account_id, row.mode), cursor, limit)
    if not found:
        return 0
    (endpoint,) = find_endpoints(connection, _e.id == endpoint_id)
    wanted = [event.position.seq for event in found if endpoint.wants(event.type)]
    _make_deliveries(connection, endpoint_id, wanted, now, again=row.recovered_at is not None)
    last = found[-1].position
    set_columns(connection, endpoint_id, {"cursor_tx": last.tx, "cursor_seq": last.seq})
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
        connection.execute(update(webhook_deliveries).where(own, ended).values(_fresh(now)))
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
    rows = connection.execute(
        select(_d.event_seq, events)
        .join_from(webhook_deliveries, events, holds(_d.event_seq))
        .where(own, _d.event_seq.in_(numbers))
    )
    claimed = [
        ClaimedDelivery(endpoint_id, numbered(row, row.event_seq), *numbers[row.event_seq])
        for row in rows
        if numbers[row.event_seq][1] <= len(SCHEDULE)
    ]
    # The process died during the last attempt, or the event is no longer kept.
    ended = numbers.keys() - {c.event.position.seq for c in claimed}
    if ended:
        failed = update(webhook_deliveries).where(own, _d.event_seq.in_(ended))
        connection.execute(failed.values(status=DeliveryStatus.FAILED, due_at=None))
    return sorted(claimed, key=lambda c: c.event.position)


def finish(connection: Connection, items: Sequence[FinishedDelivery]) -> Sequence[None]:
    """Write the results of claimed deliveries: a batched act."""
    rows: dict[Update, list[dict[str, object]]] = {_SUCCEEDED: [], _FAILED: [], _RELEASED: []}
    attempts: list[tuple[object, ...]] = []
    for (endpoint_id, event, number, _), attempt, status, due_at, response in items:
        own = (endpoint_id, event.position.seq, number)
        key: dict[str, object] = dict(zip(("endpoint", "seq", "number"), own, strict=True))
        if attempt is None:
            rows[_RELEASED].append(key | {"new_due_at": due_at})
            continue
        if status is DeliveryStatus.SUCCEEDED:
            rows[_SUCCEEDED].append(key)
        else:
            rows[_FAILED].append(key | {"status": status, "due_at": due_at, "response": response})
        at, outcome = to_ms(attempt.attempted_at), attempt.outcome.value
        attempts.append((*own, at, attempt.duration_ms, outcome, attempt.http_status))
    for statement, own_rows in rows.items():
        if own_rows:
            connection.execute(statement, own_rows)
    if attempts:
        _insert_attempts(connection, attempts)
    return [None] * len(items)


def recover(
    connection: Connection, webhooks: Webhooks, endpoint: Endpoint, since: datetime
) -> WebhookEndpoint | Refusal:
    """Deliver the events since this time again that were not delivered.

    The cursor moves back to this time: processing the events again repeats deliveries that have not
    succeeded. A refusal is returned: raised in a batch it costs others.
    """
    now = webhooks.now
    if not now - LOG_KEPT <= since <= now:
        return InvalidRequest(f"Expected a time within the last {LOG_KEPT.days} days.")
    row = lock_endpoint(connection, endpoint)
    if row.disabled_at is not None:
        return WebhookEndpointDisabled()
    wait = _wait_of_account(connection, endpoint, now)
    if wait > timedelta(0):
        return RateLimited(_FEW_RECOVERIES, retry_after=math.ceil(wait.total_seconds()))
    wait = _wait_to_recover(connection, row, now)
    if wait > timedelta(0):
        return RateLimited(_ONE_RECOVERY, retry_after=math.ceil(wait.total_seconds()))
    start = last_before(connection, endpoint.reach, since)
    if start < (row.cursor_tx, row.cursor_seq):
        cursor = {"cursor_tx": start.tx, "cursor_seq": start.seq}
        set_columns(connection, endpoint.id, cursor | {"recovered_at": now})
    return endpoint_body(endpoint)


def _wait_of_account(connection: Connection, endpoint: Endpoint, now: datetime) -> timedelta:
    """How long until the account may recover another endpoint: a new one costs nothing."""
    # Until the commit no other transaction begins one.
    owner = select(accounts.c.id).where(accounts.c.id == endpoint.account_id)
    connection.execute(owner.with_for_update())
    of_account = endpoint.reach.rows(webhook_endpoints)
    lately = select(_e.recovered_at).where(of_account, _e.recovered_at > now - RECOVERY_WAIT)
    times = sorted(connection.execute(lately.where(_e.id != endpoint.id)).scalars())
    if len(times) < RECOVERIES_MAX:
        return timedelta(0)
    wait: timedelta = times[-RECOVERIES_MAX] + RECOVERY_WAIT - now
    return wait


def _wait_to_recover(
    connection: Connection, row: Row[*tuple[Any, ...]], now: datetime
) -> timedelta:
    """How long until the endpoint may be recovered again, as far as that is known."""
    if row.recovered_at is None:
        return timedelta(0)
    cursor = Position(row.cursor_tx, row.cursor_seq)
    next_ = next_events(connection, AccountReach(row.account_id, row.mode), cursor, 1)
    if next_ and next_[0].created_at <= row.recovered_at:
        return RECOVERY_WAIT  # the last one has not ended
    wait: timedelta = row.recovered_at + RECOVERY_WAIT - now
    return wait


def resend(
    connection: Connection, webhooks: Webhooks, endpoint: Endpoint, event_id: str
) -> Event | Refusal:
    """Deliver an event again, whatever the result was, with the same webhook-id."""
    found = find_event(connection, webhooks.events, endpoint.reach, event_id)
    if found is None:
        return NotFound()
    if lock_endpoint(connection, endpoint).disabled_at is not None:
        return WebhookEndpointDisabled()
    key = {"endpoint_id": endpoint.id, "event_seq": found.position.seq}
    own = and_(_d.endpoint_id == endpoint.id, _d.event_seq == key["event_seq"])
    fresh = _fresh(webhooks.now)
    # With a new number, the result of an attempt that has begun does not end this.
    again = update(webhook_deliveries).where(own).values(fresh).values(attempts=_d.attempts + 1)
    if not connection.execute(again).rowcount:
        connection.execute(insert(webhook_deliveries), key | {"attempts": 0} | fresh)
    return event_view(webhooks.events.ids, found)


def list_deliveries(
    connection: Connection, webhooks: Webhooks, endpoint: Endpoint, query: DeliveriesQuery
) -> tuple[Page[WebhookDelivery], Mapping[str, bytes | None]]:
    """A page of the deliveries with their attempts, the newest events first.

    With it the sealed responses, by the identifier of the event.
    """
    statement = (
        select(_d.status.label("delivery_status"), _d.due_at, _d.event_seq, _d.response, events)
        .join_from(webhook_deliveries, events, holds(_d.event_seq))
        .where(_d.endpoint_id == endpoint.id)
        .order_by(_d.event_seq.desc())
        .limit(query.limit + 1)
    )
    if query.status is not None:
        statement = statement.where(_d.status == query.status)
    if query.after is not None:
        last = find_event(connection, webhooks.events, endpoint.reach, query.after)
        if last is None:
            raise InvalidRequest(
                "The query parameter after must be a next_cursor returned by this list."
            )
        statement = statement.where(_d.event_seq < last.position.seq)
    rows = connection.execute(statement).all()
    made: dict[int, list[WebhookAttempt]] = {row.event_seq: [] for row in rows}
    own = and_(_a.endpoint_id == endpoint.id, _a.event_seq.in_(made))
    attempts = select(webhook_attempts).where(own).order_by(_a.number)
    for row in connection.execute(attempts) if made else ():
        names = {"attempted_at": row.at, "outcome": Outcome(row.outcome), "http_status": row.status}
        made[row.event_seq].append(view(WebhookAttempt, row, **names))
    found = [
        WebhookDelivery(
            event=event_view(webhooks.events.ids, numbered(row, row.event_seq)),
            status=DeliveryStatus(row.delivery_status),
            next_attempt_at=to_the_second(row.due_at),
            attempts=made[row.event_seq],
            response=None,
        )
        for row in rows
    ]
    sealed = {one.event.id: row.response for one, row in zip(found, rows, strict=True)}
    return page_of(found, query.limit, lambda delivery: delivery.event.id), sealed


def _delete_old_deliveries(
    connection: Connection, endpoint_id: str, tried_since: datetime, kept: datetime, limit: int
) -> int:
    own = _d.endpoint_id == endpoint_id
    too_long = select(_d.event_seq).where(own, _d.due_at.is_not(None), _d.created_at < tried_since)
    some = _d.event_seq.in_(too_long.order_by(_d.due_at).limit(limit))
    ended = update(webhook_deliveries).where(own, some)
    connection.execute(ended.values(status=DeliveryStatus.FAILED, due_at=None))
    # Only the oldest are read: otherwise all would be, whenever there is nothing to delete.
    found = select(_d.event_seq, _d.due_at, _d.created_at).where(own).order_by(_d.event_seq)
    oldest = found.limit(limit).subquery()
    old = select(oldest.c.event_seq).where(oldest.c.due_at.is_(None), oldest.c.created_at < kept)
    seqs = connection.execute(old).scalars().all()
    if seqs:
        tried = delete(webhook_attempts).where(_a.endpoint_id == endpoint_id)
        connection.execute(tried.where(_a.event_seq.in_(seqs)))
        connection.execute(delete(webhook_deliveries).where(own, _d.event_seq.in_(seqs)))
    return len(seqs)


def delete_old(connection: Connection, now: datetime, limit: int) -> int:
    """Delete events, finished deliveries and their responses that have served their time.

    Deliveries that were tried for too long are ended. At most `limit` rows of each kind; returns
    the largest of the numbers.
    """
    largest, tried_since = 0, now - AGE_MAX
    answered = and_(_d.response.is_not(None), _d.created_at < now - RESPONSES_KEPT)
    connection.execute(update(webhook_deliveries).where(answered).values(response=None))
    known = select(webhook_endpoints.c.id, webhook_endpoints.c.deleted_at)
    for endpoint_id, deleted_at in connection.execute(known).all():
        kept = now - LOG_KEPT if deleted_at is None else tried_since
        number = _delete_old_deliveries(connection, endpoint_id, tried_since, kept, limit)
        largest = max(largest, number)
        if deleted_at is not None and deleted_at < tried_since and not number:
            gone = delete(webhook_endpoints).where(webhook_endpoints.c.id == endpoint_id)
            connection.execute(gone)
    return max(largest, delete_old_events(connection, now - EVENTS_KEPT, limit))
