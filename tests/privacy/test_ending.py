"""The end of evidence: orders go as a whole, when every period is over and no hold keeps them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Any, Final

import psycopg
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from sqlalchemy import Connection, text, update

from countersign.base.db.tables import accounts
from countersign.base.errors import InternalError, InvalidArgument, NotFound, OnHold, UnknownSubject
from countersign.base.values import CLEARANCE, FULFILMENT, Mode, earliest_id
from countersign.core.access.account import find_account
from countersign.core.access.key import Principal
from countersign.core.clearances import fulfil
from countersign.core.clearances.read import StoredClearance, stored_clearance
from countersign.core.clearances.room import Clearances
from countersign.core.privacy import ending
from countersign.core.privacy.ending import EndingOrder, end_evidence, list_ending, set_evidence_end
from countersign.core.privacy.erase import make_erasure
from countersign.core.privacy.model import RecordErasure, years_after
from countersign.core.privacy.room import Privacy
from tests.clearances.desk import Desk, MovingClock, open_desk, order
from tests.cli.notice_files import write_notice
from tests.support.depth import drawn
from tests.support.engines import ENGINES, POSTGRES, engine_server
from tests.support.holding import place_hold, release_hold

pytestmark = [pytest.mark.both_engines, pytest.mark.long]

ZIP: Final = "94111"
PERIODS: Final = {"short": 1, "long": 4, "open": None}
"""The `retention_years` of each notice; records without it are kept until erased."""
_WHICH: Final = st.integers(0, 99)
_numbers = count(1)


@pytest.fixture(scope="module", params=ENGINES)
def desk(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Desk]:
    """Give a deployment of this file alone, whose clock goes on by years."""
    place = tmp_path_factory.mktemp(f"ending-{request.param}")
    with open_desk(place / "data", MovingClock(), engine_server(request)) as opened:
        for notice_id, years in PERIODS.items():
            period: dict[str, Any] = {} if years is None else {"retention_years": years}
            file = write_notice(place / "notice.toml", notice_id, **period)
            opened.publish(file.read_text(encoding="utf-8"))
        yield opened


@dataclass
class Order:
    """An order as the oracle knows it: the creation time of each record."""

    account: int
    notice_id: str | None
    """None: a clearance that names the acknowledgment of another account."""
    cbid: str
    made: dict[str, datetime] = field(default_factory=dict)
    erased: bool = False

    @property
    def key(self) -> str:
        return min(self.made)


class World:
    """Two vendors, one in the sandbox, and an operator's acts."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.privacy = desk.deployment.privacy
        self.shops: list[Principal] = [desk.account(Mode.TEST), desk.account(Mode.LIVE)]

    def buyer(self, account: int) -> str:
        who = self.shops[account]
        if who.mode is Mode.LIVE:
            return self.desk.live_buyer(who, ZIP)
        return self.desk.sandbox_buyer(who, f"session-{next(_numbers)}", ZIP)

    def buy(self, account: int, notice_id: str) -> Order:
        """An order that is cleared and fulfilled."""
        who, session = self.shops[account], f"order-{next(_numbers)}"
        made = Order(account, notice_id, self.buyer(account))
        ack_id = self.desk.acknowledge(who, notice_id, session, made.cbid)
        made.made[ack_id] = self.desk.clock.now
        decision = self.desk.clear(who, order(ack_id, made.cbid, session, ZIP))
        assert decision.cleared, decision.reasons
        made.made[decision.clearance_id] = self.desk.clock.now
        return made

    def ask(self, account: int, ack_id: str, cbid: str) -> str:
        """Ask for a clearance with what may be another account's, or in use."""
        asked = order(ack_id, cbid, f"another-order-{next(_numbers)}", ZIP)
        return self.desk.clear(self.shops[account], asked).clearance_id

    def fulfil(self, one: Order) -> str:
        clearance = next(id_ for id_ in one.made if id_.startswith("clr_"))
        done = self.desk.fulfil(self.shops[one.account], clearance, carrier="UPS")
        return done.fulfilment_id

    def keep(self, account: int, years: int | None) -> None:
        """Past the check of `set_evidence_end`: a notice may be published later."""
        changed = update(accounts).where(accounts.c.id == self.shops[account].account_id)

        def put(connection: Connection) -> None:
            connection.execute(changed.values(evidence_years=years))

        self.desk.do(self.privacy.access.database.write(put))

    def ending(self) -> list[EndingOrder]:
        async def listed() -> list[EndingOrder]:
            await self.desk.deployment.log.seal.settle()
            return [one async for one in list_ending(self.privacy)]

        return self.desk.do(listed())

    def rows(self, statement: str) -> set[str]:
        """The identifiers that a statement finds, of these accounts."""
        own = {f"a{number}": who.account_id for number, who in enumerate(self.shops)}

        def read(connection: Connection) -> set[str]:
            return {row[0] for row in connection.execute(text(statement), own)}

        return self.desk.do(self.privacy.access.database.read(read))


