"""A real service, watched and copied from outside: nothing it does is an alarm."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.http.backstage import another_deployment
from tests.monitor.liar import Log, log_with_record, proof_of, served
from tests.sealing.acts import acknowledge, get
from tests.sealing.live import acknowledge_live, open_for_live
from tests.support import command, forked
from tests.support.engines import ENGINES, engine_server
from tests.support.service import Deployment, Server, running_server, start_server

pytestmark = pytest.mark.long


@pytest.fixture
def embedded(tmp_path: Path) -> Deployment:
    """Give an initialised deployment on the embedded database."""
    return another_deployment(tmp_path / "data")


@pytest.fixture(params=ENGINES)
def own(request: pytest.FixtureRequest, tmp_path: Path) -> Deployment:
    """Give an initialised deployment, on each engine."""
    return another_deployment(tmp_path / "data", engine_server(request))


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of an outsider: without any setting of the service."""
    return command.run(words, {"PATH": "/nothing"}, directory=folder)


class Outsider:
    """Has the policy, and a directory of its own."""

    def __init__(self, folder: Path, server: Server, log: str) -> None:
        self.folder = folder
        self.url = f"{server.url}/v1/log/{log}"
        self.policy = folder / "policy"
        with server.client() as no_one:
            found = no_one.get("/v1/log/policy", params={"mode": log.split("/", maxsplit=1)[0]})
        self.policy.write_bytes(found.content)

    def look(self) -> dict[str, Any]:
        """Monitor once."""
        done = run(
            self.folder, "log", "monitor", self.url, "--policy", str(self.policy),
            "--state", "state", "--once", "--json",
        )  # fmt: skip
        found: dict[str, Any] = json.loads(done.stdout)
        assert (done.returncode == 0) == (found["status"] == "consistent")
        return found

    def mirror(self) -> subprocess.CompletedProcess[str]:
        """Copy."""
        return run(self.folder, "log", "mirror", self.url, "copy", "--policy", str(self.policy))


def load(server: Server, key: str, stop: threading.Event) -> None:
    """Acknowledge until that is to stop, whatever happens to the server."""
    with server.client(key) as client:
        while not stop.is_set():
            with suppress(httpx2.TransportError, AssertionError):
                acknowledge(client)


def test_a_log_killed_and_restarted_under_load_is_consistent(
    embedded: Deployment, tmp_path: Path
) -> None:
    """It grows between two looks; without a server the log is unreachable, no more."""
    key = embedded.key(embedded.account("vendor"))
    server = start_server(embedded)
    port = server.url.rpartition(":")[2]
    outsider = Outsider(tmp_path, server, "test/1")
    for _ in range(3):
        stop, sizes = threading.Event(), set[str]()
        thread = threading.Thread(target=load, args=(server, key, stop))
        thread.start()
        try:
            while len(sizes) < 2:
                found = outsider.look()
                assert found["status"] == "consistent", found
                sizes.add(found["message"])
            server.kill()
        finally:
            stop.set()
            thread.join()
        assert outsider.look()["status"] == "unchecked"
        server = start_server(embedded)
        outsider.url = outsider.url.replace(f":{port}/", f":{server.url.rpartition(':')[2]}/")
        port = server.url.rpartition(":")[2]
    server.stop()
    assert not list((tmp_path / "state" / "alarms").iterdir())


@pytest.mark.both_engines
def test_a_new_key_and_a_new_epoch_are_no_alarm(own: Deployment, tmp_path: Path) -> None:
    """With the operator's present policy; the record of the epoch is public."""
    key, embedded = open_for_live(own, tmp_path)
    with running_server(embedded) as server, server.client(key) as client:
        get(client, acknowledge_live(client), "proof")
        outsider = Outsider(tmp_path, server, "live/1")
        assert outsider.look()["status"] == "consistent"
        embedded.run("log", "rotate-key", "--yes")
        get(client, acknowledge_live(client), "proof")
        assert outsider.look()["status"] == "consistent"
        assert client.get("/v1/log/live/1/epoch").status_code == 404
        embedded.run("log", "recover", "--new-epoch", "--mode", "live", "--yes")
        get(client, acknowledge_live(client), "proof")
        outsider = Outsider(tmp_path, server, "live/1")
        found = outsider.look()
        assert found["status"] == "consistent", found
        assert "/v1/log/live/2: " in found["message"]
        begun = client.get("/v1/log/live/2/epoch")
        assert begun.json()["type"] == "epoch"
        assert begun.headers["access-control-allow-origin"] == "*"


def test_a_copy_is_served_as_files_and_is_the_log(embedded: Deployment, tmp_path: Path) -> None:
    """It grows with the log; a monitor of the copy and one of the log agree."""
    key = embedded.key(embedded.account("vendor"))
    with running_server(embedded) as server, server.client(key) as client:
        outsider = Outsider(tmp_path, server, "test/1")
        made: list[str] = []
        for count in (3, 270, 1):
            made = [acknowledge(client) for _ in range(count)]
            get(client, made[-1], "proof")
            done = outsider.mirror()
            assert done.returncode == 0, done.stderr
        for file in (tmp_path / "copy").rglob("*"):
            if file.is_file() and file.name != ".lock":
                path = file.relative_to(tmp_path / "copy").as_posix()
                assert file.read_bytes() == client.get(f"/v1/log/test/1/{path}").content, path
                assert file.stat().st_mode & 0o444 == 0o444
        proof = get(client, made[0], "proof")
    (tmp_path / "old.tlog-proof").write_bytes(proof)
    copied = Log()
    copied.resource = lambda path: _of(tmp_path / "copy" / path)  # type: ignore[method-assign]
    with served(copied) as site:
        for words in (
            ("log", "monitor", site.at(), "--state", "other", "--once"),
            ("verify", "old.tlog-proof", "--against", site.at()),
        ):
            done = run(tmp_path, *words, "--policy", str(outsider.policy))
            assert done.returncode == 0, done.stderr + done.stdout


