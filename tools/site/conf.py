"""The pages of this repository as a website: `make site`. Sphinx reads this file.

The pages stay plain Markdown, as a forge shows them. The additions of the website are here.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

from tools.site.pages import navigation, tabs

HERE: Final = Path(__file__).parent

project = "Countersign"
extensions = ["myst_parser", "sphinx_design"]
root_doc = "README"
include_patterns = ["*.md", "docs/**.md", "spec/*.md", "bench/README.md"]
# Not searched for pages.
exclude_patterns = [".*", "build", "dist", "var", "**/node_modules", "src", "tests", "web"]

smartquotes = False
myst_heading_anchors = 6
# The tabs; and `<img>` of the README, a picture like the others.
myst_enable_extensions = ["colon_fence", "html_image"]

html_theme = "furo"
html_title = "Countersign"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_search_scorer = str(HERE / "scorer.js")
html_copy_source = False
html_show_copyright = False
html_use_index = False


def read(_app: Sphinx, page: str, source: list[str]) -> None:
    """Add the website's own parts to a page."""
    source[0] = tabs(source[0])
    if page == root_doc:
        index = HERE.parents[1] / "docs" / "README.md"
        source[0] += "\n" + navigation(index.read_text(encoding="utf-8"))
    elif page.startswith("docs/decisions/") and not page.endswith("/README"):
        # Their index leads to the chapters; the side of every page has the index alone.
        source[0] = f"---\norphan: true\n---\n{source[0]}"


def adjust(_app: Sphinx, _page: str, _name: str, context: dict[str, str], _tree: object) -> None:
    """Make scrollable parts reachable from the keyboard, and set the levels of headings."""
    body = context.get("body", "").replace("<pre>", '<pre tabindex="0">')
    context["body"] = body.replace('class="table-wrapper', 'tabindex="0" class="table-wrapper')
    contents = context["furo_navigation_tree"].replace('"heading">', '"heading" aria-level="2">')
    context["furo_navigation_tree"] = contents


def finish(app: Sphinx, error: Exception | None) -> None:
    """Add the start page for web servers and folders, and remove internal files."""
    if error is None:
        for page in app.outdir.rglob("README.html"):
            shutil.copyfile(page, page.with_name("index.html"))
        (app.outdir / ".buildinfo").unlink(missing_ok=True)


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    # Forges draw these diagrams; here they are shown as text.
    app.add_lexer("mermaid", TextLexer)
    app.connect("source-read", read)
    # After the theme, which makes the contents.
    app.connect("html-page-context", adjust, priority=900)
    app.connect("build-finished", finish)
