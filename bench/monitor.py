"""How fast a log is checked from outside: ``python -m bench.monitor [--entries N] [--json]``.

A log stands in the memory of another process behind an HTTP server on the loopback; a monitor with
nothing in its directory reads and checks all of it. For comparison: only hashing the same entries
into the same tree, from memory, without HTTP and without comparing anything.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import sys
import time
from argparse import ArgumentParser
from datetime import timedelta
from hashlib import sha256
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from countersign_evidence.checkpoint import Checkpoint
from countersign_evidence.entry import entries_of
from countersign_evidence.monitor.round import Watch
from countersign_evidence.monitor.source import open_source
from countersign_evidence.monitor.state import State
from countersign_evidence.monitor.watch import LookStatus, Patience, look
from countersign_evidence.note import Signer, sign_checkpoint
from countersign_evidence.policy import parse_policy
from countersign_evidence.tiles import (
    WIDTH,
    GrowingTree,
    entry_bundle,
    leaves_of,
    tile_path,
    tiles_at,
)
from countersign_evidence.tree import leaf_hash

HOST: Final = "log.example"
ORIGIN: Final = f"{HOST}/v1/log/live/1"
SIGNER: Final = Signer.from_seed(ORIGIN, bytes(32))


def resources(count: int) -> dict[str, bytes]:
    """Everything that a log of so many entries publishes, by path."""
    entries = entries_of(ORIGIN, (sha256(b"%d" % n).digest() for n in range(count)))
    tree, found = GrowingTree(), dict[str, bytes]()
    for entry in entries:
        tree.append(leaf_hash(entry))
    for tile in tree.take_tiles():
        found[f"/tile/{tile_path(tile.level, tile.index)}"] = tile.hashes
    for edge in tiles_at(count):
        found[f"/tile/{edge.path}"] = b"".join(tree.edge[edge.level])
    for start in range(0, count, WIDTH):
        part = entries[start : start + WIDTH]
        found[f"/tile/{tile_path('entries', start // WIDTH, len(part))}"] = entry_bundle(part)
    found["/checkpoint"] = sign_checkpoint(Checkpoint(ORIGIN, count, tree.root()), [SIGNER])
    return found


def serve(found: dict[str, bytes], ready: Connection) -> None:
    """Answer requests until the process is ended."""
    responses = {
        path.encode(): b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        for path, body in found.items()
    }

    class Log(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            self.transport, self.pending = transport, b""

        def data_received(self, data: bytes) -> None:
            *requests, self.pending = (self.pending + data).split(b"\r\n\r\n")
            for request in requests:
                path = request.split(b" ", 2)[1]
                none = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
                self.transport.write(responses.get(path, none))

    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(Log, "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


async def monitored(port: int, folder: Path) -> float:
    """Seconds of a look at all of the log by a monitor that knows nothing."""
    watch = Watch(
        policy=parse_policy(f"log {SIGNER.verifier.vkey}\nquorum none\n".encode()),
        clock=time.time_ns,
        state=State(folder),
        progress=lambda *_: None,
    )
    started = time.perf_counter()
    async with open_source(f"http://127.0.0.1:{port}") as source:
        seen = await look(watch, source, Patience(silence=timedelta(days=1)))
    assert seen.status is LookStatus.CONSISTENT, seen.message
    return time.perf_counter() - started


def hashed(found: dict[str, bytes], count: int) -> float:
    """Seconds of hashing the same entries into the same tree."""
    tree = GrowingTree()
    started = time.perf_counter()
    for start in range(0, count, WIDTH):
        width = min(WIDTH, count - start)
        path = tile_path("entries", start // WIDTH, width)
        for leaf in leaves_of(found[f"/tile/{path}"], HOST, width):
            tree.append(leaf)
    tree.root()
    return time.perf_counter() - started


def main() -> int:
    """Measure, and print the figures."""
    parser = ArgumentParser(prog="python -m bench.monitor", description=__doc__)
    parser.add_argument("--entries", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = resources(options.entries)
    mine, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(found, theirs), daemon=True)
    server.start()
    port = mine.recv()
    samples = []
    try:
        for _ in range(options.rounds):
            with TemporaryDirectory() as folder:
                samples.append(asyncio.run(monitored(port, Path(folder))))
    finally:
        server.terminate()
        server.join()
    bare = median(hashed(found, options.entries) for _ in range(options.rounds))
    taken = median(samples)
    figures = {
        "entries": options.entries,
        "entries_per_second": round(options.entries / taken),
        "only_hashing_per_second": round(options.entries / bare),
        "times_as_long_as_hashing": round(taken / bare, 2),
    }
    sys.stdout.write(
        json.dumps(figures) + "\n"
        if options.json
        else "".join(f"{name.replace('_', ' ')}: {value:,}\n" for name, value in figures.items())
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
