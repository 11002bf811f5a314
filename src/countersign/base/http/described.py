"""Schemas in which the docstring below a member is its description: it is said once."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from inspect import cleandoc, getsource
from itertools import pairwise
from typing import Any, Final, NamedTuple, get_origin

import msgspec
from msgspec.inspect import Field, StructType, Type, multi_type_info

_WRAPPED: Final = re.compile(r"(?<!\n)\n(?!\n)")
_OF_TYPE: Final = ("type", "anyOf", "$ref", "enum")


class Docstring(NamedTuple):
    """The docstring of a member: each paragraph on one line."""

    text: str
    is_annotated: bool
    """Whether the member's own annotation says more than its type."""


def schema_components(
    kinds: Sequence[Any], ref_template: str = "#/$defs/{name}"
) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    """What `msgspec.json.schema_components` gives, with the docstrings of the members."""
    tops, components = msgspec.json.schema_components(kinds, ref_template=ref_template)
    found: set[type] = set()
    _collect(multi_type_info(kinds), found)
    structs = {kind.__name__: kind for kind in (get_origin(one) or one for one in found)}
    for schema in components.values():
        struct = structs.get(schema.get("title", "").partition("[")[0])
        members = schema.get("properties", {})
        for name, said in docstrings_of(struct).items() if struct else ():
            if name in members:
                members[name] = _described(members[name], said)
    return tops, components


def _described(schema: dict[str, Any], said: Docstring) -> dict[str, Any]:
    """The schema with this description, where msgspec would write it: after what the name adds."""
    keys = [*schema]
    place = 0 if said.is_annotated else min(keys.index(key) for key in _OF_TYPE if key in schema)
    first = {key: schema[key] for key in keys[:place]}
    return {**first, "description": "", **schema} | {"description": said.text}


def docstrings_of(struct: type) -> dict[str, Docstring]:
    """The docstrings of a type's members, by name."""
    found: dict[str, Docstring] = {}
    for kind in reversed(struct.__mro__):
        declared = _classes(kind.__module__).get(kind.__name__)
        for member, below in pairwise(declared.body if declared else ()):
            text = _text_of(below)
            if isinstance(member, ast.AnnAssign) and text is not None:
                inline = ast.unparse(member.annotation).startswith("Annotated[")
                found[ast.unparse(member.target)] = Docstring(text, inline)
    return found


def _text_of(statement: ast.stmt) -> str | None:
    """The text of a docstring; None: this is none."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
        return None
    return _WRAPPED.sub(" ", cleandoc(str(statement.value.value)))


def _collect(part: object, found: set[type]) -> None:
    """Add the structs in this description of a type."""
    if isinstance(part, StructType):
        if part.cls in found:
            return
        found.add(part.cls)
    if isinstance(part, Type | Field):
        part = tuple(getattr(part, name) for name in part.__struct_fields__)
    for each in part if isinstance(part, tuple | list) else ():
        _collect(each, found)


@cache
def _classes(module: str) -> Mapping[str, ast.ClassDef]:
    """The classes of a module by name; none where its source is not at hand."""
    try:
        tree = ast.parse(getsource(sys.modules[module]))
    except (OSError, TypeError):
        return {}
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
