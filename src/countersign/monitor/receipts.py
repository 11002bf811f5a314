"""Receipts: whether a log kept the promises that a vendor holds (spec section 18)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Final

from countersign.evidence.alarm import RECEIPT, AlarmKind, said_by
from countersign.evidence.entry import log_entry
from countersign.evidence.errors import EvidenceError
from countersign.evidence.receipt import RECEIPT_BYTES_MAX, Promise, check_receipt
from countersign.evidence.tiles import GrowingTree
from countersign.evidence.tree import HASH_BYTES, leaf_hash
from countersign.instant import from_ns
from countersign.monitor.reading import Keep, Reader, Wrong
from countersign.monitor.round import AlarmFound, Unchecked, Watch, alarm_of
from countersign.monitor.source import LogSource
from countersign.monitor.state import Kept
from countersign.private_file import replace_file

_LOWEST: Final = "0/"
"""How the paths of the tiles begin that have the hashes of entries."""


class Receipts:
    """The receipts in a folder, and which of them a monitor has found kept.

    `waiting` are those whose entry it has not seen, by the SHA-256 of the record.
    """

    def __init__(self, folder: Path, watch: Watch) -> None:
        """Raises OSError if the folder cannot be read."""
        self._found_file = watch.state.directory / "receipts.kept"
        self._found = _lines(self._found_file)
        self.waiting: dict[bytes, tuple[Promise, bytes]] = {}
        self.unreadable: list[str] = []
        for path in sorted(path for path in folder.iterdir() if path.is_file()):
            with path.open("rb") as opened:
                data = opened.read(RECEIPT_BYTES_MAX + 1)
            try:
                promise = check_receipt(data, watch.policy)
            except EvidenceError as error:
                self.unreadable.append(f"{path.name}: {error}")
                continue
            if promise.digest.hex() not in self._found:
                self.waiting[promise.digest] = promise, data

    def seen(self, origin: str) -> Keep:
        """Notes what is in the tiles of this log, which were compared with their entries."""
        wanted = {leaf_hash(log_entry(origin, digest)): digest for digest in self.waiting}

        def note(path: str, body: bytes) -> None:
            if wanted and path.startswith(_LOWEST):
                hashes = {body[at : at + HASH_BYTES] for at in range(0, len(body), HASH_BYTES)}
                for leaf in wanted.keys() & hashes:
                    digest = wanted.pop(leaf)
                    self._found.add(digest.hex())
                    self.waiting.pop(digest, None)

        return note

    def save(self) -> None:
        """Remember which were kept."""
        replace_file(self._found_file, "".join(f"{one}\n" for one in sorted(self._found)).encode())


async def check_receipts(
    receipts: Receipts, watch: Watch, source: LogSource, logs: Sequence[Kept]
) -> None:
    """Check that these logs, which were read, have what they promised to have by now.

    Raises AlarmFound; Unchecked, if a receipt is of another log, or none.
    """
    now = from_ns(watch.clock.time_ns())
    origins = [kept.origin for kept in logs]
    due = {d: one for d, one in receipts.waiting.items() if one[0].sealed_by < now}
    others = [promise.origin for promise, _ in due.values() if promise.origin not in origins]
    for kept in logs if due else ():
        # They may have been read before their receipts were here.
        if kept.note is not None and due.keys() & receipts.waiting.keys():
            head, seen = said_by(kept.note.encode()), receipts.seen(kept.origin)
            reader = Reader(source.at(kept.url).get, head, seen)
            try:
                async with aclosing(reader.grow(GrowingTree())) as growing:
                    async for _ in growing:
                        pass
            except Wrong as wrong:
                raise AlarmFound(alarm_of(watch, source, wrong, kept.note.encode())) from wrong
    receipts.save()
    for digest, (promise, data) in due.items():
        if digest in receipts.waiting and promise.origin in origins:
            last = logs[-1]
            message = (
                f"{promise.origin} promised to have the record {digest.hex()} by "
                f"{promise.sealed_by:%Y-%m-%dT%H:%M:%SZ}, and it is not in the log"
            )
            note = (last.note or "").encode()
            alarm = watch.alarm(AlarmKind.SUPPRESSED, last.url, message, note)
            raise AlarmFound(replace(alarm, resources={RECEIPT: data}))
    if receipts.unreadable or others:
        of_others = [f"a receipt is of {origin}, which was not read" for origin in set(others)]
        raise Unchecked("; ".join([*receipts.unreadable, *of_others]))


def _lines(file: Path) -> set[str]:
    try:
        return set(file.read_text(encoding="ascii").split())
    except FileNotFoundError:
        return set()
