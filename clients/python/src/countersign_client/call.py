"""One request of the API, whichever client sends it, and how its response is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Generic, TypeAlias, TypeVar
from urllib.parse import quote
from uuid import uuid4

import msgspec

from countersign_client.failure import UnexpectedResponse

T = TypeVar("T")

Time: TypeAlias = datetime | str
"""A time with its zone, or its text, such as `2026-11-20T21:31:00Z`."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The response of an operation: read its fields by attribute. Unknown fields are ignored."""


class Page(Result, Generic[T], frozen=True, kw_only=True):
    """One page of a list; `next_cursor` is None on the last one."""

    data: tuple[T, ...]
    next_cursor: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Call(Generic[T]):
    """One request, whichever client sends it."""

    method: str
    path: str
    returns: type[T]
    query: Mapping[str, object] = field(default_factory=dict)
    headers: Mapping[str, str | None] = field(default_factory=dict)
    body: Mapping[str, object] | None = None
    repeatable: bool = True
    """Whether it may be sent again although the server may have acted on it."""
    revalidated: bool = False
    """Whether the last response is used again if the server says that it is current."""

    @property
    def target(self) -> str:
        """Path and query; what is None is left out."""
        given = {name: _sent(value) for name, value in self.query.items() if value is not None}
        query = "&".join(f"{name}={quote(str(value), safe=',')}" for name, value in given.items())
        return f"{self.path}?{query}" if query else self.path

    @property
    def content(self) -> bytes | None:
        """The body as it is sent; what is None is left out."""
        return None if self.body is None else msgspec.json.encode(_sent(self.body))

    def result(self, content: bytes) -> T:
        """Read a response.

        Raises msgspec.DecodeError if it is something else.
        """
        if self.returns is bytes:
            return content  # type: ignore[return-value]
        if self.returns is str:
            return content.decode()  # type: ignore[return-value]
        return msgspec.json.decode(content, type=self.returns)

    def following(self, cursor: str) -> Call[T]:
        """The same call for the page after this cursor.

        Raises UnexpectedResponse if that is the same page again: the list would never end.
        """
        if cursor == self.query.get("after"):
            raise UnexpectedResponse("The response is not one of this API: a page leads to itself")
        return replace(self, query={**self.query, "after": cursor})


def segment(value: str) -> str:
    """A value as one segment of a path; it never leads out of it.

    Raises ValueError if it is empty or consists of dots.
    """
    if not value.strip("."):
        raise ValueError(f"not an identifier: {value!r}")
    return quote(value, safe="")


def _sent(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"a time needs its zone: {value}")
        return value.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"
    if isinstance(value, Mapping):
        return {name: _sent(item) for name, item in value.items() if item is not None}
    return value


def key_or_new(idempotency_key: str | None) -> str:
    """The given key, or one for this call alone, so that the call can be sent again."""
    if idempotency_key is None:
        return str(uuid4())
    check_sendable("idempotency_key", idempotency_key)
    return idempotency_key


def check_sendable(name: str, value: str) -> None:
    """Raises ValueError if a value, which the error does not show, cannot be sent in a header."""
    if not re.fullmatch("[!-~]+", value):
        raise ValueError(f"{name} is empty, or has a character such as a space or a line break.")


def waiting(seconds: int | None) -> str | None:
    """The preference to wait for so long (RFC 7240)."""
    return None if seconds is None else f"wait={seconds}"
