"""Containers of before bring their own verifier, which still judges them."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final

import pytest

VECTORS: Final = Path(__file__).parents[2] / "spec" / "vectors"
POLICIES: Final = {
    "bundle": VECTORS / "log" / "good" / "policy.txt",
    "dossier": VECTORS / "dossier" / "good" / "policy.txt",
}


@pytest.mark.parametrize("kind", POLICIES)
def test_the_verifier_inside_judges_its_container(kind: str, tmp_path: Path) -> None:
    """By the keys of the operator it passes, and with other words of the notice it fails."""
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
