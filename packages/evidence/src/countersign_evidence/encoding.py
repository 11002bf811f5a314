"""How the C2SP formats write bytes, hashes and numbers: one way each, and no other is read.

The readers are those of `verify.py`: the format of evidence is written once.
"""

import re
from collections.abc import Callable
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from countersign_evidence.errors import EvidenceError
from countersign_evidence.offline import verify as rules

P = ParamSpec("P")
R = TypeVar("R")
_ESCAPED: Final = re.compile("[\udc80-\udcff]")
"""Bytes of names that are no UTF-8, as `verify.py` has them."""


class NotCheckable(EvidenceError):
    """The result depends on a part of a kind that cannot be checked here."""


def readable(text: str) -> str:
    """A text with names of any bytes, for people. Only the bytes distinguish two names."""
    return _ESCAPED.sub(lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", text)


def by_the_rules(read: Callable[P, R]) -> Callable[P, R]:
    """A reader or a check of `verify.py`, with the errors that this package lets out."""

    @wraps(read)
    def reading(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return read(*args, **kwargs)
        except rules.Bad as error:
            raise EvidenceError(readable(str(error))) from error
        except rules.NotCheckable as error:
            raise NotCheckable(readable(str(error))) from error

    return reading


strict_base64: Final = by_the_rules(rules.read_base64)
read_number: Final = by_the_rules(rules.read_number)
read_hash: Final = by_the_rules(rules.read_hash)


def read_text(data: bytes, what: str, encoding: str = "utf-8") -> str:
    """The text behind these bytes; `what` names the value and its encoding in the error."""
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise EvidenceError(what) from error
