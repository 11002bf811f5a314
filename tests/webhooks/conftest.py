"""Everything that delivers webhooks, put together by hand: a real database, real sockets."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import pytest

from countersign.access import accounts_sql as accounts_store
from countersign.access.key import VENDOR_SCOPES, Principal
from countersign.db.database import Database
from countersign.events.model import EventIds, EventType, NewEvent
from countersign.events.read_events import EventView, ReadEvents
from countersign.events.sql import Events, write_events
from countersign.instant import from_ns
from countersign.mode import Mode
from countersign.vault.data_keys_sql import DataKeys
from countersign.vault.key_encryption import KeyRing, key_text
from countersign.vault.vault import Vault
from countersign.webhooks import sql as webhooks_store
from countersign.webhooks.address_guard import AddressGuard
from countersign.webhooks.deliver import DeliverWebhooks
from countersign.webhooks.deliveries_sql import Deliveries
from countersign.webhooks.endpoints import WebhookEndpoints
from countersign.webhooks.model import (
    Delivery,
    DeliveryStatus,
    EndpointChanges,
    Sent,
    Target,
    WebhookEndpoint,
)
from countersign.webhooks.secrets import WebhookSecrets
from countersign.webhooks.sender import WebhookSender
from countersign.webhooks.signature import SharedSecret
from tests.storage import items
from tests.storage.conftest import (  # noqa: F401 - fixtures
    Run,
    database,
    postgres_shared,
    run,
    sqlite_template,
    url,
)
from tests.support.engines import ENGINES
from tests.unit.support import HandClock
from tests.webhooks.telling import desk  # noqa: F401 - a fixture

TIMEOUT_SECONDS = 60.0
"""So long that a busy machine makes no receiver fail that a test believes to be good."""
HURRIED_SECONDS = 1.0


class Sender(WebhookSender):
    """The real one, which gives up soon on the receivers that a test names."""

    def __init__(self, guard: AddressGuard, *, timeout_seconds: float) -> None:
        super().__init__(guard, timeout_seconds=timeout_seconds)
        self._patience = timeout_seconds
        self.hurried: set[int] = set()

    async def post(
        self, target: Target, headers: Mapping[str, str], body: bytes, account_id: str
    ) -> Sent:
        self._timeout = HURRIED_SECONDS if target.port in self.hurried else self._patience
        return await super().post(target, headers, body, account_id)


@dataclass(kw_only=True)
class Service:
    """What one server process has of events and webhooks, with a clock set by hand."""

    database: Database
    clock: HandClock
    account_id: str
    events: ReadEvents
    store: Deliveries
    endpoints: WebhookEndpoints
    deliver: DeliverWebhooks
    hurried: set[int]
    """Ports of receivers that are not waited for long."""
    made: list[str] = field(default_factory=list)

    @property
    def principal(self) -> Principal:
        """A key of the account."""
        return Principal(
            key_id="key_of_this_test",
            account_id=self.account_id,
            mode=Mode.TEST,
            scopes=VENDOR_SCOPES,
            credential="secret_key",
        )

    @property
    def now(self) -> datetime:
        return from_ns(self.clock.time_ns())

    async def endpoint(
        self, address: str, types: frozenset[EventType] | None = None
    ) -> tuple[WebhookEndpoint, SharedSecret]:
        """Make an endpoint; gives its secret too."""
        changes = EndpointChanges(url=address, event_types=types)
        view = await self.endpoints.create(self.account_id, Mode.TEST, changes)
        assert view.secret is not None
        return view.endpoint, view.secret

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
            page, _ = await self.events.many(
                self.principal, type_=None, after=after, since=None, limit=100
            )
            if not page:
                return found
            found += page
            after = page[-1].id

    async def log(
        self, endpoint: WebhookEndpoint, status: DeliveryStatus | None = None
    ) -> list[Delivery]:
        """The deliveries to an endpoint, oldest first."""
        found, _ = await self.endpoints.deliveries(endpoint, status=status, before=None, limit=100)
        return [delivery for _, delivery in reversed(found)]

    async def again(self, endpoint: WebhookEndpoint) -> WebhookEndpoint:
        """The endpoint as it is now."""
        return await self.endpoints.get(self.account_id, Mode.TEST, endpoint.id)


async def write(opened: Database, new: Sequence[NewEvent]) -> None:
    """Write events in a transaction of their own."""
    await opened.write_batched(_write, new)


def _write(connection: object, batch: Sequence[Sequence[NewEvent]]) -> list[None]:
    for new in batch:
        write_events(connection, new)  # type: ignore[arg-type]  # a Connection, as for every act
    return [None] * len(batch)


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
    ring = KeyRing(lambda: key_text(b"k" * 32), os.urandom)
    secrets = WebhookSecrets(Vault(DataKeys(opened), ring, clock, os.urandom), clock, os.urandom)
    events = ReadEvents(Events(opened), EventIds(b"event ids of this test"), clock)
    store = Deliveries(opened)
    sender = Sender(guard or AddressGuard(private=private), timeout_seconds=timeout_seconds)
    return Service(
        hurried=sender.hurried,
        database=opened,
        clock=clock,
        account_id=account_id,
        events=events,
        store=store,
        endpoints=WebhookEndpoints(
            store=webhooks_store.WebhookEndpoints(opened),
            deliveries=store,
            events=events,
            secrets=secrets,
            private=private,
            clock=clock,
            entropy=os.urandom,
        ),
        deliver=DeliverWebhooks(
            store=store,
            events=events,
            secrets=secrets,
            sender=sender,
            timeout_seconds=timeout_seconds,
            private=private,
            clock=clock,
            entropy=os.urandom,
        ),
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
    run(accounts_store.Accounts(database).add(account))
    assembled = assemble(database, account.id, clock)
    yield assembled
    run(assembled.deliver.close())
