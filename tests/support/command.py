"""`countersign ARGUMENTS`, run in this process: that takes a fifth of the time of a fork.

Some commands get a separate process: those that serve or handle signals, read typed input, run in a
thread or on a test's event loop, and those requested with `forked.run`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from unittest import mock

from click.testing import CliRunner

from countersign.root import main
from tests.support import forked, process_state

PROCESSES: Final = frozenset({"serve", "dev", "conformance", "simulate-provider", "listen"})
"""Commands that serve or follow signals."""


def run(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    typed: str = "",
    directory: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; uncaught exceptions are raised here."""
    if typed or PROCESSES & set(arguments) or _is_busy():
        return forked.run(
            "countersign", *arguments, environment=environment, typed=typed, directory=directory
        )
    with (
        process_state.kept(),
        mock.patch.dict(os.environ, environment, clear=True),
        contextlib.chdir(directory or Path()),
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
