"""The report of a run: a table for people and JSON for programs."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from bench.machine import Machine
from bench.options import Options
from bench.results import (
    CONTENDERS,
    CPU,
    LOOP,
    RATE,
    RATIOS,
    TIMES_CEILING,
    Case,
    Verdict,
    cases_by_size,
)
from bench.rounds import Sample
from bench.servers import COUNTERSIGN

TITLES: Final = {
    "floor": "floor",
    "ceiling": "ceiling",
    "usual": "usual pick",
    "countersign": "countersign",
    "workers": "with workers",
}
ENGINE_TITLES: Final = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
NOTHING: Final = "-"
UNSTEADY: Final = 0.20
FORMAT: Final = 2
CAVEATS: Final = (
    "How to read it: wrk sends the next request of a connection only after the answer to the one",
    "before, so a server that stalls is asked less often meanwhile (coordinated omission). wrk",
    "estimates the latencies it missed that way; independent callers may still see worse ones.",
    "wrk shares the cores with the server and the database, so the rates are not those of a server",
    "that has the machine to itself. us is the processor time of all processes of a server for a",
    "request, with PostgreSQL's: other work moves it less than rates. loop us is that of the event",
    "loop of Countersign: a process answers at most a second divided by it. Ratios are medians of",
    "those of the rounds. Compare within one run, not across runs or machines.",
)


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that a run found."""

    options: Options
    machine: Machine
    samples: Sequence[Sample]
    cases: Sequence[Case]
    verdicts: Sequence[Verdict]


def render(findings: Findings) -> str:
    """Write the report for people."""
    cases = findings.cases
    parts = [*_facts(findings.machine, findings.options)]
    for engine in dict.fromkeys(case.engine for case in cases):
        parts += ["", ENGINE_TITLES[engine]]
        parts += _table([case for case in cases if case.engine == engine])
    growth = [*_growth(cases)]
    if growth:
        parts += ["", "Acknowledging, with how many stored", *growth]
    unsteady = _unsteady(cases)
    if unsteady:
        parts += ["", f"Rounds differed by more than {UNSTEADY:.0%} of the median:", *unsteady]
    if findings.verdicts:
        parts += ["", "Targets (SQLite, 32 connections)", *_targets(findings.verdicts)]
    parts += ["", *CAVEATS]
    return "\n".join(parts) + "\n"


def save(findings: Findings, path: Path) -> None:
    """Write the report for programs: facts, raw rounds, medians and targets."""
    options = findings.options
    report = {
        "format": FORMAT,
        "finished_at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "options": {
            "engines": options.engines,
            "operations": options.operations,
            "connections": options.connections,
            "stored": options.stored,
            "seconds": options.seconds,
            "rounds": options.rounds,
            "usual_server": options.usual_server,
        },
        "machine": asdict(findings.machine),
        "rounds": [asdict(sample) for sample in findings.samples],
        "medians": [
            {
                "engine": case.engine,
                "operation": case.operation,
                "connections": case.connections,
                "stored": case.stored,
                **{name: _medians(case, name) for name in case.taken},
                "ratios": {ratio.words: case.ratio(ratio) for ratio in RATIOS},
            }
            for case in findings.cases
        ],
        "targets": [asdict(verdict) for verdict in findings.verdicts],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=2) + "\n")


def _medians(case: Case, name: str) -> dict[str, float | None]:
    what = (CPU, LOOP, RATE, "p50_ms", "p99_ms")
    return {one: case.median(name, one) for one in what} | {"spread": case.spread(name)}


def _facts(machine: Machine, options: Options) -> list[str]:
    memory = f", {machine.memory_gib} GiB" if machine.memory_gib else ""
    versions = machine.packages
    shown = (
        "countersign-service",
        "granian",
        "httptools",
        "sqlalchemy",
        "fastapi",
        options.usual_server,
    )
    named = ", ".join(
        f"{name} {versions[name]}" for name in dict.fromkeys(shown) if name in versions
    )
    return [
        f"{machine.processor}, {machine.cores} cores{memory}; {machine.system}, {machine.kernel}",
        f"disk: {machine.file_system}, fdatasync of 4 KiB {machine.fdatasync_median_us:.0f} us",
        f"{machine.python}; {named}; {machine.sqlite}; {machine.wrk}",
        f"medians of {options.rounds} x {options.seconds} s; usual pick on {options.usual_server}",
        *(f"WARNING: {warning}" for warning in machine.warnings),
    ]


def _table(cases: Sequence[Case]) -> list[str]:
    present = [name for name in CONTENDERS if any(name in case.taken for case in cases)]
    head = ["operation", "conn", "stored"]
    for name in present:
        head += [f"{TITLES[name]} us", "/s"]
    ratios = [ratio for ratio in RATIOS if {ratio.own, ratio.other} <= {*present}]
    head += ["loop us", "p50 ms", "p99 ms", *(ratio.words for ratio in ratios)]
    rows = [head]
    for case in cases:
        row = [case.operation, str(case.connections), f"{case.stored:,}"]
        for name in present:
            row += [_number(case.median(name, CPU), 0), _number(case.median(name, RATE), 0)]
        row.append(_number(case.median(COUNTERSIGN, LOOP), 0))
        row += [_number(case.median(COUNTERSIGN, what), 1) for what in ("p50_ms", "p99_ms")]
        rows.append(row + [_number(case.ratio(ratio), 2) for ratio in ratios])
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = [_line(row, widths) for row in rows]
    return [lines[0], "-" * len(lines[0]), *lines[1:]]


def _number(value: float | None, digits: int) -> str:
    return NOTHING if value is None else f"{value:,.{digits}f}"


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    first = row[0].ljust(widths[0])
    rest = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
    return "  ".join([first, *rest])


def _unsteady(cases: Iterable[Case]) -> list[str]:
    return [
        f"  {case.engine} {case.operation} at {case.connections}, {case.stored:,} stored, "
        f"{TITLES[name]}: {spread:.0%}"
        for case in cases
        for name in case.taken
        if (spread := case.spread(name)) > UNSTEADY
    ]


def _growth(cases: Sequence[Case]) -> Iterator[str]:
    """How the cost of an acknowledgment has grown, where it was measured at several sizes."""
    for first, *later in cases_by_size(cases):
        before = first.ratio(TIMES_CEILING) or first.median(COUNTERSIGN, CPU)
        for case in later:
            after = case.ratio(TIMES_CEILING) or case.median(COUNTERSIGN, CPU)
            if before and after:
                yield (
                    f"  {ENGINE_TITLES[case.engine]} at {case.connections}: {case.stored:,} "
                    f"against {first.stored:,}: {after / before:.2f} x the processor time"
                )


def _targets(verdicts: Iterable[Verdict]) -> list[str]:
    return [
        f"  {'ok   ' if verdict.ok else 'SHORT'}  {verdict.target}: {verdict.found}"
        for verdict in verdicts
    ]
