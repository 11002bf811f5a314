"""What a route declares: routing, keys and scopes, validation and the OpenAPI document."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeAlias, TypeVar

from countersign.access.key import Scope
from countersign.errors import (
    Forbidden,
    IdempotencyInProgress,
    IdempotencyKeyReused,
    InternalError,
    InvalidApiKey,
    InvalidRequest,
    MethodNotAllowed,
    Overloaded,
    PayloadTooLarge,
    RateLimited,
    Refusal,
    StorageUnavailable,
    Unauthorized,
    UnsupportedMediaType,
)
from countersign.http.reply import Call, Reply
from countersign.http.schemas import Request

R_contra = TypeVar("R_contra", contravariant=True)
"""What a handler works with."""

Handler: TypeAlias = Callable[[R_contra, Call], Awaitable[Reply]]

_WITH_A_KEY: Final = (
    InvalidRequest,
    Unauthorized,
    InvalidApiKey,
    Forbidden,
    RateLimited,
    Overloaded,
    StorageUnavailable,
)
_WITH_A_BODY: Final = (
    PayloadTooLarge,
    UnsupportedMediaType,
    IdempotencyKeyReused,
    IdempotencyInProgress,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route(Generic[R_contra]):
    """One operation of the API, or, without the name of an operation, another address.

    A path has at most one `{parameter}`, a whole segment of it, or ends in `{path*}`, which matches
    all paths below it.
    """

    address: str
    """Method and path, as in `GET /v1/notices/{notice_id}`."""
    handler: Handler[R_contra]
    room: type[Any] = object
    """What the handler works with."""
    operation: str = ""
    summary: str = ""
    tag: str = ""
    scope: Scope | None = None
    """The scope that the key must have; None: no key is needed."""
    query: type[Request] | None = None
    request: type | None = None
    raw_body_max: int = 0
    """Maximum size in bytes of a raw body that a third party sends and signs, without a key."""
    decide_again: Callable[[bytes], bool] | None = None
    """Whether the request is decided again instead of replaying this stored response."""
    response: Any = None
    media_type: str = "application/json"
    """Media type of the response; `response` describes only JSON."""
    refusals: tuple[type[Refusal], ...] = ()
    """What this operation refuses, besides what all operations of its kind do: see `errors`."""
    request_examples: Mapping[str, Any] = field(default_factory=dict)
    response_examples: Mapping[str, Any] = field(default_factory=dict)
    request_headers: Mapping[str, str] = field(default_factory=dict)
    """Optional headers of the request: name → description."""
    response_headers: Mapping[str, str] = field(default_factory=dict)
    """Headers of every successful response; with an `ETag`, the response can also be a 304."""
    optional_response_headers: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Links of a response: operation → parameter → member of the response, a JSON pointer."""

    @property
    def method(self) -> str:
        return self.address.partition(" ")[0]

    @property
    def path(self) -> str:
        return self.address.partition(" ")[2]

    @property
    def errors(self) -> tuple[type[Refusal], ...]:
        """Every refusal that this operation can return."""
        found: list[type[Refusal]] = [MethodNotAllowed]
        if self.scope is not None:
            found += _WITH_A_KEY
        if self.request is not None:
            found += _WITH_A_BODY
        found += [*self.refusals, InternalError]
        return tuple(dict.fromkeys(found))


def grouped(
    tag: str, room: type[R_contra], *routes: Route[R_contra]
) -> tuple[Route[R_contra], ...]:
    """These routes, in one group of the OpenAPI document and over one room."""
    return tuple(replace(route, tag=tag, room=room) for route in routes)
