"""What the commands share: arguments, the deployment, progress, and cells of a table."""

from __future__ import annotations

import asyncio
import csv
import io
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Final, TypeAlias

import click
import msgspec
import structlog

from countersign.base.generics import P, R, T
from countersign.base.host import is_loopback, is_wildcard
from countersign.base.values import Mode
from countersign_evidence.cli.support import command, say
from countersign_evidence.entry import entry_host

A_MODE: Final = click.Choice([mode.value for mode in Mode])
"""The type of an option that is a mode."""
A_FILE: Final = click.Path(dir_okay=False, path_type=Path)
"""The type of an option that is a file, there or not."""
EXPLAINED: Final = {
    "account": "the id or name of an account",
    "account_id": "the id or name of an account",
    "accounts create name": "the name of the new account; no other account may have the same name, "
    "even with other letter case",
    "backup directory": "where to write the backup to",
    "cbid": "the identifier of a buyer (cbid_…)",
    "endpoint_id": "the id of a webhook endpoint (whe_…)",
    "erase subject": "the id of an acknowledgment, a verification or a buyer",
    "event_id": "the id of an event (evt_…)",
    "fault": "the fault to simulate",
    "hold_id": "the id of a hold; `countersign holds list` shows the ids",
    "key_id": "the id of a key (key_…), not the key itself; `countersign keys list` shows the ids",
    "kid": "the id of a clearance key; `countersign clearances keys` shows the ids",
    "members name": "the name of a person, or the id (per_…)",
    "new": "a published version, or a notice file",
    "notice_id": "the id of a notice, such as ab1263",
    "notices file": "a notice file (TOML)",
    "old": "a published version",
    "person_id": "the name of a person, or the id (per_…)",
    "place subject": "the id of any record of an order, a buyer or an account",
    "restore directory": "the directory of a backup",
    "staff name": "the name of a person, or the id (per_…)",
    "status": "the new status",
    "type": "the type of the event",
    "subject": (
        "the id of an account, a buyer, an acknowledgment or a notice, or `log` or `vault`; "
        "left out: all entries"
    ),
}
"""Keys are argument names; a key that begins with part of a command's path takes precedence."""


RoomOpener: TypeAlias = Callable[[type[Any]], AbstractAsyncContextManager[Any]]


def with_room(
    kind: type[T],
) -> Callable[[Callable[Concatenate[T, P], Awaitable[R]]], Callable[P, R]]:
    """Runs a coroutine function with one room of the deployment that the settings name.

    The root command opens it: commands of a noun know nothing above their room.
    """

    def decorate(work: Callable[Concatenate[T, P], Awaitable[R]]) -> Callable[P, R]:
        @wraps(work)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            async def opened() -> R:
                open_room: RoomOpener = click.get_current_context().find_root().obj
                async with open_room(kind) as room:
                    return await work(room, *args, **kwargs)

            return asyncio.run(opened())

        return run

    return decorate


def room_command(
    kind: type[T],
) -> Callable[[Callable[Concatenate[T, P], Awaitable[R]]], Callable[P, R | None]]:
    """A `command` that works with one room, as `with_room`."""
    return lambda work: command(with_room(kind)(work))


def say_if_local(origin: str) -> None:
    """Warn where the name of the live log means nothing on another machine."""
    host = entry_host(origin)
    if is_loopback(host) or is_wildcard(host):
        say(
            f"warning: the live log is named {origin}, and that name cannot change. It is good "
            "only for trying things out: no other machine can reach it. For evidence that "
            "others verify, set COUNTERSIGN_PUBLIC_URL before the first `countersign init` of "
            "another data directory, or begin a new epoch: countersign log recover --new-epoch "
            "--host NAME"
        )


def log_to_standard_error() -> None:
    """Logs: JSON lines for machines, colours where a person is looking."""
    person = sys.stderr.isatty()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.dev.ConsoleRenderer() if person else structlog.processors.JSONRenderer(),
        ],
        # A line is one write: several processes write to one file, and one may be killed.
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


Report: TypeAlias = Callable[[int, int, str], None]
"""Called after each step with the amount done, the total and the unit."""
_PERIOD_SECONDS: Final = 5.0


class SaidProgress(msgspec.Struct, eq=False):
    """Says how far work has come, at most once in a period: short work says nothing."""

    what: str
    period: float = _PERIOD_SECONDS
    now: Callable[[], float] = time.monotonic
    _said: float = 0.0

    def __post_init__(self) -> None:
        """The first period begins now."""
        self._said = self.now()

    def __call__(self, done: int, total: int, unit: str) -> None:
        """`done` of `total` are finished, each counted in `unit`."""
        if self.now() - self._said >= self.period:
            self._said = self.now()
            say(f"{self.what}: {100 * done // max(total, 1)} % ({done:,} of {total:,} {unit})")


_FORMULA: Final = (
    *("=", "+", "-", "@", "\t", "\r", "\n", "|", "%"),
    *("\uff1d", "\uff0b", "\uff0d", "\uff20"),
)
"""Characters that start a formula in a spreadsheet (OWASP, CSV injection).

The last four are the full-width forms of the first: with some languages they count as these.
"""


def csv_lines(rows: Iterable[Sequence[object]]) -> str:
    """Lines of CSV (RFC 4180), safe to open in a spreadsheet.

    A field that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    target = io.StringIO()
    writer = csv.writer(target, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    for row in rows:
        writer.writerow([_safe(value) for value in row])
    return target.getvalue()


def _safe(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return f"'{text}" if text.startswith(_FORMULA) else text
