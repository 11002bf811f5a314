"""Webhook endpoints, as a vendor or an operator manages them."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from sqlalchemy import Connection

from countersign.access.idempotency import IdempotencyEntry, keep_answers
from countersign.errors import (
    CountersignError,
    InvalidRequest,
    NotFound,
    TooManyWebhookEndpoints,
)
from countersign.events.model import EventView
from countersign.events.read_events import get_event
from countersign.events.routes import event_body
from countersign.http.reply import encode
from countersign.ids import WEBHOOK_ENDPOINT, is_id, timed_id
from countersign.instant import from_ns
from countersign.mode import Mode
from countersign.webhooks import deliveries_sql
from countersign.webhooks import endpoints_sql as sql
from countersign.webhooks.model import (
    DESCRIPTION_LENGTH_MAX,
    ENDPOINTS_MAX,
    LOG_KEPT,
    OVERLAP_MAX,
    Delivery,
    DeliveryStatus,
    Endpoint,
    EndpointChanges,
    EndpointSecret,
    EndpointView,
    parse_target,
)
from countersign.webhooks.room import Webhooks
from countersign.webhooks.schemas import render_endpoint

_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})

Entry: TypeAlias = Callable[[bytes], IdempotencyEntry] | None
"""Makes what is kept of a response under its Idempotency-Key, if there is one."""


async def create_endpoint(
    webhooks: Webhooks, account_id: str, mode: Mode, changes: EndpointChanges, entry: Entry = None
) -> EndpointView:
    """A new endpoint; it gets the events from now on.

    Raises:
        InvalidRequest: the URL or the description is not valid.
        TooManyWebhookEndpoints: the account has the maximum number.
    """
    _check(webhooks, replace(changes, url=changes.url or ""))
    time_ns = webhooks.access.clock.time_ns()
    secret, shared = await webhooks.secrets.make(account_id)
    bare = Endpoint(
        id=timed_id(WEBHOOK_ENDPOINT, time_ns, webhooks.access.entropy(8)),
        account_id=account_id,
        mode=mode,
        url="",
        description="",
        event_types=None,
        created_at=from_ns(time_ns),
        disabled_at=None,
        disabled_reason=None,
        secrets=(secret,),
    )
    view = EndpointView(endpoint=changes.apply(bare, from_ns(time_ns)), secret=shared)
    await webhooks.access.database.write(_create, view, entry)
    return view


def _create(
    connection: Connection, view: EndpointView, entry: Entry
) -> TooManyWebhookEndpoints | None:
    endpoint = view.endpoint
    if sql.count_endpoints(connection, endpoint.account_id, endpoint.mode) >= ENDPOINTS_MAX:
        return TooManyWebhookEndpoints()
    sql.insert_endpoint(connection, endpoint)
    keep_response(connection, entry, render_endpoint(view))
    return None


async def get_endpoint(
    webhooks: Webhooks, account_id: str, mode: Mode, endpoint_id: str
) -> Endpoint:
    """One endpoint of an account.

    Raises:
        NotFound: there is none with this id in this account and mode.
    """
    endpoint = None
    if is_id(WEBHOOK_ENDPOINT, endpoint_id):
        endpoint = await webhooks.access.database.read(
            sql.find_endpoint, account_id, mode, endpoint_id
        )
    if endpoint is None:
        raise NotFound
    return endpoint


async def get_any_endpoint(webhooks: Webhooks, endpoint_id: str) -> Endpoint:
    """One endpoint of any account: for operators.

    Raises:
        NotFound: there is none with this id.
    """
    endpoint = await webhooks.access.database.read(sql.find_any_endpoint, endpoint_id)
    if endpoint is None:
        raise NotFound(f"The webhook endpoint {endpoint_id!r} was not found.")
    return endpoint


async def list_endpoints(
    webhooks: Webhooks, account_id: str, mode: Mode | None
) -> Sequence[Endpoint]:
    """The endpoints of an account, oldest first."""
    return await webhooks.access.database.scan(sql.list_endpoints, account_id, mode)


async def change_endpoint(
    webhooks: Webhooks, endpoint: Endpoint, changes: EndpointChanges, entry: Entry = None
) -> EndpointView:
    """Change an endpoint as it is now; running servers apply the change within seconds.

    Only what is given changes, whatever else has changed since `endpoint` was read. Disabling
    stops the deliveries. An enabled endpoint gets the events from now on; `recover` sends those
    that it missed.

    Raises:
        InvalidRequest: the URL or the description is not valid.
        NotFound: it was deleted.
    """
    _check(webhooks, changes)
    return await webhooks.access.database.write(_change, endpoint, changes, webhooks.now, entry)


def _change(
    connection: Connection,
    endpoint: Endpoint,
    changes: EndpointChanges,
    now: datetime,
    entry: Entry,
) -> EndpointView | NotFound:
    if sql.lock_endpoint(connection, endpoint) is None:
        return NotFound()
    before = sql.find_any_endpoint(connection, endpoint.id) or endpoint
    view = EndpointView(endpoint=changes.apply(before, now))
    sql.update_endpoint(connection, before, view.endpoint)
    keep_response(connection, entry, render_endpoint(view))
    return view


async def delete_endpoint(webhooks: Webhooks, endpoint: Endpoint) -> None:
    """Delete an endpoint with its secrets; its deliveries stop.

    Raises:
        NotFound: it was deleted already.
    """
    await webhooks.access.database.write(_delete, endpoint, webhooks.now)


def _delete(connection: Connection, endpoint: Endpoint, now: datetime) -> NotFound | None:
    if sql.lock_endpoint(connection, endpoint) is None:
        return NotFound()
    sql.delete_endpoint(connection, endpoint.id, now)
    return None


async def rotate_secret(
    webhooks: Webhooks, endpoint: Endpoint, overlap: timedelta, entry: Entry = None
) -> EndpointView:
    """Give it a new secret; the old ones sign, too, until the overlap ends.

    Raises:
        InvalidRequest: the overlap is longer than a week.
        NotFound: it was deleted.
    """
    if not timedelta(0) <= overlap <= OVERLAP_MAX:
        raise InvalidRequest(f"An overlap can be at most {OVERLAP_MAX.days} days.")
    secret, shared = await webhooks.secrets.make(endpoint.account_id)
    end = webhooks.now + overlap
    old = tuple(
        replace(s, expires_at=end) if s.expires_at is None or s.expires_at > end else s
        for s in endpoint.secrets
    )
    view = EndpointView(endpoint=replace(endpoint, secrets=(secret, *old)), secret=shared)
    await webhooks.access.database.write(_rotate, view, secret, end, entry)
    return view


def _rotate(
    connection: Connection,
    view: EndpointView,
    secret: EndpointSecret,
    old_expires_at: datetime,
    entry: Entry,
) -> NotFound | None:
    if sql.lock_endpoint(connection, view.endpoint) is None:
        return NotFound()
    sql.rotate_secret(connection, view.endpoint.id, secret, old_expires_at)
    keep_response(connection, entry, render_endpoint(view))
    return None


async def recover(
    webhooks: Webhooks, endpoint: Endpoint, since: datetime, entry: Entry = None
) -> EndpointView:
    """Deliver the events since this time again that were not delivered.

    Raises:
        InvalidRequest: `since` is in the future, or longer ago than deliveries are kept.
        WebhookEndpointDisabled: it has to be enabled first.
        RateLimited: the last recovery has not ended, or began less than a minute ago.
        NotFound: it was deleted.
    """
    now = webhooks.now
    if not now - LOG_KEPT <= since <= now:
        raise InvalidRequest(f"Expected a time within the last {LOG_KEPT.days} days.")
    view = EndpointView(endpoint=endpoint)
    await webhooks.access.database.write(_recover, view, since, now, entry)
    return view


def _recover(
    connection: Connection, view: EndpointView, since: datetime, now: datetime, entry: Entry
) -> CountersignError | None:
    row = sql.lock_enabled_endpoint(connection, view.endpoint)
    if isinstance(row, CountersignError):
        return row
    refusal = sql.start_recovery(connection, row, since, now)
    if refusal is None:
        keep_response(connection, entry, render_endpoint(view))
    return refusal


async def resend(
    webhooks: Webhooks, endpoint: Endpoint, event_id: str, entry: Entry = None
) -> EventView:
    """Deliver an event again, whatever the result was, with the same webhook-id.

    Raises:
        NotFound: there is no such event in the endpoint's account and mode.
        WebhookEndpointDisabled: it has to be enabled first.
    """
    found = await get_event(webhooks.events, endpoint.account_id, endpoint.mode, event_id)
    await webhooks.access.database.write(_resend, endpoint, found, webhooks.now, entry)
    return found


def _resend(
    connection: Connection, endpoint: Endpoint, view: EventView, now: datetime, entry: Entry
) -> CountersignError | None:
    row = sql.lock_enabled_endpoint(connection, endpoint)
    if isinstance(row, CountersignError):
        return row
    deliveries_sql.restart_delivery(connection, endpoint.id, view.event.position.seq, now)
    keep_response(connection, entry, encode(event_body(view)))
    return None


async def list_deliveries(
    webhooks: Webhooks,
    endpoint: Endpoint,
    *,
    status: DeliveryStatus | None = None,
    before: str | None = None,
    limit: int,
) -> tuple[Sequence[tuple[EventView, Delivery]], str | None]:
    """A page of the deliveries, the newest events first, and the next cursor.

    Raises:
        InvalidRequest: `before` is not the id of an event of this account and mode.
    """
    before_seq = None
    if before is not None:
        try:
            last = await get_event(webhooks.events, endpoint.account_id, endpoint.mode, before)
        except NotFound:
            msg = "The query parameter after must be a next_cursor returned by this list."
            raise InvalidRequest(msg) from None
        before_seq = last.event.position.seq
    deliveries = await webhooks.access.database.scan(
        deliveries_sql.list_deliveries, endpoint.id, status, before_seq, limit + 1
    )
    found = [(webhooks.events.ids.view(d.event), d) for d in deliveries]
    return found[:limit], found[limit - 1][0].id if len(found) > limit else None


def keep_response(connection: Connection, entry: Entry, body: bytes) -> None:
    """Keep the body of the response, if the request has an Idempotency-Key."""
    if entry is not None:
        keep_answers(connection, [entry(body)])


def _check(webhooks: Webhooks, changes: EndpointChanges) -> None:
    if changes.url is not None:
        try:
            parse_target(changes.url, private=webhooks.private)
        except ValueError as error:
            raise InvalidRequest(f"Expected {error} - at `$.url`.") from None
    if changes.description is not None and len(changes.description) > DESCRIPTION_LENGTH_MAX:
        msg = f"A description must have at most {DESCRIPTION_LENGTH_MAX} characters."
        raise InvalidRequest(msg)
    if any(unicodedata.category(char) in _UNSEEN for char in changes.description or ""):
        msg = "A description must not contain control or invisible characters - at `$.description`."
        raise InvalidRequest(msg)
