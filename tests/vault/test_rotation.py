"""Changing the key-encryption key of a deployment that is in use."""

from __future__ import annotations

import asyncio
import fcntl
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from countersign.base.config import load_settings
from countersign.base.errors import KeyRotationFailed
from countersign.core.vault.key_file import rotate_key_encryption
from countersign.operate.bootstrap import open_deployment
from tests.http.backstage import another_deployment
from tests.sealing.acts import acknowledge
from tests.support.service import Deployment, running_server


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    """Give an initialised deployment on the embedded database."""
    return another_deployment(tmp_path / "data")


def key_file(deployment: Deployment) -> Path:
    return deployment.data_dir / "key-encryption.key"


def test_a_rotation_changes_nothing_for_a_server_that_runs(deployment: Deployment) -> None:
    """Old rows are read, new accounts get keys, and a later server needs only the new key."""
    old = key_file(deployment).read_text()
    key = deployment.key(deployment.account("vendor"))
    with running_server(deployment) as server, server.client(key) as client:
        before = acknowledge(client, session_id="before")
        deployment.run("vault", "rotate", "--yes")
        assert key_file(deployment).read_text() != old
        assert key_file(deployment).stat().st_mode & 0o777 == 0o600
        second = deployment.key(deployment.account("second"))
        with server.client(second) as other:
            after = acknowledge(other, session_id="after")
        assert client.get(f"/v1/acknowledgments/{before}").json()["session_id"] == "before"
    with running_server(deployment) as server, server.client(second) as other:
        assert other.get(f"/v1/acknowledgments/{after}").json()["session_id"] == "after"
    status = deployment.read("vault", "status")
    assert list(status["data_keys"]) == [status["current"]]


def test_an_interrupted_rotation_is_finished_by_another(deployment: Deployment) -> None:
    """After each of its steps everything can be read."""
    key = deployment.key(deployment.account("vendor"))
    with running_server(deployment) as server, server.client(key) as client:
        ack_id = acknowledge(client, session_id="kept")
        # Step one alone: the new key comes first, and wraps nothing yet.
        file = key_file(deployment)
        file.write_text("QkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkI=\n" + file.read_text())
        assert client.get(f"/v1/acknowledgments/{ack_id}").json()["session_id"] == "kept"
    counts = deployment.read("vault", "status")["data_keys"]
    assert min(counts.values()) == 0
    # Step two alone: wrapped again, the old key still there.
    assert deployment.read("vault", "rewrap")["rewrapped"] >= 2
    assert deployment.read("vault", "rewrap")["rewrapped"] == 0
    deployment.run("vault", "rotate", "--yes")
    with running_server(deployment) as server, server.client(key) as client:
        assert client.get(f"/v1/acknowledgments/{ack_id}").json()["session_id"] == "kept"


def test_of_two_concurrent_rotations_one_is_refused(deployment: Deployment) -> None:
    """The second would take away the key that the first has wrapped everything with."""
    before = key_file(deployment).read_text()
    with key_file(deployment).with_suffix(".key.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = deployment.run("vault", "rotate", "--yes", check=False)
        assert (done.returncode, "key_rotation_failed" in done.stderr) == (1, True)
        assert key_file(deployment).read_text() == before
    deployment.run("vault", "rotate", "--yes")
    assert key_file(deployment).read_text() != before


def test_a_key_that_wraps_something_is_never_taken_out_of_the_file(
    deployment: Deployment,
) -> None:
    """Not even if somebody replaces the whole file meanwhile: it is put back, and reported."""
    other = b64encode(b"another key of thirty-two bytes!").decode()

    async def rotate() -> bytes:
        async with open_deployment(load_settings(deployment.environment)) as opened:
            written: list[str] = []

            def replaced_by_hand(_: int) -> None:
                written.append(key_file(deployment).read_text())
                key_file(deployment).write_text(other + "\n")

            with pytest.raises(KeyRotationFailed):
                await rotate_key_encryption(opened.vault, replaced_by_hand)
            new, *_ = written[0].split()
            assert key_file(deployment).read_text().split() == [other, new]
            return opened.vault.encryption.ids[0]

    needed = asyncio.run(rotate())
    counts = deployment.read("vault", "status")["data_keys"]
    assert counts[needed.hex()] > 0
    deployment.run("vault", "rotate", "--yes")
    assert len(key_file(deployment).read_text().split()) == 1
    assert deployment.run("log", "rotate-key", "--yes").returncode == 0, "secrets can be opened"


def test_a_lost_key_is_refused_at_the_start_and_never_made_again(deployment: Deployment) -> None:
    """Neither by init nor by serve."""
    file = key_file(deployment)
    file.rename(file.with_name("lost"))
    for command in (["init"], ["accounts", "list"]):
        done = deployment.run(*command, check=False)
        assert (done.returncode, "wrong_key_encryption_key" in done.stderr) == (1, True)
    assert not file.exists()


def test_another_key_is_refused_at_the_start(deployment: Deployment) -> None:
    key_file(deployment).write_text("QkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkI=\n")
    done = deployment.run("accounts", "list", check=False)
    assert (done.returncode, "wrong_key_encryption_key" in done.stderr) == (1, True)


@pytest.mark.parametrize("source", ["env:PLANTED_KEYS", "command:printenv PLANTED_KEYS"])
def test_keys_come_from_a_variable_or_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    monkeypatch.setenv("PLANTED_KEYS", "QkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkI=")
    made = Deployment(data_dir=tmp_path / "data", settings={"KEY_ENCRYPTION_KEY": source})
    made.run("init")
    assert not key_file(made).exists()
    assert made.read("vault", "status")["data_keys"]


@pytest.mark.postgres
def test_servers_that_need_a_months_key_at_once_agree_on_one(
    tmp_path: Path, postgres_url: str
) -> None:
    """Each can read the other's data."""
    made = Deployment(data_dir=tmp_path / "data", settings={"DATABASE_URL": postgres_url})
    made.run("init")
    keys = [made.key(made.account(f"vendor {n}")) for n in range(6)]
    with running_server(made) as one, running_server(made) as two:

        def both(key: str) -> bool:
            with one.client(key) as first, two.client(key) as second:
                with ThreadPoolExecutor(2) as pool:
                    made_at_once = list(pool.map(acknowledge, (first, second)))
                return all(
                    client.get(f"/v1/acknowledgments/{ack_id}").json()["initials_per_line"]
                    for client in (first, second)
                    for ack_id in made_at_once
                )

        assert all(both(key) for key in keys)
