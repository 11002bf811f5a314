"""A hold on any record of an order keeps the whole order, and nothing else of its buyer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import Connection, insert

from countersign.base.db.tables import deployment
from countersign.base.errors import OnHold, UnknownSubject
from countersign.base.values import Mode
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.acknowledgments.acknowledge import acknowledge
from countersign.core.acknowledgments.model import Submission
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.sql import erased_name
from countersign.core.clearances.clear import clear_order, prepare_order
from countersign.core.clearances.fulfil import fulfil_order
from countersign.core.clearances.schemas import FulfilmentRequest
from countersign.core.dossiers.dossier import DossierQuery, dossier
from countersign.core.gate.act import Writing
from countersign.core.notices import publish as publishing
from countersign.core.notices.notice_file import parse_notice_file
from countersign.core.privacy.erase import ERASURE_DUE, erase_planned, finish_restore, plan_erasure
from countersign.core.privacy.model import ErasureReason
from countersign.core.privacy.requests import (
    ErasureOutcome,
    carry_out_request,
    carry_out_waiting,
    request_erasure,
    requested,
)
from countersign_evidence.verification import dossier_of
from tests.clearances.desk import NO_ONE, order
from tests.http.backstage import another_deployment, notice_file
from tests.support.acts import done
from tests.support.depth import drawn
from tests.support.engines import ENGINES, engine_server
from tests.support.holding import place_hold, release_hold
from tests.verification.inside import Insider, Stage, staged

pytestmark = pytest.mark.long

ATTEMPTS_MAX: Final = 3
# Not drawn from existing objects: that must not decide how many draws there are.
_WHICH: Final = st.integers(0, 99)


@dataclass
class Check:
    """An identity check, as the oracle knows it."""

    account: int
    cbid: str
    verified: bool


@dataclass
class Order:
    """The records of an order, its buyer, and the check that it rests on."""

    account: int
    cbid: str
    ack_id: str
    clearance_id: str
    rests_on: str | None
    reports: list[str] = field(default_factory=list)

    @property
    def own(self) -> set[str]:
        return {self.ack_id, self.clearance_id, *self.reports}


class World:
    """A buyer, who is somebody new after each erasure, at two shops."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        first = stage.insider()
        self.shops: list[Insider] = [first, stage.insider(first.playing)]
        self.person = first.part("verified")
        notices = stage.opened.notices
        content = stage.do(
            done(
                publishing.publish,
                notices,
                parse_notice_file(notice_file("law", "1").encode()),
                "",
            )
        ).content
        said: dict[str, Any] = {"by": "A. Reader", "against": "https://law.example/text"}
        stage.do(done(publishing.review, notices, content.id, content.version, **said))
        stage.do(notices.registry.notices(fresh=True))
        self._numbers = count(1)

    def verify(self, account: int, zip_: str | None = None) -> tuple[str, str, bool]:
        """Verify the person: the identifiers of buyer and check, and whether it was verified."""
        # Identifiers are ordered by time, which stands still otherwise.
        self.stage.clock.now += timedelta(seconds=1)
        result = self.shops[account].verify(self.person, zip_)
        own = self.shops[account].account_id
        rows = self.stage.rows(
            "SELECT id, status FROM verifications WHERE account_id = :own ORDER BY id", own=own
        )
        return result.cbid, rows[-1]["id"], rows[-1]["status"] == BuyerStatus.VERIFIED

    def buy(self, account: int, cbid: str) -> tuple[str, str]:
        # After a request of the buyer, which is of the same moment otherwise.
        self.stage.clock.now += timedelta(seconds=1)
        who, rooms = self.shops[account].principal, self.stage.opened
        session = f"order-{next(self._numbers)}"
        notice = self.stage.do(rooms.notices.registry.in_force("law", Mode.LIVE))
        submission = Submission(
            initials_per_line=["JD"] * 3,
            session_id=session,
            cbid=cbid,
            notice_version=None,
            origin=NO_ONE,
        )
        made = self.stage.do(acknowledge(rooms.acknowledgments, who, notice, submission))
        asked = order(made.id, cbid, session, self.person.shipping_zip)
        item = self.stage.do(prepare_order(rooms.clearances, who, asked))
        decision = self.stage.do(clear_order(item)).decision
        return made.id, decision.clearance_id

    def ask(self, account: int, cbid: str, ack_id: str) -> str:
        """Ask for a clearance with an acknowledgment that may be another account's."""
        room, who = self.stage.opened.clearances, self.shops[account].principal
        asked = order(ack_id, cbid, "another-order", self.person.shipping_zip)
        item = self.stage.do(prepare_order(room, who, asked))
        return self.stage.do(clear_order(item)).decision.clearance_id

    def fulfil(self, account: int, clearance_id: str) -> str:
        who, report = self.shops[account].principal, FulfilmentRequest(carrier="UPS")
        room, write = self.stage.opened.clearances, Writing(self.stage.opened.access.database)
        return self.stage.do(fulfil_order(room, who, clearance_id, report, write)).fulfilment_id

    def dossier(self, one: Order) -> bytes:
        room, who = self.stage.opened.acknowledgments, self.shops[one.account].principal
        self.stage.do(self.stage.opened.log.seal.settle())
        return self.stage.do(dossier(room, who, one.ack_id, DossierQuery()))

    def hold(self, subject: str) -> str:
        return self.stage.do(place_hold(self.stage.opened.privacy, subject, "case 7")).id

    def release(self, hold: str) -> None:
        """Like `countersign holds release`."""
        privacy = self.stage.opened.privacy
        self.stage.do(release_hold(privacy, hold))
        secret = privacy.access.secret
        asked = self.stage.do(privacy.access.database.scan(requested, secret, DEPLOYMENT))
        for one in asked:
            self.stage.do(carry_out_request(privacy, one.cbid, DEPLOYMENT))
        self.stage.do(carry_out_waiting(privacy, DEPLOYMENT))

    def erase(self, subject: str, *, naming: bool = False) -> set[str]:
        """Like `countersign erase`; returns the data kept by a hold."""
        privacy = self.stage.opened.privacy
        plan = self.stage.do(
            plan_erasure(privacy, subject, DEPLOYMENT, with_acknowledgments=naming)
        )
        return set(self.stage.do(erase_planned(privacy, plan, ErasureReason.REQUEST)))

    def request(self, cbid: str) -> ErasureOutcome:
        return self.stage.do(request_erasure(self.stage.opened.privacy, cbid))

    def restore(self, cbid: str) -> None:
        """The repetition of an erasure after a restore."""
        privacy = self.stage.opened.privacy
        name = erased_name(privacy.access.secret, cbid, DEPLOYMENT)

        def due(connection: Connection) -> None:
            connection.execute(deployment.delete().where(deployment.c.name == name))
            connection.execute(insert(deployment), {"name": name, "value": ERASURE_DUE})

        self.stage.do(privacy.access.database.write(due))
        self.stage.do(finish_restore(privacy))

    def shown(self) -> set[str]:
        """The records that still disclose personal data."""
        rows = self.stage.rows(
            "SELECT d.record_id FROM disclosures d JOIN shred_keys k ON k.record_id = d.record_id"
        )
        return {row["record_id"] for row in rows}


