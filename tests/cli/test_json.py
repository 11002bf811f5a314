"""`--json` on every command: JSON on standard output, errors as JSON on standard error."""

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from countersign.cli import main
from tests.cli.conftest import Bench
from tests.cli.notice_files import write_notice

# What each command needs to succeed; `{…}` is filled in. A new command needs a line here.
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "init": (),
    "accounts create": ("another",),
    "accounts list": (),
    "keys create": ("--account", "vendor", "--mode", "test"),
    "keys list": (),
    "keys rotate": ("{key_id}",),
    "keys revoke": ("{key_id}", "--yes"),
    "notices list": (),
    "notices show": ("{notice_id}",),
    "notices check": ("{file}",),
    "notices diff": ("{notice_id}", "{version}", "{version}"),
    "notices publish": ("{file}",),
    "notices review": ("{notice_id}", "--version", "{version}", "--by", "me", "--against", "{url}"),
    "notices withdraw": ("{notice_id}", "--version", "{version}", "--yes"),
}
# These answer by serving; `--json` is for what may keep them from it.
SERVERS: dict[str, tuple[str, ...]] = {"serve": (), "dev": ()}


def leaves(group: click.Group, *path: str) -> Iterator[tuple[str, click.Command]]:
    """Walk the tree of commands."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from leaves(command, *path, name)
        else:
            yield " ".join((*path, name)), command


@pytest.fixture
def ready(initialised: Bench, tmp_path: Path) -> tuple[Bench, dict[str, str]]:
    """Give a deployment with one of everything, and what there is."""
    initialised.account("vendor")
    key = initialised.read("keys", "create", "--account", "vendor", "--mode", "test")
    (notice,) = initialised.read("notices", "list")
    return initialised, {
        "key_id": key["key_id"],
        "notice_id": notice["notice_id"],
        "version": notice["version"],
        "file": str(write_notice(tmp_path / "notice.toml")),
        "url": "https://example.com/law",
    }


def test_every_command_takes_json() -> None:
    commands = dict(leaves(main))
    assert set(commands) == set(ARGUMENTS) | set(SERVERS)
    for command in commands.values():
        assert any("--json" in parameter.opts for parameter in command.params)


@pytest.mark.parametrize("command", ARGUMENTS)
def test_with_json_the_answer_is_json_on_standard_output(
    ready: tuple[Bench, dict[str, str]], command: str
) -> None:
    bench, there_is = ready
    arguments = [word.format(**there_is) for word in ARGUMENTS[command]]
    done = bench.run(*command.split(), *arguments, "--json")
    assert done.stdout.endswith("\n")
    assert len(done.stdout.splitlines()) == 1
    assert json.loads(done.stdout)


@pytest.mark.parametrize("command", ARGUMENTS | SERVERS)
def test_with_json_an_error_is_json_on_standard_error(
    initialised: Bench, tmp_path: Path, command: str
) -> None:
    file = write_notice(tmp_path / "notice.toml", lines=())
    words = [
        word.format(key_id="key_1", notice_id="x", version="1", file=file, url="https://x.example")
        for word in (ARGUMENTS | SERVERS)[command]
    ]
    said = initialised.but(PORT="no port").refused(*command.split(), *words, "--json")
    (line,) = said.splitlines()
    error = json.loads(line)
    assert set(error) == {"error"}
    assert set(error["error"]) == {"code", "message"}
    # `check` looks at the file alone, all others at the configuration first.
    expected = "invalid_notice_file" if command == "notices check" else "invalid_configuration"
    assert error["error"]["code"] == expected
