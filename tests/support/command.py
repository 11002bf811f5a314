"""`countersign ARGUMENTS`, run in this process: that takes a fifth of what a fork of it takes.

What needs a process of its own gets one: what serves or follows signals, what is typed in, what
runs in a thread or on an event loop of the test, and what a test asks for with `forked.run`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from unittest import mock

import structlog
from click.testing import CliRunner

from countersign.root import main
from tests.support import forked

PROCESSES: Final = frozenset({"serve", "dev", "conformance", "simulate-provider", "listen"})
"""Commands that serve or follow signals."""


def run(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    typed: str = "",
    directory: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; what it does not catch is raised here."""
    if typed or PROCESSES & set(arguments) or _is_busy():
        return forked.run(
            "countersign", *arguments, environment=environment, typed=typed, directory=directory
        )
    with (
        mock.patch.dict(os.environ, environment, clear=True),
        contextlib.chdir(directory or Path()),
        _mask_kept(),
        _logging_kept(),
    ):
        done = CliRunner().invoke(
            main, list(arguments), prog_name="python -m countersign", catch_exceptions=False
        )
    return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)


def _is_busy() -> bool:
    """Whether other work may go on here meanwhile: in other threads, or on an event loop."""
    if threading.current_thread() is not threading.main_thread():
        return True
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@contextlib.contextmanager
def _mask_kept() -> Iterator[None]:
    mask = os.umask(0o077)
    try:
        os.umask(mask)
        yield
    finally:
        os.umask(mask)


@contextlib.contextmanager
def _logging_kept() -> Iterator[None]:
    """No logger remembers the standard error of a command that has ended."""
    before = structlog.get_config() if structlog.is_configured() else None
    configure = structlog.configure

    def uncached(**settings: Any) -> None:  # noqa: ANN401 - whatever `configure` takes
        configure(**settings | {"cache_logger_on_first_use": False})

    try:
        with mock.patch.object(structlog, "configure", uncached):
            yield
    finally:
        if before is None:
            structlog.reset_defaults()
        else:
            configure(**before)
