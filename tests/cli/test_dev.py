"""`dev`, which is `make run`: from nothing to a working line."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import httpx2
import pytest

from countersign.core.access.key import well_formed
from tests.cli.conftest import Bench
from tests.cli.serving import running_module, wait_for
from tests.support.service import free_port

pytestmark = pytest.mark.long

COMMAND = ["countersign", "dev"]


def run_curl(line: str) -> object:
    """Run the printed line; without curl, send the same request."""
    words = shlex.split(line)
    if shutil.which("curl"):
        done = subprocess.run([*words, "-fsS"], capture_output=True, check=True)
        return json.loads(done.stdout)
    assert words[:2] == ["curl", "-H"]
    name, _, value = words[2].partition(": ")
    return httpx2.get(words[3], headers={name: value}).raise_for_status().json()


def test_dev_adds_no_demo_account_to_a_shared_deployment(bench: Bench) -> None:
    """In the shell of a production server, with only its data directory."""
    own = bench.but(PUBLIC_URL="https://evidence.example.com", PORT=str(free_port()))
    assert "countersign serve" in own.refused("dev")
    assert not bench.data_dir.exists()
    own.run("init")
    for production in (own, bench.but(PORT=str(free_port()))):
        said = production.refused("dev")
        assert "invalid_configuration" in said
        assert "evidence.example.com" in said
        assert production.read("accounts", "list") == []


def test_dev_leads_from_nothing_to_a_working_line(bench: Bench, tmp_path: Path) -> None:
    port = free_port()
    own, log = bench.but(PORT=str(port), CONSOLE="true"), tmp_path / "log"
    with running_module(COMMAND, own.environment, log) as process:
        said = wait_for(process, log, "Countersign serves")
        (line,) = [line.strip() for line in said.splitlines() if line.strip().startswith("curl ")]
        (key,) = {k for k in re.findall(r"csign_\w+", said) if well_formed(k)}
        assert key.startswith("csign_sk_test_")
        pasted = [line.strip() for line in said.splitlines() if re.match(r" +[A-Z]+=", line)]
        assert pasted == [f"BASE=http://127.0.0.1:{port}", f"KEY={key}"]
        notice = run_curl(line)
        assert isinstance(notice, dict)
        assert notice["bullets"]
        # The printed line leads to an address where browsers make passkeys. It has the setting that
        # the other terminal lacks: no warning is needed.
        (found,) = re.findall(r"console: +COUNTERSIGN_(\w+)=(\w+) \S+ (staff invite .*)", said)
        setting, value, words = found
        invited = bench.but(PORT=str(port), **{setting: value}).run(*shlex.split(words))
        assert "warning" not in invited.stderr
        link = invited.stdout.strip()
        assert link.startswith(f"http://localhost:{port}/console/link#")
        docs = re.search(r"Guides and API: +(\S+)", said)
        assert docs is not None
        assert httpx2.get(docs[1], timeout=30).status_code == 200

        # While it runs, commands work as in the README, with only the data directory.
        another = bench.key("demo")
        headers = {"Authorization": f"Bearer {another}"}
        url = f"http://127.0.0.1:{port}/v1/notices"
        assert httpx2.get(url, headers=headers).status_code == 200
        process.terminate()
        assert process.wait(20) == 0

    # The second start has no key to show, and says how to get another.
    with running_module(COMMAND, own.environment, log) as process:
        said = wait_for(process, log, "Countersign serves")
        assert not [k for k in re.findall(r"csign_\w+", said) if well_formed(k)]
        assert "already has a test key" in said
        (words,) = re.findall(r"countersign (keys create .*)", said)
        given = bench.run(*words.split()).stdout.strip()
        headers = {"Authorization": f"Bearer {given}"}
        assert httpx2.get(url, headers=headers).status_code == 200
        assert httpx2.get(url, headers={"Authorization": f"Bearer {key}"}).status_code == 200
    assert len(bench.read("accounts", "list")) == 1
    assert len(bench.read("notices", "list")) == 1
