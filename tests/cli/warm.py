"""Runs commands in forks of one process that has imported everything already.

A command takes a second to start, nearly all of it spent importing; a fork takes a hundredth. Each
still is a process of its own, with its own environment, standard streams and exit status.

Run as a program, this reads one JSON list of commands a line, runs them side by side, and answers
with the list of their exit statuses.
"""

import contextlib
import importlib
import io
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypedDict


class Order(TypedDict):
    """One command to run; its standard streams are files."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    directory: str
    streams: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Command:
    """`countersign ARGUMENTS` in an environment."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    typed: str = ""
    directory: Path = Path()


class Warm:
    """The process that commands are forked from."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, *commands: Command) -> list[subprocess.CompletedProcess[str]]:
        """Run commands at the same time, each to its end."""
        with tempfile.TemporaryDirectory() as folder:
            orders: list[Order] = []
            for number, command in enumerate(commands):
                streams = [Path(folder, f"{number}.{part}") for part in ("in", "out", "err")]
                streams[0].write_text(command.typed, encoding="utf-8")
                orders.append(
                    {
                        "arguments": command.arguments,
                        "environment": command.environment,
                        "directory": str(command.directory.resolve()),
                        "streams": [str(stream) for stream in streams],
                    }
                )
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(json.dumps(orders) + "\n")
            self._process.stdin.flush()
            statuses = json.loads(self._process.stdout.readline())
            return [
                subprocess.CompletedProcess(
                    ["countersign", *order["arguments"]],
                    status,
                    *(Path(s).read_text(encoding="utf-8") for s in order["streams"][1:]),
                )
                for order, status in zip(orders, statuses, strict=True)
            ]


@contextlib.contextmanager
def warm_process() -> Iterator[Warm]:
    """Run the process for the length of the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    with process:
        yield Warm(process)


def main() -> None:
    """Fork a process for each command, until standard input ends."""
    for name in ("countersign.cli", "countersign.http.server", "alembic.command", "uvloop"):
        importlib.import_module(name)

    for line in sys.stdin:
        children = []
        for order in json.loads(line):
            child = os.fork()
            if child == 0:
                _become(order)
            children.append(child)
        statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        sys.stdout.write(json.dumps(statuses) + "\n")
        sys.stdout.flush()


def _become(order: Order) -> NoReturn:
    """Be the command from here on."""
    from countersign.cli import main as command  # noqa: PLC0415 - imported already, see above

    status = 1
    try:
        for number, stream in enumerate(order["streams"]):
            mode = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT
            os.dup2(os.open(stream, mode), number)
        sys.stdin, sys.stdout, sys.stderr = (
            io.TextIOWrapper(open(number, mode, closefd=False), encoding="utf-8")  # noqa: SIM115 - a descriptor
            for number, mode in enumerate(("rb", "wb", "wb"))
        )
        os.chdir(order["directory"])
        os.environ.clear()
        os.environ.update(order["environment"])
        command(list(order["arguments"]), prog_name="countersign")
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:  # noqa: BLE001 - as the interpreter itself would tell it
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
