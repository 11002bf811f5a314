"""Check the logs against the database: every entry, tile and checkpoint, and every record.

It trusts nothing that sealing has left behind: leaves are made from the records' own bytes, and
the roots of all checkpoints from those leaves.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from countersign.domain.log import Log, StoredCheckpoint
from countersign.domain.mode import Mode
from countersign.evidence.checkpoint import parse_checkpoint
from countersign.evidence.entry import log_entry
from countersign.evidence.errors import EvidenceError
from countersign.evidence.note import Verifier, open_note
from countersign.evidence.tiles import GrowingTree
from countersign.evidence.tree import leaf_hash
from countersign.ports import HeadStore, LogStore
from countersign.services.check_records import CheckRecords

_PAGE: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far the check of a log has come."""

    log: Log
    checked: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that is not as it should be."""

    log: Log
    index: int | None
    message: str


class CheckLog:
    """Re-checks whole logs."""

    def __init__(self, store: LogStore, heads: HeadStore, records: CheckRecords) -> None:
        self._store = store
        self._heads = heads
        self._records = records

    async def __call__(self) -> AsyncIterator[Progress | Finding]:
        """Go through every log; findings as they come up, and progress now and then."""
        newest: dict[Mode, Log] = {}
        for log in await self._store.logs():
            newest[log.mode] = log
            async for told in self._check(log):
                yield told
        async for wrong in self._records():
            yield Finding(log=newest[wrong.mode or Mode.LIVE], index=None, message=wrong.message)
        for mode in Mode:
            finding = await self._head(mode)
            if finding is not None:
                yield finding

    async def _check(self, log: Log) -> AsyncIterator[Progress | Finding]:
        tree = GrowingTree()
        async for checkpoint in self._checkpoints(log):
            async for told in self._grow(log, tree, checkpoint.size):
                yield told
            if tree.size != checkpoint.size:
                return  # an entry is missing, which was told
            finding = _checkpoint(log, await self._verifiers(log), checkpoint, tree.root())
            if finding is not None:
                yield finding
        async for told in self._grow(log, tree, log.size):
            yield told
        if (tree.size, tree.root()) != (log.size, log.root):
            yield Finding(log=log, index=None, message="the head is not the root of the entries")

    async def _checkpoints(self, log: Log) -> AsyncIterator[StoredCheckpoint]:
        after = -1
        while page := await self._store.checkpoints(log.id, after, _PAGE):
            for checkpoint in page:
                yield checkpoint
            after = page[-1].size

    async def _verifiers(self, log: Log) -> list[Verifier]:
        return [Verifier.parse(key.vkey) for key in await self._store.keys(log.id)]

    async def _grow(
        self, log: Log, tree: GrowingTree, size: int
    ) -> AsyncIterator[Progress | Finding]:
        """Let the tree grow to this size by the entries, each compared with its record."""
        while tree.size < size:
            rows = await self._store.entries(log.id, tree.size, min(tree.size + _PAGE, size))
            if not rows:
                yield Finding(log=log, index=tree.size, message="the entry is missing")
                return
            bodies = await self._store.record_bodies([record_id for record_id, _ in rows])
            for record_id, digest in rows:
                wrong = _wrong_record(bodies.get(record_id), digest)
                if wrong is not None:
                    message = f"the record {record_id} {wrong}"
                    yield Finding(log=log, index=tree.size, message=message)
                tree.append(leaf_hash(log_entry(log.origin, digest)))
            for tile in tree.take_tiles():
                stored = await self._store.stored_tile(log.id, tile.level, tile.index)
                if stored != tile.hashes:
                    message = f"tile {tile.index} of level {tile.level} is not what its leaves make"
                    yield Finding(log=log, index=None, message=message)
            yield Progress(log=log, checked=tree.size)

    async def _head(self, mode: Mode) -> Finding | None:
        """Compare the last published checkpoint, kept outside, with the database."""
        logs = [log for log in await self._store.logs() if log.mode is mode]
        note = self._heads.read(mode)
        if note is None or not logs:
            return None
        published = parse_checkpoint(open_text(note))
        log = next((log for log in logs if log.origin == published.origin), None)
        stored = None if log is None else await self._store.checkpoint(log.id, published.size)
        if stored is not None and stored.root == published.root:
            return None
        return Finding(
            log=log or logs[-1],
            index=None,
            message=f"the published checkpoint of size {published.size} of {published.origin} is "
            "not in the database: see `countersign log recover`",
        )


def _wrong_record(body: bytes | None, digest: bytes) -> str | None:
    if body is None:
        return "is missing"
    return None if sha256(body).digest() == digest else "is not the one that was sealed"


def open_text(note: bytes) -> bytes:
    """The text of a note whose signatures are not looked at."""
    return note[: note.rindex(b"\n\n") + 1]


def _checkpoint(
    log: Log, keys: list[Verifier], stored: StoredCheckpoint, root: bytes
) -> Finding | None:
    def finding(message: str) -> Finding:
        return Finding(
            log=log, index=None, message=f"the checkpoint of size {stored.size} {message}"
        )

    if stored.root != root:
        return finding("has another root than the entries before it")
    try:
        text, _ = open_note(stored.note, keys)
        checkpoint = parse_checkpoint(text)
    except EvidenceError as error:
        return finding(f"does not verify: {error}")
    if (checkpoint.origin, checkpoint.size, checkpoint.root) != (log.origin, stored.size, root):
        return finding("says something else than it is stored as")
    return None
