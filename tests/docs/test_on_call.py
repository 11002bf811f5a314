"""docs/on-call.md: its rows are the states that drills make, and its commands are run by them."""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.docs.markdown import ROOT
from tests.drills.on_call import Row, rows
from tests.drills.states import BY_PROMISE, BY_TEST, STATES
from tests.drills.test_promises import BREAKS

PAGE: Final = rows()
SOURCE: Final = (ROOT / "tests" / "drills" / "states.py").read_text()


def test_the_page_has_the_states_that_are_made() -> None:
    """No row is only claimed, and no state has no row."""
    assert sorted(PAGE) == sorted([*STATES, *BY_PROMISE, *BY_TEST])
    assert sorted(BY_PROMISE.values()) == sorted(BREAKS)
    tests = "".join(file.read_text() for file in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name in BY_TEST.values() if f"def {name}(" not in tests] == []


@pytest.mark.parametrize("name", BY_PROMISE)
def test_a_row_of_a_promise_names_it(name: str) -> None:
    """What says it is the promise, and the rules of all promises."""
    promise, row = BY_PROMISE[name], PAGE[name]
    # What a server cannot look at, the doctor does: it is the server's alone.
    assert row.codes == ({f"promises.{promise}"} if promise != "watched" else set())
    assert all(re.fullmatch("CountersignPromise(Late|Broken)", alert) for alert in row.alerts)


@pytest.mark.parametrize(
    "row", [r for r in PAGE.values() if r.state in STATES], ids=lambda r: r.state
)
def test_each_command_of_a_row_is_run(row: Row) -> None:
    """One that is only shown may not work."""
    own = SOURCE.partition(f'@state("{row.state}"')[2].partition("\n\n\n")[0]
    for helper in re.findall(r"return (_\w+)\(", own):
        own += SOURCE.partition(f"def {helper}(")[2].partition("\n\n\n")[0]
    calls = set(re.findall(r"\.(?:cure|command)\((\d?)", own))
    assert len(calls) == len(row.commands)
