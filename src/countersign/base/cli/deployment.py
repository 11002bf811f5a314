"""Parts shared by the commands of a deployment: one of its rooms, its name, and logs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

import click
import structlog

from countersign.base.host import is_loopback, is_wildcard
from countersign_evidence.cli.support import say
from countersign_evidence.entry import entry_host

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

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
