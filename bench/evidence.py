"""What evidence costs: ``python -m bench.evidence``; ``--help`` lists the options.

Sealing, proofs of small and large logs, verifying, certificates, and the throughput of
acknowledging compared with a composition without evidence. Each figure stands next to what
bounds it.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from sqlalchemy import event
from sqlalchemy.engine import Engine

from bench.client import answers
from bench.load import Load, Measurement, ensure_wrk, measure_warm
from bench.options import LASTING
from bench.plan import OPERATIONS
from bench.processes import Child
from bench.rounds import say
from bench.servers import Installation, install, prepare, serve
from bench.vendor import initials, vendor
from countersign.access.account import create_account
from countersign.acknowledgments import proof
from countersign.acknowledgments.acknowledge import acknowledge
from countersign.bootstrap import SystemClock, initialise, open_deployment
from countersign.config import load_settings
from countersign.db.engine import Purpose, database_url, open_engine
from countersign.dossiers.dossier import dossier
from countersign.dossiers.schemas import DossierQuery
from countersign.log.head_store import open_heads
from countersign.log.sequencer import Sequencer, Unsealed
from countersign.log.tree_sql import inclusion
from countersign.mode import Mode
from countersign_evidence.entry import log_entry
from countersign_evidence.note import Signer
from countersign_evidence.policy import parse_policy
from countersign_evidence.tiles import GrowingTree
from countersign_evidence.tree import leaf_hash
from countersign_evidence.verification import verify_file

BATCH: Final = 10_000
SMALL: Final = 10_000
PROOFS: Final = 200


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure, with its target."""

    name: str
    value: str
    target: str


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.evidence", description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000, help="size of the large log")
    parser.add_argument("--seconds", type=int, default=4, help="length of one load")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("log", "files", "throughput"), action="append")
    options = parser.parse_args()
    chosen = options.only or ["log", "files", "throughput"]
    figures: list[Figure] = []
    with TemporaryDirectory(
        prefix="countersign-bench-", dir=LASTING if LASTING.is_dir() else None
    ) as name:
        folder = Path(name)
        if "log" in chosen:
            figures += _log(folder / "log", options.entries)
        if "files" in chosen:
            figures += asyncio.run(_files(folder / "files"))
        if "throughput" in chosen:
            figures += _throughput(folder, options.seconds, options.rounds)
    width = max(len(figure.name) for figure in figures)
    for figure in figures:
        sys.stdout.write(f"{figure.name:<{width}}  {figure.value:<34}  target {figure.target}\n")


def _settings(folder: Path) -> dict[str, str]:
    return {"COUNTERSIGN_DATA_DIR": str(folder)}


def _log(folder: Path, entries: int) -> Iterator[Figure]:
    """Sealing into one log until it is large, and proofs of it on the way."""
    settings = load_settings(_settings(folder))
    asyncio.run(initialise(settings))
    engine = open_engine(database_url(None, folder), Purpose.WRITE)
    sequencer = Sequencer(SystemClock(), open_heads(settings.log_head_dir))
    with engine.connect() as connection:
        log_id, origin = connection.exec_driver_sql(
            "SELECT id, origin FROM logs WHERE mode = 'live'"
        ).one()
    sequencer.learn(log_id, 1, [Signer.from_seed(origin, bytes(32))])
    yield Figure("tree, hashes alone", f"{_tree_alone(origin):,.0f} entries/s", "ceiling")
    sealed, seconds = 1, 0.0
    small = None
    while sealed < entries:
        rows = [_waiting(sealed + number) for number in range(BATCH)]
        begun = time.perf_counter()
        with engine.begin() as connection:
            left = sequencer.seal_inline(connection, rows)
        seconds += time.perf_counter() - begun
        if left:
            raise SystemExit(str(sequencer.suspended))
        sealed += BATCH
        if small is None and sealed >= SMALL:
            small = _proofs(engine, log_id, sealed)
        if sealed % 1_000_000 < BATCH:
            say(f"{sealed:,} entries, {sealed / seconds:,.0f}/s")
    large = _proofs(engine, log_id, sealed)
    engine.dispose()
    assert small is not None
    yield Figure("sealing", f"{sealed / seconds:,.0f} entries/s", ">= 50,000")
    yield Figure(f"a proof of {SMALL:,}", f"{small[0]:.2f} ms, {small[1]:.0f} reads", "baseline")
    cost = f"{large[0]:.2f} ms, {large[1]:.0f} reads, {large[0] / small[0]:.1f} x"
    yield Figure(f"a proof of {sealed:,}", cost, "<= 10 x")


def _tree_alone(origin: str) -> float:
    digests = [sha256(number.to_bytes(8, "big")).digest() for number in range(BATCH * 5)]
    tree, begun = GrowingTree(), time.perf_counter()
    for digest in digests:
        tree.append(leaf_hash(log_entry(origin, digest)))
    return len(digests) / (time.perf_counter() - begun)


