"""Everything that delivers webhooks, put together by hand: a real database, real sockets."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pytest

from countersign.base.db.database import Database
from countersign.base.files import key_text
from countersign.base.http.schemas import Page
from countersign.base.values import Mode, from_ns
from countersign.core.access.account import add_account
from countersign.core.access.key import KeyKind, Principal
from countersign.core.access.reach import AccountReach
from countersign.core.access.room import open_access
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.events.model import EventIds, EventType, NewEvent, RecordedEvent
from countersign.core.events.room import Events
from countersign.core.events.routes import Event, EventsQuery, list_events
from countersign.core.events.sql import find_event, write_events
from countersign.core.gate.act import Writing
from countersign.core.vault.key_encryption import KeyRing
from countersign.core.vault.vault import SealedColumn, Vault
from countersign.core.webhooks import deliveries, endpoints
from countersign.core.webhooks.address_guard import AddressGuard
from countersign.core.webhooks.deliver import DeliverWebhooks
from countersign.core.webhooks.endpoints import create_webhook_endpoint
from countersign.core.webhooks.model import (
    ClaimedDelivery,
    DeliveryStatus,
    Disabled,
    Endpoint,
    SendResult,
    SharedSecret,
    TargetAddress,
)
from countersign.core.webhooks.room import Webhooks, WebhookSecrets
from countersign.core.webhooks.routes import list_webhook_deliveries
from countersign.core.webhooks.schemas import (
    DeliveriesQuery,
    WebhookDelivery,
    WebhookEndpointRequest,
)
from countersign.core.webhooks.sender import WebhookSender
from tests.storage import items
from tests.support.acts import asked
from tests.support.databases import Run
from tests.support.engines import ENGINES
from tests.unit.support import HandClock
from tests.webhooks.telling import desk  # noqa: F401 - a fixture

TIMEOUT_SECONDS = 60.0
"""So long that even a busy machine makes no good receiver fail."""
HURRIED_SECONDS = 2.0


class Sender(WebhookSender):
    """The real sender, which gives up soon on receivers named by a test."""

    def __init__(self, guard: AddressGuard, *, timeout_seconds: float) -> None:
        super().__init__(guard, timeout_seconds=timeout_seconds)
        self._patience = timeout_seconds
        self.hurried: set[int] = set()

    async def post(
        self, target: TargetAddress, headers: Mapping[str, str], body: bytes, account_id: str
    ) -> SendResult:
        self.timeout_seconds = HURRIED_SECONDS if target.port in self.hurried else self._patience
        return await super().post(target, headers, body, account_id)


@dataclass(kw_only=True)
class Service:
    """A server process's events and webhooks, with a clock set by hand."""

    database: Database
    clock: HandClock
    account_id: str
    room: Webhooks
    deliver: DeliverWebhooks
    hurried: set[int]
    """Ports of receivers that are not waited for long."""
    made: list[str] = field(default_factory=list)

    @property
    def reach(self) -> AccountReach:
        return AccountReach(self.account_id, Mode.TEST)

    @property
    def now(self) -> datetime:
        return from_ns(self.clock.time_ns())

    async def endpoint(
        self, address: str, types: frozenset[EventType] | None = None
    ) -> tuple[Endpoint, SharedSecret]:
        """Make an endpoint; gives its secret too."""
        wanted = WebhookEndpointRequest(
            url=address, event_types=None if types is None else sorted(types)
        )
        return await self.endpoint_of(self.reach, wanted)

    async def endpoint_of(
        self, reach: AccountReach, wanted: WebhookEndpointRequest
    ) -> tuple[Endpoint, SharedSecret]:
        """The same for an account and mode."""
        who = Principal(
            key_id="key_of_a_test",
            account_id=reach.account_id,
            mode=reach.mode,
            scopes=frozenset(),
            credential=KeyKind.SECRET.credential,
        )
        write = Writing(self.database)
        made = await create_webhook_endpoint(self.room, who, wanted, None, write)
        secret = SharedSecret.from_text(made.secret)
        find = endpoints.get_endpoint
        return await self.database.read(find, reach, made.endpoint_id), secret

    async def happen(
        self, number: int = 1, type_: EventType = EventType.ACKNOWLEDGMENT_CREATED
    ) -> list[str]:
        """Let something happen this many times; gives the ids of the events."""
        new = [
            NewEvent(self.account_id, Mode.TEST, type_, items.identifier("ack"), self.now)
            for _ in range(number)
        ]
        before = {event.id for event in await self.everything()}
        await write(self.database, new)
        # On PostgreSQL they are visible when older transactions have ended, including others'.
        made: list[str] = []
        for _ in range(500):
            made = [event.id for event in await self.everything() if event.id not in before]
            if len(made) == number:
                return made
            await asyncio.sleep(0.02)
        raise AssertionError(f"{len(made)} of {number} events are seen")

    async def everything(self) -> list[Event]:
        """All events of the account, read page by page."""
        found: list[Event] = []
        after = None
        while True:
            page = await self.events(after=after, limit=100)
            if not page.data:
                return found
            found += page.data
            after = page.data[-1].id

    async def recorded(self) -> list[RecordedEvent]:
        """The same as they are stored."""
        events = self.room.events
        found = [await asked(find_event, events, self.reach, e.id) for e in await self.everything()]
        return [event for event in found if event is not None]

    async def events(self, **query: Any) -> Page[Event]:  # noqa: ANN401 - of EventsQuery
        """A page of the account's events."""
        return await asked(list_events, self.room.events, self.reach, EventsQuery(**query))

    async def log(
        self, endpoint: Endpoint, status: DeliveryStatus | None = None
    ) -> list[WebhookDelivery]:
        """The deliveries to an endpoint, oldest first."""
        query = DeliveriesQuery(status=status, limit=100)
        return (await list_webhook_deliveries(self.room, query, endpoint)).data[::-1]

    async def again(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint as it is now."""
        return await self.database.read(endpoints.get_endpoint, self.reach, endpoint.id)

    async def fan_out(self, endpoint: Endpoint, limit: int) -> int:
        return await self.database.write(deliveries.fan_out, endpoint.id, self.now, limit)

    async def claim(
        self, endpoint: Endpoint, lease_until: datetime, limit: int
    ) -> Sequence[ClaimedDelivery]:
        return await self.database.write(
            deliveries.claim, endpoint.id, self.now, lease_until, limit
        )

    async def disable(self, endpoint: Endpoint) -> None:
        """As after a response 410."""
        await self.database.write(endpoints.disable_endpoint, endpoint, Disabled.GONE, self.now)


async def write(opened: Database, new: Sequence[NewEvent]) -> None:
    """Write events in a transaction of their own."""
    await opened.write(write_events, new)


def assemble(
    opened: Database,
    account_id: str,
    clock: HandClock,
    *,
    guard: AddressGuard | None = None,
    private: bool = True,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> Service:
    """Assemble a server process's webhooks."""
    access = open_access(
        opened,
        DeploymentSecret(b"s" * 32),
        operator="someone",
        clock=clock,
        entropy=os.urandom,
    )
    ring = KeyRing(lambda: key_text(b"k" * 32), os.urandom)
    vault = Vault(opened, ring, clock, os.urandom)
    sender = Sender(guard or AddressGuard(private=private), timeout_seconds=timeout_seconds)
    room = Webhooks(
        access=access,
        events=Events(access=access, ids=EventIds(b"event ids of this test")),
        secrets=WebhookSecrets(vault, clock, os.urandom),
        responses=SealedColumn(vault, os.urandom, "webhook_deliveries", "response"),
        sender=sender,
        private=private,
        timeout_seconds=timeout_seconds,
    )
    return Service(
        hurried=sender.hurried,
        database=opened,
        clock=clock,
        account_id=account_id,
        room=room,
        deliver=DeliverWebhooks(room),
    )


@pytest.fixture(params=ENGINES)
def engine_name(request: pytest.FixtureRequest) -> str:
    """Give each engine in turn."""
    name: str = request.param
    return name


@pytest.fixture
def clock() -> HandClock:
    """Give a clock that stands still."""
    return HandClock()


@pytest.fixture
def service(database: Database, run: Run, clock: HandClock) -> Iterator[Service]:
    """Give the services over an empty database, which accept this machine as a receiver."""
    account = items.account()
    run(database.write(add_account, account))
    assembled = assemble(database, account.id, clock)
    yield assembled
    run(assembled.room.sender.close())
