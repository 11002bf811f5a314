"""`countersign-evidence`, run without the service."""

from __future__ import annotations

import os
import re
from pathlib import Path

from click.testing import CliRunner

from countersign.base.http.schemas import RECEIPT
from countersign_evidence.root import main
from tests.offline import builder
from tests.support.command import run

NAMED = re.compile(r"\bcountersign(?:-evidence)? +([a-z-]+)")


def unwrapped(said: str) -> str:
    """A help text on one line; click also wraps it at hyphens."""
    return re.sub(r"(?<=[a-z]-)\n *", "", said).replace("\n", " ")


def test_alone_it_names_no_command_that_it_does_not_have() -> None:
    """In any help: next to the service, the same commands have other names."""
    named = set()
    for name in main.commands:
        said = unwrapped(CliRunner().invoke(main, [name, "--help"]).stdout)
        assert not re.search(r"countersign +log", said)
        named.update(NAMED.findall(said))
    assert named == set(main.commands)
    for words in (["verify"], ["log", "monitor"]):
        said = unwrapped(run([*words, "--help"], os.environ).stdout)
        assert re.search(r"countersign +log +check-alarm", said)


def test_the_monitor_alone_names_its_command_that_checks_a_promise(tmp_path: Path) -> None:
    """A receipt and --against is the wrong command; the message names the right one."""
    (tmp_path / "receipt").write_text(RECEIPT)
    (tmp_path / "policy").write_text(builder.material().policy)
    words = ["verify", str(tmp_path / "receipt"), "--policy", str(tmp_path / "policy")]
    words += ["--against", "http://127.0.0.1:9"]
    alone = CliRunner().invoke(main, words)
    assert (alone.exit_code, alone.stdout) == (2, "")
    assert "checked by countersign-evidence monitor --receipts." in alone.stderr
    assert "checked by countersign log monitor --receipts." in run(words, os.environ).stderr
