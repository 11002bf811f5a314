"""Backups, their shred keys, and restoring next to existing data."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Bench
from tests.cli.evidence import make_evidence
from tests.support.service import running_server

pytestmark = pytest.mark.long


@pytest.fixture
def vendor(initialised: Bench) -> str:
    """Give the id of an account."""
    return initialised.account("vendor")


def elsewhere(bench: Bench, place: Path) -> Bench:
    """The same deployment in another directory: its keys, and no database."""
    place.mkdir(mode=0o700)
    for name in ("secret.key", "key-encryption.key"):
        shutil.copy(bench.data_dir / name, place / name)
    return Bench(data_dir=place)


def exported(bench: Bench, account: str) -> dict[str, dict[str, Any]]:
    """The acknowledgments of an account by their ids, as they are handed out."""
    lines = bench.run(
        "acknowledgments", "export", "--account", account, "--mode", "test", "--format", "jsonl"
    ).stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    return {row["ack_id"]: row for row in rows}


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_leftovers_of_another_database_are_named_and_nothing_is_restored(
    initialised: Bench, tmp_path: Path, suffix: str
) -> None:
    """SQLite would play a write-ahead log into any database next to it."""
    initialised.run("backup", str(tmp_path / "backup"))
    restored = elsewhere(initialised, tmp_path / "other")
    left = restored.data_dir / f"countersign.db{suffix}"
    left.write_bytes(b"of another database")
    words = restored.refused("restore", str(tmp_path / "backup"), "--yes")
    assert "backup_failed" in words
    assert left.name in words.replace("\n", "")
    assert not (restored.data_dir / "countersign.db").exists()
    left.unlink()
    restored.run("restore", str(tmp_path / "backup"), "--yes")
    assert restored.run("accounts", "list").returncode == 0


def test_one_file_of_shred_keys_outside_keeps_erased_data_erased(
    initialised: Bench, vendor: str, tmp_path: Path
) -> None:
    """Each backup replaces the file of shred keys; erased data is shown as erased."""
    erased, *_ = make_evidence(initialised, vendor, tmp_path)
    kept, *_ = make_evidence(initialised, vendor, tmp_path)
    keys = tmp_path / "apart" / "shred-keys.db"
    initialised.run("backup", str(tmp_path / "old"), "--shred-keys", str(keys))
    before = keys.read_bytes()
    initialised.run("erase", erased, "--yes")
    initialised.run("backup", str(tmp_path / "new"), "--shred-keys", str(keys))
    assert [file.name for file in (tmp_path / "old").iterdir()] == ["countersign.db"]
    assert keys.read_bytes() != before
    assert [file.name for file in keys.parent.iterdir()] == [keys.name]

    restored = elsewhere(initialised, tmp_path / "other")
    answer = restored.read("restore", str(tmp_path / "old"), "--shred-keys", str(keys), "--yes")
    assert answer == {"shred_keys": 1, "unreadable": 1, "shred_keys_age": "newer"}
    restored.run("init")
    found = exported(restored, vendor)
    assert (found[erased]["session_id"], found[kept]["session_id"]) == (None, "cs_1")
    assert found[erased]["erased_at"] is not None
    assert found[kept]["erased_at"] is None
    assert restored.read("log", "check")["findings"] == []


def test_shred_keys_as_old_as_the_backup_bring_erased_data_back_with_a_warning(
    initialised: Bench, vendor: str, tmp_path: Path
) -> None:
    """That is why only the newest may be kept."""
    erased, *_ = make_evidence(initialised, vendor, tmp_path)
    made = initialised.run("backup", str(tmp_path / "old"))
    assert "makes data readable that is erased later" in made.stderr.replace("\n", " ")
    initialised.run("erase", erased, "--yes")
    restored = elsewhere(initialised, tmp_path / "other")
    done = restored.run("restore", str(tmp_path / "old"), "--yes")
    assert "erased after the backup is readable again" in done.stderr.replace("\n", " ")
    assert exported(restored, vendor)[erased]["session_id"] == "cs_1"


def test_shred_keys_older_than_the_backup_are_reported_and_destroy_nothing(
    initialised: Bench, vendor: str, tmp_path: Path
) -> None:
    """Data without a key in them is not taken for erased: newer keys may be found."""
    initialised.run("backup", str(tmp_path / "old"))
    unreadable, *_ = make_evidence(initialised, vendor, tmp_path)
    initialised.run("backup", str(tmp_path / "new"))
    restored = elsewhere(initialised, tmp_path / "other")
    keys = str(tmp_path / "old" / "shred-keys.db")
    done = restored.run("restore", str(tmp_path / "new"), "--shred-keys", keys, "--yes")
    assert "older than the backup" in done.stderr.replace("\n", " ")
    restored.run("init")
    row = exported(restored, vendor)[unreadable]
    assert (row["session_id"], row["erased_at"]) == (None, None)


def verified_buyers(bench: Bench, *accounts: str) -> list[str]:
    """Verify a buyer of each of these accounts in the sandbox; gives their identifiers."""
    found = []
    keys = [bench.key(account) for account in accounts]
    with running_server(bench) as server:
        for key in keys:
            with server.client(key) as client:
                answer = client.post("/v1/buyers/verify", json={"test_mode": True})
            found.append(str(answer.json()["cbid"]))
    return found


def known(bench: Bench, account: str, cbid: str) -> int:
    """The HTTP status of the buyer over the API."""
    key = bench.key(account)
    with running_server(bench) as server, server.client(key) as client:
        return client.get(f"/v1/buyers/{cbid}/status").status_code


def rows_of_buyers(bench: Bench) -> dict[str, int]:
    """How many rows there are of each kind that is about a buyer."""
    tables = ("buyers", "verifications", "verification_evidence", "shred_keys")
    with closing(sqlite3.connect(bench.data_dir / "countersign.db")) as connection:
        return {
            table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - our own names
            for table in tables
        }


def test_a_buyer_that_was_erased_after_the_backup_stays_erased(
    initialised: Bench, vendor: str, tmp_path: Path
) -> None:
    """Buyers are readable in a backup: the newest shred keys tell who was erased since."""
    other = initialised.account("another vendor")
    erased, kept = verified_buyers(initialised, vendor, other)
    with closing(sqlite3.connect(initialised.data_dir / "countersign.db")) as connection:
        # Evidence, as a live verification leaves it.
        connection.execute(
            "INSERT INTO verification_evidence (record_id, account_id, mode, payload)"
            " SELECT id, account_id, mode, zeroblob(99) FROM verifications"
        )
        connection.commit()
    keys = tmp_path / "apart" / "shred-keys.db"
    initialised.run("backup", str(tmp_path / "old"), "--shred-keys", str(keys))
    before = rows_of_buyers(initialised)
    initialised.run("erase", erased, "--yes")
    initialised.run("backup", str(tmp_path / "new"), "--shred-keys", str(keys))
    with closing(sqlite3.connect(keys)) as connection:
        assert erased not in str([*connection.iterdump()]), "only a keyed hash of it is kept"

    restored = elsewhere(initialised, tmp_path / "other")
    words = restored.run(
        "restore", str(tmp_path / "old"), "--shred-keys", str(keys), "--yes"
    ).stderr
    assert "countersign init" in words
    restored.run("init")
    after = rows_of_buyers(restored)
    assert after == {table: number // 2 for table, number in before.items()}
    assert (known(restored, vendor, erased), known(restored, other, kept)) == (404, 200)
    assert "unknown_subject" in restored.refused("erase", erased, "--yes")
    assert restored.read("log", "check")["findings"] == []


def test_a_hold_in_the_backup_keeps_an_erased_buyer_until_its_release(
    initialised: Bench, vendor: str, tmp_path: Path
) -> None:
    """It was released before the erasure: the operator is warned, and `init` does the rest."""
    (cbid,) = verified_buyers(initialised, vendor)
    hold = initialised.run("holds", "place", cbid, "--reason", "a case").stdout.strip()
    keys = tmp_path / "shred-keys.db"
    initialised.run("backup", str(tmp_path / "old"), "--shred-keys", str(keys))
    initialised.run("holds", "release", hold)
    initialised.run("erase", cbid, "--yes")
    initialised.run("backup", str(tmp_path / "new"), "--shred-keys", str(keys))
    restored = elsewhere(initialised, tmp_path / "other")
    restored.run("restore", str(tmp_path / "old"), "--shred-keys", str(keys), "--yes")
    assert hold in restored.run("init").stderr
    assert rows_of_buyers(restored)["buyers"] == 1
    restored.run("holds", "release", hold)
    restored.run("init")
    assert rows_of_buyers(restored)["buyers"] == 0


def test_a_buyer_who_came_back_before_the_backup_is_not_erased_again(
    initialised: Bench, vendor: str, tmp_path: Path
) -> None:
    """Sandbox buyers come back under the same identifier; newer erasures are of others."""
    other = initialised.account("another vendor")
    (cbid,) = verified_buyers(initialised, vendor)
    initialised.run("erase", cbid, "--yes")
    back, gone = verified_buyers(initialised, vendor, other)
    assert back == cbid
    keys = tmp_path / "shred-keys.db"
    initialised.run("backup", str(tmp_path / "old"), "--shred-keys", str(keys))
    initialised.run("erase", gone, "--yes")
    initialised.run("backup", str(tmp_path / "new"), "--shred-keys", str(keys))
    restored = elsewhere(initialised, tmp_path / "other")
    restored.run("restore", str(tmp_path / "old"), "--shred-keys", str(keys), "--yes")
    restored.run("init")
    restored.run("init")
    assert (known(restored, vendor, back), known(restored, other, gone)) == (200, 404)


@pytest.mark.parametrize("content", ["the backup itself", "no database"])
def test_a_file_without_shred_keys_is_refused_and_nothing_is_left(
    initialised: Bench, tmp_path: Path, content: str
) -> None:
    initialised.run("backup", str(tmp_path / "backup"))
    wrong = tmp_path / "wrong.db"
    if content == "the backup itself":
        shutil.copy(tmp_path / "backup" / "countersign.db", wrong)
    else:
        wrong.write_bytes(b"no database at all" * 100)
    restored = elsewhere(initialised, tmp_path / "other")
    arguments = ("restore", str(tmp_path / "backup"), "--shred-keys", str(wrong), "--yes")
    assert "backup_failed" in restored.refused(*arguments)
    left = {file.name for file in restored.data_dir.iterdir()} - {"server.lock"}
    assert left == {"secret.key", "key-encryption.key"}


def test_a_backup_that_fails_leaves_nothing_and_can_be_made_again(
    initialised: Bench, tmp_path: Path
) -> None:
    """Least of all the draft, which holds every shred key at first."""
    target = tmp_path / "backup"
    too_long = tmp_path / ("k" * 255)  # there is no room for the name of its draft
    words = initialised.refused("backup", str(target), "--shred-keys", str(too_long))
    assert "backup_failed" in words
    assert list(target.iterdir()) == []
    initialised.run("backup", str(target))
    assert {file.name for file in target.iterdir()} == {"countersign.db", "shred-keys.db"}


def test_only_a_file_of_shred_keys_is_replaced_by_one(initialised: Bench, tmp_path: Path) -> None:
    """A wrong path would destroy the secret key, the database, or anything else."""
    other = tmp_path / "notes.txt"
    other.write_text("hello")
    own = [initialised.data_dir / name for name in ("secret.key", "countersign.db", "new.db")]
    before = {path: path.read_bytes() for path in (other, *own[:2])}
    for number, keys in enumerate((other, *own)):
        said = initialised.refused(
            "backup", str(tmp_path / f"b{number}"), "--shred-keys", str(keys)
        )
        assert "shred key" in said
    assert {path: path.read_bytes() for path in before} == before
    for number in (5, 6):
        at = str(tmp_path / f"b{number}")
        initialised.run("backup", at, "--shred-keys", str(tmp_path / "keys.db"))
