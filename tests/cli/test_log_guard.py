"""The fork guard: no second checkpoint is signed where a published one is not in the database."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from countersign.base.values import Mode
from countersign.core.log.head_files import HeadFiles
from countersign.core.log.seal import PERIOD_SECONDS
from countersign_evidence.policy import parse_policy
from countersign_evidence.verification import verify_file
from tests.cli.conftest import Bench
from tests.cli.evidence import make_evidence
from tests.cli.serving import wait_until
from tests.cli.tampering import tamper
from tests.support.service import Server, running_server

pytestmark = pytest.mark.long

RECOVER = ("log", "recover", "--mode", "test", "--yes")
ROUNDS_SECONDS = 3 * PERIOD_SECONDS
"""In this time a server runs sealing and publishing more than once."""


def state(bench: Bench) -> dict[str, Any]:
    """How the test log is doing."""
    (found,) = [s for s in bench.read("log", "status") if s["mode"] == "test"]
    return dict(found)


def head(bench: Bench, mode: str = "test") -> Path:
    return bench.data_dir / "heads" / f"{mode}.checkpoint"


def database(bench: Bench) -> Path:
    return bench.data_dir / "countersign.db"


def decisions(bench: Bench, kind: str) -> list[dict[str, Any]]:
    """The records of the deployment itself of this type, as they were sealed."""
    with closing(sqlite3.connect(database(bench))) as connection:
        rows = connection.execute(
            "SELECT r.body FROM deployment_records r JOIN log_entries e ON e.record_id = r.id"
            " WHERE r.type = ? ORDER BY e.leaf_index",
            (kind,),
        ).fetchall()
    return [json.loads(body) for (body,) in rows]


def acknowledge(server: Server, key: str) -> tuple[str, int]:
    """Acknowledge over HTTP; gives the state of its evidence, and the status of its proof."""
    with server.client(key) as client:
        answer = client.post(
            "/v1/notices/ab1263/acknowledge", json={"initials_per_line": ["A", "B", "C", "D"]}
        )
        assert answer.status_code == 200, answer.text
        address = f"/v1/acknowledgments/{answer.json()['ack_id']}"
        proof = client.get(f"{address}/proof")
        return client.get(address).json()["evidence"]["status"], proof.status_code


def sealing(server: Server) -> str:
    with server.client() as no_one:
        return str(no_one.get("/readyz").json()["checks"]["sealing"])


@pytest.fixture
def vendor(initialised: Bench) -> str:
    """Give the id of an account."""
    return initialised.account("vendor")


@pytest.fixture
def behind(initialised: Bench, vendor: str, tmp_path: Path) -> Bench:
    """Give a deployment whose database is from before an epoch that has published since."""
    make_evidence(initialised, vendor, tmp_path)
    copy = tmp_path / "copy.db"
    shutil.copy(database(initialised), copy)
    initialised.run(*RECOVER, "--new-epoch")
    make_evidence(initialised, vendor, tmp_path)
    assert b"/test/2\n" in head(initialised).read_bytes()
    shutil.copy(copy, database(initialised))
    return initialised


@pytest.mark.parametrize("kept", ["of a later epoch", "of the other mode"])
def test_a_running_server_leaves_a_head_that_the_database_does_not_know(
    behind: Bench, vendor: str, kept: str
) -> None:
    """It publishes nothing in its place, round after round, and seals nothing."""
    if kept == "of the other mode":
        shutil.copy(head(behind, "live"), head(behind))
    before = head(behind).read_bytes()
    key = behind.key(vendor)
    with running_server(behind) as server:
        time.sleep(ROUNDS_SECONDS)
        assert acknowledge(server, key) == ("pending", 409)
        time.sleep(ROUNDS_SECONDS)
        assert acknowledge(server, key) == ("pending", 409)
        assert sealing(server) == "suspended"
    assert head(behind).read_bytes() == before
    answer = state(behind)
    assert answer["waiting"] == 2
    assert "the database does not contain it" in answer["suspended"]


def test_a_new_epoch_follows_every_published_one(behind: Bench, tmp_path: Path) -> None:
    """Else a second log would go by the name of the first, with another key. It cites the head."""
    kept = head(behind).read_text()
    behind.run(*RECOVER, "--new-epoch", "--reason", "the disk died")
    assert (state(behind)["epoch"], state(behind)["suspended"]) == (3, None)
    (answer,) = decisions(behind, "epoch")
    assert (answer["previous_published"], answer["reason"]) == (kept, "the disk died")
    assert answer["previous_log"].endswith("/test/1")
    _, proof, policy = make_evidence(behind, behind.account("another"), tmp_path)
    assert verify_file(proof.read_bytes(), parse_policy(policy.read_bytes())).ok
    assert behind.read("log", "check")["findings"] == []


def test_an_unsigned_head_stops_sealing(initialised: Bench, vendor: str) -> None:
    """With right size and root, and a signature by no key of the log."""
    make_evidence(initialised, vendor, initialised.data_dir.parent)
    text, _, line = head(initialised).read_text().rpartition("\n\n")
    signature = line.rstrip("\n")
    flipped = signature[:-8] + ("AAAA" if signature[-8:-4] != "AAAA" else "BBBB") + signature[-4:]
    head(initialised).write_text(f"{text}\n\n{flipped}\n")
    before = head(initialised).read_bytes()
    assert "does not verify" in state(initialised)["suspended"]
    findings = initialised.run("log", "check", check=False)
    assert (findings.returncode, "does not verify" in findings.stdout) == (1, True)
    assert head(initialised).read_bytes() == before


def test_lost_accepted_entries_stop_sealing_although_none_was_published(
    initialised: Bench, vendor: str, tmp_path: Path
) -> None:
    """As by a lost end of the write-ahead log; a new epoch goes on."""
    make_evidence(initialised, vendor, tmp_path)
    size = state(initialised)["size"]
    heads = HeadFiles(initialised.data_dir / "heads")
    log_id, accepted = heads.accepted(Mode.TEST) or (0, 0)
    assert accepted == size
    heads.accept(Mode.TEST, log_id, size + 3)
    key = initialised.key(vendor)
    with running_server(initialised) as server:
        assert acknowledge(server, key) == ("pending", 409)
        assert sealing(server) == "suspended"
    assert "its latest 3 are lost, although they were accepted" in state(initialised)["suspended"]
    assert heads.accepted(Mode.TEST) == (log_id, size + 3)
    initialised.run(*RECOVER, "--new-epoch")
    assert (state(initialised)["epoch"], state(initialised)["suspended"]) == (2, None)
    with running_server(initialised) as server:
        assert acknowledge(server, key)[1] == 200


@pytest.fixture
def two_heads(initialised: Bench, vendor: str, tmp_path: Path) -> Path:
    """Publish twice; gives a file with the first of the checkpoints."""
    make_evidence(initialised, vendor, tmp_path)
    older = tmp_path / "older.checkpoint"
    shutil.copy(head(initialised), older)
    make_evidence(initialised, vendor, tmp_path)
    return older


def test_an_older_head_is_not_accepted_as_the_last_one(initialised: Bench, two_heads: Path) -> None:
    """The stored head shows that more was published, and no option replaces it."""
    kept = head(initialised).read_bytes()
    words = initialised.refused(*RECOVER, "--published-head", str(two_heads))
    assert "evidence_refused" in words
    assert "new epoch" in words
    assert head(initialised).read_bytes() == kept
    assert decisions(initialised, "recovery") == []
    initialised.run(*RECOVER, "--new-epoch", "--published-head", str(two_heads))
    (answer,) = decisions(initialised, "epoch")
    assert answer["previous_published"] == kept.decode(), "the later one is cited"


def test_the_head_of_another_deployment_is_not_replaced(
    initialised: Bench, two_heads: Path, tmp_path: Path
) -> None:
    """COUNTERSIGN_LOG_HEAD_DIR leads to the place of another one, also if that is older."""
    initialised.run(*RECOVER, "--new-epoch")
    make_evidence(initialised, initialised.account("another"), tmp_path)
    own = tmp_path / "own.checkpoint"
    shutil.copy(head(initialised), own)
    text = two_heads.read_text().partition("\n")
    foreign = f"elsewhere.example/v1/log/test/1\n{text[2]}"
    head(initialised).write_text(foreign)
    words = initialised.refused(*RECOVER, "--published-head", str(own))
    assert "elsewhere.example/v1/log/test/1, no log of this database" in " ".join(words.split())
    assert head(initialised).read_text() == foreign
    assert decisions(initialised, "recovery") == []


def test_without_its_head_file_a_log_does_not_continue(initialised: Bench, vendor: str) -> None:
    """Otherwise nothing could detect a restored database. Put back, it is enough."""
    make_evidence(initialised, vendor, initialised.data_dir.parent)
    key = initialised.key(vendor)
    away = head(initialised).with_name("away")
    with running_server(initialised) as server:
        assert acknowledge(server, key) == ("sealed", 200)
        head(initialised).rename(away)
        assert acknowledge(server, key)[1] == 409, "nothing leaves that is not kept outside"
        wait_until(lambda: sealing(server) == "suspended", "suspended")
        assert acknowledge(server, key) == ("pending", 409)
        assert not head(initialised).exists()
        away.rename(head(initialised))
        wait_until(lambda: sealing(server) == "ok", "ok")
        assert acknowledge(server, key) == ("sealed", 200)
    assert initialised.read("log", "check")["findings"] == []


def test_the_databases_own_head_is_adopted_if_none_is_kept(initialised: Bench, vendor: str) -> None:
    """The operator says so, and the log records it."""
    make_evidence(initialised, vendor, initialised.data_dir.parent)
    kept = head(initialised).read_text()
    head(initialised).unlink()
    answer = state(initialised)["suspended"]
    assert "file of its last published checkpoint is missing" in answer.replace("\n", " ")
    explained = initialised.run("log", "recover", "--mode", "test").stderr
    assert "--adopt-database-head" in explained
    initialised.run(*RECOVER, "--adopt-database-head", "--reason", "a new disk")
    assert state(initialised)["suspended"] is None
    (answer,) = decisions(initialised, "recovery")
    assert (answer["published"], answer["kept"], answer["reason"]) == (kept, None, "a new disk")
    refused = initialised.refused(*RECOVER, "--adopt-database-head")
    assert "evidence_refused" in refused, "now one is kept"


def test_the_head_of_a_restored_database_is_not_adopted(
    initialised: Bench, vendor: str, tmp_path: Path
) -> None:
    """The entries after the backup are unknown: only a new epoch can begin."""
    make_evidence(initialised, vendor, tmp_path)
    initialised.run("backup", str(tmp_path / "backup"))
    for file in initialised.data_dir.glob("countersign.db*"):
        file.unlink()
    shutil.rmtree(initialised.data_dir / "heads")
    initialised.run("restore", str(tmp_path / "backup"), "--yes")
    assert "evidence_refused" in initialised.refused(*RECOVER, "--adopt-database-head")
    initialised.run(*RECOVER, "--new-epoch")
    assert (state(initialised)["epoch"], state(initialised)["suspended"]) == (2, None)


def test_a_log_without_keys_waits_and_says_so(initialised: Bench, vendor: str) -> None:
    """Nothing is `sealed` under an unsigned checkpoint."""
    make_evidence(initialised, vendor, initialised.data_dir.parent)
    key = initialised.key(vendor)
    tamper(initialised, "DELETE FROM log_keys")
    with running_server(initialised) as server:
        assert acknowledge(server, key) == ("pending", 409)
        assert sealing(server) == "suspended"
    assert "No key can sign" in state(initialised)["suspended"]
    assert "its keys are missing" in initialised.run("log", "check", check=False).stdout


def test_a_damaged_signing_key_stops_neither_the_other_log_nor_a_check(
    initialised: Bench, vendor: str
) -> None:
    """`log status` and `log check` are what reports it."""
    tamper(initialised, "UPDATE log_keys SET seed = zeroblob(80) WHERE vkey LIKE '%/live/%'")
    states = {s["mode"]: s["suspended"] for s in initialised.read("log", "status")}
    assert "No key can sign" in states["live"]
    assert states["test"] is None
    done = initialised.run("log", "check", check=False)
    assert (done.returncode, "cannot be decrypted" in done.stdout) == (1, True)
    with running_server(initialised) as server:
        assert acknowledge(server, initialised.key(vendor)) == ("sealed", 200)
    initialised.run("log", "recover", "--mode", "live", "--new-epoch", "--yes")
    states = {s["mode"]: s["suspended"] for s in initialised.read("log", "status")}
    assert states == {"live": None, "test": None}


def test_a_missing_entry_at_the_end_is_explained(initialised: Bench, vendor: str) -> None:
    make_evidence(initialised, vendor, initialised.data_dir.parent)
    tamper(initialised, "DELETE FROM log_entries WHERE record_id = :ours")
    answer = state(initialised)["suspended"]
    assert "do not match the root of its head" in answer
    assert "log check" in answer
