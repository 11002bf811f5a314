"""Advancing the test clock by d and asking gives the same as asking d later."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from countersign.base.errors import Refusal
from countersign.core.access.key import Principal
from countersign.core.acknowledgments.acknowledge import acknowledge
from countersign.core.acknowledgments.model import Submission
from countersign.core.buyers import expiry
from countersign.core.buyers import routes as verifying
from countersign.core.buyers.model import BuyerStatus, BuyerStatusView
from countersign.core.buyers.sandbox import SCRIPT
from countersign.core.buyers.schemas import BuyerStatusAnswer, BuyerVerificationRequest
from countersign.core.clearances.read import get_clearance
from countersign.core.clearances.schemas import ClearanceRequest
from countersign.core.events.routes import EventsQuery, list_events
from countersign.core.gate.act import Writing
from countersign.core.sandbox import schemas
from countersign.core.sandbox.room import SandboxRoom
from countersign.core.sandbox.routes import Sandbox, advance_test_clock, move_test_buyer
from countersign.core.sandbox.schemas import BuyerMove, ClockAdvance
from tests.clearances.desk import NO_ONE, Desk, MovingClock, open_desk, order
from tests.http.backstage import notice_file
from tests.support import postgres
from tests.support.acts import asked
from tests.support.engines import ENGINES, engine_server

pytestmark = pytest.mark.long

NOTICE = "yearly"
ZIP = "94105"
WAITS = [0, 1, 3600, 86_400, 8 * 86_400, 100 * 86_400, 365 * 86_400]


class Step(NamedTuple):
    """How long to wait, and what to do then."""

    wait: timedelta
    act: str
    argument: str


def _steps(act: str, arguments: list[str]) -> st.SearchStrategy[Step]:
    waits = st.sampled_from([timedelta(seconds=seconds) for seconds in WAITS])
    return st.builds(Step, waits, st.just(act), st.sampled_from(arguments))


STEPS = st.lists(
    st.one_of(
        _steps("verify", ["anyone", *SCRIPT]),
        _steps("status", [""]),
        _steps("acknowledge", [""]),
        _steps("clear", [""]),
        _steps("read", [""]),
        _steps("move", [status.value for status in BuyerStatus]),
    ),
    min_size=2,
    max_size=6,
)


@pytest.fixture(scope="module", params=ENGINES)
def desk(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Desk]:
    """Give a deployment in this process whose real clock the test moves, on each engine."""
    data_dir = tmp_path_factory.mktemp(f"later-{request.param}") / "data"
    with open_desk(data_dir, MovingClock(), engine_server(request)) as made:
        for year in range(2026, 2056):
            file = notice_file(NOTICE, str(year), lines=2, effective_from=f"{year}-04-01")
            made.publish(file, reviewed=False)
        yield made


class Shop:
    """An account's way through the steps, and its observations: times, but no identifiers."""

    def __init__(self, desk: Desk, who: Principal) -> None:
        self.desk = desk
        self.who = who
        self.cbid = ""
        self.answers: list[object] = []
        self._verify("anyone")
        self._acknowledge("")
        self.clearance_id = ""
        self._clear("")

    def do(self, step: Step) -> None:
        """Do this, and note the answer or the refusal."""
        self.desk.do(expiry.sweep(self.desk.deployment.buyers))
        try:
            self.answers.append(getattr(self, f"_{step.act}")(step.argument))
        except Refusal as refusal:
            self.answers.append(refusal.code)

    def events(self) -> list[str]:
        """The types of all events but sealing, which is no matter of this clock."""
        postgres.settle()
        room, query = self.desk.deployment.events, EventsQuery(limit=100)
        found = self.desk.do(asked(list_events, room, self.who.reach, query)).data
        types = [event.type.value for event in found]
        return [type_ for type_ in types if type_ != "acknowledgment.sealed"]

    def _verify(self, session_id: str) -> BuyerStatusView:
        request = BuyerVerificationRequest(
            provider_identity_session_id=session_id,
            shipping_zip=ZIP,
            test_mode=True,
            subject_reference=None,
        )
        outcome = self.desk.do(verifying.verify(self.desk.deployment.buyers, self.who, request))
        self.cbid = outcome.cbid
        return outcome.view

    def _status(self, _: str) -> BuyerStatusView:
        room = self.desk.deployment.buyers
        return self.desk.do(verifying.buyer_status(room, self.who, self.cbid))

    def _acknowledge(self, _: str) -> str:
        deployment = self.desk.deployment
        clock = self.desk.do(deployment.access.test_clocks.of(self.who.account_id, self.who.mode))
        notice = self.desk.do(deployment.notices.registry.in_force(NOTICE, self.who.mode, clock))
        submission = Submission(
            initials_per_line=["JD", "JD"],
            session_id="an order",
            cbid=self.cbid,
            notice_version=None,
            origin=NO_ONE,
        )
        receipt = self.desk.do(
            acknowledge(deployment.acknowledgments, self.who, notice, submission, clock=clock)
        )
        self.asked: ClearanceRequest = order(receipt.id, self.cbid, "an order", ZIP)
        return notice.content.version

    def _clear(self, _: str) -> object:
        found = self.desk.clear(self.who, self.asked)
        same = found.clearance_id == self.clearance_id
        self.clearance_id = found.clearance_id
        return found.cleared, found.reasons, found.expires_at, found.token is None, same

    def _read(self, _: str) -> object:
        view = self.desk.do(
            get_clearance(self.desk.deployment.clearances, self.who, self.clearance_id)
        )
        return view.cleared, view.reasons, view.expires_at, view.token is None

    def _move(self, status: str) -> BuyerStatusAnswer:
        room, sandbox = self.desk.deployment.sandbox, Sandbox(self.who.account_id)
        wanted, write = (
            BuyerMove(cbid=self.cbid, status=BuyerStatus(status)),
            Writing(room.access.database),
        )
        moved = self.desk.do(move_test_buyer(room, sandbox, wanted, write))
        return replace(moved, cbid="")


