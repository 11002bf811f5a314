"""Webhook endpoints and their secrets in the database."""

from __future__ import annotations

import math
from collections.abc import Sequence
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

from countersign.db.tables import (
    accounts,
    webhook_deliveries,
    webhook_endpoints,
    webhook_secrets,
)
from countersign.errors import NotFound, RateLimited, WebhookEndpointDisabled
from countersign.events.model import EventType, Position
from countersign.events.sql import after, end_of_events, last_before
from countersign.mode import Mode
from countersign.webhooks.model import (
    RECOVERY_WAIT,
    SECRETS_MAX,
    DeliveryStatus,
    Disabled,
    Endpoint,
    EndpointSecret,
)

_encode_types: Final = msgspec.json.Encoder().encode
_decode_types: Final = msgspec.json.Decoder(frozenset[EventType]).decode
_ONE_RECOVERY: Final = "An endpoint can have one recovery at a time, and at most one per minute."
_known: Final = webhook_endpoints.c.deleted_at.is_(None)


def count_endpoints(connection: Connection, account_id: str, mode: Mode) -> int:
    """The number of an account's endpoints; until the commit no other transaction adds one."""
    owner = select(accounts.c.id).where(accounts.c.id == account_id)
    connection.execute(owner.with_for_update())
    return connection.execute(
        select(func.count())
        .select_from(webhook_endpoints)
        .where(
            webhook_endpoints.c.account_id == account_id,
            webhook_endpoints.c.mode == mode,
            _known,
        )
    ).scalar_one()


def insert_endpoint(connection: Connection, endpoint: Endpoint) -> None:
    """Insert an endpoint with its secrets; its deliveries begin with the events from now on."""
    end = end_of_events(connection)
    connection.execute(
        insert(webhook_endpoints),
        _changeable(endpoint)
        | {
            "id": endpoint.id,
            "account_id": endpoint.account_id,
            "mode": endpoint.mode,
            "created_at": endpoint.created_at,
            "cursor_tx": end.tx,
            "cursor_seq": end.seq,
        },
    )
    connection.execute(
        insert(webhook_secrets),
        [asdict(s) | {"endpoint_id": endpoint.id} for s in endpoint.secrets],
    )


def find_endpoint(
    connection: Connection, account_id: str, mode: Mode, endpoint_id: str
) -> Endpoint | None:
    """One endpoint of this account and mode."""
    found = endpoints_where(connection, _of_account(account_id, mode, endpoint_id))
    return found[0] if found else None


def find_any_endpoint(connection: Connection, endpoint_id: str) -> Endpoint | None:
    """One endpoint of any account and mode."""
    found = endpoints_where(connection, and_(webhook_endpoints.c.id == endpoint_id, _known))
    return found[0] if found else None


def list_endpoints(
    connection: Connection, account_id: str, mode: Mode | None
) -> Sequence[Endpoint]:
    """The endpoints of an account, oldest first."""
    condition = and_(webhook_endpoints.c.account_id == account_id, _known)
    if mode is not None:
        condition = and_(condition, webhook_endpoints.c.mode == mode)
    return endpoints_where(connection, condition)


def update_endpoint(connection: Connection, before: Endpoint, changed: Endpoint) -> None:
    """Write a changed endpoint; disabling stops its deliveries, enabling skips what it missed."""
    values = _changeable(changed)
    if before.disabled_at is not None and changed.disabled_at is None:
        # Events from the time while it was disabled are sent only by `recover`.
        end = end_of_events(connection)
        values |= {"cursor_tx": end.tx, "cursor_seq": end.seq}
    connection.execute(
        update(webhook_endpoints).where(webhook_endpoints.c.id == changed.id).values(values)
    )
    if changed.disabled_at is not None:
        _stop_deliveries(connection, changed.id)


def delete_endpoint(connection: Connection, endpoint_id: str, now: datetime) -> None:
    """Mark an endpoint as deleted, delete its secrets, and stop its deliveries."""
    connection.execute(
        update(webhook_endpoints)
        .where(webhook_endpoints.c.id == endpoint_id)
        .values(deleted_at=now)
    )
    connection.execute(delete(webhook_secrets).where(webhook_secrets.c.endpoint_id == endpoint_id))
    _stop_deliveries(connection, endpoint_id)


def rotate_secret(
    connection: Connection, endpoint_id: str, secret: EndpointSecret, old_expires_at: datetime
) -> None:
    """Insert a new secret; the others expire at this time at the latest, the oldest are deleted."""
    own = webhook_secrets.c.endpoint_id == endpoint_id
    connection.execute(
        update(webhook_secrets)
        .where(
            own,
            or_(
                webhook_secrets.c.expires_at.is_(None),
                webhook_secrets.c.expires_at > old_expires_at,
            ),
        )
        .values(expires_at=old_expires_at)
    )
    connection.execute(insert(webhook_secrets), asdict(secret) | {"endpoint_id": endpoint_id})
    newest = (
        select(webhook_secrets.c.id)
        .where(own)
        .order_by(webhook_secrets.c.id.desc())
        .limit(SECRETS_MAX)
    )
    kept_ids = connection.execute(newest).scalars().all()
    connection.execute(delete(webhook_secrets).where(own, webhook_secrets.c.id.not_in(kept_ids)))


