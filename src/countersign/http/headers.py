"""What the headers of a request must say before its body is looked at."""

from __future__ import annotations

import re
from typing import Final

from countersign.access.idempotency import KEY_LENGTH_MAX
from countersign.access.key import BRAND
from countersign.errors import InvalidRequest, Unauthorized
from countersign.http.reply import Call

_KEY: Final = re.compile(rb"[!-~]{1,%d}" % KEY_LENGTH_MAX)
_ONCE: Final = (b"authorization", b"content-type", b"idempotency-key")


def refuse_repeated(call: Call) -> None:
    """A proxy may have used the first of two; this server would use the last."""
    names = [name for name, _ in call.raw_headers]
    for name in _ONCE:
        if names.count(name) > 1:
            raise InvalidRequest(f"The header {name.decode()} was sent twice.")


def bearer(call: Call) -> bytes:
    """The token of `Authorization: Bearer …`; the scheme in any letter case (RFC 6750 §2.1)."""
    value = call.headers.get(b"authorization", b"")
    scheme, _, token = value.strip().partition(b" ")
    token = token.strip()
    if scheme.lower() == b"bearer" and token:
        return token
    if scheme.startswith(BRAND.encode()):
        msg = "The API key was sent without the word Bearer in front of it."
    elif scheme:
        msg = "The Authorization header does not have the form `Bearer <API_KEY>`."
    else:
        msg = "No API key was sent."
    raise Unauthorized(f"{msg} {Unauthorized.remedy}")


def is_plain_json(call: Call) -> bool:
    """Whether the body is said to be JSON in UTF-8, without compression."""
    said = call.headers.get(b"content-type", b"")
    if said == b"application/json" and b"content-encoding" not in call.headers:
        return True  # as almost all say it
    media_type, _, parameters = said.partition(b";")
    if media_type.strip().lower() != b"application/json":
        return False
    for parameter in parameters.split(b";"):
        name, _, value = parameter.strip().lower().partition(b"=")
        if name == b"charset" and value.strip(b'"') not in {b"utf-8", b"utf8"}:
            return False
    return call.headers.get(b"content-encoding", b"identity").strip().lower() == b"identity"


def idempotency_key(call: Call) -> str | None:
    """The key, bare or as a structured-field string (draft-ietf-httpapi-idempotency-key-header).

    Raises:
        InvalidRequest: it is longer, or has other characters, than a key may.
    """
    value = call.headers.get(b"idempotency-key")
    if value is None:
        return None
    key = value.strip()
    if len(key) > 1 and key[:1] == key[-1:] == b'"':
        key = key[1:-1]
    if _KEY.fullmatch(key) is None:
        raise InvalidRequest(
            f"An Idempotency-Key must have 1 to {KEY_LENGTH_MAX} visible ASCII characters."
        )
    return key.decode("ascii")
