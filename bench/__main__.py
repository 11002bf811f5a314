"""Run the comparison: ``python -m bench``; ``--help`` lists the options."""

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Final

from bench.errors import BenchError
from bench.load import ensure_wrk
from bench.machine import examine
from bench.options import POSTGRES, Options, parse
from bench.plots import draw
from bench.postgres import find_installation
from bench.profiling import profile
from bench.report import Findings, render, save
from bench.results import cases_of, judge
from bench.rounds import Sample, measure_engine, say

INTERRUPTED: Final = 130
TERMINATED: Final = 143


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, report, and return the exit status."""
    options = parse(arguments)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _terminate)
    try:
        sys.stdout.write(_profile(options) if options.profile else _compare(options))
    except BenchError as error:
        say(f"bench: {error}")
        return 1
    except KeyboardInterrupt:
        say("bench: interrupted; everything that was started has been stopped")
        return INTERRUPTED
    return 0


def _compare(options: Options) -> str:
    wrk = ensure_wrk()
    if POSTGRES in options.engines:
        find_installation()
    samples: list[Sample] = []
    with _work_folder(options) as root:
        machine = examine(root, wrk)
        for engine in options.engines:
            folder = root / engine
            folder.mkdir(mode=0o711)
            samples += measure_engine(options, engine, wrk, folder)
    cases = cases_of(samples)
    findings = Findings(options, machine, samples, cases, judge(cases))
    save(findings, options.json_path)
    if options.plots is not None:
        draw(cases, options.plots)
    return render(findings)


def _profile(options: Options) -> str:
    wrk = ensure_wrk()
    with _work_folder(options) as root:
        return profile(options, str(options.profile), wrk, root)


@contextmanager
def _work_folder(options: Options) -> Iterator[Path]:
    """Make a folder for databases and logs that vanishes with the run."""
    with TemporaryDirectory(prefix="countersign-bench-", dir=options.work_dir) as name:
        folder = Path(name)
        # When root, PostgreSQL runs under another account, which must have access to the folders.
        folder.chmod(0o711)
        yield folder


def _terminate(_number: int, _frame: FrameType | None) -> None:
    sys.exit(TERMINATED)


if __name__ == "__main__":
    sys.exit(main())
