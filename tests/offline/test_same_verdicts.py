"""The three readers judge alike: the command, verify.py and the page.

Where two disagree, the recipient of a dossier picks the one that suits.
"""

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from io import BytesIO, TextIOWrapper
from pathlib import Path
from types import CodeType, ModuleType
from unittest import mock

import pytest
from playwright.sync_api import FilePayload, Page, expect

from countersign_evidence.container import read_container
from countersign_evidence.verification import STEPS, verify_file
from tests.offline import builder
from tests.offline.odd import DOSSIERS, NOT_CHECKABLE
from tests.offline.odd_words import WORDS
from tests.support.browsers import running_browser
from tests.support.command import run

pytestmark = pytest.mark.long

ODD: Mapping[str, tuple[bytes, str | None]] = {
    **{name: (material.dossier(), step) for name, (material, step) in WORDS.items()},
    **DOSSIERS,
    **{f"good: {n}": (data, None) for n, data in builder.good().items()},
    **{f"broken: {n}": (data, step) for n, (step, data) in builder.broken().items()},
}


LOG_VECTORS = Path(__file__).parents[2] / "spec" / "vectors" / "log"
VECTORS: Mapping[str, tuple[bytes, str | None]] = {
    **{f"vector {p.stem}": (p.read_bytes(), None) for p in LOG_VECTORS.glob("good/*.zip")},
    **{
        f"vector {name}": ((LOG_VECTORS / "broken" / name).read_bytes(), case["step"])
        for name, case in json.loads((LOG_VECTORS / "broken/expected.json").read_bytes()).items()
        if name.endswith(".zip")
    },
}


UNKNOWN: Mapping[str, tuple[bytes, str | None]] = {
    **NOT_CHECKABLE,
    **{p.stem: (p.read_bytes(), p.stem) for p in LOG_VECTORS.glob("unchecked/*.zip")},
}


def judged_by_the_script(script: Path, dossier: Path) -> tuple[int, str]:
    """Its exit status and the line of its verdict, the last that it prints.

    It runs as the main program, but in this process: `test_command.py` starts the real ones.
    """
    out, err = (TextIOWrapper(BytesIO(), encoding="utf-8") for _ in range(2))
    with (
        mock.patch.object(sys, "argv", [str(script), str(dossier)]),
        mock.patch.object(sys, "path", list(sys.path)),  # it deletes the first
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        exec(_compiled(script), {"__name__": "__main__", "__file__": str(script)})  # noqa: S102 - our own
    said, complaints = (_written(stream) for stream in (out, err))
    assert complaints == ""
    assert all(c.isprintable() for c in said.replace("\n", ""))
    status = ended.value.code
    assert isinstance(status, int)
    return status, said.splitlines()[-1]


@cache
def _compiled(script: Path) -> CodeType:
    return compile(script.read_bytes(), script, "exec")


def _written(stream: TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


def judged_by_the_command(dossier: Path) -> tuple[int, str]:
    """Its exit status and what it prints."""
    done = run(["verify", str(dossier)], os.environ)
    printed = done.stdout + done.stderr
    assert all(c.isprintable() for c in printed.replace("\n", "")), printed
    return done.returncode, done.stdout.removesuffix("\n")


def expected(step: str | None) -> str:
    """How the verdict begins."""
    if step is None:
        return "CONSISTENT, KEY NOT CHECKED  one order, ack_"
    return f"FAILED at step {STEPS.index(step) + 1} ({step}): "


@pytest.mark.parametrize("name", ODD)
def test_command_and_script_judge_odd_evidence_alike(
    name: str, script: Path, tmp_path: Path
) -> None:
    """At the same step, with the same status, and with no character that plays tricks."""
    data, step = ODD[name]
    dossier = tmp_path / "dossier.zip"
    dossier.write_bytes(data)
    for status, line in (judged_by_the_command(dossier), judged_by_the_script(script, dossier)):
        assert line.startswith(expected(step))
        assert "\n" not in line
        assert status == (3 if step is None else 1)


@pytest.mark.parametrize("name", NOT_CHECKABLE)
def test_what_no_reader_can_check_is_not_said_to_have_failed(
    name: str, script: Path, tmp_path: Path
) -> None:
    """Nor to have passed: by command and script, with exit status 2."""
    data, step = NOT_CHECKABLE[name]
    dossier = tmp_path / "dossier.zip"
    dossier.write_bytes(data)
    begins = f"COULD NOT BE CHECKED at step {STEPS.index(step) + 1} ({step}): "
    for status, line in (judged_by_the_command(dossier), judged_by_the_script(script, dossier)):
        assert (status, line.startswith(begins)) == (2, True), line


def test_what_is_broken_fails_though_something_else_cannot_be_checked(
    stranger: ModuleType,
) -> None:
    """A failure is worth more than what cannot be known."""
    files = read_container(NOT_CHECKABLE["cosigned by a kind to come"][0])
    changed = builder.zipped({**files, "dossier.pdf": b"%PDF-1.7 changed"})
    assert stranger.verify_bytes(changed).line().startswith("FAILED at step 10 (files): ")
    assert verify_file(changed).line().startswith("FAILED at step 10 (files): ")


@pytest.fixture(scope="module")
def open_page(page_file: Path) -> Iterator[Page]:
    """The page of the verifier in a browser, for one file after the other."""
    with running_browser() as browser:
        page = browser.new_page()
        page.goto(page_file.as_uri())
        yield page


@pytest.mark.browser
@pytest.mark.parametrize("name", [*ODD, *VECTORS, *UNKNOWN])
def test_the_page_judges_odd_evidence_as_the_others_do(open_page: Page, name: str) -> None:
    """At the same step; a file follows another one without a trace of it."""
    data, step = ({**ODD, **VECTORS, **UNKNOWN})[name]
    open_page.locator("#file[data-ready]").set_input_files(
        FilePayload(name="b.zip", mimeType="application/zip", buffer=data)
    )
    expect(open_page.locator("#verdict")).to_have_text(re.compile("^(CONS|FAILED|COULD)"))
    said = open_page.locator("#verdict").inner_text()
    begins = "COULD NOT BE CHECKED" if name in UNKNOWN else "FAILED"
    begins = f"{begins} at step" if step else "CONSISTENT, KEY NOT CHECKED"
    assert said.startswith(begins)
    assert not step or f"({step}): " in said
