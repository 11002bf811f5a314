"""Checks of a request's headers before its body is read."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from countersign.base.errors import InvalidRequest, Unauthorized
from countersign.base.values import Mode
from countersign.core.access.idempotency import KEY_LENGTH_MAX
from countersign.core.access.key import BRAND
from countersign.core.gate.reply import Call

_KEY: Final = re.compile(rb"[!-~]{1,%d}" % KEY_LENGTH_MAX)
ACCOUNT: Final = b"countersign-account"
MODE: Final = b"countersign-mode"
REASON: Final = b"countersign-reason"
"""Headers of a person's call that a key implies or does not need."""
REASON_LENGTH_MIN: Final = 3
REASON_LENGTH_MAX: Final = 200
_UTF8_BYTES_MAX: Final = 4
"""Of a character."""
_ONCE: Final = (*b"host authorization content-type idempotency-key".split(), ACCOUNT, MODE, REASON)


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


def place(call: Call) -> tuple[str, Mode]:
    """The account and the mode that a person's call is about; no account: it is about none.

    Raises:
        InvalidRequest: the mode is missing although an account is named, or is no mode.
    """
    account = call.headers.get(ACCOUNT, b"").decode("latin-1").strip()
    said = call.headers.get(MODE, b"" if account else Mode.LIVE.value.encode())
    try:
        return account, Mode(said.decode("latin-1").strip())
    except ValueError:
        raise InvalidRequest("The header Countersign-Mode must be test or live.") from None


def reason(call: Call) -> str:
    """Why a person looks at personal data, in UTF-8.

    Raises:
        InvalidRequest: none is given, or it is too short, too long or not printable.
    """
    given = call.headers.get(REASON, b"")
    try:
        # Composing takes quadratic time: it sees no more bytes than a reason can have.
        text = given.decode() if len(given) <= _UTF8_BYTES_MAX * REASON_LENGTH_MAX else ""
        text = unicodedata.normalize("NFC", text).strip()
    except UnicodeDecodeError:
        text = ""
    if REASON_LENGTH_MIN <= len(text) <= REASON_LENGTH_MAX and text.isprintable():
        return text
    raise InvalidRequest(
        f"Personal data is shown for a reason: send {REASON_LENGTH_MIN} to {REASON_LENGTH_MAX} "
        "printable characters in the header Countersign-Reason."
    )
