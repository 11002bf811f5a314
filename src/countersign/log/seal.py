"""Keeping the logs going: what waits gets sealed, and nothing leaves before it is kept outside."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

import structlog

from countersign.errors import EvidencePending, HeadUnavailable, NotFound, StorageUnavailable
from countersign.evidence.checkpoint import parse_checkpoint
from countersign.evidence.errors import EvidenceError
from countersign.evidence.note import Verifier, open_note, parse_note
from countersign.evidence.trust import Policy
from countersign.ids import made_at_ms
from countersign.instant import from_ms, from_ns
from countersign.log.keys import LogKeys
from countersign.log.model import WITNESS, Anchor, Log, StoredCheckpoint
from countersign.log.record import Sealed
from countersign.loops import forever
from countersign.mode import Mode
from countersign.ports import Clock, HeadStore, LogSequencer, LogStore
from countersign.shared_question import SharedQuestion

PERIOD_SECONDS: Final = 0.25
"""How long a record waits for its entry at most, where it is not sealed in passing."""
_KEYS_SECONDS: Final = 60.0
_RETRY_SECONDS: Final = 2
_POLL_SECONDS: Final = 0.05

_log: Final = structlog.get_logger("countersign.sealing")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState:
    """How a log is doing. `suspended` says why nothing is sealed; None: it goes on."""

    log: Log
    suspended: str | None
    waiting: int
    oldest_at: datetime | None


class Released(NamedTuple):
    """A checkpoint that has left, or may: the id of its log, its size, and the signed note."""

    log_id: int
    size: int
    note: bytes


class SealLog:
    """Seals what is queued, and publishes checkpoints."""

    def __init__(
        self,
        store: LogStore,
        sequencer: LogSequencer,
        heads: HeadStore,
        keys: LogKeys,
        clock: Clock,
    ) -> None:
        self._store = store
        self._sequencer = sequencer
        self._heads = heads
        self._keys = keys
        self._clock = clock
        self._keys_read_at = clock.monotonic()
        self._published: dict[Mode, Released] = {}
        self._unkept: dict[Mode, str] = {}
        self._lost: dict[Mode, int] = {}
        self._cosigned: dict[int, StoredCheckpoint | None] = {}
        self._publishing = asyncio.Lock()
        self._current: dict[Mode, Log] = {}
        self._gauges: dict[Mode, tuple[int, int]] = {}
        self._sealed_soon = SharedQuestion(store.sealed, _POLL_SECONDS)

    @property
    def suspended(self) -> Mapping[Mode, str]:
        """Why the records of a mode are not sealed at the moment."""
        return self._sequencer.suspended

    @property
    def gauges(self) -> Mapping[Mode, tuple[int, int]]:
        """Of each mode, as last seen: entries in the newest log, and records that wait."""
        return self._gauges

    async def current(self, *, anew: bool = False) -> dict[Mode, Log]:
        """The newest log of each mode; `size` and `root` may be from a while ago."""
        if anew or not self._current:
            self._current = {log.mode: log for log in await self._store.logs()}
        return self._current

    async def log(self, mode: Mode, epoch: int) -> Log | None:
        """One log, of whichever epoch."""
        return next(
            (log for log in await self._store.logs() if (log.mode, log.epoch) == (mode, epoch)),
            None,
        )

    async def settle(self) -> int:
        """Seal all that is queued, as far as sealing is possible; gives how many records."""
        total = 0
        for mode in Mode:
            while sealed := await self._store.seal_queued(mode):
                total += sealed
            if self._sequencer.unknown_keys:
                await self._keys.load()
                await self.current(anew=True)
                while sealed := await self._store.seal_queued(mode):
                    total += sealed
        return total

    async def states(self) -> Sequence[LogState]:
        """How the newest log of each mode is doing."""
        queues = {queue.mode: queue for queue in await self._store.queues()}
        return [
            LogState(
                log=log,
                suspended=self._sequencer.suspended.get(mode),
                waiting=queues[mode].waiting if mode in queues else 0,
                oldest_at=_made_at(queues[mode].oldest) if mode in queues else None,
            )
            for mode, log in (await self.current(anew=True)).items()
        ]

    async def release(self, log: Log, checkpoint: StoredCheckpoint) -> bytes:
        """The signed note, once it is certain that a restored database would be noticed.

        Raises:
            EvidencePending: the checkpoint cannot be kept outside the database, or the one that
                is kept there says that sealing must not go on.
        """
        current = (await self.current()).get(log.mode)
        if current is None or log.epoch > current.epoch:
            current = (await self.current(anew=True))[log.mode]
        if log.id != current.id:
            return checkpoint.note  # a log of the past: its head moves no more
        if not self._has_left(log, checkpoint):
            async with self._publishing:
                try:
                    await self._keep(log, checkpoint)
                except HeadUnavailable as error:
                    self._sequencer.check_again(log.mode)
                    if self._unkept.get(log.mode) != error.message:
                        _log.error("head_unavailable", mode=log.mode.value, reason=error.message)
                    self._unkept[log.mode] = error.message
                    raise EvidencePending(retry_after=_RETRY_SECONDS) from error
                self._unkept.pop(log.mode, None)
        return checkpoint.note

    def _has_left(self, log: Log, checkpoint: StoredCheckpoint) -> bool:
        known = self._published.get(log.mode)
        return known is not None and (known.log_id, known.size) >= (log.id, checkpoint.size)

    async def _keep(self, log: Log, checkpoint: StoredCheckpoint) -> None:
        """See to it that this checkpoint, or one after it, is kept outside the database.

        What is kept there is replaced only while the database agrees with it and sealing goes on:
        it is all that tells a restored database from a whole one.
        """
        mode = log.mode
        while True:
            kept = await asyncio.to_thread(self._heads.read, mode)
            guarded = await self._store.guard(mode, kept)
            if guarded.log_id != log.id:
                await self.current(anew=True)
                return  # a new epoch has begun meanwhile
            self._lost.pop(mode, None)
            if guarded.refusal is not None:
                self._sequencer.check_again(mode)
                self._lost[mode] = log.id
            if kept is not None and _covers(kept, log, checkpoint):
                break
            if guarded.refusal or guarded.restored or mode in self._sequencer.suspended:
                raise EvidencePending(retry_after=_RETRY_SECONDS)
            if kept is None and checkpoint.size > 0:
                _log.warning("head_adopted", log=log.origin, size=checkpoint.size)
            if await asyncio.to_thread(self._heads.advance, mode, checkpoint.note, kept):
                break
        if not self._has_left(log, checkpoint):
            self._published[mode] = Released(log.id, checkpoint.size, checkpoint.note)

    async def publish(self) -> None:
        """Release the newest checkpoint of each mode whose sealing is not suspended."""
        for mode, log in (await self.current()).items():
            newest = await self._store.latest(log.id)
            if newest is not None and mode not in self._sequencer.suspended:
                with suppress(EvidencePending):  # it was told already; the other mode goes on
                    await self.release(log, newest)

    async def sealed(self, record_id: str, seconds: float) -> tuple[int, Sealed]:
        """Where the log holds a record; waits for it up to so many seconds.

        Raises:
            EvidencePending: it has no entry yet.
        """
        deadline = self._clock.monotonic() + seconds
        found = (await self._store.sealed([record_id])).get(record_id)
        while found is None:
            if self._clock.monotonic() >= deadline:
                raise EvidencePending(retry_after=_RETRY_SECONDS)
            found = await self._sealed_soon(record_id)
        return found

    async def newest(self, log: Log, quorum: Policy | None) -> bytes:
        """The checkpoint of a log for everyone, with its cosignatures.

        The newest one that meets the quorum; where none is asked for, or none meets it yet, the
        newest one that was released.

        Raises:
            NotFound, StorageUnavailable: as for `released`.
        """
        found: StoredCheckpoint | Released | None = None
        if quorum is not None:
            found = await self.cosigned(log.id, quorum)
        if found is None:
            found = await self.released(log)
        return cosigned(found.note, await self._store.anchors(log.id, found.size))

    async def cosigned(self, log_id: int, quorum: Policy) -> StoredCheckpoint | None:
        """The newest checkpoint of a log that meets the quorum; all are looked through once."""
        known = log_id in self._cosigned
        found = await self._store.cosigned(log_id, quorum, recent=known)
        self._cosigned[log_id] = found = found or self._cosigned.get(log_id)
        return found

    async def released(self, log: Log) -> Released:
        """The newest checkpoint of a log, or else the last one that has left.

        Where the database has lost that one, it is what is kept outside.

        Raises:
            NotFound: it has none.
            StorageUnavailable: none can be released, and which was the last cannot be read.
        """
        newest = await self._store.latest(log.id)
        if newest is None:
            raise NotFound
        try:
            found = Released(log.id, newest.size, await self.release(log, newest))
        except EvidencePending:
            known = self._published.get(log.mode)
            return known if known and known.log_id == log.id else await self._kept(log)
        if self._lost.get(log.mode) == log.id:
            with suppress(StorageUnavailable):
                return await self._kept(log)
        return found

    async def tiles_up_to(self, log: Log) -> int:
        """The size of the tree whose tiles may leave: of what was released, as far as it is there.

        What is beyond it could still be lost with the database, and caches keep a tile for a year.

        Raises:
            NotFound: the log has no checkpoint.
            StorageUnavailable: the database does not go with what was published.
        """
        released = await self.released(log)
        if released.size >= log.size:
            return log.size
        held = await self._store.checkpoint(log.id, released.size)
        if held is None or held.note != released.note:
            msg = "The entries of the log do not match its last published checkpoint at the moment."
            raise StorageUnavailable(msg, retry_after=_RETRY_SECONDS)
        return released.size

    async def _kept(self, log: Log) -> Released:
        """The checkpoint that is kept outside as the last one, if it is signed by this log."""
        keys = [Verifier.parse(key.vkey) for key in await self._store.keys(log.id)]
        msg = "The last published checkpoint cannot be read at the moment."
        try:
            note = await asyncio.to_thread(self._heads.read, log.mode) or b""
            checkpoint = parse_checkpoint(open_note(note, keys)[0])
        except (HeadUnavailable, EvidenceError) as error:
            raise StorageUnavailable(msg, retry_after=_RETRY_SECONDS) from error
        if checkpoint.origin != log.origin:
            raise StorageUnavailable(msg, retry_after=_RETRY_SECONDS)
        return Released(log.id, checkpoint.size, note)

    async def run(self) -> None:
        """Seal and publish, until cancelled."""
        await forever("sealing", self._seal, PERIOD_SECONDS)

    async def _seal(self) -> None:
        if self._clock.monotonic() - self._keys_read_at > _KEYS_SECONDS:
            await self._keys.load()
            self._keys_read_at = self._clock.monotonic()
        await self.settle()
        self._gauges = {
            state.log.mode: (state.log.size, state.waiting) for state in await self.states()
        }
        await self.publish()

    def now(self) -> datetime:
        """The service's time."""
        return from_ns(self._clock.time_ns())


def cosigned(note: bytes, anchors: Sequence[Anchor]) -> bytes:
    """A signed checkpoint with the cosignatures among what others say of it."""
    return note + b"".join(anchor.body for anchor in anchors if anchor.kind == WITNESS)


def _covers(kept: bytes, log: Log, checkpoint: StoredCheckpoint) -> bool:
    """Whether the kept checkpoint is this one, or one of the same log after it."""
    old = parse_checkpoint(parse_note(kept).text)
    if old.origin != log.origin or old.size < checkpoint.size:
        return False
    return old.size > checkpoint.size or old.root == checkpoint.root


def _made_at(record_id: str | None) -> datetime | None:
    return None if record_id is None else from_ms(made_at_ms(record_id))
