"""Every relative link of every page leads to a file that exists, and to a heading in it."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.docs.markdown import ROOT, every_page, read

PAGES = every_page()
_NAMED = re.compile(r"(docs/[a-z-]+\.md)(?:#([a-z0-9-]+))?")


def test_pages_to_check_exist() -> None:
    """The list is not empty by mistake."""
    assert {ROOT / "README.md", ROOT / "docs" / "operate.md"} <= set(PAGES)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_relative_link_resolves(path: Path) -> None:
    """Both the file and the heading exist."""
    for link in read(path).links:
        place, _, anchor = link.partition("#")
        if ":" in place:
            continue
        target = path if not place else (path.parent / unquote(place)).resolve()
        assert target.exists(), f"{path}: {link}"
        assert target.is_relative_to(ROOT), f"{path}: {link} leads out of the repository"
        if anchor:
            assert target.suffix == ".md", f"{path}: {link}"
            assert anchor in read(target).anchors, f"{path}: {link}"


def test_each_page_that_a_message_names_is_there() -> None:
    """Pages in messages of `doctor`, alarms and the files of deploy/, with named headings."""
    files = [path for path in (ROOT / "deploy").rglob("*") if path.is_file()]
    doctor = ROOT / "src" / "countersign" / "operate" / "doctor"
    files += [doctor / "findings.toml", doctor / "promises.toml"]
    named = {place for path in files for place in _NAMED.findall(path.read_text(encoding="utf-8"))}
    assert len(named) > 10
    for name, anchor in named:
        page = read(ROOT / name)
        assert not anchor or anchor in page.anchors, f"{name}#{anchor}"


@pytest.mark.parametrize("folder", ["docs", "docs/decisions"])
def test_every_page_is_in_its_index(folder: str) -> None:
    """A page that no index names is not found."""
    index = ROOT / folder / "README.md"
    named = {(index.parent / link.partition("#")[0]).resolve() for link in read(index).links}
    missing = {path for path in index.parent.glob("*.md") if path != index} - named
    assert not missing


def test_each_decision_says_what_was_rejected() -> None:
    """A chapter has a decision under each heading, with the alternatives, on two pages."""
    chapters = set((ROOT / "docs" / "decisions").glob("[!R]*.md"))
    assert len(chapters) == 13
    for path in chapters:
        text = path.read_text(encoding="utf-8")
        assert len(text.split()) <= 1050, path
        for section in text.split("\n## ")[1:]:
            assert "*Rejected:*" in section, f"{path}: {section.splitlines()[0]}"
