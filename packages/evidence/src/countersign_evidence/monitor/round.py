"""One round of a log: whether its present state continues the last one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from secrets import randbelow
from typing import Final, TypeAlias

from countersign_evidence.alarm import KEY_HISTORY, Alarm, AlarmKind, of_log
from countersign_evidence.check_alarm import forked
from countersign_evidence.encoding import NotCheckable
from countersign_evidence.errors import EvidenceError
from countersign_evidence.instant import from_ns, rfc3339
from countersign_evidence.key_history import (
    check_checkpoint,
    check_history,
    follows,
    known_history,
)
from countersign_evidence.monitor.reading import Keep, Reader, Wrong, nothing
from countersign_evidence.monitor.source import (
    PAUSE_SECONDS,
    TRIES,
    LogSource,
    Missing,
    Unreachable,
)
from countersign_evidence.monitor.state import Kept, ReadTree, State
from countersign_evidence.note import NOTE_BYTES_MAX, Checkpoint, checkpoint_of, parse_note
from countersign_evidence.policy import (
    CheckedCheckpoint,
    NoQuorum,
    Policy,
    UnnamedKey,
)
from countersign_evidence.tiles import HEIGHT, WIDTH
from countersign_evidence.tree import subtrees

SAMPLE: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """The parts to read again: a slice of the log that follows the clock, and a sample."""

    whole: timedelta = timedelta(days=7)
    """The period in which everything is read again once."""
    sample: int = SAMPLE
    """Bundles drawn at random for each look, so that every change can be detected at any time."""
    pick: Callable[[int], int] = randbelow
    """Draws a number below this one."""

    def due(self, before: int, size: int, since: int, now: int) -> Sequence[int]:
        """The numbers of the bundles to read again in a look at a tree of this size.

        The last look went up to the time `since` (Unix seconds), when there were `before` entries.
        Each part begins at the end of the last one.
        """
        then, count = _bundles(before), _bundles(size)
        if not count:
            return []
        period = max(1, int(self.whole.total_seconds()))
        start, end = (since % period) * then // period, (now % period) * count // period
        if now - since >= period:
            part = {*range(count)}
        elif since // period == now // period:
            part = {*range(start, end)}
        else:
            part = {*range(start, count), *range(end)}
        return sorted(part | {self.pick(count) for _ in range(self.sample)})


def _bundles(size: int) -> int:
    return (size + WIDTH - 1) >> HEIGHT


WEEKLY: Final = Again()
"""The default."""


OnProgress: TypeAlias = Callable[[str, int, int], None]
"""Called with the log, the number of entries read, and the total."""


class AlarmFound(Exception):
    """The log breaks its rules."""

    def __init__(self, alarm: Alarm) -> None:
        super().__init__(alarm.message)
        self.alarm = alarm


class Unchecked(Exception):
    """The log cannot be checked with this policy, or by this program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The trusted signers, and the current time."""

    policy: Policy
    clock: Callable[[], int]
    """Unix time in nanoseconds."""
    histories: dict[str, bytes | None] = field(default_factory=dict)
    """The history of keys of each log in this look; None: no valid one."""
    earlier: dict[str, bytes] = field(default_factory=dict)
    """The previous history of a log that continues in this look."""

    def history(self, origin: str) -> tuple[bytes, ...]:
        """The known histories of this log's keys: the newest, and the one that it continues."""
        found = self.earlier.get(origin), self.histories.get(origin)
        return tuple(note for note in found if note is not None)

    @property
    def now(self) -> int:
        """Unix seconds."""
        return self.clock() // 1_000_000_000

    def alarm(self, kind: AlarmKind, url: str, message: str, *notes: bytes) -> Alarm:
        """An alarm of this moment, with the histories of the keys of its logs."""
        at = rfc3339(from_ns(self.clock()))
        histories = self.kept_of(*(checkpoint_of(note).origin for note in notes))
        return Alarm(kind, url, at, message, notes, resources=histories)

    def kept_of(self, *origins: str) -> dict[str, bytes | None]:
        """The histories of these logs that are known, as an alarm has them."""
        return {
            name: note
            for origin in origins
            for name, note in zip((of_log(origin), KEY_HISTORY), self.history(origin), strict=False)
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch(Look):
    """The same, of a monitor that remembers."""

    state: State
    progress: OnProgress
    silence: timedelta = timedelta(days=1)
    """Alarm if a log could not be checked for longer."""
    frozen: timedelta | None = None
    """Alarm if a log has not grown for longer; None: never."""
    receipts: Path | None = None
    """A folder with receipts, whose promises are checked."""
    again: Again = WEEKLY
    """Which earlier entries are read again."""
    seen: Callable[[str], Keep] = lambda _origin: nothing
    """Gets the tiles of a log as they are read; called again if the reading begins again."""


async def check_log(watch: Watch, source: LogSource, known: Sequence[Kept]) -> Kept:
    """Check all that a log has published since, and save the checked state.

    `known` are the saved states of all logs. Raises AlarmFound, Unchecked, or Unreachable.
    """
    note, served = await signed_checkpoint(watch, source)
    for other in known:
        if other.url == source.url and other.note and other.origin != served.origin:
            message = f"the address of {other.origin} serves {served.origin}"
            notes = other.note.encode(), note
            raise AlarmFound(watch.alarm(AlarmKind.REPLACED, source.url, message, *notes))
    # A log is identified by its name, whatever the address of this copy.
    of_log = [one for one in known if one.origin == served.origin]
    kept = of_log[0] if of_log else Kept(origin=served.origin, url="", grown_at=watch.now)
    if kept.note is not None:
        note, served = await not_smaller(watch, source, kept.note.encode(), note)
        await continues(watch, source, kept.note.encode(), note)
    began = watch.now
    with accusing(watch, source, note):
        tree = await _read_up_to(watch, source, kept, served)
        if kept.note is not None:  # at the first look all of it is new
            since = kept.again_at or kept.checked_at
            due = watch.again.due(kept.tree.size, served.size, since, began)
            await read_again(source, Reader(source.get, served), due)
    now, grown = watch.now, tree.size > kept.tree.size
    kept = replace(
        kept,
        url=source.url,
        note=note.decode(),
        keys=next((keys.decode() for keys in reversed(watch.history(kept.origin))), None),
        tree=tree,
        reading=None,
        # The whole look decides later whether all was right: from here on it may only fail.
        checked_at=now if kept.note is None else kept.checked_at,
        grown_at=now if grown else kept.grown_at,
        again_at=began,
    )
    if grown:
        watch.state.keep_head(kept.origin, note, from_ns(watch.clock()))
    watch.state.keep(kept)
    return kept


async def signed_checkpoint(look: Look, source: LogSource) -> tuple[bytes, Checkpoint]:
    """The checkpoint that a log serves, signed as the policy asks."""
    try:
        note = await source.get("checkpoint", NOTE_BYTES_MAX)
    except Missing as error:
        raise Unreachable(f"{source.url} has no checkpoint: is it the address of a log?") from error
    try:
        origin = checkpoint_of(note).origin
    except EvidenceError as error:
        raise Unreachable(f"{source.url}/checkpoint is not a checkpoint: {error}") from error
    if origin not in {log.name for log in look.policy.logs}:
        raise Unchecked(f"the policy names no log {origin}: get the operator's present policy")
    try:
        checked = await _signed(look, source, note)
        look.policy.check_quorum(checked)
    except NotCheckable as error:
        raise Unchecked(f"{origin}: {error}") from error
    except NoQuorum as error:
        raise AlarmFound(look.alarm(AlarmKind.QUORUM, source.url, str(error), note)) from error
    except EvidenceError as error:
        raise AlarmFound(look.alarm(AlarmKind.KEY, source.url, str(error), note)) from error
    return note, checked.checkpoint


async def _signed(look: Look, source: LogSource, note: bytes) -> CheckedCheckpoint:
    """The checkpoint, signed by a key of the policy, or by one that its keys name in a history.

    The history is requested once for each log, and whenever there is a signature by an unknown key:
    while the previous key signs too, the history is most reliable.
    """
    origin = checkpoint_of(note).origin
    try:
        checked = check_checkpoint(note, look.policy, look.history(origin))
    except UnnamedKey:
        served = await learn_keys(look, source, origin)
        try:
            return check_checkpoint(note, look.policy, look.history(origin))
        except UnnamedKey as error:
            if not follows(look.policy, origin):
                raise Unchecked(
                    f"{error}; no Ed25519 key of the policy can show whether the log has a new "
                    "one: get the operator's present policy"
                ) from error
            alarm = look.alarm(AlarmKind.KEY, source.url, str(error), note)
            raise AlarmFound(with_resources(alarm, {KEY_HISTORY: served})) from error
    if origin not in look.histories or _has_unknown_key(look, origin, note):
        look.histories.setdefault(origin, None)
        with suppress(Unreachable):  # nothing more has to be known
            await learn_keys(look, source, origin)
    return checked


async def learn_keys(look: Look, source: LogSource, origin: str) -> bytes | None:
    """Request the history of this log's keys, and accept it if it continues the known one.

    Returns the response, None if there is none. Raises Unreachable.
    """
    try:
        served = await source.get(KEY_HISTORY, NOTE_BYTES_MAX)
    except Missing:
        return None
    own = [key for key in look.policy.logs if key.name == origin]
    before = known_history(look.policy, origin, look.history(origin))
    with suppress(EvidenceError):
        check_history(served, own, before)
        known = look.histories.get(origin)
        if known is not None and known != served:
            look.earlier.setdefault(origin, known)
        look.histories[origin] = served
    return served


def _has_unknown_key(look: Look, origin: str, note: bytes) -> bool:
    history = known_history(look.policy, origin, look.history(origin))
    keys = [*look.policy.logs, *(history.keys if history else ())]
    known = {key.signs_as for key in keys}
    return any(line.name == origin and line.by not in known for line in parse_note(note).signatures)


async def not_smaller(
    look: Look, source: LogSource, kept: bytes, note: bytes
) -> tuple[bytes, Checkpoint]:
    """A checkpoint at least as large as the kept one; several servers may differ for a moment."""
    head, served = checkpoint_of(kept), checkpoint_of(note)
    for _ in range(TRIES):
        if served.size >= head.size:
            return note, served
        await source.pause(PAUSE_SECONDS)
        note, served = await signed_checkpoint(look, source)
    if served.origin == head.origin and served.size < head.size:
        try:
            await continues(look, source, note, kept)
        except Unreachable:
            pass  # the smaller one is enough of an alarm
        except AlarmFound as found:
            # A copy that lags behind need not have the tiles of the larger one.
            if found.alarm.kind not in {AlarmKind.GAP, AlarmKind.UNBACKED}:
                raise
        message = f"after {head.size} entries, {served.size} are served"
        raise AlarmFound(look.alarm(AlarmKind.SHRINK, source.url, message, kept, note))
    return note, served


async def continues(look: Look, source: LogSource, old_note: bytes, new_note: bytes) -> None:
    """Check that the larger tree begins with the smaller one. AlarmFound: it does not."""
    old, new = checkpoint_of(old_note), checkpoint_of(new_note)
    reader = Reader(source.get, new)
    before: tuple[bytes, ...] = ()
    after: tuple[bytes, ...] = ()
    with accusing(look, source, new_note):
        if old.size < new.size:
            nodes = subtrees(0, old.size), subtrees(old.size, new.size)
            found = await reader.nodes([*nodes[0], *nodes[1]])
            before, after = tuple(found[: len(nodes[0])]), tuple(found[len(nodes[0]) :])
        try:
            message = forked(old, new, before, after)
        except EvidenceError as error:
            raise await reader.wrong_edge() from error
    if message is not None:
        alarm = look.alarm(AlarmKind.FORK, source.url, message, old_note, new_note)
        raise AlarmFound(replace(alarm, before=before, after=after))


async def _read_up_to(watch: Watch, source: LogSource, kept: Kept, served: Checkpoint) -> ReadTree:
    """Read every entry and tile up to this checkpoint. Raises Wrong, if it is so twice."""
    begin = kept.tree
    if kept.reading is not None and kept.tree.size <= kept.reading.size <= served.size:
        begin = kept.reading
    try:
        return await _grow(watch, source, kept, begin, served)
    except Wrong:
        # The file may have been incomplete, or the data of an earlier run may be wrong.
        await source.pause(PAUSE_SECONDS)
        return await _grow(watch, source, kept, kept.tree, served)


async def read_again(source: LogSource, reader: Reader, due: Sequence[int]) -> None:
    """Read these bundles once more. Raises Wrong if one of them is wrong twice."""
    try:
        await reader.again(due)
    except Wrong:
        await source.pause(PAUSE_SECONDS)
        await reader.again(due)


async def _grow(
    watch: Watch, source: LogSource, kept: Kept, begin: ReadTree, served: Checkpoint
) -> ReadTree:
    reader = Reader(source.get, served, watch.seen(served.origin))
    tree = begin.grown()

    def save(size: int) -> None:
        watch.state.keep(replace(kept, reading=ReadTree.of(tree)))
        watch.progress(served.origin, size, served.size)

    await reader.grow(tree, save)
    return ReadTree.of(tree)


@contextmanager
def accusing(look: Look, source: LogSource, note: bytes) -> Iterator[None]:
    """What is Wrong inside, under this checkpoint, is an alarm: AlarmFound."""
    try:
        yield
    except Wrong as wrong:
        alarm = look.alarm(wrong.kind, source.url, wrong.message, note)
        alarm = with_resources(alarm, wrong.resources)
        raise AlarmFound(replace(alarm, index=wrong.index, path=tuple(wrong.path))) from wrong


def with_resources(alarm: Alarm, more: Mapping[str, bytes | None]) -> Alarm:
    """An alarm with further resources."""
    return replace(alarm, resources={**alarm.resources, **more})
