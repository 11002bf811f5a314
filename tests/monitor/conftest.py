"""A monitor of a test: a directory, a clock that it moves, and looks at a log."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from countersign_evidence.check_alarm import Judged, check_alarm
from countersign_evidence.monitor.round import WEEKLY, Again, Watch
from countersign_evidence.monitor.source import open_source
from countersign_evidence.monitor.state import State
from countersign_evidence.monitor.watch import Seen, look
from countersign_evidence.policy import parse_policy
from tests.monitor.liar import Served, StoppedClock

NOT_AGAIN = Again(whole=timedelta(days=10_000), sample=0)
"""No entry is read again."""


@dataclass(kw_only=True)
class Monitor:
    """Looks when the test says so; `policy` is by default that of the logs."""

    folder: Path
    clock: StoppedClock = field(default_factory=StoppedClock)
    progress: list[tuple[str, int, int]] = field(default_factory=list)

    def look(
        self,
        site: Served,
        *,
        policy: str | None = None,
        frozen: timedelta | None = None,
        seconds: float = 60.0,
        receipts: Path | None = None,
        again: Again = WEEKLY,
    ) -> Seen:
        """Look once."""
        keys = policy or self.policy(site)

        async def once() -> Seen:
            watch = Watch(
                policy=parse_policy(keys.encode(), any_kind=True),
                state=State(self.folder),
                clock=self.clock.time_ns,
                progress=lambda *of: self.progress.append(of),
                frozen=frozen,
                receipts=receipts,
                again=again,
            )
            async with open_source(site.at(), pause=self.clock.pause, seconds=seconds) as source:
                return await look(watch, source)

        return asyncio.run(once())

    @staticmethod
    def policy(site: Served) -> str:
        """The keys of all logs of a site."""
        return "".join(log.policy for log in site.logs.values()) + "quorum none\n"

    def judged(self, seen: Seen, site: Served, *, policy: str | None = None) -> Judged:
        """A third party's verdict on the alarm's file."""
        assert seen.alarm_file is not None, seen.message
        keys = parse_policy((policy or self.policy(site)).encode(), any_kind=True)
        return check_alarm(seen.alarm_file.read_bytes(), keys)


@pytest.fixture
def monitor(tmp_path: Path) -> Monitor:
    """Give a monitor with nothing in its directory."""
    return Monitor(folder=tmp_path / "state")
