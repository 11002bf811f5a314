"""The names of the logs are permanent, so no name comes about by accident."""

import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Bench


def origins(bench: Bench) -> list[str]:
    return [state["log"] for state in bench.read("log", "status")]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.88.0.5"])  # noqa: S104 - refused
@pytest.mark.parametrize("command", ["init", "serve", "dev"])
def test_an_address_to_listen_on_names_no_log(bench: Bench, host: str, command: str) -> None:
    """Nothing is created, and the message says what to set."""
    said = bench.but(HOST=host).refused(command)
    assert "invalid_configuration" in said
    assert "COUNTERSIGN_PUBLIC_URL" in said
    assert not bench.data_dir.exists()


@pytest.mark.parametrize(
    "url",
    [
        "http://0.0.0.0:8080",
        "http://[::]",
        "http://[::ffff:0.0.0.0]",
        "http://0:8080",
        "http://127.1",
    ],
)
def test_an_unreachable_public_url_is_refused(bench: Bench, url: str) -> None:
    """Also where it was set explicitly."""
    assert "COUNTERSIGN_PUBLIC_URL" in bench.but(PUBLIC_URL=url).refused("init")


def test_a_public_url_names_the_logs_wherever_the_server_listens(bench: Bench) -> None:
    """The default in a container."""
    own = bench.but(HOST="0.0.0.0", PUBLIC_URL="https://evidence.example.com")  # noqa: S104
    assert "warning" not in own.run("init").stderr
    assert set(origins(own)) == {f"evidence.example.com/v1/log/{m}/1" for m in ("test", "live")}


@pytest.mark.parametrize("settings", [{}, {"PUBLIC_URL": "http://localhost:9000"}])
def test_a_name_of_this_machine_is_accepted_with_a_notice(
    bench: Bench, settings: dict[str, str]
) -> None:
    """A first try needs no more than that."""
    said = bench.but(**settings).run("init").stderr.replace("\n", " ")
    assert "no other machine can reach it" in said


def test_a_new_epoch_is_not_named_after_a_wildcard_address(initialised: Bench) -> None:
    """The host is given in another place, and the rule is the same."""
    options = ("--mode", "test", "--new-epoch", "--yes", "--host")
    assert "invalid_argument" in initialised.refused("log", "recover", *options, "0.0.0.0:8080")
    assert origins(initialised)[0].endswith("/1")


def test_a_new_epoch_that_only_this_machine_can_reach_gets_a_notice(initialised: Bench) -> None:
    """Also if the name equals the previous epoch's."""
    done = initialised.run("log", "recover", "--mode", "live", "--new-epoch", "--yes")
    assert "no other machine can reach it" in done.stderr.replace("\n", " ")


def test_after_a_restore_init_does_not_say_that_the_names_stay(
    initialised: Bench, tmp_path: Path
) -> None:
    """The next step is as a rule a new epoch."""
    initialised.run("backup", str(tmp_path / "backup"))
    other = Bench(data_dir=tmp_path / "other")
    other.data_dir.mkdir(mode=0o700)
    for name in ("secret.key", "key-encryption.key"):
        shutil.copy(initialised.data_dir / name, other.data_dir / name)
    other.run("restore", str(tmp_path / "backup"), "--yes")
    said = other.run("init").stderr
    assert "names cannot change" not in said
    assert "countersign log recover" in said
