"""What a deployment owes, each with an age: the one table from which all that watches is made.

A cause can be missed; the age of the oldest thing owed cannot. `/metrics`, the doctor, `status`,
`GET /v1/deployment` and the rules in `deploy/alerts.yaml` have these promises, and their limits.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from importlib import resources
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import msgspec
from sqlalchemy import URL, Connection, func, select, text

from countersign.base.db.engine import Purpose
from countersign.base.db.schema import WATCHED_SINCE, connected, value_of
from countersign.base.db.tables import logs
from countersign.base.errors import BackupFailed, CountersignError, HeadUnavailable
from countersign.base.loops import forever
from countersign.base.values import Clock, Mode, from_ms, from_ns, rfc3339
from countersign.core.access.keys import has_live_key
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.access.secrets import read_secret
from countersign.core.log import logs_sql
from countersign.core.log.authorities import chosen_authorities, known_authorities
from countersign.core.log.check import last_check
from countersign.core.log.model import TIMESTAMP, WITNESS
from countersign.core.log.policy import witnesses_in
from countersign.core.log.record import open_disclosures
from countersign.core.privacy.erase import refusal
from countersign.core.privacy.requests import REQUEST_DAYS, requested
from countersign.core.privacy.retention import RETAINED
from countersign.operate.backup import find_backup, read_note
from countersign.operate.doctor.sight import Diagnosis, Severity, Sight, say
from countersign_evidence.note import checkpoint_of

_PART: Final = 100
"""A promise is asked about again after so small a part of its first limit, at most a while."""
_PGBACKREST_CONFIG: Final = Path("/etc/pgbackrest/pgbackrest.conf")
_STANZA: Final = "countersign"
"""As docs/high-availability.md names it; without it, the oldest of all counts."""


class DeclaredPromise(msgspec.Struct, frozen=True):
    """A row of promises.toml: limits in seconds, words, and the question to the database."""

    ticket: int
    found: str
    what_to_do: str
    page: int | None = None
    query: str = ""
    postgresql: str = ""
    mails: bool = False
    """Whether it raises alerts by e-mail, for staff who subscribed."""

    def severity(self, age: timedelta) -> Severity:
        """How bad it is that something has been owed for so long."""
        if self.page is not None and age.total_seconds() > self.page:
            return Severity.BROKEN
        return Severity.WARNING if age.total_seconds() > self.ticket else Severity.FINE


PROMISES: Final = msgspec.convert(
    tomllib.loads((resources.files(__package__) / "promises.toml").read_text("utf-8")),
    dict[str, DeclaredPromise],
)


class Owed(NamedTuple):
    """The oldest thing that is owed: since when, of what, and facts for the words."""

    promise: str
    since: datetime
    facts: Mapping[str, object]

    @property
    def of(self) -> str:
        """Tells several things of one promise apart, such as the modes of logs."""
        return str(self.facts.get("of", ""))

    def diagnosis(self, now: datetime) -> Diagnosis:
        """What the doctor says of it."""
        promise, age = PROMISES[self.promise], now - self.since
        found = f"{promise.found.format(**self.facts)}: since {rfc3339(self.since)}, {_span(age)}"
        code = f"promises.{self.promise}"
        return Diagnosis(code, promise.severity(age), found, promise.what_to_do)


def _span(age: timedelta) -> str:
    seconds = age.total_seconds()
    units = ((86400, "days"), (3600, "hours"), (60, "minutes"))
    size, unit = next((one for one in units if seconds >= 2 * one[0]), (1, "seconds"))
    return f"{seconds / size:.0f} {unit}"


def owed(look: Sight, names: Mapping[str, object] = PROMISES) -> dict[str, list[Owed]]:
    """What is owed now, by these promises. It may be young.

    Raises:
        UnseenError: the database cannot be read.
    """
    with look.reading() as connection:
        return {name: list(_owed(look, connection, name)) for name in names}


def _owed(look: Sight, connection: Connection, name: str) -> Iterator[Owed]:
    promise = PROMISES[name]
    query = promise.query or (promise.postgresql if look.embedded_url is None else "")
    if query:
        for row in connection.execute(text(query)).mappings():
            if row["since"] is not None:
                yield Owed(name, from_ms(row["since"]), dict(row))
    elif name in _ASKED:
        for since, facts in _ASKED[name](look, connection):
            yield Owed(name, since, facts)


def third_parties(look: Sight, connection: Connection) -> list[tuple[str, str, str]]:
    """Kind, name and URL of each configured witness and authority."""
    _, witnesses = witnesses_in(look.settings.witness_policy_file)
    found = [(WITNESS, w.key_name, w.url) for w in witnesses if w.url and w.verifier.checkable]
    known, names = known_authorities(), chosen_authorities(connection)
    chosen = tuple(known[name].url for name in names if name in known)
    return found + [(TIMESTAMP, url, url) for url in look.settings.timestamp_urls or chosen]


_Since: TypeAlias = Iterator[tuple[datetime, Mapping[str, object]]]


def _sealed(_: Sight, connection: Connection) -> _Since:
    for mode, (number, oldest) in logs_sql.queues(connection).items():
        yield oldest, {"of": mode.value, "number": number}


def _published(look: Sight, connection: Connection) -> _Since:
    for log in logs_sql.newest_logs(connection).values():
        try:
            note = look.heads.read(log.mode)
        except HeadUnavailable:
            continue  # records wait then
        published = None if note is None else checkpoint_of(note)
        if published is not None and published.origin == log.origin:
            for later in logs_sql.larger_than(connection, log.id, published.size, 1):
                yield later.at, {"of": log.origin}


def _time_stamped(look: Sight, connection: Connection) -> _Since:
    log = logs_sql.newest_logs(connection).get(Mode.LIVE)
    if log is None or not log.size:
        return
    begun = _founded(connection)
    parties = third_parties(look, connection)
    for kind, name, _ in parties:
        newest = logs_sql.newest_anchor(connection, log.id, kind, name)
        yield begun if newest is None else newest[1], {"of": name}
    if not parties and has_live_key(connection, look.now):
        yield begun, {"of": "any witness or time-stamp authority"}


def _answered(look: Sight, connection: Connection) -> _Since:
    """The limits are those of 45 days; an account with fewer has less time."""
    secret = read_secret(look.settings.secret_key_file)
    since = [
        one.answer_by - timedelta(days=REQUEST_DAYS)
        for one in requested(connection, secret, DEPLOYMENT)
        if refusal(connection, {}, one.cbid, DEPLOYMENT) is None
    ]
    if since:
        yield min(since), {"number": len(since)}


def _retained(_: Sight, connection: Connection) -> _Since:
    noted = value_of(connection, RETAINED)
    yield from_ms(int(noted)) if noted else _founded(connection), {}


def _backed_up(look: Sight, connection: Connection) -> _Since:
    try:
        made = _by_pgbackrest() if look.embedded_url is None else _opened_backup(look)
        if made is not None:
            yield made, {"why": "the last backup is old"}
    except CountersignError as error:
        yield _founded(connection), {"why": error.message}


def _opened_backup(look: Sight) -> datetime:
    """When the newest backup was made, of which a sample could be decrypted."""
    found = find_backup(look.settings.data_dir)
    if found.sample is not None:
        with connected(URL.create("sqlite", database=str(found.file)), Purpose.LOOK) as backup:
            asyncio.run(open_disclosures(look.vault(backup).vault, *found.sample))
    return found.made_at


def _pgbackrest() -> str | None:
    """The program, where it is installed and this user may read its settings."""
    can_read = not _PGBACKREST_CONFIG.exists() or os.access(_PGBACKREST_CONFIG, os.R_OK)
    return shutil.which("pgbackrest") if can_read else None


def _by_pgbackrest() -> datetime | None:
    """When the newest backup in its repository was made; None: it is not installed here."""
    if (program := _pgbackrest()) is None:
        return None
    asked = [program, "info", "--output=json"]
    try:
        done = subprocess.run(  # noqa: S603 - found by its name
            asked, capture_output=True, check=True, timeout=4.0
        )
        every = json.loads(done.stdout)
        stanzas = [one for one in every if one["name"] == _STANZA] or every
        made = [max(b["timestamp"]["stop"] for b in one["backup"]) for one in stanzas]
        return from_ns(min(made) * 10**9)
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError) as error:
        raise BackupFailed(f"`pgbackrest info` names no backup: {error}") from error


def _restored(look: Sight, connection: Connection) -> _Since:
    if look.embedded_url is not None:
        tried = read_note(look.settings.data_dir).restored_at
        at = tried and from_ns(int(tried) * 10**9)
        yield at if at and at <= look.now else _founded(connection), {}


def _checked(_: Sight, connection: Connection) -> _Since:
    last = last_check(connection)
    yield (last and last.clean_at) or _founded(connection), {}


def _founded(connection: Connection) -> datetime:
    """When this deployment began to be watched: with its first start, or an upgrade to that."""
    if (noted := value_of(connection, WATCHED_SINCE)) is not None:
        return from_ms(int(noted))
    at: datetime = connection.execute(select(func.min(logs.c.created_at))).scalar_one()
    return at


_ASKED: Final[Mapping[str, Callable[[Sight, Connection], _Since]]] = {
    "sealed": _sealed,
    "published": _published,
    "time_stamped": _time_stamped,
    "answered": _answered,
    "retained": _retained,
    "backed_up": _backed_up,
    "restored": _restored,
    "checked": _checked,
}


def promises(look: Sight) -> Iterator[Diagnosis]:
    """Nothing is owed for longer than it may."""
    for oldest in owed(look).values():
        for one in oldest:
            if (diagnosis := one.diagnosis(look.now)).severity is not Severity.FINE:
                yield diagnosis
    if look.embedded_url is None and _pgbackrest() is None:
        yield say("promises.unseen")
    yield say("promises.fine", number=len(PROMISES))


class PromiseWatch:
    """What is owed, as a server found it last: its age grows while nobody can look."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._look_at = dict.fromkeys(PROMISES, float("-inf"))
        self._owed: dict[str, list[Owed]] = {}
        self._looked_at: int | None = None

    async def run(self) -> None:
        """Look until cancelled."""
        self._looked_at = self._clock.time_ns()
        await forever("promises", self.look, 30.0)

    async def look(self) -> None:
        """Look once, at what was not looked at lately."""
        now = self._clock.monotonic()
        due = {name: PROMISES[name] for name, at in self._look_at.items() if now >= at}
        # In a thread, with a connection of its own: a server that is stuck is watched all the same.
        self._owed |= await asyncio.to_thread(lambda: owed(Sight(), due))
        pauses = {name: min(one.ticket / _PART, 900.0) for name, one in due.items()}
        self._look_at |= {name: now + pause for name, pause in pauses.items()}
        self._looked_at = self._clock.time_ns()

    def late(self) -> list[tuple[datetime, str]]:
        """Overdue promises that raise alerts: since when, and the text."""
        now = from_ns(self._clock.time_ns())
        return [
            (one.since + timedelta(seconds=promise.ticket), f"{said.found}\n{said.what_to_do}")
            for name, oldest in self._owed.items()
            if (promise := PROMISES[name]).mails
            for one in oldest
            if (said := one.diagnosis(now)).severity is not Severity.FINE
        ]

    def ages(self) -> dict[tuple[str, str], float]:
        """By promise and `of`: the seconds for which the oldest has been owed; 0: nothing is.

        Empty in a process that does not look.
        """
        if self._looked_at is None:
            return {}
        now = self._clock.time_ns()
        found = {(name, ""): 0.0 for name in PROMISES}
        found["watched", ""] = (now - self._looked_at) / 1e9
        for name, oldest in self._owed.items():
            for one in oldest:
                found[name, one.of] = max((from_ns(now) - one.since).total_seconds(), 0.0)
        return found
