"""Authenticates Plaid's webhooks: an ES256 JWT in `Plaid-Verification` over the body's digest.

Plaid's "Webhook verification": the key comes from `/webhook_verification_key/get` by its `kid`; the
token is at most five minutes old; its claim `request_body_sha256` is the body's SHA-256 in
hexadecimal. JWS is RFC 7515, ES256 RFC 7518 section 3.4, the key RFC 7517.
"""

from __future__ import annotations

import asyncio
import binascii
import re
from base64 import urlsafe_b64decode
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Container, Mapping
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from typing import Any, Final
from weakref import WeakValueDictionary

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from countersign.errors import ProviderUnavailable, WebhookRefused
from countersign.identity.model import WebhookHint
from countersign.identity.reading import Unreadable, read_object, text
from countersign.identity.transport import ProviderReply, TransportFailure
from countersign.ports import Clock

HEADER: Final = "plaid-verification"
TOLERANCE_SECONDS: Final = 300
KEYS_MAX: Final = 16
"""Keys kept, and as many identifiers that turned out to be of no key."""
KEY_SECONDS: Final = 3600.0
"""How long a key is believed before Plaid is asked whether it has expired."""
NO_KEY_SECONDS: Final = 600.0
"""How long an identifier that is of no key is not asked about again."""
ASKS_MAX: Final = 6
ASKS_SECONDS: Final = 60.0
"""So many identifiers never seen are asked about in so many seconds: anybody can make one up. As
many again for messages that name a session that was asked about."""

_BODY_BYTES_MAX: Final = 4096
"""Of a body that is read before its signature is checked, only to tell which keys to ask for."""
_TOKEN: Final = re.compile(r"([A-Za-z0-9_-]{1,2048})\.([A-Za-z0-9_-]{1,2048})\.([A-Za-z0-9_-]{86})")
_BASE64URL: Final = re.compile(r"[A-Za-z0-9_-]*")
_KID: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_CODES: Final = frozenset({"STATUS_UPDATED", "STEP_UPDATED", "RETRIED"})

AskForKey = Callable[[str], Awaitable[ProviderReply]]
"""Sends `/webhook_verification_key/get` for a `kid`; raises TransportFailure."""


@dataclass(frozen=True, slots=True)
class _Key:
    public: ec.EllipticCurvePublicKey
    expired_at: int | None
    believed_until: float


class WebhookKeys:
    """Plaid's public keys by `kid`, asked for when first seen; bounded in every direction."""

    def __init__(self, ask: AskForKey, clock: Clock) -> None:
        self._ask = ask
        self._clock = clock
        # One for each key that is asked for: a key that is slow to come holds up no other.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._keys: OrderedDict[str, _Key] = OrderedDict()
        self._no_keys: OrderedDict[str, float] = OrderedDict()
        self._asked: dict[bool, deque[float]] = {
            expected: deque(maxlen=ASKS_MAX) for expected in (False, True)
        }

    async def get(self, kid: str, *, expected: bool = False) -> ec.EllipticCurvePublicKey:
        """The key, if it is one and has not expired.

        Args:
            kid: as the message has it, from whomever it is.
            expected: whether the message names a session that was asked about, which strangers
                cannot: what they send must not use up what is asked for those.

        Raises:
            WebhookRefused: there is none.
            ProviderUnavailable: Plaid cannot be asked now; send the message again.
        """
        key = self._believed(kid)
        if key is None:
            lock = self._locks.setdefault(kid, asyncio.Lock())
            # A hundred messages with one new key are one question.
            async with lock:
                key = self._believed(kid) or await self._fetch(kid, expected=expected)
        if key.expired_at is not None and key.expired_at <= self._clock.time_ns() // 10**9:
            raise WebhookRefused("The key that signed the message has expired.")
        return key.public

    def _believed(self, kid: str) -> _Key | None:
        key = self._keys.get(kid)
        return key if key is not None and self._clock.monotonic() < key.believed_until else None

    async def _fetch(self, kid: str, *, expected: bool) -> _Key:
        now = self._clock.monotonic()
        if kid not in self._keys:
            self._limit(kid, now, self._asked[expected])
        try:
            reply = await self._ask(kid)
        except TransportFailure as failure:
            raise ProviderUnavailable(retry_after=failure.retry_after or 5) from None
        if reply.status >= 500 or reply.status in {408, 429}:
            raise ProviderUnavailable(retry_after=reply.retry_after or 5)
        self._keys.pop(kid, None)
        try:
            public, expired_at = _read_key(reply, kid)
        except Unreadable:
            self._no_keys[kid] = now + NO_KEY_SECONDS
            _keep_newest(self._no_keys)
            raise WebhookRefused("The message is signed with a key that is not known.") from None
        key = _Key(public, expired_at, now + KEY_SECONDS)
        self._keys[kid] = key
        _keep_newest(self._keys)
        return key

    def _limit(self, kid: str, now: float, asked: deque[float]) -> None:
        if now < self._no_keys.get(kid, now):
            raise WebhookRefused("The message is signed with an unknown key.")
        if len(asked) == ASKS_MAX and now - asked[0] < ASKS_SECONDS:
            # Plaid sends a genuine message again.
            raise ProviderUnavailable(retry_after=int(ASKS_SECONDS))
        asked.append(now)


