"""Shared by the tests of the documents: a server started as in the README."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT
from tests.support.service import START_SECONDS_MAX, Deployment, free_port

_KEY = re.compile(r"^ +KEY=(csign_sk_test_\w+)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class MadeServer:
    """The server started by `make run`, and its output."""

    url: str
    key: str
    shown: str


@pytest.fixture(scope="package")
def made_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MadeServer]:
    """Run `make run`, with a data directory and a port of its own."""
    assert shutil.which("make"), "GNU make is missing: the documented start needs it"
    home = tmp_path_factory.mktemp("made")
    port = free_port()
    environment = Deployment(data_dir=home / "var", settings={"PORT": str(port)}).environment
    for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"):
        environment.pop(name, None)
    log = home / "log"
    # The tests' environment is used as it is, whatever its stamps say.
    command = ["make", "-C", str(ROOT), "run", f"VENV={sys.prefix}", "-o", f"{sys.prefix}/.runtime"]
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command, env=environment, stdout=sink, stderr=sink, start_new_session=True
        )
    try:
        shown = _wait(process, log)
        key = _KEY.search(shown)
        assert key, f"`make run` showed no key: {shown}"
        yield MadeServer(url=f"http://127.0.0.1:{port}", key=key[1], shown=shown)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(20)


def _wait(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline:
        shown = log.read_text()
        if "Countersign serves" in shown:
            return shown
        assert process.poll() is None, f"`make run` ended: {shown}"
        time.sleep(0.05)
    raise AssertionError(f"`make run` did not serve in time: {log.read_text()}")
