"""The observations of a conformance run, and the findings from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from countersign_conformance.model import LINGER, Finding, Observation, Provocation, Verdict

_TIMES_MAX: Final = 10


class History(NamedTuple):
    """Observations in order, until a time."""

    seen: Sequence[Observation]
    now: datetime
    linger: timedelta = LINGER
    """How long to watch before an act counts as not done."""

    def of(self, *operations: str) -> list[Observation]:
        """All of these operations."""
        return [one for one in self.seen if one.operation in operations]

    def provoked(self, provocation: Provocation) -> Observation | None:
        """The request that met a provocation."""
        return next((one for one in self.seen if one.provoked is provocation), None)

    def before(self, one: Observation) -> Sequence[Observation]:
        """Observations before this one."""
        return self.seen[: self._place(one)]

    def after(self, one: Observation) -> Sequence[Observation]:
        """Observations after this one."""
        return self.seen[self._place(one) + 1 :]

    def _place(self, wanted: Observation) -> int:
        return next(place for place, one in enumerate(self.seen) if one is wanted)


def passed(seen: str, *by: Observation) -> Finding:
    """A check that was passed, by these."""
    return Finding(verdict=Verdict.PASSED, seen=seen, at=_times(by))


def passed_if_lasting(history: History, since: Observation, seen: str) -> Finding:
    """Passed if nothing has contradicted it for long enough after `since`; not seen before that."""
    watched = history.now - since.at
    if watched >= history.linger:
        return passed(seen, since)
    return Finding(
        verdict=Verdict.NOT_SEEN,
        seen=(
            f"{seen} So far the order was watched for {watched.total_seconds():.1f} s of "
            f"{history.linger.total_seconds():g} s."
        ),
        at=_times((since,)),
        due=since.at + history.linger,
    )


def failed(seen: str, *by: Observation) -> Finding:
    """A check that was failed, by these."""
    return Finding(verdict=Verdict.FAILED, seen=seen, at=_times(by))


def not_seen(seen: str) -> Finding:
    """A check without anything to observe."""
    return Finding(verdict=Verdict.NOT_SEEN, seen=seen)


def many(number: int, noun: str) -> str:
    """The number with its noun, in words for people."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _times(by: Iterable[Observation]) -> tuple[datetime, ...]:
    return tuple(one.at for one in by)[:_TIMES_MAX]
