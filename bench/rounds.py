"""The measurements of a run: round after round, each contender in turn."""

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench import servers
from bench.client import try_once
from bench.errors import BenchError
from bench.load import Load, Measurement, measure_warm
from bench.options import POSTGRES, Options
from bench.plan import OPERATIONS
from bench.postgres import postgres
from bench.servers import CEILING, Contender

# What a server still does after its last answer is done in its own time, not in that of the next.
SETTLE_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement and what was measured."""

    engine: str
    round: int
    operation: str
    connections: int
    contender: str
    measurement: Measurement


def say(text: str) -> None:
    """Report progress."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def measure_engine(options: Options, engine: str, wrk: Path, folder: Path) -> list[Sample]:
    """Measure all contenders on one database."""
    say(f"{engine}: starting the servers")
    with started(options, engine, folder) as contenders:
        for contender in contenders:
            _check(options, contender)
        return list(_measure(options, engine, wrk, contenders))


@contextmanager
def started(options: Options, engine: str, folder: Path) -> Iterator[list[Contender]]:
    """Start every contender that takes part; each is paused at once."""
    with ExitStack() as stack:
        usual_url = own_url = workers_url = None
        if engine == POSTGRES:
            server = stack.enter_context(postgres(folder))
            server.create("countersign")
            server.create("usual_pick")
            usual_url = server.url("usual_pick", "asyncpg")
            own_url = server.url("countersign")
            if options.workers > 1:
                server.create("workers")
                workers_url = server.url("workers")
        contexts = [servers.countersign(folder, own_url, options.command)]
        if options.workers > 1:
            contexts.append(
                servers.countersign(folder, workers_url, options.command, options.workers)
            )
        if not options.only_countersign:
            usual = servers.usual_pick(folder, usual_url, options.usual_server)
            contexts = [servers.ceiling(folder), usual, *contexts]
        contenders = []
        for context in contexts:
            contender = stack.enter_context(context)
            contender.child.pause()
            contenders.append(contender)
        yield contenders


def _check(options: Options, contender: Contender) -> None:
    """See that a contender does what is measured, once for each operation."""
    contender.child.resume()
    for name in options.operations:
        answer = try_once(contender.endpoint, OPERATIONS[name])
        expected = {"notice": "bullets", "status": "status", "acknowledge": "ack_id"}[name]
        if contender.name != CEILING and not answer.get(expected):
            message = f"{contender.name}: {name} answered without {expected}"
            raise BenchError(message)
    contender.child.pause()


def _measure(
    options: Options, engine: str, wrk: Path, contenders: list[Contender]
) -> Iterator[Sample]:
    steps = [
        (number, name, connections, contender)
        for number in range(1, options.rounds + 1)
        for name in options.operations
        for connections in options.connections
        for contender in contenders
    ]
    begun = time.monotonic()
    for done, (number, name, connections, contender) in enumerate(steps):
        sample = Sample(
            engine=engine,
            round=number,
            operation=name,
            connections=connections,
            contender=contender.name,
            measurement=_load(options, wrk, contender, name, connections),
        )
        left = (time.monotonic() - begun) / (done + 1) * (len(steps) - done - 1)
        _say_sample(sample, options.rounds, left)
        yield sample


def _load(
    options: Options, wrk: Path, contender: Contender, name: str, connections: int
) -> Measurement:
    """Load one contender while the others are paused."""
    contender.child.resume()
    try:
        load = Load(connections, options.seconds)
        found = measure_warm(wrk, contender.endpoint, OPERATIONS[name], load)
        time.sleep(SETTLE_SECONDS)
        contender.child.check()
    except BenchError as error:
        message = f"{contender.name}, {connections} connections: {error}"
        said = contender.child.last_words()
        raise BenchError(f"{message}\n{said}" if said else message) from error
    contender.child.pause()
    return found


def _say_sample(sample: Sample, rounds: int, left: float) -> None:
    found = sample.measurement
    say(
        f"{sample.engine} {sample.round}/{rounds}  {sample.operation:<11} "
        f"{sample.connections:>4} conn  {sample.contender:<11} {found.per_second:>9,.0f}/s  "
        f"p50 {found.p50_ms:>8.2f} ms  p99 {found.p99_ms:>8.2f} ms  "
        f"({left / 60:.1f} min left)"
    )
