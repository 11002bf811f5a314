"""What a check finds: a line for a person. The words are in `findings.toml`, by check and name."""

from __future__ import annotations

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

    @property
    def rank(self) -> int:
        """The worse, the higher."""
        return [*Severity].index(self)


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
    """What a check needs cannot be seen; another check says why."""


def say(code: str, /, **values: object) -> Diagnosis:
    """The finding of this name, such as `disk.full`, with these values in its words."""
    check, _, name = code.partition(".")
    words = FINDINGS[check][name]
    said = (words.get(key, "").format(**values) for key in ("found", "what_to_do"))
    return Diagnosis(code, Severity(words.get("severity", "fine")), *map(one_line, said))


def one_line(words: str) -> str:
    """The words of an error, which can have several lines, as one."""
    return " ".join(words.split())


def queried(connection: Connection, check: str) -> Iterator[Diagnosis]:
    """The findings of a check that PostgreSQL is asked for: each row of its query is one."""
    for name, words in FINDINGS[check].items():
        if "query" in words:
            for row in connection.execute(text(words["query"])).mappings():
                yield say(f"{check}.{name}", **dict[str, Any](row))
