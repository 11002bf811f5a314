"""The timers of compose: the script is run as its container runs it."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cli.serving import wait_until
from tests.support.service import Deployment, free_port

DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.mark.later  # it runs commands that have tests of their own
def test_what_is_wrong_is_told_and_daily_work_is_done(tmp_path: Path) -> None:
    """No server runs: the doctor calls once an hour, and the daily look tells it too."""
    told: list[str] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            told.append(said["text"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:  # noqa: ANN401
            pass

    deployment = Deployment(data_dir=tmp_path / "data", settings={"PORT": str(free_port())})
    deployment.run("init")
    assert not is_checked(deployment)
    for script in (DEPLOY / "timers.sh", DEPLOY / "systemd" / "alert.sh"):
        (tmp_path / script.name).symlink_to(script)  # as compose mounts them
    with HTTPServer(("127.0.0.1", 0), Receiver) as there:
        threading.Thread(target=there.serve_forever, daemon=True).start()
        environment = deployment.environment
        environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment["ALERT_WEBHOOK"] = f"http://127.0.0.1:{there.server_port}/hook"
        words = ["/bin/sh", str(tmp_path / "timers.sh"), "0.2"]
        with subprocess.Popen(words, env=environment, start_new_session=True) as timers:
            try:
                wait_until(lambda: len(told) == 2, "both have told")
                wait_until(lambda: is_checked(deployment), "the logs were checked")
            finally:
                os.killpg(timers.pid, 9)
        there.shutdown()
    assert {text.partition(" failed")[0] for text in told} == {"doctor", "countersign doctor"}
    assert all("no server responds" in text and "fine" not in text for text in told)


def is_checked(deployment: Deployment) -> bool:
    """Whether a check of the logs has kept its result."""
    with closing(sqlite3.connect(deployment.data_dir / "countersign.db")) as database:
        kept = database.execute("SELECT 1 FROM deployment WHERE name = 'log_checked'").fetchone()
    return kept is not None
