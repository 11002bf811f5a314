"""`make site`: the pages as a website that needs no server, and loads nothing from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.windows import Windows, assert_accessible
from tests.docs.markdown import ROOT
from tests.support.browsers import running_browser
from tools.site.pages import TABS, tabs

pytestmark = [pytest.mark.long, pytest.mark.one_engine, pytest.mark.later]
LINKING = {("a", "href"), ("form", "action")}
"""Everything else that names an address loads it."""


class Read(HTMLParser):
    """The addresses and anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.linked: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in {"id", "name"}:
                self.anchors.add(value or "")
            elif name in {"href", "src", "srcset", "poster", "data", "action"}:
                (self.linked if (tag, name) in LINKING else self.loaded).append(value or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the website once; a warning is a failure."""
    built = tmp_path_factory.mktemp("site")
    strict = ["--quiet", "--fail-on-warning", "--keep-going", "--conf-dir", "tools/site"]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "sphinx", *strict),
            *("--doctree-dir", str(built / "trees"), ".", str(built / "site")),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return built / "site"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Read]:
    return {path: Read(path) for path in site.rglob("*.html") if "_static" not in path.parts}


def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[Path, Read]) -> None:
    """No fonts, scripts, styles or pictures of a third party."""
    for path, page in pages.items():
        for address in page.loaded:
            if address.startswith("data:"):
                continue
            parts = urlsplit(address)
            assert not parts.scheme + parts.netloc, f"{path}: {address}"
            assert (path.parent / unquote(parts.path)).exists(), f"{path}: {address}"
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert not re.search(r"@import|url\(\s*['\"]?(https?:|//)", text), style


def test_every_link_inside_the_site_leads_somewhere(pages: dict[Path, Read]) -> None:
    """To an existing file, and to an anchor in it."""
    assert len(pages) > 70
    for path, page in pages.items():
        for address in page.linked:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_file(), f"{path}: {address}"
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].anchors, f"{path}: {address}"


def test_every_page_of_the_index_is_at_the_side(pages: dict[Path, Read], site: Path) -> None:
    """The sidebar of the first page, which a web server opens."""
    linked = set(pages[site / "index.html"].linked)
    guides = {f"docs/{path.stem}.html" for path in (ROOT / "docs").glob("*.md")}
    assert guides <= linked


def test_blocks_in_a_row_become_tabs() -> None:
    """Only those of one step in several languages."""
    step = "".join(f"```{language}\nx\n```\n\n" for language in ("bash", "python", "php"))
    made = tabs(f"Text\n\n{step}```json\n{{}}\n```\n")
    assert re.findall(r"^:::\{tab-item\} (.*)$", made, re.MULTILINE) == ["curl", "Python", "PHP"]
    for alone in (
        "```bash\nx\n```\n\n```json\n{}\n```\n",
        "```bash\nx\n```\n\nText\n\n```python\nx\n```\n",
        "```bash\nx\n```\n\n```bash\ny\n```\n",
    ):
        assert tabs(alone) == alone
    assert len(set(TABS.values())) == len(TABS)


@pytest.fixture
def windows() -> Iterator[Windows]:
    with running_browser() as browser:
        opened = Windows(browser)
        # A browser lets no script read the files of a folder: the search then shows no excerpts.
        opened.expect_trouble("file://|preload assets|ERR_FAILED|Failed to fetch")
        yield opened
        opened.close()


@pytest.mark.browser
@pytest.mark.npm
def test_a_folder_on_a_disk_is_enough_to_read_and_search(site: Path, windows: Windows) -> None:
    """Without a web server; with the keyboard alone, and in dark colours."""
    page = windows.open(color_scheme="dark")
    page.goto((site / "index.html").as_uri())
    assert_accessible(page)
    page.keyboard.press("/")
    page.keyboard.type("injunction")
    page.keyboard.press("Enter")
    expect(page.locator("#search-results a").first).to_be_visible()
    assert_accessible(page)
    page.goto((site / "docs" / "clients.html").as_uri())
    first = page.locator(".sd-tab-set").first
    first.locator("input").first.focus()
    expect(first.get_by_text("countersign_client").first).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(first.get_by_text("countersign-client").first).to_be_visible()
    expect(first.get_by_text("countersign_client").first).to_be_hidden()
    assert_accessible(page)
