"""The generated parts of the clients are committed and complete."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from countersign.base.errors import REFUSALS
from tests.docs.markdown import ROOT
from tests.support import node
from tools import clients_python, clients_typescript
from tools.clients import NAMES, Document, call_of

SPEC: dict[str, Any] = json.loads((ROOT / "spec" / "openapi.json").read_bytes())


@pytest.mark.parametrize("generator", [clients_python, clients_typescript])
def test_the_committed_modules_match_the_document(generator: Any) -> None:  # noqa: ANN401 - a module
    """`make clients` writes them again."""
    for path, text in generator.files(Document(SPEC)).items():
        assert (ROOT / path).read_text(encoding="utf-8") == text, f"{path}: run make clients"


def test_every_operation_has_a_name_of_its_own() -> None:
    """And no name is left of an operation that is gone."""
    calls = {
        definition["operationId"]: call_of(definition["operationId"], path)
        for path, methods in SPEC["paths"].items()
        for definition in methods.values()
    }
    assert set(NAMES) <= set(calls)
    assert len(set(calls.values())) == len(calls)


def test_an_operation_of_an_unknown_resource_stops_the_generator() -> None:
    """No operation is left out silently."""
    changed = json.loads(json.dumps(SPEC))
    changed["paths"]["/v1/somethings"] = changed["paths"].pop("/healthz")
    changed["paths"]["/v1/somethings"]["get"]["operationId"] = "listSomethings"
    with pytest.raises(SystemExit, match="listSomethings"):
        Document(changed)


def test_every_code_that_an_operation_returns_has_an_exception() -> None:
    """All except those for identity providers, whose messages no client sends."""
    codes = {error.code for error in REFUSALS}
    assert codes - set(Document(SPEC).errors()) <= {"invalid_webhook"}


@pytest.mark.npm
def test_the_package_for_node_is_whole(tmp_path: Path) -> None:
    """`npm pack` compiles first if nothing was built; its result can be loaded."""
    source, packed, installed = (tmp_path / name for name in ("source", "packed", "installed"))
    left_out = shutil.ignore_patterns("node_modules", "dist", "test", "*.tgz")
    shutil.copytree(node.CLIENT, source, ignore=left_out)
    (source / "node_modules").symlink_to(node.CLIENT / "node_modules")
    packed.mkdir()
    # Without the settings of the person who runs the tests.
    clean = {k: v for k, v in os.environ.items() if not k.lower().startswith("npm_config_")}
    command = ["npm", "pack", "--silent", f"--pack-destination={packed}"]
    environment = clean | {"NPM_CONFIG_USERCONFIG": os.devnull}
    subprocess.run(command, cwd=source, env=environment, capture_output=True, check=True)
    (file,) = packed.iterdir()
    with tarfile.open(file) as archive:
        names = {name.removeprefix("package/") for name in archive.getnames()}
        archive.extractall(installed / "node_modules", filter="data")
    modules = {path.stem for path in (node.CLIENT / "src").glob("*.ts")}
    expected = {f"dist/{name}{end}" for name in modules for end in (".js", ".d.ts")}
    assert names == expected | {"package.json", "README.md", "LICENSE"}
    (installed / "node_modules" / "package").rename(installed / "node_modules/countersign-client")
    for name in ("countersign-client", "countersign-client/testing"):
        load = ["node", "--input-type=module", "--eval", f"import {name!r}"]
        subprocess.run(load, cwd=installed, capture_output=True, check=True)