class HoldsOnOrders(RuleBasedStateMachine):
    """Purchases, holds and erasures in any order, with what must be true, in sets."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.cbid: str | None = None
        self.checks: dict[str, Check] = {}
        self.orders: list[Order] = []
        self.of_buyer: set[str] = set()
        """The checks of the current buyer; the orders that name the buyer."""
        self.erased: set[str] = set()
        self.waiting: set[str] = set()
        self.asked = False
        self.before: set[str] = set()
        """Of `of_buyer`, what was there at the buyer's request."""
        self.held: dict[str, str] = {}
        self.accounts = [shop.account_id for shop in world.shops]

    def teardown(self) -> None:
        for hold in [*self.held]:
            self.release_one(hold)
        if self.cbid is not None:
            self.world.erase(self.cbid)

    # The oracle.

    def on_it(self, record: str) -> bool:
        """Whether a hold is on this very record, its account or its buyer."""
        of_orders = [one.account for one in self.orders if record in one.own]
        account = of_orders[0] if of_orders else self.checks[record].account
        subjects = {record, self.accounts[account]}
        if record in self.of_buyer and self.cbid is not None:
            subjects.add(self.cbid)
        return not subjects.isdisjoint(self.held.values())

    def is_held(self, record: str) -> bool:
        return self.on_it(record) or any(
            record in needs and any(self.on_it(other) for other in needs)
            for one in self.orders
            # An order that was erased before reveals its check to no one.
            for needs in [one.own if one.clearance_id in self.erased else self.needs(one)]
        )

    def needs(self, one: Order) -> set[str]:
        """Its records and its check; without one, the account's checks of its buyer."""
        if one.rests_on:
            return one.own | {one.rests_on}
        checks = {
            id_
            for id_, check in self.checks.items()
            if (check.account, check.cbid) == (one.account, one.cbid) and id_ not in self.erased
        }
        return one.own | checks

    def is_buyer_held(self) -> bool:
        own = {self.accounts[c.account] for id_, c in self.checks.items() if id_ in self.of_buyer}
        return not {self.cbid, *own}.isdisjoint(self.held.values())

    def take_away(self, planned: set[str]) -> set[str]:
        """Erase the buyer with these; gives what holds keep."""
        planned -= self.erased
        kept = {record for record in planned if self.is_held(record)}
        self.erased |= planned - kept
        self.waiting |= kept
        self.cbid, self.asked, self.of_buyer, self.before = None, False, set(), set()
        return kept

    def carry_out_request(self) -> None:
        """A vendor's hold keeps that vendor's data of a buyer who asked, and no other's.

        Data of after the request stays, and the buyer with it.
        """
        later = bool(self.of_buyer - self.before - self.erased)
        if not self.is_buyer_held() and not later:
            self.take_away(self.own_checks())
            return
        if self.cbid in self.held.values():
            return
        going = {
            id_
            for id_ in self.own_checks() & self.before
            if self.accounts[self.checks[id_].account] not in self.held.values()
        }
        self.asked = self.is_buyer_held()
        kept = {id_ for id_ in going if self.is_held(id_)}
        self.erased |= going - kept
        self.waiting |= kept
        self.of_buyer -= going

    def own_checks(self) -> set[str]:
        return {id_ for id_ in self.checks if id_ in self.of_buyer}

    # What happens.

    @initialize(accounts=st.lists(st.integers(0, 1), min_size=1, max_size=3))
    def begin(self, accounts: list[int]) -> None:
        """Most errors need a buyer with orders."""
        for account in accounts:
            self._verify(account, None)
            self._buy(account, fulfilled=True)

    @rule(account=st.integers(0, 1))
    def verify(self, account: int) -> None:
        self._verify(account, None)

    @rule(account=st.integers(0, 1))
    def attempt(self, account: int) -> None:
        """Another ZIP code: a check that no order rests on."""
        if sum(not check.verified for check in self.checks.values()) < ATTEMPTS_MAX and self.cbid:
            self._verify(account, "00501")

    def _verify(self, account: int, zip_: str | None) -> None:
        cbid, check, verified = self.world.verify(account, zip_)
        if cbid != self.cbid:
            assert self.cbid is None
            self.cbid = cbid
        if check not in self.checks:
            self.checks[check] = Check(account, cbid, verified)
            self.of_buyer.add(check)

    @rule(account=st.integers(0, 1), fulfilled=st.booleans())
    def buy(self, account: int, fulfilled: bool) -> None:
        self._buy(account, fulfilled=fulfilled)

    def _buy(self, account: int, *, fulfilled: bool) -> None:
        if self.cbid is None:
            return
        ack_id, clearance_id = self.world.buy(account, self.cbid)
        own = [
            (c.verified, id_)
            for id_, c in self.checks.items()
            if c.account == account and id_ in self.of_buyer
        ]
        rests_on = max(own)[1] if own else None
        one = Order(account, self.cbid, ack_id, clearance_id, rests_on)
        if fulfilled:
            one.reports.append(self.world.fulfil(account, clearance_id))
        self.orders.append(one)
        self.of_buyer |= one.own

    @rule(on_order=st.booleans(), which=_WHICH)
    def hold(self, on_order: bool, which: int) -> None:
        of_orders = [record for one in self.orders for record in sorted(one.own)]
        others = [*self.checks, *self.accounts, *([self.cbid] if self.cbid else [])]
        subjects = of_orders if on_order and of_orders else others
        subject = subjects[which % len(subjects)]
        if subject in self.erased:
            with pytest.raises(UnknownSubject):
                self.world.hold(subject)
            return
        self.held[self.world.hold(subject)] = subject

    @rule(which=_WHICH)
    def release(self, which: int) -> None:
        if self.held:
            self.release_one([*self.held][which % len(self.held)])

    def release_one(self, hold: str) -> None:
        self.world.release(hold)
        del self.held[hold]
        if self.asked:
            self.carry_out_request()
        gone = {record for record in self.waiting if not self.is_held(record)}
        self.erased |= gone
        self.waiting -= gone

    @rule(how=st.sampled_from(["command", "naming", "buyer", "restore"]))
    def erase(self, how: str) -> None:
        if self.cbid is None:
            return
        if self.is_buyer_held():
            if how == "buyer":
                assert self.world.request(self.cbid) is ErasureOutcome.ON_HOLD
                self.asked, self.before = True, set(self.of_buyer)
                self.carry_out_request()
            elif how != "restore":
                with pytest.raises(OnHold):
                    self.world.erase(self.cbid, naming=how == "naming")
            return
        cbid, planned = self.cbid, self.own_checks()
        if how == "naming":
            planned |= {r for one in self.orders for r in one.own if r in self.of_buyer}
        kept = self.take_away(planned)
        if how == "buyer":
            outcome = ErasureOutcome.KEPT if kept else ErasureOutcome.ERASED
            assert self.world.request(cbid) is outcome
        elif how == "restore":
            self.world.restore(cbid)
        else:
            assert self.world.erase(cbid, naming=how == "naming") == kept

    @rule(which=_WHICH)
    def erase_order(self, which: int) -> None:
        left = [one for one in self.orders if one.own - self.erased]
        if not left:
            return
        one = left[which % len(left)]
        if any(self.is_held(record) for record in one.own - self.erased):
            with pytest.raises(OnHold):
                self.world.erase(one.ack_id)
            return
        self.world.erase(one.ack_id)
        self.erased |= one.own
        self.waiting -= one.own

    @invariant()
    def what_is_not_erased_is_shown(self) -> None:
        known = {r for one in self.orders for r in one.own} | self.checks.keys()
        assert self.world.shown() & known == known - self.erased


