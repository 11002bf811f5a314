"""Events: one order for all readers, and nothing that happened is ever passed over."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import URL, Connection, Engine, text

from countersign.base.db.database import Database
from countersign.base.db.engine import Purpose, open_engine
from countersign.base.errors import CursorExpired, InvalidRequest, NotFound
from countersign.base.values import Mode
from countersign.core.access.account import add_account
from countersign.core.access.reach import AccountReach
from countersign.core.buyers.sql import write_buyer_events
from countersign.core.events import sql as events_store
from countersign.core.events.model import KEPT, EventIds, EventType, NewEvent
from countersign.core.events.routes import event_view, get_event, message_of
from countersign.core.events.sql import (
    find_event,
    renumber_restored,
    write_events,
    write_notice_events,
)
from countersign.core.webhooks.deliveries import delete_old
from tests.storage import items
from tests.storage.items import NOON
from tests.support.acts import asked
from tests.support.databases import Run, on_postgres
from tests.unit.support import HandClock
from tests.webhooks.conftest import Service, assemble

pytestmark = pytest.mark.both_engines


def test_events_are_read_in_the_order_in_which_they_were_written(
    service: Service, run: Run
) -> None:
    """Page by page, each after the one before: the whole list and nothing twice."""

    async def scenario() -> None:
        ids = await service.happen(250)
        found = await service.everything()
        assert [view.id for view in found] == ids
        page = await service.events(limit=100)
        assert page.next_cursor == page.data[-1].id == ids[99]
        page = await service.events(after=ids[200], limit=100)
        assert [event.id for event in page.data] == ids[201:]
        assert page.next_cursor is None

    run(scenario())


def test_an_event_says_what_happened_in_identifiers_alone(service: Service, run: Run) -> None:
    """id, type, livemode, created_at and data; no names, no addresses, no initials."""

    async def scenario() -> None:
        (id_,) = await service.happen(1, EventType.BUYER_VERIFIED)
        events = service.room.events
        event = await asked(find_event, events, service.reach, id_)
        assert event is not None
        assert message_of(event_view(events.ids, event)) == {
            "id": id_,
            "type": "buyer.verified",
            "livemode": False,
            "created_at": "2026-11-20T21:31:00Z",
            "timestamp": "2026-11-20T21:31:00Z",
            "data": {"cbid": event.object_id},
        }

    run(scenario())


def test_a_type_and_a_time_narrow_the_list(service: Service, run: Run) -> None:
    """`type` and `since` leave the order and the cursor as they are."""

    async def scenario() -> None:
        await service.happen(3)
        (verified,) = await service.happen(1, EventType.BUYER_VERIFIED)
        service.clock.advance(60)
        since = service.now
        later = await service.happen(2)
        page = await service.events(type=EventType.BUYER_VERIFIED, limit=10)
        assert [event.id for event in page.data] == [verified]
        page = await service.events(since=since, limit=10)
        assert [event.id for event in page.data] == later

    run(scenario())


def test_a_rare_type_is_searched_in_bounded_steps(
    service: Service, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One step examines a limited number; continuing from its cursor finds all of the type."""
    monkeypatch.setattr(events_store, "WINDOW", 10)

    async def scenario() -> None:
        await service.happen(25)
        wanted = await service.happen(1, EventType.BUYER_VERIFIED)
        await service.happen(19)
        wanted += await service.happen(1, EventType.BUYER_VERIFIED)
        found: list[str] = []
        pages, cursor = 0, None
        while cursor is not None or not pages:
            page = await service.events(type=EventType.BUYER_VERIFIED, after=cursor, limit=3)
            found += [event.id for event in page.data]
            cursor = page.next_cursor
            pages += 1
        assert found == wanted
        assert pages == 5, "46 events, ten at a time"

    run(scenario())


def test_another_account_or_mode_sees_no_event(
    service: Service, database: Database, run: Run, clock: HandClock
) -> None:
    """Not in the list, not by its id, not as a cursor."""

    async def scenario() -> None:
        (id_,) = await service.happen()
        other_account = items.account()
        await database.write(add_account, other_account)
        other = assemble(database, other_account.id, clock)
        assert await other.everything() == []
        for account, mode in ((other_account.id, Mode.TEST), (service.account_id, Mode.LIVE)):
            with pytest.raises(NotFound):
                await asked(get_event, service.room.events, AccountReach(account, mode), id_)
        with pytest.raises(InvalidRequest):
            await other.events(after=id_, limit=10)

    run(scenario())


