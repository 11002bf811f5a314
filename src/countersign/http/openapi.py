"""The OpenAPI 3.1 document, made from the route table.

`make openapi` writes it to `spec/openapi.json`, which is committed.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from inspect import cleandoc
from typing import Any, Final

import msgspec

from countersign import __version__
from countersign.access.key import BRAND
from countersign.errors import (
    EvidencePending,
    Forbidden,
    InvalidApiKey,
    MethodNotAllowed,
    RateLimited,
    Refusal,
    Retryable,
    Unauthorized,
)
from countersign.http import schemas
from countersign.http.errors import STATUS
from countersign.server.routes import API_ROUTES, Parameter, Route

_GENERIC: Final = re.compile(r"\b([A-Z]\w*?)_(\w+)_\Z")
_REF: Final = "#/components/schemas/{name}"
_DESCRIPTION: Final = (
    "Notices, acknowledgments and buyer verification for a vendor's checkout.\n\nEvery failure "
    'has the same body: `{"error": {"code", "message"}}`. The code is stable; the `Link` header '
    "has the URL of its explanation. A 200 response means that its content is stored durably.\n"
)


def openapi_document(routes: Sequence[Route]) -> dict[str, Any]:
    """The document for these routes."""
    types = list(
        dict.fromkeys(
            [t for r in routes for t in (r.request, r.answer) if t is not None]
            + [schemas.ErrorBody]
        )
    )
    _, components = msgspec.json.schema_components(types, ref_template=_REF)
    components = {_readable(name): schema for name, schema in components.items()}
    names = {kind: _name_of(kind) for kind in types}
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, names)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Countersign",
            "version": __version__,
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": name} for name in dict.fromkeys(r.tag for r in routes)],
        "paths": paths,
        "webhooks": {"event": {"post": _webhook()}},
        "components": {
            "schemas": _without_titles(components),
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": (
                        f"An API key, such as `{BRAND}_sk_test_…`. Test keys can access only "
                        "the sandbox."
                    ),
                }
            },
        },
    }


def openapi_text() -> str:
    """The document of this release, as it is committed."""
    return json.dumps(openapi_document(API_ROUTES), ensure_ascii=False, indent=2) + "\n"


def _operation(route: Route, names: dict[Any, str]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.operation,
        "summary": route.summary,
        "description": cleandoc(route.handler.__doc__ or "").partition("\n\nRaises:")[0],
        "tags": [route.tag],
        "parameters": [
            *([_parameter(route.parameter, "path")] if route.parameter else []),
            *(_parameter(p, "query") for p in route.query),
        ],
        "responses": _responses(route, names),
        "security": [],
    }
    if route.scope is not None:
        operation["security"] = [{"key": []}]
        operation["description"] += f"\n\nNeeds the scope `{route.scope}`."
    if EvidencePending in route.refusals:
        operation["parameters"].append(
            _header("Prefer", "`wait=N` waits up to N seconds (at most 10) for sealing (RFC 7240).")
        )
    if route.operation == "getNotice":
        operation["parameters"].append(_header("If-None-Match", "The `ETag` of your copy."))
    if route.request is not None:
        operation["parameters"].append(
            _header(
                "Idempotency-Key",
                "Makes a retry safe: for 24 hours the same key and body get exactly the first "
                "response again, with `Idempotent-Replayed: true`.",
                minLength=1,
                maxLength=255,
                pattern='^(?!""$)[!-~]+$',
            )
        )
        operation["requestBody"] = {
            "required": True,
            "content": _content(names[route.request], route.request_examples),
        }
    return operation


def _responses(route: Route, names: dict[Any, str]) -> dict[str, Any]:
    always = {
        "X-Request-Id": _answer_header(
            "Identifies the request. Include it when you report a problem."
        ),
    }
    success: dict[str, Any] = {
        "description": "Done.",
        "headers": always | _success_headers(route),
        "content": _answer_content(route, names),
    }
    if route.links:
        success["links"] = {
            operation: {
                "operationId": operation,
                "parameters": {
                    name: f"$response.body#{pointer}" for name, pointer in parameters.items()
                },
            }
            for operation, parameters in route.links.items()
        }
    responses = {"200": success}
    if route.operation == "getNotice":
        responses["304"] = {"description": "Your copy is current.", "headers": success["headers"]}
    by_status: dict[int, list[type[Refusal]]] = {}
    for error in route.errors:
        by_status.setdefault(STATUS[error], []).append(error)
    for status in sorted(by_status):
        errors = by_status[status]
        responses[str(status)] = {
            "description": " ".join(f"`{error.code}`: {_line(error)}" for error in errors),
            "headers": always | _error_headers(errors),
            "content": _content(
                "ErrorBody",
                {e.code: {"error": {"code": e.code, "message": _line(e)}} for e in errors},
            ),
        }
    return responses


def _answer_content(route: Route, names: dict[Any, str]) -> dict[str, Any]:
    if route.answer is not None:
        return _content(names[route.answer], route.answer_examples)
    media_type = route.media_type.partition(";")[0]
    examples = {label: {"value": value} for label, value in route.answer_examples.items()}
    text = media_type.startswith("text/")
    if text:
        return {media_type: {"schema": {"type": "string"}, "examples": examples}}
    # Code generators know bytes by this format, which OpenAPI 3.1 itself no longer needs.
    return {media_type: {"schema": {"type": "string", "format": "binary"}}}


def _webhook() -> dict[str, Any]:
    """What a webhook endpoint receives (Standard Webhooks)."""
    headers = {
        "webhook-id": "The id of the event, the same in every attempt.",
        "webhook-timestamp": "The time of this attempt, in seconds since 1970.",
        "webhook-signature": "`v1` (HMAC-SHA256) and `v1a` (Ed25519) signatures, space-separated.",
    }
    return {
        "operationId": "receiveEvent",
        "summary": "An event is sent to your endpoint",
        "tags": ["Events"],
        "parameters": [_header(name, text) | {"required": True} for name, text in headers.items()],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": _REF.format(name="Event")}}},
        },
        "responses": {
            "2XX": {"description": "Received; the event is not sent again."},
            "410": {"description": "The endpoint no longer exists; the service disables it."},
            "default": {"description": "The event is sent again later."},
        },
    }


def _success_headers(route: Route) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if route.operation == "getNotice":
        headers["ETag"] = _answer_header("Strong: the same text has the same tag.")
    if route.request is not None:
        headers["Idempotent-Replayed"] = _answer_header(
            "Present if this repeats the first response for the Idempotency-Key.",
            required=False,
            const="true",
        )
    if route.operation == "clearOrder":
        headers["Countersign-Live-Would-Refuse"] = _answer_header(
            "Test keys only: reasons that a live key would get for this order. Absent in a "
            "replayed response.",
            required=False,
        )
    if EvidencePending in route.refusals:
        headers["Content-Digest"] = _answer_header("The SHA-256 of the content (RFC 9530).")
    if route.scope is not None:
        headers |= _rate_limit_headers()
    return headers


def _error_headers(errors: Sequence[type[Refusal]]) -> dict[str, Any]:
    headers: dict[str, Any] = {
        "Link": _answer_header("The URL of the explanation of the error code.")
    }
    retryable = [issubclass(error, Retryable) for error in errors]
    if any(retryable):
        headers["Retry-After"] = _answer_header(
            "The number of seconds to wait.", required=all(retryable), type="integer", minimum=1
        )
    challenged = [e in {Unauthorized, InvalidApiKey, Forbidden} for e in errors]
    if any(challenged):
        headers["WWW-Authenticate"] = _answer_header(
            "The problem with the key (RFC 6750).", required=all(challenged)
        )
    if RateLimited in errors:
        headers |= _rate_limit_headers()
    if MethodNotAllowed in errors:
        headers["Allow"] = _answer_header("The methods that this path supports.")
    return headers


def _rate_limit_headers() -> dict[str, Any]:
    """Headers that are present unless the operator turned the limit off."""
    return {
        "RateLimit": _answer_header("The rest of the key's rate limit.", required=False),
        "RateLimit-Policy": _answer_header("The key's rate limit.", required=False),
    }


def _answer_header(description: str, *, required: bool = True, **schema: object) -> dict[str, Any]:
    return {
        "description": description,
        "required": required,
        "schema": {"type": "string", **schema},
    }


def _parameter(parameter: Parameter, place: str) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": place,
        "required": place == "path",
        "description": parameter.description,
        "schema": dict(parameter.schema),
        "example": parameter.example,
    }


def _header(name: str, description: str, **schema: object) -> dict[str, Any]:
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": description,
        "schema": {"type": "string", **schema},
    }


def _content(name: str, examples: Any) -> dict[str, Any]:  # noqa: ANN401 - any mapping of JSON
    return {
        "application/json": {
            "schema": {"$ref": _REF.format(name=name)},
            "examples": {label: {"value": value} for label, value in examples.items()},
        }
    }


def _name_of(kind: Any) -> str:  # noqa: ANN401 - a type, or a generic alias
    (schema,), _ = msgspec.json.schema_components([kind], ref_template="{name}")
    return _readable(str(schema["$ref"]))


def _readable(name: str) -> str:
    """`EventPage`, not `Page_Event_`."""
    return _GENERIC.sub(r"\2\1", name)


def _without_titles(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Titles repeat the names of the types; descriptions come indented as in the source."""
    if isinstance(value, dict):
        return {
            key: cleandoc(item)
            if key == "description" and isinstance(item, str)
            else _without_titles(item)
            for key, item in value.items()
            if key != "title" or not isinstance(item, str)
        }
    return [_without_titles(item) for item in value] if isinstance(value, list) else value


def _line(error: type[Refusal]) -> str:
    return (error.__doc__ or "").partition("\n")[0]


if __name__ == "__main__":
    sys.stdout.buffer.write(openapi_text().encode())
