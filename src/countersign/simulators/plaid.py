"""A Plaid that knows a few made-up people: Identity Verification, API version 2020-09-14.

From Plaid's published description and its page "Verify webhooks". Which error answers an unknown
`identity_verification_id` is not published; here it is INVALID_INPUT, as for other identifiers.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import count
from typing import Any, Final
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from countersign.simulators.plaid_parts import Part
from countersign.simulators.plaid_sessions import parts
from countersign.simulators.protocol import Reply, Request, Session, Simulator, Webhook

CLIENT_ID: Final = "5f1a7ed0c0ffee0000000001"
SECRETS: Final[Mapping[str, str]] = {
    "live": "5ec2e7000000000000000000000011",
    "sandbox": "5ec2e7000000000000000000000055",
}
VERSIONS: Final = frozenset({None, "2020-09-14"})
_JSON: Final = ("Content-Type", "application/json")
_LATER: Final = frozenset({"rate_limited", "rate_limited_30"})


@dataclass(frozen=True, slots=True)
class _Key:
    kid: str
    private: ec.EllipticCurvePrivateKey
    created_at: int


class Plaid:
    """A `Simulator`; its webhook keys are the same at every start: another process signs too."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._started = now()
        self._requests = count(1)
        self._limited: set[str] = set()
        self._expired: dict[str, int] = {}
        self._keys: dict[str, _Key] = {}
        self._key = self._make_key()
        self._endpoints: Mapping[str, Callable[[Mapping[str, Any], str], Reply]] = {
            "/identity_verification/get": self._answer_session,
            "/webhook_verification_key/get": self._answer_key,
        }

    @property
    def name(self) -> str:
        return "plaid"

    @property
    def credentials(self) -> Mapping[str, object]:
        return {"client_id": CLIENT_ID, "secret": SECRETS["live"], "environment": "live"}

    @property
    def sessions(self) -> Sequence[Session]:
        return [
            Session(
                session_id=part.session_id,
                plays=part.plays,
                shipping_zip=part.shipping_zip,
                subject_reference=part.subject,
                personal=_personal(part),
            )
            for part in parts(self._now())
        ]

    def answer(self, request: Request) -> Reply:
        asked = _object(request.body)
        endpoint = self._endpoints.get(request.path) if request.method == "POST" else None
        if endpoint is None:
            return self._error(404, "INVALID_REQUEST", "NOT_FOUND", "no such endpoint")
        if asked is None:
            return self._error(400, "INVALID_REQUEST", "INVALID_BODY", "body is not JSON")
        if request.headers.get("plaid-version") not in VERSIONS:
            return self._error(400, "INVALID_REQUEST", "INCOMPATIBLE_API_VERSION", "version")
        client = request.headers.get("plaid-client-id", asked.get("client_id"))
        secret = request.headers.get("plaid-secret", asked.get("secret"))
        if client is None or secret is None:
            return self._missing("client_id, secret")
        environment = next((e for e, s in SECRETS.items() if s == secret), None)
        if client != CLIENT_ID or environment is None:
            invalid = "invalid client_id or secret provided"
            return self._error(400, "INVALID_INPUT", "INVALID_API_KEYS", invalid)
        return endpoint(asked, environment)

    def webhook(self, session_id: str) -> Webhook:
        return self.signed(
            {
                "webhook_type": "IDENTITY_VERIFICATION",
                "webhook_code": "STATUS_UPDATED",
                "identity_verification_id": session_id,
                "environment": "production",
            }
        )

    def signed(self, event: Mapping[str, Any]) -> Webhook:
        """Any event, signed as of now with the newest key."""
        body = json.dumps(event).encode()
        header = {"alg": "ES256", "kid": self._key.kid, "typ": "JWT"}
        claims = {"iat": int(self._now()), "request_body_sha256": sha256(body).hexdigest()}
        signed = ".".join(_base64url(json.dumps(part).encode()) for part in (header, claims))
        r, s = decode_dss_signature(self._key.private.sign(signed.encode(), ec.ECDSA(SHA256())))
        token = f"{signed}.{_base64url(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"
        return Webhook(headers=(_JSON, ("Plaid-Verification", token)), body=body)

    @property
    def key_id(self) -> str:
        """The identifier of the key that signs now."""
        return self._key.kid

    def rotate_key(self) -> None:
        """Sign with a new key from now on; the old one has expired."""
        self._expired[self._key.kid] = int(self._now())
        self._key = self._make_key()

    def _make_key(self) -> _Key:
        seed = sha256(f"a webhook key of nobody, number {len(self._keys)}".encode()).digest()
        private = ec.derive_private_key(int.from_bytes(seed[1:], "big"), ec.SECP256R1())
        key = _Key(str(UUID(bytes=seed[:16], version=4)), private, int(self._now()))
        self._keys[key.kid] = key
        return key

    def _answer_key(self, asked: Mapping[str, Any], _: str) -> Reply:
        kid = asked.get("key_id")
        key = self._keys.get(kid) if isinstance(kid, str) else None
        if key is None:
            return self._error(400, "INVALID_INPUT", "INVALID_WEBHOOK_VERIFICATION_KEY_ID", "kid")
        numbers = key.private.public_key().public_numbers()
        return self._ok(
            {
                "key": {
                    "alg": "ES256",
                    "created_at": key.created_at,
                    "crv": "P-256",
                    "expired_at": self._expired.get(key.kid),
                    "kid": key.kid,
                    "kty": "EC",
                    "use": "sig",
                    "x": _base64url(numbers.x.to_bytes(32, "big")),
                    "y": _base64url(numbers.y.to_bytes(32, "big")),
                }
            }
        )

    def _answer_session(self, asked: Mapping[str, Any], environment: str) -> Reply:
        session_id = asked.get("identity_verification_id")
        if session_id is None:
            return self._missing("identity_verification_id")
        known = {part.session_id: part for part in parts(self._now())}
        part = known.get(session_id) if isinstance(session_id, str) else None
        if part is None or part.environment != environment:
            unknown = "identity_verification_id could not be found"
            return self._error(400, "INVALID_INPUT", "INVALID_FIELD", unknown)
        if part.trouble in _LATER and part.session_id not in self._limited:
            self._limited.add(part.session_id)
            return self._rate_limited(30 if part.trouble == "rate_limited_30" else None)
        return self._troubled(part.trouble, self._ok(part.body(self._started)))

    def _troubled(self, trouble: str | None, plain: Reply) -> Reply:
        body, half = plain.body, len(plain.body) // 2
        replies: dict[str, Reply] = {
            "truncated": replace(plain, body=body[:half]),
            "slow": replace(plain, delay=30.0),
            "cut": replace(plain, cut_after=half),
            "bad_gateway": Reply(
                status=502,
                body=b"<html><head><title>502 Bad Gateway</title></head></html>",
                headers=(("Content-Type", "text/html"),),
            ),
            "server_error": self._error(500, "API_ERROR", "INTERNAL_SERVER_ERROR", "unexpected"),
        }
        if trouble == "oversized":
            return replace(plain, body=body[:-1] + b" " * 50_000_000 + b"}")
        return replies.get(trouble or "", plain)

    def _missing(self, names: str) -> Reply:
        message = f"the following required fields are missing: {names}"
        return self._error(400, "INVALID_REQUEST", "MISSING_FIELDS", message)

    def _rate_limited(self, seconds: int | None) -> Reply:
        limited = self._error(
            429, "RATE_LIMIT_EXCEEDED", "RATE_LIMIT", "rate limit exceeded, try again later"
        )
        wait = (("Retry-After", str(seconds)),) if seconds is not None else ()
        return Reply(status=429, body=limited.body, headers=(*limited.headers, *wait))

    def _ok(self, body: Mapping[str, Any]) -> Reply:
        return _reply(200, {**body, "request_id": self._request_id()})

    def _error(self, status: int, kind: str, code: str, message: str) -> Reply:
        return _reply(
            status,
            {
                "error_type": kind,
                "error_code": code,
                "error_code_reason": None,
                "error_message": message,
                "display_message": None,
                "documentation_url": "https://plaid.com/docs/errors/",
                "request_id": self._request_id(),
                "suggested_action": None,
            },
        )

    def _request_id(self) -> str:
        return f"sim{next(self._requests):012d}"


def make(now: Callable[[], float]) -> Simulator:
    """A Plaid by this clock, which gives Unix seconds."""
    return Plaid(now)


def _personal(part: Part) -> tuple[str, ...]:
    everybody = (part.person, *part.others)
    return tuple(dict.fromkeys(text for person in everybody for text in person.personal))


def _reply(status: int, body: Mapping[str, Any]) -> Reply:
    return Reply(status=status, body=json.dumps(body).encode(), headers=(_JSON,))


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