def _of(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None


def test_a_kept_dossier_is_compared_with_the_log_of_today(
    embedded: Deployment, tmp_path: Path
) -> None:
    """It is still there, many entries later; other logs are not mentioned."""
    key = embedded.key(embedded.account("vendor"))
    with running_server(embedded) as server, server.client(key) as client:
        outsider = Outsider(tmp_path, server, "test/1")
        kept = acknowledge(client)
        (tmp_path / "kept.zip").write_bytes(get(client, kept, "dossier"))
        get(client, [acknowledge(client) for _ in range(300)][-1], "proof")
        verify = ("verify", "kept.zip", "--policy", str(outsider.policy), "--against")
        done = run(tmp_path, *verify, outsider.url)
        assert done.returncode == 0, done.stderr + done.stdout
        assert "STILL IN THE LOG" in done.stdout
        # A dossier has several entries, which are requested concurrently.
        hint = embedded.run("dossier", kept, "--output", str(tmp_path / "order.zip")).stderr
        assert "`countersign log policy --mode test`" in hint
        done = run(tmp_path, "verify", "order.zip", *verify[2:], outsider.url)
        assert done.stdout.count("still there: the checkpoint of") == 1, done.stderr + done.stdout
        assert re.search(r"STILL IN THE LOG  entries \d+(, \d+)+ of ", done.stdout)
        done = run(tmp_path, *verify, outsider.url.replace("/test/", "/live/"), "--json")
        assert done.returncode == 2, done.stdout
        assert json.loads(done.stdout)["against"]["status"] == "unchecked"


@pytest.mark.parametrize(("lie", "kind"), [("rewritten", "fork"), ("cut", "shrink")])
def test_a_proof_contradicted_by_the_log_gives_an_alarm_that_others_can_check(
    tmp_path: Path, lie: str, kind: str
) -> None:
    """The log was rewritten, or cut, after the proof was handed out."""
    log, record = log_with_record()
    (tmp_path / "old.tlog-proof").write_bytes(proof_of(log, record, 5))
    (tmp_path / "policy").write_text(f"{log.policy}quorum none\n", encoding="utf-8")
    words = ("verify", "old.tlog-proof", "--policy", "policy", "--against")
    with served(log) as site:
        log.grow(700)
        done = run(tmp_path, *words, site.at())
        assert done.returncode == 0, done.stderr + done.stdout
        if lie == "rewritten":
            log.rewrite(3)
        else:
            log.size = 4
        done = run(tmp_path, *words, site.at())
    assert done.returncode == 1, done.stdout
    assert f"ALARM ({kind})" in done.stdout
    judged = run(tmp_path, "log", "check-alarm", f"{kind}.alarm.json", "--policy", "policy")
    assert judged.returncode == (0 if kind == "fork" else 3), judged.stdout


def test_a_killed_monitor_continues(tmp_path: Path) -> None:
    """At any moment of a first reading; its saved state is right, and it ends consistent."""
    log = Log()
    log.grow(60_000)
    (tmp_path / "policy").write_text(f"{log.policy}quorum none\n", encoding="utf-8")
    with served(log) as site:
        words = ["countersign", "log", "monitor", site.at(), "--policy", "policy"]
        words += ["--state", "state", "--once"]
        for asked in (30, 220, 300):
            before = len(log.asked)
            with (tmp_path / "out").open("wb") as sink:
                process = forked.start(words, {}, stdout=sink, stderr=sink, directory=tmp_path)
            while len(log.asked) < before + asked and process.poll() is None:
                pass
            process.send_signal(signal.SIGKILL)
            process.wait(10)
        log.asked.clear()
        done = run(tmp_path, *words[1:])
        assert done.returncode == 0, done.stderr
        assert "60000 entries" in done.stdout
    assert "tile/entries/000" not in log.asked, "what was read before the kill is not read again"


def test_a_monitor_runs_until_there_is_an_alarm(tmp_path: Path) -> None:
    """It exits with 1, and names the file; a stopped one exits with 0."""
    log = Log()
    log.grow(10)
    (tmp_path / "policy").write_text(f"{log.policy}quorum none\n", encoding="utf-8")
    with served(log) as site:
        words = ["countersign", "log", "monitor", site.at(), "--policy", "policy"]
        words += ["--state", "state", "--every", "1s", "--json"]
        for number, status in ((signal.SIGTERM, 0), (None, 1)):
            if number is None:
                log.rewrite(3)
                log.grow(1)
            with (tmp_path / "out").open("wb") as sink:
                process = forked.start(words, {}, stdout=sink, stderr=sink, directory=tmp_path)
            while number and "consistent" not in (tmp_path / "out").read_text():
                assert process.poll() is None, (tmp_path / "out").read_text()
            if number is not None:
                process.send_signal(number)
            assert process.wait(30) == status, (tmp_path / "out").read_text()
        said = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
        assert said[-1]["alarm"] == "fork", said
        done = run(tmp_path, "log", "check-alarm", said[-1]["file"], "--policy", "policy")
    assert done.returncode == 0
    assert done.stdout.startswith("PROVED (fork) of ")