@pytest.mark.parametrize(
    "cursor", ["", "evt_", "ack_01km9x4v8gen3rr1p6q1s2t3v4", "evt_7zzzzzzzzzzzzzzzzzzzzzzzzz", "é"]
)
def test_an_invalid_cursor_is_refused(cursor: str, service: Service, run: Run) -> None:
    """A typing error must not silently start from the beginning."""
    with pytest.raises(InvalidRequest):
        run(service.events(after=cursor, limit=10))


def test_a_too_old_cursor_is_refused_as_such(
    service: Service, database: Database, run: Run
) -> None:
    """Events go after 90 days; who comes back later must not believe to have seen all."""

    async def scenario() -> None:
        old = await service.happen(3)
        service.clock.advance(KEPT.total_seconds() + 1)
        kept = await service.happen(2)
        deleted = await database.write(delete_old, service.now, 100)
        assert deleted == 3
        assert [view.id for view in await service.everything()] == kept
        with pytest.raises(CursorExpired):
            await service.events(after=old[-1], limit=10)

    run(scenario())


def test_numbers_continue_after_all_events_were_deleted(
    service: Service, database: Database, run: Run
) -> None:
    """The last row stays, or a cursor would point to a later event with its number."""

    async def scenario() -> None:
        (first,) = await service.happen()
        service.clock.advance(KEPT.total_seconds() + 1)
        for _ in range(3):
            await database.write(delete_old, service.now + KEPT, 100)
        (second,) = await service.happen()
        assert [event.id for event in await service.everything()] == [first, second]
        one, other = await service.recorded()
        assert one.position < other.position

    run(scenario())


def test_notices_reach_every_account_and_buyers_only_the_accounts_concerned(
    service: Service, database: Database, run: Run
) -> None:
    """One event for each account; one for each that has verified the buyer."""

    async def scenario() -> None:
        others = [items.account() for _ in range(2)]
        for other in others:
            await database.write(add_account, other)

        def act(connection: Connection, batch: Sequence[None]) -> list[None]:
            modes = (Mode.TEST, Mode.LIVE)
            write_notice_events(connection, "ab1263", "2026-01-01", modes, service.now)
            write_buyer_events(
                connection, EventType.BUYER_EXPIRED, Mode.TEST, "cbid_nobody", service.now
            )
            return [None] * len(batch)

        await database.write_batched(act, None)
        (event,) = await service.everything()
        assert event.data == {"notice_id": "ab1263", "notice_version": "2026-01-01"}
        number = await database.scan_batched(_count, None)
        assert number == 2 * 3

    run(scenario())


def _count(connection: Connection, batch: Sequence[None]) -> list[int]:
    number = connection.execute(text("SELECT count(*) FROM events")).scalar_one()
    return [number] * len(batch)


@given(st.integers(1, 2**62 - 1), st.integers(0, 2**47), st.binary(min_size=32, max_size=32))
def test_an_identifier_contains_number_and_time(seq: int, unix_ms: int, key: bytes) -> None:
    """And under another key it gives another number."""
    ids = EventIds(key)
    made = ids.compose(seq, unix_ms)
    assert ids.parse(made) == (seq, unix_ms)
    assert EventIds(key + b"x").parse(made) != (seq, unix_ms)


def test_identifiers_sort_by_time_and_hide_the_number_of_events() -> None:
    """Like every other identifier; consecutive numbers give unrelated identifiers."""
    ids = EventIds(b"k")
    made = [ids.compose(seq, 1_795_210_260_000 + seq) for seq in range(1, 100)]
    assert made == sorted(made)
    assert len({id_[-10:] for id_ in made}) == len(made)


