"""The three readers judge alike: the command, verify.py as people run it, and the page.

Where two disagree, whoever is handed a bundle picks the one that suits.
"""

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner
from playwright.sync_api import FilePayload, expect, sync_playwright

from countersign.cli import main
from countersign.evidence.verification import STEPS
from tests.conftest import find_chromium
from tests.offline import builder
from tests.offline.odd import BUNDLES, NOT_CHECKABLE_OFFLINE
from tests.offline.odd_words import WORDS

ODD: Mapping[str, tuple[bytes, str | None]] = {
    **{name: (material.bundle(), step) for name, (material, step) in WORDS.items()},
    **BUNDLES,
    # Where there is a time-stamp the command checks more than the others, and this one is none.
    **{f"good: {n}": (data, None) for n, data in builder.good().items() if n != "stamped"},
}


def judged_by_the_script(script: Path, bundle: Path) -> tuple[int, str]:
    """Its exit status and the line of its verdict, the last that it prints."""
    done = subprocess.run(
        [sys.executable, "-I", script, bundle],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )
    assert done.stderr == ""
    assert all(c.isprintable() for c in done.stdout.replace("\n", ""))
    return done.returncode, done.stdout.splitlines()[-1]


def judged_by_the_command(bundle: Path) -> tuple[int, str]:
    """Its exit status and what it prints."""
    done = CliRunner().invoke(main, ["verify", str(bundle)])
    assert all(c.isprintable() for c in done.output.replace("\n", "")), done.output
    return done.exit_code, done.stdout.removesuffix("\n")


def expected(step: str | None) -> str:
    """How the verdict begins."""
    return "OK  ack_" if step is None else f"FAILED at step {STEPS.index(step) + 1} ({step}): "


@pytest.mark.parametrize("name", ODD)
def test_command_and_script_judge_odd_evidence_alike(
    name: str, script: Path, tmp_path: Path
) -> None:
    """At the same step, with the same status, and with no character that plays tricks."""
    data, step = ODD[name]
    bundle = tmp_path / "bundle.zip"
    bundle.write_bytes(data)
    for status, line in (judged_by_the_command(bundle), judged_by_the_script(script, bundle)):
        assert line.startswith(expected(step))
        assert "\n" not in line
        assert status == (0 if step is None else 1)


def test_what_only_the_command_can_check_is_refused_by_the_script_with_the_reason(
    script: Path, tmp_path: Path
) -> None:
    """A quorum of a witness by ML-DSA: met, and not to be told from one that is not met."""
    bundle = tmp_path / "bundle.zip"
    bundle.write_bytes(NOT_CHECKABLE_OFFLINE)
    assert judged_by_the_command(bundle)[0] == 0
    status, line = judged_by_the_script(script, bundle)
    assert (status, line.startswith(expected("quorum"))) == (1, True)
    assert line.endswith("cosigned by: nobody; cannot be checked here: q")


@pytest.mark.browser
def test_the_page_judges_odd_evidence_as_the_others_do(page_file: Path) -> None:
    """All of it, one file after the other, in one page."""
    wrong = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=["--headless", "--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        page.goto(page_file.as_uri())
        for name, (data, step) in {**ODD, "ML-DSA": (NOT_CHECKABLE_OFFLINE, "quorum")}.items():
            page.locator("#file[data-ready]").set_input_files(
                FilePayload(name="b.zip", mimeType="application/zip", buffer=data)
            )
            expect(page.locator("#verdict")).to_have_text(re.compile("^(OK|FAILED)"))
            told = page.locator("#verdict").inner_text()
            if not (told.startswith("OK: ") if step is None else f"({step}): " in told):
                wrong[name] = told
        browser.close()
    assert wrong == {}
