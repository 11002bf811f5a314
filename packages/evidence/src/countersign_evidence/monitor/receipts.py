"""Receipts: whether a log kept the promises that a vendor holds (spec section 18)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from countersign_evidence.alarm import RECEIPT, AlarmKind
from countersign_evidence.entry import log_entry
from countersign_evidence.errors import EvidenceError
from countersign_evidence.files import replace_file
from countersign_evidence.monitor.reading import Keep, Reader
from countersign_evidence.monitor.round import (
    AlarmFound,
    Watch,
    accusing,
    learn_keys,
    with_resources,
)
from countersign_evidence.monitor.source import LogSource, Unreachable
from countersign_evidence.monitor.state import Kept
from countersign_evidence.note import checkpoint_of
from countersign_evidence.policy import UnnamedKey
from countersign_evidence.receipt import RECEIPT_BYTES_MAX, Promise, check_receipt
from countersign_evidence.tiles import GrowingTree
from countersign_evidence.tree import HASH_BYTES, leaf_hash

_LOWEST: Final = "0/"
"""How the paths of the tiles begin that have the hashes of entries."""


class Receipts:
    """The receipts in a folder, and which of them a monitor has found kept.

    `waiting` are those whose entry it has not seen, by log and SHA-256 of the record: the earliest
    of several promises of one record.
    """

    def __init__(self, folder: Path, watch: Watch) -> None:
        """Raises OSError if the folder cannot be read."""
        self._found_file = watch.state.directory / "receipts.kept"
        kept = self._found_file.read_text("ascii") if self._found_file.is_file() else ""
        self._found = set(kept.splitlines())
        self._noted: dict[str, set[bytes]] = {}
        self.waiting: dict[tuple[str, bytes], tuple[Promise, bytes]] = {}
        self._unread: dict[str, bytes] = {}
        for path in sorted(path for path in folder.iterdir() if path.is_file()):
            with path.open("rb") as opened:
                self._unread[path.name] = opened.read(RECEIPT_BYTES_MAX + 1)
        self.unreadable: list[str] = []
        self.read(watch)

    def read(self, watch: Watch) -> bool:
        """Read the unread receipts again; returns whether one is signed by an unknown key."""
        self.unreadable, unknown = [], False
        histories = [note for note in watch.histories.values() if note is not None]
        for name, data in [*self._unread.items()]:
            try:
                promise = check_receipt(data, watch.policy, histories)
            except EvidenceError as error:
                self.unreadable.append(f"{name}: {error}")
                unknown = unknown or isinstance(error, UnnamedKey)
                continue
            del self._unread[name]
            key = promise.origin, promise.digest
            first = self.waiting.get(key)
            is_first = first is None or promise.sealed_by < first[0].sealed_by
            if is_first and _line(*key) not in self._found:
                self.waiting[key] = promise, data
        return unknown

    def seen(self, origin: str) -> Keep:
        """Notes the entries in the tiles of this log; earlier notes are dropped.

        It counts when `read_to_root` says so: until then the log may have served anything.
        """
        noted = self._noted[origin] = set()
        digests = {digest for _, digest in self.waiting}
        wanted = {leaf_hash(log_entry(origin, digest)): digest for digest in digests}

        def note(path: str, body: bytes) -> None:
            if wanted and path.startswith(_LOWEST):
                hashes = {body[at : at + HASH_BYTES] for at in range(0, len(body), HASH_BYTES)}
                for leaf in wanted.keys() & hashes:
                    noted.add(wanted.pop(leaf))

        return note

    def read_to_root(self, origin: str, of: Sequence[str]) -> None:
        """The log was read up to a signed root: it kept what these logs had promised."""
        noted = self._noted.pop(origin, set())
        for key in [key for key in self.waiting if key[0] in of and key[1] in noted]:
            del self.waiting[key]
            self._found.add(_line(*key))

    def unread(self, logs: Sequence[Kept], began: datetime) -> list[str]:
        """Text about unchecked files: invalid receipts, and receipts of other logs."""
        due = {one.origin for one, _ in self.waiting.values() if one.sealed_by < began}
        others = sorted(due.difference(kept.origin for kept in logs))
        of_others = [f"a receipt is of {origin}, which was not read" for origin in others]
        return [*self.unreadable, *of_others]

    def save(self) -> None:
        """Store which were kept."""
        replace_file(self._found_file, "".join(f"{one}\n" for one in sorted(self._found)).encode())


async def check_receipts(
    receipts: Receipts, watch: Watch, source: LogSource, logs: Sequence[Kept], began: datetime
) -> None:
    """Check that these logs, which were just read, kept their promises that are due.

    `began`: before their checkpoints were requested; entries due later may be in a later one.
    Raises AlarmFound or Unreachable.
    """
    if receipts.read(watch):
        # By keys that are known since, or that the logs' histories name now.
        for kept in logs:
            with suppress(Unreachable):  # such a receipt stays unread, which accuses no log
                await learn_keys(watch, source.at(kept.url), kept.origin)
        receipts.read(watch)
    origins = [kept.origin for kept in logs]
    for kept in logs:
        receipts.read_to_root(kept.origin, origins)
    due = {
        key: one
        for key, one in receipts.waiting.items()
        if key[0] in origins and one[0].sealed_by < began
    }
    for kept in logs:
        # They may have been read before their receipts were here.
        if kept.note is not None and due.keys() & receipts.waiting.keys():
            head, seen = checkpoint_of(kept.note.encode()), receipts.seen(kept.origin)
            reader = Reader(source.at(kept.url).get, head, seen)
            with accusing(watch, source, kept.note.encode()):
                await reader.grow(GrowingTree())
            receipts.read_to_root(kept.origin, origins)
    receipts.save()
    for key, (promise, data) in due.items():
        if key in receipts.waiting:
            last = logs[-1]
            message = (
                f"{promise.origin} promised to have the record {promise.digest.hex()} by "
                f"{promise.sealed_by:%Y-%m-%dT%H:%M:%SZ}, and it is not in the log"
            )
            note = (last.note or "").encode()
            alarm = watch.alarm(AlarmKind.SUPPRESSED, last.url, message, note)
            held = {RECEIPT: data, **watch.kept_of(promise.origin)}
            raise AlarmFound(with_resources(alarm, held))


def _line(origin: str, digest: bytes) -> str:
    return f"{origin} {digest.hex()}"
