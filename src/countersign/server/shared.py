"""Memory that the workers of one server share: requests by key, and counters for the metrics.

It is created before the fork, and survives the death of a worker.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from multiprocessing import get_context
from typing import Final, Generic, TypeAlias, TypeVar

import msgspec
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from countersign.server.limits import Arrivals

_GROUPS: Final = 2048
_CELL: Final = struct.Struct("@8sd")
"""A key by its hash, and when its bucket is empty again. The number is written in one store."""
_GROUP: Final = struct.Struct("@" + "8sd" * 8)

_OF_EACH: Final = ("database_waiting", "event_streams", "open_fds", "resident_memory_bytes")
_BOARD_BYTES: Final = 256 * 1024
_HEAD: Final = struct.Struct("@QII")
"""Sequence number, length and checksum of the content."""

_BEATS: Final = struct.Struct("@Q")

_T = TypeVar("_T")

MetricRow: TypeAlias = tuple[str, str, dict[str, str], float]
"""A family, and a sample of it: name, labels, value."""
_encode: Final = msgspec.msgpack.Encoder().encode


class SharedArrivals(Arrivals):
    """The requests of every key at all workers.

    A table of fixed size: in a full group of eight keys, a new key replaces the one whose bucket
    empties soonest.
    """

    def __init__(self) -> None:
        super().__init__()
        self._memory = mmap.mmap(-1, _GROUPS * _GROUP.size)
        # It is held for microseconds, without releasing the interpreter's lock.
        self._lock = get_context("fork").Lock()

    def add(self, key_id: str, now: float, interval: float, most: float) -> float:
        """See `Arrivals`. Without the lock, where its holder has died, a request may be missed."""
        name = blake2b(key_id.encode(), digest_size=8).digest()
        at = int.from_bytes(name, "big") % _GROUPS * _GROUP.size
        locked = self._lock.acquire(timeout=0.05)
        try:
            cells = _GROUP.unpack_from(self._memory, at)
            names, times = cells[::2], cells[1::2]
            known = name in names
            cell = names.index(name) if known else times.index(min(times))
            arrival = max(times[cell] if known else now, now) + interval
            if arrival - now <= most:
                _CELL.pack_into(self._memory, at + cell * _CELL.size, name, arrival)
            return arrival
        finally:
            if locked:
                self._release()

    def recover(self) -> None:
        """After a worker has died: take its lock from it, if it held it."""
        self._lock.acquire(timeout=0.25)
        self._release()

    def _release(self) -> None:
        # It may be free: a worker that was frozen while holding it continues after `recover`
        # released it.
        with suppress(ValueError):
            self._lock.release()


class Boards(Generic[_T]):
    """Rows that one worker writes, and all read: a worker has one board, or several.

    A board has two halves, written in turn: if a worker dies while writing, or is read meanwhile,
    the other half is intact.
    """

    def __init__(self, boards: int, rows: type[list[_T]]) -> None:
        self._memory = mmap.mmap(-1, boards * 2 * _BOARD_BYTES)
        self._boards = boards
        self._decode = msgspec.msgpack.Decoder(rows).decode

    def write(self, board: int, rows: Sequence[_T], of: object = "") -> None:
        """Replace the rows of a board, counted from 0; `of`: whose they are."""
        data = _encode(of) + _encode(rows)
        if len(data) > _BOARD_BYTES - _HEAD.size:
            return
        number = max((n for n, _ in self._halves(board, b"")), default=0) + 1
        at = (2 * board + number % 2) * _BOARD_BYTES
        self._memory[at + _HEAD.size : at + _HEAD.size + len(data)] = data
        _HEAD.pack_into(self._memory, at, number, len(data), zlib.crc32(data))

    def read(self, board: int, of: object = "") -> list[_T]:
        """Its newest rows, if they are theirs."""
        newest = max(self._halves(board, _encode(of)), default=None)
        return [] if newest is None else self._decode(newest[1])

    def all_rows(self, of: object = "") -> Iterator[_T]:
        """Theirs on all boards."""
        for board in range(self._boards):
            yield from self.read(board, of)

    def _halves(self, board: int, beginning: bytes) -> Iterator[tuple[int, bytes]]:
        for half in (2 * board, 2 * board + 1):
            begin = half * _BOARD_BYTES + _HEAD.size
            number, length, checksum = _HEAD.unpack_from(self._memory, begin - _HEAD.size)
            if number and self._memory[begin : begin + len(beginning)] == beginning:
                data = self._memory[begin : begin + min(length, _BOARD_BYTES)]
                if zlib.crc32(data) == checksum:
                    yield number, data[len(beginning) :]


class Pulses:
    """The number of ticks of each worker's event loop."""

    def __init__(self, workers: int) -> None:
        self._memory = mmap.mmap(-1, workers * _BEATS.size)

    def beat(self, worker: int) -> None:
        """Count a tick of a worker, counted from 0."""
        _BEATS.pack_into(self._memory, worker * _BEATS.size, self.of(worker) + 1)

    def of(self, worker: int) -> int:
        """The ticks of a worker; 0: its loop has not begun."""
        beats: int = _BEATS.unpack_from(self._memory, worker * _BEATS.size)[0]
        return beats

    def forget(self, worker: int) -> None:
        """Reset the ticks to 0."""
        _BEATS.pack_into(self._memory, worker * _BEATS.size, 0)


class SummedMetrics(Collector):
    """The metrics of all workers, combined as those of one server.

    The counts of a dead worker stay in the sums: a counter never decreases.
    """

    def __init__(self, own: Collector, boards: Boards[MetricRow], worker: int) -> None:
        self._own = own
        self._boards = boards
        self._worker = worker
        kinds = {family.name: family.type for family in own.collect()}
        self._before = [row for row in boards.read(worker) if kinds.get(row[0]) != "gauge"]

    async def publish(self) -> None:
        """Write what this worker counts on its board."""
        self._write(list(self._own.collect()))

    def collect(self) -> Iterator[Metric]:
        """This worker's current values combined with the last ones of the others."""
        families = list(self._own.collect())
        self._write(families)
        of_family: dict[str, list[MetricRow]] = {family.name: [] for family in families}
        for row in self._boards.all_rows():
            of_family[row[0]].append(row)
        for family in families:
            # Every worker sees the same log; calls and pages wait in each, and each has its memory.
            greatest = family.type == "gauge" and not family.name.endswith(_OF_EACH)
            summed = Metric(family.name, family.documentation, family.type)
            for _, name, labels, value in _folded(of_family[family.name], greatest=greatest):
                summed.add_sample(name, labels, value)
            yield summed

    def _write(self, families: Iterable[Metric]) -> None:
        rows: list[MetricRow] = [
            (family.name, sample.name, dict(sample.labels), sample.value)
            for family in families
            for sample in family.samples
        ]
        self._boards.write(self._worker, list(_folded([*rows, *self._before], greatest=False)))


def _folded(rows: Iterable[MetricRow], *, greatest: bool) -> Iterator[MetricRow]:
    """One row for each name and labels: the sum of the values, or the greatest."""
    found: dict[tuple[str, str, tuple[tuple[str, str], ...]], float] = {}
    for family, name, labels, value in rows:
        key = family, name, tuple(labels.items())
        if key not in found:
            found[key] = value
        else:
            found[key] = max(found[key], value) if greatest else found[key] + value
    return ((family, name, dict(labels), v) for (family, name, labels), v in found.items())
