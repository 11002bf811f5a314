"""A new deployment is created by hand, once, and only if nothing of an older one is left."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from countersign.base.config import load_settings
from countersign.base.db import schema
from countersign.base.db.engine import SQLITE_FILE, database_url
from countersign.base.values import Mode
from countersign.core.log.head_files import HeadFiles
from countersign.operate.bootstrap import initialise
from countersign_evidence.note import checkpoint_of
from tests.cli.conftest import Bench
from tests.sealing.acts import acknowledge, get
from tests.support import postgres
from tests.support.engines import ENGINES, engine_server
from tests.support.service import free_port, running_server

pytestmark = pytest.mark.both_engines

STARTS = [("init",), ("init", "--upgrade"), ("dev",)]


def kept(bench: Bench) -> Mapping[str, bytes]:
    """Leftovers in the directories of heads and keys."""
    places = (Path(bench.settings["LOG_HEAD_DIR"]), bench.data_dir)
    files = (path for place in places if place.exists() for path in sorted(place.rglob("*")))
    return {str(path): path.read_bytes() for path in files if path.is_file()}


@pytest.fixture(params=ENGINES)
def lived_in(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    """Give a deployment that has published checkpoints, in a place of their own."""
    server = engine_server(request)
    own = {} if server is None else {"DATABASE_URL": postgres.fresh_database(server)}
    bench = Bench(
        data_dir=tmp_path / "data",
        settings={"LOG_HEAD_DIR": str(tmp_path / "heads"), "PORT": str(free_port())} | own,
    )
    bench.run("init")
    with (
        running_server(bench) as running,
        running.client(bench.key(bench.account("v"))) as client,
    ):
        get(client, acknowledge(client), "proof")
    if server is None:
        bench.run("backup", str(tmp_path / "backup"))
    return bench


def elsewhere(request: pytest.FixtureRequest, bench: Bench) -> Bench:
    """Give the same without its database: the file is gone, or the URL names an empty one."""
    if "DATABASE_URL" in bench.settings:
        server: postgres.PostgresServer = request.getfixturevalue("postgres_server")
        return bench.but(DATABASE_URL=postgres.fresh_database(server))
    for path in bench.data_dir.glob("countersign.db*"):
        path.unlink()
    return bench


@pytest.mark.parametrize("words", STARTS)
def test_without_its_database_a_deployment_is_not_created_again(
    lived_in: Bench, request: pytest.FixtureRequest, words: tuple[str, ...]
) -> None:
    """The refusal names the existing and the missing parts, and nothing is changed."""
    lost = elsewhere(request, lived_in)
    before = kept(lost)
    said = " ".join(lost.refused(*words).split())
    assert "error (deployment_incomplete): This looks like a lost disk" in said
    missing, _, there = said.partition("Still here: ")
    assert ("countersign.db" in missing) is ("DATABASE_URL" not in lost.settings)
    assert ("last-backup.json" in there) is ("DATABASE_URL" not in lost.settings)
    for place in ("secret.key", "key-encryption.key", lost.settings["LOG_HEAD_DIR"]):
        assert place in there
    assert "restore a backup" in said
    assert kept(lost) == before


@pytest.mark.parametrize("words", STARTS)
def test_the_note_of_a_backup_alone_shows_that_a_deployment_was_here(
    initialised: Bench, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Even where tables are back without their content: it looks like a lost disk."""
    initialised.run("backup", str(tmp_path / "backup"))
    note = initialised.data_dir / "last-backup.json"
    kept = note.read_bytes()
    shutil.rmtree(initialised.data_dir)
    initialised.data_dir.mkdir()
    note.write_bytes(kept)
    for _ in range(2):
        said = " ".join(initialised.refused(*words).split())
        assert "error (deployment_incomplete): This looks like a lost disk" in said
        missing, _, there = said.partition("Still here: ")
        for part in ("the database", "the secret key", "the last published checkpoints"):
            assert part in missing
        assert f"the note of the last backup {note}" in there
        assert {path.name for path in initialised.data_dir.iterdir()} <= {note.name, SQLITE_FILE}
        schema.upgrade(database_url(None, initialised.data_dir))
    shutil.rmtree(initialised.data_dir)
    initialised.run("restore", str(tmp_path / "backup"), "--yes")
    assert "wrong_secret_key" in initialised.refused("init", "--upgrade")


