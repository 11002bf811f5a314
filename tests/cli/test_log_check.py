"""`countersign log check` finds changed, deleted and withheld records."""

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from countersign.base.config import load_settings
from countersign.operate.bootstrap import open_deployment
from countersign_evidence.disclosure import b64url_each, disclose
from tests.cli.conftest import Bench
from tests.cli.evidence import make_evidence, make_many
from tests.cli.tampering import tamper

_ADDED = """\
INSERT INTO legal_holds (id, subject, reason, placed_at, account_id)
SELECT 'hold_x', subject, reason, placed_at, account_id FROM legal_holds"""
ATTACKS = {
    "a record changed": (
        "UPDATE records SET body = CAST(body || ' ' AS BLOB) WHERE id = :ours",
        "is not the one that was sealed",
    ),
    "a record taken away": ("DELETE FROM records WHERE id = :ours", "is missing"),
    "a record stored as text": (
        "UPDATE records SET body = CAST(body AS TEXT) WHERE id = :ours",
        "does not match its digest",
    ),
    "an entry changed": (
        "UPDATE log_entries SET digest = zeroblob(32) WHERE record_id = :ours",
        "is not the one that was sealed",
    ),
    "an entry taken away": (
        "DELETE FROM log_entries WHERE record_id = :ours",
        "is neither sealed nor waiting",
    ),
    "a checkpoint changed": (
        "UPDATE checkpoints SET root = zeroblob(32) WHERE size = 1",
        "does not match the root of the entries",
    ),
    "a head changed": (
        "UPDATE log_heads SET root = zeroblob(32)",
        "the head does not match the root",
    ),
    "a record moved to another account": (
        "UPDATE records SET account_id = (SELECT max(id) FROM accounts) WHERE id = :ours",
        "is stored with the account_id",
    ),
    "a record put at another time": (
        "UPDATE records SET at = at + 86400000 WHERE id = :ours",
        "is stored with the at",
    ),
    "disclosures taken away": (
        "DELETE FROM disclosures WHERE record_id = :ours",
        "has lost its disclosures",
    ),
    "disclosures moved to another mode": (
        "UPDATE disclosures SET mode = 'live' WHERE record_id = :ours",
        "stored with another account or mode",
    ),
    "an erasure taken away": ("DELETE FROM erasures", "was erased, but it is not"),
    "an erasure's record taken away": (
        "DELETE FROM records WHERE type = 'erasure'",
        "counts as erased, but no erasure record names it",
    ),
    "the words of a notice changed": (
        "UPDATE notice_versions SET body = CAST(replace(CAST(body AS TEXT), 'a', 'b') AS BLOB)",
        "of the notice ab1263 has changed",
    ),
    "the digest of a notice changed": (
        "UPDATE notice_versions SET digest = hex(zeroblob(32))",
        "whose stored text has another digest",
    ),
    "an event of a notice taken away": (
        "DELETE FROM notice_events WHERE type = 'published'",
        "of the notice ab1263 was published by a record of the log, but the event is missing",
    ),
    "an event of a notice changed": (
        "UPDATE notice_events SET type = 'reviewed' WHERE type = 'published'",
        "of the notice ab1263 was reviewed by an event of which the log has no record",
    ),
    "an event of a notice dated back": (
        "UPDATE notice_events SET at = at - 86400000",
        "of the notice ab1263 was published at another time than the record of the log says",
    ),
    "a party's description taken away": (
        "DELETE FROM parties WHERE number = 2",
        "describes a party, but its row is missing",
    ),
    "another description of a party in force": (
        "UPDATE parties SET number = 9 WHERE number = 1",
        "of a party is not the one of the record",
    ),
    "a description of a party changed": (
        "UPDATE parties SET digest = randomblob(32) WHERE number = 1",
        "of a party is not the one of the record",
    ),
    "a hold taken away": ("DELETE FROM legal_holds", "but its row is missing"),
    "a hold added": (
        _ADDED,
        "the hold hold_x is a row of which the audit has no entry",
    ),
    "a hold on something else": (
        "UPDATE legal_holds SET subject = 'ack_other'",
        "is not the one that the audit has",
    ),
    "a hold that binds one account alone": (
        "UPDATE legal_holds SET mode = 'test', account_id = (SELECT max(id) FROM accounts)",
        "is not the one that the audit has",
    ),
    "a hold dated back": (
        "UPDATE legal_holds SET placed_at = placed_at - 86400000",
        "is not the one that the audit has",
    ),
    "a hold ended": (
        "UPDATE legal_holds SET released_at = placed_at",
        "ended otherwise than the audit has it",
    ),
    "the root of a tile changed": (
        "UPDATE log_tiles SET root = zeroblob(32)",
        "the root of tile 0 of level 0 does not match its leaves",
    ),
    "the hashes of a tile changed": (
        "UPDATE log_tiles SET hashes = zeroblob(8192)",
        "tile 0 of level 0 does not match its leaves",
    ),
    "a tile added": (
        "INSERT INTO log_tiles SELECT log_id, 1, 0, hashes, root FROM log_tiles",
        "tile 0 of level 1 is beyond",
    ),
    "an entry added": (
        "INSERT INTO log_entries SELECT log_id, 100000, 'none', digest FROM log_entries LIMIT 1",
        "entry 100000 is beyond",
    ),
    "a checkpoint added": (
        "INSERT INTO checkpoints SELECT log_id, 100000, root, note, at FROM checkpoints LIMIT 1",
        "the checkpoint of size 100000 is beyond",
    ),
    "the log taken away": ("DELETE FROM logs WHERE mode = 'test'", "test: the log is missing"),
    "the log taken away, and its head file there": (
        "DELETE FROM logs WHERE mode = 'test'",
        "was published, but the database has no such log",
    ),
    "its keys taken away": ("DELETE FROM log_keys", "its keys are missing"),
    "a shred key taken away": (
        "DELETE FROM shred_keys WHERE record_id = :ours",
        "has disclosures without their key",
    ),
    "a shred key changed": (
        "UPDATE shred_keys SET key = zeroblob(32) WHERE record_id = :ours",
        "has disclosures that cannot be decrypted",
    ),
    "the disclosures of another record": (
        "UPDATE disclosures SET payload = (SELECT max(payload) FROM disclosures)",
        "has disclosures that cannot be decrypted",
    ),
}


