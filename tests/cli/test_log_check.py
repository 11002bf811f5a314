"""`countersign log check` finds what was changed, taken away or kept from the log."""

import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Bench
from tests.cli.evidence import make_evidence
from tests.cli.tampering import tamper
from tests.cli.warm import Warm

ATTACKS = {
    "a record changed": (
        "UPDATE records SET body = CAST(body || ' ' AS BLOB) WHERE id = :ours",
        "is not the one that was sealed",
    ),
    "a record taken away": ("DELETE FROM records WHERE id = :ours", "is missing"),
    "a record stored as text": (
        "UPDATE records SET body = CAST(body AS TEXT) WHERE id = :ours",
        "is not the one that its digest is of",
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
        "has another root than the entries",
    ),
    "a head changed": ("UPDATE log_heads SET root = zeroblob(32)", "the head is not the root"),
    "a record moved to another account": (
        "UPDATE records SET account_id = (SELECT max(id) FROM accounts) WHERE id = :ours",
        "stands under the account_id",
    ),
    "a record put at another time": (
        "UPDATE records SET at = at + 86400000 WHERE id = :ours",
        "stands under the at",
    ),
    "disclosures taken away": (
        "DELETE FROM disclosures WHERE record_id = :ours",
        "has lost its disclosures",
    ),
    "disclosures moved to another mode": (
        "UPDATE disclosures SET mode = 'live' WHERE record_id = :ours",
        "under another account or mode",
    ),
    "an erasure taken away": ("DELETE FROM erasures", "was erased, and it is not"),
    "an erasure's record taken away": (
        "DELETE FROM records WHERE type = 'erasure'",
        "counts as erased, and no record tells of it",
    ),
    "the words of a notice changed": (
        "UPDATE notice_versions SET body = CAST(replace(CAST(body AS TEXT), 'a', 'b') AS BLOB)",
        "of the notice ab1263 has changed",
    ),
    "the digest of a notice changed": (
        "UPDATE notice_versions SET digest = hex(zeroblob(32))",
        "with other words than the one that is stored",
    ),
}


@pytest.fixture(scope="module")
def honest(warm: Warm, initialised_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a data directory with two acknowledgments, the second of which was erased."""
    folder = tmp_path_factory.mktemp("honest")
    bench = Bench(data_dir=folder / "data", warm=warm)
    shutil.copytree(initialised_once, bench.data_dir)
    vendor = bench.account("vendor")
    bench.account("somebody else")
    make_evidence(bench, vendor, folder)
    erased, *_ = make_evidence(bench, vendor, folder)
    bench.run("erase", erased, "--yes")
    return bench.data_dir


def test_an_honest_database_has_nothing_to_find(honest: Path, warm: Warm) -> None:
    """Else what follows would prove nothing."""
    assert Bench(data_dir=honest, warm=warm).read("log", "check")["findings"] == []


@pytest.mark.parametrize("attack", ATTACKS)
def test_it_is_found_and_named(bench: Bench, honest: Path, attack: str) -> None:
    """Whatever the owner of the database does to it, with every trigger away."""
    statement, told = ATTACKS[attack]
    shutil.copytree(honest, bench.data_dir)
    tamper(bench, statement)
    done = bench.run("log", "check", check=False)
    assert done.returncode == 1, done
    assert "Traceback" not in done.stderr
    assert told in done.stdout
