"""Converts a page as a forge shows it to one of the website: tabs, and the contents at the side."""

from __future__ import annotations

import re
from itertools import groupby
from posixpath import normpath
from typing import Final

TABS: Final = {
    "bash": "curl",
    "python": "Python",
    "ts": "TypeScript",
    "js": "JavaScript",
    "php": "PHP",
}
"""Blocks of two or more of these languages in a row become tabs; a name is the label of its tab."""
_BLOCK: Final = rf"^```(?:{'|'.join(TABS)})\n(?:.*\n)*?```\n"
_ROW: Final = re.compile(rf"{_BLOCK}(?:\n{_BLOCK})+", re.MULTILINE)
_ENTRY: Final = re.compile(r"^## (?P<title>.+)|^- \[[^]]*\]\((?P<path>[^)#]+)\.md", re.MULTILINE)


def tabs(text: str) -> str:
    """Turn blocks of code that follow each other into tabs: the same step in each language."""

    def as_tabs(found: re.Match[str]) -> str:
        blocks = re.findall(_BLOCK, found[0], re.MULTILINE)
        names = [TABS[block[3 : block.index("\n")]] for block in blocks]
        if len(set(names)) != len(names):
            return found[0]
        items = (
            f":::{{tab-item}} {name}\n:sync: {name}\n\n{block}:::\n"
            for name, block in zip(names, blocks, strict=True)
        )
        return f"::::{{tab-set}}\n{''.join(items)}::::\n"

    return _ROW.sub(as_tabs, text)


def navigation(index: str) -> str:
    """The contents at the side: the groups and pages of the index, docs/README.md."""
    group, trees = "", [_tree("Guides", ["All guides <docs/README>"])]
    for is_title, found in groupby(_ENTRY.finditer(index), key=lambda entry: bool(entry["title"])):
        if is_title:
            group = [entry["title"] for entry in found][-1]
        else:
            trees.append(_tree(group, [normpath(f"docs/{entry['path']}") for entry in found]))
    project = ["CHANGELOG", "CONTRIBUTING", "SECURITY", "bench/README"]
    return "\n".join([*trees, _tree("Project", project)])


def _tree(caption: str, pages: list[str]) -> str:
    lines = [":hidden:", f":caption: {caption}", *pages]
    return "\n".join(["```{toctree}", *lines, "```", ""])
