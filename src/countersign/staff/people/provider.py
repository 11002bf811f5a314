"""An OpenID Connect provider: where it signs people in, and whom its ID tokens identify.

OpenID Connect Core 1.0 §3.1 (authorization code), Discovery 1.0 §4, PKCE (RFC 7636), the issuer in
the response (RFC 9207). Keys are fetched with each token, so a new key works at once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote_plus, urlsplit

import httpx2
from authlib.common.urls import add_params_to_uri
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import InvalidClaimError, JoseError
from joserfc.jwk import KeySet

from countersign.base.host import is_loopback
from countersign.base.spans import outgoing
from countersign.base.values import Clock, from_ms
from countersign.staff.people.model import CLOCKS_APART, Named, ProviderFailed, ProviderRefusal

ALGORITHMS: Final = ("RS256", "PS256", "ES256")
"""Asymmetric ones only: neither `none` nor HMAC with the client's secret."""
_TOTAL_SECONDS: Final = 10.0
_COUNTED_SECONDS: Final = 600.0
"""As long as a flow lasts."""
_ATTEMPTS_EACH_MAX: Final = 30
_ATTEMPTS_MAX: Final = 600
_SUBJECT_LENGTH_MAX: Final = 255
"""OpenID Connect Core 1.0 §2, `sub`."""


