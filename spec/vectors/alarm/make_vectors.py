"""Make the vectors of alarms: `python spec/vectors/alarm/make_vectors.py`.

Of two small live logs, one after the other, come alarms of each kind that show what they say, and
others that do not. Nothing is drawn at random and nothing depends on the time, so a run changes
nothing unless the format has changed; and a format that is published gets a new version.
"""

# ruff: noqa: INP001, T201 - a script beside the files that it makes

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from countersign_evidence.alarm import Alarm, AlarmKind, format_alarm, of_log
from countersign_evidence.canonical import canonical_json
from countersign_evidence.entry import log_entry
from countersign_evidence.key_history import KeyHistory, KeyRange, sign_history
from countersign_evidence.note import Checkpoint, Signer, sign_checkpoint
from countersign_evidence.receipt import make_receipts
from countersign_evidence.tree import leaf_hash, node_hash, root_over, subtrees

ROOT = Path(__file__).parent
HOST = "evidence.example.com:8443"
FIRST, SECOND, THIRD = (f"{HOST}/v1/log/live/{epoch}" for epoch in (1, 2, 3))
ELSEWHERE = "moved.example.com/v1/log/live/2"
SEED, NEW_SEED, STRANGERS_SEED = (bytes([n]) * 32 for n in (11, 12, 14))
OLD, NEW, STRANGER = (Signer.from_seed(FIRST, seed) for seed in (SEED, NEW_SEED, STRANGERS_SEED))
NEXT = {
    origin: Signer.from_seed(origin, bytes([n]) * 32)
    for n, origin in ((13, SECOND), (15, ELSEWHERE), (16, THIRD))
}
TEST = Signer.from_seed(f"{HOST}/v1/log/test/1", bytes([17]) * 32)
UNTIL = datetime(2026, 11, 20, 21, 31, tzinfo=UTC)
TILE = "0/000.p/9"


def _log_vectors() -> ModuleType:
    """The script that makes the vectors of the log."""
    name = "make_log_vectors_for_alarms"
    spec = spec_from_file_location(name, ROOT.parent / "log" / "make_vectors.py")
    assert spec  # noqa: S101 - it is there
    assert spec.loader  # noqa: S101
    module = module_from_spec(spec)
    sys.modules[name] = module  # a dataclass looks its module up by name while it is made
    spec.loader.exec_module(module)
    return module


LOG = _log_vectors()


class Log:
    """The first so many entries of a log; those of another salt are different from `since` on."""

    def __init__(
        self, size: int, signer: Signer = OLD, *, since: int = 99, first: bytes | None = None
    ) -> None:
        names = [f"{'other' if n >= since else 'record'} {n}".encode() for n in range(size)]
        self.records = [first, *names[1:]] if first is not None else names
        self.signer, self.origin = signer, signer.verifier.name
        self.entries = [log_entry(self.origin, sha256(one).digest()) for one in self.records]

    @property
    def leaves(self) -> list[bytes]:
        """The hashes of the leaves."""
        return [leaf_hash(entry) for entry in self.entries]

    def hashes(self, start: int, end: int) -> tuple[bytes, ...]:
        """Of the complete subtrees that hold these leaves."""
        return tuple(
            _root(self.leaves[node.index << node.level : (node.index + 1) << node.level])
            for node in subtrees(start, end)
        )

    def signed(self) -> bytes:
        """The checkpoint, without a cosignature."""
        size = len(self.entries)
        root = root_over(subtrees(0, size), self.hashes(0, size))
        return sign_checkpoint(Checkpoint(self.origin, size, root), [self.signer])

    def path(self, index: int) -> tuple[bytes, ...]:
        """From an entry to the root."""
        path, start, end = list[bytes](), 0, len(self.entries)
        while end - start > 1:
            cut = start + (1 << (end - start - 1).bit_length() - 1)
            left = index < cut
            path.insert(0, _root(self.leaves[cut:end] if left else self.leaves[start:cut]))
            start, end = (start, cut) if left else (cut, end)
        return tuple(path)


def _root(leaves: list[bytes]) -> bytes:
    """RFC 6962, section 2.1."""
    if len(leaves) == 1:
        return leaves[0]
    cut = 1 << (len(leaves) - 1).bit_length() - 1
    return node_hash(_root(leaves[:cut]), _root(leaves[cut:]))


