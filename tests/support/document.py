"""The committed OpenAPI document, and the comparing of real requests and answers with it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import httpx2
import jsonschema_rs

COMMITTED = Path(__file__).parents[2] / "spec" / "openapi.json"
JSON = "application/json"
_METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}


def committed_document() -> dict[str, Any]:
    """A fresh copy of the document."""
    document: dict[str, Any] = json.loads(COMMITTED.read_text(encoding="utf-8"))
    return document


class Operation(NamedTuple):
    """An operation of the document."""

    method: str
    path: str
    definition: Mapping[str, Any]

    def __repr__(self) -> str:
        return self.id

    @property
    def id(self) -> str:
        """Its name."""
        return str(self.definition["operationId"])

    @property
    def is_of_staff(self) -> bool:
        """Whether it only answers where the console is on."""
        return bool(self.definition.get("x-console"))

    @property
    def codes(self) -> set[str]:
        """The error codes that the document lists for it."""
        return {
            code for answer in self.definition["responses"].values() for code in codes_of(answer)
        }


class Document:
    """The present document; checks that requests and responses conform to it."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._validators: dict[str, jsonschema_rs.Draft202012Validator] = {}
        self._operations = [
            Operation(method.upper(), path, resolved(item[method], document))
            for path, item in document["paths"].items()
            for method in sorted(_METHODS & set(item))
        ]

    def operations(self) -> Sequence[Operation]:
        """Every operation."""
        return self._operations

    def of_vendors(self) -> Sequence[Operation]:
        """Every operation except those of the console."""
        return [one for one in self._operations if not one.is_of_staff]

    def operation(self, method: str, url: str) -> Operation:
        """The operation that a request is for; a literal path wins over a parameter."""
        path = urlsplit(url).path
        found = [o for o in self.operations() if _matches(o.path, path)]
        same = [o for o in found if o.method == method] or found
        return min(same, key=lambda o: o.path.count("{"))

    def faults(self, schema: Mapping[str, Any], value: object) -> list[str]:
        """How the value breaks the schema, formats included."""
        # Most schemas are those of other operations too, and compiling one takes 10 ms.
        known = json.dumps(schema)
        if known not in self._validators:
            whole = {**schema, "components": self._document["components"]}
            self._validators[known] = jsonschema_rs.Draft202012Validator(
                whole, validate_formats=True
            )
        validator = self._validators[known]
        return [f"{e.instance_path}: {e.message}" for e in validator.iter_errors(value)]

    def request_faults(
        self, method: str, url: str, body: Mapping[str, Any] | None = None
    ) -> list[str]:
        """How a request breaks the document."""
        definition = self.operation(method, url).definition
        query = dict(parse_qsl(urlsplit(url).query, keep_blank_values=True))
        faults = []
        for parameter in definition["parameters"]:
            if parameter["in"] == "query" and parameter["name"] in query:
                text = query.pop(parameter["name"])
                faults += self.faults(parameter["schema"], _read(text, parameter["schema"]))
        faults += [f"there is no query parameter {name}" for name in query]
        if body is not None:
            faults += self.faults(definition["requestBody"]["content"][JSON]["schema"], body)
        return faults

    def answer_faults(self, method: str, url: str, answer: httpx2.Response) -> list[str]:
        """How an answer breaks the document."""
        listed = self.operation(method, url).definition["responses"].get(str(answer.status_code))
        if listed is None:
            return [f"the status {answer.status_code} is not listed"]
        faults = []
        for name, header in listed["headers"].items():
            text = answer.headers.get(name)
            if text is not None:
                faults += self.faults(header["schema"], _read(text, header["schema"]))
            elif header["required"]:
                faults.append(f"the header {name} is missing")
        if "content" not in listed:
            return faults + (["there is a body"] if answer.content else [])
        kind = answer.headers["content-type"].partition(";")[0]
        if kind not in listed["content"]:
            faults.append(f"the media type is {answer.headers['content-type']}")
        if kind != JSON:
            return faults
        body = answer.json()
        faults += self.faults(listed["content"][JSON]["schema"], body)
        if answer.is_error and body["error"]["code"] not in codes_of(listed):
            faults.append(f"the code {body['error']['code']} is not listed")
        return faults


def resolved(value: Any, document: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any JSON
    """A part of a document, complete: with what its references lead to, except schemas."""
    if isinstance(value, list):
        return [resolved(item, document) for item in value]
    if not isinstance(value, dict):
        return value
    reference = value.get("$ref", "#/components/schemas/")
    if reference.startswith("#/components/schemas/"):
        return {key: resolved(item, document) for key, item in value.items()}
    _, _, section, name = reference.split("/")
    return resolved(document["components"][section][name], document)


def codes_of(answer: Mapping[str, Any]) -> set[str]:
    """The error codes of a documented response: those of its examples."""
    examples = answer.get("content", {}).get(JSON, {}).get("examples", {}).values()
    values = [example["value"] for example in examples]
    return {value["error"]["code"] for value in values if set(value) == {"error"}}


def _matches(template: str, path: str) -> bool:
    return re.fullmatch(re.sub(r"\{[^}]*\}", "[^/]+", template), path) is not None


def _read(text: str, schema: Mapping[str, Any]) -> object:
    """A parameter's or header's text as its schema types it."""
    return int(text) if schema.get("type") == "integer" and text.isdecimal() else text
