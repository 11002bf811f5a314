"""Killed between any two statements: a remembered buyer passes completely, or is asked again."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import timedelta
from itertools import count

import pytest

from countersign.base.values import Mode
from countersign.core.checkout import expiry
from countersign.core.checkout.model import Collected, Session, Status
from countersign.hosted.remembered import remember_cookie
from countersign_evidence.process import Binding
from tests.checkout.checks import Checks, checks_at
from tests.support import forked
from tests.verification.conftest import each_engine, stage
from tests.verification.inside import Stage

__all__ = ["stage"]

pytestmark = [pytest.mark.crash, pytest.mark.both_engines, pytest.mark.long]


def _remembered(checks: Checks) -> str:
    """The cookie of a buyer who was verified in a session of this account."""
    session = checks.begun()
    checks.submit(session, "verified")
    cbid = checks.follow(session).cbid
    assert cbid is not None
    return checks.do(remember_cookie(checks.stage.opened.checkout.remembered, Mode.LIVE, cbid))


def _passes(checks: Checks) -> list[str]:
    """The records of the passes, which must be as many as the uses."""
    stage = checks.stage
    query = "SELECT id FROM verifications WHERE provider = 'remembered' ORDER BY id"
    found = [str(row["id"]) for row in stage.rows(query)]
    records = {str(row["id"]) for row in stage.rows("SELECT id FROM records")}
    assert records.issuperset(found)
    uses = stage.rows("SELECT id FROM remembered_uses WHERE verified = :yes", yes=True)
    assert len(uses) == len(found)
    return found


def _run(stage: Stage, point: int, session: Session, value: str) -> int:
    """The exit status of the victim."""
    words = ("tests.remembered.victim", str(point), session.id, value)
    done = forked.run(*words, environment=stage.environment)
    assert done.returncode in {0, -9}, done.stderr
    return done.returncode


@each_engine
@pytest.mark.timeout(600)
def test_killed_before_any_statement_the_pass_is_recorded_and_the_session_verified_or_neither(
    stage: Stage,
) -> None:
    """After the restart the buyer agrees once more, and passes once."""
    states = set[tuple[int, bool]]()
    with ExitStack() as stack:
        checks = checks_at(stage, stack)
        value = _remembered(checks)
        for point in count(1):
            session, before = checks.create(Collected.IDENTITY), _passes(checks)
            ended = _run(stage, point, session, value)
            found, new = checks.read(session.id), _passes(checks)[len(before) :]
            completed = found.status is Status.COMPLETED
            states.add((found.consents, completed))
            assert checks.events(session.id) == (
                ["checkout_session.completed"] if completed else []
            )
            if completed:
                _check(found, new)
            else:
                assert new == []
                assert (found.status, found.asked.identity) == (Status.OPEN, None)
                assert _run(stage, 0, session, value) == 0
                _check(checks.read(session.id), _passes(checks)[len(before) :])
                assert checks.events(session.id) == ["checkout_session.completed"]
            if ended == 0:
                break  # it got to its end: there is no further point
        # None of the sessions has a second end.
        stage.clock.now += timedelta(days=1)
        assert checks.do(expiry.sweep(checks.room)) == 0
    assert states == {(0, False), (1, False), (1, True)}
    assert point > 10, "statements and commits of three acts"


def _check(session: Session, passes: list[str]) -> None:
    check = session.asked.identity
    assert check is not None
    assert (session.status, check.binding) == (Status.COMPLETED, Binding.COOKIE)
    assert check.verified
    assert passes == [check.verification]