def _waiting(number: int) -> Unsealed:
    return Unsealed(f"ack_{number:026}", Mode.LIVE, sha256(number.to_bytes(8, "big")).digest())


def _proofs(engine: Engine, log_id: int, size: int) -> tuple[float, float]:
    """Median milliseconds of a proof against the newest checkpoint, and stored reads for it."""
    reads = 0

    def count(*_: object) -> None:
        nonlocal reads
        reads += 1

    event.listen(engine, "before_cursor_execute", count)
    times = []
    with engine.connect() as connection:
        for number in range(PROOFS):
            index = number * 7919 * 104729 % size
            begun = time.perf_counter()
            inclusion(connection, log_id, index, size)
            times.append(time.perf_counter() - begun)
    event.remove(engine, "before_cursor_execute", count)
    return median(times) * 1000, reads / PROOFS


async def _files(folder: Path) -> list[Figure]:
    """A proof and a dossier of one acknowledgment."""
    settings = load_settings(_settings(folder))
    await initialise(settings)
    async with open_deployment(settings) as deployment:
        account = await create_account(deployment.access, "bench")
        principal = vendor(account.id)
        notice = await deployment.notices.registry.in_force("ab1263", Mode.TEST)
        lines = len(notice.content.bullets)
        submission = initials(lines, "cs_1")
        made = [
            (await acknowledge(deployment.acknowledgments, principal, notice, submission)).ack_id
            for _ in range(1000)
        ]
        written = await proof.proof(deployment.acknowledgments, principal, made[500])
        room, query = deployment.acknowledgments, DossierQuery()
        made_file = await dossier(room, principal, made[500], query)
        policy = parse_policy(await deployment.log.policy.text(Mode.TEST))
        times = []
        for ack_id in made[:20]:
            begun = time.perf_counter()
            await dossier(room, principal, ack_id, query)
            times.append((time.perf_counter() - begun) * 1000)
    verdict = verify_file(written, policy)
    assert verdict.ok
    checkpoint_only = _milliseconds(
        lambda: policy.check_quorum(policy.check_signature(_note(written)))
    )
    return [
        Figure("checking a signature alone", f"{checkpoint_only:.2f} ms", "floor"),
        Figure(
            "verifying a proof",
            f"{_milliseconds(lambda: verify_file(written, policy)):.2f} ms",
            "<= 5 ms",
        ),
        Figure(
            "verifying a dossier",
            f"{_milliseconds(lambda: verify_file(made_file, policy)):.2f} ms",
            "-",
        ),
        Figure("a dossier with its PDF, after the first", f"{median(times):.0f} ms", "<= 150 ms"),
    ]


def _note(proof: bytes) -> bytes:
    return proof.partition(b"\n\n")[2]


def _milliseconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(200):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return median(times) * 1000


def _throughput(folder: Path, seconds: int, rounds: int) -> list[Figure]:
    """Acknowledging at 32 connections, with and without evidence or receipts, by turns."""
    wrk = ensure_wrk()
    command = (str(Path(sys.executable).parent / "countersign"),)
    start: dict[str, Callable[[Installation, Path], AbstractContextManager[Child]]]
    start = {"all": serve, "no evidence": _serve_bare, "no receipts": _serve_without_receipts}
    found: dict[str, list[Measurement]] = {name: [] for name in start}
    for number in range(rounds):
        for which, measured in found.items():
            place = folder / f"{which}-{number}"
            place.mkdir()
            installed = install(place, None, command)
            log = place / "server.log"
            with start[which](installed, log) as server:
                endpoint, load = prepare(installed), Load(32, seconds)
                one = measure_warm(wrk, endpoint, OPERATIONS["acknowledge"], load, [server])
            measured.append(one)
            say(f"round {number + 1}: {which}: {one.cpu_us:,.0f} us, {one.per_second:,.0f}/s")
    own, bare, unsigned = (median(one.cpu_us for one in found[name]) for name in start)
    rates = {name: median(one.per_second for one in several) for name, several in found.items()}
    return [
        *(Figure(f"acknowledging, {name}", f"{rate:,.0f}/s", "-") for name, rate in rates.items()),
        Figure("processor time of acknowledging", f"{own:,.0f} us", "-"),
        Figure("of it for evidence", f"{1 - bare / own:.0%}", "<= 25 %"),
        Figure("of it for receipts", f"{1 - unsigned / own:.0%}", "<= 10 %"),
    ]


def _serve_without_receipts(installed: Installation, log: Path) -> AbstractContextManager[Child]:
    return _serve_bare(installed, log, "receipts")


@contextmanager
def _serve_bare(installed: Installation, log: Path, *words: str) -> Iterator[Child]:
    command = [sys.executable, "-m", "bench.bare", *words]
    with Child("The bare composition", command, installed.environment, log) as child:
        child.wait_until(lambda: answers(installed.port, installed.key))
        yield child


if __name__ == "__main__":
    main()
