"""Validation errors of a request, field by field, for the developer who sent it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

import msgspec

_MISTAKES_MAX: Final = 5
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
_AT: Final = re.compile(r"(?P<what>.*?)(?: - at `\$(?P<path>[A-Za-z0-9_.\[\]]*)`)?\Z", re.DOTALL)
_MEMBER: Final = re.compile(r"Object (contains unknown|missing required) field `(.*)`\Z", re.DOTALL)
_TYPE: Final = re.compile(r"Expected `([a-z0-9 |]+)`, got `([a-z0-9]+)`\Z")
_BOUND: Final = re.compile(r"Expected `(str|array|int|float)`(?: of length)? (>=|<=) (\d+)\Z")
_KINDS: Final = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
TIME_EXPECTED: Final = "Expected a time with a time zone, such as 2026-11-20T21:31:00Z"
_UNITS: Final = {"str": "characters", "array": "elements"}


def mistakes(value: object, schema: type) -> str:
    """One sentence for each mistake, the first five; each ends with the path of the field."""
    found = list(islice(_mistakes(value, schema), _MISTAKES_MAX + 1))
    if len(found) > _MISTAKES_MAX:
        found[_MISTAKES_MAX:] = ["And more."]  # to count thousands would take long
    return " ".join(found)


def path_to(parent: str, key: str) -> str:
    """The JSONPath of a member: `$.name`, or `$["odd name"]`, in printable ASCII."""
    if _PLAIN_KEY.match(key):
        return f"{parent}.{key}"
    return f"{parent}[{json.dumps(key[:64])}]"


def _mistakes(value: object, schema: type) -> Iterator[str]:
    if not isinstance(value, dict):
        yield "Expected an object - at `$`."
        return
    fields = {field.encode_name: field for field in msgspec.structs.fields(schema)}
    for name in value:
        if name not in fields:
            yield f"Unknown field - at `{path_to('$', name)}`; {_listed(fields)}."
    for name, field in fields.items():
        if name not in value:
            if field.required:
                yield f"A required field is missing - at `$.{name}`."
            continue
        try:
            msgspec.convert(value[name], field.type)
        except msgspec.ValidationError as error:
            what, path = _in_words(error, f"$.{name}", field.type)
            yield f"{what} - at `{path}`."


def mistake_in(error: msgspec.ValidationError, kind: Any) -> str:  # noqa: ANN401 - any annotation
    """The error in a single value of this type."""
    return _in_words(error, "", kind)[0]


def _in_words(
    error: msgspec.ValidationError,
    parent: str,
    kind: Any,  # noqa: ANN401 - any annotation
) -> tuple[str, str]:
    """The validator's message about a field, whose path is `parent`, in our words; and the path."""
    message = str(error)
    found = _AT.match(message)
    what, path = (found["what"], parent + (found["path"] or "")) if found else (message, parent)
    if member := _MEMBER.match(what):
        missing = member[1].startswith("missing")
        what = "A required field is missing" if missing else "Unknown field"
        path = path_to(path, member[2])
    elif wrong := _TYPE.match(what):
        expected = " or ".join(_KINDS.get(k, k) for k in wrong[1].split(" | ") if k != "null")
        what = f"Expected {expected}, got {_KINDS.get(wrong[2], wrong[2])}"
    elif bound := _BOUND.match(what):
        limit = "at least" if bound[2] == ">=" else "at most"
        what = f"Expected {limit} {bound[3]} {_UNITS.get(bound[1], '')}".rstrip()
    elif what.startswith("Invalid enum value"):
        what = f"{what}; {_listed(_choices(kind))}"
    elif "matching regex" in what:
        what = f"Expected {_example(kind, path)}"
    elif "datetime" in what:
        what = TIME_EXPECTED
    return what, path


def _listed(names: Mapping[str, object] | list[str]) -> str:
    return f"allowed: {', '.join(names)}" if names else "none are allowed"


def _choices(kind: Any) -> list[str]:  # noqa: ANN401 - any annotation
    return [str(v) for node in _nodes(msgspec.json.schema(kind)) for v in node.get("enum", ())]


def _example(kind: Any, path: str) -> str:  # noqa: ANN401 - any annotation
    """A value that would be right: of the member that the path ends with, if that is known."""
    schema, name = msgspec.json.schema(kind), path.rpartition(".")[2]
    members = [n["properties"][name] for n in _nodes(schema) if name in n.get("properties", ())]
    nodes = _nodes(members or schema)
    examples = [str(e) for node in nodes for e in node.get("examples", ())]
    return "a value such as " + " or ".join(examples) if examples else "another form"


def _nodes(schema: object) -> Iterator[dict[str, Any]]:
    """Every object in a JSON Schema."""
    todo: list[Any] = [schema]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            yield node
            todo += node.values()
        elif isinstance(node, list):
            todo += node
