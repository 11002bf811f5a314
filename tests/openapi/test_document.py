"""The OpenAPI document: committed as generated, valid, with an example of everything."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import httpx2
import jsonschema_rs
import pytest

from countersign.base.errors import REFUSALS, Refusal, Retryable
from countersign.server.app import route_table
from countersign.server.routes import ROUTES
from tests.support.document import (
    COMMITTED,
    JSON,
    Document,
    Operation,
    committed_document,
    resolved,
)
from tests.support.every import every
from tools.openapi import openapi_document, openapi_text
from tools.openapi_components import with_references

DOCUMENT = committed_document()
WHOLE = Document(DOCUMENT)
OPERATIONS = list(WHOLE.operations())
each_operation = every("operation", OPERATIONS)


def test_the_committed_document_matches_the_route_table() -> None:
    assert COMMITTED.read_text(encoding="utf-8") == openapi_text(ROUTES), "run `make openapi`"


@pytest.mark.parametrize("deployment", ["sqlite"], indirect=True)
def test_the_server_serves_the_committed_document(client: httpx2.Client) -> None:
    assert client.get("/openapi.json").json() == DOCUMENT


def test_the_document_is_valid_openapi_3_1() -> None:
    assert DOCUMENT["openapi"].startswith("3.1.")
    # It takes half a second to import, which each process of a run would spend.
    from schemathesis.specs.openapi.definitions import OPENAPI_31  # noqa: PLC0415

    jsonschema_rs.Draft202012Validator(OPENAPI_31).validate(DOCUMENT)


def test_every_schema_in_the_document_is_valid_json_schema() -> None:
    schemas = [*DOCUMENT["components"]["schemas"].values(), *_members(DOCUMENT, "schema")]
    assert len(schemas) > 100
    for schema in schemas:
        jsonschema_rs.meta.validate({"$schema": DIALECT, **schema})


def test_no_default_is_null() -> None:
    """Generators that read a default as "always there" ask callers for each such member."""
    assert None not in _members(DOCUMENT, "default")


def test_every_reference_in_the_document_leads_somewhere() -> None:
    references = list(_members(DOCUMENT, "$ref"))
    assert references
    for reference in references:
        place: Any = DOCUMENT
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]


def test_shared_parts_of_operations_keep_their_meaning() -> None:
    whole = openapi_document(ROUTES)
    assert resolved(with_references(whole)["paths"], DOCUMENT) == whole["paths"]


def test_every_component_is_used() -> None:
    used = set(_members(DOCUMENT, "$ref"))
    there = {
        f"#/components/{section}/{name}"
        for section, components in DOCUMENT["components"].items()
        for name in components
        if section != "securitySchemes"
    }
    assert used == there


def test_operation_names_are_unique_and_links_lead_to_them() -> None:
    names = [operation.id for operation in OPERATIONS]
    assert len(set(names)) == len(names)
    links = [link for links in _members(DOCUMENT["paths"], "links") for link in links.values()]
    assert links
    by_name = {operation.id: operation for operation in OPERATIONS}
    for link in links:
        parameters = by_name[link["operationId"]].definition["parameters"]
        assert set(link["parameters"]) <= {parameter["name"] for parameter in parameters}


@each_operation
def test_the_parameters_in_a_path_match_those_of_its_operation(
    operation: Operation,
) -> None:
    declared = [p["name"] for p in operation.definition["parameters"] if p["in"] == "path"]
    assert declared == [s[1:-1] for s in operation.path.split("/") if s.startswith("{")]


@each_operation
def test_the_document_asks_for_a_key_where_the_server_does(operation: Operation) -> None:
    (route,) = (r for r in route_table() if (r.method, r.path) == operation[:2])
    key: list[dict[str, list[str]]] = [] if route.scope is None else [{"key": []}]
    token: list[dict[str, list[str]]] = [{"client_token": []}] if route.client_token else []
    assert operation.definition["security"] == key + token
    if route.scope:
        assert f"`{route.scope}`" in operation.definition["description"]


@each_operation
def test_the_headers_of_a_person_are_declared(operation: Operation) -> None:
    """Account, mode and reason are headers in the document, and the passkey is mentioned."""
    (route,) = (r for r in route_table() if (r.method, r.path) == operation[:2])
    definition = operation.definition
    headers = {p["name"]: p for p in definition["parameters"] if p["in"] == "header"}
    named = {"Countersign-Account", "Countersign-Mode"} & set(headers)
    assert len(named) == (2 if route.scope else 0)
    assert ("Countersign-Reason" in headers) is route.personal
    assert ("fresh passkey" in definition["description"]) is route.fresh
    if operation.definition["operationId"] == "getBuyerEvidence":
        assert headers["Countersign-Reason"]["required"]


@each_operation
def test_every_example_of_an_operation_fits_its_schema(operation: Operation) -> None:
    contents = [answer.get("content", {}) for answer in operation.definition["responses"].values()]
    contents.append(operation.definition.get("requestBody", {}).get("content", {}))
    for content in contents:
        for kind, media in content.items():
            assert len(content) == 1
            if kind in BYTES:
                continue
            assert media["examples"]
            for label, example in media["examples"].items():
                assert WHOLE.faults(media["schema"], example["value"]) == [], label
    for parameter in operation.definition["parameters"]:
        if "example" in parameter:
            assert WHOLE.faults(parameter["schema"], parameter["example"]) == [], parameter


@each_operation
def test_every_operation_has_an_example_of_its_request_its_answer_and_each_of_its_errors(
    operation: Operation,
) -> None:
    definition = operation.definition
    if operation.method == "POST":
        assert definition["requestBody"]["content"][JSON]["examples"]
    for kind, media in definition["responses"]["200"]["content"].items():
        assert kind in BYTES or media["examples"]
    assert all("example" in p for p in definition["parameters"] if p["in"] in {"path", "query"})
    for status, answer in definition["responses"].items():
        if int(status) < 400:
            continue
        examples = answer["content"][JSON]["examples"]
        assert examples
        for code, example in examples.items():
            assert example["value"]["error"]["code"] == code
            assert f"`{code}`" in answer["description"]


def test_every_error_code_of_the_catalogue_is_listed_under_its_status() -> None:
    """And no other code is."""
    listed = {
        (code, int(status))
        for operation in OPERATIONS
        for status, answer in operation.definition["responses"].items()
        if int(status) >= 400
        for code in answer["content"][JSON]["examples"]
    }
    assert listed | NEXT_TO_THE_API == {(error.code, error.status) for error in REFUSALS}
    assert not listed & NEXT_TO_THE_API


def test_the_document_has_every_refusal_of_the_catalogue() -> None:
    assert set(REFUSALS) == set(_leaves(Refusal))


@each_operation
def test_retryable_answers_say_when_to_retry(operation: Operation) -> None:
    retryable = {error.code for error in REFUSALS if issubclass(error, Retryable)}
    for status, answer in operation.definition["responses"].items():
        if int(status) < 400:
            continue
        header = answer["headers"].get("Retry-After")
        codes = set(answer["content"][JSON]["examples"])
        assert (header is not None) == bool(codes & retryable)
        if header:
            assert header["required"] == (codes <= retryable)


@each_operation
def test_an_operation_lists_the_codes_of_its_gates_and_its_refusals(
    operation: Operation,
) -> None:
    """The gates of every request, depending on the operation's needs."""
    expected = {"method_not_allowed", "internal_error"}
    if operation.definition["security"]:
        expected |= {"invalid_request", "overloaded", "blocked", "storage_unavailable"}
        if operation.method.upper() != "GET":
            expected.add("outcome_unknown")
    with_a_key = operation.definition["security"] == [{"key": []}]
    if with_a_key:
        expected |= {"unauthorized", "invalid_api_key", "forbidden", "account_disabled"}
        expected.add("rate_limited")
    elif operation.definition["security"]:
        expected |= {"invalid_client_token", "origin_not_allowed", "rate_limited"}
    if "requestBody" in operation.definition:
        expected |= {"payload_too_large", "unsupported_media_type"}
        if with_a_key:
            expected |= {"idempotency_key_reused", "idempotency_in_progress"}
    if operation.is_of_staff:
        expected |= {"not_found"} | (
            {"not_granted"} if operation.method.upper() != "GET" else set()
        )
    if "fresh passkey" in operation.definition["description"]:
        expected.add("passkey_required")
    if "names live mode" in operation.definition["description"]:
        expected.add("mode_mismatch")
    route = next(one for one in ROUTES if one.operation == operation.id)
    expected |= {*map(attrgetter("code"), route.refusals)}
    expected |= {"secret_not_repeated"} if route.secret else set()
    assert operation.codes == expected


