"""docs/clients.md: everything that it shows runs against a real server."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.clients.conftest import Place
from tests.docs.markdown import ROOT, read
from tests.docs.shell import run_blocks
from tests.support import node
from tests.support.service import PREFIX

PAGE = read(ROOT / "docs" / "clients.md")


def placeholders(place: Place) -> dict[str, str]:
    """What the page shows, and what it is here."""
    key, values = place.vendor()
    return {
        "http://127.0.0.1:8080": place.server.url,
        "csign_sk_test_...": key,
        "acct_...": values["account"],
    }


def shown(language: str, place: Place) -> str:
    """The blocks of a language as one program."""
    text = "\n".join(block.text for block in PAGE.blocks if block.language == language)
    for word, real in placeholders(place).items():
        assert word in text
        text = text.replace(word, real)
    return text


def test_the_shown_python_runs(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """From the first import to the last assertion."""
    names: dict[str, Any] = {}
    exec(compile(shown("python", place), "clients.md", "exec"), names)  # noqa: S102 - our own page
    names["client"].close()
    names["tested"].close()
    printed = capsys.readouterr().out
    assert "Show the notice again:" in printed
    assert "{'type': 'compared', 'what': 'zip'}" in printed


@pytest.mark.npm
def test_the_shown_javascript_runs(place: Place, built: Path, tmp_path: Path) -> None:
    """As one module, which finds the package as an installed one, and with the right types."""
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "countersign-client").symlink_to(built.parent)
    program, typed = tmp_path / "shown.mjs", tmp_path / "shown.mts"
    program.write_text(shown("js", place), encoding="utf-8")
    typed.write_bytes(program.read_bytes())
    check = [
        str(node.CLIENT / "node_modules/.bin/tsc"),
        "--noEmit",
        "--strict",
        "--module",
        "nodenext",
        "--target",
        "es2022",
        str(typed),
    ]
    checked = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
    done = subprocess.run(["node", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Show the notice again:" in done.stdout
    assert "{ type: 'compared', what: 'zip' }" in done.stdout


def test_the_shown_commands_run(place: Place, tmp_path: Path) -> None:
    """`csign` with address and key from the variables."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    blocks = [block for block in PAGE.blocks if block.language == "bash"]
    (printed,) = run_blocks(
        blocks, directory=tmp_path, environment=inherited, placeholders=placeholders(place)
    ).values()
    assert "/c/cst_test_" in printed
    assert "  open\n" in printed
    assert all(json.loads(line)["type"] for line in printed.splitlines() if line.startswith("{"))
