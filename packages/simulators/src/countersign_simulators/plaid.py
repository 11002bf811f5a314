"""A simulated Plaid: Identity Verification, API version 2020-09-14.

Written from Plaid's published description and its page "Verify webhooks". Which error an unknown
`identity_verification_id` gets is not published; here it is INVALID_FIELD, as for others.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from countersign_simulators.base import (
    JSON_TYPE,
    Clock,
    Headers,
    Reply,
    Request,
    SimulatedProvider,
    Webhook,
    failing,
    json_reply,
    with_headers,
)
from countersign_simulators.hosted import Created, Hosted, State
from countersign_simulators.plaid_created import (
    TEMPLATE_ID,
    Creations,
    Invalid,
    session_of,
    verification_of,
)
from countersign_simulators.plaid_sessions import PlaidSession, all_sessions, verification

CLIENT_ID: Final = "5f1a7ed0c0ffee0000000001"
SECRETS: Final[Mapping[str, str]] = {
    "live": "5ec2e7000000000000000000000011",
    "sandbox": "5ec2e7000000000000000000000055",
}
_LIMITS: Final[Mapping[str | None, Headers]] = {
    "limited_once": (),
    "limited_long": (("Retry-After", "30"),),
}
"""Headers of a first request that is one too many."""
_VERSIONS: Final = frozenset({None, "2020-09-14"})


@dataclass(frozen=True, slots=True)
class _Key:
    kid: str
    private: ec.EllipticCurvePrivateKey
    created_at: int


class Plaid(SimulatedProvider[PlaidSession]):
    """A client of Plaid. Webhook keys are the same at every start: another process signs too."""

    name: Final = "plaid"
    credentials: Final[Mapping[str, object]] = {
        "client_id": CLIENT_ID,
        "secret": SECRETS["live"],
        "environment": "live",
        "template_id": TEMPLATE_ID,
    }
    test_credentials: Final[Mapping[str, object]] = {
        **credentials,
        "secret": SECRETS["sandbox"],
        "environment": "sandbox",
    }

    def __init__(self, now: Clock) -> None:
        super().__init__(now)
        self._expired: dict[str, int] = {}
        self._keys: dict[str, _Key] = {}
        self._key = self._make_key()
        self._hosted = Hosted(
            "Plaid",
            now,
            back=lambda _: None,
            changed=self._progressed,
        )
        self._creations = Creations(self._hosted, now)
        self._endpoints: Mapping[str, Callable[[Mapping[str, Any], str, Request], Reply]] = {
            "/identity_verification/create": self._create,
            "/identity_verification/retry": self._retry,
            "/identity_verification/get": self._answer_session,
            "/webhook_verification_key/get": self._answer_key,
        }

    def answer(self, request: Request) -> Reply:
        """A page for the buyer; identity verifications, or the key of a webhook."""
        page = self._hosted.answer(request)
        return self._answered(request) if page is None else page

    def _answered(self, request: Request) -> Reply:
        asked = _object(request.body)
        endpoint = self._endpoints.get(request.path) if request.method == "POST" else None
        if endpoint is None:
            return self._error(404, "INVALID_REQUEST", "NOT_FOUND", "no such endpoint")
        if asked is None:
            return self._error(400, "INVALID_REQUEST", "INVALID_BODY", "body is not JSON")
        if request.headers.get("plaid-version") not in _VERSIONS:
            return self._error(400, "INVALID_REQUEST", "INCOMPATIBLE_API_VERSION", "version")
        try:
            return endpoint(asked, _environment(request, asked), request)
        except Invalid as invalid:
            return self._invalid(invalid)

    def _invalid(self, invalid: Invalid) -> Reply:
        if invalid.code == "MISSING_FIELDS":
            return self._missing(str(invalid))
        if invalid.code == "UNKNOWN_FIELDS":
            unknown = f"the following fields are not recognized by this endpoint: {invalid}"
            return self._error(400, "INVALID_REQUEST", invalid.code, unknown)
        return self._error(400, "INVALID_INPUT", invalid.code, str(invalid))

    def webhook(self, session_id: str) -> Webhook:
        """A `STATUS_UPDATED` message."""
        is_live = self._known(session_id).environment == "live"
        environment = "production" if is_live else "sandbox"
        return self.signed(
            {
                "webhook_type": "IDENTITY_VERIFICATION",
                "webhook_code": "STATUS_UPDATED",
                "identity_verification_id": session_id,
                "environment": environment,
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
        return Webhook(headers=(JSON_TYPE, ("Plaid-Verification", token)), body=body)

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

    def _create(self, asked: Mapping[str, Any], environment: str, request: Request) -> Reply:
        return self._ok(self._body(self._creations.create(asked, environment, request)))

    def _retry(self, asked: Mapping[str, Any], environment: str, request: Request) -> Reply:
        return self._ok(self._body(self._creations.retry(asked, environment, request)))

    def _created(self, session_id: str) -> PlaidSession | None:
        created = self._hosted.find(session_id)
        return None if created is None else session_of(created, self._now())

    def _progressed(self, created: Created) -> None:
        """A buyer who agrees changes a step, and not the status."""
        if created.state is not State.BEGUN:
            self._announce(created.session_id)

    def _body(self, session: PlaidSession) -> dict[str, Any]:
        if self._hosted.find(session.session_id) is None:
            return verification(session, self._started)
        return verification_of(session, self._now())

    def _answer_key(self, asked: Mapping[str, Any], _: str, __: Request) -> Reply:
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

    def _answer_session(self, asked: Mapping[str, Any], environment: str, _: Request) -> Reply:
        session_id = asked.get("identity_verification_id")
        if session_id is None:
            return self._missing("identity_verification_id")
        session = self._find(session_id)
        if session is None or session.environment != environment:
            unknown = "identity_verification_id could not be found"
            return self._error(400, "INVALID_INPUT", "INVALID_FIELD", unknown)
        if session.failure in _LIMITS and self._is_first_request(session.session_id):
            message = "rate limit exceeded, try again later"
            limited = self._error(429, "RATE_LIMIT_EXCEEDED", "RATE_LIMIT", message)
            return with_headers(limited, *_LIMITS[session.failure])
        if session.failure == "server_error":
            return self._error(500, "API_ERROR", "INTERNAL_SERVER_ERROR", "unexpected")
        reply = self._ok(self._body(session))
        self._hosted.retrieved(session.session_id)
        return failing(reply, session.failure)

    def _missing(self, names: str) -> Reply:
        message = f"the following required fields are missing: {names}"
        return self._error(400, "INVALID_REQUEST", "MISSING_FIELDS", message)

    def _ok(self, body: Mapping[str, Any]) -> Reply:
        return json_reply(200, {**body, "request_id": self._request_id()})

    def _error(self, status: int, kind: str, code: str, message: str) -> Reply:
        return json_reply(
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
        return f"sim{next(self._numbers):012d}"

    def _sessions(self) -> Sequence[PlaidSession]:
        return all_sessions(self._now())


def _environment(request: Request, asked: Mapping[str, Any]) -> str:
    """The environment of the keys; raises Invalid without good ones."""
    client = request.headers.get("plaid-client-id", asked.get("client_id"))
    secret = request.headers.get("plaid-secret", asked.get("secret"))
    if client is None or secret is None:
        raise Invalid("client_id, secret", "MISSING_FIELDS")
    environment = next((name for name, known in SECRETS.items() if known == secret), None)
    if client != CLIENT_ID or environment is None:
        raise Invalid("invalid client_id or secret provided", "INVALID_API_KEYS")
    return environment


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
