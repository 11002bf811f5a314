"""A provider of OpenID Connect over real HTTP, strict with its clients, that can be made to lie.

It shares no code with its clients: tokens are signed by PyJWT, and requests are parsed by hand.
OpenID Connect Core 1.0 §3.1, Discovery 1.0 §4, RFC 7636 §4.6, RFC 9207.
"""

from __future__ import annotations

import json
import secrets
import time
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Final
from urllib.parse import parse_qs, unquote_plus, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

CLIENT_ID: Final = "countersign console"
CLIENT_SECRET: Final = "secret/with:signs+and%40"
_LASTS: Final = 300


def _rsa() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def _public(key: Any, kid: str) -> dict[str, Any]:  # noqa: ANN401 - of two kinds
    is_rsa = isinstance(key, rsa.RSAPrivateKey)
    kind: Any = jwt.algorithms.RSAAlgorithm if is_rsa else jwt.algorithms.ECAlgorithm
    return {**kind.to_jwk(key.public_key(), as_dict=True), "kid": kid, "use": "sig"}


@dataclass
class OpenIdProvider:
    """Its accounts, its behaviour, and the requests to it."""

    port: int = 0
    redirect_uris: set[str] = field(default_factory=set)
    person: str = "248289761001"
    """The person who signs in (`sub`)."""
    signed_in_at: int | None = None
    """When that was, if the browser is signed in here already."""
    off: float = 0.0
    """How many seconds its clock is ahead."""
    algorithm: str = "RS256"
    keys: dict[str, Any] = field(default_factory=dict)
    """Its published keys; the last one signs."""
    claims: dict[str, Any] = field(default_factory=dict)
    """Claims that replace the right ones; None: left out."""
    metadata: dict[str, Any] = field(default_factory=dict)
    response: dict[str, str] = field(default_factory=dict)
    """Parameters that replace those of the redirect back."""
    signing: tuple[Any, str] | None = None
    """Another key and algorithm to sign with."""
    broken: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    """Replacement responses by path."""
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    codes: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def issuer(self) -> str:
        return f"http://{self.host}/tenant"

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """The settings of a client, without their prefix."""
        return {
            "OIDC_ISSUER": self.issuer,
            "OIDC_CLIENT_ID": CLIENT_ID,
            "OIDC_CLIENT_SECRET": CLIENT_SECRET,
        }

    def now(self) -> int:
        return int(time.time() + self.off)

    def roll_over(self, algorithm: str = "ES256") -> None:
        """Sign with a new key from now on."""
        self.algorithm = algorithm
        new = ec.generate_private_key(ec.SECP256R1()) if algorithm == "ES256" else _rsa()
        self.keys[f"key {len(self.keys)}"] = new

    def discovery(self) -> dict[str, Any]:
        own = f"http://{self.host}"
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{own}/authorize?tenant=1",
            "token_endpoint": f"{own}/token",
            "jwks_uri": f"{own}/keys",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [self.algorithm],
            "authorization_response_iss_parameter_supported": True,
            **self.metadata,
        }

    def authorize(self, query: dict[str, str]) -> dict[str, str]:
        """The parameters of the response; AssertionError: no browser is led anywhere."""
        assert query["client_id"] == CLIENT_ID
        assert query["redirect_uri"] in self.redirect_uris
        came = {"state": query["state"], "iss": self.issuer}
        wrong = query["response_type"] != "code" or "openid" not in query["scope"].split()
        if wrong or query.get("code_challenge_method") != "S256" or len(query["nonce"]) < 16:
            return came | {"error": "invalid_request"}
        asks_again = query.get("prompt") == "login" or query.get("max_age") == "0"
        if asks_again or self.signed_in_at is None:
            self.signed_in_at = self.now()
        code = secrets.token_urlsafe(16)
        self.codes[code] = {**query, "sub": self.person, "auth_time": self.signed_in_at}
        return came | {"code": code} | self.response

    def token(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        """The response of the token endpoint (RFC 6749 §5)."""
        pair = authorization.removeprefix("Basic ")
        sent = [unquote_plus(part) for part in b64decode(pair).decode().split(":")]
        if "client_secret_post" in self.metadata.get("token_endpoint_auth_methods_supported", ()):
            sent = [form.get("client_id", ""), form.get("client_secret", "")]
        if sent != [CLIENT_ID, CLIENT_SECRET]:
            return 401, {"error": "invalid_client"}
        asked = self.codes.pop(form.get("code", ""), None)
        verifier = form.get("code_verifier", "")
        challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        if (
            asked is None
            or form.get("grant_type") != "authorization_code"
            or form.get("redirect_uri") != asked["redirect_uri"]
            or not 43 <= len(verifier) <= 128
            or challenge != asked["code_challenge"]
        ):
            return 400, {"error": "invalid_grant"}
        tokens = {"access_token": "opaque", "token_type": "Bearer", "expires_in": _LASTS}
        return 200, {**tokens, "id_token": self.id_token(asked)}

    def id_token(self, asked: dict[str, Any]) -> str:
        claims = {
            "iss": self.issuer,
            "sub": asked["sub"],
            "aud": [CLIENT_ID],
            "iat": self.now(),
            "exp": self.now() + _LASTS,
            "auth_time": asked["auth_time"],
            "nonce": asked["nonce"],
            "email": "ada@example.org",
            **self.claims,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        kid, key = [*self.keys.items()][-1]
        key, algorithm = self.signing or (key, self.algorithm)
        return jwt.encode(claims, key, algorithm, headers={"kid": kid})


class _Handler(BaseHTTPRequestHandler):
    provider: OpenIdProvider

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        if self._is_broken(parts.path, query):
            return
        match parts.path:
            case "/tenant/.well-known/openid-configuration":
                self._json(200, self.provider.discovery())
            case "/keys":
                keys = [_public(key, kid) for kid, key in self.provider.keys.items()]
                self._json(200, {"keys": keys})
            case "/authorize":
                came = self.provider.authorize(query)
                self.send_response(302)
                self.send_header("Location", f"{query['redirect_uri']}?{urlencode(came)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
            case _:
                self._json(404, {})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = {name: values[-1] for name, values in parse_qs(body).items()}
        if not self._is_broken(self.path, form):
            self._json(*self.provider.token(form, self.headers.get("Authorization", "")))

    def _is_broken(self, path: str, given: dict[str, str]) -> bool:
        self.provider.asked.append((path, given))
        if path not in self.provider.broken:
            return False
        self._send(*self.provider.broken[path])
        return True

    def _json(self, status: int, value: dict[str, Any]) -> None:
        self._send(status, json.dumps(value).encode())

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as it is overridden
        """Write nothing."""


@contextmanager
def openid_provider() -> Iterator[OpenIdProvider]:
    """A provider that listens on the loopback."""
    provider = OpenIdProvider()
    handler = type("Handler", (_Handler,), {"provider": provider})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    provider.port = server.server_address[1]
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
