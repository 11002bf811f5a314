"""docs/developing.md: the files that it names exist, are few, and are all that a change needs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import httpx2
import pytest

from tests.cli.serving import running, wait_for
from tests.docs.markdown import ROOT, read
from tests.support.service import free_port
from tests.unit.imports import FLOORS

PAGE: Final = read(ROOT / "docs" / "developing.md")
FILES_MAX: Final = {
    "## A response member": (2, 0),
    "## A refusal": (3, 0),
    "## A clearance reason": (2, 1),
    "## A setting": (2, 0),
    "## A console page": (0, 2),
    "## An act of staff": (1, 1),
    "## A field of the acknowledgment": (4, 4),
    "## An endpoint with storage": (3, 4),
    "## An identity provider": (0, 3),
    "## An event type": (2, 1),
}
"""For each change, the maximum of changed files in the service, and elsewhere."""
GENERATED: Final = {"docs/cli.md", "spec/openapi.json"}
# Prints the files that do not agree with the code, one a line.
STALE: Final = """
from pathlib import Path
from countersign.core.events.model import EventType
from countersign.server.routes import ROUTES
from tests.docs.generated import CLI, cli_page
from tests.docs.markdown import read
from tools.openapi import openapi_text

rows = read(Path("docs/webhooks.md")).rows("## Which events there are")
if [row[0].strip("`") for row in rows] != [type_.value for type_ in EventType]:
    print("docs/webhooks.md")
if Path("spec/openapi.json").read_text(encoding="utf-8") != openapi_text(ROUTES):
    print("spec/openapi.json")
if CLI.read_text(encoding="utf-8") != cli_page():
    print("docs/cli.md")
"""


def named(section: str) -> list[str]:
    """The files in the table of a change."""
    return [row[0].strip("`") for row in PAGE.rows(section)]


def insert_after(path: Path, line: str, new: str) -> None:
    """Add a line to a file, after a line that stands there once."""
    text = path.read_text(encoding="utf-8")
    assert text.count(line) == 1, f"{path}: {line}"
    path.write_text(text.replace(line, line + new), encoding="utf-8")


def stale_files(tree: Path) -> set[str]:
    """The files of a copy that have to change before they agree with its code again."""
    done = subprocess.run(
        [sys.executable, "-c", STALE],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the service, and of the files compared with it."""
    skipped = shutil.ignore_patterns("__pycache__")
    for folder in ("src", "packages/evidence/src", "tools"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=skipped)
    compared = ("docs/cli.md", "docs/webhooks.md", "spec/openapi.json")
    readers = ("__init__.py", "docs/__init__.py", "docs/generated.py", "docs/markdown.py")
    for name in (*compared, *(f"tests/{reader}" for reader in readers)):
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    return tmp_path


def test_the_table_of_rooms_is_in_the_order_of_imports() -> None:
    """Read from top to bottom it shows what may import what, and no room is missing."""
    rows = read(ROOT / "CONTRIBUTING.md").rows("## Where things are")
    found = [re.findall(r"`([\w/]+?)(?:/|\.py)`", row[0]) for row in rows]
    places = [[name.replace("/", ".") for name in names] for names in found]
    levels = FLOORS["countersign"]
    rooms = {room: floor for floor, level in enumerate(levels) for room in level.split()}
    order = [rooms[name] for names in places for name in names]
    assert order == sorted(order)
    named = {name for names in places for name in names}
    assert named == set(rooms) - {"__main__", "countersign", "core", "hosted", "staff"}


@pytest.mark.parametrize("section", FILES_MAX)
def test_a_change_needs_few_files(section: str) -> None:
    """A table that grows shows that something is declared in too many places."""
    files = named(section)
    source = [file for file in files if file.startswith(("src/", "packages/evidence/src/"))]
    source_max, others_max = FILES_MAX[section]
    assert len(source) <= source_max
    assert len(files) - len(source) <= others_max


