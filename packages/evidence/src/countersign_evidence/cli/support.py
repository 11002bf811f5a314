"""Parts shared by all commands: `--json`, messages on standard error, and errors."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

import click

from countersign_evidence.errors import CountersignError

P = ParamSpec("P")
R = TypeVar("R")

ALONE: Final = "countersign-evidence"
WITH_SERVICE: Final = "countersign log"
"""How the commands that watch a log are called: without the service, and with it."""
_JSON_PATH: Final = re.compile(r" - at `\$\.([^`]+)`")
_DURATION: Final = re.compile(r"(0|[1-9][0-9]{0,5})([smhd])\Z", re.ASCII)
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def command(function: Callable[P, R]) -> Callable[P, R | None]:
    """Adds `--json`, and turns errors into a message and exit status 1.

    The function gets neither `--json` nor `--yes`: `show` and `confirm` ask click for them.
    """

    @click.option(
        "--json", "as_json", is_flag=True, help="Print the result as JSON on standard output."
    )
    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R | None:
        for flag in ("as_json", "yes"):
            kwargs.pop(flag, None)
        try:
            return function(*args, **kwargs)
        except CountersignError as error:
            fail(error)
            return None

    return wrapper


def is_given(flag: str) -> bool:
    """Whether the command that runs was given this flag, such as `as_json`."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.params.get(flag))


def asking(question: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Adds `--yes`; without it, asks first. The question may name arguments in braces.

    It stands above `command`: nothing is opened before the operator has agreed.
    """

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        @click.option("--yes", is_flag=True, help="Do not ask.")
        @wraps(function)
        def run(**arguments: Any) -> R:  # noqa: ANN401 - whatever the command has
            confirm(question.format(**arguments))
            return function(**arguments)

        return run

    return decorate


def watching() -> str:
    """How the commands that watch a log are called in the program that runs."""
    root = click.get_current_context().find_root().command
    return ALONE if root.name == ALONE else WITH_SERVICE


def fail(error: CountersignError, *, status: int = 1) -> None:
    """Print the error on standard error, and exit."""
    # A command line has no JSON document with a path: only the name of the member is shown.
    message = _JSON_PATH.sub(r" (\1)", error.message)
    if is_given("as_json"):
        click.echo(json_text({"error": {"code": error.code, "message": message}}), err=True)
    else:
        say(f"error ({error.code}): {message}")
    sys.exit(status)


def show(value: Any, plain: str) -> None:  # noqa: ANN401 - any JSON
    """Print the result on standard output: the value as JSON, or the plain text."""
    click.echo(json_text(value) if is_given("as_json") else printable(plain))


def show_all(values: Sequence[Any], lines: Sequence[str], none: str) -> None:
    """Print a list, a line for each value; without any, say what to do."""
    if values or is_given("as_json"):
        show(values, "\n".join(lines))
    else:
        say(none)


def say(text: str) -> None:
    """Print a message on standard error; standard output is for programs."""
    click.echo(printable(text), err=True)


def printable(text: str, keep: str = "\n") -> str:
    """A text with control and invisible characters made visible.

    All that commands print goes through this or `json_text`: vendors and buyers wrote some of it.
    """
    if text.isprintable():
        return text
    return "".join(
        c
        if c.isprintable() or c in keep
        else c.encode("unicode_escape", "surrogatepass").decode("ascii")
        for c in text
    )


def json_text(value: object, indent: int | None = None) -> str:
    """A value as JSON, with the same characters escaped in the way of JSON."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else _escaped(c) for c in text)


def field_lines(view: Mapping[str, object]) -> str:
    """A line for each member of a view, in words."""
    return "\n".join(f"{name}: {in_words(value)}" for name, value in view.items())


def in_words(value: object) -> str:
    """A value as a person reads it: `yes`, `a, b`, `-` for none."""
    match value:
        case None | [] | ():
            return "-"
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ", ".join(in_words(item) for item in value)
        case dict():
            return "; ".join(f"{name} {in_words(item)}" for name, item in value.items())
        case _:
            return str(value)


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def confirm(question: str) -> None:
    """Ask before something that cannot be undone, except with `--yes`."""
    if not is_given("yes"):
        click.confirm(question, abort=True, err=True)


class Duration(click.ParamType[timedelta]):
    """A length of time: a number and s, m, h or d."""

    name = "duration"

    def __init__(self, *, or_none: bool = False) -> None:
        """With `or_none`, `0s` is one."""
        self._or_none = or_none

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
        if match is None or not (self._or_none or int(match[1])):
            self.fail("expected a number and s, m, h or d, such as 24h", param, ctx)
        return timedelta(**{_UNITS[match[2]]: int(match[1])})
