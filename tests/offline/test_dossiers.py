"""The page judges dossiers as verify.py does; it shows, and both notice, all that is in them."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
from playwright.sync_api import Page

from countersign_evidence.dossier import SUMS, read_container, sums, write_container
from countersign_evidence.verification import STEPS, verify_file
from tests.evidence.dossier_vectors import DOSSIERS, EXPECTED, GOOD, LIVE
from tests.offline.dossier_cases import cases
from tests.support.browsers import running_browser
from tests.support.depth import some
from tests.support.every import every

pytestmark = pytest.mark.long

SMALL: Final = next(path for path in GOOD if path.stem == "clearance-alone")
_JUDGE: Final = """async files => {
  const found = [];
  for (const file of files) {
    const run = await verify(fromLatin1(atob(file)), null);
    const step = (run.failed ?? run.stuck)?.name ?? null, lines = summaryOf(run);
    found.push([step, lines, ...(step ? [[], [], []] : [run.joins, run.missing, run.remarks])]);
  }
  return found;
}"""
Judged = tuple[str | None, list[str], list[str], list[str], list[str]]
"""The failed step; the verdict for people; joins, missing parts, and oddities."""


def by_the_service(data: bytes) -> Judged:
    verdict = verify_file(data)
    if verdict.dossier is None:
        return verdict.name, [*verdict.summary], [], [], []
    found = verdict.dossier
    return None, [*verdict.summary], found.order["joins"], found.order["missing"], [*found.remarks]


def vectors() -> dict[str, bytes]:
    found = {f"{path.parent.stem} {path.stem}": path.read_bytes() for path in [*GOOD, LIVE]}
    return found | {f"broken {n}": (DOSSIERS / "broken" / n).read_bytes() for n in EXPECTED}


@every("path", [*GOOD, LIVE])
def test_links_between_records_are_printed(path: Path, stranger: ModuleType) -> None:
    """By the script, in lines of their own; in the words of the command."""
    data = path.read_bytes()
    report = stranger.verify_bytes(data)
    assert (report.order.joins, report.order.missing, report.remarks) == by_the_service(data)[2:]
    printed = list(stranger.explain(report))
    assert [join for join in report.order.joins if f"  {join}" not in printed] == []


@pytest.fixture(scope="module")
def page(page_file: Path) -> Iterator[Page]:
    """The page, opened from its file."""
    with running_browser() as browser:
        page = browser.new_page()
        page.goto(page_file.as_uri())
        page.locator("#file[data-ready]").wait_for()
        yield page


@pytest.mark.browser
def test_the_page_judges_dossiers_as_the_service_does(page: Page) -> None:
    """The vectors and a thousand others: no recipient finds a reader that suits."""
    wrong: dict[str, Any] = {}
    steps: Counter[str | None] = Counter()
    everything: Mapping[str, bytes] = {**vectors(), **cases()}
    items = list(everything.items())
    for start in range(0, len(items), 100):
        batch = items[start : start + 100]
        judged = page.evaluate(_JUDGE, [b64encode(data).decode() for _, data in batch])
        for (name, data), found in zip(batch, judged, strict=True):
            ours = by_the_service(data)
            steps[ours[0]] += 1
            if tuple(found) != ours:
                wrong[name] = (found, ours)
    assert wrong == {}
    assert steps[None] > 50
    assert steps.keys() >= {None, *STEPS}


@pytest.mark.browser
def test_the_page_shows_joins_and_missing_parts(page: Page) -> None:
    """In words, with each record; a browser shows them as text."""
    path = next(path for path in GOOD if path.stem == "withheld")
    page.locator("#file").set_input_files(path)
    page.locator("#verdict.caution").wait_for()
    page.locator("summary", has_text="Details").click()
    shown = page.locator("main").inner_text()
    dossier = verify_file(path.read_bytes()).dossier
    assert dossier
    for words in (
        *dossier.order["joins"],
        *dossier.order["missing"],
        "The record: fulfilment",
        "The notice",
    ):
        assert words in shown
    assert page.locator("#line").inner_text().startswith("CONSISTENT, KEY NOT CHECKED: one order")


@pytest.mark.browser
@every("path", GOOD)
def test_no_name_on_the_page_runs_into_its_value(page: Page, path: Path) -> None:
    """Names of members can be longer than their column."""
    page.locator("#file").set_input_files(path)
    page.locator("#verdict.caution").wait_for()
    page.locator("summary", has_text="Details").click()
    wide = "[...document.querySelectorAll('dt')].filter(e => e.scrollWidth > e.clientWidth)"
    assert page.evaluate(f"{wide}.map(e => e.textContent)") == []


def test_every_byte_of_a_dossier_counts() -> None:
    """Of the container, and of each file packed again."""
    data = SMALL.read_bytes()
    files = read_container(data)
    assert verify_file(data).ok
    for position in some(range(len(data))):
        changed = bytearray(data)
        changed[position] ^= 1 << position % 8
        assert_refused(bytes(changed), position, "container")
    for name, content in files.items():
        for position in some(range(len(content))):
            flipped = bytearray(content)
            flipped[position] ^= 1 << position % 8
            assert_refused(write_container({**files, name: bytes(flipped)}), (name, position))


def test_new_sums_hide_no_change_of_checked_files() -> None:
    """With new SHA256SUMS only PDF and readers can be changed."""
    files = read_container(SMALL.read_bytes())
    del files[SUMS]
    for name, content in files.items():
        if name in {"dossier.pdf", "verify.py", "verify.html"}:
            continue
        for position in some(range(0, len(content), 3)):
            flipped = bytearray(content)
            flipped[position] ^= 1
            new = {**files, name: bytes(flipped)}
            if name == "policy.txt":  # names of witnesses and groups are its maker's choice
                continue
            assert_refused(write_container({**new, SUMS: sums(new)}), (name, position))


def assert_refused(data: bytes, what: object, step: str | None = None) -> None:
    """With a step that is named."""
    ours = verify_file(data)
    assert not ours.ok, what
    assert ours.name in STEPS, what
    assert step is None or ours.name == step, (what, ours.line())
