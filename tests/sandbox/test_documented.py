"""docs/testing.md: its examples run unchanged, and its tables match the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.sandbox import SCRIPT, Fault
from countersign.root import main
from countersign.server.routes import ROUTES
from tests.docs.generated import every_command
from tests.docs.markdown import ROOT, read
from tests.docs.shell import check_answers, run_blocks
from tests.http.backstage import another_deployment
from tests.support.service import running_server

PAGE = read(ROOT / "docs" / "testing.md")
BASH = [block for block in PAGE.blocks if block.language == "bash"]
SHELL = "".join(block.text for block in BASH)
ANSWERS = 9
GROUP = main.commands["test"]
_OPERATION = re.compile(r"^(get|post|delete) (/v1/test/[a-z/]+)", re.MULTILINE)


@pytest.mark.timeout(420)
@pytest.mark.later
def test_every_example_does_what_the_page_shows(tmp_path: Path) -> None:
    """In one shell from the top to the bottom, with the commands while the server runs."""
    deployment = another_deployment(tmp_path / "data")
    key = deployment.key(deployment.account("demo"))
    with running_server(deployment) as server:
        printed = run_blocks(
            BASH,
            directory=tmp_path,
            environment=deployment.environment,
            placeholders={"http://127.0.0.1:8080": server.url, "csign_sk_test_...": key},
            seconds=400,  # two dozen commands, each a process of its own
        )
    assert check_answers(PAGE.blocks, printed) == ANSWERS


def test_the_tables_are_complete() -> None:
    """Every session and every fault, and nothing else."""
    sessions = [row[0].strip("`") for row in PAGE.rows("## Sessions that simulate an outcome")]
    assert sessions[1:] == list(SCRIPT)
    faults = [row[0].strip("`") for row in PAGE.rows("## Faults of the provider")]
    assert faults == [fault.value for fault in Fault]


def test_every_step_has_an_example_by_command_and_by_http() -> None:
    """Each command, each fault and each state stands in a block that is run."""
    for words, command in every_command(GROUP, ("countersign", "test")):
        if not hasattr(command, "commands"):
            assert f"{' '.join(words)} demo" in SHELL, words
    for fault in Fault:
        assert f"test fault set demo {fault.value}" in SHELL
    for status in BuyerStatus:
        assert f"test buyer set demo $CBID {status.value}" in SHELL or f'{status.value}\\"' in SHELL
    operations = {f"{route.method} {route.path}" for route in ROUTES if "/v1/test/" in route.path}
    shown = {f"{method.upper()} {path}" for method, path in _OPERATION.findall(SHELL)}
    assert shown == operations
