"""docs/conformance.md against the code: all checks, what provokes them, and where to read on."""

from __future__ import annotations

import re

import pytest

from countersign.server.guides import read_guides
from countersign_conformance.catalogue import CATALOGUE
from countersign_conformance.model import RETRY_AFTER_SECONDS, STEPS
from tests.docs.markdown import ROOT, read

pytestmark = pytest.mark.later  # it runs a page, whose verdicts have tests of their own

PAGE = read(ROOT / "docs" / "conformance.md")
CHECKS = [check for check, _ in CATALOGUE]


def test_the_page_lists_every_check_in_its_order() -> None:
    """With its id, its title, and its provocation."""
    rows = PAGE.rows("## What is checked")
    assert [row[0].strip("`") for row in rows] == [check.id for check in CHECKS]
    for row, check in zip(rows, CHECKS, strict=True):
        assert row[1] == check.title
        assert row[2] == (check.provoked or "-")


def test_the_page_names_the_limits_of_every_check() -> None:
    """In the words of the report."""
    prose = " ".join(PAGE.prose.split())
    for check in CHECKS:
        assert check.not_judged in prose, check.id


def test_each_check_leads_to_a_part_of_a_page_that_exists() -> None:
    """The server serves that page, and it says what to do about a failure."""
    served = {
        f"{guide.path}#{section.anchor}" for guide in read_guides() for section in guide.sections
    }
    for check in CHECKS:
        assert check.page in served


def test_each_step_is_judged_by_a_check_and_shown_on_the_page() -> None:
    """The page shows the command's prompt, word for word."""
    ids = {check.id for check in CHECKS}
    shown = "".join(block.text for block in PAGE.blocks)
    for number, step in enumerate(STEPS, 1):
        assert step.check in ids
        assert f"{number}/{len(STEPS)} {step.ask}\n" in shown


def test_the_page_names_the_time_of_retry_after() -> None:
    """As the provoked answer has it."""
    assert re.search(rf"`Retry-After: {RETRY_AFTER_SECONDS}`", PAGE.prose)
