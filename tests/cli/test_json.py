"""`--json` on every command: JSON on standard output, errors as JSON on standard error."""

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from countersign.cli import main
from tests.cli.conftest import Bench
from tests.cli.evidence import make_evidence, make_sandbox_buyer
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
    "acknowledgments export": ("--account", "vendor", "--mode", "test"),
    "acknowledgments bundle": ("{ack_id}", "--output", "{bundle}"),
    "verify": ("{proof}", "--policy", "{policy}"),
    "log status": (),
    "log check": (),
    "log policy": (),
    "log rotate-key": ("--yes",),
    "log recover": (),
    "vault status": (),
    "vault rewrap": (),
    "vault rotate": ("--yes",),
    "erase": ("{ack_id}", "--yes"),
    "holds place": ("{account_id}", "--reason", "case 7"),
    "holds release": ("{hold_id}",),
    "holds list": (),
    "retention run": ("--yes",),
    "backup": ("{new}",),
    "restore": ("{backup}", "--yes"),
    "test clock show": ("{account_id}",),
    "test clock advance": ("{account_id}", "--by", "1d"),
    "test clock reset": ("{account_id}",),
    "test buyer set": ("{account_id}", "{cbid}", "revoked"),
    "test trigger": ("{account_id}", "buyer.revoked"),
    "test fault show": ("{account_id}",),
    "test fault set": ("{account_id}", "timeout"),
    "test fault clear": ("{account_id}",),
    "notices list": (),
    "notices show": ("{notice_id}",),
    "notices check": ("{file}",),
    "notices diff": ("{notice_id}", "{version}", "{version}"),
    "notices publish": ("{file}",),
    "notices review": ("{notice_id}", "--version", "{version}", "--by", "me", "--against", "{url}"),
    "notices withdraw": ("{notice_id}", "--version", "{version}", "--yes"),
}
# With status 1 where nothing could be judged, as here: the answer is on standard output all the same.
JUDGES: dict[str, tuple[str, ...]] = {"conformance": ("--account", "{account_id}", "--for", "1s")}
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
    account_id = initialised.account("vendor")
    ack_id, proof, policy = make_evidence(initialised, account_id, tmp_path)
    hold = initialised.read("holds", "place", account_id, "--reason", "case 1")
    initialised.run("holds", "release", hold["hold_id"])
    initialised.run("backup", str(tmp_path / "backup"))
    key = initialised.read("keys", "create", "--account", "vendor", "--mode", "test")
    (notice,) = initialised.read("notices", "list")
    return initialised, {
        "key_id": key["key_id"],
        "notice_id": notice["notice_id"],
        "version": notice["version"],
        "file": str(write_notice(tmp_path / "notice.toml")),
        "url": "https://example.com/law",
        "account_id": account_id,
        "ack_id": ack_id,
        "cbid": make_sandbox_buyer(initialised, account_id),
        "proof": str(proof),
        "policy": str(policy),
        "bundle": str(tmp_path / "bundle.zip"),
        "hold_id": hold["hold_id"],
        "new": str(tmp_path / "new"),
        "backup": str(tmp_path / "backup"),
    }


def test_every_command_takes_json() -> None:
    commands = dict(leaves(main))
    assert set(commands) == set(ARGUMENTS) | set(JUDGES) | set(SERVERS)
    for command in commands.values():
        assert any("--json" in parameter.opts for parameter in command.params)


@pytest.mark.parametrize("command", ARGUMENTS | JUDGES)
def test_with_json_the_answer_is_json_on_standard_output(
    ready: tuple[Bench, dict[str, str]], command: str
) -> None:
    bench, there_is = ready
    arguments = [word.format(**there_is) for word in (ARGUMENTS | JUDGES)[command]]
    if command == "restore":  # into a place of its own, with the keys of the old one
        bench = bench.but(
            DATA_DIR=str(bench.data_dir.with_name("restored")),
            SECRET_KEY_FILE=str(bench.data_dir / "secret.key"),
        )
    done = bench.run(*command.split(), *arguments, "--json", check=command not in JUDGES)
    assert done.stdout.endswith("\n")
    assert len(done.stdout.splitlines()) == 1
    assert json.loads(done.stdout)


# `verify` needs no configuration, and its arguments are files that are there or not.
@pytest.mark.parametrize("command", [c for c in ARGUMENTS | JUDGES | SERVERS if c != "verify"])
def test_with_json_an_error_is_json_on_standard_error(
    initialised: Bench, tmp_path: Path, command: str
) -> None:
    file = write_notice(tmp_path / "notice.toml", lines=())
    words = [
        word.format_map(
            {name: str(tmp_path) for name in ("backup", "new", "proof", "policy")}
            | {"bundle": str(tmp_path / "bundle.zip")}
            | {"key_id": "key_1", "notice_id": "x", "version": "1", "file": file}
            | {"url": "https://x.example", "ack_id": "ack_1", "account_id": "acct_1"}
            | {"hold_id": "hold_1", "cbid": "cbid_1"}
        )
        for word in (ARGUMENTS | JUDGES | SERVERS)[command]
    ]
    said = initialised.but(PORT="no port").refused(*command.split(), *words, "--json")
    (line,) = said.splitlines()
    error = json.loads(line)
    assert set(error) == {"error"}
    assert set(error["error"]) == {"code", "message"}
    # `check` looks at the file alone, all others at the configuration first.
    expected = "invalid_notice_file" if command == "notices check" else "invalid_configuration"
    assert error["error"]["code"] == expected
