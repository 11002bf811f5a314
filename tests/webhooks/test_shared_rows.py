"""Acknowledgments that are written together share a row of events, and no reader sees that."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from random import Random

import pytest
from sqlalchemy import Connection, text

from countersign.base.db.database import Database
from countersign.base.db.statements import deferred_statements
from countersign.base.db.tables import NUMBERS
from countersign.base.errors import NotFound
from countersign.base.values import Mode, from_ms, made_at_ms, to_ms
from countersign.core.access.reach import AccountReach
from countersign.core.events.model import KEPT, EventType, NewEvent
from countersign.core.events.routes import get_event
from countersign.core.events.sql import defer_acknowledged, write_events
from countersign.core.webhooks.deliveries import delete_old
from tests.storage import items
from tests.support.acts import asked
from tests.support.databases import Run
from tests.support.depth import some
from tests.webhooks.conftest import Service

pytestmark = pytest.mark.both_engines

CREATED, SEALED = EventType.ACKNOWLEDGMENT_CREATED, EventType.ACKNOWLEDGMENT_SEALED
Seen = tuple[str, str, int]
"""An event as a reader sees it: its type, its object, and Unix milliseconds."""


async def acknowledge(
    service: Service, number: int, sealed_at: int | None, other: str
) -> list[Seen]:
    """Write acknowledgments, every third one of another account; returns the own events."""
    new = [
        (other if n % 3 == 2 else service.account_id, items.identifier("ack", service.now))
        for n in range(number)
    ]

    def act(connection: Connection, batch: Sequence[None]) -> list[None]:
        deferred = deferred_statements(connection)
        assert deferred is not None
        defer_acknowledged(connection, deferred, Mode.TEST, new, sealed_at)
        return [None] * len(batch)

    await service.database.write_batched(act, None)
    seen: list[Seen] = []
    for account, ack_id in new:
        if account == service.account_id:
            seen.append((CREATED, ack_id, made_at_ms(ack_id)))
            seen += [(SEALED, ack_id, sealed_at)] if sealed_at is not None else []
    return seen


async def something_else(service: Service) -> list[Seen]:
    """Write an event that has a row of its own."""
    cbid, verified = items.identifier("cbid_test"), EventType.BUYER_VERIFIED
    await service.database.write(
        write_events, [NewEvent(service.account_id, Mode.TEST, verified, cbid, service.now)]
    )
    return [(verified, cbid, to_ms(service.now))]


async def history(service: Service, dice: Random) -> list[Seen]:
    """Let things happen in one random order."""
    expected: list[Seen] = []
    for _ in range(12):
        service.clock.advance(dice.randint(0, 3))
        if dice.random() < 0.3:
            expected += await something_else(service)
            continue
        sealed_at = to_ms(service.now) if dice.random() < 0.6 else None
        number = dice.choice((1, 2, 5, 40, NUMBERS + 60))
        expected += await acknowledge(service, number, sealed_at, "acct_of_another")
    return expected


async def all_seen(service: Service, number: int) -> list[tuple[str, Seen]]:
    """Each event with its id, once there are enough: older transactions may hide the newest."""
    found = await service.recorded()
    for _ in range(500):
        if len(found) >= number:
            break
        await asyncio.sleep(0.02)
        found = await service.recorded()
    id_of = service.room.events.ids.of
    return [(id_of(e), (e.type, e.object_id, to_ms(e.created_at))) for e in found]


@pytest.mark.parametrize("seed", some(range(4)))
def test_rows_that_hold_several_events_are_read_as_if_each_had_its_own(
    seed: int, service: Service, run: Run
) -> None:
    """By pages of any size, by type, by time, one by one, and by a webhook endpoint."""
    dice = Random(seed)

    async def scenario() -> None:
        endpoint, _ = await service.endpoint("http://127.0.0.1:9/hook", frozenset({SEALED}))
        expected = await history(service, dice)
        everything = await all_seen(service, len(expected))
        assert [seen for _, seen in everything] == expected
        assert len({id_ for id_, _ in everything}) == len(expected)
        for id_, seen in dice.sample(everything, min(20, len(everything))):
            event = await asked(get_event, service.room.events, service.reach, id_)
            assert (event.type, *event.data.values()) == seen[:2]
            another = AccountReach("acct_of_another", Mode.TEST)
            with pytest.raises(NotFound):
                await asked(get_event, service.room.events, another, id_)
        since = from_ms(dice.choice(expected)[2])
        for type_ in (None, CREATED, SEALED, EventType.BUYER_VERIFIED):
            for moment in (None, since):
                found, after = list[str](), None
                while True:
                    limit = dice.choice((1, 3, 50))
                    page = await service.events(type=type_, since=moment, after=after, limit=limit)
                    found += [event.id for event in page.data]
                    after = page.next_cursor
                    if after is None:
                        break
                wanted = [
                    id_
                    for id_, (of, _, at) in everything
                    if type_ in {None, of} and (moment is None or from_ms(at) >= moment)
                ]
                assert found == wanted, (type_, moment)
        processed = 0
        while some := await service.fan_out(endpoint, dice.choice((1, 7, 100))):
            processed += some
        assert processed == len(expected)
        sealed = [id_ for id_, seen in everything if seen[0] == SEALED]
        claimed = await service.claim(endpoint, service.now + timedelta(minutes=1), 10_000)
        ids = service.room.events.ids
        assert [ids.of(one.event) for one in claimed] == sealed
        assert [one.event.id for one in await service.log(endpoint)] == sealed[-100:]

    run(scenario())


def test_a_shared_row_ends_as_one_and_numbers_continue_after_it(
    service: Service, database: Database, run: Run
) -> None:
    """The next event has its own number, even if only the newest row is left."""

    async def scenario() -> None:
        await acknowledge(service, 90, None, "acct_of_another")
        kept = await acknowledge(service, 3, to_ms(service.now), "acct_of_another")
        for _ in range(3):
            await database.write(delete_old, service.now + KEPT + timedelta(days=1), 100)
        rows = await database.read(
            lambda connection: connection.execute(text("SELECT objects FROM events")).all()
        )
        assert len(rows) == 1
        kept = [event for event in kept if event[1] in rows[0].objects]
        later = await something_else(service) + await acknowledge(service, 1, None, "other")
        found = await all_seen(service, len(kept) + 2)
        assert [seen for _, seen in found] == kept + later
        assert len({id_ for id_, _ in found}) == len(found)

    run(scenario())
