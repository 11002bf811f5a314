"""Webhook endpoints and their secrets, as a vendor or an operator manages them."""

from __future__ import annotations

import unicodedata
from collections.abc import Awaitable
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any, Final

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
from countersign.base.http.schemas import ENDPOINT_ID, Listing, Page, cursor, page_of
from countersign.base.values import WEBHOOK_ENDPOINT, Mode, from_ns, is_id, timed_id
from countersign.core.access.account import lock_account
from countersign.core.access.audit import Audit, AuditAction, write_audit
from countersign.core.access.key import Principal, Scope
from countersign.core.access.reach import DEPLOYMENT, AccountReach, Reach
from countersign.core.events.model import EventType
from countersign.core.events.sql import end_of_events
from countersign.core.gate.act import Acts, Writing
from countersign.core.gate.route import Call, Command
from countersign.core.webhooks.model import (
    ENDPOINTS_MAX,
    OVERLAP,
    SECRETS_MAX,
    DeliveryStatus,
    Disabled,
    Endpoint,
    EndpointSecret,
    parse_target,
)
from countersign.core.webhooks.room import Webhooks
from countersign.core.webhooks.schemas import (
    DeletedWebhookEndpoint,
    NewWebhookEndpoint,
    SecretRotation,
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


def get_endpoint(connection: Connection, reach: Reach, endpoint_id: str) -> Endpoint:
    """One endpoint in reach; raises NotFound."""
    if is_id(WEBHOOK_ENDPOINT, endpoint_id):
        named = (_e.id == endpoint_id, reach.rows(webhook_endpoints))
        for found in find_endpoints(connection, *named):
            return found
    raise NotFound("There is no webhook endpoint with this id.")


EndpointsQuery = Listing[Annotated[str, cursor("the id of that page's last endpoint", ENDPOINT_ID)]]


def _named(webhooks: Webhooks, call: Call) -> Awaitable[Endpoint]:
    return webhooks.access.database.read(get_endpoint, call.principal.reach, call.parameter)


async def _owner(webhooks: Webhooks, endpoint_id: str) -> tuple[str, Mode]:
    endpoint = await webhooks.access.database.read(get_endpoint, DEPLOYMENT, endpoint_id)
    return endpoint.account_id, endpoint.mode


WEBHOOKS: Final = Acts(
    "Webhooks", Webhooks, {Endpoint: _named}, scope=Scope.WEBHOOKS_MANAGE, refusals=(NotFound,)
)
_SHOWN_ONCE: Final = (
    "Endpoint {endpoint_id}. Its secret for v1 signatures is shown only once;\n"
    "the public key for v1a signatures is {secrets[0][public_key]}"
)
_SECONDS: Final = "Running servers apply the change within seconds."
_NAMES: Final = {"event_types": "type", "every_event_type": "every-type"}
command: Final = partial(Command, owner=_owner)
change: Final = partial(command, says=_SECONDS, shows=("endpoint_id",))


@WEBHOOKS.act(
    "POST /v1/webhook_endpoints",
    "Create a webhook endpoint",
    secret=True,
    refusals=(TooManyWebhookEndpoints,),
    links={"getWebhookEndpoint": {"endpoint_id": "/endpoint_id"}},
    commands=(
        Command(
            name="webhooks add", names=_NAMES, says=_SHOWN_ONCE, shows=("endpoint_id", "secret")
        ),
    ),
)
async def create_webhook_endpoint(
    webhooks: Webhooks,
    who: Principal,
    wanted: WebhookEndpointRequest,
    audit: Audit | None,
    write: Writing,
) -> NewWebhookEndpoint:
    """Create an endpoint that gets events from now on. Its secret is returned only once."""
    _check(webhooks, wanted.url, wanted.description)
    reach = AccountReach(who.account_id, who.mode)
    secret, shared = await webhooks.secrets.make(who.account_id)

    def create(connection: Connection) -> NewWebhookEndpoint | Refusal:
        try:  # until the commit no other transaction adds one, or closes the account
            lock_account(connection, reach.account_id)
        except AccountClosed:
            if audit is None:  # a revoked key that a server has not noticed yet
                return InvalidApiKey()
            raise
        own = and_(reach.rows(webhook_endpoints), _e.deleted_at.is_(None))
        if connection.execute(select(func.count(_e.id)).where(own)).scalar_one() >= ENDPOINTS_MAX:
            return TooManyWebhookEndpoints()
        time_ns = webhooks.access.clock.time_ns()
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

    return await write(create)


@WEBHOOKS.act(
    "GET /v1/webhook_endpoints",
    "List the webhook endpoints, oldest first",
    refusals=(),
    commands=(
        Command(
            name="webhooks list",
            either_mode=True,
            shows=("endpoint_id", "livemode", "disabled_reason", "url"),
        ),
    ),
)
def list_webhook_endpoints(
    connection: Connection, reach: Reach, query: EndpointsQuery
) -> Page[WebhookEndpoint]:
    """The webhook endpoints of this account and mode, oldest first."""
    found = find_endpoints(connection, reach.rows(webhook_endpoints))
    rest = [endpoint_body(endpoint) for endpoint in found if endpoint.id > (query.after or "")]
    return page_of(rest, query.limit, lambda e: e.endpoint_id)


@WEBHOOKS.act(
    "GET /v1/webhook_endpoints/{endpoint_id}",
    "Get one webhook endpoint",
    commands=(command(name="webhooks show"),),
)
async def get_webhook_endpoint(endpoint: Endpoint) -> WebhookEndpoint:
    """One webhook endpoint, without its secret."""
    return endpoint_body(endpoint)


@WEBHOOKS.act(
    "PATCH /v1/webhook_endpoints/{endpoint_id}",
    "Change, disable or enable a webhook endpoint",
    request_examples={"disable": {"disabled": True}},
    commands=(
        change(
            name="webhooks change",
            help="Change an endpoint. An option that is left out changes nothing.",
            takes=("url", "description", "event_types", "every_event_type"),
            names=_NAMES,
        ),
        change(
            name="webhooks disable",
            help="Stop sending events to an endpoint, including waiting ones.",
            takes=(),
            sends={"disabled": True},
        ),
        change(
            name="webhooks enable",
            help="Send new events to an endpoint again. `recover` sends the events that it missed.",
            takes=(),
            sends={"disabled": False},
        ),
    ),
)
def change_webhook_endpoint(
    connection: Connection,
    webhooks: Webhooks,
    changes: WebhookEndpointChange,
    endpoint: Endpoint,
    audit: Audit | None = None,
) -> WebhookEndpoint:
    """Change a webhook endpoint, disable it, or enable it again.

    Running servers apply the change within seconds. Events from the time while the endpoint was
    disabled are not sent automatically: use recover.
    """
    if changes.event_types is not None and changes.every_event_type:
        raise InvalidRequest(
            "Name some types or ask for all of them, not both - at `$.every_event_type`."
        )
    _check(webhooks, changes.url, changes.description)
    # Only the given members change, even if others have changed since `endpoint` was read.
    lock_endpoint(connection, endpoint)
    (before,) = find_endpoints(connection, _e.id == endpoint.id)
    changed = changes.apply(before, webhooks.now)
    same = ("url", "description", "disabled_at", "disabled_reason")
    values: dict[str, object] = {name: getattr(changed, name) for name in same}
    values |= {"event_types": _encoded(changed.event_types)}
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


@WEBHOOKS.act(
    "DELETE /v1/webhook_endpoints/{endpoint_id}",
    "Delete a webhook endpoint",
    fresh=True,
    commands=(
        command(
            name="webhooks delete",
            asks="Delete the endpoint {endpoint_id}? This cannot be undone.",
            shows=("endpoint_id",),
        ),
    ),
)
def delete_webhook_endpoint(
    connection: Connection, webhooks: Webhooks, endpoint: Endpoint, audit: Audit | None = None
) -> DeletedWebhookEndpoint:
    """Delete a webhook endpoint and its secrets. It gets no more events."""
    lock_endpoint(connection, endpoint)
    end_endpoint(connection, endpoint.id, webhooks.now)
    gone = AuditAction.WEBHOOK_ENDPOINT_DELETED
    _note(connection, audit, gone, endpoint.id, account_id=endpoint.account_id)
    return DeletedWebhookEndpoint(endpoint_id=endpoint.id, deleted=True)


@WEBHOOKS.act(
    "POST /v1/webhook_endpoints/{endpoint_id}/rotate_secret",
    "Give a webhook endpoint a new secret",
    secret=True,
    request_examples={"a day of overlap": {"overlap_seconds": 86400}},
    commands=(
        command(name="webhooks rotate-secret", says=_SHOWN_ONCE, shows=("endpoint_id", "secret")),
    ),
)
async def rotate_webhook_secret(
    webhooks: Webhooks,
    wanted: SecretRotation,
    endpoint: Endpoint,
    audit: Audit | None,
    write: Writing,
) -> NewWebhookEndpoint:
    """Create a new secret, returned only once. Both secrets sign until the overlap ends."""
    seconds = wanted.overlap_seconds
    overlap = OVERLAP if seconds is None else timedelta(seconds=seconds)
    secret, shared = await webhooks.secrets.make(endpoint.account_id)
    own = _s.endpoint_id == endpoint.id

    def rotate(connection: Connection) -> NewWebhookEndpoint:
        end = webhooks.now + overlap
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

    return await write(rotate)


ROUTES: Final = WEBHOOKS.routes


def end_endpoint(connection: Connection, endpoint_id: str, now: datetime) -> None:
    """Deliveries to it stop, and its secrets are destroyed."""
    set_columns(connection, endpoint_id, {"deleted_at": now})
    connection.execute(delete(webhook_secrets).where(_s.endpoint_id == endpoint_id))
    _stop_deliveries(connection, endpoint_id)


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
    same = (_e.id == endpoint.id, _e.url == endpoint.url, _e.disabled_at.is_(None))
    disabled = update(webhook_endpoints).where(*same)
    if connection.execute(disabled.values(disabled_at=now, disabled_reason=reason)).rowcount:
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


def _encoded(types: frozenset[EventType] | None) -> str | None:
    return None if types is None else msgspec.json.encode(sorted(types)).decode()


def _check(webhooks: Webhooks, url: str | None, description: str | None) -> None:
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
