"""A simulated Plaid: Identity Verification, API version 2020-09-14.

Written from Plaid's published description and its page "Verify webhooks". The error for an unknown
`identity_verification_id` is not published; here it is INVALID_FIELD, as for others.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, ClassVar, Final
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
    Webhook,
    failing,
    json_reply,
    merged,
    timestamp,
    with_headers,
)
from countersign_simulators.hosted import Created, State
from countersign_simulators.plaid_created import TEMPLATE_ID, Creations, Invalid
from countersign_simulators.provider import SimulatedProvider
from countersign_simulators.table import Played, Table

CLIENT_ID: Final = "5f1a7ed0c0ffee0000000001"
SECRETS: Final[Mapping[str, str]] = {
    "live": "5ec2e7000000000000000000000011",
    "sandbox": "5ec2e7000000000000000000000055",
}
_VERSIONS: Final = frozenset({None, "2020-09-14"})


_TABLE: Final = Table("plaid")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaidSession(Played):
    """An identity verification, and how it differs from a plain success."""

    changes: Mapping[str, Any]
    """Members that replace those of a plain success."""
    documents: Sequence[Mapping[str, Any]]
    """The attempts to show a document: the person, the document, the status, and differences
    between the extracted data and the person's document."""
    every_step: str | None = None
    """The status of all steps, if it differs from that of a success."""


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

    title = "Plaid"
    # A buyer who agrees changes a step, and not the status.
    silent = frozenset({State.BEGUN})
    limits: ClassVar[Mapping[str, Headers]] = {
        "limited_once": (),
        "limited_long": (("Retry-After", "30"),),
    }

    def __init__(self, now: Clock) -> None:
        super().__init__(now)
        self._expired: dict[str, int] = {}
        self._keys: dict[str, _Key] = {}
        self._key = self._make_key()
        self._creations = Creations(self._hosted)
        self._endpoints: Mapping[str, Callable[[Mapping[str, Any], str, Request], Reply]] = {
            "/identity_verification/create": self._create,
            "/identity_verification/retry": self._retry,
            "/identity_verification/get": self._answer_session,
            "/webhook_verification_key/get": self._answer_key,
        }

    def _answer(self, request: Request) -> Reply:
        """Identity verifications, or the key of a webhook."""
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
        return self.signed(_TABLE.body("event", session_id=session_id, environment=environment))

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
        return self._made_reply(self._creations.create(asked, environment, request))

    def _retry(self, asked: Mapping[str, Any], environment: str, request: Request) -> Reply:
        return self._made_reply(self._creations.retry(asked, environment, request))

    def _made_reply(self, created: Created) -> Reply:
        return self._ok(self._verification(self._session_of(created)))

    def _session_of(self, created: Created) -> PlaidSession:
        changed = timestamp(created.changed_at)
        row = _TABLE.row_of(created, self._now(), changed=changed)
        said = {
            "client_user_id": created.reference,
            "created_at": timestamp(created.created_at),
            "shareable_url": created.made["shareable_url"],
            "previous_attempt_id": created.made["previous_attempt_id"],
        }
        return PlaidSession(changes=row.pop("changes") | said, **row)

    def _sessions(self) -> Sequence[PlaidSession]:
        return [PlaidSession(**row) for row in _TABLE.rows(self._now())]

    def _back(self, created: Created) -> None:
        """A buyer at a `shareable_url` is not led back."""

    def _verification(self, session: PlaidSession) -> dict[str, Any]:
        """The response for a session, without its request id."""
        begun = self._started if session.created_at is None else self._now()
        plain = _TABLE.body(
            "success",
            session.person,
            session_id=session.session_id,
            subject=session.subject_reference or "",
            created_at=timestamp(begun - 600),
            completed_at=timestamp(begun - 300),
            documents=list(_documents(session)),
        )
        if session.every_step is not None:
            plain["steps"] = dict.fromkeys(plain["steps"], session.every_step)
        return merged(plain, session.changes)

    def _answer_key(self, asked: Mapping[str, Any], _: str, __: Request) -> Reply:
        kid = asked.get("key_id")
        key = self._keys.get(kid) if isinstance(kid, str) else None
        if key is None:
            return self._error(400, "INVALID_INPUT", "INVALID_WEBHOOK_VERIFICATION_KEY_ID", "kid")
        numbers = key.private.public_key().public_numbers()
        public = _TABLE.body(
            "key",
            created_at=key.created_at,
            expired_at=self._expired.get(key.kid),
            kid=key.kid,
            x=_base64url(numbers.x.to_bytes(32, "big")),
            y=_base64url(numbers.y.to_bytes(32, "big")),
        )
        return self._ok({"key": public})

    def _answer_session(self, asked: Mapping[str, Any], environment: str, _: Request) -> Reply:
        session_id = asked.get("identity_verification_id")
        if session_id is None:
            return self._missing("identity_verification_id")
        session = self._find(session_id)
        if session is None or session.environment != environment:
            unknown = "identity_verification_id could not be found"
            return self._error(400, "INVALID_INPUT", "INVALID_FIELD", unknown)
        limited = self._limit(session, first=self._is_first_request(session.session_id))
        if limited is not None:
            message = "rate limit exceeded, try again later"
            refused = self._error(429, "RATE_LIMIT_EXCEEDED", "RATE_LIMIT", message)
            return with_headers(refused, *limited)
        if session.failure == "server_error":
            return self._error(500, "API_ERROR", "INTERNAL_SERVER_ERROR", "unexpected")
        reply = self._ok(self._verification(session))
        self._hosted.retrieved(session.session_id)
        return failing(reply, session.failure)

    def _missing(self, names: str) -> Reply:
        message = f"the following required fields are missing: {names}"
        return self._error(400, "INVALID_REQUEST", "MISSING_FIELDS", message)

    def _ok(self, body: Mapping[str, Any]) -> Reply:
        return json_reply(200, {**body, "request_id": self._request_id()})

    def _error(self, status: int, kind: str, code: str, message: str) -> Reply:
        said = {"kind": kind, "code": code, "message": message}
        return json_reply(status, _TABLE.body("error", **said, request_id=self._request_id()))

    def _request_id(self) -> str:
        return f"sim{next(self._numbers):012d}"


def _documents(session: PlaidSession) -> Iterator[dict[str, Any]]:
    for shown in session.documents:
        person = _TABLE.person(shown["person"], {}) if "person" in shown else session.person
        status = shown.get("status", "success")
        document = _TABLE.body(
            "document",
            person,
            session_id=session.session_id,
            attempt=shown.get("attempt", 1),
            status=status,
            match="match" if status != "failed" else "no_match",
        )
        yield merged(document, shown.get("changes", {}))


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
