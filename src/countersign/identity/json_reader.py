"""Reading provider responses: no member is assumed to exist, or to have the expected type.

Each reader returns None (or something empty) for an absent, null or empty value, and raises
`Unreadable` for a value of the wrong form. Inside `facts_unknown` such a value counts as absent
instead: a birth date that a camera misread must not make a session unusable permanently.
"""

from __future__ import annotations

import json
import re
import tomllib
from calendar import monthrange
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

from countersign.base.generics import T
from countersign.base.values import Reason
from countersign.identity.model import Finding, Tri

Object: TypeAlias = Mapping[str, Any]
"""A JSON object."""

_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_PARTS: Final = ("year", "month", "day")
EARLIEST: Final = datetime.min.replace(tzinfo=UTC)
"""In the place of a time that is not known."""
_LAST_DAY: Final = re.compile(r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2})([T ]\S+)?)?)?", re.ASCII)
_COMPACT: Final = re.compile(r"((?:19|20)[0-9]{2})([0-9]{2})([0-9]{2})", re.ASCII)
"""Read in any other order, its year would be before 1900."""
_WRITTEN: Final = re.compile(r"([0-9]{1,2})[ -]([A-Z]{3})[ -]([0-9]{4})", re.ASCII)
_MONTHS: Final = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC"
_HALF: Final = re.compile(r"[\ud800-\udfff]")
"""Half of a surrogate pair: JSON can write it, UTF-8 cannot."""
_unread: ContextVar[list[str] | None] = ContextVar("unread", default=None)


class Expiry(NamedTuple):
    """When a document expires."""

    on: date | None
    unread: bool
    """Whether the document says so in a form that cannot be read."""


class Unreadable(Exception):
    """The body is not as the provider documents; the text names the member, and no value."""


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
    if _is_deep(value):
        raise Unreadable("too deep")
    return value


def parsed(body: bytes) -> dict[str, Any] | None:
    """The same; None if it is not valid."""
    with suppress(Unreadable):
        return parse(body)
    return None


def value(parts: Object, path: str) -> object:
    """The member at a path such as `data.object.id`, of any type.

    The following functions read one member of a certain type. Logs name it by `path`.
    """
    *outer, name = path.split(".")
    for depth, each in enumerate(outer, 1):
        inner = parts.get(each)
        if not isinstance(inner, dict):
            if inner is not None:
                unreadable(".".join(outer[:depth]))
            return None
        parts = inner
    return parts.get(name)


def text(parts: Object, path: str) -> str | None:
    """A string."""
    return as_text(value(parts, path), path)


def flag(parts: Object, path: str) -> bool | None:
    """A truth value."""
    return _typed(value(parts, path), bool, path)


def mapping(parts: Object, path: str) -> Object:
    """An object."""
    return as_mapping(value(parts, path), path)


def objects(parts: Object, path: str) -> list[Object]:
    """An array of objects."""
    return [as_mapping(item, path) for item in sequence(parts, path)]


def sequence(parts: Object, path: str) -> Sequence[Any]:
    """An array."""
    return _typed(value(parts, path), list, path) or ()


def iso_date(parts: Object, path: str) -> date | None:
    """A date `1990-01-31`."""
    return as_date(value(parts, path), path)


def parts_date(parts: Object, path: str) -> date | None:
    """A date `{"year": 1990, "month": 1, "day": 31}`; absent if a part is null."""
    given = mapping(parts, path)
    year, month, day = given.get("year"), given.get("month"), given.get("day")
    if year is None or month is None or day is None:
        return None
    with suppress(ValueError, OverflowError):
        if {type(year), type(month), type(day)} == {int}:
            return date(year, month, day)
    unreadable(path)
    return None


def expiry(parts: Object, path: str) -> Expiry:
    """The last day of a document: see `as_expiry`."""
    outer = path.rpartition(".")[0]
    if outer and not isinstance(value(parts, outer), dict | None):
        unreadable(outer)
        return Expiry(None, unread=True)
    return as_expiry(value(parts, path), path)


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
    paths = dict(zip(same, same, strict=True)) | names
    return {ours: text(parts, theirs) for ours, theirs in paths.items()}


def matching(parts: Object, path: str, pattern: re.Pattern[str]) -> str:
    """A string of a certain form.

    Raises:
        Unreadable: it has another one, or is absent.
    """
    found = word(value(parts, path), pattern)
    if found is None:
        raise Unreadable(path)
    return found


def expect(parts: Object, path: str, wanted: str | bool) -> None:  # noqa: FBT001 - a value
    """Go on only if a member has exactly this value.

    Raises:
        Unreadable: it has another one, or is absent.
    """
    found = value(parts, path)
    if type(found) is not type(wanted) or found != wanted:
        raise Unreadable(path)


def word(found: object, pattern: re.Pattern[str]) -> str | None:
    """A value of a certain form; anything else could be a sentence with a name in it."""
    return found if isinstance(found, str) and pattern.fullmatch(found) else None


def as_text(found: object, label: str) -> str | None:
    """A value that must be a string."""
    text = _typed(found, str, label)
    if text and _HALF.search(text):
        unreadable(label)
        return None
    return text or None


def as_mapping(found: object, label: str) -> Object:
    """A value that must be an object."""
    return _typed(found, dict, label) or {}


