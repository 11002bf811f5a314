"""`init`, the secret key, and commands without either."""

import base64
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import text

from countersign.base.db.engine import Purpose, database_url, open_engine
from tests.cli.conftest import Bench
from tests.support import forked

pytestmark = pytest.mark.both_engines


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_init_makes_everything_and_asks_nothing(bench: Bench) -> None:
    done = bench.run("init")
    assert done.stdout == ""
    assert str(bench.data_dir) in done.stderr
    assert bench.read("notices", "list")
    assert bench.account("vendor").startswith("acct_")


def test_init_accepts_an_existing_empty_directory(bench: Bench) -> None:
    bench.data_dir.mkdir()
    bench.run("init")
    assert bench.account("vendor")


def test_only_the_owner_can_read_what_init_writes(bench: Bench) -> None:
    bench.run("init")
    assert mode_of(bench.data_dir) == 0o700
    assert mode_of(bench.data_dir / "secret.key") == 0o600
    for path in bench.data_dir.iterdir():
        assert mode_of(path) & 0o077 == 0, path


def test_init_twice_is_harmless(either: Bench) -> None:
    either.run("init")
    account, key = either.account("vendor"), either.key("vendor")
    secret = (either.data_dir / "secret.key").read_bytes()
    before = [either.read(noun, "list") for noun in ("accounts", "keys", "notices")]
    either.run("init")
    assert (either.data_dir / "secret.key").read_bytes() == secret
    assert [either.read(noun, "list") for noun in ("accounts", "keys", "notices")] == before
    assert account in str(before)
    assert key.startswith("csign_sk_test_")


def test_several_inits_at_once_end_well(either: Bench) -> None:
    under_way = [forked.Running(["countersign", "init"], either.environment) for _ in range(4)]
    done = [command.end() for command in under_way]
    assert [(d.returncode, d.stderr if d.returncode else "") for d in done] == [(0, "")] * 4
    assert either.key(either.account("vendor"))
    assert len(either.read("notices", "list")) == 1
    assert sorted(p.suffix for p in either.data_dir.iterdir() if p.name.startswith("secret")) == [
        ".key"
    ]


def test_the_secret_key_can_live_elsewhere(bench: Bench, tmp_path: Path) -> None:
    place = tmp_path / "elsewhere" / "countersign.secret"
    elsewhere = bench.but(SECRET_KEY_FILE=str(place))
    elsewhere.run("init")
    assert len(base64.b64decode(place.read_bytes())) == 32
    assert mode_of(place) == 0o600
    assert not (bench.data_dir / "secret.key").exists()
    assert elsewhere.account("vendor")


COMMANDS = [("init",), ("serve",), ("accounts", "list"), ("keys", "list"), ("notices", "list")]


@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_missing_secret_key_is_refused_and_never_made_again(
    initialised: Bench, arguments: tuple[str, ...]
) -> None:
    secret = initialised.data_dir / "secret.key"
    secret.unlink()
    said = initialised.refused(*arguments)
    assert "wrong_secret_key" in said
    assert str(secret) in said
    assert not secret.exists()


@pytest.mark.parametrize("arguments", COMMANDS)
def test_the_secret_key_of_another_deployment_is_refused(
    initialised: Bench, arguments: tuple[str, ...]
) -> None:
    other = base64.b64encode(os.urandom(32))
    (initialised.data_dir / "secret.key").write_bytes(other)
    assert "wrong_secret_key" in initialised.refused(*arguments)
    assert (initialised.data_dir / "secret.key").read_bytes() == other


@pytest.mark.parametrize("command", ["init", "serve"])
@pytest.mark.parametrize(
    ("revision", "words"),
    [
        ("0013", "Export what you need with that version."),
        ("0018_figures_of_a_day", "`countersign init --upgrade` of the last build before"),
    ],
)
def test_a_database_that_this_release_cannot_upgrade_is_refused(
    either: Bench, command: str, revision: str, words: str
) -> None:
    """Nothing is created or changed, and the message says what to do."""
    either.data_dir.mkdir()
    url = database_url(either.settings.get("DATABASE_URL"), either.data_dir)
    engine = open_engine(url, Purpose.WRITE)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32))"))
        new = text("INSERT INTO alembic_version VALUES (:revision)")
        connection.execute(new, {"revision": revision})
    engine.dispose()
    said = either.refused(command)
    assert "error (schema_mismatch)" in said
    assert words in " ".join(said.split())
    assert not (either.data_dir / "secret.key").exists()


@pytest.mark.postgres
def test_a_second_host_needs_the_secret_key_of_the_first(
    bench: Bench, postgres_url: str, tmp_path: Path
) -> None:
    first = bench.but(DATABASE_URL=postgres_url)
    first.run("init")
    second = first.but(DATA_DIR=str(tmp_path / "second host"))
    for arguments in COMMANDS:
        assert "wrong_secret_key" in second.refused(*arguments)
    with_secret = second.but(SECRET_KEY_FILE=str(first.data_dir / "secret.key"))
    assert "wrong_key_encryption_key" in with_secret.refused("init")
    key = first.data_dir / "key-encryption.key"
    with_secret.but(KEY_ENCRYPTION_KEY=f"file:{key}").run("init")


@pytest.mark.parametrize("content", [b"", b"not base64!", b"c2hvcnQ=", b"\xff\xfe"])
def test_a_secret_key_file_that_holds_no_secret_is_refused(
    initialised: Bench, content: bytes
) -> None:
    (initialised.data_dir / "secret.key").write_bytes(content)
    assert "wrong_secret_key" in initialised.refused("accounts", "list")


@pytest.mark.parametrize(
    "arguments",
    [
        ("serve",),
        ("accounts", "create", "vendor"),
        ("accounts", "list"),
        ("keys", "create", "--account", "vendor", "--mode", "test"),
        ("keys", "list"),
        ("notices", "list"),
    ],
)
def test_before_init_every_command_says_what_to_run(
    either: Bench, arguments: tuple[str, ...]
) -> None:
    said = either.refused(*arguments)
    assert "not_initialised" in said
    assert "countersign init" in said
    assert not (either.data_dir / "countersign.db").exists()


def test_a_data_directory_that_is_a_file_is_refused(bench: Bench) -> None:
    bench.data_dir.write_text("a file")
    assert str(bench.data_dir) in bench.refused("init")
    assert bench.data_dir.read_text() == "a file"


def test_a_database_out_of_reach_is_named_without_its_password(bench: Bench) -> None:
    away = bench.but(DATABASE_URL="postgresql://me:hunter2@127.0.0.1:1/name")
    for arguments in COMMANDS:
        said = away.refused(*arguments)
        assert "storage_unavailable" in said
        assert "hunter2" not in said


def test_the_command_is_installed() -> None:
    installed = Path(sys.executable).with_name("countersign")
    for command in ([installed], [sys.executable, "-m", "countersign"]):
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
        assert done.stdout.startswith("countersign, version ")


def test_a_mistake_in_the_command_itself_has_an_exit_status_of_its_own(bench: Bench) -> None:
    for arguments in (
        ["no-such-command"],
        ["init", "--no-such-option"],
        ["keys", "create"],
        ["keys", "create", "--account", "vendor", "--mode", "neither"],
        ["keys", "create", "--account", "vendor", "--mode", "test", "--expires-in", "soon"],
    ):
        done = bench.run(*arguments, check=False)
        assert done.returncode == 2
        assert done.stdout == ""
        assert "Usage: python -m countersign" in done.stderr
