"""Pages of lists: `limit`, `after`, `next_cursor`."""

from collections.abc import Callable, Sequence
from typing import Annotated, Final, Generic, TypeVar

from msgspec import Meta, Struct

from countersign.base.http.schemas import STORABLE, Request, in_full
from countersign.base.ids import id_pattern

T = TypeVar("T")
After = TypeVar("After", bound=str)
"""The `after` of one list: `Annotated[str, cursor(…)]`."""

LIMIT_MAX: Final = 100
LIMIT_DEFAULT: Final = 20
Limit = Annotated[
    int,
    Meta(ge=1, le=LIMIT_MAX, description="The maximum number of items.", examples=[LIMIT_DEFAULT]),
]


class Page(Struct, Generic[T], frozen=True, kw_only=True):
    """A page of a list. Send `next_cursor` as `after` for the next page; null: the last page."""

    data: list[T]
    next_cursor: str | None


class Listing(Request, Generic[After], frozen=True, kw_only=True):
    """The query of a list; a subclass adds what selects its items."""

    limit: Limit = LIMIT_DEFAULT
    after: After | None = None


def cursor(what: str, example: str) -> Meta:
    """The `after` of a list: an identifier with the prefix of the example, or any text."""
    prefix, is_id, _ = example.rpartition("_")
    return Meta(
        description=f"The `next_cursor` of the previous page: {what}.",
        examples=[example],
        pattern=in_full(id_pattern(prefix)) if is_id else None,
        extra_json_schema=STORABLE,
    )


def page_of(rows: Sequence[T], limit: int, cursor_of: Callable[[T], str]) -> Page[T]:
    """The first `limit` of these rows, and the cursor of the last one if there are more."""
    page = list(rows[:limit])
    return Page(data=page, next_cursor=cursor_of(page[-1]) if len(rows) > limit else None)
