"""The rule that personal data is never emitted, applied to every test.

All output and logs of tests, and of servers that they start, are searched for the names, dates of
birth, addresses and numbers of all people of the simulated providers.
"""

from __future__ import annotations

import re
import time
from collections.abc import Generator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import pytest

SHOWS_PERSONAL_DATA = "shows_personal_data"
"""The marker of tests that look at evidence on purpose."""

_logs: dict[Path, int] = {}
"""The logs of started servers, and how much of each was searched."""
_said: list[str] = []
"""Output of commands since the last search."""
_COMMANDS_THAT_SHOW: Final = ({"buyers", "evidence"}, {"simulate-provider"})
"""Commands that show a person on purpose, or an invented one."""


@cache
def personal_words() -> frozenset[str]:
    """Every personal string of every session that a simulator knows."""
    from countersign_simulators.registry import SIMULATORS  # noqa: PLC0415 - only if it is needed

    return frozenset(
        word
        for make in SIMULATORS.values()
        for session in make(time.time).sessions
        for word in session.personal
    )


@cache
def _pattern() -> re.Pattern[str]:
    longest_first = sorted({word.casefold() for word in personal_words()}, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)))


def personal(text: str) -> set[str]:
    """The personal strings in a text, in whatever case."""
    return {found[0] for found in _pattern().finditer(text.casefold())} if text else set()


def watch_log(file: Path) -> None:
    """Search a server's output, too."""
    _logs.setdefault(file, 0)


def watch_command(arguments: Sequence[str], said: str) -> None:
    """Search a command's output, unless it shows a person on purpose."""
    if not any(words <= set(arguments) for words in _COMMANDS_THAT_SHOW):
        _said.append(said)


def _unseen() -> dict[str, str]:
    """Output since the last search; deleted logs are forgotten."""
    parts = []
    for file, seen in list(_logs.items()):
        try:
            with file.open("rb") as log:
                log.seek(seen)
                part = log.read()
        except OSError:
            del _logs[file]
            continue
        _logs[file] = seen + len(part)
        if part:
            parts.append(part.decode("utf-8", "replace"))
    commands = "\n".join(_said)
    _said.clear()
    return {"the log of a server": "\n".join(parts), "the output of a command": commands}


class Privacy:
    """The plugin: fails a test that passed but has emitted something personal."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """After the teardown everything that was captured is in the report."""
        report = yield
        if report.when == "teardown":
            _judge(item, report)
        return report


def _judge(item: pytest.Item, report: pytest.TestReport) -> None:
    emitted = _unseen()
    for name, content in report.sections:
        if name.startswith("Captured"):
            emitted[name] = content
    if item.get_closest_marker(SHOWS_PERSONAL_DATA) is not None or report.failed:
        return
    found = {name: sorted(personal(content)) for name, content in emitted.items()}
    if any(found.values()):
        answer = "; ".join(f"{name}: {words}" for name, words in found.items() if words)
        report.outcome = "failed"
        report.longrepr = f"Something personal was emitted, in {answer}"
