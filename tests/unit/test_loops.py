"""The loops of a server: whatever goes wrong, they go on, and it can be seen."""

from __future__ import annotations

import asyncio
import traceback
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, Never

import pytest
from structlog.testing import capture_logs

from countersign.base.errors import Overloaded, StorageUnavailable
from countersign.base.loops import forever, restarted
from tests.unit.support import run

SECRET = "what a buyer typed"


class Acts:
    """Does one of these at each call, and stops the loop when none is left."""

    def __init__(self, *acts: Callable[[], object]) -> None:
        self._acts = list(acts)

    async def __call__(self) -> None:
        if not self._acts:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(1)
        self._acts.pop(0)()

    async def pause(self) -> None:
        """Go on at once."""


def fails(error: BaseException) -> Callable[[], Never]:
    def act() -> Never:
        raise error

    return act


def until_cancelled(loop: Coroutine[Any, Any, Never]) -> list[Any]:
    """The log of a loop until it is cancelled, which alone ends it."""
    with capture_logs() as answer, pytest.raises(asyncio.CancelledError):
        run(loop)
    return answer


def test_a_loop_continues_whatever_goes_wrong() -> None:
    """A refusal is logged by its code, everything else with its traceback and not its message."""
    acts = Acts(fails(Overloaded()), list, fails(KeyError(SECRET)), list)
    refusal, failure = until_cancelled(forever("sweeping", acts, 0))
    assert refusal == {"event": "sweeping_postponed", "code": "overloaded", "log_level": "warning"}
    assert (failure["event"], failure["kind"]) == ("sweeping_failed", "KeyError")
    answer = "".join(traceback.format_exception(failure["exc_info"]))
    assert "in act" in answer
    assert SECRET not in answer


def test_an_event_ends_the_pause() -> None:
    """Once each time that it is set."""
    wake = asyncio.Event()
    acts = Acts(wake.set, wake.set)
    assert until_cancelled(forever("sweeping", acts, 3600, wake)) == []
    assert not wake.is_set()


def test_idle_loops_end_their_pauses_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """At multiples of their period, whenever they began: the process wakes once for all."""
    ends, timeout = list[float](), asyncio.timeout

    def at_once(seconds: float) -> asyncio.Timeout:
        ends.append(asyncio.get_running_loop().time() + seconds)
        return timeout(0)

    monkeypatch.setattr(asyncio, "timeout", at_once)
    until_cancelled(forever("sweeping", Acts(list, list), 3600))
    assert [round(end) % 3600 for end in ends] == [0, 0]


def test_a_failure_in_a_group_of_tasks_is_logged_too() -> None:
    """Its own traceback helps; the group's only says that one failed."""
    acts = Acts(fails(ExceptionGroup(SECRET, [KeyError(SECRET), ValueError(SECRET)])))
    [failure] = until_cancelled(forever("sweeping", acts, 0))
    answer = "".join(traceback.format_exception(failure["exc_info"]))
    assert "KeyError" in answer
    assert "ValueError" in answer
    assert SECRET not in answer


@pytest.mark.parametrize(
    "end",
    [list, fails(KeyError(SECRET)), fails(StorageUnavailable()), fails(asyncio.CancelledError())],
)
def test_a_loop_that_ends_is_begun_again(end: Callable[[], object]) -> None:
    """By itself, by an error, by the database at the start, or by a task inside of it."""
    acts, ended = Acts(end, end), Counter[str]()
    answer = until_cancelled(restarted("sweeping", acts, ended, acts.pause))
    assert [(line["event"], line["loop"]) for line in answer] == [("loop_ended", "sweeping")] * 2
    assert ended == {"sweeping": 2}
    assert SECRET not in repr(answer)
