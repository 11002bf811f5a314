"""Webhook endpoints and their secrets, as a vendor or an operator manages them."""

from __future__ import annotations

import unicodedata
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    and_,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from countersign.base.db.statements import of_row
from countersign.base.db.tables import webhook_deliveries, webhook_endpoints, webhook_secrets
from countersign.base.errors import (
    AccountClosed,
    InvalidApiKey,
    InvalidRequest,
    NotFound,
    Refusal,
    TooManyWebhookEndpoints,
)
from countersign.base.values import WEBHOOK_ENDPOINT, from_ns, is_id, timed_id
from countersign.core.access.account import lock_account
from countersign.core.access.audit import Audit, AuditAction, write_audit
from countersign.core.access.reach import AccountReach, Reach
from countersign.core.events.model import EventType
from countersign.core.events.sql import end_of_events
from countersign.core.webhooks.model import (
    ENDPOINTS_MAX,
    SECRETS_MAX,
    DeliveryStatus,
    Disabled,
    Endpoint,
    EndpointSecret,
    SharedSecret,
    parse_target,
)
from countersign.core.webhooks.room import Webhooks
from countersign.core.webhooks.schemas import (
    DeletedWebhookEndpoint,
    NewWebhookEndpoint,
    WebhookEndpoint,
    WebhookEndpointChange,
    WebhookEndpointRequest,
    chosen,
    endpoint_body,
    with_secret,
)

_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_e: Final = webhook_endpoints.c
_s: Final = webhook_secrets.c


def create_endpoint(
    connection: Connection,
    webhooks: Webhooks,
    reach: AccountReach,
    wanted: WebhookEndpointRequest,
    made: tuple[EndpointSecret, SharedSecret],
    *,
    audit: Audit | None = None,
) -> NewWebhookEndpoint | Refusal:
    """A new endpoint with this secret; it gets the events from now on.

    As every act here, it is noted in `audit` if an operator does it, in the same transaction.
    """
    try:  # until the commit no other transaction adds one, or closes the account
        lock_account(connection, reach.account_id)
    except AccountClosed:
        if audit is None:  # a revoked key that a server has not noticed yet
            return InvalidApiKey()
        raise
    own = and_(reach.rows(webhook_endpoints), _e.deleted_at.is_(None))
    if connection.execute(select(func.count(_e.id)).where(own)).scalar_one() >= ENDPOINTS_MAX:
        return TooManyWebhookEndpoints()
    time_ns, (secret, shared) = webhooks.access.clock.time_ns(), made
    id_ = timed_id(WEBHOOK_ENDPOINT, time_ns, webhooks.access.entropy(8))
    row = _from_now_on(connection) | {"id": id_, "created_at": from_ns(time_ns)}
    row |= {"account_id": reach.account_id, "mode": reach.mode, "url": wanted.url}
    row |= {"description": wanted.description or ""}
    row |= {"event_types": _encoded(chosen(wanted.event_types))}
    connection.execute(insert(webhook_endpoints), row)
    _insert_secret(connection, id_, secret)
    of = {"account_id": reach.account_id, "mode": reach.mode.value}
    _note(connection, audit, AuditAction.WEBHOOK_ENDPOINT_CREATED, id_, **of)
    (endpoint,) = find_endpoints(connection, _e.id == id_)
    return with_secret(endpoint, shared)


def get_endpoint(connection: Connection, reach: Reach, endpoint_id: str) -> Endpoint:
    """One endpoint in reach; raises NotFound."""
    if is_id(WEBHOOK_ENDPOINT, endpoint_id):
        named = (_e.id == endpoint_id, reach.rows(webhook_endpoints))
        for found in find_endpoints(connection, *named):
            return found
    raise NotFound("There is no webhook endpoint with this id.")


def change_endpoint(
    connection: Connection,
    webhooks: Webhooks,
    endpoint: Endpoint,
    changes: WebhookEndpointChange,
    *,
    audit: Audit | None = None,
) -> WebhookEndpoint:
    """Change an endpoint as it is now; running servers apply the change within seconds.

    Only the given members change, even if others have changed since `endpoint` was read. Disabling
    stops the deliveries. An enabled endpoint gets the events from now on; `recover` sends the
    missed events.
    """
    lock_endpoint(connection, endpoint)
    (before,) = find_endpoints(connection, _e.id == endpoint.id)
    changed = changes.apply(before, webhooks.now)
    values = _changeable(changed)
    if before.disabled_at is not None and changed.disabled_at is None:
        # Events from the time while it was disabled are sent only by `recover`.
        values |= _from_now_on(connection)
    set_columns(connection, changed.id, values)
    if changed.disabled_at is not None:
        _stop_deliveries(connection, changed.id)
    # Only the names of members, not the URL itself: it may contain a secret of the vendor.
    given = [n for n, v in msgspec.structs.asdict(changes).items() if v is not None]
    _note(connection, audit, AuditAction.WEBHOOK_ENDPOINT_CHANGED, endpoint.id, changed=given)
    return endpoint_body(changed)


def delete_endpoint(
    connection: Connection, webhooks: Webhooks, endpoint: Endpoint, *, audit: Audit | None = None
) -> DeletedWebhookEndpoint:
    """Mark an endpoint as deleted, delete its secrets, and stop its deliveries."""
    lock_endpoint(connection, endpoint)
    end_endpoint(connection, endpoint.id, webhooks.now)
    gone = AuditAction.WEBHOOK_ENDPOINT_DELETED
    _note(connection, audit, gone, endpoint.id, account_id=endpoint.account_id)
    return DeletedWebhookEndpoint(endpoint_id=endpoint.id, deleted=True)


