"""The report of a run: a table for people and JSON for programs."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from bench.machine import Machine
from bench.options import Options
from bench.results import CONTENDERS, Case, Median, Verdict
from bench.rounds import Sample
from bench.servers import CEILING, COUNTERSIGN, USUAL, WORKERS

TITLES: Final = {
    "ceiling": "ceiling",
    "usual": "usual pick",
    "countersign": "countersign",
    "workers": "with workers",
}
ENGINE_TITLES: Final = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
NOTHING: Final = "-"
UNSTEADY: Final = 0.20
FORMAT: Final = 1
CAVEATS: Final = (
    "How to read it: wrk sends the next request of a connection only after the answer to the one",
    "before, so a server that stalls is asked less often meanwhile (coordinated omission). wrk",
    "estimates the latencies it missed that way; independent callers may still see worse ones.",
    "wrk shares the cores with the server and the database, so the rates are not those of a server",
    "that has the machine to itself. Compare within one run, not across runs or machines.",
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
    unsteady = _unsteady(cases)
    if unsteady:
        parts += ["", f"Rounds differed by more than {UNSTEADY:.0%} of the median:", *unsteady]
    if findings.verdicts:
        parts += ["", "Targets (SQLite)", *_targets(findings.verdicts)]
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
            "seconds": options.seconds,
            "rounds": options.rounds,
            "usual_server": options.usual_server,
        },
        "machine": asdict(findings.machine),
        "rounds": [asdict(sample) for sample in findings.samples],
        "medians": [
            {
                **asdict(case),
                "of_ceiling": case.ratio(CEILING),
                "times_usual": case.ratio(USUAL),
                "workers_times_one": case.ratio(COUNTERSIGN, own=WORKERS),
            }
            for case in findings.cases
        ],
        "targets": [asdict(verdict) for verdict in findings.verdicts],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=2) + "\n")


def _facts(machine: Machine, options: Options) -> list[str]:
    memory = f", {machine.memory_gib} GiB" if machine.memory_gib else ""
    versions = machine.packages
    shown = ("countersign-service", "granian", "sqlalchemy", "fastapi", options.usual_server)
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
    present = [name for name in CONTENDERS if any(name in case.medians for case in cases)]
    head = ["operation", "conn"]
    for name in present:
        head += [f"{TITLES[name]}/s", "p50 ms", "p99 ms"]
    head += ["of ceiling", "x usual", "workers x one"]
    rows = [head]
    for case in cases:
        row = [case.operation, str(case.connections)]
        for name in present:
            row += _figures(case.medians.get(name))
        row += [_number(case.ratio(CEILING), 2), _number(case.ratio(USUAL), 1)]
        row += [_number(case.ratio(COUNTERSIGN, own=WORKERS), 2)]
        rows.append(row)
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = [_line(row, widths) for row in rows]
    return [lines[0], "-" * len(lines[0]), *lines[1:]]


def _figures(median: Median | None) -> list[str]:
    if median is None:
        return [NOTHING] * 3
    return [_number(median.per_second, 0), _number(median.p50_ms, 2), _number(median.p99_ms, 2)]


def _number(value: float | None, digits: int) -> str:
    return NOTHING if value is None else f"{value:,.{digits}f}"


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    first = row[0].ljust(widths[0])
    rest = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
    return "  ".join([first, *rest])


def _unsteady(cases: Iterable[Case]) -> list[str]:
    return [
        f"  {case.engine} {case.operation} at {case.connections}, {TITLES[name]}: "
        f"{median.spread:.0%}"
        for case in cases
        for name, median in case.medians.items()
        if median.spread > UNSTEADY
    ]


def _targets(verdicts: Iterable[Verdict]) -> list[str]:
    return [
        f"  {'ok   ' if verdict.ok else 'SHORT'}  {verdict.target}: {verdict.found}"
        for verdict in verdicts
    ]
