"""docs/developing.md: the files that it names exist, are few, and are all that a change needs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.docs.markdown import ROOT, read
from tests.unit.imports import FLOORS

PAGE: Final = read(ROOT / "docs" / "developing.md")
FILES_MAX: Final = {
    "## A field of the acknowledgment": (4, 4),
    "## An endpoint with storage": (4, 5),
    "## An identity provider": (2, 3),
    "## An event type": (2, 2),
}
"""Of each change, the most files of the service that it may touch, and the most others."""
GENERATED: Final = {"docs/cli.md", "spec/openapi.json"}
# Prints the files that do not agree with the code, one a line.
STALE: Final = """
from pathlib import Path
from countersign.events.model import EventType
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
    """A copy of the service, and of what is compared with it."""
    skipped = shutil.ignore_patterns("__pycache__")
    for folder in ("src", "tools"):
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
    places = [re.findall(r"`(\w+)(?:/|\.py)`", row[0]) for row in rows]
    rooms = {room: floor for floor, level in enumerate(FLOORS) for room in level.split()}
    order = [rooms[name] for names in places for name in names]
    assert order == sorted(order)
    folders = {path.parent.name for path in (ROOT / "src" / "countersign").glob("*/__init__.py")}
    assert folders <= {name for names in places for name in names}


@pytest.mark.parametrize("section", FILES_MAX)
def test_a_change_needs_few_files(section: str) -> None:
    """A table that grows shows that something is declared in too many places."""
    files = named(section)
    source = [file for file in files if file.startswith("src/")]
    source_max, others_max = FILES_MAX[section]
    assert len(source) <= source_max
    assert len(files) - len(source) <= others_max


@pytest.mark.parametrize("section", FILES_MAX)
def test_the_files_of_a_change_exist(section: str) -> None:
    """A reader of the page finds each of them."""
    assert [file for file in named(section) if not (ROOT / file).is_file()] == []


def test_an_event_type_needs_only_the_files_that_the_page_names(tree: Path) -> None:
    """Made in a copy: first the code, then what no longer agrees with it."""
    model, page, *_ = [f for f in named("## An event type") if f.endswith(("model.py", ".md"))]
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
