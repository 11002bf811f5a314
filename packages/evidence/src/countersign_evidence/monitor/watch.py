"""Watching a log and its successors, one look after the other."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import IntEnum
from hashlib import sha256
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from countersign_evidence.alarm import EPOCH_RECORD, Alarm, AlarmKind
from countersign_evidence.check_alarm import dropped
from countersign_evidence.entry import is_next, log_entry
from countersign_evidence.errors import EvidenceError
from countersign_evidence.files import replace_file
from countersign_evidence.instant import from_ns
from countersign_evidence.monitor.reading import Reader, Wrong
from countersign_evidence.monitor.receipts import Receipts, check_receipts
from countersign_evidence.monitor.round import (
    AlarmFound,
    Unchecked,
    Watch,
    check_log,
    with_resources,
)
from countersign_evidence.monitor.source import LogSource, Missing, Unreachable
from countersign_evidence.monitor.state import Kept
from countersign_evidence.note import checkpoint_of
from countersign_evidence.tree import leaf_hash, verify_inclusion

_EPOCH: Final = re.compile(r".*(/v1/log/(?:test|live)/)([1-9][0-9]{0,8})", re.ASCII)
_RECORD_BYTES_MAX: Final = 4_000_000


class LookStatus(IntEnum):
    """The result of a check; the exit status of the command."""

    CONSISTENT = 0
    ALARM = 1
    UNCHECKED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The result of one look."""

    status: LookStatus
    message: str
    alarm_file: Path | None = None
    kind: AlarmKind | None = None

    @classmethod
    def of(cls, alarm: Alarm, file: Path) -> Seen:
        """An alarm, which was written to this file."""
        message = f"ALARM ({alarm.kind}): {alarm.message}"
        return cls(status=LookStatus.ALARM, message=message, alarm_file=file, kind=alarm.kind)

    def view(self) -> dict[str, str | None]:
        """The result as JSON."""
        return {
            "status": self.status.name.lower(),
            "message": self.message,
            "alarm": None if self.kind is None else self.kind.value,
            "file": None if self.alarm_file is None else str(self.alarm_file),
        }


async def look(watch: Watch, source: LogSource) -> Seen:
    """Check the log at this address and all that follow it; whatever happens is a result."""
    known, began = watch.state.logs(), from_ns(watch.clock())
    histories = {kept.origin: None if kept.keys is None else kept.keys.encode() for kept in known}
    watch = replace(watch, histories=histories)
    try:
        try:
            receipts = None if watch.receipts is None else Receipts(watch.receipts, watch)
            watch = watch if receipts is None else replace(watch, seen=receipts.seen)
            checked = await _all_epochs(watch, source, known)
            for kept in checked[-1:]:
                _check_growth(watch, kept)
            if receipts is not None:
                await check_receipts(receipts, watch, source, checked, began)
        except (Unreachable, Unchecked) as error:
            _check_silence(watch, source, known, str(error))
            seen = Seen(status=LookStatus.UNCHECKED, message=str(error))
        else:
            for kept in checked:
                watch.state.keep(replace(kept, checked_at=watch.now))
            seen = _all_right(checked, receipts, began)
    except AlarmFound as found:
        seen = Seen.of(found.alarm, watch.state.write_alarm(found.alarm))
    _write_metrics(watch, seen)
    return seen


def _all_right(checked: Sequence[Kept], receipts: Receipts | None, began: datetime) -> Seen:
    """The logs are; a receipt that cannot be read is not their fault, so never becomes an alarm."""
    if receipts is not None and (unread := receipts.unread(checked, began)):
        return Seen(status=LookStatus.UNCHECKED, message="; ".join(unread))
    said = ", ".join(f"{kept.origin}: {kept.tree.size} entries" for kept in checked)
    return Seen(status=LookStatus.CONSISTENT, message=f"consistent: {said}")


async def follow(
    watch: Watch, source: LogSource, every: timedelta, say: Callable[[Seen], None]
) -> Seen:
    """Look again and again, until there is an alarm."""
    while True:
        seen = await look(watch, source)
        if seen.status is LookStatus.ALARM:
            return seen
        say(seen)
        await source.pause(every.total_seconds())


