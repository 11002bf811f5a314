"""Seal waiting records, and publish no checkpoint before it is stored outside the database."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple

import structlog

from countersign.base.db.database import Database
from countersign.base.deadline import within_deadline
from countersign.base.errors import EvidencePending, HeadUnavailable, NotFound, StorageUnavailable
from countersign.base.loops import forever
from countersign.base.snapshot import SharedQuestion
from countersign.base.values import Clock, Mode
from countersign.core.log import logs_sql, tree_sql
from countersign.core.log.fork_guard import guard, holds
from countersign.core.log.head_files import Heads
from countersign.core.log.keys import LogKeys
from countersign.core.log.model import Anchor, Log, LogState, StoredCheckpoint, cosignatures
from countersign.core.log.sequencer import CHECKPOINT_MS, SLICE_SECONDS, Sequencer
from countersign_evidence.errors import EvidenceError
from countersign_evidence.note import Verifier, checkpoint_of, open_note, parse_checkpoint
from countersign_evidence.policy import Policy

PERIOD_SECONDS: Final = 0.25
"""How long a record waits for its entry at most while a caller waits for that, where it is not
sealed in its own transaction. Otherwise a log gets its next checkpoint after `CHECKPOINT_MS`."""
_IDLE_SECONDS: Final = 5.0
"""Pause for an idle log, or one whose acts seal and sign: bounded, since clock, keys, queue and the
checkpoint outside the database can change without it."""
_REST_SECONDS: Final = 0.9
"""After a look that found nothing: until the next second, unless a caller waits."""
_NEVER: Final[tuple[Sequence[logs_sql.Standing], float]] = (), float("-inf")
_KEYS_SECONDS: Final = 55.0
"""How long keys are cached: a minute, including a late turn."""
_RETRY_SECONDS: Final = 2
_POLL_SECONDS: Final = 0.05

_log: Final = structlog.get_logger("countersign.sealing")


class Released(NamedTuple):
    """A checkpoint that is or may be published: its log's id, its size, and the signed note."""

    log_id: int
    size: int
    note: bytes


