"""Oddities in evidence that are no failure: all readers name the same."""

from __future__ import annotations

import json
import random
from base64 import b64encode
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign_evidence.verification import verify_file
from tests.support.browsers import running_browser
from tests.unit import record_reader

VECTORS: Final = Path(__file__).parents[2] / "spec" / "vectors"
NAMED: Final[dict[str, list[str]]] = {
    f"log/good/{name}": words
    for name, words in json.loads((VECTORS / "log/good/named.json").read_bytes()).items()
} | {
    f"dossier/good/{name}": case["odd"]
    for name, case in json.loads((VECTORS / "dossier/good/named.json").read_bytes()).items()
}
_DIGITS = st.sampled_from(["00", "01", "02", "04", "12", "13", "23", "24", "29", "30", "31", "60"])
TIMES: Final = st.builds(
    "{}-{}-{}T{}:{}:{}.{}Z".format,
    st.sampled_from(["0000", "0001", "1900", "2000", "2026", "2028", "2100", "9999"]),
    *([_DIGITS] * 5),
    st.sampled_from(["000", "999"]),
)


@pytest.mark.parametrize("name", NAMED)
def test_oddities_are_named_and_are_no_failure(name: str, stranger: ModuleType) -> None:
    """By the service and by the script, in the words that stand next to the vectors."""
    data = (VECTORS / name).read_bytes()
    verdict, report = verify_file(data), stranger.verify_bytes(data)
    assert verdict.ok, verdict.line()
    assert list(verdict.remarks) == report.remarks == NAMED[name]
    assert verdict.line() == report.line()
    assert (f"; remarks: {len(NAMED[name])};" in report.line()) is bool(NAMED[name])
    printed = list(stranger.explain(report))
    assert [f"  {words}" in printed for words in NAMED[name]] == [True] * len(NAMED[name])


def test_a_check_named_by_the_clearance_and_absent_is_missing() -> None:
    """Also where another check is joined."""
    cases = json.loads((VECTORS / "dossier/good/named.json").read_bytes())
    for name, case in cases.items():
        dossier = verify_file((VECTORS / "dossier/good" / name).read_bytes()).dossier
        assert dossier
        assert set(case["missing"]) <= set(dossier.order["missing"])
    assert any(case["missing"] for case in cases.values())


def test_the_rules_that_a_dossier_breaks_are_numbered() -> None:
    """Each has dossiers that break it and others that just do not; programs get the numbers."""
    cases = json.loads((VECTORS / "dossier/good/named.json").read_bytes())
    for name, case in cases.items():
        dossier = verify_file((VECTORS / "dossier/good" / name).read_bytes()).dossier
        assert dossier
        assert [*dossier.order["broken_rules"]] == case["rules"], name
        times = [fact["at"] for fact in dossier.order["timeline"]]
        assert sorted(times, key=lambda at: at.removesuffix("Z")) == times, name
    assert {rule for case in cases.values() for rule in case["rules"]} == {*range(1, 8)}


def test_the_list_of_blank_code_points_is_the_published_one(
    script: Path, page_file: Path, stranger: ModuleType
) -> None:
    """One list in the format, in both readers, and so in the service."""
    published = record_reader.BLANK.read_text("ascii")
    assert stranger.BLANK.strip() == published.strip()
    assert published in page_file.read_text("utf-8")
    assert published in script.read_text("utf-8")


@given(TIMES)
def test_the_script_knows_which_times_exist(stranger: ModuleType, text: str) -> None:
    """As a reader does that was written from the text of the format."""
    assert stranger.is_time(text) is record_reader.is_time(text)


@given(st.text(st.sampled_from("J\u0301 \u200b\u2800\U0001f3fb\U0001f600\ue000\u0897"), max_size=4))
def test_the_script_knows_what_is_blank(stranger: ModuleType, text: str) -> None:
    """As a reader does that was written from the text of the format."""
    assert stranger.is_blank(text) is record_reader.is_blank(text)


@pytest.mark.browser
def test_the_page_names_the_same(page_file: Path, stranger: ModuleType) -> None:
    """In a real Chromium, with the times and blanks that a random thousand of texts has."""
    draw = random.Random(22)
    numbers = [f"{number:02}" for number in range(63)]
    times = [
        "{}-{}-{}T{}:{}:{}.123Z".format(
            draw.choice(["0000", "0001", "2026", "2028", "2100"]), *draw.choices(numbers, k=5)
        )
        for _ in range(500)
    ]
    times += [f"2028-{m:02}-{d:02}T00:00:00.000Z" for m in range(14) for d in range(33)]
    ends = [point for ends in stranger.BLANKS for point in (ends[0] - 1, *ends, ends[-1] + 1)]
    blanks = [chr(p) for p in ends if 0 <= p <= 0x10FFFF and not 0xD800 <= p < 0xE000]
    with running_browser() as browser:
        page = browser.new_page()
        page.goto(page_file.as_uri())
        page.locator("#file[data-ready]").wait_for()
        ask: Any = page.evaluate
        assert ask("times => times.map(isTime)", times) == [stranger.is_time(t) for t in times]
        blank = ask("texts => texts.map(isBlank)", blanks)
        assert blank == [stranger.is_blank(text) for text in blanks]
        for name, words in NAMED.items():
            data = b64encode((VECTORS / name).read_bytes()).decode()
            verify = "async file => (await verify(fromLatin1(atob(file)), null)).remarks"
            assert ask(verify, data) == words, name
