"""Check an alarm file against a policy: whether it proves its claim, and who vouches for it."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from hashlib import sha256
from typing import Final, NamedTuple

import msgspec

from countersign_evidence.alarm import (
    ENTRY,
    EPOCH_RECORD,
    KEY_HISTORY,
    RECEIPT,
    Alarm,
    AlarmKind,
    is_history,
    of_log,
    parse_alarm,
)
from countersign_evidence.encoding import NotCheckable
from countersign_evidence.entry import (
    entry_form,
    entry_host,
    is_next,
    is_same_service,
    log_entry,
    origin_mode,
)
from countersign_evidence.errors import EvidenceError
from countersign_evidence.instant import rfc3339
from countersign_evidence.key_history import check_checkpoint, follows, keys_for
from countersign_evidence.note import Checkpoint, checkpoint_of
from countersign_evidence.policy import (
    CheckedCheckpoint,
    NoQuorum,
    Policy,
    UnnamedKey,
)
from countersign_evidence.receipt import check_receipt
from countersign_evidence.tiles import TileId, TileReader, parse_tile_path, tile_nodes
from countersign_evidence.tree import (
    Node,
    fold,
    leaf_hash,
    root_over,
    subtrees,
    verify_inclusion,
)


class Shown(StrEnum):
    """The result for an alarm file."""

    PROVED = "proved"
    """The log's own signatures show it."""
    OBSERVED = "observed"
    """The file agrees with itself; that this was served is the word of its writer."""
    UNCHECKED = "unchecked"
    """It depends on a signature of a kind that this reader cannot check."""
    FAILED = "failed"
    """It does not show its claim."""


class Judged(NamedTuple):
    """An alarm after its check: outcome, reason in words, and the alarm if readable."""

    shown: Shown
    message: str
    alarm: Alarm | None = None

    @property
    def origins(self) -> list[str]:
        """The logs named by its checkpoints, whatever their signatures."""
        found = []
        for note in self.alarm.checkpoints if self.alarm else ():
            with suppress(EvidenceError):
                found.append(checkpoint_of(note).origin)
        return [*dict.fromkeys(found)]


class _Trust(NamedTuple):
    """Trusted signers: the policy's keys, and those in histories that they signed."""

    policy: Policy
    histories: tuple[bytes, ...]

    def checked(self, note: bytes) -> CheckedCheckpoint:
        """A checkpoint that a log signed. Raises EvidenceError."""
        return check_checkpoint(note, self.policy, self.histories)

    def said(self, note: bytes) -> Checkpoint:
        """The content signed by one of the log's keys. Raises EvidenceError.

        A wrong signature line next to it does not weaken the accusation: anyone can append one.
        """
        said = checkpoint_of(note)
        for key in keys_for(self.policy, said.origin, said.size, self.histories):
            with suppress(EvidenceError):
                return (
                    replace(self.policy, logs=(key,), witnesses=()).check_signature(note).checkpoint
                )
        return self.checked(note).checkpoint


def check_alarm(data: bytes, policy: Policy, histories: Sequence[bytes] = ()) -> Judged:
    """Check the file of an alarm, also by the histories of keys of its logs, and those in the file.

    Never raises, whatever the bytes are.
    """
    alarm = None
    try:
        alarm = parse_alarm(data)
        # The reader's own histories come first: those in the file must continue them. In the file,
        # the writer's own knowledge precedes the served data.
        names = dict.fromkeys([*(of_log(log.name) for log in policy.logs), KEY_HISTORY])
        held = [body for body in map(alarm.resources.get, names) if body is not None]
        known = _Trust(policy, (*histories, *held))
        return Judged(*_CHECKS[alarm.kind](alarm, known), alarm)
    except UnnamedKey as error:
        said = f"{error}; another key did, which no history of keys shows to be the log's"
        return Judged(Shown.UNCHECKED, said, alarm)
    except NotCheckable as error:
        return Judged(Shown.UNCHECKED, str(error), alarm)
    except EvidenceError as error:
        return Judged(Shown.FAILED, str(error), alarm)


def contradiction(checkpoint: Checkpoint, resources: Mapping[str, bytes | None]) -> str | None:
    """Why these tiles and entries cannot all be in the tree of the checkpoint, if so.

    Two of them may disagree about a hash; one may not belong at its path; the tiles at the right
    edge, if complete, may lead to another root.
    """
    known: dict[Node, tuple[bytes, str]] = {}
    host = entry_host(checkpoint.origin)
    for path, body in resources.items():
        if body is None:
            continue
        try:
            nodes = tile_nodes(path, body, host)
        except EvidenceError as error:
            return f"tile/{path} {error}"
        for node, hash_ in nodes:
            other, where = known.setdefault(node, (hash_, path))
            if other != hash_:
                return f"tile/{path} and tile/{where} contradict each other"

    def read(tiles: Sequence[TileId]) -> list[bytes]:
        return [resources.get(tile.path) or b"" for tile in tiles]

    try:
        root = fold(TileReader(read, checkpoint.size)(subtrees(0, checkpoint.size)))
    except EvidenceError:
        return None  # not all of the edge is there
    return None if root == checkpoint.root else "the tiles lead to another root than the signed one"


