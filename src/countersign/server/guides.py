"""The guides of docs/ as pages of the service: rendered from Markdown, and listed for the search.

The index, docs/README.md, lists the guides: its headings are the groups, its links the pages. A
wheel carries the files; a checkout reads its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import attrgetter
from pathlib import Path
from posixpath import join, normpath
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

_PACKAGED: Final = Path(__file__).parent / "guide_files"
_CHECKOUT: Final = Path(__file__).parents[3]
_INDEX: Final = "docs/README.md"
_FOLDED: Final = {"python": "Python", "ts": "TypeScript", "js": "JavaScript", "php": "PHP"}
_GUIDE: Final = re.compile(r"(docs|docs/start|spec)/[a-z-]+\.md\Z")


@dataclass(frozen=True, slots=True)
class Section:
    """A heading of a guide with the text below it, as plain text."""

    anchor: str
    title: str
    level: int
    text: str
    code: str
    """The content of code blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guide:
    """One page: `path` is where it is served, `html` its content."""

    path: str
    group: str
    """The heading in the index that it stands below; of the index itself, nothing."""
    title: str
    html: Markup
    sections: tuple[Section, ...]


def read_guides() -> tuple[Guide, ...]:
    """The index, and then every guide that it links to, in its order."""
    sources = {_INDEX: "", **_linked()}
    served = {source: _served_at(source) for source in sources}
    return tuple(_render(source, group, served) for source, group in sources.items())


def grouped(guides: Sequence[Guide]) -> dict[str, list[Guide]]:
    """The guides by their group, without the index."""
    return {group: list(own) for group, own in groupby(guides[1:], attrgetter("group"))}


def images() -> dict[str, bytes]:
    """The PNG pictures of the guides, by the path where each is served."""
    folder = packaged("docs/images")
    return {f"/docs/images/{image.name}": image.read_bytes() for image in folder.rglob("*.png")}


def search_index(guides: Sequence[Guide]) -> list[dict[str, str]]:
    """The search index: one entry per section, with its address."""
    return [
        {
            "url": f"{guide.path}#{section.anchor}",
            "page": guide.title,
            "title": section.title,
            "text": section.text,
            "code": section.code,
        }
        for guide in guides[1:]
        for section in guide.sections
    ]


def packaged(source: str) -> Path:
    """A file of docs/ or spec/ that the service serves."""
    return (_PACKAGED if _PACKAGED.is_dir() else _CHECKOUT) / source


def _served_at(source: str) -> str:
    return "/docs" if source == _INDEX else f"/docs/{source.partition('/')[2].removesuffix('.md')}"


def _linked() -> dict[str, str]:
    """The files that the index links to, each with the heading above it."""
    tokens = _MARKDOWN.parse(packaged(_INDEX).read_text(encoding="utf-8"))
    linked: dict[str, str] = {}
    group = ""
    for before, token in pairwise(tokens):
        if before.type == "heading_open":
            group = token.content
        for child in token.children or ():
            if child.type == "link_open":
                linked.setdefault(_resolve(_INDEX, str(child.attrs["href"])), group)
    return {path: group for path, group in linked.items() if _GUIDE.match(path)}


def _resolve(source: str, href: str) -> str:
    """The target file of a relative link, from the root of the repository."""
    return normpath(
        join(Path(source).parent.as_posix(), href.partition("#")[0] or Path(source).name)
    )


def _render(source: str, group: str, served: dict[str, str]) -> Guide:
    tokens = _MARKDOWN.parse(packaged(source).read_text(encoding="utf-8"))
    for token in tokens:
        for child in token.children or ():
            _point(child, source, served)
        _drop_dead_links(token)
    sections = tuple(_sections(tokens))
    html = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})
    return Guide(
        path=served[source],
        group=group,
        title=sections[0].title,
        html=Markup(html),  # noqa: S704 - from our own files, in which HTML is escaped
        sections=sections,
    )


def _point(child: Token, source: str, served: dict[str, str]) -> None:
    """Turn a relative link into one to the served page; unlink targets that are not served."""
    if child.type == "image":
        child.attrs["src"] = f"/docs/images/{Path(str(child.attrs['src'])).name}"
        child.attrs["loading"] = "lazy"
    if child.type != "link_open":
        return
    href = str(child.attrs["href"])
    if re.match(r"[a-z]+:|/|#", href):
        return
    path, _, anchor = href.partition("#")
    target = served.get(_resolve(source, path))
    child.attrs["href"] = f"{target}#{anchor}" if target and anchor else target or ""


def _drop_dead_links(token: Token) -> None:
    kept: list[Token] = []
    dead = False
    for child in token.children or ():
        if child.type == "link_open" and not child.attrs["href"]:
            dead = True
        elif child.type == "link_close" and dead:
            dead = False
        else:
            kept.append(child)
    if token.children:
        token.children = kept


def _sections(tokens: Sequence[Token]) -> Iterator[Section]:
    """Give every heading an id, as common Markdown sites do, and collect the text below it."""
    seen: Counter[str] = Counter()
    heading: Token | None = None
    title, anchor, text, code = "", "", list[str](), list[str]()
    for token in tokens:
        if token.type == "heading_open":
            if heading is not None:
                yield Section(anchor, title, int(heading.tag[1:]), " ".join(text), " ".join(code))
            heading, title, text, code = token, "", [], []
        elif token.type == "inline" and heading is not None and not title:
            title = _plain(token)
            slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            anchor = f"{slug}-{seen[slug]}" if seen[slug] else slug
            seen[slug] += 1
            heading.attrs["id"] = anchor
        elif token.type == "inline":
            text.append(_plain(token))
        elif token.type in {"fence", "code_block"}:
            code.append(token.content)
    if heading is not None:
        yield Section(anchor, title, int(heading.tag[1:]), " ".join(text), " ".join(code))


def _plain(token: Token) -> str:
    return "".join(
        " " if child.type == "softbreak" else child.content for child in token.children or ()
    )


def _markdown() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    # Elements that scroll sideways are focusable by keyboard.
    parser.add_render_rule("fence", _fence)
    parser.add_render_rule("table_open", lambda *_: '<div class="wide" tabindex="0"><table>\n')
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    return parser


def _fence(_self: Any, tokens: Sequence[Token], index: int, *_: object) -> str:  # noqa: ANN401
    block, before = tokens[index], tokens[max(index - 1, 0)]
    code = Markup('<pre tabindex="0"><code>{}</code></pre>\n').format(block.content)
    # The same step in another language is folded.
    if before.type == "fence" and before.info in {"bash", *_FOLDED} and block.info in _FOLDED:
        folded = Markup("<details><summary>{}</summary>\n{}</details>\n")
        code = folded.format(_FOLDED[block.info], code)
    return str(code)


_MARKDOWN: Final = _markdown()