@pytest.fixture(params=ENGINES)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    """Open a deployment of this test alone, on each engine."""
    with staged(another_deployment(tmp_path / "data", engine_server(request))) as made:
        yield made


@pytest.mark.timeout(300)  # many histories in one case
def test_a_hold_on_an_order_keeps_its_data_whatever_happens(stage: Stage) -> None:
    """For holds on any record, erasures in every way, and purchases before and after."""
    world = World(stage)
    run_state_machine_as_test(
        lambda: HoldsOnOrders(world),  # type: ignore[arg-type]  # a factory will do
        settings=settings(max_examples=drawn(60), stateful_step_count=16, deadline=None),
    )


def test_a_hold_on_a_check_keeps_no_order_that_rested_on_an_erased_one(stage: Stage) -> None:
    """An erased check still counts as the order's own."""
    world = World(stage)
    _, held, _ = world.verify(0)
    world.buy(0, world.verify(0)[0])
    cbid, own, _ = world.verify(0)
    ack_id, _ = world.buy(0, cbid)
    world.hold(held)
    assert own not in world.erase(cbid)
    world.erase(ack_id)
    assert {held} <= world.shown()
    assert ack_id not in world.shown()


@pytest.mark.parametrize("on", ["acknowledgment", "clearance", "fulfilment", "check"])
def test_a_held_order_keeps_its_dossier_when_its_buyer_is_erased(stage: Stage, on: str) -> None:
    """Initials, decision, report, and the check that they rest on; no other check of the buyer."""
    world = World(stage)
    cbid, check, _ = world.verify(0)
    other = world.verify(1)[1]
    one = Order(0, cbid, *world.buy(0, cbid), check)
    one.reports.append(world.fulfil(0, one.clearance_id))
    before = world.dossier(one)
    subjects = {"acknowledgment": one.ack_id, "clearance": one.clearance_id, "check": check}
    hold = world.hold(subjects.get(on, one.reports[0]))
    assert world.request(cbid) is ErasureOutcome.KEPT
    assert other not in world.shown()
    assert one.own | {check} <= world.shown()
    shown = dossier_of(world.dossier(one))
    assert {r.id: r.shown for r in shown.records} == {
        r.id: r.shown for r in dossier_of(before).records
    }
    world.release(hold)
    assert check not in world.shown()
    assert one.own <= world.shown()


@pytest.mark.parametrize("on", ["account", "clearance"])
def test_another_accounts_clearance_is_not_part_of_an_order(stage: Stage, on: str) -> None:
    """A refused clearance that names it keeps nothing of the order, and is not erased with it."""
    world = World(stage)
    cbid = world.verify(0)[0]
    one = Order(0, cbid, *world.buy(0, cbid), None)
    foreign = world.ask(1, cbid, one.ack_id)
    subjects = {"account": world.shops[1].account_id, "clearance": foreign}
    hold = world.hold(subjects[on])
    assert world.erase(one.ack_id) == set()
    assert world.shown().isdisjoint(one.own)
    assert foreign in world.shown()
    world.release(hold)
    assert foreign in world.shown()