def forked(
    old: Checkpoint, new: Checkpoint, before: tuple[bytes, ...], after: tuple[bytes, ...]
) -> str | None:
    """How two checkpoints of one log contradict each other, by subtrees of the larger tree.

    None: no contradiction. Raises EvidenceError if the subtrees are not those of the larger one.
    """
    if old.size == new.size:
        return None if old.root == new.root else f"two roots for the size {old.size}"
    nodes = subtrees(0, old.size), subtrees(old.size, new.size)
    if (len(before), len(after)) != (len(nodes[0]), len(nodes[1])):
        raise EvidenceError("the subtrees are not as many as the two sizes need")
    if root_over([*nodes[0], *nodes[1]], [*before, *after]) != new.root:
        raise EvidenceError("the subtrees do not lead to the root of the larger checkpoint")
    if fold(before) == old.root:
        return None
    return (
        f"the signed tree of {new.size} does not begin with the signed tree of {old.size}: what "
        "was there before was changed"
    )


def dropped(kept: Checkpoint, record: bytes) -> str | None:
    """How the first record of the next log omits a checkpoint; None: it does not."""
    try:
        said = msgspec.json.decode(record, type=_Epoch)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise EvidenceError("not the record of an epoch") from error
    cited = []
    if said.previous_log == kept.origin:
        cited.append((said.previous_size, said.previous_root))
    if said.previous_published is not None:
        published = checkpoint_of(said.previous_published.encode())
        if published.origin == kept.origin:
            cited.append((published.size, published.root.hex()))
    if not cited:
        return f"it does not continue {kept.origin}, but {said.previous_log}"
    if kept.size > max(size for size, _ in cited):
        return f"it cites {max(cited)[0]} entries of {kept.origin}, which had signed {kept.size}"
    if any(size == kept.size and root != kept.root.hex() for size, root in cited):
        return f"it cites another root for the size {kept.size} of {kept.origin}"
    return None


class _Epoch(msgspec.Struct, tag_field="type", tag=EPOCH_RECORD):
    previous_log: str
    previous_size: int
    previous_root: str
    previous_published: str | None


def _fork(alarm: Alarm, known: _Trust) -> tuple[Shown, str]:
    old, new = sorted(_signed(alarm, known, 2), key=lambda checkpoint: checkpoint.size)
    _same_log(old, new)
    return Shown.PROVED, _found(forked(old, new, alarm.before, alarm.after))


def _shrink(alarm: Alarm, known: _Trust) -> tuple[Shown, str]:
    kept, served = _signed(alarm, known, 2)
    _same_log(kept, served)
    if served.size >= kept.size:
        raise EvidenceError("the second checkpoint is not smaller than the first")
    return Shown.OBSERVED, f"after {kept.size} entries, {served.size} were served"


def _unbacked(alarm: Alarm, known: _Trust) -> tuple[Shown, str]:
    (checkpoint,) = _signed(alarm, known, 1)
    return Shown.OBSERVED, _found(contradiction(checkpoint, _served(alarm)))


def _gap(alarm: Alarm, known: _Trust) -> tuple[Shown, str]:
    (checkpoint,) = _signed(alarm, known, 1)
    missing = [path for path, body in _served(alarm).items() if body is None]
    for path in missing:
        level, index, width = parse_tile_path(path)
        nodes = checkpoint.size >> (0 if level == "entries" else 8 * level)
        if index * 256 + width > nodes:
            raise EvidenceError(f"tile/{path} is not part of the checkpoint")
    if not missing:
        raise EvidenceError("nothing is missing")
    return Shown.OBSERVED, f"not served: {', '.join(f'tile/{path}' for path in missing)}"


def _entry(alarm: Alarm, known: _Trust) -> tuple[Shown, str]:
    (checkpoint,) = _signed(alarm, known, 1)
    entry = alarm.resources.get(ENTRY) or b""
    if alarm.index is None:
        raise EvidenceError("the alarm names no entry")
    verify_inclusion(alarm.index, checkpoint.size, leaf_hash(entry), alarm.path, checkpoint.root)
    if re.fullmatch(entry_form(entry_host(checkpoint.origin)), entry):
        raise EvidenceError("the entry has the right form")
    return Shown.PROVED, f"entry {alarm.index} is not of the form of this log's entries"


