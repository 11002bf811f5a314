"""Webhook endpoints, as a vendor or an operator handles them."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from countersign.access.idempotency import IdempotencyEntry
from countersign.errors import InvalidRequest, NotFound
from countersign.events.read_events import EventView, ReadEvents
from countersign.ids import WEBHOOK_ENDPOINT, is_id, timed_id
from countersign.instant import from_ns
from countersign.mode import Mode
from countersign.ports import Clock, DeliveryStore, Entropy, WebhookEndpointStore
from countersign.webhooks.model import (
    DESCRIPTION_LENGTH_MAX,
    LOG_KEPT,
    OVERLAP_MAX,
    Delivery,
    DeliveryQuery,
    DeliveryStatus,
    EndpointChanges,
    WebhookEndpoint,
    parse_target,
)
from countersign.webhooks.secrets import WebhookSecrets
from countersign.webhooks.signature import SharedSecret

_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointView:
    """An endpoint, and the shared secret where it has just been made."""

    endpoint: WebhookEndpoint
    secret: SharedSecret | None = None


Remember: TypeAlias = Callable[[EndpointView], IdempotencyEntry] | None
"""Makes the kept answer of an act from what it comes to."""


class WebhookEndpoints:
    """Making, changing and watching the endpoints of an account and mode."""

    def __init__(
        self,
        *,
        store: WebhookEndpointStore,
        deliveries: DeliveryStore,
        events: ReadEvents,
        secrets: WebhookSecrets,
        private: bool,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        """`private`: whether plain HTTP and private addresses will do."""
        self._store = store
        self._deliveries = deliveries
        self._events = events
        self._secrets = secrets
        self._private = private
        self._clock = clock
        self._entropy = entropy

    async def create(
        self,
        account_id: str,
        mode: Mode,
        changes: EndpointChanges,
        remember: Remember = None,
    ) -> EndpointView:
        """A new endpoint; it gets what happens from now on.

        Raises:
            InvalidRequest: the address or the description will not do.
            TooManyWebhookEndpoints: the account has as many as it may have.
        """
        self._check(replace(changes, url=changes.url or ""))
        time_ns = self._clock.time_ns()
        secret, shared = await self._secrets.make(account_id)
        bare = WebhookEndpoint(
            id=timed_id(WEBHOOK_ENDPOINT, time_ns, self._entropy(8)),
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
        endpoint = changes.apply(bare, from_ns(time_ns))
        view = EndpointView(endpoint=endpoint, secret=shared)
        await self._store.add(endpoint, remember(view) if remember else None)
        return view

    async def get(self, account_id: str, mode: Mode, endpoint_id: str) -> WebhookEndpoint:
        """One endpoint.

        Raises:
            NotFound: there is none with this id in this account and mode.
        """
        known = is_id(WEBHOOK_ENDPOINT, endpoint_id)
        endpoint = await self._store.get(account_id, mode, endpoint_id) if known else None
        if endpoint is None:
            raise NotFound
        return endpoint

    async def by_id(self, endpoint_id: str) -> WebhookEndpoint:
        """One endpoint, of whichever account: for operators.

        Raises:
            NotFound: there is none with this id.
        """
        endpoint = await self._store.by_id(endpoint_id)
        if endpoint is None:
            raise NotFound(f"The webhook endpoint {endpoint_id!r} was not found.")
        return endpoint

    async def list(self, account_id: str, mode: Mode | None) -> Sequence[WebhookEndpoint]:
        """The endpoints of an account, oldest first."""
        return await self._store.list(account_id, mode)

    async def change(
        self, endpoint: WebhookEndpoint, changes: EndpointChanges, remember: Remember = None
    ) -> EndpointView:
        """Change an endpoint as it is now; running servers follow within seconds.

        Only what is given is changed, whatever else has changed since `endpoint` was read.
        Disabling stops its deliveries. Enabling begins with what happens next; `recover` fetches
        what happened meanwhile.

        Raises:
            InvalidRequest: the address or the description will not do.
            NotFound: it was deleted meanwhile.
        """
        self._check(changes)

        def kept(changed: WebhookEndpoint) -> IdempotencyEntry | None:
            return remember(EndpointView(endpoint=changed)) if remember else None

        changed = await self._store.change(endpoint, changes, self._now(), kept)
        return EndpointView(endpoint=changed)

    async def delete(self, endpoint: WebhookEndpoint) -> None:
        """Delete an endpoint with its secrets.

        Raises:
            NotFound: it was deleted meanwhile.
        """
        await self._store.delete(endpoint, self._now())

    async def rotate(
        self, endpoint: WebhookEndpoint, overlap: timedelta, remember: Remember = None
    ) -> EndpointView:
        """Give it a new secret; the old ones sign beside it until the overlap is over.

        Raises:
            InvalidRequest: the overlap is longer than a week.
            NotFound: it was deleted meanwhile.
        """
        if not timedelta(0) <= overlap <= OVERLAP_MAX:
            raise InvalidRequest(f"An overlap can be at most {OVERLAP_MAX.days} days.")
        secret, shared = await self._secrets.make(endpoint.account_id)
        end = self._now() + overlap
        old = tuple(
            replace(s, expires_at=end) if s.expires_at is None or s.expires_at > end else s
            for s in endpoint.secrets
        )
        changed = replace(endpoint, secrets=(secret, *old))
        view = EndpointView(endpoint=changed, secret=shared)
        await self._store.rotate(endpoint, secret, end, remember(view) if remember else None)
        return view

    async def recover(
        self, endpoint: WebhookEndpoint, since: datetime, remember: Remember = None
    ) -> EndpointView:
        """Deliver again what happened since this time and was not delivered.

        Raises:
            InvalidRequest: `since` is in the future, or longer ago than deliveries are kept.
            WebhookEndpointDisabled: it has to be enabled first.
            RateLimited: the last recovery is under way, or less than a minute ago.
            NotFound: it was deleted meanwhile.
        """
        now = self._now()
        if not now - LOG_KEPT <= since <= now:
            raise InvalidRequest(f"Expected a time within the last {LOG_KEPT.days} days.")
        view = EndpointView(endpoint=endpoint)
        await self._store.recover(endpoint, since, now, remember(view) if remember else None)
        return view

    async def resend(
        self,
        endpoint: WebhookEndpoint,
        event_id: str,
        remember: Callable[[EventView], IdempotencyEntry] | None = None,
    ) -> EventView:
        """Deliver an event again, whatever came of it, with the same webhook-id.

        Raises:
            NotFound: there is no such event in the endpoint's account and mode.
            WebhookEndpointDisabled: it has to be enabled first.
        """
        found = await self._events.one(endpoint.account_id, endpoint.mode, event_id)
        kept = remember(found) if remember else None
        await self._deliveries.resend(endpoint, found.event, self._now(), kept)
        return found

    async def keep(self, entry: IdempotencyEntry) -> None:
        """Keep an answer that goes with no change of the database."""
        await self._store.keep(entry)

    async def deliveries(
        self,
        endpoint: WebhookEndpoint,
        *,
        status: DeliveryStatus | None,
        before: str | None,
        limit: int,
    ) -> tuple[Sequence[tuple[EventView, Delivery]], str | None]:
        """A page of the log of deliveries, the newest events first, and the next cursor.

        Raises:
            InvalidRequest: `before` is not the id of an event of this account and mode.
        """
        last = None
        if before is not None:
            try:
                last = await self._events.one(endpoint.account_id, endpoint.mode, before)
            except NotFound:
                msg = "The query parameter after must be a next_cursor returned by this list."
                raise InvalidRequest(msg) from None
        query = DeliveryQuery(
            endpoint_id=endpoint.id,
            status=status,
            before_seq=None if last is None else last.event.position.seq,
            limit=limit + 1,
        )
        found = [(self._events.view(d.event), d) for d in await self._deliveries.find(query)]
        return found[:limit], found[limit - 1][0].id if len(found) > limit else None

    def _check(self, changes: EndpointChanges) -> None:
        if changes.url is not None:
            try:
                parse_target(changes.url, private=self._private)
            except ValueError as error:
                raise InvalidRequest(f"Expected {error} - at `$.url`.") from None
        if changes.description is not None and len(changes.description) > DESCRIPTION_LENGTH_MAX:
            msg = f"A description must have at most {DESCRIPTION_LENGTH_MAX} characters."
            raise InvalidRequest(msg)
        if any(unicodedata.category(char) in _UNSEEN for char in changes.description or ""):
            msg = (
                "A description must not contain control or invisible characters - at "
                "`$.description`."
            )
            raise InvalidRequest(msg)

    def _now(self) -> datetime:
        return from_ns(self._clock.time_ns())
