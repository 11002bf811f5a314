"""Canonical JSON: the bytes that are hashed and kept.

Sorted keys, no white space, UTF-8, and only strings, integers below 2^53 in magnitude, booleans
and null. On such values the output equals RFC 8785 (JCS). Floats are refused because they are
where implementations differ.
"""

from typing import Any, Final, TypeAlias

import msgspec

from countersign.evidence.errors import EvidenceError

Json: TypeAlias = "str | int | bool | list[Json] | dict[str, Json] | None"

DEPTH_MAX: Final = 64
"""How deep arrays and objects may stand in each other; readers differ on how much they can take."""
_LARGEST: Final = 2**53
_encode: Final = msgspec.json.Encoder(order="sorted").encode


def canonical_json(value: object) -> bytes:
    """The canonical bytes of a value that is known to hold nothing but canonical types."""
    return _encode(value)


def checked_canonical_json(value: object) -> bytes:
    """The canonical bytes of a value from outside.

    Raises:
        EvidenceError: the value holds a float, an integer of 2^53 or more, a key that is not
            ASCII, a lone surrogate, or a type that JSON does not have, or is nested too deeply.
    """
    _check(value, "$", DEPTH_MAX)
    return _encode(value)


def _check(value: object, path: str, levels: int) -> None:
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        _check_text(value, path)
    elif isinstance(value, int):
        if abs(value) >= _LARGEST:
            msg = f"{path}: an integer must be below 2^53 in magnitude"
            raise EvidenceError(msg)
    elif not isinstance(value, list | tuple | dict):
        msg = f"{path}: {type(value).__name__} is not allowed in evidence"
        raise EvidenceError(msg)
    elif not levels:
        msg = f"more than {DEPTH_MAX} arrays and objects stand in each other"
        raise EvidenceError(msg)
    else:
        _check_items(value, path, levels - 1)


def _check_items(
    value: list[Any] | tuple[Any, ...] | dict[Any, Any], path: str, levels: int
) -> None:
    if not isinstance(value, dict):
        for index, item in enumerate(value):
            _check(item, f"{path}[{index}]", levels)
        return
    for key, item in value.items():
        if not isinstance(key, str) or not key.isascii():
            msg = f"{path}: keys must be ASCII strings, not {key!r}"
            raise EvidenceError(msg)
        _check(item, f"{path}.{key}", levels)


def _check_text(value: str, path: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        msg = f"{path}: a lone surrogate cannot be encoded"
        raise EvidenceError(msg) from error