def _key(alarm: Alarm, known: _Trust) -> tuple[Shown, str]:
    (note,) = _notes(alarm, 1)
    origin = checkpoint_of(note).origin
    if origin not in {log.name for log in known.policy.logs}:
        raise EvidenceError(f"the policy names no log {origin}")
    try:
        known.checked(note)
    except NotCheckable:
        raise
    except EvidenceError as error:
        is_unnamed = isinstance(error, UnnamedKey)
        if is_unnamed and not (KEY_HISTORY in alarm.resources and follows(known.policy, origin)):
            raise  # perhaps the log has named this key
        return Shown.OBSERVED, str(error)
    raise EvidenceError("the checkpoint is signed by a key of the log")


def _quorum(alarm: Alarm, known: _Trust) -> tuple[Shown, str]:
    (note,) = _notes(alarm, 1)
    try:
        known.policy.check_quorum(known.checked(note))
    except NoQuorum as error:
        return Shown.OBSERVED, str(error)
    raise EvidenceError("the quorum of the policy is met")


def _epoch(alarm: Alarm, known: _Trust) -> tuple[Shown, str]:
    kept, new = _signed(alarm, known, 2)
    if not is_next(new.origin, kept.origin):
        raise EvidenceError(f"{new.origin} is not the epoch that follows {kept.origin}")
    record = alarm.resources.get(EPOCH_RECORD)
    if record is None:
        return Shown.OBSERVED, f"{new.origin} does not show the record with which it begins"
    leaf = leaf_hash(log_entry(new.origin, sha256(record).digest()))
    if alarm.index != 0:
        raise EvidenceError("the record of an epoch is the first entry")
    verify_inclusion(0, new.size, leaf, alarm.path, new.root)
    found = f"{new.origin}: {_found(dropped(kept, record))}"
    if not is_same_service(new.origin, kept.origin):
        # The policy may name the logs of two operators: no signature proves that one belongs to the
        # other.
        return Shown.OBSERVED, f"{found}; that it follows that log is the word of the writer"
    return Shown.PROVED, found


def _suppressed(alarm: Alarm, known: _Trust) -> tuple[Shown, str]:
    (last,) = _signed(alarm, known, 1)
    receipt = alarm.resources.get(RECEIPT) or b""
    promise = check_receipt(receipt, known.policy, known.histories)
    if origin_mode(promise.origin) != origin_mode(last.origin):
        raise EvidenceError("receipt and checkpoint are of logs of two modes")
    return Shown.OBSERVED, (
        f"{promise.origin} promised to have the record {promise.digest.hex()} by "
        f"{rfc3339(promise.sealed_by)}; that it is not among the {last.size} entries can be "
        "checked by reading them"
    )


def _replaced(alarm: Alarm, known: _Trust) -> tuple[Shown, str]:
    kept, served = _signed(alarm, known, 2)
    if kept.origin == served.origin:
        raise EvidenceError("both checkpoints are of one log")
    return Shown.OBSERVED, f"the address of {kept.origin} served {served.origin}"


def _silence(alarm: Alarm, known: _Trust) -> tuple[Shown, str]:
    (last,) = _signed(alarm, known, 1)
    return Shown.OBSERVED, f"nothing after the checkpoint of {last.size}: {alarm.message}"


_EACH: Final = (
    *(_fork, _shrink, _unbacked, _gap, _entry, _key, _quorum),
    *(_epoch, _suppressed, _replaced, _silence),
)
_CHECKS: Final = {AlarmKind(check.__name__.removeprefix("_")): check for check in _EACH}
"""Each kind has the check of its name."""


def _notes(alarm: Alarm, count: int) -> tuple[bytes, ...]:
    if len(alarm.checkpoints) != count:
        raise EvidenceError(f"such an alarm has {count} checkpoints")
    return alarm.checkpoints


def _signed(alarm: Alarm, known: _Trust, count: int) -> list[Checkpoint]:
    return [known.said(note) for note in _notes(alarm, count)]


def _served(alarm: Alarm) -> dict[str, bytes | None]:
    """The tiles and bundles of entries in it."""
    return {name: body for name, body in alarm.resources.items() if not is_history(name)}


def _same_log(one: Checkpoint, other: Checkpoint) -> None:
    if one.origin != other.origin:
        raise EvidenceError("the checkpoints are of two logs")


def _found(what: str | None) -> str:
    if what is None:
        raise EvidenceError("there is no contradiction")
    return what
