"""Containers of before bring their own verifier: it still judges them, and can be forged."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import expect

from tests.support.browsers import running_browser

VECTORS: Final = Path(__file__).parents[2] / "spec" / "vectors"
POLICIES: Final = {
    "bundle": VECTORS / "log" / "good" / "policy.txt",
    "dossier": VECTORS / "dossier" / "good" / "policy.txt",
}


@pytest.mark.parametrize("kind", POLICIES)
def test_the_verifier_inside_judges_its_container(kind: str, tmp_path: Path) -> None:
    """With the operator's keys it passes, and with other words of the notice it fails."""
    with zipfile.ZipFile(VECTORS / "before" / f"{kind}.zip") as archive:
        archive.extractall(tmp_path)

    def verified() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-I", "verify.py", "--policy", str(POLICIES[kind])],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    good = verified()
    assert good.returncode == 0, good.stdout + good.stderr
    assert "Manufacturing more than three firearms" in good.stdout
    notice = tmp_path / "notice.json"
    notice.write_bytes(notice.read_bytes().replace(b"more than three", b"more than four"))
    assert verified().returncode == 1


DIGESTS: Final = VECTORS.parent / "verifiers-before.sha256"
REFUSED: Final = (
    "COULD NOT BE CHECKED at step 1 (container): this container is a bundle, of an earlier release"
)
WARNED: Final = (
    "can be whatever its sender put there: before you run it, compare its SHA-256 with "
    "spec/verifiers-before.sha256"
)


@pytest.mark.parametrize("reader", ["script", "command"])
def test_a_bundle_is_refused_with_a_warning_of_the_program_inside(
    reader: str, script: Path, tmp_path: Path
) -> None:
    """At the first step, packed and unpacked: it neither passed nor failed."""
    packed = VECTORS / "before" / "bundle.zip"
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(tmp_path)
    program = [str(script)] if reader == "script" else ["-m", "countersign", "verify"]
    for place in (packed, tmp_path):
        done = subprocess.run(
            [sys.executable, *program, str(place)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2, done.stdout + done.stderr
        assert REFUSED in done.stdout
        assert WARNED in done.stdout


@pytest.mark.browser
def test_the_page_refuses_a_bundle_with_a_warning_of_the_program_inside(page_file: Path) -> None:
    """Like the other readers."""
    with running_browser() as browser:
        page = browser.new_page()
        page.goto(page_file.as_uri())
        page.locator("#file[data-ready]").set_input_files(VECTORS / "before" / "bundle.zip")
        expect(page.locator("#line")).to_have_text(re.compile(f"^{re.escape(REFUSED)}"))
        expect(page.locator("#line")).to_contain_text(WARNED)


def test_the_digests_of_the_verifiers_of_before_are_published() -> None:
    """Those of the last build that made bundles: in the kept containers."""
    published = DIGESTS.read_text(encoding="ascii").splitlines()
    lines = [line for line in published if not line.startswith("#")]
    for kind in POLICIES:
        with zipfile.ZipFile(VECTORS / "before" / f"{kind}.zip") as archive:
            assert lines == [
                f"{sha256(archive.read(name)).hexdigest()}  {name}"
                for name in ("verify.py", "verify.html")
            ]
