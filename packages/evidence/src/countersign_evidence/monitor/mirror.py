"""A copy of a log as files that any web server can serve; only checked data is written."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import Final

from countersign_evidence.alarm import EPOCH_RECORD, KEY_HISTORY
from countersign_evidence.entry import log_entry
from countersign_evidence.errors import EvidenceError
from countersign_evidence.files import draft, sync
from countersign_evidence.monitor.reading import Reader, Wrong
from countersign_evidence.monitor.round import (
    WEEKLY,
    Again,
    Look,
    OnProgress,
    Unchecked,
    accusing,
    continues,
    learn_keys,
    not_smaller,
    read_again,
    signed_checkpoint,
)
from countersign_evidence.monitor.source import LogSource, Missing
from countersign_evidence.note import Checkpoint, checkpoint_of
from countersign_evidence.tiles import WIDTH, GrowingTree, parse_tile_path, tree_of
from countersign_evidence.tree import leaf_hash

CHECKPOINT: Final = "checkpoint"
_DRAFT: Final = ".draft"
_BYTES_MAX: Final = 4_000_000


@dataclass(frozen=True, slots=True)
class Copy:
    """A folder with the resources of a log."""

    folder: Path

    def write(self, path: str, body: bytes) -> None:
        """Write a resource, unless it is there. Raises OSError."""
        file = self.folder / path
        if self.read(path) == body:
            return
        self._make(file.parent)
        # Not next to the file: the rest of a killed run would be served.
        with draft(self.folder / _DRAFT, body) as new:
            new.chmod(0o644)
            new.replace(file)
        sync(file.parent)

    def keep(self, path: str, body: bytes) -> None:
        """Write a tile or a bundle of entries that was found right, unless it is there."""
        self.write(f"tile/{path}", body)

    def read(self, path: str) -> bytes | None:
        """A resource, if it is there."""
        try:
            return (self.folder / path).read_bytes()
        except OSError:
            return None

    def tree(self) -> tuple[GrowingTree, bytes | None]:
        """The tree of the checkpoint that was copied last, and that; Unchecked if it is damaged."""
        note = self.read(CHECKPOINT)
        if note is None:
            return GrowingTree(), None
        with suppress(EvidenceError):
            head = checkpoint_of(note)
            tree = tree_of(head.size, lambda tile: self.read(f"tile/{tile.path}") or b"")
            if tree.root() == head.root:
                return tree, note
        raise Unchecked(
            f"{self.folder} is damaged, its tiles are not those of its checkpoint: delete its "
            "checkpoint, and all is read again"
        )

    def _make(self, folder: Path) -> None:
        if not folder.is_dir():
            self._make(folder.parent)
            folder.mkdir(exist_ok=True)
            folder.chmod(0o755)


async def mirror(
    look: Look, source: LogSource, copy: Copy, progress: OnProgress, again: Again = WEEKLY
) -> Checkpoint:
    """Bring the copy up to the log's present state; returns the new checkpoint.

    A part of the copy is read again from the log, and rewritten if it differs.

    Raises AlarmFound, Unchecked, Unreachable, or OSError. The copy then is as good as before.
    """
    for left in copy.folder.glob(f"{_DRAFT}.*"):  # half-written, of a killed run
        left.unlink(missing_ok=True)
    tree, old = copy.tree()
    before, began, checkpoint = tree.size, look.now, copy.folder / CHECKPOINT
    if old is not None:
        look.histories[checkpoint_of(old).origin] = copy.read(KEY_HISTORY)
    note, head = await signed_checkpoint(look, source)
    if old is not None:
        if checkpoint_of(old).origin != head.origin:
            raise Unchecked(f"{copy.folder} is a copy of another log, {checkpoint_of(old).origin}")
        note, head = await not_smaller(look, source, old, note)
        await continues(look, source, old, note)
    with accusing(look, source, note):
        try:
            complete = await _read(source, copy, tree, head, progress, is_trusting=True)
        except Wrong:
            # Perhaps a file of the copy, from a run that did not come to its end.
            tree, _ = copy.tree()
            complete = await _read(source, copy, tree, head, progress, is_trusting=False)
        if old is not None:
            due = again.due(before, head.size, int(checkpoint.stat().st_mtime), began)
            await read_again(source, Reader(source.get, head, copy.keep), due)
    await _copy_beginning(source, copy, head)
    await learn_keys(look, source, head.origin)
    for keys in look.history(head.origin):
        copy.write(KEY_HISTORY, keys)
    copy.write(CHECKPOINT, note)
    # Up to when the copy was compared with the log again: it has no other files to note that in.
    os.utime(checkpoint, (began, began))
    for path in complete:  # not before: a stopped run continues from the edge of the old checkpoint
        rmtree(copy.folder / f"{path}.p", ignore_errors=True)
    return head


async def _copy_beginning(source: LogSource, copy: Copy, head: Checkpoint) -> None:
    """Copy the record that begins the log, if it has one and it is its first entry."""
    try:
        record = await source.get(EPOCH_RECORD, _BYTES_MAX)
    except Missing:
        return  # the first log of a mode
    entry = log_entry(head.origin, sha256(record).digest())
    if head.size and await Reader(source.get, head).leaf(0) == leaf_hash(entry):
        copy.write(EPOCH_RECORD, record)


async def _read(
    source: LogSource,
    copy: Copy,
    tree: GrowingTree,
    head: Checkpoint,
    progress: OnProgress,
    *,
    is_trusting: bool,
) -> list[str]:
    """Read and write the missing parts; returns the paths of the complete tiles and bundles.

    `is_trusting`: the tiles that the copy has are not read again.
    """
    complete = []

    async def read(path: str, most: int) -> bytes:
        kept = copy.read(path) if is_trusting else None
        return await source.get(path, most) if kept is None else kept

    def keep(path: str, body: bytes) -> None:
        copy.keep(path, body)
        if parse_tile_path(path)[2] == WIDTH:
            complete.append(f"tile/{path}")

    await Reader(read, head, keep).grow(tree, lambda size: progress(head.origin, size, head.size))
    return complete
