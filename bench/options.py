"""The options of a run."""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.plan import OPERATIONS

CONNECTIONS: Final = (1, 32, 256)
SQLITE: Final = "sqlite"
POSTGRES: Final = "postgres"
ENGINES: Final = (SQLITE, POSTGRES)
RESULTS: Final = Path(__file__).parent / "results" / "latest.json"
# On a disk, so that a sync has its real cost; /tmp is memory on many systems.
LASTING: Final = Path("/var/tmp")  # noqa: S108


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure and for how long."""

    engines: tuple[str, ...]
    operations: tuple[str, ...]
    connections: tuple[int, ...]
    stored: tuple[int, ...]
    seconds: int
    rounds: int
    json_path: Path
    plots: Path | None
    work_dir: Path | None
    only_countersign: bool
    usual_server: str
    command: tuple[str, ...]
    workers: int
    profile: str | None


def parse(arguments: Sequence[str] | None = None) -> Options:
    """Read the options of the command line."""
    found = _parser().parse_args(arguments)
    quick: bool = found.quick
    return Options(
        engines=ENGINES if found.engine == "all" else (found.engine,),
        operations=tuple(found.op or OPERATIONS),
        connections=tuple(found.connections or ((32,) if found.profile else CONNECTIONS)),
        stored=tuple(sorted(found.stored or (0,))),
        seconds=found.seconds or (1 if quick else 10 if found.profile else 4),
        rounds=found.rounds or (1 if quick else 3),
        json_path=found.json,
        plots=found.plots,
        work_dir=found.work_dir or (LASTING if LASTING.is_dir() else None),
        only_countersign=found.only_countersign,
        usual_server=found.usual_server,
        command=tuple(shlex.split(found.countersign)),
        workers=found.workers,
        profile=found.profile,
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        message = "must be 1 or more"
        raise argparse.ArgumentTypeError(message)
    return number


def _countersign() -> str:
    installed = Path(sys.executable).parent / "countersign"
    return shlex.quote(str(installed)) if os.access(installed, os.X_OK) else "countersign"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Compare Countersign with its ceiling and with the usual pick, side by side.",
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="one short round, to see that everything works")
    add("--engine", choices=(*ENGINES, "all"), default=SQLITE, help="databases (default: sqlite)")
    add("--op", action="append", choices=tuple(OPERATIONS), help="only this operation; repeatable")
    add(
        "--connections",
        type=_positive,
        action="append",
        help="open connections; repeatable (default: 1, 32 and 256)",
    )
    add(
        "--stored",
        type=_positive,
        action="append",
        help="measure once Countersign has stored so many acknowledgments; repeatable, and a "
        "million take minutes (default: as they come)",
    )
    add("--seconds", type=_positive, help="length of one measurement (default: 4)")
    add("--rounds", type=_positive, help="rounds, of which the medians are taken (default: 3)")
    add("--json", type=Path, default=RESULTS, metavar="FILE", help="where to write the results")
    add("--plots", type=Path, metavar="DIR", help="also draw the processor times, as SVG")
    add(
        "--only-countersign", action="store_true", help="leave the constants and the usual pick out"
    )
    add(
        "--usual-server",
        choices=("granian", "uvicorn"),
        default="granian",
        help="the HTTP server under the usual pick (default: granian)",
    )
    add(
        "--countersign",
        default=_countersign(),
        metavar="COMMAND",
        help="the countersign command (default: the one of this Python environment)",
    )
    add(
        "--workers",
        type=_positive,
        default=1,
        help="also measure a Countersign of this many workers, beside the one of one process",
    )
    add("--work-dir", type=Path, metavar="DIR", help="put the databases on the disk of DIR")
    add(
        "--profile",
        choices=tuple(OPERATIONS),
        metavar="OP",
        help="instead of comparing, show where Countersign's time goes under OP (needs py-spy)",
    )
    return parser