def end_endpoint(connection: Connection, endpoint_id: str, now: datetime) -> None:
    """Deliveries to it stop, and its secrets are destroyed."""
    set_columns(connection, endpoint_id, {"deleted_at": now})
    connection.execute(delete(webhook_secrets).where(_s.endpoint_id == endpoint_id))
    _stop_deliveries(connection, endpoint_id)


def rotate_secret(
    connection: Connection,
    webhooks: Webhooks,
    endpoint: Endpoint,
    overlap: timedelta,
    made: tuple[EndpointSecret, SharedSecret],
    *,
    audit: Audit | None = None,
) -> NewWebhookEndpoint:
    """Give it this new secret; the old ones sign, too, until the overlap ends."""
    secret, shared = made
    end, own = webhooks.now + overlap, _s.endpoint_id == endpoint.id
    lock_endpoint(connection, endpoint)
    longer = or_(_s.expires_at.is_(None), _s.expires_at > end)
    connection.execute(update(webhook_secrets).where(own, longer).values(expires_at=end))
    _insert_secret(connection, endpoint.id, secret)
    newest = select(_s.id).where(own).order_by(_s.id.desc()).limit(SECRETS_MAX)
    kept_ids = connection.execute(newest).scalars().all()
    connection.execute(delete(webhook_secrets).where(own, _s.id.not_in(kept_ids)))
    (now,) = find_endpoints(connection, _e.id == endpoint.id)
    _note(connection, audit, AuditAction.WEBHOOK_SECRET_ROTATED, endpoint.id)
    return with_secret(now, shared)


def find_endpoints(connection: Connection, *conditions: ColumnElement[bool]) -> list[Endpoint]:
    """The endpoints that meet all conditions and are not deleted, oldest first."""
    query = select(webhook_endpoints).where(_e.deleted_at.is_(None), *conditions).order_by(_e.id)
    found = connection.execute(query).all()
    secrets: dict[str, list[EndpointSecret]] = {row.id: [] for row in found}
    if secrets:
        query = select(webhook_secrets).where(_s.endpoint_id.in_(secrets)).order_by(_s.id.desc())
        for row in connection.execute(query):
            secrets[row.endpoint_id].append(of_row(row, EndpointSecret))
    return [
        of_row(
            row,
            Endpoint,
            event_types=msgspec.json.decode(row.event_types or "null"),
            secrets=secrets[row.id],
        )
        for row in found
    ]


def lock_endpoint(connection: Connection, endpoint: Endpoint) -> Row[*tuple[Any, ...]]:
    """The endpoint's row as it is now, locked until the transaction ends.

    Raises:
        NotFound: it was deleted.
    """
    known = select(webhook_endpoints).where(_e.id == endpoint.id, _e.deleted_at.is_(None))
    row = connection.execute(known.with_for_update()).one_or_none()
    if row is None:
        raise NotFound
    return row


def disable_endpoint(
    connection: Connection, endpoint: Endpoint, reason: Disabled, now: datetime
) -> None:
    """Disable an endpoint; an earlier reason is kept.

    If its URL has changed since it was read, the reason does not apply to the new URL.
    """
    changed = connection.execute(
        update(webhook_endpoints)
        .where(_e.id == endpoint.id, _e.url == endpoint.url, _e.disabled_at.is_(None))
        .values(disabled_at=now, disabled_reason=reason)
    )
    if changed.rowcount:
        _stop_deliveries(connection, endpoint.id)


def set_columns(connection: Connection, endpoint_id: str, values: dict[str, object]) -> None:
    connection.execute(update(webhook_endpoints).where(_e.id == endpoint_id).values(values))


def _note(
    connection: Connection,
    audit: Audit | None,
    action: AuditAction,
    endpoint_id: str,
    **details: object,
) -> None:
    if audit is not None:
        write_audit(connection, audit.entry(action, endpoint_id, **details))


def _stop_deliveries(connection: Connection, endpoint_id: str) -> None:
    table = webhook_deliveries.c
    waiting = and_(table.endpoint_id == endpoint_id, table.due_at.is_not(None))
    stopped = {"status": DeliveryStatus.STOPPED, "due_at": None}
    connection.execute(update(webhook_deliveries).where(waiting).values(stopped))


def _insert_secret(connection: Connection, endpoint_id: str, secret: EndpointSecret) -> None:
    connection.execute(insert(webhook_secrets), asdict(secret) | {"endpoint_id": endpoint_id})


def _from_now_on(connection: Connection) -> dict[str, object]:
    end = end_of_events(connection)
    return {"cursor_tx": end.tx, "cursor_seq": end.seq}


def _changeable(endpoint: Endpoint) -> dict[str, object]:
    same = ("url", "description", "disabled_at", "disabled_reason")
    own = {name: getattr(endpoint, name) for name in same}
    return own | {"event_types": _encoded(endpoint.event_types)}


def _encoded(types: frozenset[EventType] | None) -> str | None:
    return None if types is None else msgspec.json.encode(sorted(types)).decode()


def check(webhooks: Webhooks, url: str | None, description: str | None) -> None:
    """Refuse a URL or a description that an endpoint cannot have; raises InvalidRequest."""
    if url is not None:
        try:
            parse_target(url, private=webhooks.private)
        except ValueError as error:
            raise InvalidRequest(f"Expected {error} - at `$.url`.") from None
    if any(unicodedata.category(char) in _UNSEEN for char in description or ""):
        raise InvalidRequest(
            "A description must not contain control or invisible characters - at `$.description`."
        )
