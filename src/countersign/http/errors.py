"""From refusals to HTTP: the one table of statuses, and the one shape of a failure."""

from typing import Final

import msgspec

from countersign.errors import (
    ClearanceClosed,
    ClearanceNotGranted,
    CursorExpired,
    EmptyInitials,
    Erased,
    EvidenceDamaged,
    EvidencePending,
    Forbidden,
    IdempotencyInProgress,
    IdempotencyKeyReused,
    InitialsCountMismatch,
    InternalError,
    InvalidApiKey,
    InvalidRequest,
    MethodNotAllowed,
    ModeMismatch,
    NotFound,
    NoticeNotFound,
    NoticeNotInForce,
    NoticeNotReviewed,
    NoticeVersionMismatch,
    Overloaded,
    PayloadTooLarge,
    ProviderSessionNotBound,
    ProviderSessionNotFound,
    ProviderUnavailable,
    RateLimited,
    Refusal,
    Retryable,
    StorageUnavailable,
    TooManyWebhookEndpoints,
    Unauthorized,
    UnsupportedMediaType,
    VerificationMisconfigured,
    VerificationNotConfigured,
    WebhookEndpointDisabled,
    WebhookRefused,
)
from countersign.http.reply import JSON, NO_STORE, Header, Reply
from countersign.http.schemas import ErrorBody, ErrorDetail

STATUS: Final[dict[type[Refusal], int]] = {
    InvalidRequest: 400,
    WebhookRefused: 400,
    Unauthorized: 401,
    InvalidApiKey: 401,
    Forbidden: 403,
    ModeMismatch: 403,
    NotFound: 404,
    NoticeNotFound: 404,
    MethodNotAllowed: 405,
    NoticeNotReviewed: 409,
    NoticeNotInForce: 409,
    NoticeVersionMismatch: 409,
    IdempotencyInProgress: 409,
    VerificationNotConfigured: 409,
    VerificationMisconfigured: 409,
    EvidencePending: 409,
    EvidenceDamaged: 409,
    ClearanceNotGranted: 409,
    ClearanceClosed: 409,
    TooManyWebhookEndpoints: 409,
    WebhookEndpointDisabled: 409,
    Erased: 410,
    CursorExpired: 410,
    PayloadTooLarge: 413,
    UnsupportedMediaType: 415,
    InitialsCountMismatch: 422,
    EmptyInitials: 422,
    IdempotencyKeyReused: 422,
    ProviderSessionNotFound: 422,
    ProviderSessionNotBound: 422,
    RateLimited: 429,
    InternalError: 500,
    Overloaded: 503,
    StorageUnavailable: 503,
    ProviderUnavailable: 503,
}
"""What the table lacks becomes a bare 500."""

_REALM: Final = 'Bearer realm="countersign"'
_encode: Final = msgspec.json.Encoder().encode


def error_reply(refusal: Refusal, help_base: str) -> Reply:
    """The answer to a refusal; `help_base` is the address of the page of errors."""
    status = STATUS.get(type(refusal))
    if status is None:
        refusal, status = InternalError(), STATUS[InternalError]
    headers: list[Header] = [
        JSON,
        NO_STORE,
        (b"link", f'<{help_base}#{refusal.code}>; rel="help"'.encode()),
    ]
    if isinstance(refusal, Retryable):
        headers.append((b"retry-after", str(refusal.retry_after).encode()))
    if isinstance(refusal, Unauthorized):
        headers.append((b"www-authenticate", _REALM.encode()))
    elif isinstance(refusal, InvalidApiKey):
        headers.append((b"www-authenticate", f'{_REALM}, error="invalid_token"'.encode()))
    elif isinstance(refusal, Forbidden):
        challenge = f'{_REALM}, error="insufficient_scope", scope="{refusal.scope}"'
        headers.append((b"www-authenticate", challenge.encode()))
    body = ErrorBody(error=ErrorDetail(code=refusal.code, message=refusal.message))
    return Reply(_encode(body), tuple(headers), status)
