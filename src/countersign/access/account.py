"""An account is one vendor."""

import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from countersign.errors import InvalidArgument

NAME_LENGTH_MAX: Final = 100
_ID_PREFIX: Final = "acct"
_PRINTABLE: Final = re.compile(r"[^\s\x00-\x1f\x7f-\x9f\ud800-\udfff]", re.UNICODE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One vendor of this deployment."""

    id: str
    name: str
    created_at: datetime


def checked_account_name(name: str) -> str:
    """The name without white space around it.

    Raises:
        InvalidArgument: it is empty, too long, unprintable, or looks like an account id.
    """
    stripped = name.strip()
    if not 0 < len(stripped) <= NAME_LENGTH_MAX:
        msg = f"An account name must have 1 to {NAME_LENGTH_MAX} characters."
        raise InvalidArgument(msg)
    if not all(c == " " or _PRINTABLE.match(c) for c in stripped):
        msg = "An account name must not contain control characters or line breaks."
        raise InvalidArgument(msg)
    if unicodedata.normalize("NFKC", stripped) != stripped or any(
        unicodedata.category(character) == "Cf" for character in stripped
    ):
        msg = "An account name must not contain invisible or look-alike (compatibility) characters."
        raise InvalidArgument(msg)
    if stripped.startswith(_ID_PREFIX + "_"):
        msg = f"An account name must not start with {_ID_PREFIX}_: account ids start like that."
        raise InvalidArgument(msg)
    return stripped
