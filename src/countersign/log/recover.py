"""Continue the same epoch after a loss: the operator names the last published checkpoint.

What was decided becomes a record of the log, with what was kept until then.
"""

from __future__ import annotations

from typing import NamedTuple

from countersign.errors import EvidenceRefused, HeadUnavailable
from countersign.evidence.checkpoint import Checkpoint, parse_checkpoint
from countersign.evidence.note import parse_note
from countersign.ids import FACT
from countersign.log.append_record import Recorder
from countersign.log.model import Log
from countersign.log.record import RecordType
from countersign.mode import Mode
from countersign.ports import HeadStore, LogStore


class PublishedHead(NamedTuple):
    """A published checkpoint, and the signed note that says it."""

    checkpoint: Checkpoint
    note: bytes


def kept_head(heads: HeadStore, mode: Mode) -> PublishedHead | None:
    """The kept last published checkpoint; None if its file is missing or cannot be read."""
    try:
        note = heads.read(mode)
    except HeadUnavailable:
        return None
    return None if note is None else PublishedHead(parse_checkpoint(parse_note(note).text), note)


async def newest_log(store: LogStore, mode: Mode) -> Log:
    """The log of a mode that goes on.

    Raises:
        EvidenceRefused: there is none.
    """
    found = [log for log in await store.logs() if log.mode is mode]
    if not found:
        msg = f"The {mode.value} log does not exist: run `countersign init`."
        raise EvidenceRefused(msg)
    return found[-1]


class RecoverLog:
    """Lets sealing go on where the database holds what was published last."""

    def __init__(self, store: LogStore, heads: HeadStore, recorder: Recorder) -> None:
        self._store = store
        self._heads = heads
        self._recorder = recorder

    async def accept(
        self, mode: Mode, published: PublishedHead, reason: str, *, overrule: bool = False
    ) -> None:
        """Take this checkpoint as the last published one, which the operator knows from outside.

        A record is written about it, with the checkpoint kept until then.

        Args:
            mode: which log.
            published: the checkpoint.
            reason: why, for the record.
            overrule: although a later or another checkpoint is kept as the last published one.

        Raises:
            EvidenceRefused: the database does not hold it, or another one is kept, so that going
                on from it would be a fork.
            HeadUnavailable: it cannot be kept.
        """
        log = await newest_log(self._store, mode)
        checkpoint, note = published
        held = await self._store.checkpoint(log.id, checkpoint.size)
        if log.origin != checkpoint.origin or held is None or held.root != checkpoint.root:
            msg = (
                f"The database does not contain the checkpoint of size {checkpoint.size} of "
                f"{checkpoint.origin}: continuing from its present state would fork the log. "
                "Recover the missing entries, or begin a new epoch."
            )
            raise EvidenceRefused(msg)
        kept = kept_head(self._heads, mode)
        against = None if kept is None else await self._against(log, kept.checkpoint, checkpoint)
        if against is not None and not overrule:
            msg = (
                f"{against} Continuing from the checkpoint of size {checkpoint.size} would fork "
                "the log, and anyone who has the other checkpoint can prove it. Recover the "
                "missing entries, or begin a new epoch. Use --overrule-kept-head only if this "
                "deployment never published the kept checkpoint."
            )
            raise EvidenceRefused(msg)
        await self._go_on(log, note, kept, reason, overruled=against is not None)

    async def adopt(self, mode: Mode, reason: str) -> Checkpoint:
        """Take the database's own head as the last published one, where none is kept; gives it.

        Raises:
            EvidenceRefused: one is kept, or the database is known to have been restored, or has
                no checkpoint.
            HeadUnavailable: what is kept cannot be read, or the head cannot be kept.
        """
        log = await newest_log(self._store, mode)
        kept = self._heads.read(mode)
        newest = await self._store.latest(log.id)
        restored = (await self._store.guard(mode, kept)).restored
        if kept is not None or restored or newest is None:
            msg = (
                "--database-head works only if no published checkpoint is kept and the database "
                "was not restored from a backup, since checkpoints may have been published "
                "after the backup. Give the last published checkpoint with --published-head, or "
                "begin a new epoch."
            )
            raise EvidenceRefused(msg)
        await self._go_on(log, newest.note, None, reason, overruled=False)
        return Checkpoint(log.origin, newest.size, newest.root)

    async def _go_on(
        self, log: Log, note: bytes, kept: PublishedHead | None, reason: str, *, overruled: bool
    ) -> None:
        decision = self._recorder.of_deployment(
            RecordType.RECOVERY,
            FACT,
            log.mode,
            {
                "log": log.origin,
                "published": note.decode(),
                "kept": None if kept is None else kept.note.decode(),
                "overruled": overruled,
                "reason": reason,
            },
        )
        # Written down first: if the file cannot be replaced then, sealing stays suspended.
        await self._store.resume(log.mode, decision)
        self._heads.replace(log.mode, note)

    async def _against(self, log: Log, kept: Checkpoint, given: Checkpoint) -> str | None:
        """What speaks against a checkpoint of this log: what is kept as the last published one."""
        ended = {o.origin for o in await self._store.logs() if o.mode is log.mode} - {log.origin}
        if kept.origin in ended:
            return None
        same = kept.origin == log.origin
        if same and (kept.size < given.size or (kept.size, kept.root) == (given.size, given.root)):
            return None
        return (
            f"The kept last published checkpoint has the size {kept.size} and belongs to "
            f"{kept.origin}."
        )
