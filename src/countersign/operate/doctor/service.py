"""Checks of what the service keeps and promises: logs, keys, notices, webhooks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from sqlalchemy import Connection, text

from countersign.base.errors import HeadUnavailable
from countersign.base.instant import rfc3339
from countersign.base.mode import Mode
from countersign.core.access.keys import has_live_key
from countersign.core.access.secrets import read_secret
from countersign.core.log import logs_sql
from countersign.core.log.check_records import unmatched_events
from countersign.core.log.fork_guard import (
    kept_elsewhere,
    lost_tail,
    why_not,
    why_suspended,
)
from countersign.core.log.keys import LogKeys
from countersign.core.log.model import Log
from countersign.core.log.sequencer import Sequencer
from countersign.core.notices.registry import KnownNotices, all_versions, revision_of
from countersign.core.vault import data_keys_sql
from countersign.operate.doctor.finding import Diagnosis, say
from countersign.operate.doctor.sight import Sight
from countersign_evidence.note import checkpoint_of

_WAITING_SECONDS: Final = 60
_STUCK_SECONDS: Final = 600
_SOON: Final = timedelta(days=7)


def keys(look: Sight) -> Iterator[Diagnosis]:
    """The keys at hand are those of this database, and of all its data keys."""
    secret = read_secret(look.settings.secret_key_file)
    with look.reading() as connection:
        known = text("SELECT value FROM deployment WHERE name = 'secret_check'")
        kept = connection.execute(known).scalar_one_or_none()
        wrapping = data_keys_sql.counts(connection)
        ring = look.vault(connection).encryption
    if bytes(kept or b"") != secret.check_value():
        yield say("keys.other_secret")
    lost = [id_.hex() for id_ in wrapping if id_ not in ring.ids]
    if lost:
        yield say("keys.lost", ids=", ".join(lost))
    yield say("keys.fine", number=len(ring.ids))


def log_keys(look: Sight) -> Iterator[Diagnosis]:
    """Each key of the newest logs signs."""

    async def sign(connection: Connection) -> list[tuple[Log, str, str | None]]:
        own = LogKeys(look.vault(connection), Sequencer(look.clock, look.heads), look.settings)
        return [
            (log, key.vkey, await own.why_unusable(log, key))
            for log in newest_logs(connection).values()
            for key in logs_sql.keys_of(connection, log.id)
            if key.retires_at is None or look.now < key.retires_at
        ]

    with look.reading() as connection:
        found = asyncio.run(sign(connection))
    for log, vkey, why in found:
        if why is not None:
            yield say("log_keys.unusable", key=vkey[:60], log=log.origin, why=why)
    yield say("log_keys.fine", number=len(found))


def logs(look: Sight) -> Iterator[Diagnosis]:
    """The database goes with what was published last, and nothing waits for long."""
    said, heads, place = [], look.heads, look.settings.log_head_dir
    try:
        if isinstance(place, str):
            heads.check()  # in a directory it would leave files of another user
    except HeadUnavailable as error:
        yield say("logs.head_file", why=error.message)
    with look.reading() as connection:
        queues = logs_sql.queues(connection)
        for mode, log in newest_logs(connection).items():
            number, oldest = queues.get(mode, (0, None))
            seconds = 0.0 if oldest is None else (look.now - oldest).total_seconds()
            said.append(f"{mode.value} {log.size} entries, {number} waiting")
            try:
                kept = heads.kept(mode)
            except HeadUnavailable as error:
                yield say("logs.head_file", why=error.message)
                continue
            why = (
                why_suspended(connection, mode)
                or kept_elsewhere(connection, kept.place)
                or why_not(connection, mode, kept.note)
                or lost_tail(connection, mode, heads.accepted(mode))
            )
            if why is not None:
                yield say("logs.suspended", mode=mode.value, why=why)
            if seconds > _WAITING_SECONDS:
                code = "logs.stuck" if seconds > _STUCK_SECONDS else "logs.waiting"
                yield say(code, number=number, mode=mode.value, seconds=seconds)
            published = None if kept.note is None else checkpoint_of(kept.note)
            behind = 0 if published is None else log.size - published.size
            late = look.now - log.at > timedelta(seconds=_WAITING_SECONDS)
            if published is not None and published.origin == log.origin and behind > 0 and late:
                yield say("logs.unpublished", number=behind, log=log.origin, at=rfc3339(log.at))
            if log.at > look.now + timedelta(seconds=5):
                yield say("logs.future", log=log.origin, at=rfc3339(log.at))
    yield say("logs.fine", logs="; ".join(said), place=place)


def newest_logs(connection: Connection) -> dict[Mode, Log]:
    """The newest log of each mode."""
    return {log.mode: log for log in logs_sql.all_logs(connection)}


def notices(look: Sight) -> Iterator[Diagnosis]:
    """Of each there is a version in force for live keys, now and soon."""
    now, said = look.now, []
    with look.reading() as connection:
        every = all_versions(connection, look.settings.time_zone)
        known = KnownNotices(revision_of(connection), every)
        has_live = has_live_key(connection, now)
        unmatched = dict.fromkeys(why for _, why in unmatched_events(connection))
    for why in unmatched:
        yield say("notices.unmatched", why=why)
    for notice, versions in sorted(every.items()):
        live = known.current(notice, Mode.LIVE, now, remember=False)
        if live is not None:
            said.append(f"{notice} {live.content.version} is in force")
        elif has_live:
            yield say("notices.not_in_force", notice=notice)
        else:
            said.append(f"{notice} is not in force for live keys, of which there are none")
        for version in versions:
            if now < version.effective_at <= now + _SOON and version.removal is None:
                number, at = version.content.version, rfc3339(version.effective_at)
                said.append(f"{notice} {number} from {at}")
                if version.review is None:
                    yield say("notices.unreviewed", notice=notice, version=number, at=at)
    if not every:
        yield say("notices.none")
    yield say("notices.fine", notices="; ".join(said))