async def advance(room: SandboxRoom, account_id: str, wait: timedelta) -> schemas.TestClock:
    """Advance the clock of an account by so much."""
    wanted, write = ClockAdvance(seconds=int(wait.total_seconds())), Writing(room.access.database)
    return await advance_test_clock(room, Sandbox(account_id), wanted, write)


@settings(max_examples=8)
@given(steps=STEPS)
def test_an_advance_is_as_good_as_waiting(desk: Desk, steps: list[Step]) -> None:
    """Two accounts begin at one moment; one advances its clock, the other's time passes."""
    advancing, waiting = (Shop(desk, desk.account()) for _ in range(2))
    for step in steps:
        if step.wait:
            desk.do(advance(desk.deployment.sandbox, advancing.who.account_id, step.wait))
        advancing.do(step)
    # Before real time passes for it too.
    events = advancing.events()
    for step in steps:
        desk.clock.advance(step.wait)
        waiting.do(step)
    assert advancing.answers == waiting.answers
    assert events == waiting.events()


def test_the_same_steps_are_answered_the_same_every_time(desk: Desk) -> None:
    """An account's information depends only on its own acts."""
    steps = [
        Step(timedelta(days=8), "clear", ""),
        Step(timedelta(0), "acknowledge", ""),
        Step(timedelta(0), "clear", ""),
        Step(timedelta(days=1), "read", ""),
        Step(timedelta(days=365), "clear", ""),
        Step(timedelta(0), "move", "failed"),
        Step(timedelta(0), "verify", "anyone"),
    ]
    shops = [Shop(desk, desk.account()) for _ in range(2)]
    for shop in shops:
        for step in steps:
            desk.do(advance(desk.deployment.sandbox, shop.who.account_id, step.wait))
            shop.do(step)
    assert shops[0].answers == shops[1].answers
    assert shops[0].answers[0] == (False, ("acknowledgment_too_old",), None, True, False)