def policy() -> bytes:
    """It names the first key of the first log, the keys of the others, and a witness."""
    lines = "".join(f"log {signer.verifier.vkey}\n" for signer in (OLD, *NEXT.values(), TEST))
    return f"{lines}witness w1 {LOG._witness().vkey}\nquorum w1\n".encode()  # noqa: SLF001


def history(new: Signer, *signers: Signer) -> bytes:
    """The first key counts up to 6, this one from 7 on."""
    ranges = KeyRange(0, 6, OLD.verifier), KeyRange(7, None, new.verifier)
    return sign_history(KeyHistory(FIRST, ranges), signers)


def alarm(kind: AlarmKind, *notes: bytes, **members: Any) -> Alarm:  # noqa: ANN401 - of any type
    """An alarm; what the watcher says for themselves is the same in all."""
    url, at = f"https://{FIRST}", "2026-11-21T21:32:00Z"
    return Alarm(kind, url, at, "the words of the watcher", notes, **members)


def begins(origin: str, *, size: int = 9, root: bytes | None = None) -> tuple[bytes, Log]:
    """A log that continues the first one of so many entries, with its first record."""
    cited = Log(size)
    found = root_over(subtrees(0, size), cited.hashes(0, size)) if root is None else root
    record = canonical_json(
        {
            "id": "rec_01m7xdxbmvex7t29vh2x05yy50",
            "previous_log": FIRST,
            "previous_published": None,
            "previous_root": found.hex(),
            "previous_size": size,
            "type": "epoch",
        }
    )
    return record, Log(4, NEXT[origin], first=record)


def receipt(signer: Signer = OLD) -> bytes:
    """A promise of a record that is not in the log."""
    (made,) = make_receipts([sha256(b"suppressed").digest()], UNTIL, [signer])
    return made.encode()


def epoch(record: bytes | None, log: Log, **members: Any) -> Alarm:  # noqa: ANN401 - of any type
    """That this log leaves out what the first one had signed."""
    more = {"index": 0, "path": log.path(0), "resources": {"epoch": record}, **members}
    return alarm(AlarmKind.EPOCH, Log(9).signed(), log.signed(), **more)


def fork(after: Signer, resources: Mapping[str, bytes | None] | None = None) -> Alarm:
    """After a tree of five entries, one of nine that has others from 2 on, by this key."""
    forked = Log(9, after, since=2)
    notes = Log(5).signed(), forked.signed()
    shown = {"before": forked.hashes(0, 5), "after": forked.hashes(5, 9)}
    return alarm(AlarmKind.FORK, *notes, resources=resources or {}, **shown)


def good() -> dict[str, tuple[str, str, Alarm]]:
    """Of each what it says, what it comes to, and the alarm."""
    log, kind = Log(9), AlarmKind
    other = Log(9, since=8)
    note = Log(9)
    note.entries[3] = b"not an entry\n"
    record, dropping = begins(SECOND, size=6)
    moved_record, moved = begins(ELSEWHERE, size=6)
    wrong_record, wrong = begins(SECOND, root=bytes(32))
    keys: dict[str, bytes | None] = {of_log(FIRST): history(NEW, NEW, OLD)}
    later = Log(9, NEW)
    return {
        "fork-of-one-size": (
            "two roots for one size", "proved", alarm(kind.FORK, log.signed(), other.signed()),
        ),
        "fork": ("the larger tree does not begin with the smaller", "proved", fork(OLD)),
        "fork-by-a-later-key": (
            "the second is by a key that the history names", "proved", fork(NEW, keys),
        ),
        "epoch": (
            "the new log cites fewer entries", "proved", epoch(record, dropping),
        ),
        "epoch-other-root": (
            "the new log cites another root", "proved", epoch(wrong_record, wrong),
        ),
        "epoch-elsewhere": (
            "the new log is of another host", "observed", epoch(moved_record, moved),
        ),
        "epoch-not-shown": (
            "the new log does not show its first record", "observed",
            epoch(None, dropping, path=()),
        ),
        "entry": (
            "an entry has not the form of one", "proved",
            alarm(
                kind.ENTRY, note.signed(), index=3, path=note.path(3),
                resources={"entry": note.entries[3]},
            ),
        ),
        "shrink": (
            "six entries after nine", "observed",
            alarm(kind.SHRINK, log.signed(), Log(6).signed()),
        ),
        "unbacked": (
            "a tile of another tree", "observed",
            alarm(kind.UNBACKED, log.signed(), resources={TILE: b"".join(other.leaves)}),
        ),
        "gap": (
            "a tile was not found", "observed",
            alarm(kind.GAP, log.signed(), resources={TILE: None}),
        ),
        "key": (
            "another key, and no history was served", "observed",
            alarm(kind.KEY, Log(9, STRANGER).signed(), resources={"keys": None}),
        ),
        "key-by-its-own-history": (
            "another key, and a history that the known one did not sign", "observed",
            alarm(
                kind.KEY, Log(9, STRANGER).signed(),
                resources={"keys": history(STRANGER, STRANGER)},
            ),
        ),
        "key-after-another-history": (
            "the history that was served contradicts the one that was known", "observed",
            alarm(
                kind.KEY, Log(9, STRANGER).signed(),
                resources={**keys, "keys": history(STRANGER, STRANGER, OLD)},
            ),
        ),
        "quorum": ("no witness cosigned", "observed", alarm(kind.QUORUM, log.signed())),
        "suppressed": (
            "a receipt by the known key", "observed",
            alarm(kind.SUPPRESSED, log.signed(), resources={"receipt": receipt()}),
        ),
        "suppressed-by-a-later-key": (
            "receipt and checkpoint are by a key that the history names", "observed",
            alarm(kind.SUPPRESSED, later.signed(), resources={"receipt": receipt(NEW), **keys}),
        ),
        "replaced": (
            "another log than before", "observed",
            alarm(kind.REPLACED, log.signed(), dropping.signed()),
        ),
        "silence": ("nothing after nine entries", "observed", alarm(kind.SILENCE, log.signed())),
    }  # fmt: skip


