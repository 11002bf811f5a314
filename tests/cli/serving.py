"""Starting servers, and waiting for their messages."""

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from tests.support import forked

Process: TypeAlias = subprocess.Popen[bytes] | forked.Forked
WAIT_SECONDS_MAX = 30.0


def wait_until(happened: Callable[[], bool], what: str) -> None:
    """Wait until this is so, or fail by naming it."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not happened():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


@contextlib.contextmanager
def running(
    command: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    directory: Path | None = None,
) -> Iterator[Process]:
    """Run a program until the block ends; its output goes into a file."""
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command,
            env=environment,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
        )
    with _killed(process):
        yield process


@contextlib.contextmanager
def running_module(
    words: Sequence[str], environment: Mapping[str, str], log: Path
) -> Iterator[Process]:
    """Run `python -m WORDS` of this tree, by a fork (see `forked`), for the length of the block."""
    with log.open("wb") as sink:
        process = forked.start(words, environment, stdout=sink, stderr=sink)
    with _killed(process):
        yield process


@contextlib.contextmanager
def _killed(process: Process) -> Iterator[None]:
    try:
        yield
    finally:
        process.kill()
        process.wait()


def wait_for(process: Process, log: Path, words: str) -> str:
    """Wait until the program says this; gives all that it said.

    Without a limit: a program that cannot start ends by itself, and the test has a limit.
    """
    while words not in log.read_text() and process.poll() is None:
        time.sleep(0.02)
    said = log.read_text()
    assert words in said, said
    return said
