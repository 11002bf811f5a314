"""Canonical JSON: the bytes that are hashed and kept.

Sorted keys, no white space, UTF-8, and only strings, integers below 2^53 in magnitude, booleans
and null. On such values the output equals RFC 8785 (JCS). Floats are refused because they are
where implementations differ.
"""

from typing import Final, TypeAlias

import msgspec

from countersign_evidence.errors import EvidenceError

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

    Raises EvidenceError if the value holds a float, an integer of 2^53 or more, a key that is not
    ASCII, a lone surrogate, or a type that JSON does not have, or is nested too deeply.
    """
    _check(value, "$", DEPTH_MAX)
    return _encode(value)


def _check(value: object, path: str, levels: int) -> None:
    if (wrong := _wrong(value, levels)) is not None:
        raise EvidenceError(f"{path}: {wrong}")
    if isinstance(value, dict):
        for key, item in value.items():
            _check(item, f"{path}.{key}", levels - 1)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _check(item, f"{path}[{index}]", levels - 1)


def _wrong(value: object, levels: int) -> str | None:
    """What keeps a value from being evidence, apart from what is inside it."""
    if isinstance(value, str):
        lone = not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value)
        return "a lone surrogate cannot be encoded" if lone else None
    if isinstance(value, int):
        return "an integer must be below 2^53 in magnitude" if abs(value) >= _LARGEST else None
    if not isinstance(value, list | tuple | dict | None):
        return f"{type(value).__name__} is not allowed in evidence"
    if value is not None and not levels:
        return f"more than {DEPTH_MAX} nested arrays and objects"
    for key in value if isinstance(value, dict) else ():
        if not isinstance(key, str) or not key.isascii():
            return f"keys must be ASCII strings, not {key!r}"
    return None
