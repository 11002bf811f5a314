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
from bench.load import Load, Measurement, measure, measure_warm
from bench.options import POSTGRES, Options
from bench.plan import OPERATIONS
from bench.postgres import postgres
from bench.processes import Child
from bench.servers import CEILING, COUNTERSIGN, FLOOR, WORKERS, Contender


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement and its subject."""

    engine: str
    round: int
    operation: str
    connections: int
    stored: int
    contender: str
    measurement: Measurement


_FILLING: Final = 256
"""Connections, so that batches are large."""
_FILLING_SECONDS_MAX: Final = 30


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
        others: tuple[Child, ...] = ()
        if engine == POSTGRES:
            server = stack.enter_context(postgres(folder))
            others = (server.child,)
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
            constants = [servers.constant(name, folder) for name in (FLOOR, CEILING)]
            contexts = [*constants, usual, *contexts]
        contenders = []
        for context in contexts:
            contender = stack.enter_context(context)
            contender.child.pause()
            # The database server only works for the contender that is measured.
            contender.processes = (contender.child, *others)
            contenders.append(contender)
        yield contenders


def _check(options: Options, contender: Contender) -> None:
    """Check that a contender does the measured work, once for each operation."""
    contender.child.resume()
    for name in options.operations:
        answer = try_once(contender.endpoint, OPERATIONS[name])
        expected = {"notice": "bullets", "status": "status", "acknowledge": "ack_id"}[name]
        if contender.name not in {FLOOR, CEILING} and not answer.get(expected):
            message = f"{contender.name}: {name} answered without {expected}"
            raise BenchError(message)
    contender.child.pause()


def _measure(
    options: Options, engine: str, wrk: Path, contenders: list[Contender]
) -> Iterator[Sample]:
    steps = [
        (stored, number, name, connections, contender)
        for stored in options.stored
        for number in range(1, options.rounds + 1)
        for name in options.operations
        for connections in options.connections
        for contender in contenders
    ]
    begun, held = time.monotonic(), 0
    for done, (stored, number, name, connections, contender) in enumerate(steps):
        if held < stored:
            held = stored
            _fill(wrk, contenders, stored)
        sample = Sample(
            engine=engine,
            round=number,
            operation=name,
            connections=connections,
            stored=stored,
            contender=contender.name,
            measurement=_load(options, wrk, contender, name, connections),
        )
        left = (time.monotonic() - begun) / (done + 1) * (len(steps) - done - 1)
        _say_sample(sample, options.rounds, left)
        yield sample


def _fill(wrk: Path, contenders: list[Contender], stored: int) -> None:
    """Have each Countersign store this many acknowledgments, in the ordinary way."""
    for contender in contenders:
        if contender.name not in {COUNTERSIGN, WORKERS}:
            continue
        contender.child.resume()
        rate = float(stored)  # not known yet: for a second first
        while contender.stored < stored:
            left = stored - contender.stored
            load = Load(_FILLING, min(max(1, round(left / rate)), _FILLING_SECONDS_MAX))
            found = measure(wrk, contender.endpoint, OPERATIONS["acknowledge"], load)
            contender.stored, rate = contender.stored + found.requests, found.per_second
            say(f"{contender.name}: {contender.stored:,} of {stored:,} stored")
        contender.child.pause()


def _load(
    options: Options, wrk: Path, contender: Contender, name: str, connections: int
) -> Measurement:
    """Load one contender while the others are paused."""
    contender.child.resume()
    try:
        load = Load(connections, options.seconds)
        found = measure_warm(wrk, contender.endpoint, OPERATIONS[name], load, contender.processes)
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
        f"{found.cpu_us:>7,.0f} us  loop {found.loop_us:>5,.0f} us  "
        f"p50 {found.p50_ms:>8.2f} ms  p99 {found.p99_ms:>8.2f} ms  "
        f"({left / 60:.1f} min left)"
    )