@pytest.mark.parametrize("words", STARTS)
def test_an_unmounted_disk_is_not_a_new_deployment(
    lived_in: Bench, request: pytest.FixtureRequest, words: tuple[str, ...]
) -> None:
    """The last published checkpoints alone are left, and stay; no directory is made."""
    lost = elsewhere(request, lived_in)
    lost.data_dir.rename(lost.data_dir.with_name("away"))
    before = kept(lost)
    assert checkpoint_of(before[f"{lost.settings['LOG_HEAD_DIR']}/test.checkpoint"]).size > 0
    said = " ".join(lost.refused(*words).split())
    assert "error (deployment_incomplete)" in said
    assert "secret.key" in said
    assert kept(lost) == before
    assert not lost.data_dir.exists()


def test_tables_without_a_log_do_not_replace_one(
    lived_in: Bench, request: pytest.FixtureRequest
) -> None:
    """A dump of the tables alone was restored: the published head stays the last one."""
    lost = elsewhere(request, lived_in)
    schema.upgrade(database_url(lost.settings.get("DATABASE_URL"), lost.data_dir))
    for key in lost.data_dir.glob("*.key"):
        key.unlink()
    before = {name: note for name, note in kept(lost).items() if "heads" in name}
    for words in (("init",), ("init", "--upgrade")):
        assert "deployment_incomplete" in lost.refused(*words)
    assert {name: note for name, note in kept(lost).items() if "heads" in name} == before
    assert [*lost.data_dir.glob("*.key")] == []


def test_start_scripts_never_create_a_deployment(either: Bench) -> None:
    """If everything is on the missing disk, only a person knows that the deployment is not new."""
    said = either.refused("init", "--upgrade")
    assert "error (not_initialised)" in said
    assert "mounted" in said
    assert not either.data_dir.exists()
    either.run("init")
    heads = {mode: HeadFiles(either.data_dir / "heads").read(mode) for mode in Mode}
    done = either.run("init", "--upgrade")
    assert "up to date" in done.stderr
    assert heads == {mode: HeadFiles(either.data_dir / "heads").read(mode) for mode in Mode}


def test_a_killed_creation_is_completed_by_hand(either: Bench) -> None:
    """Tables without a published head are no deployment yet: a start says so."""
    either.data_dir.mkdir()
    schema.upgrade(database_url(either.settings.get("DATABASE_URL"), either.data_dir))
    assert "error (not_initialised)" in either.refused("init", "--upgrade")
    either.run("init")
    assert either.account("vendor")


def test_the_first_head_of_a_killed_creation_is_kept_at_the_next_start(
    either: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log was committed, and its head was not kept yet: an empty log has published nothing."""
    heads = HeadFiles(either.data_dir / "heads")
    with monkeypatch.context() as killed:
        killed.setattr(HeadFiles, "advance", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            asyncio.run(initialise(load_settings(either.environment)))
    assert [mode for mode in Mode if heads.read(mode) is not None] == []
    either.run("init", "--upgrade")
    assert [mode for mode in Mode if heads.read(mode) is None] == []
    assert {state["suspended"] for state in either.read("log", "status")} == {None}


@pytest.mark.postgres
def test_another_server_of_the_database_starts_with_the_keys_alone(
    bench: Bench, postgres_url: str, tmp_path: Path
) -> None:
    """A second machine needs only the two key files before its first start."""
    first = bench.but(DATABASE_URL=postgres_url)
    first.run("init")
    second = Bench(data_dir=tmp_path / "second", settings=first.settings)
    second.data_dir.mkdir()
    for name in ("secret.key", "key-encryption.key"):
        shutil.copy(first.data_dir / name, second.data_dir)
    second.run("init", "--upgrade")
