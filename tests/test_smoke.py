"""The shortest walk through the service."""

import os
import re
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

pytestmark = pytest.mark.both_engines


def test_a_notice_can_be_fetched_and_acknowledged(client: httpx2.Client) -> None:
    notice = client.get("/v1/notices/ab1263").json()
    body = {"initials_per_line": ["JD" for _ in notice["bullets"]]}
    answer = client.post("/v1/notices/ab1263/acknowledge", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["ack_id"].startswith("ack_")


def test_a_process_ends_without_a_warning(tmp_path: Path) -> None:
    """As it is started by people: finalisers run, and warnings are errors."""
    command = [sys.executable, "-W", "error", "-m", "countersign", "init", "--json"]
    environment = os.environ | {"COUNTERSIGN_DATA_DIR": str(tmp_path / "data")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not re.search("Traceback|Warning|Exception ignored", done.stderr), done.stderr
