"""Canonical JSON: the bytes that are hashed and kept.

Sorted keys, no white space, UTF-8, and only strings, integers below 2^53 in magnitude, booleans
and null. On such values the output equals RFC 8785 (JCS). Floats are refused because they are
where implementations differ.
"""

from typing import Any, Final, TypeAlias

import msgspec

from countersign_evidence.errors import EvidenceError

Json: TypeAlias = "str | int | bool | list[Json] | dict[str, Json] | None"

DEPTH_MAX: Final = 64
"""How deep arrays and objects may stand in each other; readers differ on how much they can take."""
canonical_json: Final = msgspec.json.Encoder(order="sorted").encode
"""The canonical bytes of a value that is known to hold nothing but canonical types."""


def checked_canonical_json(value: object) -> bytes:
    """The canonical bytes of a value from outside.

    Raises EvidenceError if the value holds a float, an integer of 2^53 or more, a key that is not
    ASCII, a lone surrogate, or a type that JSON does not have, or is nested too deeply.
    """
    try:
        _check(value, DEPTH_MAX)
    except _Fault as fault:
        raise EvidenceError(f"${''.join(reversed(fault.path))}: {fault}") from None
    return canonical_json(value)


class _Fault(EvidenceError):
    """The error; its path is added on the way up, at no cost for valid input."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.path: list[str] = []


def _check(value: object, levels: int) -> None:
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise _Fault("a lone surrogate cannot be encoded") from error
    elif isinstance(value, int):
        if abs(value) >= 2**53:
            raise _Fault("an integer must be below 2^53 in magnitude")
    elif not isinstance(value, list | tuple | dict):
        raise _Fault(f"{type(value).__name__} is not allowed in evidence")
    elif not levels:
        raise _Fault(f"more than {DEPTH_MAX} nested arrays and objects")
    else:
        _check_items(value, levels - 1)


def _check_items(value: list[Any] | tuple[Any, ...] | dict[Any, Any], levels: int) -> None:
    has_names = isinstance(value, dict)
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if has_names and not (isinstance(key, str) and key.isascii()):
            raise _Fault(f"keys must be ASCII strings, not {key!r}")
        try:
            _check(item, levels)
        except _Fault as fault:
            fault.path.append(f".{key}" if has_names else f"[{key}]")
            raise
