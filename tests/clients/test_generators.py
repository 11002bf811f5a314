"""docs/generated-clients.md: what others make of the OpenAPI document makes a cleared order."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.clients.conftest import Place
from tests.docs.markdown import ROOT, read
from tests.support import node

pytestmark = pytest.mark.one_engine
SPEC = ROOT / "spec" / "openapi.json"
BLOCKS = read(ROOT / "docs" / "generated-clients.md").blocks


def shown(language: str, place: Place) -> str:
    """The one block in this language, for this server."""
    (block,) = [block for block in BLOCKS if block.language == language]
    key, _ = place.vendor()
    text = block.text.replace("http://127.0.0.1:8080", place.server.url)
    return text.replace("csign_sk_test_...", key)


def run(*command: str | Path, folder: Path, path: Sequence[Path] = ()) -> str:
    """The output of a program that ends successfully and complains of nothing."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path))}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


@pytest.mark.npm
def test_the_generated_typescript_makes_a_cleared_order(place: Place, tmp_path: Path) -> None:
    """Compiled strictly: a member that may be left out may be left out."""
    (tmp_path / "node_modules").symlink_to(node.GENERATORS / "node_modules")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "order.ts").write_text(shown("ts", place), encoding="utf-8")
    programs = node.GENERATORS / "node_modules" / ".bin"
    run(programs / "openapi-typescript", SPEC, "-o", "countersign.d.ts", folder=tmp_path)
    options = ["--strict", "--target", "es2022", "--lib", "es2022,dom", "--module", "nodenext"]
    rewritten = ["--allowImportingTsExtensions", "--rewriteRelativeImportExtensions"]
    assert run(programs / "tsc", *options, *rewritten, "order.ts", folder=tmp_path) == ""
    assert run("node", "order.js", folder=tmp_path) == "true\n"


@pytest.mark.later
def test_the_generated_python_makes_a_cleared_order(place: Place, tmp_path: Path) -> None:
    """And the generator understands every operation: it warns of nothing."""
    (settings,) = [block.text for block in BLOCKS if block.language == "yaml"]
    # The page's program is run as it was written, not as a formatter leaves it.
    (tmp_path / "generator.yaml").write_text(settings + "post_hooks: []\n", encoding="utf-8")
    options = ["--config", "generator.yaml", "--meta", "none", "--output-path", "countersign_api"]
    generator = [sys.executable, "-m", "openapi_python_client", "generate", "--path", str(SPEC)]
    said = run(*generator, *options, folder=tmp_path)
    assert "WARNING" not in said, said
    (tmp_path / "order.py").write_text(shown("python", place), encoding="utf-8")
    assert run(sys.executable, "order.py", folder=tmp_path, path=[tmp_path]) == "True\n"
