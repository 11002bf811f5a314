"""The results of a run: medians over the rounds, ratios, and the targets."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from bench.load import Measurement
from bench.options import SQLITE
from bench.rounds import Sample
from bench.servers import CEILING, COUNTERSIGN, FLOOR, USUAL, WORKERS

CONTENDERS: Final = (FLOOR, CEILING, USUAL, COUNTERSIGN, WORKERS)


class Ratio(NamedTuple):
    """A member of the measurements of one contender as a multiple of another's."""

    words: str
    what: str
    own: str
    other: str


CPU: Final = "cpu_us"
LOOP: Final = "loop_us"
RATE: Final = "per_second"
TIMES_FLOOR: Final = Ratio("us of floor", CPU, COUNTERSIGN, FLOOR)
TIMES_CEILING: Final = Ratio("us of ceiling", CPU, COUNTERSIGN, CEILING)
USUAL_TIMES: Final = Ratio("usual us of ours", CPU, USUAL, COUNTERSIGN)
OF_CEILING: Final = Ratio("/s of ceiling", RATE, COUNTERSIGN, CEILING)
TIMES_USUAL: Final = Ratio("/s of usual", RATE, COUNTERSIGN, USUAL)
WORKERS_TIMES_ONE: Final = Ratio("workers of one", RATE, WORKERS, COUNTERSIGN)
RATIOS: Final = (
    TIMES_FLOOR,
    TIMES_CEILING,
    USUAL_TIMES,
    OF_CEILING,
    TIMES_USUAL,
    WORKERS_TIMES_ONE,
)


@dataclass(frozen=True, slots=True)
class Case:
    """One operation at one number of connections on one database, all contenders."""

    engine: str
    operation: str
    connections: int
    stored: int
    """So many acknowledgments Countersign had at least before the first round."""
    taken: Mapping[str, Sequence[Measurement]]
    """Of each contender the measurements, round by round."""

    def median(self, contender: str, what: str) -> float | None:
        """The median over the rounds, of the member `what`; None if not measured."""
        values = [getattr(one, what) for one in self.taken.get(contender, ())]
        return statistics.median(values) if values else None

    def spread(self, contender: str) -> float:
        """From the slowest to the fastest round, as a share of the median rate."""
        rates = [one.per_second for one in self.taken[contender]]
        return (max(rates) - min(rates)) / statistics.median(rates)

    def ratio(self, ratio: Ratio) -> float | None:
        """The median of the rounds' ratios: within a round both meet the same machine.

        None if either was not measured.
        """
        _, what, own, other = ratio
        pairs = zip(self.taken.get(own, ()), self.taken.get(other, ()), strict=False)
        values = [(getattr(one, what), getattr(two, what)) for one, two in pairs]
        found = [one / two for one, two in values if one and two]
        return statistics.median(found) if found else None


@dataclass(frozen=True, slots=True)
class Verdict:
    """A target and its result."""

    target: str
    found: str
    ok: bool


@dataclass(frozen=True, slots=True)
class Target:
    """The targets of ratios, on SQLite at 32 connections."""

    operation: str
    ratio: Ratio
    bound: float
    at_most: bool = False

    def judge(self, case: Case) -> Verdict | None:
        """Judge a case; None if one of the two was not measured."""
        ratio = case.ratio(self.ratio)
        if ratio is None:
            return None
        limit = f"at {'most' if self.at_most else 'least'} {self.bound:g}"
        ok = ratio <= self.bound if self.at_most else ratio >= self.bound
        return Verdict(f"{self.operation}: {self.ratio.words} {limit}", f"{ratio:.2f}", ok)


CONNECTIONS: Final = 32
TARGETS: Final = (
    Target("notice", TIMES_CEILING, 2.2, at_most=True),
    Target("status", TIMES_CEILING, 2.4, at_most=True),
    Target("acknowledge", TIMES_CEILING, 7, at_most=True),
    Target("status", USUAL_TIMES, 32),
    Target("acknowledge", USUAL_TIMES, 9.5),
    Target("notice", OF_CEILING, 0.48),
    Target("status", OF_CEILING, 0.40),
    Target("acknowledge", OF_CEILING, 0.13),
    Target("status", TIMES_USUAL, 36),
    Target("acknowledge", TIMES_USUAL, 10),
)


def cases_of(samples: Sequence[Sample]) -> list[Case]:
    """Group the samples by case, in order of measurement."""
    taken: dict[tuple[str, str, int, int], dict[str, list[Measurement]]] = {}
    for one in samples:
        key = (one.engine, one.operation, one.connections, one.stored)
        contenders = taken.setdefault(key, {})
        contenders.setdefault(one.contender, []).append(one.measurement)
    return [Case(*key, contenders) for key, contenders in taken.items()]


def cases_by_size(cases: Iterable[Case]) -> list[list[Case]]:
    """Cases of acknowledging by engine and number of connections, the fewest stored first."""
    found: dict[tuple[str, int], list[Case]] = {}
    for case in cases:
        if case.operation == "acknowledge":
            found.setdefault((case.engine, case.connections), []).append(case)
    return [sorted(one, key=lambda case: case.stored) for one in found.values()]


def judge(cases: Iterable[Case]) -> list[Verdict]:
    """Judge the targets that this run has measured; they are for SQLite."""
    known: dict[str, Case] = {}
    for case in cases:
        if case.engine == SQLITE and case.connections == CONNECTIONS:
            known.setdefault(case.operation, case)  # with the fewest stored
    verdicts = (
        target.judge(known[target.operation]) for target in TARGETS if target.operation in known
    )
    return [verdict for verdict in verdicts if verdict]