# The codes at addresses that the document does not describe: providers send their messages there.
NEXT_TO_THE_API = {("invalid_webhook", 400)}
# Responses that are files have no example.
BYTES = {"application/pdf", "application/zip"}
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def _members(value: object, name: str) -> Iterator[Any]:
    """Every member with this name, at any depth; what examples hold is data, not document."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key == name:
                yield item
            elif key not in {"examples", "example"}:
                yield from _members(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from _members(item, name)


def _leaves(kind: type[Refusal]) -> Iterator[type[Refusal]]:
    children = kind.__subclasses__()
    if not children:
        yield kind
    for child in children:
        yield from _leaves(child)


def test_every_schema_has_a_name_that_a_generated_client_can_keep() -> None:
    """Such as `EventPage`: a class name in most languages."""
    assert all(name.isalnum() for name in DOCUMENT["components"]["schemas"])


def test_files_are_described_as_bytes() -> None:
    """Code generators leave out responses without a schema."""
    files = [
        content["schema"]
        for operation in OPERATIONS
        for media_type, content in operation.definition["responses"]["200"]
        .get("content", {})
        .items()
        if media_type in {"application/pdf", "application/zip"}
    ]
    assert files == [{"type": "string", "format": "binary"}] * 4


def test_the_document_describes_what_webhook_endpoints_receive() -> None:
    received = DOCUMENT["webhooks"]["event"]["post"]
    schema = received["requestBody"]["content"]["application/json"]["schema"]
    assert schema == {"$ref": "#/components/schemas/Event"}
    assert {p["name"] for p in received["parameters"]} == {
        "webhook-id", "webhook-timestamp", "webhook-signature"
    }  # fmt: skip
