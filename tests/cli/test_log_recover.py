"""`countersign log recover`: the documented ways to go on after a loss."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from countersign_evidence.policy import parse_policy
from countersign_evidence.verification import verify_file
from tests.cli.conftest import Bench
from tests.cli.evidence import make_evidence


def state(bench: Bench) -> dict[str, Any]:
    """How the test log is doing."""
    (found,) = [s for s in bench.read("log", "status") if s["mode"] == "test"]
    return dict(found)


def head(bench: Bench) -> Path:
    return bench.data_dir / "heads" / "test.checkpoint"


@pytest.fixture
def restored(initialised: Bench, tmp_path: Path) -> Bench:
    """A deployment restored from a backup after which nothing was published.

    The last published checkpoint lies in its directory.
    """
    make_evidence(initialised, initialised.account("vendor"), tmp_path)
    initialised.run("backup", str(tmp_path / "backup"))
    other = Bench(data_dir=tmp_path / "other")
    other.data_dir.mkdir(mode=0o700)
    for name in ("secret.key", "key-encryption.key"):
        shutil.copy(initialised.data_dir / name, other.data_dir / name)
    shutil.copytree(initialised.data_dir / "heads", other.data_dir / "heads")
    other.run("restore", str(tmp_path / "backup"), "--yes")
    return other


def test_a_published_head_in_the_database_lets_the_log_continue(
    restored: Bench, tmp_path: Path
) -> None:
    """In the same epoch; later seals verify."""
    assert "restored from a backup" in state(restored)["suspended"]
    words = restored.run("log", "recover", "--mode", "test").stderr.replace("\n", " ")
    assert "--published-head" in words
    options = ("--mode", "test", "--published-head", str(head(restored)), "--yes")
    restored.run("log", "recover", *options)
    assert (state(restored)["suspended"], state(restored)["epoch"]) == (None, 1)
    _, proof, policy = make_evidence(restored, restored.account("another"), tmp_path)
    assert verify_file(proof.read_bytes(), parse_policy(policy.read_bytes())).ok
    assert restored.read("log", "check")["findings"] == []


def test_a_new_epoch_cites_the_given_published_head(restored: Bench, tmp_path: Path) -> None:
    """The directory that kept it may be lost: then it is known from outside only."""
    known = tmp_path / "known.checkpoint"
    head(restored).rename(known)
    options = ("--new-epoch", "--published-head", str(known), "--yes")
    restored.run("log", "recover", "--mode", "test", *options)
    with closing(sqlite3.connect(restored.data_dir / "countersign.db")) as connection:
        (body,) = connection.execute(
            "SELECT body FROM deployment_records WHERE type = 'epoch'"
        ).fetchone()
    assert json.loads(body)["previous_published"] == known.read_text()


def test_a_head_of_another_log_is_not_cited(restored: Bench, tmp_path: Path) -> None:
    """Neither one of the other mode nor one of an earlier epoch."""
    old = tmp_path / "old.checkpoint"
    shutil.copy(head(restored), old)
    live = str(restored.data_dir / "heads" / "live.checkpoint")
    options = ("log", "recover", "--mode", "test", "--new-epoch", "--yes", "--published-head")
    assert "invalid_argument" in restored.refused(*options, live)
    restored.run(*options, str(old))
    assert "invalid_argument" in restored.refused(*options, str(old))
    assert state(restored)["epoch"] == 2


@pytest.mark.parametrize("way", ["--new-epoch", "--published-head"])
def test_the_operator_decides_nothing_while_the_kept_head_is_unreadable(
    restored: Bench, tmp_path: Path, way: str
) -> None:
    """A failing disk does not mean that nothing was published."""
    known = tmp_path / "known.checkpoint"
    head(restored).rename(known)
    head(restored).mkdir()
    words = (way, str(known)) if way == "--published-head" else (way,)
    refused = restored.refused("log", "recover", "--mode", "test", "--yes", *words)
    assert "head_unavailable" in refused
    with closing(sqlite3.connect(restored.data_dir / "countersign.db")) as connection:
        decided = "SELECT * FROM deployment_records WHERE type IN ('epoch', 'recovery')"
        assert connection.execute(decided).fetchall() == []
