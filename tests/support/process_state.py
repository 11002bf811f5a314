"""State of the whole process, restored, so that the order of tests does not matter.

pytest itself resets the filters of warnings for each test.
"""

from __future__ import annotations

import contextlib
import locale
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import structlog

_CURRENT_TEST: Final = "PYTEST_CURRENT_TEST"
"""pytest sets it for each phase of a test."""


def cache_no_loggers() -> None:
    """Let no logger of this process cache what structlog is configured with.

    It would write to the standard error of a command that has ended, and `capture_logs` would never
    see its events again.
    """
    configure = structlog.configure

    def uncached(**settings: Any) -> None:  # noqa: ANN401 - whatever `configure` takes
        configure(**settings | {"cache_logger_on_first_use": False})

    structlog.configure = uncached  # type: ignore[assignment]


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Restore environment, time zone, locale, umask, directory and structlog's configuration."""
    environment, directory, language = dict(os.environ), Path.cwd(), locale.setlocale(locale.LC_ALL)
    mask = os.umask(0o077)
    os.umask(mask)
    logging = structlog.get_config()
    try:
        yield
    finally:
        structlog.configure(**logging)
        os.umask(mask)
        os.chdir(directory)
        locale.setlocale(locale.LC_ALL, language)
        changed = dict(os.environ).items() ^ environment.items()
        for name in {name for name, _ in changed} - {_CURRENT_TEST}:
            if name in environment:
                os.environ[name] = environment[name]
            else:
                del os.environ[name]
        if "TZ" in dict(changed):
            time.tzset()
