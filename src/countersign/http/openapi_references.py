"""References in the OpenAPI document: what several operations share is written once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, NamedTuple


def with_references(document: dict[str, Any]) -> dict[str, Any]:
    """The document with what several operations share in `components`, once."""
    document = deepcopy(document)
    for section in ("headers", "parameters", "responses"):
        places = list(_places(document, section))
        uses = Counter(json.dumps(place.value, sort_keys=True) for place in places)
        shared: dict[str, Any] = {}
        for place in places:
            if uses[json.dumps(place.value, sort_keys=True)] > 1:
                if shared.setdefault(place.name, place.value) != place.value:
                    msg = f"Two different shared {section} are named {place.name}."
                    raise ValueError(msg)
                place.holder[place.key] = {"$ref": f"#/components/{section}/{place.name}"}
        document["components"][section] = shared
    return document


class _Place(NamedTuple):
    """Where something stands that could be shared, and its name in `components`."""

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