async def read(
    headers: Mapping[str, str],
    body: bytes,
    *,
    keys: WebhookKeys,
    now: int,
    session_id: re.Pattern[str],
    asked_about: Container[str] = (),
) -> WebhookHint | None:
    """What an authentic message hints at.

    Args:
        headers: names in small letters.
        body: as received.
        keys: Plaid's.
        now: Unix time in seconds.
        session_id: what identifiers of sessions look like.
        asked_about: sessions that were asked about; see `WebhookKeys.get`.

    Raises:
        WebhookRefused: it is not authentic, too old, or unreadable.
        ProviderUnavailable: it cannot be told now.
    """
    token = _TOKEN.fullmatch(headers.get(HEADER, ""))
    if token is None:
        raise WebhookRefused("The message has no well-formed signature.")
    try:
        kid = _kid(_segment(token[1]))
        _check_claims(_segment(token[2]), body, now)
        signature = _decode(token[3])
    except Unreadable:
        raise WebhookRefused("The message's signature is not readable.") from None
    public = await keys.get(kid, expected=_session_named(body) in asked_about)
    signed = f"{token[1]}.{token[2]}".encode("ascii")
    der = encode_dss_signature(
        int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
    )
    try:
        public.verify(der, signed, ec.ECDSA(SHA256()))
    except InvalidSignature:
        raise WebhookRefused("The message's signature is wrong.") from None
    try:
        return _hint(read_object(body), sha256(signed).hexdigest(), session_id)
    except Unreadable:
        raise WebhookRefused("The message is not readable.") from None


def _session_named(body: bytes) -> str:
    """The session that a message names, authentic or not; empty if it is too long to be looked at.

    Plaid's messages have some 200 bytes.
    """
    if len(body) > _BODY_BYTES_MAX:
        return ""
    try:
        named = read_object(body).get("identity_verification_id")
    except Unreadable:
        return ""
    return named if isinstance(named, str) else ""


def _kid(header: Mapping[str, Any]) -> str:
    # The algorithm is ours to say: a token that brings another one, or `none`, is no token.
    if header.get("alg") != "ES256" or "crit" in header:
        raise Unreadable("alg")
    kid = header.get("kid")
    if not isinstance(kid, str) or _KID.fullmatch(kid) is None:
        raise Unreadable("kid")
    return kid


def _check_claims(claims: Mapping[str, Any], body: bytes, now: int) -> None:
    issued, digest = claims.get("iat"), claims.get("request_body_sha256")
    if not isinstance(issued, int) or isinstance(issued, bool):
        raise Unreadable("iat")
    if not isinstance(digest, str) or _DIGEST.fullmatch(digest) is None:
        raise Unreadable("request_body_sha256")
    if abs(now - issued) > TOLERANCE_SECONDS:
        raise WebhookRefused("The message's timestamp is too old or in the future.")
    if not compare_digest(digest, sha256(body).hexdigest()):
        raise WebhookRefused("The message is not the message that was signed.")


def _hint(event: Mapping[str, Any], signed: str, session_id: re.Pattern[str]) -> WebhookHint | None:
    if text(event.get("webhook_type"), "webhook_type") != "IDENTITY_VERIFICATION":
        return None
    if text(event.get("webhook_code"), "webhook_code") not in _CODES:
        return None
    about = text(event.get("identity_verification_id"), "identity_verification_id") or ""
    if session_id.fullmatch(about) is None:
        raise Unreadable("identity_verification_id")
    # Plaid's events have no identifier, and two of one session have the same body; what is signed
    # differs by the time.
    return WebhookHint(session_id=about, event_key=signed)


def _read_key(reply: ProviderReply, kid: str) -> tuple[ec.EllipticCurvePublicKey, int | None]:
    if reply.status != 200:
        raise Unreadable("status")
    jwk = read_object(reply.body).get("key")
    if not isinstance(jwk, dict) or jwk.get("kid") != kid:
        raise Unreadable("kid")
    if (jwk.get("kty"), jwk.get("crv"), jwk.get("alg"), jwk.get("use")) != (
        "EC",
        "P-256",
        "ES256",
        "sig",
    ):
        raise Unreadable("kty")
    expired_at = jwk.get("expired_at")
    if expired_at is not None and (not isinstance(expired_at, int) or isinstance(expired_at, bool)):
        raise Unreadable("expired_at")
    x, y = (_decode(text(jwk.get(name), name) or "") for name in ("x", "y"))
    if len(x) != 32 or len(y) != 32:
        raise Unreadable("x")
    numbers = ec.EllipticCurvePublicNumbers(
        int.from_bytes(x, "big"), int.from_bytes(y, "big"), ec.SECP256R1()
    )
    try:
        return numbers.public_key(), expired_at
    except ValueError:
        raise Unreadable("not on the curve") from None


def _segment(encoded: str) -> Mapping[str, Any]:
    return read_object(_decode(encoded))


def _decode(encoded: str) -> bytes:
    if _BASE64URL.fullmatch(encoded) is None:
        raise Unreadable("base64url")
    try:
        return urlsafe_b64decode(encoded.encode("ascii") + b"=" * (-len(encoded) % 4))
    except binascii.Error:
        raise Unreadable("base64url") from None


def _keep_newest(kept: OrderedDict[str, Any]) -> None:
    while len(kept) > KEYS_MAX:
        kept.popitem(last=False)
