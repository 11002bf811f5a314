"""Whether nobody can write, and why: a function of what the processes of a server have noted."""

from __future__ import annotations

import os

import pytest

from countersign.base.db.engine import disk_full
from countersign.base.db.writes import DONE, PATIENCE_SECONDS, SINCE, Writes
from countersign.base.errors import (
    Blocked,
    CountersignError,
    DatabasePermissionDenied,
    OutcomeUnknown,
    Overloaded,
    StorageUnavailable,
)

BEGUN = 1000.0
LATE = BEGUN + PATIENCE_SECONDS
SOON = LATE - 0.1
UNHEARD = "storage_unavailable: The database did not respond."


def noted(*, done: float = 0.0, since: float = 0.0) -> Writes:
    """What a process has noted."""
    writes = Writes()
    writes.cells[DONE], writes.cells[SINCE] = done, since
    return writes


def said(writes: Writes, now: float) -> str | None:
    """The refusal, with its words."""
    refusal = writes.refusal(now)
    return None if refusal is None else f"{refusal.code}: {refusal.message}"


def test_writes_succeed_where_none_is_tried() -> None:
    assert said(Writes(), LATE) is None
    assert said(noted(done=BEGUN), LATE + 3600) is None


def test_nobody_can_write_when_none_has_succeeded_for_a_while() -> None:
    """One that has just begun may still succeed, however long nobody wrote before."""
    for writes in (noted(done=BEGUN, since=BEGUN - 9), noted(done=1.0, since=BEGUN)):
        assert said(writes, SOON) is None
        assert said(writes, LATE) == UNHEARD


def test_a_server_is_not_ready_before_its_first_write_succeeds() -> None:
    writes = noted(since=BEGUN)
    assert said(writes, BEGUN) == UNHEARD
    writes.cells[DONE], writes.cells[SINCE] = BEGUN, 0.0
    assert said(writes, LATE) is None


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (Overloaded(), f"blocked: {Blocked().message}"),
        (Blocked(), f"blocked: {Blocked().message}"),
        (disk_full(), f"storage_unavailable: {disk_full().message}"),
        (StorageUnavailable(), UNHEARD),
        (OutcomeUnknown(), "storage_unavailable: The database cannot be written."),
        (DatabasePermissionDenied("no"), "storage_unavailable: The database cannot be written."),
    ],
)
def test_the_newest_failure_is_the_cause(failure: CountersignError, expected: str) -> None:
    writes = noted(done=BEGUN, since=BEGUN)
    writes.fail(StorageUnavailable("of another kind"), BEGUN + 1)
    writes.fail(failure, BEGUN + 2)
    assert said(writes, LATE) == expected


def test_a_failure_before_the_last_success_is_no_cause() -> None:
    writes = noted(done=BEGUN, since=BEGUN)
    writes.fail(disk_full(), BEGUN - 1)
    assert said(writes, LATE) == UNHEARD


def test_what_one_process_notes_the_others_see() -> None:
    """A success of any of them is one of all."""
    writes = noted(done=BEGUN, since=BEGUN)
    child = os.fork()
    if not child:
        writes.fail(disk_full(), BEGUN + 1)
        os._exit(0)
    os.waitpid(child, 0)
    assert said(writes, LATE) == f"storage_unavailable: {disk_full().message}"
