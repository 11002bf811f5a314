"""Mistakes of good implementations, each tested here where it could have been repeated."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from dataclasses import fields, replace
from datetime import UTC, datetime
from types import ModuleType

import pytest

from countersign.base.db.database import Database
from countersign.base.errors import InternalError
from countersign.base.values import Mode, rfc3339
from countersign.core.access.account import add_account
from countersign.core.buyers import expiry
from countersign.core.buyers.model import BuyerStatus
from countersign.core.events import sql as events
from countersign.core.events import sql as events_store
from countersign.core.events.model import EventType, NewEvent, Position, RecordedEvent
from countersign.core.webhooks import deliver as deliver_webhooks
from countersign.core.webhooks import deliveries
from countersign.core.webhooks import endpoints as webhook_endpoints
from countersign.core.webhooks import model as standard_webhooks
from countersign.core.webhooks import sender as webhook_sender
from countersign.core.webhooks.model import Endpoint, EndpointSecret
from tests.storage import items
from tests.support.databases import Run
from tests.unit.support import HandClock
from tests.webhooks.conftest import Service, assemble, write

pytestmark = pytest.mark.both_engines

NOW = datetime(2026, 11, 20, 21, 31, tzinfo=UTC)


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles", "Asia/Kathmandu"])
def test_the_time_of_an_event_is_utc_wherever_the_server_stands(zone: str) -> None:
    """The machine's own zone is not asked."""
    program = (
        "from datetime import datetime, UTC, timedelta, timezone;"
        "from countersign.base.values import rfc3339;"
        "print(rfc3339(datetime(2026, 11, 20, 22, 31, tzinfo=timezone(timedelta(hours=1)))))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"TZ": zone},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.strip() == "2026-11-20T21:31:00Z" == rfc3339(NOW)


def test_an_event_without_a_time_zone_is_not_written(
    service: Service, database: Database, run: Run
) -> None:
    """A naive time would be read as somebody's local one."""
    type_, naive = EventType.BUYER_FAILED, NOW.replace(tzinfo=None)
    new = NewEvent(service.account_id, Mode.TEST, type_, "cbid_test_x", naive)
    with pytest.raises(InternalError):
        run(write(database, [new]))
    assert run(service.everything()) == []


@pytest.mark.parametrize(
    "status", [s for s in BuyerStatus if s not in {BuyerStatus.VERIFIED, BuyerStatus.EXPIRED}]
)
def test_only_a_verified_buyer_is_reported_as_verified(
    status: BuyerStatus, database: Database, run: Run, clock: HandClock
) -> None:
    """Not a session that has merely begun: opening a link verifies nothing."""

    async def scenario() -> None:
        owner = items.account()
        await database.write(add_account, owner)
        service = assemble(database, owner.id, clock)
        begun, verified = items.identifier("cbid_test"), items.identifier("cbid_test")
        await items.verify(database, items.verification(owner, begun, status=status))
        await items.verify(database, items.verification(owner, verified))
        found = [(event.type, event.object_id) for event in await service.recorded()]
        positive = [object_id for type_, object_id in found if type_ is EventType.BUYER_VERIFIED]
        assert positive == [verified]
        named = [type_.value for type_, object_id in found if object_id == begun]
        assert named == ([] if status is BuyerStatus.PENDING else [f"buyer.{status}"])

    run(scenario())


def test_a_copy_shares_nothing_mutable() -> None:
    """A changed copy of an endpoint, an event or a secret leaves the first as it was."""
    secret = EndpointSecret(
        id="whs_1", public_key="whpk_x", sealed=b"s", created_at=NOW, expires_at=None
    )
    endpoint = Endpoint(
        id="we_1",
        account_id="acct_1",
        mode=Mode.TEST,
        url="https://hook.example.com/",
        description="",
        event_types=frozenset({EventType.BUYER_FAILED}),
        created_at=NOW,
        disabled_at=None,
        disabled_reason=None,
        secrets=(secret,),
    )
    event = RecordedEvent.example("acct_1", Mode.TEST, EventType.NOTICE_PUBLISHED, NOW)
    for thing in (secret, endpoint, replace(endpoint, url="https://other.example.com/"), event):
        hash(thing)  # whatever could change has no hash
        for field in fields(thing):
            with pytest.raises(AttributeError):
                setattr(thing, field.name, None)
    shown = event.data
    shown["notice_id"] = "changed"
    assert event.data["notice_id"] == "example"
    assert Position(0, 1) < Position(1, 0)


@pytest.mark.parametrize(
    "module",
    [
        standard_webhooks, deliver_webhooks, webhook_endpoints, events, webhook_sender,
        deliveries, events_store, expiry,
    ],
)  # fmt: skip
def test_no_method_exists_in_a_sync_and_an_async_version(module: ModuleType) -> None:
    """No code exists in a sync and an async version: no two names differ by such a mark."""
    names = {
        name
        for owner in (module, *(o for o in vars(module).values() if inspect.isclass(o)))
        for name, member in vars(owner).items()
        if callable(member) and not name.startswith("__")
    }
    assert names
    twins = {n for n in names for mark in ("a", "async_", "aio_") if mark + n in names}
    twins |= {n for n in names for mark in ("_async", "_sync", "_aio") if n + mark in names}
    assert twins == set()