async def _all_epochs(watch: Watch, source: LogSource, known: Sequence[Kept]) -> list[Kept]:
    checked = [await check_log(watch, source, known)]
    # At the address of a copy, no other log follows.
    while (found := _EPOCH.fullmatch(source.url)) and checked[-1].origin.endswith(
        found[1] + found[2]
    ):
        source = source.at(f"{source.url[: found.start(2)]}{int(found[2]) + 1}")
        try:
            await source.get("checkpoint", 1)
        except Missing:
            if any(kept.url == source.url for kept in known):
                raise Unreachable(f"{source.url} is not served any more") from None
            break
        checked.append(await check_log(watch, source, known))
        await _check_beginning(watch, source, *checked[-2:])
    return checked


async def _check_beginning(watch: Watch, source: LogSource, old: Kept, new: Kept) -> None:
    """Check that a log's first record cites everything that the previous log had signed."""
    if not new.tree.size or old.note is None or new.note is None:
        return
    notes = old.note.encode(), new.note.encode()
    kept, head = map(checkpoint_of, notes)
    if not is_next(head.origin, kept.origin):
        raise Unchecked(f"{source.url} is {head.origin}, which does not follow {kept.origin}")
    try:
        record: bytes | None = await source.get(EPOCH_RECORD, _RECORD_BYTES_MAX)
    except Missing:
        record = None
    path: list[bytes] = []
    message: str | None = f"{head.origin} does not show the record with which it begins"
    if record is not None:
        leaf = leaf_hash(log_entry(head.origin, sha256(record).digest()))
        try:
            path = await Reader(source.get, head).path(0)
            verify_inclusion(0, head.size, leaf, path, head.root)
            message = dropped(kept, record)
        except Wrong as wrong:
            raise Unreachable(f"{source.url}: {wrong.message}") from wrong
        except EvidenceError:
            record = None  # another record is served
    if message is not None:
        alarm = watch.alarm(AlarmKind.EPOCH, source.url, message, *notes)
        alarm = with_resources(alarm, {EPOCH_RECORD: record})
        raise AlarmFound(replace(alarm, index=0, path=tuple(path)))


def _check_growth(watch: Watch, kept: Kept) -> None:
    if watch.frozen is None or kept.note is None:
        return
    if watch.now - kept.grown_at > watch.frozen.total_seconds():
        message = f"{kept.origin} has not grown for {timedelta(seconds=watch.now - kept.grown_at)}"
        note = kept.note.encode()
        raise AlarmFound(watch.alarm(AlarmKind.SILENCE, kept.url, message, note))


def _check_silence(watch: Watch, source: LogSource, known: Sequence[Kept], why: str) -> None:
    for kept in known:
        silent, own = watch.now - kept.checked_at, _is_of_chain(kept.url, source.url)
        if own and kept.note is not None and silent > watch.silence.total_seconds():
            message = f"{kept.origin} could not be checked for {timedelta(seconds=silent)}: {why}"
            note = kept.note.encode()
            raise AlarmFound(watch.alarm(AlarmKind.SILENCE, source.url, message, note))


def _is_of_chain(url: str, first: str) -> bool:
    """Whether a monitor that begins at `first` also reads the log at this address."""
    one, begin = _EPOCH.fullmatch(url), _EPOCH.fullmatch(first)
    if one is None or begin is None:
        return url == first
    is_same = url[: one.start(2)] == first[: begin.start(2)]
    return is_same and int(one[2]) >= int(begin[2])


def _write_metrics(watch: Watch, seen: Seen) -> None:
    """Metrics as a text file, for the text file collector of a node exporter."""
    registry = CollectorRegistry()

    def gauge(name: str, help_: str, *labels: str) -> Gauge:
        return Gauge(f"countersign_monitor_{name}", help_, labels, registry=registry)

    gauge("status", "0 consistent, 1 alarm, 2 could not be checked").set(seen.status)
    gauge("run_timestamp_seconds", "When the monitor looked last").set(watch.now)
    alarms = len(list((watch.state.directory / "alarms").glob("*.json")))
    gauge("alarm_files", "Files of alarms in the directory").set(alarms)
    size = gauge("entries", "Entries that were checked", "log")
    checked = gauge("checked_timestamp_seconds", "When all was found right last", "log")
    grown = gauge("grown_timestamp_seconds", "When there were new entries last", "log")
    for kept in watch.state.logs():
        size.labels(kept.origin).set(kept.tree.size)
        checked.labels(kept.origin).set(kept.checked_at)
        grown.labels(kept.origin).set(kept.grown_at)
    replace_file(watch.state.directory / "metrics.prom", generate_latest(registry), 0o644)
