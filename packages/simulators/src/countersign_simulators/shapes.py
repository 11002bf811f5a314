"""Judges a JSON body by the members that a provider's page describes.

Stricter than most providers: an unknown member is a problem too, so that a misspelt one is noticed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final, Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from countersign_simulators.base import Request

Check: TypeAlias = Callable[[object], bool]
"""Whether a value is as described."""
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True, slots=True)
class Shape:
    """The allowed members of an object."""

    members: Mapping[str, Check | Shape]
    required: frozenset[str] = frozenset()


class Problem(NamedTuple):
    """One thing that is wrong with a body."""

    path: str
    """Dotted; empty for the body itself."""
    kind: Literal["missing", "unknown", "invalid"]


def json_body(request: Request) -> Any:  # noqa: ANN401 - any JSON
    """The body of a JSON request; None if it is not one, or not readable."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        return None
    try:
        body = json.loads(request.body, parse_constant=_refused)
        # Text that cannot be encoded, such as half a surrogate pair, is not readable either.
        json.dumps(body, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return body


def _refused(word: str) -> None:
    raise ValueError(word)


def problems(value: object, shape: Shape, path: str = "") -> Iterator[Problem]:
    """Everything that is wrong with a value, in the order of the shape."""
    if not isinstance(value, Mapping):
        yield Problem(path, "invalid")
        return
    prefix = f"{path}." if path else ""
    for name, wanted in shape.members.items():
        if name not in value:
            if name in shape.required:
                yield Problem(prefix + name, "missing")
        elif isinstance(wanted, Shape):
            yield from problems(value[name], wanted, prefix + name)
        elif not wanted(value[name]):
            yield Problem(prefix + name, "invalid")
    for name in value:
        if name not in shape.members:
            yield Problem(f"{prefix}{name}", "unknown")


def by_field(
    value: object, shape: Shape, words: Mapping[str, str], *, whole: str
) -> dict[str, list[str]]:
    """Errors in a body, by the path of the member, with the text for each kind of problem.

    `whole` stands for the body itself.
    """
    return {each.path or whole: [words[each.kind]] for each in problems(value, shape)}


def each(names: str, check: Check) -> dict[str, Check]:
    """Several members, their names separated by spaces, of one kind."""
    return dict.fromkeys(names.split(), check)


def text(longest: int | None = None, *, pattern: str = r"[\s\S]*") -> Check:
    """A string of at most `most` characters, which matches the pattern as a whole."""
    compiled = re.compile(pattern)
    return lambda value: (
        isinstance(value, str)
        and (longest is None or len(value) <= longest)
        and compiled.fullmatch(value) is not None
    )


def one_of(*words: str) -> Check:
    """One of these strings."""
    return lambda value: isinstance(value, str) and value in words


def listed(inner: Check | Shape, longest: int | None = None) -> Check:
    """An array of at most so many such values."""

    def fits(value: object) -> bool:
        return not any(problems(value, inner)) if isinstance(inner, Shape) else inner(value)

    return lambda value: (
        isinstance(value, list)
        and (longest is None or len(value) <= longest)
        and all(fits(each) for each in value)
    )


def nullable(inner: Check) -> Check:
    """Such a value, or null."""
    return lambda value: value is None or inner(value)


def is_uuid(value: object) -> bool:
    """A UUID of any version."""
    return isinstance(value, str) and _UUID.fullmatch(value) is not None


def is_flag(value: object) -> bool:
    """True or false."""
    return isinstance(value, bool)


def is_object(value: object) -> bool:
    """An object with any members."""
    return isinstance(value, dict)


def is_day(value: object) -> bool:
    """A date (RFC 3339)."""
    try:
        return isinstance(value, str) and date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def is_time(value: object) -> bool:
    """A date and time with a zone (RFC 3339)."""
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def is_url(value: object) -> bool:
    """An absolute URL of any scheme."""
    if not isinstance(value, str) or re.search(r"[\s\x00-\x1f]", value):
        return False
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return bool(parts.scheme and (parts.netloc or parts.path))


def is_safe_url(value: object) -> bool:
    """An HTTPS URL, or one on this very machine: a rehearsal has no certificate."""
    if not is_url(value):
        return False
    parts = urlsplit(str(value))
    local = parts.scheme == "http" and parts.hostname in _LOOPBACK
    return local or (parts.scheme == "https" and bool(parts.hostname))
