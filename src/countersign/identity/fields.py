"""Which members of a provider's responses are known, so that new ones are noticed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias, TypeVar

_WORD: Final = re.compile(r"[^\s()]+|[()]")
T = TypeVar("T")
_Tree: TypeAlias = dict[str, "_Tree"]
"""By member; an empty tree knows everything below."""


class Fields:
    """The members that a response can have, read or deliberately ignored.

    Written as `id status address(city country)`; a name without parentheses includes everything
    below it, and `*` stands for every other member. The items of an array are described by the
    array's name.
    """

    def __init__(self, *descriptions: str) -> None:
        self._tree: _Tree = {}
        above = [self._tree]
        name = ""
        for word in _WORD.findall(" ".join(descriptions)):
            if word == "(":
                above.append(above[-1][name])
            elif word == ")":
                above.pop()
            else:
                name = word
                above[-1].setdefault(name, {})

    def unknown(self, value: object) -> int:
        """How many members of a response are not described."""
        return _unknown(self._tree, value)

    def paths(self) -> Iterator[str]:
        """The described members without children, as `address.city`."""
        return _paths(self._tree, "")

    def __contains__(self, path: str) -> bool:
        tree = self._tree
        for name in path.split("."):
            if name not in tree:
                return "*" in tree
            tree = tree[name]
            if not tree:
                return True
        return False


def listed(*lines: str) -> tuple[str, ...]:
    """The words of a table."""
    return tuple(" ".join(lines).split())


def by_word(words: Mapping[T, str]) -> dict[str, T]:
    """A table written by meaning, `{Reason.X: "code_1 code_2"}`, by word."""
    return {word: meaning for meaning, text in words.items() for word in text.split()}


def _unknown(known: Mapping[str, _Tree], value: object) -> int:
    if isinstance(value, list):
        return sum(_unknown(known, item) for item in value)
    if not isinstance(value, dict):
        return 0
    found = 0
    for name, member in value.items():
        if known.get(name):
            found += _unknown(known[name], member)
        elif name not in known and "*" not in known:
            found += 1
    return found


def _paths(tree: _Tree, above: str) -> Iterator[str]:
    for name, below in tree.items():
        if below:
            yield from _paths(below, f"{above}{name}.")
        else:
            yield f"{above}{name}"
