"""The subjects of checks: settings, database, network. It changes nothing."""

from __future__ import annotations

import os
import ssl
import threading
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from functools import cached_property
from importlib import resources
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import httpx2
from sqlalchemy import URL, Connection, text

from countersign.base.config import Settings, load_settings
from countersign.base.db import schema
from countersign.base.db.database import Database
from countersign.base.db.engine import Purpose, is_embedded, url_of
from countersign.base.errors import CountersignError, HeadUnavailable, InvalidConfiguration
from countersign.base.generics import T
from countersign.base.values import from_ns
from countersign.core.access.room import open_access
from countersign.core.access.secrets import read_secret
from countersign.core.log.head_files import Heads
from countersign.core.log.head_store import open_heads
from countersign.core.vault.key_encryption import KeyRing, key_source
from countersign.core.vault.vault import VaultRoom, open_vault
from countersign.operate.bootstrap import SystemClock, remains

C = TypeVar("C")


class Severity(StrEnum):
    """How bad it is; the best first."""

    FINE = "fine"
    MISSING = "missing"
    """A fact that is not recorded, or could not be read."""
    WARNING = "warning"
    BROKEN = "broken"


EXIT: Final = {Severity.FINE: 0, Severity.MISSING: 0, Severity.WARNING: 1, Severity.BROKEN: 2}
"""The exit status of the command, higher for worse results; 0: nothing to do."""


class Diagnosis(NamedTuple):
    """One line: its name in the table, the finding, and what to do."""

    code: str
    severity: Severity
    found: str
    what_to_do: str


Check: TypeAlias = Callable[[C], Iterator[Diagnosis]]
"""Looks at one thing. If there is a problem, the check's good results are left out."""

FINDINGS: Final[Mapping[str, Mapping[str, Mapping[str, str]]]] = tomllib.loads(
    (resources.files(__package__) / "findings.toml").read_text("utf-8")
)


class UnseenError(Exception):
    """The input of the check is unavailable; another check reports why."""


def say(code: str, /, **values: object) -> Diagnosis:
    """The finding of this name, such as `disk.full`, with these values in its words."""
    check, _, name = code.partition(".")
    words = FINDINGS[check][name]
    said = (words.get(key, "").format(**values) for key in ("found", "what_to_do"))
    # The words of an error can have several lines.
    lines = (" ".join(one.split()) for one in said)
    return Diagnosis(code, Severity(words.get("severity", "fine")), *lines)


def queried(connection: Connection, check: str) -> Iterator[Diagnosis]:
    """The findings of a check that queries the database: one per row."""
    now = {"now": time.time_ns() // 10**6}
    for name, words in FINDINGS[check].items():
        if "query" in words:
            for row in connection.execute(text(words["query"]), now).mappings():
                yield say(f"{check}.{name}", **dict[str, Any](row))


SECONDS: Final = 6.0
"""How long all checks together take at most; some of them work at the same time."""
ASK_SECONDS: Final = 4.0


class Asked(NamedTuple):
    """The response of a server on the network."""

    status: int
    body: str
    ahead: float | None
    """By how many seconds this machine's clock is ahead of that server's; None: unknown."""
    ends_at: datetime | None
    """When its certificate ends."""


class Sight:
    """One look at a deployment, by all checks at the same time."""

    def __init__(
        self, environment: Mapping[str, str] = os.environ, seconds: float = SECONDS
    ) -> None:
        self.environment = environment
        self.seconds = seconds
        self.clock = SystemClock()
        self.mistakes = ""
        self._settings: Settings | None = None
        self._sessions = threading.Semaphore(3)
        try:
            self._settings = load_settings(environment)
            self.url = url_of(self._settings)
        except InvalidConfiguration as error:
            self._settings, self.mistakes = None, error.message

    @property
    def settings(self) -> Settings:
        """The settings, if they are valid."""
        if self._settings is None:
            raise UnseenError("the settings are not valid")
        return self._settings

    @property
    def now(self) -> datetime:
        """The time of this machine."""
        return from_ns(self.clock.time_ns())

    @property
    def embedded_url(self) -> URL | None:
        """The URL of the embedded database; None on PostgreSQL."""
        _ = self.settings
        return self.url if is_embedded(self.url) else None

    @cached_property
    def schema_refusal(self) -> CountersignError | None:
        """Why this release does not serve the database; None: it does."""
        _ = self.settings
        try:
            schema.check(self.url, Purpose.LOOK)
        except CountersignError as error:
            return error
        return None

    @property
    def is_new(self) -> bool:
        """Whether there is no trace of an earlier deployment."""
        try:
            return not any(remains(self.settings).values())
        except HeadUnavailable:
            return False

    @cached_property
    def heads(self) -> Heads:
        """The place of the last published checkpoints."""
        return open_heads(self.settings.log_head_dir)

    @contextmanager
    def session(self) -> Iterator[Connection]:
        """A connection that only reads, whatever schema it has."""
        _ = self.settings
        with self._sessions, schema.connected(self.url, Purpose.LOOK) as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """The same of a database with the schema of this release."""
        if self.schema_refusal is not None:
            raise UnseenError("the database cannot be read: see `database` and `schema`")
        with self.session() as connection:
            yield connection

    def vault(self, connection: Connection) -> VaultRoom:
        """The vault over a connection, whose values can be read."""
        settings = self.settings
        access = open_access(
            _Seen(connection),
            read_secret(settings.secret_key_file),
            operator="",
            clock=self.clock,
            entropy=os.urandom,
        )
        ring = KeyRing(key_source(settings.key_encryption_key), os.urandom)
        return open_vault(access, ring, None)

    def ask(self, url: str, **options: Any) -> Asked | str:  # noqa: ANN401 - those of httpx2
        """The response of the server at this URL, or the reason for none, as text."""
        try:
            with (
                httpx2.Client(timeout=ASK_SECONDS, follow_redirects=False, **options) as client,
                client.stream("GET", url) as response,
            ):
                # Before the body, after which the connection can be closed.
                channel = response.extensions["network_stream"].get_extra_info("ssl_object")
                held = channel.getpeercert() if channel is not None else None
                ends = ssl.cert_time_to_seconds(held["notAfter"]) if held else None
                at, body = self.clock.time_ns() / 1e9, b""
                for piece in response.iter_bytes():
                    body += piece
                    if len(body) > 4096:
                        break
                said = response.headers.get("date")
                ahead = None if said is None else at - parsedate_to_datetime(said).timestamp()
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, OSError) as error:
            return f"{type(error).__name__}: {error}"
        ends_at = None if ends is None else from_ns(int(ends) * 10**9)
        return Asked(response.status_code, body.decode(errors="replace"), ahead, ends_at)


class _Seen(Database):
    """A connection used in place of the database by a room that only reads."""

    def __init__(self, connection: Connection) -> None:  # starts no batchers
        self._connection = connection

    async def read(self, act: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - any act
        return act(self._connection, *args, **kwargs)


def together(jobs: Sequence[Callable[[], T]], seconds: float) -> list[T | None]:
    """The results of concurrent calls; None: no result within `seconds`."""
    done: list[T | None] = [None] * len(jobs)

    def do(place: int) -> None:
        done[place] = jobs[place]()

    # Not a pool: at its end the process would wait for calls that hang.
    threads = [
        threading.Thread(target=do, args=(place,), daemon=True) for place in range(len(jobs))
    ]
    for thread in threads:
        thread.start()
    until = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return [*done]
