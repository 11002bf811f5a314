"""The one shape of a failure."""

from typing import Final

import msgspec

from countersign.base.errors import (
    Forbidden,
    InternalError,
    InvalidApiKey,
    InvalidClientToken,
    Refusal,
    Retryable,
    Unauthorized,
)
from countersign.base.http.schemas import ErrorBody, ErrorDetail
from countersign.core.gate.reply import JSON, NO_STORE, Header, Reply

_REALM: Final = 'Bearer realm="countersign"'
_encode: Final = msgspec.json.Encoder().encode


def error_reply(refusal: Refusal, help_base: str) -> Reply:
    """The response to a refusal; `help_base` is the address of the page of errors."""
    if refusal.status == InternalError.status:
        refusal = InternalError()
    headers: list[Header] = [
        JSON,
        NO_STORE,
        (b"link", f'<{help_base}#{refusal.code}>; rel="help"'.encode()),
    ]
    if isinstance(refusal, Retryable):
        headers.append((b"retry-after", str(refusal.retry_after).encode()))
    if isinstance(refusal, Unauthorized):
        headers.append((b"www-authenticate", _REALM.encode()))
    elif isinstance(refusal, InvalidApiKey | InvalidClientToken):
        headers.append((b"www-authenticate", f'{_REALM}, error="invalid_token"'.encode()))
    elif isinstance(refusal, Forbidden):
        challenge = f'{_REALM}, error="insufficient_scope", scope="{refusal.scope}"'
        headers.append((b"www-authenticate", challenge.encode()))
    body = ErrorBody(error=ErrorDetail(code=refusal.code, message=refusal.message))
    return Reply(_encode(body), tuple(headers), refusal.status)
