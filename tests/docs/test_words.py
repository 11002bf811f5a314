"""Links in the texts for users lead to existing pages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from countersign.server.guides import read_guides
from tests.docs.markdown import ROOT, read

SOURCES: Final = [ROOT / "src" / "countersign", ROOT / "packages" / "evidence" / "src"]
_GUIDE: Final = re.compile(r"/docs/[a-z-]+#[a-z0-9-]+")


def strings(path: Path) -> Iterator[str]:
    """The strings of a module that are not docstrings."""
    tree = ast.parse(path.read_text())
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in docstrings:
            yield str(node.value)


def test_messages_link_to_pages_that_a_server_serves() -> None:
    """An installed release has no file `docs/backup.md`, but every server serves the guides."""
    served = {f"{g.path}#{section.anchor}" for g in read_guides() for section in g.sections}
    modules = [p for source in SOURCES for p in source.rglob("*.py")]
    said = [text for path in modules for text in strings(path) if "docs/" in text]
    named = {place for text in said for place in _GUIDE.findall(text)}
    assert named
    assert named <= served
    commands = (ROOT / "docs" / "cli.md").read_text()
    assert re.findall(r"docs/[a-z-]+\.md", commands) == []


def test_the_glossary_defines_each_term_once() -> None:
    """CONTRIBUTING.md asks for these terms."""
    page = read(ROOT / "docs" / "glossary.md")
    parts = ("Requests and retries", "Data and transactions", "Evidence")
    rows = [row for part in parts for row in page.rows(f"## {part}")]
    assert len(rows) >= 40
    assert len({term for term, _, _ in rows}) == len(rows)
    assert all(term and meaning for term, meaning, _ in rows)
