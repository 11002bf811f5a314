"""The judge of the drills, with looks and acts that are made up."""

from __future__ import annotations

import pytest

from tests.drills.load import Looked, Tried
from tests.drills.site import lies

pytestmark = pytest.mark.later  # it tests the tools of the tests


def looked(*said: int) -> list[Looked]:
    """A look each half second, for five seconds at each of these."""
    each = [status for status in said for _ in range(10)]
    return [Looked(n / 2, status) for n, status in enumerate(each)]


def tried(*ended: tuple[int, str]) -> list[Tried]:
    """Ten acts a second, for five seconds each way."""
    each = [end for end in ended for _ in range(50)]
    return [Tried(n / 10, 0.1, *end) for n, end in enumerate(each)]


DONE, REFUSED = (200, ""), (503, "storage_unavailable")


def test_ready_is_a_lie_where_every_act_is_refused() -> None:
    """From three seconds after the last successful one."""
    found = lies(looked(200, 200), tried(DONE, REFUSED))
    assert found[0].startswith("ready at 8.0,")
    assert len(found) == 4


def test_not_ready_is_a_lie_if_every_act_succeeds() -> None:
    """From three seconds after the first such response."""
    found = lies(looked(503, 503), tried(DONE, DONE, DONE))
    assert found[0].startswith("not ready for 3.0 s until 3.0,")
    assert len(found) == 14


def test_an_outdated_answer_is_allowed_for_three_seconds() -> None:
    """Readiness asks the database each second, and a try may wait."""
    assert lies(looked(200, 503)[4:16], tried(DONE, REFUSED, REFUSED)) == []
    assert lies(looked(503, 200)[4:], tried(REFUSED, DONE, DONE)) == []


def test_both_answers_are_true_if_some_acts_succeed_and_some_are_refused() -> None:
    """Of two processes, one may be healthy."""
    some = sorted([*tried(DONE, DONE), *tried(REFUSED, REFUSED)], key=lambda one: one.at)
    assert lies([*looked(200, 200), *looked(503, 503)], some) == []


def test_a_process_without_callers_may_learn_late_that_all_is_well() -> None:
    """As behind HAProxy: the successful acts are another process's, and its looks come too."""
    acts = tried(DONE, DONE, DONE, DONE)
    assert lies(looked(503, 503), acts, learns_within=15.0) == []
    assert lies(looked(503, 200, 503), acts, learns_within=15.0) == []
    assert lies(looked(503, 503, 503, 503), acts, learns_within=15.0)


def test_a_missing_answer_proves_nothing() -> None:
    """An interrupted check proves neither readiness nor its absence."""
    assert lies(looked(0, 0), tried(DONE, DONE, DONE)) == []
    assert lies(looked(0, 0), tried(REFUSED, REFUSED)) == []


def test_nothing_is_known_if_no_act_is_tried() -> None:
    """For example while all callers wait."""
    assert lies(looked(503, 503), []) == []
    assert lies(looked(200, 200), []) == []
