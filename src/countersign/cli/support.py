"""What all commands share: `--json`, words on standard error, and how they fail."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import click
import structlog
from rich.console import Console

from countersign.bootstrap import Deployment, open_deployment
from countersign.config import load_settings
from countersign.domain.host import is_loopback, is_wildcard
from countersign.errors import CountersignError
from countersign.evidence.entry import entry_host

P = ParamSpec("P")
R = TypeVar("R")

console: Final = Console(stderr=True, highlight=False, soft_wrap=True)
"""Words for people go to standard error; standard output is for programs."""

_DURATION: Final = re.compile(r"([1-9][0-9]{0,5})([smhd])\Z")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def command(function: Callable[P, R]) -> Callable[P, R | None]:
    """Adds `--json`, and turns errors into a message and exit status 1.

    The function gets `as_json`.
    """

    @click.option("--json", "as_json", is_flag=True, help="Answer in JSON on standard output.")
    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R | None:
        try:
            return function(*args, **kwargs)
        except CountersignError as error:
            fail(error, as_json=bool(kwargs.get("as_json")))
            return None

    return wrapper


def with_deployment(
    work: Callable[Concatenate[Deployment, P], Awaitable[R]],
) -> Callable[P, R]:
    """Runs a coroutine function with the deployment that the settings name."""

    @wraps(work)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        async def opened() -> R:
            async with open_deployment(load_settings()) as deployment:
                return await work(deployment, *args, **kwargs)

        return asyncio.run(opened())

    return run


def fail(error: CountersignError, *, as_json: bool) -> None:
    """Say what is wrong on standard error, and exit with status 1."""
    if as_json:
        body = {"error": {"code": error.code, "message": error.message}}
        click.echo(json.dumps(body, ensure_ascii=False), err=True)
    else:
        console.print(f"[bold red]error[/] ({error.code}):", end=" ")
        console.print(error.message, markup=False)
    sys.exit(1)


def show(value: Any, plain: str, *, as_json: bool) -> None:  # noqa: ANN401 - any JSON
    """The answer on standard output: the value as JSON, or the plain text."""
    click.echo(json.dumps(value, ensure_ascii=False) if as_json else plain)


def say(text: str) -> None:
    """Words for people."""
    console.print(text, markup=False)


def say_if_local(origin: str) -> None:
    """Warn where the name of the live log means nothing on another machine."""
    host = entry_host(origin)
    if is_loopback(host) or is_wildcard(host):
        say(
            f"warning: the live log is called {origin}, and that name stays. It is good for trying "
            "things out: no other machine can reach it. For evidence that others verify, set "
            "COUNTERSIGN_PUBLIC_URL before the first `countersign init` of another data directory, "
            "or begin a new epoch: countersign log recover --new-epoch --host NAME"
        )


def confirm(question: str, *, yes: bool) -> None:
    """Ask before something that cannot be undone.

    Raises:
        click.Abort: the answer was no.
    """
    if not yes:
        click.confirm(question, abort=True, err=True)


class Duration(click.ParamType[timedelta]):
    """A length of time: a number and s, m, h or d."""

    name = "duration"

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's signature
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> timedelta:
        """Read `90s`, `45m`, `24h` or `365d`."""
        if isinstance(value, timedelta):
            return value
        match = _DURATION.match(str(value))
        if match is None:
            self.fail("a length of time is a number and s, m, h or d, such as 24h", param, ctx)
        try:
            return timedelta(**{_UNITS[match[2]]: int(match[1])})
        except OverflowError:
            self.fail("that is too long", param, ctx)


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
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