class Provider:
    """The provider of the settings, for this client."""

    def __init__(
        self, issuer: str, client_id: str, client_secret: str, return_url: str, clock: Clock
    ) -> None:
        self.issuer: Final = issuer
        self.host: Final = urlsplit(issuer).netloc
        self._client = (client_id, client_secret)
        self._return_url = return_url
        self._clock = clock
        self._metadata: tuple[float, Mapping[str, Any]] | None = None
        self._http: httpx2.AsyncClient | None = None
        self._discovering: asyncio.Task[Mapping[str, Any]] | None = None
        self._came: dict[str, tuple[float, str]] = {}

    def count(self, flow: str, address: str) -> ProviderRefusal | None:
        """Admit one request of a flow to the provider, or return the refusal.

        Limited in ten minutes, for each address and in total: a provider locks out frequent
        clients.
        """
        since = self._clock.monotonic() - _COUNTED_SECONDS
        self._came = {f: one for f, one in self._came.items() if one[0] > since}
        if flow in self._came:
            return ProviderRefusal.REFUSED
        own = sum(where == address for _, where in self._came.values()) if address else 0
        if own >= _ATTEMPTS_EACH_MAX or len(self._came) >= _ATTEMPTS_MAX:
            return ProviderRefusal.UNAVAILABLE
        self._came[flow] = self._clock.monotonic(), address
        return None

    async def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.aclose()

    async def address(self, *, state: str, nonce: str, verifier: str, **asked: str) -> str:
        """The redirect for a browser, with what else is `asked` of the provider.

        Raises ProviderFailed.
        """
        metadata = await self._discovered()
        address: str = prepare_grant_uri(
            metadata["authorization_endpoint"],
            client_id=self._client[0],
            response_type="code",
            redirect_uri=self._return_url,
            scope="openid",
            state=state,
            nonce=nonce,
            code_challenge=create_s256_code_challenge(verifier),
            code_challenge_method="S256",
            **asked,
        )
        return address

    async def sign_out(self) -> str:
        """Where a browser signs out of the provider (RP-Initiated Logout 1.0 §2).

        Raises ProviderFailed, also if it has no such address.
        """
        address = (await self._discovered()).get("end_session_endpoint")
        if not _is_safe(address):
            raise ProviderFailed(ProviderRefusal.UNAVAILABLE, "discovery", "end_session_endpoint")
        return add_params_to_uri(str(address), [("client_id", self._client[0])])  # type: ignore[no-any-return]

    async def subject(self, response: Mapping[str, str], *, nonce: str, verifier: str) -> Named:
        """The person who signed in, from the response's parameters; the caller has checked `state`.

        Raises ProviderFailed.
        """
        metadata = await self._discovered()
        says_who = metadata.get("authorization_response_iss_parameter_supported") is True
        if response.get("iss") not in ({self.issuer} if says_who else {self.issuer, "", None}):
            raise ProviderFailed(ProviderRefusal.INVALID, "response", "iss")
        if not response.get("code"):
            raise ProviderFailed(ProviderRefusal.DECLINED, "response", "no_code")
        tokens = await self._tokens(metadata, response["code"], verifier)
        keys = await self._ask("keys", "GET", metadata["jwks_uri"])
        try:
            return self._named(tokens, keys, nonce)
        except (JoseError, ValueError, KeyError, TypeError, OverflowError) as error:
            # A claim is named; its value may be about the person.
            kind = f"{type(error).__name__} {getattr(error, 'claim', '')}".rstrip()
            raise ProviderFailed(ProviderRefusal.INVALID, "id_token", kind) from None

    def _named(self, tokens: Mapping[str, Any], keys: Any, nonce: str) -> Named:  # noqa: ANN401 - JSON
        client_id = self._client[0]
        usable: Any = {"keys": [key for key in keys["keys"] if key["kty"] in {"RSA", "EC"}]}
        known = KeySet.import_key_set(usable)
        token = jwt.decode(tokens["id_token"], known, algorithms=ALGORITHMS)
        claims = CodeIDToken(
            token.claims,
            token.header,
            options={
                "iss": {"essential": True, "value": self.issuer},
                "aud": {"essential": True, "value": client_id},
            },
            params={"nonce": nonce, "client_id": client_id, "access_token": tokens["access_token"]},
        )
        claims.validate(
            now=self._clock.time_ns() // 1_000_000_000, leeway=int(CLOCKS_APART.total_seconds())
        )
        subject, at = claims["sub"], claims.get("auth_time")
        if not (isinstance(subject, str) and 0 < len(subject) <= _SUBJECT_LENGTH_MAX):
            raise InvalidClaimError("sub")
        return Named(self.issuer, subject, None if at is None else from_ms(int(at * 1000)))

    async def _tokens(self, metadata: Mapping[str, Any], code: str, verifier: str) -> Any:  # noqa: ANN401 - JSON
        body = prepare_token_request(
            "authorization_code", "", self._return_url, code=code, code_verifier=verifier
        )
        known = metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        client_id, secret = map(quote_plus, self._client)  # RFC 6749 §2.3.1
        given: dict[str, Any] = {"auth": (client_id, secret)}
        if "client_secret_basic" not in known:
            body, given = f"{body}&client_id={client_id}&client_secret={secret}", {}
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        url = metadata["token_endpoint"]
        return await self._ask("token", "POST", url, content=body, headers=headers, **given)

    async def _discovered(self) -> Mapping[str, Any]:
        """The provider's metadata, cached for five minutes."""
        now = self._clock.monotonic()
        if self._metadata is not None and now < self._metadata[0] + 300.0:
            return self._metadata[1]
        if self._discovering is None:
            # Concurrent callers share one request, so an unreachable provider is not queried by
            # each.
            self._discovering = asyncio.create_task(self._discover())
            self._discovering.add_done_callback(lambda _: setattr(self, "_discovering", None))
        return await asyncio.shield(self._discovering)

    async def _discover(self) -> Mapping[str, Any]:
        url = self.issuer.removesuffix("/") + "/.well-known/openid-configuration"
        found = await self._ask("discovery", "GET", url)
        # Discovery 1.0 §4.3.
        if found.get("issuer") != self.issuer:
            raise ProviderFailed(ProviderRefusal.UNAVAILABLE, "discovery", "issuer")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            if not _is_safe(found.get(name)):
                raise ProviderFailed(ProviderRefusal.UNAVAILABLE, "discovery", name)
        self._metadata = self._clock.monotonic(), found
        return self._metadata[1]

    async def _ask(self, step: str, method: str, url: str, **given: Any) -> Any:  # noqa: ANN401 - JSON
        """The provider's JSON response, also for a refusal at the token endpoint."""
        try:
            # The client's own limit is one for each wait: a server that drips would never end.
            with outgoing(f"{method} {urlsplit(url).netloc}"):
                async with asyncio.timeout(_TOTAL_SECONDS):
                    status, body = await self._send(method, url, **given)
            found = json.loads(body)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError, RecursionError) as error:
            kind = type(error).__name__
            raise ProviderFailed(ProviderRefusal.UNAVAILABLE, step, kind) from None
        if not isinstance(found, dict) or status >= 400:
            is_grant = isinstance(found, dict) and found.get("error") == "invalid_grant"
            why = ProviderRefusal.REFUSED if is_grant else ProviderRefusal.UNAVAILABLE
            raise ProviderFailed(why, step, f"status_{status}")
        return found

    async def _send(self, method: str, url: str, **given: Any) -> tuple[int, bytes]:  # noqa: ANN401 - as httpx2 takes
        if self._http is None:
            self._http = httpx2.AsyncClient(
                timeout=_TOTAL_SECONDS,
                limits=httpx2.Limits(max_connections=8),
                follow_redirects=False,
            )
        # A small body could unpack to gigabytes.
        given["headers"] = given.get("headers", {}) | {"Accept-Encoding": "identity"}
        async with self._http.stream(method, url, **given) as response:
            body = bytearray()
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > 262_144:
                    raise ValueError("too large")
            return response.status_code, bytes(body)


def _is_safe(url: object) -> bool:
    """Whether requests to it are encrypted, or stay on this machine."""
    if not isinstance(url, str) or not url.isprintable():
        return False
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.netloc))
