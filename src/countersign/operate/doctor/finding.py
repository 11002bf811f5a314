"""A finding of a check: one line of text. The texts are in `findings.toml`, by check and name."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from importlib import resources
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from sqlalchemy import Connection, text

C = TypeVar("C")


class Severity(StrEnum):
    """How bad it is; the best first."""

    FINE = "fine"
    MISSING = "missing"
    """A fact that is not recorded, or that could not be seen."""
    WARNING = "warning"
    BROKEN = "broken"


EXIT: Final = {Severity.FINE: 0, Severity.MISSING: 0, Severity.WARNING: 1, Severity.BROKEN: 2}
"""The exit status of the command: the worse, the higher; 0: there is nothing to do."""


class Diagnosis(NamedTuple):
    """One line: its name in the table, what was found, and what to do."""

    code: str
    severity: Severity
    found: str
    what_to_do: str


Check: TypeAlias = Callable[[C], Iterator[Diagnosis]]
"""Looks at one thing. Next to a problem, what is fine is left out."""

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
    """The findings of a check that the database is asked for: each row of its query is one."""
    now = {"now": time.time_ns() // 10**6}
    for name, words in FINDINGS[check].items():
        if "query" in words:
            for row in connection.execute(text(words["query"]), now).mappings():
                yield say(f"{check}.{name}", **dict[str, Any](row))