@pytest.mark.parametrize("section", FILES_MAX)
def test_the_files_of_a_change_exist(section: str) -> None:
    """A reader of the page finds each of them."""
    assert [file for file in named(section) if not (ROOT / file).is_file()] == []


@pytest.mark.later
def test_an_event_type_needs_only_the_files_that_the_page_names(tree: Path) -> None:
    """Made in a copy: first the code, then the files that no longer agree with it."""
    model, _, page = named("## An event type")
    assert stale_files(tree) == set()
    closed = '    CLEARANCE_CLOSED = "clearance.closed"\n'
    insert_after(tree / model, closed, '    CLEARANCE_EXPIRED = "clearance.expired"\n')
    assert stale_files(tree) == {page} | GENERATED
    (row,) = [
        line
        for line in (tree / page).read_text(encoding="utf-8").splitlines(keepends=True)
        if line.startswith("| `clearance.closed` |")
    ]
    insert_after(tree / page, row, "| `clearance.expired` | it expired | `clearance_id` |\n")
    assert stale_files(tree) == GENERATED


# For each file of the table: the inserted text and its place.
FIELD: Final = {
    "src/countersign/core/acknowledgments/schemas.py": [
        (
            '    """The buyer identifier."""\n',
            '    shown_in: Opaque | None = None\n    """Its language."""\n',
        ),
        ("    cbid: BuyerId | None\n", "    shown_in: str | None\n"),
    ],
    "src/countersign/core/acknowledgments/model.py": [
        (
            "    notice_version: str | None\n    origin: Origin\n",
            "    shown_in: str | None = None\n",
        ),
    ],
    "packages/evidence/src/countersign_evidence/offline/verify.py": [
        (
            '"acknowledgment": {\n        INITIALS: each(is_text),\n',
            '        "shown_in": or_null(is_text),\n',
        ),
    ],
}


@pytest.mark.later
def test_a_field_of_the_acknowledgment_needs_only_the_files_that_the_page_names(
    tree: Path,
) -> None:
    """Made in a copy: a server takes it, stores and returns it, and the verifier knows it."""
    assert {*FIELD} < {*named("## A field of the acknowledgment")}
    for file, lines in FIELD.items():
        for line, new in lines:
            insert_after(tree / file, line, new)
    path = f"{tree / 'src'}{os.pathsep}{tree / 'packages/evidence/src'}"
    settings = {"COUNTERSIGN_DATA_DIR": str(tree / "data"), "PYTHONPATH": path}
    environment = os.environ | settings | {"COUNTERSIGN_PORT": str(port := free_port())}

    def run(*words: str) -> str:
        command = [sys.executable, "-m", "countersign", *words]
        return subprocess.run(
            command, cwd=tree, env=environment, check=True, capture_output=True, text=True
        ).stdout

    run("init")
    run("accounts", "create", "vendor")
    key = run("keys", "create", "--account", "vendor", "--mode", "test").strip()
    log, url = tree / "log", f"http://127.0.0.1:{port}"
    serve = [sys.executable, "-m", "countersign", "serve"]
    with (
        running(serve, environment, log, tree) as process,
        httpx2.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}) as client,
    ):
        wait_for(process, log, "Countersign serves")
        body = {"initials_per_line": ["JD"] * 4, "shown_in": "es"}
        made = client.post("/v1/notices/ab1263/acknowledge", json=body)
        assert made.status_code == httpx2.codes.OK, made.text
        ack_id = made.json()["ack_id"]
        assert client.get(f"/v1/acknowledgments/{ack_id}").json()["shown_in"] == "es"
    run("dossier", ack_id, "--output", str(tree / "dossier.zip"))
    verifier = "packages/evidence/src/countersign_evidence/offline/verify.py"
    reader = [sys.executable, str(tree / verifier)]
    done = subprocess.run(
        [*reader, str(tree / "dossier.zip")], check=False, capture_output=True, text=True
    )
    said = done.stdout + done.stderr
    assert "shown_in" in said
    assert "does not know" not in said
