"""Statements of the pages about errors, the sandbox and the database match the code."""

from __future__ import annotations

import re
from pathlib import Path

import httpx2
import pytest

from countersign.base.errors import REFUSALS, CountersignError, Refusal
from countersign.base.values import Reason
from countersign.core.buyers.sandbox import SCRIPT
from tests.docs.markdown import ROOT, every_page, read

INTEGRATE = read(ROOT / "docs" / "integrate.md")
TESTING = read(ROOT / "docs" / "testing.md")
SESSIONS = TESTING.rows("## Sessions that simulate an outcome")
UPGRADE = read(ROOT / "docs" / "upgrade.md")
STATUS_OF = {error.code: error.status for error in REFUSALS}
_STATUS_AND_CODE = re.compile(r"\b([45]\d\d)\s+`([a-z_]+)`")
_CODE_IN_BRACKETS = re.compile(r"\(`([a-z]+_[a-z_]*[a-z])`\)")
_ERROR_BODY = re.compile(r'"code": "([a-z_]+)"')


def _codes(error: type[CountersignError]) -> set[str]:
    return {error.code}.union(*map(_codes, error.__subclasses__()))


def test_the_error_table_lists_every_code_with_its_status() -> None:
    """A vendor finds each code, and none that cannot come."""
    rows = INTEGRATE.rows("## Errors")
    listed = [pair for _, errors in rows for pair in _STATUS_AND_CODE.findall(errors)]
    assert {code: int(status) for status, code in listed} == STATUS_OF
    assert len(listed) == len(STATUS_OF)


@pytest.mark.parametrize("path", every_page(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_mentioned_error_code_exists(path: Path) -> None:
    """With the status named next to it, if any."""
    page = read(path)
    for status, code in _STATUS_AND_CODE.findall(page.prose):
        assert STATUS_OF.get(code) == int(status), f"{path}: {status} {code}"
    for code in _CODE_IN_BRACKETS.findall(page.prose):
        known = _codes(CountersignError) | set(Reason) | _codes(Refusal)
        assert code in known, f"{path}: {code}"
    for block in page.blocks:
        for code in _ERROR_BODY.findall(block.text):
            assert code in STATUS_OF, f"{block}: {code}"


def test_the_sandbox_table_lists_every_session_id() -> None:
    """The first row is for all the others."""
    assert [row[0].strip("`") for row in SESSIONS[1:]] == list(SCRIPT)


def test_each_sandbox_session_answers_as_the_table_says(client: httpx2.Client) -> None:
    """Status, answer and reasons, over real HTTP."""
    for row in SESSIONS:
        session, status, answer, reasons = (cell.strip("`") for cell in row)
        body: dict[str, object] = {"shipping_zip": "94105", "test_mode": True}
        if session in SCRIPT:
            body["provider_identity_session_id"] = session
        got = client.post("/v1/buyers/verify", json=body)
        found = got.json()
        assert got.status_code == int(status), row
        if status == "200":
            assert (found["status"], found.get("reasons", [])) == (answer, reasons.split()), row
        else:
            assert found["error"]["code"] == answer, row


def test_the_guide_says_of_each_step_whether_servers_may_run() -> None:
    """An operator does not have to read migrations."""
    versions = ROOT / "src" / "countersign" / "base" / "db" / "migrations" / "versions"
    steps = sorted(file.stem for file in versions.glob("[0-9]*_*.py"))[1:]
    rows = UPGRADE.rows("## Servers of two releases side by side")
    assert [step.strip("`") for step, _ in rows] == steps