def broken() -> dict[str, tuple[str, str, Alarm]]:
    """The same of those that do not show what they say, or depend on a key that is not known."""
    log, kind, found = Log(9), AlarmKind, {name: made for name, (_, _, made) in good().items()}
    record, complete = begins(SECOND)
    third = Log(4, NEXT[THIRD])
    fourth = Log(4, Signer.from_seed(f"{HOST}/v1/log/live/4", STRANGERS_SEED))
    stolen: dict[str, bytes | None] = {of_log(FIRST): history(STRANGER, STRANGER)}
    keys = history(NEW, NEW, OLD)
    cosigned = log.signed() + LOG.cosignature(log.signed().partition(b"\n\n")[0] + b"\n")
    six = Log(6, NEW)
    return {
        "fork-of-none": (
            "the larger tree begins with the smaller", "failed",
            alarm(
                kind.FORK, Log(5).signed(), log.signed(),
                before=log.hashes(0, 5), after=log.hashes(5, 9),
            ),
        ),
        "fork-twice-the-same": (
            "one checkpoint, twice", "failed", alarm(kind.FORK, log.signed(), log.signed()),
        ),
        "fork-other-subtrees": (
            "the subtrees do not lead to the larger root", "failed",
            replace(found["fork"], after=log.hashes(5, 9)),
        ),
        "fork-no-subtrees": ("no subtrees", "failed", replace(found["fork"], before=(), after=())),
        "fork-of-two-logs": (
            "checkpoints of two logs", "failed", alarm(kind.FORK, log.signed(), complete.signed()),
        ),
        "fork-of-three": (
            "three checkpoints", "failed",
            replace(found["fork"], checkpoints=(*found["fork"].checkpoints, log.signed())),
        ),
        "fork-one-bit": (
            "a signature is wrong", "failed",
            replace(found["fork"], checkpoints=(
                found["fork"].checkpoints[0].replace(b"\n5\n", b"\n4\n"),
                found["fork"].checkpoints[1],
            )),
        ),
        "fork-by-another-key": (
            "the second is by a key that nothing names", "unchecked", fork(STRANGER),
        ),
        "fork-by-a-strangers-history": (
            "its history is not signed by the known key", "unchecked", fork(STRANGER, stolen),
        ),
        "fork-outside-the-sizes": (
            "the later key counts from 7 on", "unchecked",
            alarm(
                kind.FORK, Log(6, since=2).signed(), six.signed(),
                resources={of_log(FIRST): keys},
            ),
        ),
        "epoch-complete": (
            "the new log cites all", "failed", epoch(record, complete),
        ),
        "epoch-not-next": (
            "the third log does not follow the first", "failed",
            epoch(None, third, path=()),
        ),
        "epoch-other-record": (
            "the record is not the first entry", "failed",
            replace(found["epoch"], resources={"epoch": record}),
        ),
        "epoch-other-index": (
            "not the first entry", "failed", replace(found["epoch"], index=1),
        ),
        "entry-of-the-form": (
            "the entry is one", "failed",
            alarm(
                kind.ENTRY, log.signed(), index=3, path=log.path(3),
                resources={"entry": log.entries[3]},
            ),
        ),
        "entry-not-in-the-tree": (
            "another path", "failed", replace(found["entry"], path=log.path(4)),
        ),
        "entry-no-index": ("no index", "failed", replace(found["entry"], index=None)),
        "shrink-of-none": (
            "the second is larger", "failed",
            alarm(kind.SHRINK, Log(6).signed(), log.signed()),
        ),
        "unbacked-of-none": (
            "the tile is right", "failed",
            alarm(kind.UNBACKED, log.signed(), resources={TILE: b"".join(log.leaves)}),
        ),
        "unbacked-by-a-history": (
            "nothing but a history, which is no tile", "failed",
            alarm(kind.UNBACKED, log.signed(), resources={of_log(FIRST): b"x"}),
        ),
        "gap-of-none": (
            "nothing is missing", "failed",
            alarm(kind.GAP, log.signed(), resources={TILE: b"".join(log.leaves)}),
        ),
        "gap-beyond": (
            "beyond the size", "failed",
            alarm(kind.GAP, log.signed(), resources={"0/000.p/10": None}),
        ),
        "key-known": (
            "by the known key", "failed",
            alarm(kind.KEY, log.signed(), resources={"keys": None}),
        ),
        "key-named": (
            "by a key that the history that was served names", "failed",
            alarm(kind.KEY, Log(9, NEW).signed(), resources={"keys": keys}),
        ),
        "key-without-a-history": (
            "what was served as the history was left out", "unchecked",
            alarm(kind.KEY, Log(9, NEW).signed()),
        ),
        "key-of-another-log": (
            "a log that the policy does not name", "failed",
            alarm(kind.KEY, fourth.signed(), resources={"keys": None}),
        ),
        "quorum-met": ("the witness cosigned", "failed", alarm(kind.QUORUM, cosigned)),
        "suppressed-no-receipt": (
            "no receipt", "failed", alarm(kind.SUPPRESSED, log.signed()),
        ),
        "suppressed-of-another-mode": (
            "the receipt is of a test log", "failed",
            alarm(kind.SUPPRESSED, log.signed(), resources={"receipt": receipt(TEST)}),
        ),
        "suppressed-by-another-key": (
            "the receipt is by a key that nothing names", "unchecked",
            alarm(kind.SUPPRESSED, log.signed(), resources={"receipt": receipt(STRANGER)}),
        ),
        "replaced-by-itself": (
            "one log", "failed", alarm(kind.REPLACED, log.signed(), Log(6).signed()),
        ),
        "silence-of-none": ("no checkpoint", "failed", alarm(kind.SILENCE)),
    }  # fmt: skip


