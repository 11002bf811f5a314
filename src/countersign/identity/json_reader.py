"""Reading what a provider sent: no member is assumed to be there, or to have the expected type.

Each reader returns None (or something empty) for what is absent, null or empty, and raises
`Unreadable` for a value of the wrong form. Inside `facts_unknown` such a value counts as absent
instead: a birth date that a camera misread must not make a session unusable permanently.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, date, datetime
from typing import Any, Final, NoReturn, TypeAlias

Object: TypeAlias = Mapping[str, Any]
"""A JSON object."""

_DEPTH_MAX: Final = 32
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_unread: ContextVar[list[str] | None] = ContextVar("unread", default=None)


class Unreadable(Exception):
    """The body is not what the provider describes; the text names the member, and no value."""


@contextmanager
def facts_unknown() -> Iterator[list[str]]:
    """Within it, a member that cannot be read counts as absent; yields the names of those.

    For facts about a person, never for the session's identifier, mode or status.
    """
    names: list[str] = []
    before = _unread.set(names)
    try:
        yield names
    finally:
        _unread.reset(before)


def unreadable(name: str) -> None:
    """Note that a member is present and cannot be read.

    Raises:
        Unreadable: not within `facts_unknown`.
    """
    names = _unread.get()
    if names is None:
        raise Unreadable(name)
    if name not in names:
        names.append(name)


def parse(body: bytes) -> dict[str, Any]:
    """The JSON object of a body: UTF-8, no duplicate members, no NaN, at most 32 levels deep.

    Raises:
        Unreadable: it is none.
    """
    try:
        value = json.loads(
            body.decode("utf-8"), object_pairs_hook=_no_duplicates, parse_constant=_no_constant
        )
    except (ValueError, RecursionError):
        raise Unreadable("not JSON") from None
    if not isinstance(value, dict):
        raise Unreadable("not an object")
    if _depth(value, _DEPTH_MAX) <= 0:
        raise Unreadable("too deep")
    return value


def value(parts: Object, path: str) -> object:
    """The member at a path such as `data.object.id`, of any type.

    The following functions read one member of a certain type. Logs name it by `path`.
    """
    *outer, name = path.split(".")
    for depth, each in enumerate(outer, 1):
        parts = as_mapping(parts.get(each), ".".join(outer[:depth]))
    return parts.get(name)


def text(parts: Object, path: str) -> str | None:
    """A string."""
    return as_text(value(parts, path), path)


def flag(parts: Object, path: str) -> bool | None:
    """A truth value."""
    found = value(parts, path)
    if found is None or isinstance(found, bool):
        return found
    unreadable(path)
    return None


def mapping(parts: Object, path: str) -> Object:
    """An object."""
    return as_mapping(value(parts, path), path)


def sequence(parts: Object, path: str) -> Sequence[Any]:
    """An array."""
    found = value(parts, path)
    if isinstance(found, list):
        return found
    if found is not None:
        unreadable(path)
    return ()


def objects(parts: Object, path: str) -> list[Object]:
    """An array of objects."""
    return [as_mapping(item, path) for item in sequence(parts, path)]


def iso_date(parts: Object, path: str) -> date | None:
    """A date `1990-01-31`."""
    return as_date(value(parts, path), path)


def parts_date(parts: Object, path: str) -> date | None:
    """A date `{"year": 1990, "month": 1, "day": 31}`; absent if a part is null."""
    given = mapping(parts, path)
    numbers = [given.get(part) for part in ("year", "month", "day")]
    if None in numbers:
        return None
    try:
        if all(isinstance(n, int) and not isinstance(n, bool) for n in numbers):
            return date(*[int(n) for n in numbers if n is not None])
    except (ValueError, OverflowError):
        pass
    unreadable(path)
    return None


def instant(parts: Object, path: str) -> datetime | None:
    """A time of RFC 3339, or Unix seconds; in UTC."""
    found = value(parts, path)
    try:
        if isinstance(found, int) and not isinstance(found, bool):
            return datetime.fromtimestamp(found, UTC)
        written = as_text(found, path)
        if written is None:
            return None
        read = datetime.fromisoformat(written)
        return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        unreadable(path)
        return None


def texts(parts: Object, *same: str, **names: str) -> dict[str, str | None]:
    """Several strings, some under other names: `texts(parts, "city", line1="street")`."""
    return {
        ours: text(parts, theirs)
        for ours, theirs in {**dict(zip(same, same, strict=True)), **names}.items()
    }


def matching(parts: Object, path: str, pattern: re.Pattern[str]) -> str:
    """A string of a certain form.

    Raises:
        Unreadable: it has another one, or is absent.
    """
    found = word(value(parts, path), pattern)
    if found is None:
        raise Unreadable(path)
    return found


def word(found: object, pattern: re.Pattern[str]) -> str | None:
    """A value of a certain form; anything else could be a sentence with a name in it."""
    return found if isinstance(found, str) and pattern.fullmatch(found) else None


def as_text(found: object, label: str) -> str | None:
    """A value that has to be a string."""
    if found is None or found == "":
        return None
    if not isinstance(found, str) or not _is_unicode(found):
        unreadable(label)
        return None
    return found


def as_mapping(found: object, label: str) -> Object:
    """A value that has to be an object."""
    if isinstance(found, dict):
        return found
    if found is not None:
        unreadable(label)
    return {}


def as_date(found: object, label: str) -> date | None:
    """A value that has to be a date `1990-01-31`."""
    written = as_text(found, label)
    if written is None:
        return None
    try:
        if _DATE.fullmatch(written):
            return date.fromisoformat(written)
    except ValueError:
        pass
    unreadable(label)
    return None


def _is_unicode(value: str) -> bool:
    """Whether it has no half of a surrogate pair, which JSON can write and UTF-8 cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError
    return members


def _no_constant(_: str) -> NoReturn:
    raise ValueError


def _depth(value: object, left: int) -> int:
    """How many levels are left under the deepest member."""
    if left <= 0 or not isinstance(value, dict | list):
        return left
    members = value.values() if isinstance(value, dict) else value
    return min((_depth(member, left - 1) for member in members), default=left - 1)
