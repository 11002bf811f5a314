"""What a run found: medians over the rounds, ratios, and the targets."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from bench.options import SQLITE
from bench.rounds import Sample
from bench.servers import CEILING, COUNTERSIGN, USUAL, WORKERS

CONTENDERS: Final = (CEILING, USUAL, COUNTERSIGN, WORKERS)


@dataclass(frozen=True, slots=True)
class Median:
    """The medians of one contender over the rounds."""

    per_second: float
    p50_ms: float
    p99_ms: float
    spread: float
    """Distance from the slowest to the fastest round, as a share of the median."""


@dataclass(frozen=True, slots=True)
class Case:
    """One operation at one number of connections on one database, all contenders."""

    engine: str
    operation: str
    connections: int
    medians: dict[str, Median]

    def ratio(self, other: str, own: str = COUNTERSIGN) -> float | None:
        """Return Countersign's rate, or that of its workers, as a multiple of another's."""
        mine, its = self.medians.get(own), self.medians.get(other)
        return mine.per_second / its.per_second if mine and its else None


@dataclass(frozen=True, slots=True)
class Verdict:
    """A target and what was found."""

    target: str
    found: str
    ok: bool


@dataclass(frozen=True, slots=True)
class RateTarget:
    """Countersign's rate must be at least so many times another's."""

    operation: str
    connections: int
    other: str
    least: float

    def judge(self, case: Case) -> Verdict | None:
        """Judge a case; None if the other was not measured."""
        ratio = case.ratio(self.other)
        if ratio is None:
            return None
        name = f"{self.operation} at {self.connections}: "
        if self.other == CEILING:
            wanted, found = f"at least {self.least:.2f} of the ceiling", f"{ratio:.2f}"
        else:
            wanted, found = f"at least {self.least:.0f} x the usual pick", f"{ratio:.1f} x"
        return Verdict(name + wanted, found, ratio >= self.least)


@dataclass(frozen=True, slots=True)
class LatencyTarget:
    """Countersign's p99 must be below the usual pick's p50."""

    operation: str
    connections: int

    def judge(self, case: Case) -> Verdict | None:
        """Judge a case; None if the usual pick was not measured."""
        mine, its = case.medians.get(COUNTERSIGN), case.medians.get(USUAL)
        if mine is None or its is None:
            return None
        name = f"{self.operation} at {self.connections}: p99 below the usual pick's p50"
        found = f"{mine.p99_ms:.2f} ms against {its.p50_ms:.2f} ms"
        return Verdict(name, found, mine.p99_ms < its.p50_ms)


TARGETS: Final = (
    RateTarget("notice", 32, CEILING, 0.50),
    RateTarget("status", 32, CEILING, 0.35),
    RateTarget("status", 32, USUAL, 15),
    RateTarget("acknowledge", 32, CEILING, 0.15),
    RateTarget("acknowledge", 32, USUAL, 10),
    LatencyTarget("notice", 32),
    LatencyTarget("status", 32),
    LatencyTarget("acknowledge", 32),
    RateTarget("acknowledge", 256, CEILING, 0.20),
)


def cases_of(samples: Sequence[Sample]) -> list[Case]:
    """Put the samples together by case, in the order in which they were taken."""
    engines = _in_order(sample.engine for sample in samples)
    operations = _in_order(sample.operation for sample in samples)
    numbers = sorted({sample.connections for sample in samples})
    return [
        Case(engine, operation, connections, medians)
        for engine, operation, connections in product(engines, operations, numbers)
        if (medians := _medians(samples, engine, operation, connections))
    ]


def judge(cases: Iterable[Case]) -> list[Verdict]:
    """Judge the targets that this run can tell something about."""
    known = {(case.operation, case.connections): case for case in cases if _counts(case)}
    verdicts = (
        target.judge(known[target.operation, target.connections])
        for target in TARGETS
        if (target.operation, target.connections) in known
    )
    return [verdict for verdict in verdicts if verdict]


def _counts(case: Case) -> bool:
    return case.engine == SQLITE


def _in_order(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


def _medians(
    samples: Sequence[Sample], engine: str, operation: str, connections: int
) -> dict[str, Median]:
    wanted = (engine, operation, connections)
    found: dict[str, Median] = {}
    for contender in CONTENDERS:
        taken = [
            sample.measurement
            for sample in samples
            if (sample.engine, sample.operation, sample.connections) == wanted
            and sample.contender == contender
        ]
        if not taken:
            continue
        rates = [measurement.per_second for measurement in taken]
        rate = statistics.median(rates)
        found[contender] = Median(
            per_second=rate,
            p50_ms=statistics.median(measurement.p50_ms for measurement in taken),
            p99_ms=statistics.median(measurement.p99_ms for measurement in taken),
            spread=(max(rates) - min(rates)) / rate,
        )
    return found
