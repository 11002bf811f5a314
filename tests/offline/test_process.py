"""How a hosted acknowledgment was made: all readers check it alike, and show it in words."""

from __future__ import annotations

import copy
import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import expect, sync_playwright

from countersign_evidence.process import Claim, Line, Process, Viewport
from tests.conftest import find_chromium
from tests.support.command import run
from tests.support.hosted import PROCESS_JSON
from tests.unit import record_reader

LOG = Path(__file__).parents[2] / "spec" / "vectors" / "log"
HOSTED, WITHHELD = LOG / "good" / "hosted.zip", LOG / "good" / "hosted-withheld.zip"
INPUT = LOG.parent / "record" / "good" / "hosted" / "input.json"
VALUES = st.sampled_from([
    *(None, True, False, 0, 1, -1, 2**53 - 1, "", "x", "1", [], [None], {}, {"width": 1}),
    *("2026-11-20T21:31:00.123Z", "2026-11-20T21:31:00.123Z\n", "2026-11-20T21:31:00Z"),
    *("2026-11-20T21:31:00.123z", "\u0662026-11-20T21:31:00.123Z", "2026-99-99T99:99:99.999Z"),
    *("2028-02-29T23:59:59.999Z", "2026-02-29T00:00:00.000Z", "2026-04-31T00:00:00.000Z"),
    *("2026-06-30T23:59:60.000Z", "2026-01-01T24:00:00.000Z", "0000-01-01T00:00:00.000Z"),
])  # fmt: skip


@st.composite
def changed_processes(draw: st.DrawFn) -> Any:  # noqa: ANN401 - any JSON
    """A process with a few members, at any depth, replaced, left out or added."""
    process: Any = copy.deepcopy(PROCESS_JSON)
    for _ in range(draw(st.integers(0, 3))):
        place = process
        inner = [part for part in (place.get(n) for n in ("lines", "claimed")) if part]
        parts = [part for some in inner if isinstance(some, list) for part in some]
        parts += [process, process, process.get("viewport")]
        place = draw(st.sampled_from([part for part in parts if isinstance(part, dict)]))
        name = draw(st.sampled_from([*place, "more"]))
        if draw(st.booleans()):
            place.pop(name, None)
        else:
            place[name] = draw(VALUES)
    return process


@given(st.one_of(changed_processes(), VALUES))
def test_readers_agree_about_any_process(stranger: ModuleType, process: object) -> None:
    """verify.py, and a reader written from the text of the format."""
    assert stranger.is_process(process) is record_reader.is_process(process)


def test_readers_know_the_members_that_the_service_writes(stranger: ModuleType) -> None:
    """A member added to one is added to the other."""
    known = stranger.is_process.members
    assert list(known) == [field.name for field in msgspec.structs.fields(Process)]
    inner: dict[str, type[msgspec.Struct]]
    inner = {"lines": Line, "viewport": Viewport, "claimed": Claim}
    for name, struct in inner.items():
        fields = [field.name for field in msgspec.structs.fields(struct)]
        assert list(known[name].members) == fields


def shown_by_the_command(dossier: Path) -> str:
    done = run(["verify", str(dossier)], os.environ)
    return done.stdout + done.stderr


def shown_by_the_script(dossier: Path, script: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-I", script, dossier],
        capture_output=True, encoding="utf-8", check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 3, done.stdout
    return done.stdout


def check_words(observed: str, claimed: str) -> None:
    """Check that observations and the client's claims are two lists."""
    process = json.loads(INPUT.read_bytes())["process"]
    for expected in (
        process["checkout_session"],
        "a page of th",
        process["rendered_digest"],
        process["agreement"],
        process["consent"],
        "identity check",
        process["verification"],
        "other initials 1 time",
    ):
        assert expected in observed, expected
    for expected in ("JavaScript ran", "360 x 740 CSS pixels"):
        assert expected in claimed, expected
        assert expected not in observed


@pytest.mark.parametrize("reader", ["command", "script"])
def test_command_and_script_show_observations_and_claims(reader: str, script: Path) -> None:
    """A claim is marked as one; without a process the making is not mentioned."""
    if reader == "command":
        said, withheld = (shown_by_the_command(dossier) for dossier in (HOSTED, WITHHELD))
        how = said.partition("How the initials were made")[2]
        check_words(*how.split("The client claims, and the service did not observe:"))
        assert (
            "a client that had the session's token sent the initials: this does not show who used"
            in said
        )
        assert "the vendor asserts" not in said
    else:
        said, withheld = (shown_by_the_script(dossier, script) for dossier in (HOSTED, WITHHELD))
        how = said.partition("How the initials were made")[2]
        check_words(*how.split("The client claims, and the service did not observe:"))
        assert "changed line 2; received at 2026-11-20T21:30:10.640Z" in how
        assert "what a client sent that had the session's token, and not who used it" in said
    assert "How the initials were made" not in withheld
    assert json.loads(INPUT.read_bytes())["process"]["agreement"] in said
    assert '"checkout_session"' not in said


def test_an_unknown_origin_is_described_in_words(script: Path) -> None:
    """A component of a session without an origin."""
    offline = runpy.run_path(str(script))
    process = PROCESS_JSON | {"surface": "component", "origin": None}
    said = "\n".join(offline["explain_process"](process, ["a"] * len(PROCESS_JSON["lines"])))
    observed, claimed = said.split("The client claims, and the service did not observe:")
    assert "a component in the vendor's page at an unknown origin\n" in claimed
    assert "component" not in observed
    assert process["rendered_digest"] in claimed


@pytest.mark.parametrize("together", [True, False])
def test_lines_of_one_request_are_marked(script: Path, together: bool) -> None:
    """Equal times are one observation, with the time from serving to receiving."""
    offline = runpy.run_path(str(script))
    line = {**PROCESS_JSON["lines"][0], "shown_at": "2026-11-20T21:30:00.000Z"}
    other = {**line, "initialed_at": "2026-11-20T21:40:00.000Z"}
    lines = [{**line, "initialed_at": "2026-11-20T21:30:00.042Z"}] * 2
    said = "\n".join(offline["explain_lines"](lines if together else [line, other], ["A", "B"]))
    if together:
        assert "received in one request, at 2026-11-20T21:30:00.042Z, 0.042 s after" in said
        assert "(B) the same in every submission" in said
    else:
        assert "one request" not in said
        assert "received at 2026-11-20T21:40:00.000Z, 600.000 s after that" in said


@pytest.mark.long
@pytest.mark.browser
def test_the_page_shows_observations_and_claims(page_file: Path) -> None:
    """Under a heading of its own; without the process it says that this is not shown."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=["--headless", "--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        page.goto(page_file.as_uri())
        said = []
        for dossier in (HOSTED, WITHHELD):
            page.locator("#file[data-ready]").set_input_files(dossier)
            expect(page.locator("#line")).to_have_text(re.compile("^CONSISTENT"))
            expect(page.locator("#result")).to_contain_text("How the initials were made")
            if dossier is WITHHELD:
                expect(page.locator("#result")).not_to_contain_text("JavaScript ran")
            said.append(page.locator("#result").inner_text())
        browser.close()
    shown, withheld = (text.partition("How the initials were made")[2] for text in said)
    check_words(*shown.split("As the client claims; the service did not observe it:"))
    assert withheld.strip().startswith("Withheld or erased.")
    assert "what a client sent that had the session's token, and not who used it" in said[0]
