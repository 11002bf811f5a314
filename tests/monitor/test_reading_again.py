"""The monitor reads earlier entries again, so a log cannot change them later."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign_evidence.alarm import AlarmKind
from countersign_evidence.check_alarm import Shown
from countersign_evidence.monitor.mirror import Copy, mirror
from countersign_evidence.monitor.round import SAMPLE, Again, AlarmFound, Look
from countersign_evidence.monitor.source import open_source
from countersign_evidence.monitor.watch import LookStatus
from countersign_evidence.policy import parse_policy
from countersign_evidence.tiles import WIDTH, entry_bundle
from tests.monitor.conftest import Monitor
from tests.monitor.liar import Served, StoppedClock, entry, leaf, served
from tests.monitor.test_lies import consistent, log_of, many

DAY = 24 * 3600


def drawing(*numbers: int) -> Again:
    """Only these drawn bundles are read again."""
    return Again(whole=timedelta(days=10_000), pick=lambda count: numbers[0] % count)


def bundle(number: int, rewritten: int) -> bytes:
    """A bundle of entries of the honest log, with one of them changed."""
    first = number * WIDTH
    entries = [entry(n) for n in range(first, first + WIDTH)]
    entries[rewritten] = entry(first + rewritten, "rewritten")
    return entry_bundle(entries)


def test_a_changed_old_entry_is_an_alarm(monitor: Monitor) -> None:
    """In a log of the same size, whose checkpoint and tiles are unchanged."""
    log = log_of(3 * WIDTH)
    with served(log) as site:
        consistent(monitor, site)
        log.lies["tile/entries/001"] = bundle(1, 7)
        assert monitor.look(site, again=drawing(0)).status is LookStatus.CONSISTENT
        seen = monitor.look(site, again=drawing(1))
    assert seen.kind is AlarmKind.UNBACKED
    assert monitor.judged(seen, site).shown is Shown.OBSERVED


def test_an_old_tile_changed_with_its_entries_is_an_alarm(monitor: Monitor) -> None:
    """Entries and tile agree with each other, and not with the signed root."""
    log = log_of(3 * WIDTH)
    with served(log) as site:
        consistent(monitor, site)
        changed = bundle(1, 7)
        log.lies["tile/entries/001"] = changed
        hashes = [leaf(entry(n, "rewritten" if n == WIDTH + 7 else "")) for n in range(WIDTH, 512)]
        log.lies["tile/0/001"] = b"".join(hashes)
        seen = monitor.look(site, again=drawing(1))
    assert seen.kind is AlarmKind.UNBACKED
    assert monitor.judged(seen, site).shown is Shown.OBSERVED


@pytest.mark.parametrize("path", ["tile/entries/001", "tile/0/001"])
def test_a_deleted_old_tile_is_an_alarm(monitor: Monitor, path: str) -> None:
    log = log_of(3 * WIDTH)
    with served(log) as site:
        consistent(monitor, site)
        log.lies[path] = None
        seen = monitor.look(site, again=drawing(1))
    assert seen.kind is AlarmKind.GAP
    assert monitor.judged(seen, site).shown is Shown.OBSERVED


def test_an_old_tile_of_a_higher_level_is_read_again(monitor: Monitor) -> None:
    """With every tile between the bundle that is drawn and the root."""
    log = many()
    with served(log) as site:
        consistent(monitor, site)
        honest = log.resource("tile/1/000")
        assert honest is not None
        log.lies["tile/1/000"] = honest[:32] + bytes(32) + honest[64:]
        seen = monitor.look(site, again=drawing(0))
    assert seen.kind is AlarmKind.UNBACKED


def test_a_log_of_one_bundle_is_read_again_at_each_look(monitor: Monitor) -> None:
    """Nothing has to be drawn: the next look detects a changed entry."""
    log = log_of(5)
    with served(log) as site:
        consistent(monitor, site)
        log.lies["tile/entries/000.p/5"] = entry_bundle([entry(n, "x") for n in range(5)])
        assert monitor.look(site).kind is AlarmKind.UNBACKED


def test_a_growing_log_is_read_again_as_a_whole_within_the_time(monitor: Monitor) -> None:
    """Look by look a part, in turn, whatever is drawn; also for an epoch that grows."""
    log = log_of(20 * WIDTH)
    in_turn = Again(whole=timedelta(days=7), pick=lambda _: 0)
    with served(log) as site:
        consistent(monitor, site)
        log.asked.clear()
        for _ in range(15):
            monitor.clock.seconds += DAY // 2
            log.grow(40)
            assert monitor.look(site, again=in_turn).status is LookStatus.CONSISTENT
        asked = {
            path for path in log.asked if path.startswith("/tile/entries/") or "entries" in path
        }
    for number in range(20):
        assert any(path.endswith(f"tile/entries/{number:03}") for path in asked), number


@given(
    st.lists(st.tuples(st.integers(1, 3 * DAY), st.integers(0, 2000)), min_size=1, max_size=60),
    st.integers(0, 40_000),
    st.integers(0, 10**9),
)
def test_each_part_begins_where_the_last_one_ended(
    looks: list[tuple[int, int]], size: int, began: int
) -> None:
    """Whenever the looks are, and however the log grows: within the time none is left out."""
    again = Again(pick=lambda _: 0)
    read_at: dict[int, int] = {}
    now = began
    read_at = dict.fromkeys(range((size + WIDTH - 1) // WIDTH), began)
    for pause, more in looks:
        before, since = size, now
        now, size = now + pause, size + more
        for number in again.due(before, size, since, now):
            assert number < (size + WIDTH - 1) // WIDTH
            read_at[number] = now
        for number in range((before + WIDTH - 1) // WIDTH, (size + WIDTH - 1) // WIDTH):
            read_at.setdefault(number, now)  # read since it is new
        for number, at in read_at.items():
            assert now - at <= 7 * DAY + 3 * DAY, number


def test_a_few_are_drawn_for_each_look() -> None:
    drawn = iter(range(10, 10 + SAMPLE))
    again = Again(pick=lambda _: next(drawn))
    now = 7 * DAY * 100
    assert again.due(100 * WIDTH, 100 * WIDTH, now, now + 1) == [*range(10, 10 + SAMPLE)]
    assert again.due(0, 0, now, now + 1) == []


@dataclass(kw_only=True)
class Mirror:
    """Copies a log whenever the test says so."""

    folder: Path
    clock: StoppedClock

    def run(self, site: Served, again: Again) -> None:
        keys = parse_policy(Monitor.policy(site).encode(), any_kind=True)

        async def once() -> None:
            async with open_source(site.at(), pause=self.clock.pause) as source:
                look = Look(policy=keys, clock=self.clock.time_ns)
                await mirror(look, source, Copy(self.folder), lambda *_: None, again)

        asyncio.run(once())


@pytest.mark.parametrize(
    ("lie", "kind"), [(bundle(1, 7), AlarmKind.UNBACKED), (None, AlarmKind.GAP)]
)
def test_a_mirror_rereads_its_copied_files(
    tmp_path: Path, lie: bytes | None, kind: AlarmKind
) -> None:
    """Also if nothing is new, and without a look into its own files."""
    log, copy = log_of(3 * WIDTH), Mirror(folder=tmp_path / "copy", clock=StoppedClock())
    with served(log) as site:
        copy.run(site, drawing(0))
        honest = (copy.folder / "tile/entries/001").read_bytes()
        log.lies["tile/entries/001"] = lie
        copy.run(site, drawing(0))
        with pytest.raises(AlarmFound) as found:
            copy.run(site, drawing(1))
    assert found.value.alarm.kind is kind
    assert (copy.folder / "tile/entries/001").read_bytes() == honest


def test_a_mirror_repairs_damaged_files_of_the_copy(tmp_path: Path) -> None:
    log, copy = log_of(3 * WIDTH), Mirror(folder=tmp_path / "copy", clock=StoppedClock())
    with served(log) as site:
        copy.run(site, drawing(0))
        file = copy.folder / "tile/entries/001"
        honest = file.read_bytes()
        file.write_bytes(honest[:-1])
        copy.run(site, drawing(1))
    assert file.read_bytes() == honest


def test_a_mirror_reads_the_whole_again_within_the_time(tmp_path: Path) -> None:
    log, copy = log_of(10 * WIDTH), Mirror(folder=tmp_path / "copy", clock=StoppedClock())
    in_turn = Again(whole=timedelta(days=7), pick=lambda _: 0)
    with served(log) as site:
        copy.run(site, in_turn)
        log.asked.clear()
        for _ in range(8):
            copy.clock.seconds += DAY
            copy.run(site, in_turn)
    for number in range(10):
        assert any(path.endswith(f"tile/entries/{number:03}") for path in log.asked), number