@pytest.fixture(scope="module")
def honest(initialised_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with acknowledgments, the second of which was erased, and a tile."""
    folder = tmp_path_factory.mktemp("honest")
    bench = Bench(data_dir=folder / "data")
    shutil.copytree(initialised_once, bench.data_dir)
    vendor = bench.account("vendor")
    bench.account("somebody else")
    make_evidence(bench, vendor, folder)
    erased, *_ = make_evidence(bench, vendor, folder)
    bench.run("erase", erased, "--yes")
    kept, *_ = make_evidence(bench, vendor, folder)
    bench.run("holds", "place", kept, "--reason", "a case")
    for name in ("First", "Second"):
        bench.run("operator", "describe", "--legal-name", name)
    make_many(bench, vendor, 260)
    return bench.data_dir


def test_no_damage_is_found_in_an_honest_database(honest: Path) -> None:
    """Otherwise the other tests would prove nothing."""
    assert Bench(data_dir=honest).read("log", "check")["findings"] == []


@pytest.mark.parametrize("attack", ATTACKS)
def test_it_is_found_and_named(bench: Bench, honest: Path, attack: str) -> None:
    """Whatever the owner of the database does to it, with every trigger away."""
    statement, answer = ATTACKS[attack]
    shutil.copytree(honest, bench.data_dir)
    tamper(bench, statement)
    done = bench.run("log", "check", check=False)
    assert done.returncode == 1, done
    assert "Traceback" not in done.stderr
    assert answer in done.stdout


def test_disclosures_that_open_and_differ_from_the_record_are_found(
    bench: Bench, honest: Path
) -> None:
    """A thief of the key-encryption key, too, can seal other words under the right names."""
    shutil.copytree(honest, bench.data_dir)
    with closing(sqlite3.connect(bench.data_dir / "countersign.db")) as connection:
        record_id, account_id, shred_key = connection.execute(
            "SELECT d.record_id, d.account_id, k.key FROM disclosures d"
            " JOIN shred_keys k ON k.record_id = d.record_id ORDER BY 1"
        ).fetchone()

    async def other_words() -> bytes:
        async with open_deployment(load_settings(bench.environment)) as deployment:
            data_key = await deployment.vault.vault.data_key(account_id, deployment.clock.time_ns())
            forged, _ = disclose([("a" * 22, "session_id", "cs_forged")])
            return data_key.seal(
                shred_key=shred_key,
                nonce=bytes(12),
                plaintext=msgspec.json.encode(b64url_each(forged)),
                table="disclosures",
                column="payload",
                account=account_id,
                row_id=record_id,
            )

    payload = asyncio.run(other_words())
    with closing(sqlite3.connect(bench.data_dir / "countersign.db")) as connection:
        connection.execute(
            "UPDATE disclosures SET payload = ? WHERE record_id = ?", (payload, record_id)
        )
        connection.commit()
    done = bench.run("log", "check", check=False)
    assert done.returncode == 1
    assert f"{record_id} has disclosures that do not match the record" in done.stdout


@pytest.mark.parametrize("table", ["log_entries", "records", "disclosures", "checkpoints"])
def test_a_damaged_database_is_reported_and_not_mistaken_for_a_bug(
    bench: Bench, honest: Path, table: str
) -> None:
    """Findings before the damage are reported too."""
    shutil.copytree(honest, bench.data_dir)
    file = bench.data_dir / "countersign.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)
        ).fetchone()
    with file.open("r+b") as opened:
        opened.seek((page - 1) * size)
        opened.write(b"\xff" * size)
    done = bench.run("log", "check", check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "is damaged and cannot be read any further" in done.stdout
    status = bench.run("log", "status")
    if table == "log_entries":
        assert "The database is damaged" in status.stdout.replace("\n", " ")


def test_a_withdrawn_notice_cannot_return_undetected(bench: Bench, honest: Path) -> None:
    """Deleting one row would put it in force again: the check and the doctor report that."""
    shutil.copytree(honest, bench.data_dir)
    (version,) = [one["version"] for one in bench.read("notices", "list")]
    bench.run("notices", "withdraw", "ab1263", "--version", version, "--reason", "a test", "--yes")
    tamper(bench, "DELETE FROM notice_events WHERE type = 'withdrawn'")
    wrong = f"version {version} of the notice ab1263 was withdrawn by a record of the log, but"
    assert wrong in bench.run("log", "check", check=False).stdout
    assert wrong in bench.run("doctor", check=False).stdout
