"""A project without `"type": "module"` uses the TypeScript client, as docs/clients.md says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support import node

pytestmark = [pytest.mark.npm, pytest.mark.one_engine]
PROGRAM = """
import { Countersign, CountersignError } from "countersign-client";
const client = new Countersign({ apiKey: "csign_sk_test_x", baseUrl: "http://127.0.0.1:1" });
const id: string = client.notices.retrieve.name;
console.log(id, new CountersignError("m", { code: "c" }).code);
"""


@pytest.mark.parametrize("module", ["nodenext", "node20"])
def test_a_commonjs_project_has_client_types_and_errors(
    built: Path, tmp_path: Path, module: str
) -> None:
    """Compiled strictly, and run by the Node.js of this machine."""
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "countersign-client").symlink_to(built.parent)
    (tmp_path / "package.json").write_text('{"name": "shop", "version": "1.0.0"}')
    (tmp_path / "shop.ts").write_text("declare const console: any;" + PROGRAM)
    compiler = str(node.CLIENT / "node_modules" / ".bin" / "tsc")
    options = ["--strict", "--target", "es2022", "--module", module, "--types", ""]

    def printed(*command: str) -> str:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert printed(compiler, *options, "shop.ts") == ""
    assert printed("node", "shop.js") == "retrieve c\n"
