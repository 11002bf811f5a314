"""Everything that delivers webhooks, put together by hand: a real database, real sockets."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import pytest

from countersign.access.account import add_account
from countersign.access.reach import AccountReach
from countersign.access.room import open_access
from countersign.access.secrets import DeploymentSecret
from countersign.db.database import Database
from countersign.events.model import EventIds, EventType, EventView, NewEvent
from countersign.events.read_events import list_events
from countersign.events.room import Events
from countersign.events.sql import write_events
from countersign.instant import from_ns
from countersign.mode import Mode
from countersign.vault.key_encryption import KeyRing, key_text
from countersign.vault.vault import Vault
from countersign.webhooks import deliveries, endpoints
from countersign.webhooks.address_guard import AddressGuard
from countersign.webhooks.deliver import DeliverWebhooks
from countersign.webhooks.model import (
    ClaimedDelivery,
    DeliveryStatus,
    Disabled,
    Endpoint,
    SendResult,
    TargetAddress,
)
from countersign.webhooks.room import Webhooks, WebhookSecrets
from countersign.webhooks.schemas import DeliveriesQuery, WebhookDelivery, WebhookEndpointRequest
from countersign.webhooks.sender import WebhookSender
from countersign.webhooks.signature import SharedSecret
from tests.storage import items
from tests.storage.conftest import (  # noqa: F401 - fixtures
    Run,
    database,
    own_url,
    postgres_shared,
    postgres_template,
    run,
    sqlite_template,
    url,
)
from tests.support.engines import ENGINES
from tests.unit.support import HandClock
from tests.webhooks.telling import desk  # noqa: F401 - a fixture

TIMEOUT_SECONDS = 60.0
"""So long that a busy machine makes no receiver fail that a test believes to be good."""
HURRIED_SECONDS = 2.0


class Sender(WebhookSender):
    """The real one, which gives up soon on the receivers that a test names."""

    def __init__(self, guard: AddressGuard, *, timeout_seconds: float) -> None:
        super().__init__(guard, timeout_seconds=timeout_seconds)
        self._patience = timeout_seconds
        self.hurried: set[int] = set()

    async def post(
        self, target: TargetAddress, headers: Mapping[str, str], body: bytes, account_id: str
    ) -> SendResult:
        self._timeout = HURRIED_SECONDS if target.port in self.hurried else self._patience
        return await super().post(target, headers, body, account_id)


@dataclass(kw_only=True)
class Service:
    """What one server process has of events and webhooks, with a clock set by hand."""

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
        made = await endpoints.create_endpoint(self.room, self.reach, wanted)
        assert made.new_secret is not None
        return made, made.new_secret

    async def happen(
        self, number: int = 1, type_: EventType = EventType.ACKNOWLEDGMENT_CREATED
    ) -> list[str]:
        """Let something happen this many times; gives the ids of the events."""
        new = [
            NewEvent(self.account_id, Mode.TEST, type_, items.identifier("ack"), self.now)
            for _ in range(number)
        ]
        before = {view.id for view in await self.everything()}
        await write(self.database, new)
        # On PostgreSQL they are seen when older transactions have ended, those of others included.
        made: list[str] = []
        for _ in range(500):
            made = [view.id for view in await self.everything() if view.id not in before]
            if len(made) == number:
                return made
            await asyncio.sleep(0.02)
        raise AssertionError(f"{len(made)} of {number} events are seen")

    async def everything(self) -> list[EventView]:
        """All events of the account, read page by page."""
        found: list[EventView] = []
        after = None
        while True:
            page, _ = await list_events(self.room.events, self.reach, after=after, limit=100)
            if not page:
                return found
            found += page
            after = page[-1].id

    async def log(
        self, endpoint: Endpoint, status: DeliveryStatus | None = None
    ) -> list[WebhookDelivery]:
        """The deliveries to an endpoint, oldest first."""
        page = await deliveries.list_deliveries(
            self.room, endpoint, DeliveriesQuery(status=status, limit=100)
        )
        return page.data[::-1]

    async def again(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint as it is now."""
        return await endpoints.get_endpoint(self.room, self.reach, endpoint.id)

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
    """Put together what a server process has of webhooks."""
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
def service(database: Database, run: Run, clock: HandClock) -> Iterator[Service]:  # noqa: F811 - fixtures
    """Give the services over an empty database, which accept this machine as a receiver."""
    account = items.account()
    run(database.write(add_account, account))
    assembled = assemble(database, account.id, clock)
    yield assembled
    run(assembled.room.sender.close())
