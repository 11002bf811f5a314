"""Commands of packages that are installed next to the service."""

from __future__ import annotations

import json
from importlib import metadata
from importlib.metadata import EntryPoints

import pytest
from click.testing import CliRunner

from countersign.root import PACKAGED, main, packaged_command
from tests.docs.generated import loaded


@pytest.mark.parametrize("name", PACKAGED)
def test_an_installed_package_gives_its_command(name: str) -> None:
    """The same command that the root group has, with a help text of its own."""
    assert packaged_command(name) is loaded(main.commands[name])
    assert "Not installed" not in CliRunner().invoke(main, [name, "--help"]).output


@pytest.mark.parametrize(("name", "distribution"), PACKAGED.items())
def test_without_its_package_a_command_says_what_to_install(
    name: str, distribution: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its arguments: status 1, with a code for programs and a sentence for people."""
    monkeypatch.setattr(metadata, "entry_points", lambda **_: EntryPoints())
    missing = packaged_command(name)
    assert distribution in CliRunner().invoke(missing, ["--help"]).output
    for arguments in ([], ["stripe", "--list"], ["--account", "demo", "--for", "3s"]):
        done = CliRunner().invoke(missing, [*arguments, "--json"])
        assert done.exit_code == 1
        assert done.stdout == ""
        error = json.loads(done.stderr)["error"]
        assert error["code"] == "package_not_installed"
        assert f"Install {distribution} " in error["message"]