class EndsOfEvidence(RuleBasedStateMachine):
    """Orders, holds, erasures and years in any order; what may go, in plain words."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.years: list[int | None] = [None, None]
        self.orders: list[Order] = []
        self.gone: set[str] = set()
        self.held: dict[str, str] = {}

    def teardown(self) -> None:
        for account in (0, 1):
            self.world.keep(account, None)
        for hold in self.held:
            self.world.desk.do(release_hold(self.world.privacy, hold))

    # The oracle.

    def is_held(self, one: Order) -> bool:
        # The check belongs to the order, and names the buyer where all else is erased.
        subjects = {*one.made, self.world.shops[one.account].account_id, one.cbid}
        return not subjects.isdisjoint(self.held.values())

    def is_over(self, one: Order) -> bool:
        years, now = self.years[one.account], self.world.desk.clock.now
        if years is None or one.key in self.gone:
            return False
        period = PERIODS[one.notice_id] if one.notice_id else None
        ends = [years_after(at, years) for at in one.made.values()]
        ends += [years_after(one.made[one.key], period)] if period else []
        return max(ends) <= now

    # What happens.

    @initialize(years=st.sampled_from([2, 5]), notice_id=st.sampled_from([*PERIODS]))
    def begin(self, years: int, notice_id: str) -> None:
        """Most errors need an order at an account that has set an end."""
        self.keep(0, years)
        self.buy(0, notice_id)

    @rule(account=st.integers(0, 1), years=st.sampled_from([None, 2, 5]))
    def keep(self, account: int, years: int | None) -> None:
        self.world.keep(account, years)
        self.years[account] = years

    @rule(account=st.integers(0, 1), notice_id=st.sampled_from([*PERIODS]))
    def buy(self, account: int, notice_id: str) -> None:
        self.orders.append(self.world.buy(account, notice_id))

    @rule(which=_WHICH)
    def ask_again(self, which: int) -> None:
        """Another clearance makes the whole order last longer."""
        if there := [one for one in self.orders if one.key not in self.gone and one.notice_id]:
            one = there[which % len(there)]
            if not one.erased:
                made = self.world.ask(one.account, one.key, one.cbid)
                one.made[made] = self.world.desk.clock.now

    @rule(which=_WHICH)
    def ask_as_another(self, which: int) -> None:
        one = self.orders[which % len(self.orders)]
        own = Order(1 - one.account, None, self.world.buyer(1 - one.account))
        own.made[self.world.ask(own.account, one.key, own.cbid)] = self.world.desk.clock.now
        self.orders.append(own)

    @rule(which=_WHICH)
    def fulfil(self, which: int) -> None:
        one = self.orders[which % len(self.orders)]
        if one.key not in self.gone and one.notice_id and not one.erased:
            one.made[self.world.fulfil(one)] = self.world.desk.clock.now

    @rule(days=st.sampled_from([1, 300, 365, 731, 1500]))
    def time_passes(self, days: int) -> None:
        self.world.desk.clock.advance(timedelta(days=days))

    @rule(which=_WHICH, on=st.sampled_from(["record", "account", "buyer"]))
    def hold(self, which: int, on: str) -> None:
        one = self.orders[which % len(self.orders)]
        if one.key in self.gone:
            return
        own = sorted(one.made)
        account = self.world.shops[one.account].account_id
        subject = {"record": own[which % len(own)], "account": account, "buyer": one.cbid}[on]
        placing = place_hold(self.world.privacy, subject, "case 7")
        if one.erased and on == "record":
            with pytest.raises(UnknownSubject):
                self.world.desk.do(placing)
            return
        self.held[self.world.desk.do(placing).id] = subject

    @rule(which=_WHICH)
    def release(self, which: int) -> None:
        if self.held:
            hold = [*self.held][which % len(self.held)]
            self.world.desk.do(release_hold(self.world.privacy, hold))
            del self.held[hold]

    @rule(which=_WHICH)
    def erase(self, which: int) -> None:
        one = self.orders[which % len(self.orders)]
        if one.key in self.gone or one.notice_id is None or one.erased:
            return
        if self.is_held(one):
            with pytest.raises(OnHold):
                self.world.desk.erase(one.key)
        else:
            self.world.desk.erase(one.key)
            one.erased = True

    @rule()
    def end(self) -> None:
        """Held orders are planned, too: the hold may be placed after the list was made."""
        over = [one for one in self.orders if self.is_over(one)]
        found = self.world.ending()
        assert {one.key: ({r.record_id for r in one.records}, bool(one.hold)) for one in found} == {
            one.key: ({*one.made}, self.is_held(one)) for one in over
        }
        free = {id_ for one in over if not self.is_held(one) for id_ in one.made}
        gone = self.world.desk.do(end_evidence(self.world.privacy, found))
        assert sorted(gone) == sorted(free)
        self.gone |= free
        self.compare()

    def compare(self) -> None:
        all_ = {id_ for one in self.orders for id_ in one.made}
        own = "account_id IN (:a0, :a1)"
        kinds = "('acknowledgment', 'clearance', 'fulfilment')"
        left = self.world.rows(f"SELECT id FROM records WHERE {own} AND type IN {kinds}")  # noqa: S608
        assert left == all_ - self.gone
        assert self.world.rows(f"SELECT record_id FROM ended_records WHERE {own}") == self.gone  # noqa: S608
        for table, id_ in (("clearances", "id"), ("fulfilments", "id")):
            kept = self.world.rows(f"SELECT {id_} FROM {table} WHERE {own}")  # noqa: S608
            assert kept <= all_ - self.gone
        shown = self.world.rows(f"SELECT record_id FROM disclosures WHERE {own}")  # noqa: S608
        assert shown.isdisjoint(self.gone)


def test_exactly_the_erasable_data_is_erased(desk: Desk) -> None:
    """Other accounts, other modes, holds, later clearances and longer periods of notices."""
    run_state_machine_as_test(
        lambda: EndsOfEvidence(World(desk)),  # type: ignore[arg-type]  # a factory will do
        settings=settings(max_examples=drawn(45), stateful_step_count=16, deadline=None),
    )


def test_evidence_never_ends_before_the_period_of_a_notice(desk: Desk) -> None:
    """The shipped notice has seven years."""
    privacy = desk.deployment.privacy
    account = desk.account().account_id
    for years in (-1, 0, 6, 101):
        with pytest.raises(InvalidArgument, match="7 to 100 years"):
            desk.do(set_evidence_end(privacy, account, years))
    assert desk.do(set_evidence_end(privacy, account, 7)).evidence_years == 7
    assert desk.do(find_account(privacy.access, account)).evidence_years == 7
    assert desk.do(set_evidence_end(privacy, account, None)).evidence_years is None


@pytest.mark.parametrize("note", ["none", "while_disclosed"])
def test_the_database_itself_protects_a_record_that_has_not_ended(desk: Desk, note: str) -> None:
    """Without a note of its end, and while it has personal data."""
    world = World(desk)
    one = world.buy(0, "short")
    database = desk.deployment.database

    def delete(connection: Connection) -> None:
        values: dict[str, Any] = {"id": one.key, "account": world.shops[0].account_id}
        if note == "while_disclosed":
            noted = "INSERT INTO ended_records VALUES (:id, :account, 'test', 0)"
            connection.execute(text(noted), values)
        connection.execute(text("DELETE FROM records WHERE id = :id"), values)

    # The trigger's own words are in the log.
    with pytest.raises(InternalError):
        desk.do(database.write(delete))
    own = "SELECT id FROM records WHERE account_id IN (:a0, :a1)"
    assert one.key in world.rows(own)


def test_many_orders_end_in_several_transactions(desk: Desk) -> None:
    """Each is written down in the audit with its number, and a page of the list is not the end.

    To the millisecond: 731 days are the two years that the account has set.
    """
    world = World(desk)
    ids = [desk.acknowledge(world.shops[0], "short", f"order-{n}") for n in range(230)]
    world.keep(0, 2)
    desk.clock.advance(timedelta(days=731))
    seen: list[int] = []
    found = world.ending()
    gone = desk.do(end_evidence(world.privacy, found, seen.append))
    assert sorted(gone) == sorted(ids)
    assert seen == [50, 100, 150, 200, 230]
    world.keep(0, None)
    details = world.rows(
        "SELECT details || id FROM audit_log"
        " WHERE action = 'evidence_ended' AND subject IN (:a0, :a1)"
    )
    assert sorted(word.split("}")[0] for word in details) == sorted(
        ['{"records":50'] * 4 + ['{"records":30']
    )


def over(world: World) -> Order:
    """An order that is cleared, whose evidence has reached its end."""
    one = world.buy(0, "short")
    world.keep(0, 2)
    world.desk.clock.advance(timedelta(days=731))
    return one


def test_a_hold_placed_on_the_buyer_while_evidence_ends_keeps_the_order(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At any moment: data is erased only with its records, so the hold finds what is left."""
    world = World(desk)
    one = over(world)
    found, holds = world.ending(), list[str]()

    async def placing(privacy: Privacy, *args: Any) -> RecordErasure:  # noqa: ANN401 - passed on
        if not holds:
            holds.append((await place_hold(privacy, one.cbid, "case 8")).id)
        return await make_erasure(privacy, *args)

    monkeypatch.setattr(ending, "make_erasure", placing)
    assert not desk.do(end_evidence(world.privacy, found))
    assert holds
    shown = world.rows("SELECT record_id FROM disclosures WHERE account_id IN (:a0, :a1)")
    assert {*one.made} <= shown
    desk.do(release_hold(world.privacy, holds[0]))
    assert {*desk.do(end_evidence(world.privacy, world.ending()))} == {*one.made}
    world.keep(0, None)


