"""Changes of an endpoint: each changes only the given members, whatever happens concurrently."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections import Counter
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from countersign.base.db.database import Database
from countersign.base.db.engine import SQLITE_FILE, database_url
from countersign.base.errors import WebhookEndpointDisabled
from countersign.core.access.account import add_account
from countersign.core.events.model import EventType
from countersign.core.webhooks import deliveries, endpoints
from countersign.core.webhooks.model import Disabled, Endpoint
from countersign.core.webhooks.schemas import WebhookEndpointChange
from tests.storage import items
from tests.support.acts import done
from tests.support.databases import Run
from tests.unit.support import HandClock
from tests.webhooks.conftest import Service, assemble
from tests.webhooks.receiver import Answer, Received, running_receiver

T = TypeVar("T")
NOWHERE, ELSEWHERE = "http://127.0.0.1:9/hook", "http://127.0.0.1:9/other"
TYPES = (EventType.ACKNOWLEDGMENT_CREATED, EventType.BUYER_VERIFIED)


def test_changes_at_the_same_time_are_all_kept(service: Service, run: Run) -> None:
    """Each was answered with success, so none may undo another."""

    async def scenario() -> None:
        wanted = frozenset({EventType.BUYER_REVOKED})
        for _ in range(10):
            read, _ = await service.endpoint(NOWHERE)
            changes = (
                WebhookEndpointChange(disabled=True),
                WebhookEndpointChange(description="for people"),
                WebhookEndpointChange(url=ELSEWHERE),
                WebhookEndpointChange(event_types=sorted(wanted)),
            )
            await asyncio.gather(
                *(done(endpoints.change_webhook_endpoint, service.room, c, read) for c in changes)
            )
            now = await service.again(read)
            assert now.disabled_reason is Disabled.REQUESTED
            assert (now.description, now.url, now.event_types) == ("for people", ELSEWHERE, wanted)
            await done(endpoints.delete_webhook_endpoint, service.room, read)

    run(scenario())


def test_a_change_does_not_enable_an_endpoint_that_answered_410_meanwhile(
    service: Service, run: Run
) -> None:
    """It would continue from the end, and the events in between would never be sent."""

    async def scenario() -> None:
        read, _ = await service.endpoint(NOWHERE)
        await service.disable(read)
        changed = await done(
            endpoints.change_webhook_endpoint,
            service.room,
            WebhookEndpointChange(description="new"),
            read,
        )
        assert changed.disabled_reason is Disabled.GONE
        assert (await service.again(read)).disabled_reason is Disabled.GONE

    run(scenario())


def test_the_410_of_an_old_address_does_not_disable_the_new_one(service: Service, run: Run) -> None:
    """Moving away from a vanished receiver is the usual remedy."""

    async def scenario() -> None:
        read, _ = await service.endpoint(NOWHERE)
        await done(
            endpoints.change_webhook_endpoint,
            service.room,
            WebhookEndpointChange(url=ELSEWHERE),
            read,
        )
        await service.disable(read)
        assert (await service.again(read)).disabled_reason is None

    run(scenario())


def test_nothing_is_resent_to_an_endpoint_that_was_disabled_meanwhile(
    service: Service, run: Run
) -> None:
    """A delivery made then would wait for as long as the endpoint is disabled."""

    async def scenario() -> None:
        read, _ = await service.endpoint(NOWHERE)
        (event_id,) = await service.happen()
        await done(
            endpoints.change_webhook_endpoint,
            service.room,
            WebhookEndpointChange(disabled=True),
            read,
        )
        with pytest.raises(WebhookEndpointDisabled):
            await done(deliveries.resend, service.room, read, event_id)
        assert await service.log(read) == []

    run(scenario())


def test_an_endpoint_enabled_meanwhile_is_sent_what_is_asked(service: Service, run: Run) -> None:
    """Its row decides, not the earlier reading of a request that was overtaken."""

    async def scenario() -> None:
        read, _ = await service.endpoint(NOWHERE)
        (event_id,) = await service.happen()
        change = endpoints.change_webhook_endpoint
        await done(change, service.room, WebhookEndpointChange(disabled=True), read)
        old = await service.again(read)
        await done(change, service.room, WebhookEndpointChange(disabled=False), old)
        assert old.disabled_at is not None
        await done(deliveries.resend, service.room, old, event_id)
        await done(deliveries.recover, service.room, old, service.room.now)

    run(scenario())


class Endpoints(RuleBasedStateMachine):
    """An endpoint, with an oracle of a few plain lines.

    Every act uses some earlier reading of the endpoint, as a request does that was overtaken.
    """

    def __init__(self, template: Path) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self._folder = tempfile.TemporaryDirectory()
        shutil.copy(template, Path(self._folder.name) / SQLITE_FILE)
        self._database = Database(database_url(None, Path(self._folder.name)))
        self._run(self._database.__aenter__())
        account = items.account()
        self._run(self._database.write(add_account, account))
        self._service = assemble(self._database, account.id, HandClock())
        self._receiving = running_receiver()
        self._receiver = self._run(self._receiving.__aenter__())
        self._gone = False
        self._receiver.answer = self._answer
        self._urls = [self._receiver.url + path for path in ("/a", "/b")]
        endpoint, _ = self._run(self._service.endpoint(self._urls[0]))
        self._readings = [endpoint]
        self._events: list[str] = []
        # The expectation: the endpoint itself, and the arrivals at each place, with their number.
        self._oracle = endpoint
        self._expected: Counter[tuple[str, str]] = Counter()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def _answer(self, _: Received) -> Answer:
        return Answer(status=410 if self._gone else 204)

    def _reading(self, number: int) -> Endpoint:
        return self._readings[number % len(self._readings)]

    def _arrives(self, event_id: str) -> None:
        self._expected[self._oracle.url, event_id] += 1
        if self._gone:
            self._oracle = replace(self._oracle, disabled_reason=Disabled.GONE)

    @rule(
        reading=st.integers(0, 9),
        url=st.none() | st.integers(0, 1),
        description=st.none() | st.sampled_from(["", "for people"]),
        types=st.none() | st.frozensets(st.sampled_from(TYPES), min_size=1),
        disabled=st.none() | st.booleans(),
    )
    def patch(
        self,
        reading: int,
        url: int | None,
        description: str | None,
        types: frozenset[EventType] | None,
        disabled: bool | None,
    ) -> None:
        changes = WebhookEndpointChange(
            url=None if url is None else self._urls[url],
            description=description,
            event_types=None if types is None else sorted(types),
            disabled=disabled,
        )
        self._run(
            done(
                endpoints.change_webhook_endpoint,
                self._service.room,
                changes,
                self._reading(reading),
            )
        )
        given = {"url": changes.url, "description": description, "event_types": types}
        named: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if disabled is not None:
            reason = self._oracle.disabled_reason or Disabled.REQUESTED
            named["disabled_reason"] = reason if disabled else None
        self._oracle = replace(self._oracle, **named)

    @rule()
    def read(self) -> None:
        self._readings.append(self._run(self._service.again(self._readings[0])))

    @rule(gone=st.booleans())
    def answer_from_now_on(self, gone: bool) -> None:
        self._gone = gone

    @rule(reading=st.integers(0, 9))
    def late_410(self, reading: int) -> None:
        read = self._reading(reading)
        self._run(self._service.disable(read))
        if self._oracle.disabled_reason is None and read.url == self._oracle.url:
            self._oracle = replace(self._oracle, disabled_reason=Disabled.GONE)

    @rule(type_=st.sampled_from(TYPES))
    def event(self, type_: EventType) -> None:
        (event_id,) = self._run(self._service.happen(1, type_))
        self._events.append(event_id)
        self._run(self._service.deliver.settle())
        if self._oracle.disabled_reason is None and self._oracle.wants(type_):
            self._arrives(event_id)

    @rule(reading=st.integers(0, 9), number=st.integers(0, 9))
    def resend(self, reading: int, number: int) -> None:
        if not self._events:
            return
        event_id = self._events[number % len(self._events)]
        act = done(deliveries.resend, self._service.room, self._reading(reading), event_id)
        if self._oracle.disabled_reason is None:
            self._run(act)
            self._run(self._service.deliver.settle())
            self._arrives(event_id)
        else:
            with pytest.raises(WebhookEndpointDisabled):
                self._run(act)

    @invariant()
    def is_as_expected(self) -> None:
        now, expected = self._run(self._service.again(self._readings[0])), self._oracle
        for name in ("url", "description", "event_types", "disabled_reason"):
            assert getattr(now, name) == getattr(expected, name), name
        base = self._receiver.url.removesuffix("/hook")
        arrived = Counter((base + r.target, r.id) for r in self._receiver.received)
        assert arrived == self._expected

    def teardown(self) -> None:
        self._run(self._service.room.sender.close())
        self._run(self._receiving.__aexit__(None, None, None))
        self._run(self._database.__aexit__(None, None, None))
        self._runner.close()
        self._folder.cleanup()


@pytest.mark.timeout(120)
def test_an_endpoint_has_the_requested_settings_and_gets_the_wanted_events(
    sqlite_template: Path,
) -> None:
    """PATCH, 410, events and resending in any order, each from a reading that may be old."""
    run_state_machine_as_test(
        lambda: Endpoints(sqlite_template),  # type: ignore[arg-type]  # whatever makes one
        settings=settings(
            max_examples=8,
            stateful_step_count=20,
            deadline=None,
            # Shrinking takes minutes here, and twenty steps can be read as they are.
            phases=(Phase.explicit, Phase.generate),
            suppress_health_check=list(HealthCheck),
        ),
    )
