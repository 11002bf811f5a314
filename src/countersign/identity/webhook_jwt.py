"""Webhooks signed with a JWT (ES256) over the body's digest, by a key that the provider publishes.

Keys are fetched by their identifier when first used; how many and how often is bounded. JWS is RFC
7515, ES256 RFC 7518 section 3.4.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from typing import Any, Final, TypeAlias
from weakref import WeakValueDictionary

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

from countersign.base.errors import ProviderUnavailable, WebhookRefused
from countersign.base.values import Clock
from countersign.identity.json_reader import Unreadable, parse, word
from countersign.identity.transport import TransportFailure
from countersign.identity.webhook_signature import is_fresh

KEYS_MAX: Final = 16
"""Keys kept, and as many identifiers that belong to no key."""
KEY_SECONDS: Final = 3600.0
"""How long a key is used before it is fetched again, to see whether it has expired."""
NO_KEY_SECONDS: Final = 600.0
"""How long an identifier without a key is not looked up again."""
FETCHES_MAX: Final = 6
FETCHES_SECONDS: Final = 60.0
"""Limit of lookups of new identifiers per interval: anyone can invent one. As many again for
messages about a retrieved session."""
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{1,2048}\.[A-Za-z0-9_-]{1,2048}\.[A-Za-z0-9_-]{86}")
_KID: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
_UNKNOWN_KEY: Final = "The message is signed with an unknown key."
_ES256: Final = ["ES256"]
"""Fixed: a token that names another algorithm, or `none`, is refused."""
_JWS: Final = jwt.PyJWS(algorithms=_ES256)


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key of the provider."""

    key: EllipticCurvePublicKey
    expired_at: int | None
    """Unix seconds; None while it is in use."""


FetchKey: TypeAlias = Callable[[str], Awaitable[PublicKey]]
"""Fetches a key; raises TransportFailure, or Unreadable if there is none."""


class WebhookKeys:
    """The keys by `kid`, fetched when first used."""

    def __init__(self, fetch: FetchKey, clock: Clock) -> None:
        self._fetch = fetch
        self._clock = clock
        # One for each key being fetched: a slow one does not delay others.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._keys: OrderedDict[str, tuple[PublicKey, float]] = OrderedDict()
        self._no_keys: OrderedDict[str, float] = OrderedDict()
        self._fetches: dict[bool, deque[float]] = {
            expected: deque(maxlen=FETCHES_MAX) for expected in (False, True)
        }

    async def verify(self, token: str, body: bytes, now: int, *, expected: bool) -> str:
        """The SHA-256 of the content that an authentic token signs, in hexadecimal.

        Args:
            token: a JWT, from anybody.
            body: as received.
            now: Unix time in seconds.
            expected: see `get`.

        Raises:
            WebhookRefused: it is not authentic, too old, or of another body.
            Unreadable: its claims are no JSON object.
            ProviderUnavailable: its key cannot be fetched now.
        """
        key = await self.get(_checked_kid(token, body, now), expected=expected)
        try:
            _JWS.decode(token, key, algorithms=_ES256)
        except jwt.PyJWTError:
            raise WebhookRefused("The message's signature is wrong.") from None
        return sha256(token.rpartition(".")[0].encode("ascii")).hexdigest()

    async def get(self, kid: str, *, expected: bool) -> EllipticCurvePublicKey:
        """The key, if it exists and has not expired.

        `expected` is whether the message, not authenticated yet, names a retrieved session.
        Strangers cannot name one, so their messages do not use up the fetches for those.

        Raises:
            WebhookRefused: there is none.
            ProviderUnavailable: it cannot be fetched now; send the message again.
        """
        # A hundred messages with one new key are one request.
        async with self._locks.setdefault(kid, asyncio.Lock()):
            key, until = self._keys.get(kid, (None, 0.0))
            if key is None or self._clock.monotonic() >= until:
                key = await self._fetched(kid, self._fetches[expected])
        if key.expired_at is not None and key.expired_at <= self._clock.time_ns() // 10**9:
            raise WebhookRefused("The key that signed the message has expired.")
        return key.key

    async def _fetched(self, kid: str, fetches: deque[float]) -> PublicKey:
        now = self._clock.monotonic()
        if kid not in self._keys:
            if now < self._no_keys.get(kid, now):
                raise WebhookRefused(_UNKNOWN_KEY)
            if len(fetches) == FETCHES_MAX and now - fetches[0] < FETCHES_SECONDS:
                # The provider sends a genuine message again.
                raise ProviderUnavailable(retry_after=int(FETCHES_SECONDS))
            fetches.append(now)
        try:
            key = await self._fetch(kid)
        except TransportFailure as failure:
            raise ProviderUnavailable(retry_after=failure.retry_after) from None
        except Unreadable:
            self._keys.pop(kid, None)
            keep_newest(self._no_keys, kid, now + NO_KEY_SECONDS, KEYS_MAX)
            raise WebhookRefused(_UNKNOWN_KEY) from None
        keep_newest(self._keys, kid, (key, now + KEY_SECONDS), KEYS_MAX)
        return key


def _checked_kid(token: str, body: bytes, now: int) -> str:
    """The key that a token names, once everything but the signature is right."""
    if _TOKEN.fullmatch(token) is None:
        raise WebhookRefused("The message has no well-formed signature.")
    try:
        parts = _JWS.decode_complete(token, options={"verify_signature": False})
    except jwt.PyJWTError:
        raise WebhookRefused("The message's signature is not readable.") from None
    header, claims = parts["header"], parse(parts["payload"])
    kid, issued, digest = header.get("kid"), claims.get("iat"), claims.get("request_body_sha256")
    if header.get("alg") not in _ES256 or "crit" in header or word(kid, _KID) is None:
        raise WebhookRefused("The message's signature is of another kind.")
    if type(issued) is not int or not is_fresh(issued, now):
        raise WebhookRefused("The message's timestamp is missing, too old or in the future.")
    signed = digest.encode("ascii", "replace") if isinstance(digest, str) else b""
    if not compare_digest(signed, sha256(body).hexdigest().encode("ascii")):
        raise WebhookRefused("The message is not the message that was signed.")
    return str(kid)


def keep_newest(kept: OrderedDict[str, Any], name: str, value: object, most: int) -> None:
    """Keep a value as the newest, and at most so many."""
    kept.pop(name, None)
    kept[name] = value
    while len(kept) > most:
        kept.popitem(last=False)
