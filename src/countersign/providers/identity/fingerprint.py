"""A keyed fingerprint of an identity document: the same document, the same buyer."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Final, TypeAlias

Fingerprint: TypeAlias = Callable[[str, str, str], bytes | None]
"""From issuer, type and number of a document to 32 bytes; None if the number tells nobody apart.

The number goes no further than this call. Without the deployment's key nobody can try numbers.
"""


_LENGTH_MIN: Final = 5
_MASKS: Final = frozenset("*•●·…#[]?_")


def tells_apart(number: str) -> bool:
    """Whether a number as the provider gives it can belong to one document only.

    A masked one (`*****1234`), a remnant or a row of zeros would make one buyer of many.
    """
    kept = normal(number)
    if not _MASKS.isdisjoint(number) or len(kept) < _LENGTH_MIN or len(set(kept)) < 2:
        return False
    return not kept.startswith("XXX")


def normal(text: str) -> str:
    """The text as documents are compared: letters and digits only, compatible forms folded.

    `d 123-4567` and `D1234567` are one number.
    """
    folded = unicodedata.normalize("NFKC", text).upper()
    return "".join(char for char in folded if char.isalnum())
