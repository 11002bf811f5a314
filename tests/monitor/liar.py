"""A log that can lie: a small one in memory, served over real HTTP on the loopback.

It shares with the service only the formats; its tiles are computed here from the leaves.
"""

from __future__ import annotations

import asyncio
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from countersign_evidence.canonical import canonical_json
from countersign_evidence.entry import log_entry
from countersign_evidence.note import Checkpoint, Signer, sign_checkpoint
from countersign_evidence.proof import Proof, format_proof
from countersign_evidence.tiles import entry_bundle, parse_tile_path
from countersign_evidence.tree import Node, inclusion_path
from tests.support.merkle import root_hash

HOST: Final = "log.example"
PATH: Final = "v1/log/live"
SEED: Final = bytes(range(32))
OTHER_SEED: Final = bytes(range(1, 33))

_ONE_AT_A_TIME: Final = threading.Lock()

Act = Callable[["Handler"], bytes | None]
"""Answers a request itself and gives None, or gives the body."""


def entry(number: int, salt: str = "") -> bytes:
    """An entry of the right form."""
    digest = sha256(f"{salt}{number}".encode()).digest()
    return f"{HOST}/entry/v1\n{b64encode(digest).decode()}\n".encode()


def leaf(data: bytes) -> bytes:
    """The hash of a leaf."""
    return sha256(b"\x00" + data).digest()


@dataclass(kw_only=True)
class Log:
    """One log, with all that it may serve."""

    epoch: int = 1
    seed: bytes = SEED
    entries: list[bytes] = field(default_factory=list)
    record: bytes | None = None
    keys: bytes | None = None
    size: int | None = None
    """The size of the checkpoint that is served; None: all entries."""
    note: bytes | None = None
    """Served in place of the checkpoint."""
    lies: dict[str, bytes | Act | None] = field(default_factory=dict)
    """Replacements of other resources; None: not found."""
    asked: list[str] = field(default_factory=list)
    _leaves: list[bytes] = field(default_factory=list)
    _roots: dict[tuple[int, int], bytes] = field(default_factory=dict)
    _heads: dict[int, bytes] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        return f"{HOST}/{PATH}/{self.epoch}"

    @property
    def signer(self) -> Signer:
        return Signer.from_seed(self.origin, self.seed)

    @property
    def policy(self) -> str:
        return f"log {self.signer.verifier.vkey}\n"

    def leaves(self) -> Sequence[bytes]:
        with _ONE_AT_A_TIME:
            self._leaves += [leaf(one) for one in self.entries[len(self._leaves) :]]
        return self._leaves

    def copy(self) -> Log:
        """The same log, to lie with."""
        kept = {name: value.copy() for name, value in vars(self).items() if hasattr(value, "copy")}
        return replace(self, **kept)

    def grow(self, count: int, salt: str = "") -> None:
        """Append entries."""
        start = len(self.entries)
        self.entries += [entry(n, salt) for n in range(start, start + count)]

    def rewrite(self, index: int, data: bytes | None = None) -> None:
        """Replace one entry by another."""
        self.entries[index] = entry(index, "rewritten") if data is None else data
        for kept in (self._leaves, self._roots, self._heads):
            kept.clear()

    def checkpoint(self, size: int | None = None) -> Checkpoint:
        """The head of the tree of this size."""
        size = len(self.entries) if size is None else size
        if size not in self._heads:
            self._heads[size] = root_hash(self.leaves()[:size])
        return Checkpoint(self.origin, size, self._heads[size])

    def signed(self, size: int | None = None) -> bytes:
        """The same, signed."""
        return sign_checkpoint(self.checkpoint(size), [self.signer])

    def resource(self, path: str) -> bytes | None:
        """An honest log's resource at this path."""
        if path.startswith("tile/"):
            return self._tile(path.removeprefix("tile/"))
        if path == "checkpoint":
            return self.note or self.signed(self.size)
        return {"epoch": self.record, "keys": self.keys}.get(path)

    def _tile(self, path: str) -> bytes | None:
        level, index, width = parse_tile_path(path)
        start = index * 256
        if level == "entries":
            found = self.entries[start : start + width]
            return entry_bundle(found) if len(found) == width else None
        if (start + width) * 256**level > len(self.entries):
            return None
        return b"".join(self._root(level, n) for n in range(start, start + width))

    def _root(self, level: int, index: int) -> bytes:
        """The root of a complete subtree; of the large ones it is kept."""
        span = 256**level
        leaves = self.leaves()[index * span : (index + 1) * span]
        if level == 0:
            return leaves[0]
        if (level, index) not in self._roots:
            self._roots[level, index] = root_hash(leaves)
        return self._roots[level, index]


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """A monitor that was killed has closed its connections."""


class Handler(BaseHTTPRequestHandler):
    """Answers for the logs of the server."""

    protocol_version = "HTTP/1.1"
    logs: dict[int, Log]

    def do_GET(self) -> None:
        """Serve the log's data, or the lie."""
        parts = self.path.removeprefix(f"/{PATH}/").split("/", 1)
        log = self.logs.get(int(parts[0])) if parts[0].isdigit() else None
        if log is None or len(parts) < 2:
            self.answer(404)
            return
        log.asked.append(parts[1])
        lied = parts[1] in log.lies
        body = log.lies[parts[1]] if lied else log.resource(parts[1])
        if callable(body):
            body = body(self)
            if body is None:
                return
        if body is None:
            self.answer(404)
        else:
            self.answer(200, body)

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        """Respond."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Access-Control-Allow-Origin", "*")
        self.end_headers()
        with suppress(OSError):  # the client has read enough
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@dataclass(frozen=True)
class Served:
    """Where the logs are."""

    url: str
    logs: dict[int, Log]

    def at(self, epoch: int = 1) -> str:
        """The address of one log."""
        return f"{self.url}/{PATH}/{epoch}"


@contextmanager
def served(*logs: Log) -> Iterator[Served]:
    """Serve these logs."""
    found = {log.epoch: log for log in logs}
    handler = type("_Handler", (Handler,), {"logs": found})
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield Served(f"http://127.0.0.1:{server.server_port}", found)
    finally:
        server.shutdown()
        server.server_close()


class StoppedClock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.seconds = 1_800_000_000

    def time_ns(self) -> int:
        """Unix time in nanoseconds."""
        return self.seconds * 1_000_000_000

    def monotonic(self) -> float:
        """Seconds."""
        return float(self.seconds)

    async def pause(self, seconds: float) -> None:
        """Let so many seconds pass, at once."""
        self.seconds += int(seconds)
        await asyncio.sleep(0)


def log_with_record() -> tuple[Log, bytes]:
    """A log of ten entries, where this record is the one with index 5."""
    log = Log()
    log.grow(10)
    identifier = "rec_01m7xdxbmvex7t29vh2x05yyyq"
    said = {"_sd": [], "id": identifier, "mode": "live", "type": "notice_event", "v": 1}
    record = canonical_json(said)
    log.rewrite(5, log_entry(log.origin, sha256(record).digest()))
    return log, record


def proof_of(log: Log, record: bytes, index: int) -> bytes:
    """The proof of a record in the log as it is now."""

    def read(nodes: Sequence[Node]) -> list[bytes]:
        spans = [(node.index << node.level, node.index + 1 << node.level) for node in nodes]
        return [root_hash(log.leaves()[start:end]) for start, end in spans]

    path = inclusion_path(index, len(log.entries), read)
    return format_proof(Proof(record, index, tuple(path), log.signed()))
