"""The guides as pages: all of them, with links that lead somewhere, on a phone, searchable."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Final

import httpx2
import pytest
from playwright.sync_api import Page

from countersign.server.guides import images, read_guides
from tests.docs.markdown import ROOT, read
from tests.support.browsers import running_browser
from tests.support.service import Server

REFERENCE: Final = ["/docs/reference", "/docs/reference/types", "/docs/reference/acknowledgments"]
one_engine = pytest.mark.parametrize("deployment", ["sqlite"], indirect=True)


guides = cache(read_guides)
"""All of them; that takes a second, so not at the import."""


def pages() -> list[str]:
    """The path of each page of the documentation."""
    return ["/", *REFERENCE, "/docs/errors", *(guide.path for guide in guides())]


@pytest.fixture
def visitor(server: Server) -> Iterator[httpx2.Client]:
    with server.client() as client:
        yield client


@pytest.fixture(scope="module")
def phone() -> Generator[Page]:
    """Open a page as wide as a small phone."""
    with running_browser() as browser:
        yield browser.new_page(viewport={"width": 390, "height": 800})


@one_engine
def test_every_guide_of_the_repository_is_served(visitor: httpx2.Client) -> None:
    """Except the index, which is /docs itself."""
    files = {f"/docs/{path.stem}" for path in (ROOT / "docs").glob("*.md")} - {"/docs/README"}
    assert files <= {guide.path for guide in guides()}
    for guide in guides():
        answer = visitor.get(guide.path)
        assert answer.status_code == 200
        assert guide.title in answer.text
    assert visitor.get("/docs/nothing").json()["error"]["code"] == "not_found"


@one_engine
def test_a_browser_gets_a_page_at_an_unknown_address(visitor: httpx2.Client) -> None:
    """With a way on; a program gets JSON as before."""
    answer = visitor.get("/docs/nothing", headers={"Accept": "text/html,*/*;q=0.8"})
    assert (answer.status_code, answer.headers["content-type"][:9]) == (404, "text/html")
    assert "There is no such page" in answer.text


@one_engine
def test_every_link_of_a_guide_leads_to_an_anchor_that_is_served(visitor: httpx2.Client) -> None:
    ids: dict[str, set[str]] = {}
    for page in pages():
        ids[page] = set(re.findall(r'id="([^"]+)"', visitor.get(page).text))
    for guide in guides():
        for href in re.findall(r'href="([^"]+)"', guide.html):
            path, _, anchor = href.partition("#")
            if not re.match(r"https?:", href):
                assert not anchor or anchor in ids[path or guide.path], (guide.path, href)
                assert path in {"", "/verify", "/openapi.json", *ids}, (guide.path, href)


def test_headings_have_the_anchors_of_the_repository() -> None:
    """A link to a heading works in both places."""
    for guide in guides()[1:]:
        folder = "spec" if guide.path == "/docs/evidence-format" else "docs"
        page = read(ROOT / folder / f"{guide.path.removeprefix('/docs/')}.md")
        assert {section.anchor for section in guide.sections} == page.anchors


def test_the_tabs_of_other_languages_are_collapsed() -> None:
    """A page is as long as it was in one language."""
    (quickstart,) = [guide for guide in guides() if guide.path == "/docs/quickstart"]
    blocks = read(ROOT / "docs" / "quickstart.md").blocks
    for language, name in (("python", "Python"), ("ts", "TypeScript"), ("php", "PHP")):
        shown = [block for block in blocks if block.language == language]
        assert quickstart.html.count(f"<summary>{name}</summary>") == len(shown) > 0


@one_engine
def test_pictures_of_the_guides_are_served(visitor: httpx2.Client) -> None:
    for path, picture in images().items():
        answer = visitor.get(path)
        assert answer.headers["Content-Type"] == "image/png"
        assert answer.content == picture


@one_engine
@pytest.mark.browser
def test_no_page_scrolls_sideways_on_a_phone(phone: Page, server: Server) -> None:
    """Wide tables and code scroll by themselves."""
    wide = {}
    for path in pages():
        phone.goto(server.url + path)
        width = phone.evaluate("document.documentElement.scrollWidth")
        if width > 390:
            wide[path] = width
        assert phone.locator("h1").count() == 1, path
        assert phone.locator("main").count() == 1, path
        assert phone.evaluate("document.documentElement.lang") == "en"
    assert wide == {}


@one_engine
@pytest.mark.browser
def test_the_search_finds_a_section_from_the_keyboard(phone: Page, server: Server) -> None:
    trouble: list[str] = []
    phone.on("console", lambda message: trouble.append(message.text))
    phone.goto(f"{server.url}/docs")
    phone.get_by_label("Search the guides").press_sequentially("idempotency key")
    first = phone.locator("#results a").first
    first.wait_for()
    first.focus()
    phone.keyboard.press("Enter")
    phone.wait_for_url(re.compile(r"/docs/[a-z-]+#"))
    assert trouble == []


@one_engine
@pytest.mark.browser
def test_the_search_understands_a_question(phone: Page, server: Server) -> None:
    """In words that these pages do not use."""
    phone.goto(f"{server.url}/docs")
    phone.get_by_label("Search the guides").press_sequentially("How do I delete a customer?")
    phone.locator("#results a").first.wait_for()
    assert "erase" in phone.locator("#results a").first.inner_text().lower()


@pytest.mark.later  # it builds the package
def test_a_wheel_carries_the_guides(tmp_path: Path) -> None:
    build = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", build, str(tmp_path)], cwd=ROOT, check=True, capture_output=True
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for path in (ROOT / "docs").glob("*.md"):
        assert f"countersign/server/guide_files/docs/{path.name}" in names
    assert "countersign/server/guide_files/spec/evidence-format.md" in names
