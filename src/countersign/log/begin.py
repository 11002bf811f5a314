"""The operator's acts on logs: begin one, and change its key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from countersign.errors import EvidenceRefused, InvalidArgument
from countersign.evidence.canonical import Json
from countersign.evidence.checkpoint import Checkpoint
from countersign.evidence.entry import check_origin, entry_host
from countersign.evidence.errors import EvidenceError
from countersign.evidence.note import sign_checkpoint
from countersign.evidence.tree import EMPTY_ROOT
from countersign.host import is_wildcard
from countersign.ids import FACT
from countersign.instant import from_ns, rfc3339_ms
from countersign.log.append_record import Recorder
from countersign.log.keys import LogKeys
from countersign.log.model import Log, LogKey
from countersign.log.record import NewRecord, RecordType
from countersign.log.recover import PublishedHead, kept_head, newest_log
from countersign.mode import Mode
from countersign.ports import Clock, HeadStore, LogSequencer, LogStore

OVERLAP: Final = timedelta(days=7)
"""How long the key before still signs beside its successor."""
_EPOCH_DIGITS_MAX: Final = 9
_SCHEME: Final = re.compile(r"https?://")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEpoch:
    """A log that has begun: its origin, and the verifier key to hand out."""

    mode: Mode
    epoch: int
    origin: str
    vkey: str


class BeginLog:
    """Begins logs and changes their keys."""

    def __init__(
        self,
        *,
        store: LogStore,
        sequencer: LogSequencer,
        heads: HeadStore,
        keys: LogKeys,
        recorder: Recorder,
        clock: Clock,
    ) -> None:
        self._store = store
        self._sequencer = sequencer
        self._heads = heads
        self._keys = keys
        self._recorder = recorder
        self._clock = clock

    async def first(self, public_url: str) -> None:
        """Begin the first log of each mode that has none; harmless otherwise.

        The origin is fixed by this: it is stored, and never made anew from settings.
        """
        there = {log.mode: log for log in await self._store.logs()}
        for mode in Mode:
            if mode in there:
                await self._keep_first(there[mode])
            else:
                with suppress(EvidenceRefused):  # another `init` was first
                    await self._begin(mode, 1, _SCHEME.sub("", public_url), None)

    async def _keep_first(self, log: Log) -> None:
        """Keep the checkpoint of a log that nothing was sealed into, if none is kept.

        An `init` that was killed right after beginning it has left it so.
        """
        if log.size == 0 and self._heads.read(log.mode) is None:
            empty = await self._store.checkpoint(log.id, 0)
            if empty is not None:
                self._heads.replace(log.mode, empty.note)

    async def epoch(
        self,
        mode: Mode,
        reason: str,
        host: str | None = None,
        published: PublishedHead | None = None,
    ) -> NewEpoch:
        """Begin a new epoch: a log of its own, whose first entry cites the head of the old one.

        Args:
            mode: which log.
            reason: why, for the record.
            host: another host (and port, and path) for the origin; None: that of the old log.
            published: the last published checkpoint of the old log; None: the one that was kept.

        Raises:
            InvalidArgument: the host cannot be part of an origin, or the checkpoint is of another
                log.
            EvidenceRefused: another command has begun this epoch at the same time.
        """
        old = await newest_log(self._store, mode)
        base = host or old.origin.rpartition(_path(mode))[0]
        kept = kept_head(self._heads, mode)
        cited = _cited(old, kept, published) | {"reason": reason}
        # The database may be from before an epoch whose checkpoints have left already.
        epoch = max(old.epoch, 0 if kept is None else _epoch(mode, kept.checkpoint.origin)) + 1
        return await self._begin(mode, epoch, base, cited)

    async def rotate(self, mode: Mode, overlap: timedelta = OVERLAP) -> LogKey:
        """Give the log a new key; the one before signs beside it until the overlap ends.

        Raises:
            EvidenceRefused: the key of test logs is published and never changes.
        """
        if mode is Mode.TEST:
            msg = "The key of test logs is fixed and published: it cannot be rotated."
            raise EvidenceRefused(msg)
        log = await newest_log(self._store, mode)
        keys = await self._store.keys(log.id)
        if not keys:
            msg = (
                f"The keys of {log.origin} are missing. Begin a new epoch: `countersign log "
                "recover`."
            )
            raise EvidenceRefused(msg)
        old = keys[-1]
        _, key = await self._keys.make(mode, log.origin, log.id)
        retires = from_ns(self._clock.time_ns()) + overlap
        rotation = self._record(
            RecordType.KEY_ROTATION,
            mode,
            {
                "log": log.origin,
                "new_key": key.vkey,
                "old_key": old.vkey,
                "old_key_retires_at": rfc3339_ms(retires),
            },
        )
        await self._store.add_key(key, retires, rotation)
        await self._keys.load()
        return key

    async def _begin(
        self, mode: Mode, epoch: int, host: str, cited: Mapping[str, Json] | None
    ) -> NewEpoch:
        origin = f"{host}{_path(mode)}{epoch}"
        try:
            check_origin(origin)
        except EvidenceError as error:
            msg = f"{host!r} cannot be the host of a log: {error}"
            raise InvalidArgument(msg) from error
        if is_wildcard(entry_host(origin)):
            msg = (
                f"{host} is an address to listen on and cannot name a log. Give the host name "
                "by which clients reach the service: COUNTERSIGN_PUBLIC_URL, or --host for a "
                "new epoch."
            )
            raise InvalidArgument(msg)
        number = max((log.id for log in await self._store.logs()), default=0) + 1
        signer, key = await self._keys.make(mode, origin, number)
        now = from_ns(self._clock.time_ns())
        empty = sign_checkpoint(Checkpoint(origin, 0, EMPTY_ROOT), [signer])
        first = None if cited is None else self._record(RecordType.EPOCH, mode, {**cited})
        self._sequencer.learn(number, 1, [signer])
        begun = await self._store.begin(
            Log(
                id=number,
                mode=mode,
                epoch=epoch,
                origin=origin,
                created_at=now,
                size=0,
                root=EMPTY_ROOT,
                at=now,
                keys_revision=1,
            ),
            key,
            first,
            empty,
        )
        if not begun:
            # Another command was first: its key is the one, and its head is kept already.
            await self._keys.load()
            msg = f"Epoch {epoch} of the {mode.value} log was already started by another process."
            raise EvidenceRefused(msg)
        self._heads.replace(mode, empty)
        return NewEpoch(mode=mode, epoch=epoch, origin=origin, vkey=key.vkey)

    def _record(self, type_: RecordType, mode: Mode, members: Mapping[str, Json]) -> NewRecord:
        return self._recorder.of_deployment(type_, FACT, mode, members)


def _cited(
    old: Log, kept: PublishedHead | None, published: PublishedHead | None
) -> dict[str, Json]:
    """The old head as the database has it, and as it was last published."""
    if published is not None and published.checkpoint.origin != old.origin:
        msg = f"The published head belongs to another log than {old.origin}, the log that ends now."
        raise InvalidArgument(msg)
    last = published or kept
    if published is not None and kept is not None and _later(old.mode, kept, published):
        last = kept
    return {
        "previous_log": old.origin,
        "previous_size": old.size,
        "previous_root": old.root.hex(),
        "previous_published": None if last is None else last.note.decode(),
    }


def _later(mode: Mode, one: PublishedHead, other: PublishedHead) -> bool:
    def place(head: PublishedHead) -> tuple[int, int]:
        return _epoch(mode, head.checkpoint.origin), head.checkpoint.size

    return place(one) > place(other)


def _path(mode: Mode) -> str:
    """What stands in the origin of a log between its host and its epoch."""
    return f"/v1/log/{mode.value}/"


def _epoch(mode: Mode, origin: str) -> int:
    """The epoch that an origin names; 0 where it is of no log of this mode."""
    host, _, last = origin.rpartition(_path(mode))
    return int(last) if host and last.isdecimal() and len(last) <= _EPOCH_DIGITS_MAX else 0
