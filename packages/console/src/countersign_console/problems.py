"""A refusal of the API in the words of the page: the field, in the reader's language."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from countersign_console.view import wordless

_PLACE: Final = re.compile(r" - at `\$\.?(\w*)[^`]*`\.?$")
"""The path of a wrong value, which ends every message about one."""


def in_words(code: str, message: str, words: Mapping[str, str]) -> str:
    """The text of a refusal on a page.

    A frequent code has words of its own. Otherwise the API's message is shown in English, marked as
    such on a page in another language; a path in JSON is replaced by the label of the field.
    """
    if own := words.get(f"problem_{code}"):
        return own
    text = _PLACE.sub(lambda place: f": {label(place[1], words)}." if place[1] else ".", message)
    return words["problem_other"].format(text=text)


def place_in(message: str) -> str:
    """The field of a refusal; "": it is about none."""
    found = _PLACE.search(message)
    return found[1] if found else ""


def label(field: str, words: Mapping[str, str]) -> str:
    """The label of a field."""
    return words.get(f"column_{field}") or words.get(field) or wordless(field)
