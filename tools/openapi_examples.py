"""Examples of bodies, composed by one rule from the examples of their members.

A member has the first example of its `Meta`. Without one, a struct has those of its members, a list
of structs has one of them, and what may be null is null: also a time, unless the member itself
has an example.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import inspect


def request_examples(kind: type, written: Mapping[str, Any]) -> Mapping[str, Any]:
    """The route's own examples; without any, all members with an example, and the required ones."""
    if written:
        return written
    info: inspect.StructType = inspect.type_info(kind)  # type: ignore[assignment]
    found = _members(info, kind.__name__, {})
    always = {field.encode_name for field in info.fields if field.required}
    required = {name: example for name, example in found.items() if name in always}
    shorter = {"shortest": required} if required and required != found else {}
    return {"all fields": found} | shorter


def response_examples(kind: Any, written: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ANN401 - a type or a generic alias
    """One for each that the route writes members for, and without any the composed one."""
    info = inspect.type_info(kind)
    return {
        label: _example(info, str(kind), given)
        for label, given in (written or {"example": {}}).items()
    }


def _example(info: inspect.Type, place: str, given: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401 - any JSON
    """An example of this type, with the members that are given.

    Raises:
        LookupError: a required `Meta` has no example.
    """
    found: Any = None
    match info:
        case inspect.Metadata():
            shown = (info.extra_json_schema or {}).get("examples")
            found = shown[0] if shown else _example(info.type, place)
        case inspect.StructType():
            found = _members(info, place, given or {})
        case inspect.UnionType():
            found = next((_example(kind, place) for kind in info.types if _is_shown(kind)), None)
        case inspect.ListType(item_type=inspect.StructType() as item):
            found = [_example(item, place)]
        case inspect.ListType() | inspect.VarTupleType():
            found = []
        case inspect.BoolType():
            found = False
        case _:
            msg = f"{place} has no example."
            raise LookupError(msg)
    return found


def _members(info: inspect.StructType, place: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The members that are required, have an example, or are given; in the order of the type."""
    return {
        (name := field.encode_name): (
            given[name] if name in given else _example(field.type, f"{place}.{name}")
        )
        for field in info.fields
        if field.required or field.encode_name in given or _is_shown(field.type)
    }


def _is_shown(kind: inspect.Type) -> bool:
    """Whether an optional member has an example; a time's generic one does not count."""
    if isinstance(kind, inspect.UnionType):
        return any(map(_is_shown, kind.types))
    if not isinstance(kind, inspect.Metadata) or isinstance(kind.type, inspect.DateTimeType):
        return False
    return "examples" in (kind.extra_json_schema or {}) or _is_shown(kind.type)