def malformed() -> dict[str, tuple[str, str, bytes]]:
    """Files that have not the one form."""
    (_, _, made) = good()["fork"]
    data = format_alarm(made)
    return {
        "form-spaced": ("white space", "failed", data + b"\n"),
        "form-version": ("version 2", "failed", data.replace(b'"v":1', b'"v":2')),
        "form-kind": ("a kind that there is not", "failed", data.replace(b'"fork"', b'"knot"')),
        "form-member": ("a further member", "failed", data.replace(b'{"after"', b'{"a":1,"after"')),
        "form-cut": ("the end is missing", "failed", data[:-1]),
    }


def generated_files() -> dict[str, bytes]:
    """Every file that is made, by its path here."""
    files, expected = {"policy.txt": policy()}, {}
    for folder, cases in (("good", good()), ("broken", broken())):
        for name, (what, shown, made) in cases.items():
            files[f"{folder}/{name}.alarm.json"] = format_alarm(made)
            expected[f"{folder}/{name}.alarm.json"] = {"case": what, "shown": shown}
    for name, (what, shown, data) in malformed().items():
        files[f"broken/{name}.alarm.json"] = data
        expected[f"broken/{name}.alarm.json"] = {"case": what, "shown": shown}
    text = json.dumps(expected, ensure_ascii=False, indent=2, sort_keys=True)
    return {**files, "expected.json": text.encode() + b"\n"}


def main() -> None:
    """Write the files, and say how many there are."""
    files = generated_files()
    for name, data in files.items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    print(f"{len(files)} files")


if __name__ == "__main__":
    main()
