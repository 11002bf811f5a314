"""What of an inquiry is answered: `include`, sparse `fields`, and the inflection of keys.

From "Response Body" and "Key inflection" in Persona's documentation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

INFLECTIONS: Final = ("camel", "kebab", "snake")
_FIELDS: Final = re.compile(r"fields\[([a-z0-9/-]+)\]")


def shown(
    body: Mapping[str, Any], query: Sequence[tuple[str, str]], inflection: str
) -> dict[str, Any]:
    """The body for these parameters."""
    data = body["data"]
    included = _related(query)
    sparse = {
        found[1]: value.split(",") for name, value in query if (found := _FIELDS.fullmatch(name))
    }
    answer: dict[str, Any] = {"data": _sparse(data, sparse)}
    if "verifications" in included:
        answer["included"] = [_sparse(one, sparse) for one in body["included"]]
    return dict(_inflected(answer, inflection))


def _related(query: Sequence[tuple[str, str]]) -> list[str]:
    """Nothing is included that was not asked for (since version 2025-10-27)."""
    return next((value.split(",") for name, value in query if name == "include"), [])


def _sparse(resource: Mapping[str, Any], sparse: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    kind = str(resource["type"])
    wanted = sparse.get(kind, sparse.get(kind.partition("/")[0]))
    if wanted is None:
        return dict(resource)
    attributes = {name: value for name, value in resource["attributes"].items() if name in wanted}
    chosen = {
        path.removeprefix("fields."): resource["attributes"]["fields"][path.removeprefix("fields.")]
        for path in wanted
        if path.startswith("fields.")
        and path.removeprefix("fields.") in resource["attributes"].get("fields", {})
    }
    if chosen:
        attributes["fields"] = chosen
    return dict(resource) | {"attributes": attributes}


def _inflected(value: Any, inflection: str) -> Any:  # noqa: ANN401 - any JSON
    """The value with its keys in another style; those inside `fields` stay as they are."""
    if isinstance(value, dict):
        return {
            _key(name, inflection): member if name == "fields" else _inflected(member, inflection)
            for name, member in value.items()
        }
    if isinstance(value, list):
        return [_inflected(member, inflection) for member in value]
    return value


def _key(name: str, inflection: str) -> str:
    if inflection == "snake":
        return name.replace("-", "_")
    if inflection == "camel":
        first, *others = name.split("-")
        return first + "".join(word.capitalize() for word in others)
    return name
