"""Webhook endpoints and their secrets in the database."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

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

from countersign.access.idempotency import IdempotencyEntry, keep_answers
from countersign.db.database import Database
from countersign.db.tables import (
    accounts,
    webhook_deliveries,
    webhook_endpoints,
    webhook_secrets,
)
from countersign.errors import (
    NotFound,
    RateLimited,
    TooManyWebhookEndpoints,
    WebhookEndpointDisabled,
)
from countersign.events.model import EventType, Position
from countersign.events.sql import after, end_of_events, last_before
from countersign.mode import Mode
from countersign.webhooks.model import (
    ENDPOINTS_MAX,
    RECOVERY_WAIT,
    SECRETS_MAX,
    DeliveryStatus,
    Disabled,
    EndpointChanges,
    WebhookEndpoint,
    WebhookSecret,
)

_encode_types: Final = msgspec.json.Encoder().encode
_decode_types: Final = msgspec.json.Decoder(frozenset[EventType]).decode
_ONE_RECOVERY: Final = "An endpoint can have one recovery at a time, and at most one per minute."
_known: Final = webhook_endpoints.c.deleted_at.is_(None)


class Owned(NamedTuple):
    """An endpoint as one account and mode may see it."""

    account_id: str
    mode: Mode
    endpoint_id: str

    @property
    def condition(self) -> ColumnElement[bool]:
        """True for its row."""
        table = webhook_endpoints.c
        return and_(
            table.id == self.endpoint_id,
            table.account_id == self.account_id,
            table.mode == self.mode,
            _known,
        )


class WebhookEndpoints:
    """See `ports.WebhookEndpointStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, endpoint: WebhookEndpoint, kept: IdempotencyEntry | None) -> None:
        """Write a new endpoint with its secret; its deliveries begin with what happens next."""
        await self._database.write(_add, (endpoint, kept))

    async def get(self, account_id: str, mode: Mode, endpoint_id: str) -> WebhookEndpoint | None:
        """One endpoint of this account and mode."""
        return await self._database.read(_get, Owned(account_id, mode, endpoint_id))

    async def by_id(self, endpoint_id: str) -> WebhookEndpoint | None:
        """One endpoint, of whichever account and mode."""
        return await self._database.read(_by_id, endpoint_id)

    async def list(self, account_id: str, mode: Mode | None) -> Sequence[WebhookEndpoint]:
        """The endpoints of an account, oldest first."""
        return await self._database.scan(_list, (account_id, mode))

    async def change(
        self,
        endpoint: WebhookEndpoint,
        changes: EndpointChanges,
        now: datetime,
        keep: Callable[[WebhookEndpoint], IdempotencyEntry | None],
    ) -> WebhookEndpoint:
        """Apply changes to an endpoint as it is stored, and give what it has become."""
        return await self._database.write(_change, (endpoint, changes, now, keep))

    async def delete(self, endpoint: WebhookEndpoint, now: datetime) -> None:
        """Forget an endpoint and its secrets; its deliveries stop."""
        await self._database.write(_delete, (endpoint, now))

    async def rotate(
        self,
        endpoint: WebhookEndpoint,
        secret: WebhookSecret,
        old_expires_at: datetime,
        kept: IdempotencyEntry | None,
    ) -> None:
        """Write a new secret, and let the others expire at this time at the latest."""
        await self._database.write(_rotate, (endpoint, secret, old_expires_at, kept))

    async def recover(
        self,
        endpoint: WebhookEndpoint,
        since: datetime,
        now: datetime,
        kept: IdempotencyEntry | None,
    ) -> None:
        """Make deliveries again for what happened since this time and did not succeed."""
        await self._database.write(_recover, (endpoint, since, now, kept))

    async def keep(self, entry: IdempotencyEntry) -> None:
        """Keep an answer that goes with no other change."""
        await self._database.write(_keep, entry)


def _add(
    connection: Connection, item: tuple[WebhookEndpoint, IdempotencyEntry | None]
) -> TooManyWebhookEndpoints | None:
    endpoint, kept = item
    owner = select(accounts.c.id).where(accounts.c.id == endpoint.account_id)
    # Two at once would both find room for one.
    connection.execute(owner.with_for_update())
    number = connection.execute(
        select(func.count())
        .select_from(webhook_endpoints)
        .where(
            webhook_endpoints.c.account_id == endpoint.account_id,
            webhook_endpoints.c.mode == endpoint.mode,
            _known,
        )
    ).scalar_one()
    if number >= ENDPOINTS_MAX:
        return TooManyWebhookEndpoints()
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
        insert(webhook_secrets), [_secret_row(endpoint.id, s) for s in endpoint.secrets]
    )
    keep_answers(connection, [kept] if kept else [])
    return None


def _get(connection: Connection, owned: Owned) -> WebhookEndpoint | None:
    found = endpoints_where(connection, owned.condition)
    return found[0] if found else None


def _by_id(connection: Connection, endpoint_id: str) -> WebhookEndpoint | None:
    found = endpoints_where(connection, and_(webhook_endpoints.c.id == endpoint_id, _known))
    return found[0] if found else None


def _list(connection: Connection, item: tuple[str, Mode | None]) -> Sequence[WebhookEndpoint]:
    account_id, mode = item
    condition = and_(webhook_endpoints.c.account_id == account_id, _known)
    if mode is not None:
        condition = and_(condition, webhook_endpoints.c.mode == mode)
    return endpoints_where(connection, condition)


def _change(
    connection: Connection,
    item: tuple[
        WebhookEndpoint,
        EndpointChanges,
        datetime,
        Callable[[WebhookEndpoint], IdempotencyEntry | None],
    ],
) -> WebhookEndpoint | NotFound:
    endpoint, changes, now, keep = item
    if lock(connection, endpoint) is None:
        return NotFound()
    (before,) = endpoints_where(connection, webhook_endpoints.c.id == endpoint.id)
    changed = changes.apply(before, now)
    values: dict[str, object] = _changeable(changed)
    if before.disabled_at is not None and changed.disabled_at is None:
        # What happened meanwhile is fetched with `recover`, by those who want it.
        end = end_of_events(connection)
        values |= {"cursor_tx": end.tx, "cursor_seq": end.seq}
    connection.execute(
        update(webhook_endpoints).where(webhook_endpoints.c.id == endpoint.id).values(values)
    )
    if changed.disabled_at is not None:
        stop_deliveries(connection, endpoint.id)
    kept = keep(changed)
    keep_answers(connection, [kept] if kept else [])
    return changed


def _delete(connection: Connection, item: tuple[WebhookEndpoint, datetime]) -> NotFound | None:
    endpoint, now = item
    if lock(connection, endpoint) is None:
        return NotFound()
    connection.execute(
        update(webhook_endpoints)
        .where(webhook_endpoints.c.id == endpoint.id)
        .values(deleted_at=now)
    )
    connection.execute(delete(webhook_secrets).where(webhook_secrets.c.endpoint_id == endpoint.id))
    stop_deliveries(connection, endpoint.id)
    return None


def _rotate(
    connection: Connection,
    item: tuple[WebhookEndpoint, WebhookSecret, datetime, IdempotencyEntry | None],
) -> NotFound | None:
    endpoint, secret, old_expires_at, kept = item
    if lock(connection, endpoint) is None:
        return NotFound()
    own = webhook_secrets.c.endpoint_id == endpoint.id
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
    connection.execute(insert(webhook_secrets), _secret_row(endpoint.id, secret))
    newest = (
        select(webhook_secrets.c.id)
        .where(own)
        .order_by(webhook_secrets.c.id.desc())
        .limit(SECRETS_MAX)
    )
    kept_ids = connection.execute(newest).scalars().all()
    connection.execute(delete(webhook_secrets).where(own, webhook_secrets.c.id.not_in(kept_ids)))
    keep_answers(connection, [kept] if kept else [])
    return None


def _recover(
    connection: Connection,
    item: tuple[WebhookEndpoint, datetime, datetime, IdempotencyEntry | None],
) -> NotFound | WebhookEndpointDisabled | RateLimited | None:
    endpoint, since, now, kept = item
    row = lock(connection, endpoint)
    if row is None:
        return NotFound()
    if row.disabled_at is not None:
        return WebhookEndpointDisabled()
    wait = _wait_to_recover(connection, row, now)
    if wait > timedelta(0):
        return RateLimited(_ONE_RECOVERY, retry_after=math.ceil(wait.total_seconds()))
    start = last_before(connection, endpoint.account_id, endpoint.mode, since)
    if start < (row.cursor_tx, row.cursor_seq):
        # Going over the events again makes deliveries of those that have not succeeded.
        connection.execute(
            update(webhook_endpoints)
            .where(webhook_endpoints.c.id == endpoint.id)
            .values(cursor_tx=start.tx, cursor_seq=start.seq, recovered_at=now)
        )
    keep_answers(connection, [kept] if kept else [])
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
        return RECOVERY_WAIT  # the last one is still under way
    wait: timedelta = row.recovered_at + RECOVERY_WAIT - now
    return wait


def _keep(connection: Connection, entry: IdempotencyEntry) -> None:
    keep_answers(connection, [entry])


def endpoints_where(
    connection: Connection, condition: ColumnElement[bool]
) -> list[WebhookEndpoint]:
    """The endpoints for which this is true, oldest first."""
    rows = connection.execute(
        select(webhook_endpoints).where(condition).order_by(webhook_endpoints.c.id)
    ).all()
    if not rows:
        return []
    secrets: dict[str, list[WebhookSecret]] = {row.id: [] for row in rows}
    for row in connection.execute(
        select(webhook_secrets)
        .where(webhook_secrets.c.endpoint_id.in_(secrets))
        .order_by(webhook_secrets.c.id.desc())
    ):
        secrets[row.endpoint_id].append(
            WebhookSecret(
                id=row.id,
                public_key=row.public_key,
                sealed=row.sealed,
                created_at=row.created_at,
                expires_at=row.expires_at,
            )
        )
    return [_endpoint(row, secrets[row.id]) for row in rows]


def disable(
    connection: Connection, endpoint: WebhookEndpoint, reason: Disabled, now: datetime
) -> None:
    """Send nothing more to an endpoint; an earlier reason is kept.

    If its address has changed since it was read, the reason is not one of the new address.
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
        stop_deliveries(connection, endpoint.id)


def stop_deliveries(connection: Connection, endpoint_id: str) -> None:
    """End what waits for this endpoint."""
    connection.execute(
        update(webhook_deliveries)
        .where(
            webhook_deliveries.c.endpoint_id == endpoint_id,
            webhook_deliveries.c.due_at.is_not(None),
        )
        .values(status=DeliveryStatus.STOPPED, due_at=None)
    )


def lock(connection: Connection, endpoint: WebhookEndpoint) -> Row[*tuple[Any, ...]] | None:
    """The endpoint's row, which no other transaction changes meanwhile; None: it was deleted."""
    owned = Owned(endpoint.account_id, endpoint.mode, endpoint.id)
    return connection.execute(
        select(webhook_endpoints).where(owned.condition).with_for_update()
    ).one_or_none()


def refused(
    connection: Connection, endpoint: WebhookEndpoint
) -> NotFound | WebhookEndpointDisabled | None:
    """Lock an endpoint's row to send something to it; gives why nothing may be sent."""
    row = lock(connection, endpoint)
    if row is None:
        return NotFound()
    return None if row.disabled_at is None else WebhookEndpointDisabled()


def _changeable(endpoint: WebhookEndpoint) -> dict[str, object]:
    types = endpoint.event_types
    return {
        "url": endpoint.url,
        "description": endpoint.description,
        "event_types": None if types is None else _encode_types(sorted(types)).decode(),
        "disabled_at": endpoint.disabled_at,
        "disabled_reason": endpoint.disabled_reason,
    }


def _secret_row(endpoint_id: str, secret: WebhookSecret) -> dict[str, object]:
    return {
        "id": secret.id,
        "endpoint_id": endpoint_id,
        "public_key": secret.public_key,
        "sealed": secret.sealed,
        "created_at": secret.created_at,
        "expires_at": secret.expires_at,
    }


def _endpoint(row: Row[*tuple[Any, ...]], secrets: Sequence[WebhookSecret]) -> WebhookEndpoint:
    return WebhookEndpoint(
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
