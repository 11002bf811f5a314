"""Reading our own Markdown: fenced blocks, headings and links."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"```(\w*)\s*\Z")
_HEADING = re.compile(r"(#{1,6}) (.+?)\s*\Z")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"`[^`]*`")
_LEFT_OUT = {"var", "node_modules", "build", "dist"}


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block: its language, text, place, and heading."""

    page: Path
    line: int
    language: str
    text: str
    section: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@dataclass(frozen=True, kw_only=True)
class Page:
    """A Markdown file, taken apart."""

    path: Path
    blocks: tuple[Block, ...]
    anchors: frozenset[str]
    prose: str
    """The text without its fenced blocks."""

    @property
    def links(self) -> list[str]:
        """Where the links of the prose lead."""
        return _LINK.findall(_CODE.sub("", self.prose))

    def rows(self, section: str) -> list[list[str]]:
        """The body rows of the tables under a heading, as cells."""
        _, _, rest = self.prose.partition(f"\n{section}\n")
        assert rest, f"{self.path} has no heading {section!r}"
        own = re.split(r"\n#", rest, maxsplit=1)[0]
        lines = [line for line in own.splitlines() if line.startswith("|")]
        cells = [[c.strip() for c in line.strip("|").split("|")] for line in lines]
        rules = [n for n, row in enumerate(cells) if all(set(c) <= {"-", " "} for c in row)]
        heads = {n - 1 for n in rules} | set(rules)
        return [row for n, row in enumerate(cells) if n not in heads]


def read(path: Path) -> Page:
    """Take a Markdown file apart."""
    blocks: list[Block] = []
    prose: list[str] = []
    seen: Counter[str] = Counter()
    anchors: set[str] = set()
    language: str | None = None
    start, section, inside = 0, "", list[str]()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        fence = _FENCE.match(line)
        if language is not None:
            if line == "```":
                text = "\n".join(inside) + "\n"
                blocks.append(
                    Block(page=path, line=start, language=language, text=text, section=section)
                )
                language = None
            else:
                inside.append(line)
        elif fence:
            language, start, inside = fence[1], number, []
        else:
            prose.append(line)
            if heading := _HEADING.match(line):
                section = heading[2]
                slug = _slug(section)
                anchors.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
                seen[slug] += 1
    assert language is None, f"{path}:{start}: this block has no end"
    return Page(path=path, blocks=tuple(blocks), anchors=frozenset(anchors), prose="\n".join(prose))


@cache
def every_page() -> tuple[Path, ...]:
    """Every Markdown file of the repository."""
    return tuple(sorted(_pages_in(ROOT)))


def _pages_in(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name.startswith(".") or path.name in _LEFT_OUT:
            continue
        if path.is_dir():
            yield from _pages_in(path)
        elif path.suffix == ".md":
            yield path


def _slug(heading: str) -> str:
    """The anchor that common Markdown sites make of a heading."""
    kept = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
    return kept.replace(" ", "-")
