"""Pages of lists: `limit`, `after`, `next_cursor`."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from countersign.errors import InvalidRequest
from countersign.http.reply import Call
from countersign.http.schemas import Page

T = TypeVar("T")

LIMIT_DEFAULT: Final = 20
LIMIT_MAX: Final = 100


def read_limit(call: Call) -> int:
    """The `limit` of a list, 1 to 100.

    Raises:
        InvalidRequest: it is not such a number.
    """
    text = call.query.get("limit")
    if text is None:
        return LIMIT_DEFAULT
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and 1 <= int(text) <= LIMIT_MAX):
        msg = f"The query parameter limit must be a number from 1 to {LIMIT_MAX}."
        raise InvalidRequest(msg)
    return int(text)


def page_of(rows: Sequence[T], limit: int, cursor: Callable[[T], str]) -> Page[T]:
    """The first `limit` of these rows, and the cursor of the last one if there are more."""
    page = list(rows[:limit])
    return Page(data=page, next_cursor=cursor(page[-1]) if len(rows) > limit else None)
