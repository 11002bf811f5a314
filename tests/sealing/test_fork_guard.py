"""A restored database is detected, and nothing is signed that would be a fork."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from countersign_evidence.note import checkpoint_of
from countersign_evidence.verification import verify_file
from tests.sealing.acts import acknowledge, check, evidence_of, get, policy_of
from tests.support.service import Deployment, Server, running_server


def database(deployment: Deployment) -> Path:
    return deployment.data_dir / "countersign.db"


def go_back(deployment: Deployment) -> tuple[str, str, str]:
    """Acknowledge once, copy the database, acknowledge again, and put the copy back.

    Returns a key, the ack_id before the copy and the one after it, whose proof has left.
    """
    key = deployment.key(deployment.account("vendor"))
    with running_server(deployment) as server, server.client(key) as client:
        before = acknowledge(client)
        get(client, before, "proof")
    copy = deployment.data_dir.with_name("copy.db")
    shutil.copy(database(deployment), copy)
    with running_server(deployment) as server, server.client(key) as client:
        lost = acknowledge(client)
        get(client, lost, "proof")
    shutil.copy(copy, database(deployment))
    return key, before, lost


def state(deployment: Deployment, mode: str = "test") -> dict[str, object]:
    (found,) = [s for s in deployment.read("log", "status") if s["mode"] == mode]
    return dict(found)


def ready(server: Server) -> str:
    with server.client() as no_one:
        checks: dict[str, str] = no_one.get("/readyz").json()["checks"]
    return checks["sealing"]


def test_a_restored_copy_stops_sealing_and_refuses_no_act(embedded: Deployment) -> None:
    """Acknowledgments wait; earlier seals can still be proved."""
    key, before, lost = go_back(embedded)
    with running_server(embedded) as server, server.client(key) as client:
        new = acknowledge(client)
        assert evidence_of(client, new) == {"status": "pending", "log": None, "index": None}
        answer = client.get(f"/v1/acknowledgments/{new}/proof")
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "evidence_pending")
        assert int(answer.headers["retry-after"]) >= 1
        assert verify_file(get(client, before, "proof"), policy_of(embedded)).ok
        assert client.get(f"/v1/acknowledgments/{lost}").status_code == 404
        assert ready(server) == "suspended"
    found = state(embedded)
    assert found["waiting"] == 1
    assert "restored from a backup" in str(found["suspended"])
    assert "log recover" in str(found["suspended"])


def test_published_checkpoints_stay_public_after_a_loss_of_the_database(
    embedded: Deployment,
) -> None:
    """A smaller checkpoint would look like a fork; tiles are served as far as present."""
    go_back(embedded)
    kept = (embedded.data_dir / "heads" / "test.checkpoint").read_bytes()
    size = checkpoint_of(kept).size
    has = int(str(state(embedded)["size"]))
    assert has < size
    with running_server(embedded) as server, server.client() as no_one:
        assert no_one.get("/v1/log/test/1/checkpoint").content == kept
        tile = "/v1/log/test/1/tile/entries/000.p"
        assert no_one.get(f"{tile}/{has}").status_code == 200
        assert no_one.get(f"{tile}/{size}").status_code == 404


def test_a_new_epoch_continues_and_cites_the_old_head(embedded: Deployment) -> None:
    """Also in a server that was running all the while."""
    key, before, _ = go_back(embedded)
    with running_server(embedded) as server, server.client(key) as client:
        waiting = acknowledge(client)
        embedded.run("log", "recover", "--mode", "test", "--new-epoch", "--yes")
        proof = get(client, waiting, "proof")
        policy = policy_of(embedded)
        verdict = verify_file(proof, policy)
        assert verdict.ok, verdict.line()
        assert str(verdict.facts["log"]).endswith("/v1/log/test/2")
        assert verdict.facts["index"] == 1, "the first entry is that of the epoch itself"
        assert verify_file(get(client, before, "proof"), policy).ok
        assert ready(server) == "ok"
    assert check(embedded)["findings"] == []
    assert state(embedded)["suspended"] is None


def test_a_completely_restored_database_continues_by_itself(embedded: Deployment) -> None:
    """The tail was recovered: no decision is needed."""
    key = embedded.key(embedded.account("vendor"))
    with running_server(embedded) as server, server.client(key) as client:
        get(client, acknowledge(client), "proof")
        old = embedded.data_dir.with_name("old.db")
    shutil.copy(database(embedded), old)
    with running_server(embedded) as server, server.client(key) as client:
        get(client, acknowledge(client), "proof")
    whole = embedded.data_dir.with_name("whole.db")
    shutil.copy(database(embedded), whole)
    shutil.copy(old, database(embedded))
    assert state(embedded)["suspended"]
    shutil.copy(whole, database(embedded))
    assert state(embedded)["suspended"] is None


def test_a_published_head_that_the_database_lacks_is_not_accepted(embedded: Deployment) -> None:
    """Whatever the operator says, continuing would be a fork."""
    go_back(embedded)
    head = embedded.data_dir / "heads" / "test.checkpoint"
    copy = embedded.data_dir.with_name("head")
    shutil.copy(head, copy)
    done = embedded.run(
        "log", "recover", "--mode", "test", "--published-head", str(copy), "--yes", check=False
    )
    assert done.returncode == 1
    assert "evidence_refused" in done.stderr
    assert state(embedded)["suspended"]


@pytest.mark.parametrize("content", [b"", b"not a note", b"x\n0\nAAAA\n\n"])
def test_a_damaged_head_file_stops_sealing(embedded: Deployment, content: bytes) -> None:
    """It is not mistaken for a missing one."""
    (embedded.data_dir / "heads" / "test.checkpoint").write_bytes(content)
    assert "cannot be read" in str(state(embedded)["suspended"])
    assert state(embedded, "live")["suspended"] is None
