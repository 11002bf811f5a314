"""Validates responses against a published OpenAPI 3.0 description, and lists its fields."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import jsonschema_rs

from countersign.identity.json_reader import Fields

STRIPE_ERROR_CODES: Final = (
    "abandoned",
    "consent_declined",
    "country_not_supported",
    "device_not_supported",
    "document_expired",
    "document_type_not_supported",
    "document_unverified_other",
    "email_unverified_other",
    "email_verification_declined",
    "id_number_insufficient_document_data",
    "id_number_mismatch",
    "id_number_unverified_other",
    "phone_unverified_other",
    "phone_verification_declined",
    "selfie_document_missing_photo",
    "selfie_face_mismatch",
    "selfie_manipulated",
    "selfie_unverified_other",
    "under_supported_age",
)
"""Of `last_error` in Stripe's API reference, version 2026-10-28.endive."""


def load(path: Path) -> dict[str, Any]:
    """A description."""
    description: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return description


def validator(description: Mapping[str, Any], schema: str) -> jsonschema_rs.Draft202012Validator:
    """A validator for one schema of the description."""
    components = _nullable(description["components"])
    return jsonschema_rs.Draft202012Validator(
        {"$ref": f"#/components/schemas/{schema}", "components": components}, validate_formats=True
    )


def _nullable(node: Any) -> Any:  # noqa: ANN401 - any JSON
    """The same in the words of JSON Schema, which says `nullable` by a type."""
    if isinstance(node, list):
        return [_nullable(item) for item in node]
    if not isinstance(node, dict):
        return node
    said = {name: _nullable(member) for name, member in node.items() if name != "nullable"}
    return {"anyOf": [said, {"type": "null"}]} if node.get("nullable") is True else said


def fields(description: Mapping[str, Any], schema: str) -> set[str]:
    """The dotted path of every field that a schema describes and that holds no described ones."""
    schemas = description["components"]["schemas"]
    return set(_leaves(schemas, schemas[schema], ""))


def _leaves(schemas: Mapping[str, Any], node: Mapping[str, Any], path: str) -> Iterator[str]:
    while "$ref" in node:
        node = schemas[node["$ref"].rpartition("/")[2]]
    inner = [*node.get("allOf", ()), *node.get("oneOf", ()), *node.get("anyOf", ())]
    found = [leaf for part in inner for leaf in _leaves(schemas, part, path) if leaf != path]
    if "items" in node:
        found += _leaves(schemas, node["items"], f"{path}[]")
    for name, member in node.get("properties", {}).items():
        found += _leaves(schemas, member, f"{path}.{name}" if path else name)
    yield from found or [path]


def unsorted(described: set[str], fields: Fields) -> set[str]:
    """Described fields unknown to the adapter."""
    return {field for field in described if not is_known(field.replace("[]", ""), fields)}


def undescribed(described: set[str], fields: Fields) -> set[str]:
    """Paths that the adapter knows and the description lacks: a misspelt path is never read."""
    known = [f"{field}.".replace("[]", "") for field in described]
    return {
        path
        for path in paths(fields)
        if not any(field.startswith(f"{path.removesuffix('.*')}.") for field in known)
    }


def is_known(path: str, fields: Fields) -> bool:
    """Whether a member is described, or everything of a part that it is in."""
    for name in path.split("."):
        if name not in fields.tree:
            return "*" in fields.tree
        fields = fields.tree[name]
        if not fields.tree:
            return True
    return False


def paths(fields: Fields, above: str = "") -> Iterator[str]:
    """The known members without children, as `address.city`."""
    for name, below in fields.tree.items():
        yield from paths(below, f"{above}{name}.") if below.tree else [f"{above}{name}"]
