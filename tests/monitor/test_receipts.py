"""A receipt whose record is not in the log in time is an alarm, and nothing else is."""

from __future__ import annotations

from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from countersign.base.values import from_ns
from countersign_evidence.alarm import AlarmKind
from countersign_evidence.check_alarm import Shown
from countersign_evidence.monitor.watch import LookStatus
from countersign_evidence.receipt import make_receipts
from tests.monitor.conftest import NOT_AGAIN, Monitor
from tests.monitor.liar import OTHER_SEED, Log, served

KEPT, SUPPRESSED = (sha256(name).digest() for name in (b"salt7", b"never written"))
"""Receipts of the seventh entry of a log with this salt, and of no entry."""


@pytest.fixture
def receipts(tmp_path: Path) -> Path:
    """Give an empty folder for receipts."""
    folder = tmp_path / "receipts"
    folder.mkdir()
    return folder


def grown(count: int = 300) -> Log:
    log = Log()
    log.grow(count, "salt")
    return log


def promise(monitor: Monitor, log: Log, folder: Path, *digests: bytes, seconds: float = -1) -> None:
    """Write receipts that were due so many seconds from now."""
    until = from_ns(monitor.clock.time_ns()) + timedelta(seconds=seconds)
    for digest, text in zip(digests, make_receipts(digests, until, [log.signer]), strict=True):
        (folder / digest.hex()).write_text(text)


def test_kept_promises_are_consistent_whenever_the_receipt_comes(
    monitor: Monitor, receipts: Path
) -> None:
    """Before the entries are read, or long after them; each is looked up once."""
    log = grown()
    with served(log) as site:
        promise(monitor, log, receipts, KEPT)
        assert monitor.look(site, receipts=receipts).status is LookStatus.CONSISTENT
        promise(monitor, log, receipts, *(sha256(b"salt%d" % n).digest() for n in (0, 255, 299)))
        assert monitor.look(site, receipts=receipts).status is LookStatus.CONSISTENT
        log.asked.clear()
        seen = monitor.look(site, receipts=receipts, again=NOT_AGAIN)
        assert seen.status is LookStatus.CONSISTENT
        assert not [path for path in log.asked if path.startswith("tile/entries/000")]


def test_a_promise_is_not_broken_before_it_is_due(monitor: Monitor, receipts: Path) -> None:
    log = grown()
    promise(monitor, log, receipts, SUPPRESSED, seconds=60)
    with served(log) as site:
        assert monitor.look(site, receipts=receipts).status is LookStatus.CONSISTENT
        monitor.clock.seconds += 61
        assert monitor.look(site, receipts=receipts).kind is AlarmKind.SUPPRESSED


def test_a_suppressed_record_is_an_alarm_that_names_receipt_and_checkpoint(
    monitor: Monitor, receipts: Path
) -> None:
    log = grown()
    promise(monitor, log, receipts, KEPT, SUPPRESSED)
    with served(log) as site:
        seen = monitor.look(site, receipts=receipts)
        assert (seen.status, seen.kind) == (LookStatus.ALARM, AlarmKind.SUPPRESSED)
        assert SUPPRESSED.hex() in seen.message
        judged = monitor.judged(seen, site)
        assert (judged.shown, SUPPRESSED.hex() in judged.message) == (Shown.OBSERVED, True)
        stranger = Log(seed=OTHER_SEED).policy + "quorum none\n"
        assert monitor.judged(seen, site, policy=stranger).shown is Shown.UNCHECKED


def test_an_invalid_receipt_accuses_no_log(monitor: Monitor, receipts: Path) -> None:
    """It could not be checked, which is reported."""
    log = grown()
    promise(monitor, Log(seed=OTHER_SEED), receipts, SUPPRESSED)
    (receipts / "note.txt").write_text("not a receipt")
    with served(log) as site:
        seen = monitor.look(site, receipts=receipts)
    assert seen.status is LookStatus.UNCHECKED
    assert "note.txt" in seen.message


def test_a_record_in_the_log_that_follows_keeps_the_promise(
    monitor: Monitor, receipts: Path
) -> None:
    from tests.monitor.test_lies import next_log  # noqa: PLC0415 - a helper of that module

    log = grown()
    new = next_log(log)
    new.grow(20, "new")
    kept = sha256(b"new%d" % (len(new.entries) - 1)).digest()
    promise(monitor, log, receipts, kept)
    with served(log, new) as site:
        assert monitor.look(site, receipts=receipts).status is LookStatus.CONSISTENT
