"""What users read is in plain English, and leads to pages that they have."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from countersign import errors
from countersign.errors import CountersignError
from countersign.server.guides import read_guides
from tests.docs.markdown import ROOT, read

BANNED: Final = re.compile(
    r"\b(told|tells|anew|whoever|for ever|vouch\w*|nobody|there is not|knocks?|mend(s|ed|ing)?"
    r"|is asked about|beside|in vain|of (its|their) own accord|lets go|gives? back|sees to|upon)\b",
    re.IGNORECASE,
)


def own(folder: str, suffix: str) -> list[Path]:
    """The files of a folder with this suffix, without what npm installed."""
    found = (ROOT / folder).rglob(f"*.{suffix}")
    return sorted(path for path in found if "node_modules" not in path.parts)


PAGES: Final = [
    *(ROOT / name for name in ("README.md", "SECURITY.md")),
    *(ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md")),
    *(page for folder in ("docs", "spec") for page in sorted((ROOT / folder).rglob("*.md"))),
    *(page for folder in ("clients", "integrations", "packages") for page in own(folder, "md")),
]
SOURCES: Final = [ROOT / "src" / "countersign", ROOT / "packages" / "evidence" / "src"]
FOLDERS: Final = (
    *("bench", "clients", "examples", "integrations"),
    *("packages", "src", "tests", "tools"),
)
_COMMENT: Final = re.compile(r"(?:^|\s)# (.*)$", re.MULTILINE)
_GUIDE: Final = re.compile(r"/docs/[a-z-]+#[a-z0-9-]+")


def found_in(text: str) -> list[str]:
    """The banned words of a text, each with the words around it."""
    flat = " ".join(text.split())
    return [flat[max(0, m.start() - 40) : m.end() + 40] for m in BANNED.finditer(flat)]


def described(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON
    """Every description and summary of an OpenAPI document."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name in {"description", "summary"} and isinstance(item, str):
                yield item
            else:
                yield from described(item)
    elif isinstance(value, list):
        for item in value:
            yield from described(item)


def strings(path: Path) -> Iterator[str]:
    """The strings of a module that are not docstrings."""
    tree = ast.parse(path.read_text())
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in docstrings:
            yield str(node.value)


def remarks(path: Path) -> Iterator[str]:
    """The docstrings and comments of a module, and the names that it defines, as words."""
    source = path.read_text()
    yield " ".join(_COMMENT.findall(source))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name.replace("_", " ")
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id.replace("_", " ")
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr.replace("_", " ")
        elif isinstance(node, ast.arg):
            yield node.arg.replace("_", " ")
        elif isinstance(node, ast.alias) and node.asname:
            yield node.asname.replace("_", " ")
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield str(node.value.value)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_are_in_plain_words(page: Path) -> None:
    """Blocks of code and output are what the code makes them."""
    assert found_in(read(page).prose) == []


def test_errors_are_in_plain_words() -> None:
    """Messages are shown to clients and operators, remedies on the error page."""
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, CountersignError)
    ]
    assert len(kinds) > 50
    assert [
        f for kind in kinds for f in found_in(f"{kind.__doc__} {getattr(kind, 'remedy', '')}")
    ] == []


def test_the_reference_of_commands_is_in_plain_words() -> None:
    """docs/cli.md has the help texts of all commands, in blocks."""
    assert found_in((ROOT / "docs" / "cli.md").read_text()) == []


def test_the_description_of_the_api_is_in_plain_words() -> None:
    """Client generators copy it into the editors of vendors."""
    document = json.loads((ROOT / "spec" / "openapi.json").read_bytes())
    assert found_in("\n".join(described(document))) == []


def test_messages_are_in_plain_words() -> None:
    """Of the service and its commands; the names of settings and events are no words."""
    modules = [p for source in SOURCES for p in source.rglob("*.py")]
    said = [text for path in modules for text in strings(path)]
    assert [f for text in said if " " in text for f in found_in(text)] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_comments_and_names_are_in_plain_words(folder: str) -> None:
    """A name says the promise that a test keeps; the next developer reads it with the code."""
    modules = own(folder, "py")
    assert modules
    assert [
        f"{path.relative_to(ROOT)}: {found}"
        for path in modules
        for text in remarks(path)
        for found in found_in(text)
    ] == []


def test_words_and_settings_in_toml_are_plain() -> None:
    """Dossiers, certificates and error pages take their sentences from such files."""
    files = [path for folder in FOLDERS for path in own(folder, "toml")]
    assert len(files) > 10
    assert [
        f"{path.relative_to(ROOT)}: {found}"
        for path in (ROOT / "pyproject.toml", *files)
        for found in found_in(path.read_text())
    ] == []


def test_messages_lead_to_pages_that_a_server_serves() -> None:
    """An installed release has no file `docs/backup.md`, but every server serves the guides."""
    served = {f"{g.path}#{section.anchor}" for g in read_guides() for section in g.sections}
    modules = [p for source in SOURCES for p in source.rglob("*.py")]
    said = [text for path in modules for text in strings(path) if "docs/" in text]
    named = {place for text in said for place in _GUIDE.findall(text)}
    assert named
    assert named <= served
    commands = (ROOT / "docs" / "cli.md").read_text()
    assert re.findall(r"docs/[a-z-]+\.md", commands) == []
