"""Killed between any two statements: a check goes on where it was, and verifies whole or not."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import count

import pytest

from countersign.core.buyers.started import check_of
from countersign.core.checkout.model import Collected, Status
from countersign.core.checkout.schemas import CheckoutSessionRequest
from tests.checkout.checks import SHOP, ZIP, Checks, checks_at, created, submit
from tests.support import forked
from tests.verification.conftest import each_engine, stage
from tests.verification.inside import Stage

__all__ = ["stage"]

pytestmark = [pytest.mark.crash, pytest.mark.both_engines, pytest.mark.long]


def _made(checks: Checks) -> str:
    """A session for the identity alone, without a started check."""
    asked = CheckoutSessionRequest(
        return_url=SHOP, session_id="cart", collect=[Collected.IDENTITY], shipping_zip=ZIP
    )
    return checks.do(created(checks.room, checks.who, asked)).id


@each_engine
@pytest.mark.timeout(600)
def test_a_check_resumes_after_a_kill_before_any_statement(stage: Stage) -> None:
    """One attempt and one session of the provider, one end and one event, whenever it dies."""
    states = set()
    with ExitStack() as stack:
        checks = checks_at(stage, stack)
        for point in count(1):
            id_ = _made(checks)
            done = forked.run(
                "tests.checkout.checks_victim", str(point), id_, environment=stage.environment
            )
            assert done.returncode in {0, -9}, done.stderr
            session = checks.read(id_)
            started, check = session.asked.attempts, session.asked.check
            completed = session.status is Status.COMPLETED
            decided, _ = checks.do(stage.opened.database.read(check_of, id_))
            states.add((started, check is not None, decided is not None, completed))
            assert checks.events(id_) == (["checkout_session.completed"] if completed else [])
            if not completed:
                assert session.status is Status.OPEN
                assert session.asked.identity is None
                # The buyer clicks again.
                session = checks.begin(session)
                assert session.asked.check is not None
                submit(session.asked.check.url, "verified")
                session = checks.follow(session)
            assert session.status is Status.COMPLETED
            assert session.asked.attempts == 1
            assert session.asked.identity is not None
            assert session.asked.identity.verification is not None
            assert checks.events(id_) == ["checkout_session.completed"]
            rows = stage.rows(
                "SELECT session_index FROM started_checks WHERE reference = :id", id=id_
            )
            assert len(rows) == 1
            if done.returncode == 0:
                break  # it got to its end: there is no further point
    assert states == {
        (0, False, False, False),
        (1, False, False, False),
        (1, True, False, False),
        (1, True, True, False),
        (1, True, True, True),
    }
    assert point > 15, "statements and commits of five acts"