@on_postgres
def test_a_late_commit_with_an_early_number_is_not_passed_over(
    service: Service, url: URL, run: Run
) -> None:
    """The very case: number 1 commits after number 2, and the reader has been there between."""

    async def scenario() -> None:
        early = NewEvent(
            service.account_id,
            Mode.TEST,
            EventType.ACKNOWLEDGMENT_CREATED,
            "ack_early",
            service.now,
        )
        late = early._replace(object_id="ack_late")
        engine = open_engine(url, Purpose.WRITE)
        with engine.connect() as first, engine.connect() as second:
            for connection, event in ((first, early), (second, late)):
                connection.begin()
                write_events(connection, [event])
            second.commit()
            assert await service.everything() == []
            first.commit()
        engine.dispose()
        assert [event.object_id for event in await service.recorded()] == ["ack_early", "ack_late"]

    run(scenario())


@on_postgres
@pytest.mark.timeout(180)
def test_a_reader_who_follows_the_cursor_misses_no_event_while_many_write(
    service: Service, url: URL, run: Run
) -> None:
    """Transactions of every length, some rolled back, savepoints among them; three readers."""
    writers = 6
    committed: list[str] = []
    finished = threading.Event()

    async def follow() -> list[str]:
        """Read from the cursor on until nothing comes after the writers have finished."""
        seen: list[str] = []
        after = None
        while True:
            done = finished.is_set()
            page = await service.events(after=after, limit=7)
            if page.data:
                seen += [str(object_id) for one in page.data for object_id in one.data.values()]
                after = page.data[-1].id
            elif done:
                return seen
            await asyncio.sleep(0.001)

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(writers) as pool:
            readers = [asyncio.create_task(follow()) for _ in range(3)]
            written = await asyncio.gather(
                *(
                    loop.run_in_executor(pool, write_some, url, service.account_id, number)
                    for number in range(writers)
                )
            )
            finished.set()
            seen = await asyncio.gather(*readers)
        committed.extend(name for names in written for name in names)
        assert len(committed) > 100
        for one in seen:
            assert sorted(one) == sorted(committed), "nothing is missed, nothing comes twice"
            assert one == seen[0], "and all see one order"

    run(scenario())


def write_some(url: URL, account_id: str, number: int) -> list[str]:
    """Write events in transactions of random length; returns the committed ones."""
    dice = random.Random(number)
    committed: list[str] = []
    engine = open_engine(url, Purpose.WRITE)
    for turn in range(40):
        names = [f"ack_{number}_{turn}_{n}" for n in range(dice.randint(1, 4))]
        with engine.connect() as connection, connection.begin() as transaction:
            for name in names:
                type_ = EventType.ACKNOWLEDGMENT_CREATED
                with connection.begin_nested():
                    write_events(connection, [NewEvent(account_id, Mode.TEST, type_, name, NOON)])
                time.sleep(dice.random() * 0.01)
            if dice.random() < 0.2:
                transaction.rollback()
            else:
                transaction.commit()
                committed += names
    engine.dispose()
    return committed


@on_postgres
def test_rows_of_another_cluster_are_put_before_everything_new(
    service: Service, database: Database, url: URL, run: Run
) -> None:
    """A logical restore brings transaction numbers that this server has not come to yet."""

    async def scenario() -> None:
        old = await service.happen(3)
        endpoint, _ = await service.endpoint("http://127.0.0.1:9/hook")
        engine: Engine = open_engine(url, Purpose.WRITE)
        with engine.begin() as connection:
            connection.execute(text("UPDATE events SET tx = tx + 1000000000"))
            connection.execute(
                text("UPDATE webhook_endpoints SET cursor_tx = cursor_tx + 1000000000")
            )
        engine.dispose()
        assert await service.everything() == []
        assert await database.write(renumber_restored)
        assert not await database.write(renumber_restored)
        new = await service.happen(2)
        assert [view.id for view in await service.everything()] == old + new
        assert await service.fan_out(endpoint, 100) == 2

    run(scenario())


def test_an_endpoint_made_while_a_transaction_is_under_way_gets_its_events(
    service: Service, run: Run
) -> None:
    """Events committed after that are delivered, whenever their transaction began."""

    async def scenario() -> None:
        endpoint, _ = await service.endpoint("http://127.0.0.1:9/hook")
        await service.happen(3)
        service.clock.advance(timedelta(seconds=1).total_seconds())
        assert await service.fan_out(endpoint, 100) == 3
        assert await service.fan_out(endpoint, 100) == 0

    run(scenario())
