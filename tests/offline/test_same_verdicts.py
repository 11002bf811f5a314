"""The readers judge alike: verify.py, the same with OpenSSL, and the page, which shares no code.

If two disagree, the recipient of a dossier picks the convenient one.
"""

import json
import os
import sys
from base64 import b64encode
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from io import BytesIO, TextIOWrapper
from pathlib import Path
from types import CodeType, ModuleType
from unittest import mock

import pytest
from playwright.sync_api import Page

from countersign_evidence.dossier import read_container
from countersign_evidence.verification import STEPS, verify_file
from tests.offline import builder
from tests.offline.odd import DOSSIERS, NOT_CHECKABLE
from tests.offline.odd_words import WORDS
from tests.support.browsers import running_browser
from tests.support.command import run
from tests.support.every import every

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
    """Its exit status and the line of its verdict, the last on standard output."""
    done = run(["verify", str(dossier)], os.environ)
    printed = done.stdout + done.stderr
    assert all(c.isprintable() for c in printed.replace("\n", "")), printed
    return done.returncode, done.stdout.splitlines()[-1]


@every("name", [*ODD, *NOT_CHECKABLE])
def test_every_odd_file_is_judged_at_its_step(name: str, stranger: ModuleType) -> None:
    """By Python alone and by OpenSSL, in the same words; later steps are not claimed."""
    data, step = ({**ODD, **NOT_CHECKABLE})[name]
    report, verdict = stranger.verify_bytes(data), verify_file(data)
    assert report.line() == verdict.line()
    if step is None:
        assert report.line().startswith(expected(name, step))
        assert [(one.name, one.result) for one in report.steps] == [(one, "ok") for one in STEPS]
        assert report.shown == verdict.shown
        assert report.facts["timestamps"] == verdict.facts["timestamps"]
        return
    number = STEPS.index(step)
    assert report.line().startswith(f"{expected(name, step)} {number + 1} ({step}): ")
    assert (report.failed.name, verdict.name, verdict.step) == (step, step, number + 1)
    assert len(verdict.message) > 10
    assert not verdict.ok
    assert not verdict.shown
    if name in ODD:
        assert {later.result for later in report.steps[number + 1 :]} <= {"not checked"}


def expected(name: str, step: str | None) -> str:
    """How the verdict begins."""
    if step is None:
        return "CONSISTENT, KEY NOT CHECKED  one order, ack_"
    return "FAILED at step" if name in ODD else "COULD NOT BE CHECKED at step"


@every("name", [*WORDS, *NOT_CHECKABLE, "good: full"])
def test_command_and_script_print_the_verdict_and_no_character_that_plays_tricks(
    name: str, script: Path, tmp_path: Path
) -> None:
    """In one line, with the same exit status: 3 by its own key, 1 failed, 2 not to be checked."""
    data, step = ({**ODD, **NOT_CHECKABLE})[name]
    dossier = tmp_path / "dossier.zip"
    dossier.write_bytes(data)
    status = 2 if name in NOT_CHECKABLE else 3 if step is None else 1
    for found, line in (judged_by_the_command(dossier), judged_by_the_script(script, dossier)):
        assert (found, line.startswith(expected(name, step))) == (status, True), line
        assert "\n" not in line


def test_broken_evidence_fails_although_other_parts_cannot_be_checked(
    stranger: ModuleType,
) -> None:
    """A failure outweighs an unknown."""
    files = read_container(NOT_CHECKABLE["cosigned by a kind to come"][0])
    changed = builder.zipped({**files, "dossier.pdf": b"%PDF-1.7 changed"})
    assert stranger.verify_bytes(changed).line().startswith("FAILED at step 10 (files): ")


@pytest.mark.browser
def test_the_page_judges_every_odd_file_like_the_other_readers(page_file: Path) -> None:
    """At the same step, vectors too, in one page: a file follows another one without a trace."""
    files = {**ODD, **VECTORS, **UNKNOWN}
    with running_browser() as browser:
        page = browser.new_page()
        page.goto(page_file.as_uri())
        page.locator("#file[data-ready]").wait_for()
        found = judged_by(page, [data for data, _ in files.values()])
    wanted = {
        name: ["stuck" if name in UNKNOWN else "failed" if step else "ok", step]
        for name, (_, step) in files.items()
    }
    assert dict(zip(files, found, strict=True)) == wanted


def judged_by(page: Page, files: list[bytes]) -> list[list[str | None]]:
    """The page's verdict, and its step."""
    found: list[list[str | None]] = page.evaluate(
        """async files => {
          const found = [];
          for (const file of files) {
            const run = await verify(fromLatin1(atob(file)), null);
            const came = run.failed ? "failed" : run.stuck ? "stuck" : "ok";
            found.push([came, (run.failed ?? run.stuck)?.name ?? null]);
          }
          return found;
        }""",
        [b64encode(data).decode() for data in files],
    )
    return found