def start_recovery(
    connection: Connection, row: Row[*tuple[Any, ...]], since: datetime, now: datetime
) -> RateLimited | None:
    """Put the cursor of a locked endpoint back to this time.

    Processing the events again makes deliveries of those that have not succeeded.
    """
    wait = _wait_to_recover(connection, row, now)
    if wait > timedelta(0):
        return RateLimited(_ONE_RECOVERY, retry_after=math.ceil(wait.total_seconds()))
    start = last_before(connection, row.account_id, Mode(row.mode), since)
    if start < (row.cursor_tx, row.cursor_seq):
        connection.execute(
            update(webhook_endpoints)
            .where(webhook_endpoints.c.id == row.id)
            .values(cursor_tx=start.tx, cursor_seq=start.seq, recovered_at=now)
        )
    return None


def _wait_to_recover(
    connection: Connection, row: Row[*tuple[Any, ...]], now: datetime
) -> timedelta:
    """How long until the endpoint may be recovered again, as far as that is known."""
    if row.recovered_at is None:
        return timedelta(0)
    cursor = Position(row.cursor_tx, row.cursor_seq)
    next_ = connection.execute(after(connection, row.account_id, row.mode, cursor, 1)).first()
    if next_ is not None and next_.at <= row.recovered_at:
        return RECOVERY_WAIT  # the last one has not ended
    wait: timedelta = row.recovered_at + RECOVERY_WAIT - now
    return wait


def endpoints_where(connection: Connection, condition: ColumnElement[bool]) -> list[Endpoint]:
    """The endpoints that meet a condition, oldest first."""
    rows = connection.execute(
        select(webhook_endpoints).where(condition).order_by(webhook_endpoints.c.id)
    ).all()
    if not rows:
        return []
    secrets: dict[str, list[EndpointSecret]] = {row.id: [] for row in rows}
    for row in connection.execute(
        select(webhook_secrets)
        .where(webhook_secrets.c.endpoint_id.in_(secrets))
        .order_by(webhook_secrets.c.id.desc())
    ):
        secrets[row.endpoint_id].append(
            EndpointSecret(
                id=row.id,
                public_key=row.public_key,
                sealed=row.sealed,
                created_at=row.created_at,
                expires_at=row.expires_at,
            )
        )
    return [_endpoint(row, secrets[row.id]) for row in rows]


def disable_endpoint(
    connection: Connection, endpoint: Endpoint, reason: Disabled, now: datetime
) -> None:
    """Disable an endpoint; an earlier reason is kept.

    If its URL has changed since it was read, the reason does not apply to the new URL.
    """
    changed = connection.execute(
        update(webhook_endpoints)
        .where(
            webhook_endpoints.c.id == endpoint.id,
            webhook_endpoints.c.url == endpoint.url,
            webhook_endpoints.c.disabled_at.is_(None),
        )
        .values(disabled_at=now, disabled_reason=reason)
    )
    if changed.rowcount:
        _stop_deliveries(connection, endpoint.id)


def _stop_deliveries(connection: Connection, endpoint_id: str) -> None:
    connection.execute(
        update(webhook_deliveries)
        .where(
            webhook_deliveries.c.endpoint_id == endpoint_id,
            webhook_deliveries.c.due_at.is_not(None),
        )
        .values(status=DeliveryStatus.STOPPED, due_at=None)
    )


def lock_endpoint(connection: Connection, endpoint: Endpoint) -> Row[*tuple[Any, ...]] | None:
    """The endpoint's row, locked until the transaction ends; None: it was deleted."""
    condition = _of_account(endpoint.account_id, endpoint.mode, endpoint.id)
    return connection.execute(
        select(webhook_endpoints).where(condition).with_for_update()
    ).one_or_none()


def lock_enabled_endpoint(
    connection: Connection, endpoint: Endpoint
) -> Row[*tuple[Any, ...]] | NotFound | WebhookEndpointDisabled:
    """The same for something to send to it, or why nothing may be sent."""
    row = lock_endpoint(connection, endpoint)
    if row is None:
        return NotFound()
    return row if row.disabled_at is None else WebhookEndpointDisabled()


def _of_account(account_id: str, mode: Mode, endpoint_id: str) -> ColumnElement[bool]:
    table = webhook_endpoints.c
    return and_(table.id == endpoint_id, table.account_id == account_id, table.mode == mode, _known)


def _changeable(endpoint: Endpoint) -> dict[str, object]:
    types = endpoint.event_types
    return {
        "url": endpoint.url,
        "description": endpoint.description,
        "event_types": None if types is None else _encode_types(sorted(types)).decode(),
        "disabled_at": endpoint.disabled_at,
        "disabled_reason": endpoint.disabled_reason,
    }


def _endpoint(row: Row[*tuple[Any, ...]], secrets: Sequence[EndpointSecret]) -> Endpoint:
    return Endpoint(
        id=row.id,
        account_id=row.account_id,
        mode=Mode(row.mode),
        url=row.url,
        description=row.description,
        event_types=None if row.event_types is None else _decode_types(row.event_types),
        created_at=row.created_at,
        disabled_at=row.disabled_at,
        disabled_reason=None if row.disabled_reason is None else Disabled(row.disabled_reason),
        secrets=tuple(secrets),
    )