def test_a_report_about_a_just_ended_order_is_not_written(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing would ever end or erase such a report."""
    world = World(desk)
    one = over(world)
    found, gone = world.ending(), list[str]()

    async def ending_then(room: Clearances, who: Principal, id_: str) -> StoredClearance:
        stored = await stored_clearance(room, who, id_)
        gone.extend(await end_evidence(world.privacy, found))
        return stored

    monkeypatch.setattr(fulfil, "stored_clearance", ending_then)
    with pytest.raises(NotFound):
        world.fulfil(one)
    assert {*gone} == {*one.made}
    assert not world.rows("SELECT id FROM fulfilments WHERE account_id IN (:a0, :a1)")
    world.keep(0, None)


MEMBER = (
    "INSERT INTO order_acts SELECT account_id, mode, at, key, %(id)s, NULL, NULL, NULL, true"
    " FROM order_acts WHERE member_id = %(ack)s"
)
ROW = {
    "fulfilments": "INSERT INTO fulfilments VALUES"
    " (%(id)s, %(account)s, 'test', %(clearance)s, %(ack)s, false, true, 0)",
    "clearances": "INSERT INTO clearances VALUES"
    " (%(id)s, %(account)s, 'test', %(ack)s, NULL, NULL, 0)",
}
USES: Final = "SELECT closed_at FROM acknowledgment_uses WHERE ack_id = %(ack)s FOR UPDATE"
WAITS: Final = "SELECT count(*) FROM pg_locks WHERE NOT granted"


@pytest.mark.parametrize("desk", [POSTGRES], indirect=True)
@pytest.mark.parametrize(
    ("table", "used"), [("fulfilments", 1), ("clearances", 1), ("clearances", 0)]
)
def test_an_order_does_not_end_while_another_server_adds_a_record(
    desk: Desk, table: str, used: int
) -> None:
    """Ending waits for a running clearance or fulfilment, and then sees its records."""
    world = World(desk)
    if used:
        one = over(world)
        desk.erase(one.key)  # or erasing it would wait before anything is deleted
    else:
        ack_id = desk.acknowledge(world.shops[0], "short", "never-cleared")
        one = Order(0, "short", "", {ack_id: desk.clock.now})
        world.keep(0, 2)
        desk.clock.advance(timedelta(days=731))
    values = {
        "id": earliest_id(
            {"fulfilments": FULFILMENT, "clearances": CLEARANCE}[table], next(_numbers)
        ),
        "account": world.shops[0].account_id,
        "ack": one.key,
        "clearance": next((id_ for id_ in one.made if id_.startswith("clr_")), None),
    }
    url = desk.deployment.database.url.set(drivername="postgresql")
    address = url.render_as_string(hide_password=False)
    found = world.ending()

    async def interleaved() -> list[str]:
        with psycopg.connect(address) as other:
            other.execute(USES, values)
            task = asyncio.create_task(end_evidence(world.privacy, found))
            while not task.done() and other.execute(WAITS).fetchone() == (0,):  # noqa: ASYNC110
                await asyncio.sleep(0)
            other.execute(ROW[table], values)
            other.execute(MEMBER, values)
        return await task

    assert not desk.do(interleaved())
    left = world.rows("SELECT id FROM records WHERE account_id IN (:a0, :a1)")
    assert {*one.made} <= left
    world.keep(0, None)
