"""Another server of one PostgreSQL database: it needs the heads of the earlier ones."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from countersign_evidence.verification import verify_file
from tests.sealing.acts import acknowledge, get, policy_of
from tests.sealing.witness import wait_for
from tests.support.service import Deployment, running_server

pytestmark = pytest.mark.postgres
RECOVER = ("log", "recover", "--yes", "--mode")


@pytest.fixture
def first(tmp_path: Path, postgres_url: str) -> Deployment:
    """Give a deployment that has published."""
    made = Deployment(data_dir=tmp_path / "first", settings={"DATABASE_URL": postgres_url})
    made.run("init")
    with running_server(made) as server, server.client(key_of(made)) as client:
        get(client, acknowledge(client), "proof")
    return made


def key_of(deployment: Deployment, account: str = "vendor") -> str:
    return deployment.key(deployment.account(account))


def next_to(first: Deployment, **settings: str) -> Deployment:
    """Another host with copies of the keys, as the guide has it."""
    keys = {
        "SECRET_KEY_FILE": str(first.data_dir / "secret.key"),
        "KEY_ENCRYPTION_KEY": f"file:{first.data_dir / 'key-encryption.key'}",
    }
    place = first.data_dir.with_name("second")
    return Deployment(data_dir=place, settings=dict(first.settings) | keys | settings)


def sealing(client: httpx2.Client) -> str:
    return str(client.get("/readyz").json()["checks"]["sealing"])


def test_a_server_without_the_others_heads_accepts_and_says_why_it_does_not_seal(
    first: Deployment,
) -> None:
    """A restored backup would be sealed on by it. The others go on, also with what it accepted."""
    key, second = key_of(first, "another"), next_to(first)
    with running_server(second) as server, server.client(key) as client:
        wait_for(lambda: sealing(client) == "suspended")
        ack_id = acknowledge(client)
        assert client.get(f"/v1/acknowledgments/{ack_id}/proof").status_code == 409
        said = server.log.read_text()
        assert "Another server keeps the last published" in said
        assert f"note: the last published checkpoints are kept in {second.data_dir}/heads" in said
        with running_server(first) as old, old.client(key) as other:
            assert verify_file(get(other, ack_id, "proof"), policy_of(first)).ok
            assert sealing(other) == "ok"
    answer = second.run("doctor", "--json", check=False).stdout
    assert "Another server keeps the last published" in answer
    assert "logs.suspended" not in first.run("doctor", "--json", check=False).stdout


def test_a_server_that_shares_the_heads_of_the_others_seals_at_once(first: Deployment) -> None:
    """Whichever of them comes first."""
    second = next_to(first, LOG_HEAD_DIR=str(first.data_dir / "heads"))
    with running_server(second) as server, server.client(key_of(first, "another")) as client:
        assert verify_file(get(client, acknowledge(client), "proof"), policy_of(second)).ok
    assert first.read("log", "check")["findings"] == []


@pytest.mark.parametrize("way", ["--new-epoch", "--adopt-database-head", "--published-head"])
def test_a_shell_without_the_servers_place_changes_nothing(
    first: Deployment, tmp_path: Path, way: str
) -> None:
    """It would cite no published head, and might begin an epoch with a used number."""
    known = first.data_dir / "heads" / "test.checkpoint"
    words = (way, str(known)) if way == "--published-head" else (way,)
    refused = next_to(first).run(*RECOVER, "test", *words, check=False)
    assert refused.returncode == 1
    assert "/etc/countersign/heads.env" in refused.stderr
    assert "--move-heads" in refused.stderr
    assert {state["epoch"] for state in first.read("log", "status")} == {1}
    with running_server(first) as server, server.client(key_of(first, "another")) as client:
        assert verify_file(get(client, acknowledge(client), "proof"), policy_of(first)).ok


def test_the_operator_can_move_the_heads_to_another_place(first: Deployment) -> None:
    """The old one stops then, even while it runs, and the log records the decision."""
    key, second = key_of(first, "another"), next_to(first)
    with (
        running_server(first) as old,
        old.client(key) as left,
        running_server(second) as new,
        new.client(key) as client,
    ):
        get(left, acknowledge(left), "proof")
        for mode in ("test", "live"):
            second.run(*RECOVER, mode, "--adopt-database-head", "--move-heads")
        wait_for(lambda: sealing(client) == "ok")
        assert verify_file(get(client, acknowledge(client), "proof"), policy_of(second)).ok
        wait_for(lambda: sealing(left) == "suspended")
    assert second.read("log", "check")["findings"] == []
