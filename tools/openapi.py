"""The OpenAPI 3.1 document of the routes; `make openapi` runs this module.

It writes `spec/openapi.json`, which is committed, shipped with the service and served by it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from inspect import cleandoc
from typing import Any, Final

from countersign import __version__
from countersign.base.errors import (
    AccountDisabled,
    Blocked,
    Forbidden,
    IdempotencyInProgress,
    IdempotencyKeyReused,
    InternalError,
    InvalidApiKey,
    InvalidClientToken,
    InvalidRequest,
    MethodNotAllowed,
    ModeMismatch,
    NotFound,
    NotGranted,
    OriginNotAllowed,
    OutcomeUnknown,
    Overloaded,
    PasskeyRequired,
    PayloadTooLarge,
    RateLimited,
    Refusal,
    Retryable,
    SecretNotRepeated,
    StorageUnavailable,
    Unauthorized,
    UnsupportedMediaType,
)
from countersign.base.http import schemas
from countersign.base.http.schemas import ErrorBody
from countersign.base.values import Mode
from countersign.core.access.key import BRAND, CLIENT_TOKEN, LIVE_SCOPES
from countersign.core.access.reach import DeploymentReach
from countersign.core.gate.route import REASON_LENGTH_MAX, REASON_LENGTH_MIN, Route
from countersign.server.persons import looks
from countersign.server.routes import ROUTES
from countersign.staff.acts.holds import MATTER_ID
from countersign.staff.acts.keys import KEY_ID
from countersign.staff.acts.orders import HOLD_ID, ORDER_ID
from countersign.staff.acts.people import SESSION_ID
from countersign.staff.people.model import PERSON_ID
from tools.openapi_components import REF, Schemas, name_of, with_references
from tools.openapi_examples import request_examples, response_examples

_DESCRIPTION: Final = (
    "Notices, acknowledgments and buyer verification for a vendor's checkout.\n\nEvery failure "
    'has the same body: `{"error": {"code", "message"}}`. The code is stable; the `Link` header '
    "has the URL of its explanation. A 200 response means that its content is stored durably.\n\n"
    "Integers are sent without a fraction or an exponent: `483`, not `483.0`, which is refused.\n\n"
    "Where the console is on, a person calls with the token of a session in the place of a key. "
    "The headers `Countersign-Account` and `Countersign-Mode` name account and mode; with a key "
    "they are not looked at.\n"
)
_CONSOLE: Final = "It answers only where the console is on, else with `not_found`."
_WITH_A_KEY: Final = (
    InvalidRequest,
    Unauthorized,
    InvalidApiKey,
    AccountDisabled,
    Forbidden,
    RateLimited,
    Overloaded,
    Blocked,
    StorageUnavailable,
)
_WITH_A_TOKEN: Final = (
    InvalidRequest,
    InvalidClientToken,
    OriginNotAllowed,
    RateLimited,
    Overloaded,
    Blocked,
    StorageUnavailable,
)
_WITH_A_BODY: Final = (
    PayloadTooLarge,
    UnsupportedMediaType,
    IdempotencyKeyReused,
    IdempotencyInProgress,
)
_PATH_PARAMETERS: Final = {
    "checkout_session_id": ("Identifier of the checkout session.", schemas.CHECKOUT_SESSION_ID),
    "notice_id": ("Identifier of the notice.", "ab1263"),
    "ack_id": ("Identifier of the acknowledgment.", schemas.ACK_ID),
    "cbid": ("The buyer identifier.", schemas.CBID),
    "clearance_id": ("Identifier of the clearance.", schemas.CLEARANCE_ID),
    "event_id": ("Identifier of the event.", schemas.EVENT_ID),
    "account_id": ("Identifier or name of the account.", schemas.ACCOUNT_ID),
    "hold_id": ("Identifier of the hold.", HOLD_ID),
    "matter_id": ("Identifier of the matter.", MATTER_ID),
    "order_id": ("Identifier of the order, or of any of its parts.", ORDER_ID),
    "key_id": ("Identifier of the API key.", KEY_ID),
    "endpoint_id": ("Identifier of the webhook endpoint.", schemas.ENDPOINT_ID),
    "person_id": ("Identifier of the person.", PERSON_ID),
    "session_id": ("Identifier of the person's session.", SESSION_ID),
}
"""Description and example by name."""


def openapi_document(routes: Sequence[Route[Any]]) -> dict[str, Any]:
    """The document for the routes that are operations, complete in each place."""
    routes = [route for route in routes if route.operation]
    schemas = Schemas(
        # Generators make one type of a schema with a name, and one for each place of any other.
        [ErrorBody, Mode, *(kind for r in routes for kind in (r.request, r.response) if kind)],
        [route.query for route in routes if route.query],
    )
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        parameters = schemas.parameters[route.query] if route.query else []
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, parameters)
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
            "schemas": schemas.components,
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": (
                        f"An API key, such as `{BRAND}_sk_test_…`. Test keys can access only "
                        "the sandbox."
                    ),
                },
                "client_token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": (
                        f"The token of one checkout session, such as `{CLIENT_TOKEN}_test_…`."
                    ),
                },
            },
        },
    }


def openapi_text(routes: Sequence[Route[Any]]) -> str:
    """The document as it is committed."""
    document = with_references(openapi_document(routes))
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _operation(route: Route[Any], query: list[dict[str, Any]]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.operation,
        "summary": route.summary,
        "description": cleandoc(route.handler.__doc__ or "").partition("\n\nRaises:")[0],
        "tags": [route.tag],
        "parameters": [
            *_path(route.path),
            *query,
            *(_header(name, description) for name, description in route.request_headers.items()),
        ],
        "responses": _responses(route),
        "security": [],
    }
    if route.scope is not None:
        operation["security"] = [{"key": []}]
        operation["description"] += f"\n\nNeeds the scope `{route.scope}`."
        operation["parameters"] += _headers_of_person(route)
    operation["description"] += "".join(f" {words}" for words in _of_person(route))
    if route.console:
        operation["x-console"] = True
    if route.client_token:
        operation["security"] = [{"client_token": []}]
    if route.request is not None and route.scope is not None:
        operation["parameters"].append(
            _header(
                "Idempotency-Key",
                "Makes a retry safe: for 24 hours the same key and body get exactly the first "
                "response again, with `Idempotent-Replayed: true`. A granted clearance only while "
                "it would still be granted, and nothing that names what was erased since.",
                minLength=1,
                maxLength=255,
                pattern='^(?!""$)[!-~]+$',
            )
        )
    if route.request is not None:
        operation["requestBody"] = {
            "required": True,
            "content": _content(
                name_of(route.request), request_examples(route.request, route.request_examples)
            ),
        }
    return operation


def _of_person(route: Route[Any]) -> Iterator[str]:
    """Requirements for a person besides a role with the scope."""
    if route.console:
        yield _CONSOLE
    if route.fresh:
        yield "A person needs a fresh passkey."
    if _is_live(route):
        yield "Both modes of the account share it: a person names live mode."
    if route.personal:
        yield "It discloses personal data: a person gives the reason in `Countersign-Reason`."


def _is_live(route: Route[Any]) -> bool:
    """Whether it changes what both modes of an account share."""
    return route.scope in LIVE_SCOPES and route.reach is not DeploymentReach and not looks(route)


def _headers_of_person(route: Route[Any]) -> Iterator[dict[str, Any]]:
    """Headers of a person: account, mode, and the reason for seeing personal data."""
    yield _header("Countersign-Account", "Of a person: the account. Left out: the deployment.")
    mode = _header(
        "Countersign-Mode", "Of a person: the mode, which an account needs. Left out: live."
    )
    # Elsewhere that of a key is not read.
    yield mode | ({"schema": {"$ref": REF.format(name=Mode.__name__)}} if route.console else {})
    if route.personal:
        length = {"minLength": REASON_LENGTH_MIN, "maxLength": REASON_LENGTH_MAX}
        shown = _header(
            "Countersign-Reason",
            "Of a person: why personal data is looked at, in "
            f"{REASON_LENGTH_MIN} to {REASON_LENGTH_MAX} characters. The audit keeps it.",
            # Elsewhere that of a key is not read.
            **(length if route.console else {}),
        )
        # Keys must also give a reason for data that otherwise only the console shows.
        yield shown | {"required": route.console}


def _responses(route: Route[Any]) -> dict[str, Any]:
    always = {
        "X-Request-Id": _response_header(
            "Identifies the request. Include it when you report a problem."
        ),
    }
    success: dict[str, Any] = {
        "description": "Done.",
        "headers": always | _success_headers(route),
        "content": _response_content(route),
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
    if "ETag" in route.response_headers:
        responses["304"] = {"description": "Your copy is current.", "headers": success["headers"]}
    by_status: dict[int, list[type[Refusal]]] = {}
    for error in refusals_of(route):
        by_status.setdefault(error.status, []).append(error)
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


def refusals_of(route: Route[Any]) -> Iterable[type[Refusal]]:
    """Every refusal that this operation can return, once."""
    found: list[type[Refusal]] = [MethodNotAllowed]
    if route.scope is not None:
        found += _WITH_A_KEY
    if route.fresh:
        found.append(PasskeyRequired)
    if _is_live(route):
        found.append(ModeMismatch)
    if route.secret:
        found.append(SecretNotRepeated)
    if route.client_token:
        found += _WITH_A_TOKEN
    if route.method != "GET" and (route.scope is not None or route.client_token):
        found.append(OutcomeUnknown)
    if route.request is not None:
        found += _WITH_A_BODY if route.scope is not None else _WITH_A_BODY[:2]
    if route.console:
        found.append(NotFound)
        found += [NotGranted] if route.method != "GET" else []
    return dict.fromkeys([*found, *route.refusals, InternalError])


def _response_content(route: Route[Any]) -> dict[str, Any]:
    if route.response is not None:
        found = response_examples(route.response, route.response_examples)
        return _content(name_of(route.response), found)
    media_type = route.media_type.partition(";")[0]
    written = {label: {"value": value} for label, value in route.response_examples.items()}
    text = media_type.startswith("text/")
    if text:
        return {media_type: {"schema": {"type": "string"}, "examples": written}}
    # Code generators know bytes by this format, which OpenAPI 3.1 itself no longer needs.
    return {media_type: {"schema": {"type": "string", "format": "binary"}}}


def _webhook() -> dict[str, Any]:
    """The message that a webhook endpoint receives (Standard Webhooks)."""
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
            "content": {"application/json": {"schema": {"$ref": REF.format(name="Event")}}},
        },
        "responses": {
            "2XX": {"description": "Received; the event is not sent again."},
            "410": {"description": "The endpoint no longer exists; the service disables it."},
            "default": {"description": "The event is sent again later."},
        },
    }


def _success_headers(route: Route[Any]) -> dict[str, Any]:
    headers = {name: _response_header(text) for name, text in route.response_headers.items()}
    headers |= {
        name: _response_header(text, required=False)
        for name, text in route.optional_response_headers.items()
    }
    if route.request is not None and route.scope is not None:
        headers["Idempotent-Replayed"] = _response_header(
            "Present if this repeats the first response for the Idempotency-Key.",
            required=False,
            const="true",
        )
    if route.scope is not None:
        headers |= _rate_limit_headers()
    return headers


def _error_headers(errors: Sequence[type[Refusal]]) -> dict[str, Any]:
    headers: dict[str, Any] = {
        "Link": _response_header("The URL of the explanation of the error code.")
    }
    retryable = [issubclass(error, Retryable) for error in errors]
    if any(retryable):
        headers["Retry-After"] = _response_header(
            "The number of seconds to wait.", required=all(retryable), type="integer", minimum=1
        )
    challenged = [e in {Unauthorized, InvalidApiKey, InvalidClientToken, Forbidden} for e in errors]
    if any(challenged):
        headers["WWW-Authenticate"] = _response_header(
            "The problem with the key (RFC 6750).", required=all(challenged)
        )
    if RateLimited in errors:
        headers |= _rate_limit_headers()
    if MethodNotAllowed in errors:
        headers["Allow"] = _response_header("The methods that this path supports.")
    return headers


def _rate_limit_headers() -> dict[str, Any]:
    """Headers that are present unless the operator turned the limit off."""
    return {
        "RateLimit": _response_header("The rest of the key's rate limit.", required=False),
        "RateLimit-Policy": _response_header("The key's rate limit.", required=False),
    }


def _response_header(
    description: str, *, required: bool = True, **schema: object
) -> dict[str, Any]:
    return {
        "description": description,
        "required": required,
        "schema": {"type": "string", **schema},
    }


def _path(path: str) -> list[dict[str, Any]]:
    """The parameter in a path, if there is one."""
    name = path.partition("{")[2].partition("}")[0]
    if not name:
        return []
    description, example = _PATH_PARAMETERS[name]
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": description,
            "schema": {"type": "string"},
            "example": example,
        }
    ]


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
            "schema": {"$ref": REF.format(name=name)},
            "examples": {label: {"value": value} for label, value in examples.items()},
        }
    }


def _line(error: type[Refusal]) -> str:
    return (error.__doc__ or "").partition("\n")[0]


if __name__ == "__main__":
    sys.stdout.buffer.write(openapi_text(ROUTES).encode())
