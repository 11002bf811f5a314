"""`make fuzz`: look for bytes that a parser fails on, guided by the code that they reach (atheris).

    python -m tests.fuzz.search [--seconds 600] [TARGET ...]

Each target has its own process, so that a crash ends no other. A finding is stored as a file
in `build/fuzz/TARGET`: put it, shortened, into `tests/fuzz/corpus/TARGET`, where a test replays it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import click

FOUND = Path("build/fuzz")


def main() -> int:
    """Fuzz each target in turn; 1 if any of them failed on something."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.fuzz.search")
    parser.add_argument("--seconds", type=int, default=600, help="For each target.")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="All, unless named.")
    wanted = parser.parse_args()
    if wanted.one:
        _search(wanted.targets[0], wanted.seconds)
        return 0
    failed = [name for name in wanted.targets or _names() if _run(name, wanted.seconds)]
    click.echo(f"failed: {', '.join(failed)}" if failed else "no parser failed")
    return bool(failed)


def _names() -> list[str]:
    from tests.fuzz.targets import TARGETS  # noqa: PLC0415 - atheris has to come before it

    return list(TARGETS)


def _run(name: str, seconds: int) -> int:
    click.echo(f"--- {name}: {seconds} s")
    command = (sys.executable, "-m", __spec__.name, "--one", "--seconds", str(seconds), name)
    return subprocess.run(command, check=False).returncode


def _search(name: str, seconds: int) -> None:
    import atheris  # type: ignore[import-untyped] # noqa: PLC0415 - only the search needs it

    with atheris.instrument_imports(include=["countersign", "countersign_evidence"]):
        from tests.fuzz.targets import TARGETS, seeds  # noqa: PLC0415 - now it is watched

    folder = FOUND / name
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(seeds(name)):
        (corpus / f"seed-{number}").write_bytes(data)
    options = [f"-max_total_time={seconds}", f"-artifact_prefix={folder}/", "-max_len=8192"]
    options += ["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1", "-verbosity=1"]
    atheris.Setup([__spec__.name, *options, str(corpus)], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
