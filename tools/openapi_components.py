"""The components of the OpenAPI document: schemas of types, and what operations share."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from inspect import cleandoc
from typing import Any, Final, NamedTuple

import msgspec

from countersign.base.http.described import schema_components

REF: Final = "#/components/schemas/{name}"
_GENERIC: Final = re.compile(r"\b([A-Z]\w*?)_(\w+)_\Z")


class Schemas:
    """The schemas of the types of bodies by name, and the parameters of the types of queries."""

    def __init__(self, bodies: Sequence[Any], queries: Sequence[type]) -> None:
        types = list(dict.fromkeys([*bodies, *queries]))
        _, found = schema_components(types, REF)
        self.components = {_readable(name): _published(schema) for name, schema in found.items()}
        self.parameters = {
            kind: _parameters(self.components.pop(name_of(kind))) for kind in dict.fromkeys(queries)
        }


def name_of(kind: Any) -> str:  # noqa: ANN401 - a type, or a generic alias
    """The name of a type in the document."""
    (schema,), _ = msgspec.json.schema_components([kind], ref_template="{name}")
    return _readable(str(schema["$ref"]))


def with_references(document: dict[str, Any]) -> dict[str, Any]:
    """The document with what several operations share in `components`, once."""
    document = deepcopy(document)
    for section in ("headers", "parameters", "responses"):
        places = list(_places(document, section))
        uses = Counter(json.dumps(place.value, sort_keys=True) for place in places)
        shared: dict[str, Any] = {}
        for place in places:
            if uses[json.dumps(place.value, sort_keys=True)] > 1:
                name = place.name
                if shared.get(name, place.value) != place.value and "in" in place.value:
                    # For example a list filtered by a value that elsewhere is part of a path.
                    name = f"{name}_in_{place.value['in']}"
                if shared.setdefault(name, place.value) != place.value:
                    msg = f"Two different shared {section} are named {name}."
                    raise ValueError(msg)
                place.holder[place.key] = {"$ref": f"#/components/{section}/{name}"}
        document["components"][section] = shared
    return document


def _parameters(struct: dict[str, Any]) -> list[dict[str, Any]]:
    """The parameters of a query, from the schema of its type."""
    found = []
    for name, given in struct["properties"].items():
        schema = dict(given)
        if "anyOf" in schema:  # the other one is null: the parameter is optional
            schema = next(s for s in schema.pop("anyOf") if s != {"type": "null"}) | schema
        found.append(
            {
                "name": name,
                "in": "query",
                "required": False,
                "description": schema.pop("description"),
                "example": schema.pop("examples")[0],
                "schema": schema,
            }
        )
    return found


def _readable(name: str) -> str:
    """`EventPage`, not `Page_Event_`."""
    return _GENERIC.sub(r"\2\1", name)


def _published(value: Any) -> Any:  # noqa: ANN401 - any JSON
    r"""A schema as others read it.

    Titles repeat the names of the types, descriptions are indented as in the source, and `\Z` is
    Python for the `$` of JSON Schema. A default of null says nothing: generators that read a
    default as "always there" would ask callers for the member.
    """
    if not isinstance(value, dict):
        return [_published(item) for item in value] if isinstance(value, list) else value
    found = {}
    for key, item in value.items():
        if not isinstance(item, str):
            if (key, item) != ("default", None):
                found[key] = _published(item)
        elif key == "description":
            found[key] = cleandoc(item)
        elif key != "title":
            found[key] = item.replace(r"\Z", "$") if key == "pattern" else item
    return found


class _Place(NamedTuple):
    """The place of a shareable part, and its name in `components`."""

    holder: Any
    key: str | int
    name: str

    @property
    def value(self) -> Any:  # noqa: ANN401 - any JSON
        return self.holder[self.key]


def _places(document: dict[str, Any], section: str) -> Iterator[_Place]:
    for operation in (o for path in document["paths"].values() for o in path.values()):
        if section == "parameters":
            for index, parameter in enumerate(operation["parameters"]):
                yield _Place(operation["parameters"], index, parameter["name"])
            continue
        for status, response in operation["responses"].items():
            if section == "headers":
                for name, header in response["headers"].items():
                    optional = "" if header["required"] else "-optional"
                    yield _Place(response["headers"], name, name + optional)
            elif int(status) >= 400:
                codes = response["content"]["application/json"]["examples"]
                yield _Place(operation["responses"], status, "-".join(codes))
