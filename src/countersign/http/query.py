"""Strict reading of query strings: each parameter once, and of the type that documents it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from functools import cache
from typing import Any, Final, TypeVar, get_args, get_type_hints
from urllib.parse import parse_qsl

import msgspec

from countersign.errors import InvalidRequest
from countersign.http.mistakes import TIME_EXPECTED, mistake_in
from countersign.http.schemas import Request
from countersign.instant import parse_rfc3339

Q = TypeVar("Q", bound=Request)

_DIGITS_MAX: Final = 9


def read_query(query_string: bytes, kind: type[Q] | None) -> Q | None:
    """The query as this type; None: there may be no parameters.

    Raises:
        InvalidRequest: a parameter is unknown, repeated, badly encoded or not valid.
    """
    if kind is None:
        parse_query(query_string, ())
        return None
    fields = _fields(kind)
    values: dict[str, object] = {}
    for name, text in parse_query(query_string, fields).items():
        read, schema = fields[name]
        try:
            values[name] = msgspec.convert(read(text), schema)
        except ValueError as error:
            what = (
                mistake_in(error, schema) if isinstance(error, msgspec.ValidationError) else error
            )
            msg = f"{what} - at the query parameter {name}."
            raise InvalidRequest(msg) from None
    return kind(**values)


def parse_query(query_string: bytes, allowed: Collection[str]) -> dict[str, str]:
    """The texts of the query parameters by name.

    Raises:
        InvalidRequest: one is unknown, repeated, or not UTF-8 without U+0000.
    """
    if not query_string:
        return {}
    try:
        pairs = parse_qsl(
            query_string.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            encoding="utf-8",
            errors="strict",
            max_num_fields=50,
        )
    except ValueError:
        msg = "The query string is not well formed."
        raise InvalidRequest(msg) from None
    query: dict[str, str] = {}
    for name, value in pairs:
        if name not in allowed:
            known = ", ".join(allowed) or "none"
            msg = f"Unknown query parameter {name[:64]!a}. Allowed: {known}."
            raise InvalidRequest(msg)
        if name in query:
            msg = f"The query parameter {name} was sent twice."
            raise InvalidRequest(msg)
        if "\x00" in value:
            msg = f"The query parameter {name} contains U+0000, which is not accepted."
            raise InvalidRequest(msg)
        query[name] = value
    return query


@cache
def _fields(kind: type[Request]) -> Mapping[str, tuple[Callable[[str], object], Any]]:
    """By name: how a parameter's text is read, and the type that it must then have."""
    plain = get_type_hints(kind)
    return {
        field.name: (_reader(plain[field.name]), field.type)
        for field in msgspec.structs.fields(kind)
    }


def _reader(kind: Any) -> Callable[[str], object]:  # noqa: ANN401 - any annotation
    # msgspec could read these texts too, but takes others besides: `null`, `2026-11-20 00:00:00Z`.
    kinds = {kind, *get_args(kind)}
    if datetime in kinds:
        return _time
    return _integer if int in kinds else str


def _integer(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX):
        msg = "Expected an integer"
        raise ValueError(msg)
    return int(text)


def _time(text: str) -> datetime:
    try:
        return parse_rfc3339(text)
    except ValueError:
        raise ValueError(TIME_EXPECTED) from None