class SealLog:
    """Seals what is queued, and publishes checkpoints."""

    def __init__(
        self, database: Database, sequencer: Sequencer, heads: Heads, keys: LogKeys, clock: Clock
    ) -> None:
        self._database = database
        self._sequencer = sequencer
        self.suspended: Mapping[Mode, str] = sequencer.suspended
        """Why the records of a mode are not sealed at the moment."""
        self._heads = heads
        self._keys = keys
        self._clock = clock
        self._pause = partial(asyncio.sleep, SLICE_SECONDS)
        """After each slice of sealing where more waits, as long as the slice took."""
        self._keys_read_at = self._turned_at = self._rests_until = clock.monotonic()
        self._published: dict[Mode, Released] = {}
        self._unkept: dict[Mode, str] = {}
        self._lost: dict[Mode, int] = {}
        self._cosigned: dict[int, StoredCheckpoint | None] = {}
        self._publishing = asyncio.Lock()
        self._covered: dict[int, int] = {}
        """The size of each log that would survive a loss of the database server."""
        self._current: dict[Mode, Log] = {}
        self._wanted = False
        """Whether a caller waits for a record that is not sealed yet."""
        self._still = _NEVER
        """The state of the logs when nothing was left to do, and when it expires."""
        self.gauges: Mapping[Mode, tuple[int, int]] = {}
        """For each mode, as last seen: entries in the newest log, and waiting records."""
        self._sealed_soon = SharedQuestion(self._places, _POLL_SECONDS)

    @property
    def heads_at(self) -> Mapping[Mode, datetime]:
        """When the newest checkpoint of each mode was made, as last seen."""
        return {mode: log.at for mode, log in self._current.items()}

    async def current(self, *, refresh: bool = False) -> dict[Mode, Log]:
        """The newest log of each mode; `size` and `root` may be from a while ago."""
        if refresh or not self._current:
            self._current = await self._database.read(logs_sql.newest_logs)
        return self._current

    async def log(self, mode: Mode, epoch: int) -> Log | None:
        """One log, of whichever epoch."""
        logs, wanted = await self._database.read(logs_sql.all_logs), (mode, epoch)
        return next((log for log in logs if (log.mode, log.epoch) == wanted), None)

    async def settle(self, *, sign: bool = True) -> int:
        """Seal all that is queued, as far as sealing is possible; returns how many records.

        Without `sign`, no checkpoint is made before the last one is old enough.
        """
        total = 0
        for mode in Mode:
            total += await self._settle(mode, sign=sign)
            if self._sequencer.unknown_keys:
                await self._keys.load()
                await self.current(refresh=True)
                total += await self._settle(mode, sign=sign)
        return total

    async def _settle(self, mode: Mode, *, sign: bool) -> int:
        total, batch, seal = 0, self._sequencer.batch, self._sequencer.seal_queue
        while sealed := await self._database.sequence(seal, mode, sign=sign):
            total += sealed
            # Its commit was confirmed, also by the standby where there is one.
            self._covered.update([done] if (done := self._sequencer.sealed(mode)) else [])
            size, waiting = self.gauges.get(mode, (0, 0))
            self.gauges = {**self.gauges, mode: (size + sealed, max(waiting - sealed, 0))}
            if sealed >= batch:
                await self._pause()  # more may wait: acts have their turn first
            batch = self._sequencer.batch
        return total

    async def states(self) -> Sequence[LogState]:
        """The state of the newest log of each mode."""
        queues = await self._database.read(logs_sql.queues)
        return [
            LogState(log, self.suspended.get(mode), *queues.get(mode, (0, None)))
            for mode, log in (await self.current(refresh=True)).items()
        ]

    async def release(self, log: Log, checkpoint: StoredCheckpoint) -> bytes:
        """The signed note, once it is certain that a restored database would be noticed.

        EvidencePending if the checkpoint cannot be stored outside the database, or the one stored
        there forbids further sealing.
        """
        current = (await self.current()).get(log.mode)
        if current is None or log.epoch > current.epoch:
            current = (await self.current(refresh=True))[log.mode]
        if log.id != current.id:
            return checkpoint.note  # a log of the past: its head moves no more
        if not self._has_left(log, checkpoint.size):
            await within_deadline(self._publishing.acquire())
            try:
                await self._keep(log, checkpoint)
                self._unkept.pop(log.mode, None)
            except HeadUnavailable as error:
                self._sequencer.check_again(log.mode)
                if self._unkept.get(log.mode) != error.message:
                    _log.error("head_unavailable", mode=log.mode.value, reason=error.message)
                self._unkept[log.mode] = error.message
                raise EvidencePending(retry_after=_RETRY_SECONDS) from error
            finally:
                self._publishing.release()
        return checkpoint.note

    def _has_left(self, log: Log, size: int) -> bool:
        known = self._published.get(log.mode)
        return known is not None and (known.log_id, known.size) >= (log.id, size)

    async def _keep(self, log: Log, checkpoint: StoredCheckpoint) -> None:
        """Make sure that this checkpoint, or a later one, is kept outside the database.

        The stored head is replaced only while the database agrees with it and sealing runs: nothing
        else detects a restored database.
        """
        mode = log.mode
        while True:
            kept, place = await asyncio.to_thread(self._heads.kept, mode)
            log_id, refusal, is_held = await self._database.read(guard, mode, kept, place)
            if log_id != log.id:
                await self.current(refresh=True)
                return  # a new epoch has begun since
            self._lost.pop(mode, None)
            if refusal is not None or is_held:
                self._sequencer.check_again(mode)
            if refusal is not None:
                self._lost[mode] = log.id
            if kept is not None and _covers(kept, log, checkpoint):
                break
            if refusal or is_held or mode in self.suspended:
                raise EvidencePending(retry_after=_RETRY_SECONDS)
            if self._covered.get(log.id, -1) < checkpoint.size:
                # Another process has sealed it, or the outcome of this process's commit is unknown.
                await self._database.covered()
                self._covered[log.id] = checkpoint.size
            if await asyncio.to_thread(self._heads.advance, mode, checkpoint.note, kept):
                break
        if not self._has_left(log, checkpoint.size):
            self._published[mode] = Released(log.id, checkpoint.size, checkpoint.note)

    async def publish(self) -> None:
        """Release the newest checkpoint of each mode whose sealing is not suspended."""
        for mode, log in (await self.current()).items():
            newest = await self._database.read(logs_sql.latest, log.id)
            if newest is not None and mode not in self.suspended:
                with suppress(EvidencePending):  # which was logged; the other mode continues
                    await self.release(log, newest)

    async def sealed(self, record_id: str, seconds: float) -> tuple[int, int]:
        """The id of a record's log, and its place there; waits `seconds`, then EvidencePending."""
        deadline = self._clock.monotonic() + seconds
        found = (await self._places([record_id])).get(record_id)
        while found is None:
            self._wanted = True
            if self._clock.monotonic() >= deadline:
                raise EvidencePending(retry_after=_RETRY_SECONDS)
            found = await self._sealed_soon(record_id)
        return found

    async def sign(self, mode: Mode) -> None:
        """Make a checkpoint of all entries now, because a caller wants a proof of one."""
        await self._database.sequence(self._sequencer.seal_queue, mode)

    async def newest(self, log: Log, quorum: Policy | None) -> bytes:
        """The checkpoint of a log for everyone, with its cosignatures.

        The newest checkpoint that meets the quorum; without a quorum, or if none meets it yet, the
        newest published one.
        """
        cosigned = None if quorum is None else await self.cosigned(log.id, quorum)
        found = cosigned or await self.released(log)
        anchors = await self._database.read(logs_sql.anchors_of, log.id, found.size)
        return with_cosignatures(found.note, cosignatures(anchors, newest=True))

    async def cosigned(self, log_id: int, quorum: Policy) -> StoredCheckpoint | None:
        """The newest checkpoint of a log that meets the quorum; a full search runs only once."""
        item = log_id, quorum, log_id in self._cosigned
        found = await self._database.scan_batched(logs_sql.cosigned, item)
        self._cosigned[log_id] = found = found or self._cosigned.get(log_id)
        return found

    async def released(self, log: Log) -> Released:
        """The newest checkpoint of a log, or else the last published one.

        If the database has lost it: the head stored outside. StorageUnavailable if none can be
        published, and the last one cannot be read.
        """
        newest = await self._database.read(logs_sql.latest, log.id)
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
        """The tree size up to which tiles may be served: the published part that is present.

        Later entries could still be lost with the database, and caches keep a tile for a year.
        """
        released = await self.released(log)
        if released.size >= log.size:
            return log.size
        left = checkpoint_of(released.note)
        if not await self._database.scan(holds, log.id, left):
            raise StorageUnavailable(
                "The entries of the log do not match its last published checkpoint at the moment.",
                retry_after=_RETRY_SECONDS,
            )
        return released.size

    async def _kept(self, log: Log) -> Released:
        """The checkpoint stored outside as the last one, if this log signed it."""
        stored = await self._database.read(logs_sql.keys_of, log.id)
        keys = [Verifier.parse(key.vkey) for key in stored]
        with suppress(HeadUnavailable, EvidenceError):
            note = await asyncio.to_thread(self._heads.read, log.mode) or b""
            checkpoint = parse_checkpoint(open_note(note, keys)[0])
            if checkpoint.origin == log.origin:
                return Released(log.id, checkpoint.size, note)
        raise StorageUnavailable(
            "The last published checkpoint cannot be read at the moment.",
            retry_after=_RETRY_SECONDS,
        )

    async def run(self) -> None:
        """Seal and publish, until cancelled."""
        await forever("sealing", self._unless_idle, PERIOD_SECONDS)

    async def _unless_idle(self) -> None:
        if self._wanted or self._clock.monotonic() >= self._rests_until:
            await self._seal()

    async def _seal(self) -> None:
        found = await self._database.read(logs_sql.standing)
        known, until = self._still
        if found == known and self._clock.monotonic() < until:
            self._rests_until = self._clock.monotonic() + _REST_SECONDS
            return
        early = bool(self.gauges) and not self._wanted and self._is_early(found)
        is_due = self.suspended or self._clock.monotonic() - self._turned_at >= _IDLE_SECONDS
        if early and not is_due:
            signed = {log.log_id: log.signed for log in found}
            logs = self._current.values()
            # Else acts have signed a newer checkpoint in their own transaction.
            if not all(self._has_left(log, signed.get(log.id, log.size)) for log in logs):
                await self._measure()
                await self.publish()
            return
        wanted, self._wanted = self._wanted, False
        await self._turn(sign=wanted)
        # While anything waits or could not be published, every turn is a full one.
        done = not self.suspended and all(
            self._has_left(log, log.size) and not self.gauges[mode][1]
            for mode, log in self._current.items()
        )
        until = self._clock.monotonic() + _IDLE_SECONDS
        self._still = (found, until) if done else _NEVER

    def _is_early(self, found: Sequence[logs_sql.Standing]) -> bool:
        """True if new entries wait for a checkpoint because the log's last one is too young."""
        now_ms = self._clock.time_ns() // 1_000_000
        young = {
            0 <= now_ms - log.signed_at < CHECKPOINT_MS
            for log in found
            if log.oldest is not None or log.size > log.signed
        }
        return young == {True}

    async def _turn(self, *, sign: bool = True) -> None:
        self._turned_at = self._clock.monotonic()
        if self._clock.monotonic() - self._keys_read_at > _KEYS_SECONDS:
            await self._keys.load()
            self._keys_read_at = self._clock.monotonic()
        if not self.gauges:
            await self._measure()
        await self.settle(sign=sign)
        await self._measure()
        await self.publish()

    async def _measure(self) -> None:
        self.gauges = {s.log.mode: (s.log.size, s.waiting) for s in await self.states()}

    async def _places(self, record_ids: Sequence[str]) -> Mapping[str, tuple[int, int]]:
        return await self._database.read(tree_sql.sealed, record_ids)


def with_cosignatures(note: bytes, cosigned: Sequence[Anchor]) -> bytes:
    """A signed checkpoint with these cosignatures."""
    return note + b"".join(anchor.body for anchor in cosigned)


def _covers(kept: bytes, log: Log, checkpoint: StoredCheckpoint) -> bool:
    """Whether the stored checkpoint is this one, or a later one of the same log."""
    old = checkpoint_of(kept)
    if old.origin != log.origin or old.size < checkpoint.size:
        return False
    return old.size > checkpoint.size or old.root == checkpoint.root