def as_date(found: object, label: str) -> date | None:
    """A value that must be a date `1990-01-31`."""
    written = as_text(found, label)
    if written is None:
        return None
    with suppress(ValueError):
        if _DATE.fullmatch(written):
            return date.fromisoformat(written)
    unreadable(label)
    return None


def as_expiry(found: object, label: str) -> Expiry:
    """A value that must be the last day of a document.

    Unambiguous forms are read: `2030-01-31`, `2030-1-31`, `20300131`, `31 JAN 2030`, a date-time by
    its date, a month or a year (as text, or as an object whose `day`, or `day` and `month`, are
    null) by its last day. A document that never expires has the last day of all.
    """
    if found is None or found in ("", {}):
        return Expiry(None, unread=False)
    try:
        return Expiry(_last_day(found), unread=False)
    except (ValueError, OverflowError):
        unreadable(label)
        return Expiry(None, unread=True)


def _last_day(found: object) -> date | None:
    """The last day that a document is valid on; ValueError if it is not a day."""
    given: list[Any] = [None]
    if isinstance(found, str):
        said = found.strip(" ").upper()
        if said in {"INDEF", "INDEFINITE", "NEVER", "PERMANENT"}:
            return date.max
        if written := _WRITTEN.fullmatch(said):
            given = [int(written[3]), _MONTHS.index(written[2]) // 4 + 1, int(written[1])]
        elif written := _COMPACT.fullmatch(said) or _LAST_DAY.fullmatch(said):
            if written.re is _LAST_DAY and written[4]:
                datetime.fromisoformat(said)
            given = [part and int(part) for part in written.groups()[:3]]
    elif isinstance(found, dict) and found.keys() <= {*_PARTS}:
        given = [found.get(part) for part in _PARTS]
        if given == [None, None, None]:
            return None
    if given[0] is None or not {type(part) for part in given} <= {int, type(None)}:
        raise ValueError
    year, month, day = given
    if month is None:
        return date(year, 12, 31)
    return date(year, month, monthrange(year, month)[1] if day is None else day)


def _typed(found: object, kind: type[T], label: str) -> T | None:
    """A value of this type; None if it is absent."""
    if found is None or isinstance(found, kind):
        return found
    unreadable(label)
    return None


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError
    return members


def _no_constant(_: str) -> NoReturn:
    raise ValueError


def _is_deep(value: object) -> bool:
    """Whether there are members below the deepest level."""
    level = [value]
    for _ in range(32):
        below: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                below += each.values()
            elif isinstance(each, list):
                below += each
        if not below:
            return False
        level = below
    return True


# Tables of a provider's words, and of the members of its responses.

_WORD: Final = re.compile(r"[^\s()]+|[()]")


class Fields:
    """The members that a response can have, read or deliberately ignored.

    Written as `id status address(city country)`; a name without parentheses includes everything
    below it, and `*` stands for every other member. The items of an array are described by the
    array's name.
    """

    def __init__(self, *descriptions: str) -> None:
        self.tree: dict[str, Fields] = {}
        """By member; an empty one knows everything below."""
        above, name = [self], ""
        for word in _WORD.findall(" ".join(descriptions)):
            if word == "(":
                above.append(above[-1].tree[name])
            elif word == ")":
                above.pop()
            else:
                name = word
                above[-1].tree.setdefault(name, Fields())

    def unknown(self, value: object) -> int:
        """How many members of a response are not described."""
        if isinstance(value, list):
            return sum(map(self.unknown, value))
        found = 0
        for name, member in value.items() if isinstance(value, dict) else ():
            below = self.tree.get(name)
            if below is None:
                found += "*" not in self.tree
            elif below.tree:
                found += below.unknown(member)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The meaning of a provider's words."""

    outcomes: Mapping[str, Finding]
    """The outcome by its status; any other status is invalid."""
    reasons: Mapping[str, Reason]
    """Its reasons that a buyer can act on."""
    verdicts: Mapping[str, Tri]
    """Of its checks."""
    error_codes: frozenset[str]
    """Its published error codes, which can be logged."""
    fields: Fields
    """The members of its response about a session."""
    further_fields: Fields
    """The members of further responses."""
    lists: Mapping[str, tuple[str, ...]]
    """Any others, as the file describes them."""


def words_of(module: str) -> Words:
    """The words in the file `NAME.toml` next to the adapter, whose own file `module` is."""
    tables = tomllib.loads(Path(module).with_suffix(".toml").read_text(encoding="utf-8"))
    return Words(
        outcomes=_meanings(tables["outcomes"], Finding),
        reasons=_meanings(tables.get("reasons", {}), Reason),
        verdicts=_meanings(tables.get("verdicts", {}), Tri),
        error_codes=frozenset(tables.get("error_codes", ())),
        fields=Fields(*tables.get("fields", ())),
        further_fields=Fields(*tables.get("further_fields", ())),
        lists={name: tuple(words) for name, words in tables.get("lists", {}).items()},
    )


def _meanings(table: Mapping[str, Sequence[str]], kind: Callable[[str], T]) -> dict[str, T]:
    return {word: kind(meaning) for meaning, words in table.items() for word in words}


def listed(*lines: str) -> tuple[str, ...]:
    """The words of a table."""
    return tuple(" ".join(lines).split())


def by_word(words: Mapping[T, str]) -> dict[str, T]:
    """A table written by meaning, `{Reason.X: "code_1 code_2"}`, by word."""
    return {word: meaning for meaning, text in words.items() for word in text.split()}
