"""Veriff: the decision of a session, `GET /v1/sessions/{id}/decision`, and the webhooks.

The one provider that signs its responses. The signature is an HMAC with a secret that we have too:
it protects us against a stranger, and proves nothing to one.

Sources: Veriff's pages "Verification session status codes", "Decision data" and "Create session".
The numeric `code` is not used: Veriff's pages contradict each other about 9121.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Literal

from countersign.base.errors import WebhookRefused
from countersign.identity import json_reader as read
from countersign.identity.base import (
    UUID,
    Credentials,
    IdentityProvider,
    Response,
    address,
    document_of,
)
from countersign.identity.json_reader import words_of
from countersign.identity.model import (
    FactSource,
    Finding,
    ProviderResult,
    StartedSession,
    StartRequest,
    WebhookHint,
)
from countersign.identity.starting import ADDRESS, post
from countersign.identity.transport import Budget, ProviderReply, ProviderRequest
from countersign.identity.webhook_signature import hmac_sha256, is_signed

HOST: Final = "stationapi.veriff.com"
_SIGNATURE: Final = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)
_HOST: Final = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,3}veriff\.com", re.ASCII)
_WORD: Final = re.compile(r"[a-z_]{1,40}", re.ASCII)
_CODE: Final = re.compile(r"[0-9]{1,6}", re.ASCII)
_SECRETS_MAX: Final = 5
_NOT_AN_ID: Final = frozenset({"1002", "1104"})
"""Error codes for an identifier that Veriff cannot read: the only parameter that we send."""


class VeriffCredentials(Credentials, frozen=True, kw_only=True):
    """The credentials file for Veriff; all of it is on the integration's page."""

    api_key: str
    shared_secrets: tuple[str, ...]
    """The first one signs our requests; any of them may sign a response or a webhook, so that the
    secret can be replaced without a gap."""
    integration_id: str | None = None
    """The integration whose sessions are started, and count: a response that names another one is
    not live. Usually API key and secret belong to one integration; with Veriff's flexible API keys
    they belong to several, and only this says which."""
    environment: Literal["live", "sandbox"]
    """Whether that is a live or a test integration: Veriff's responses do not say."""
    host: str = HOST
    """The host of the base URL that the portal shows."""

    @property
    def origin(self) -> str:
        return f"https://{self.host}"

    @property
    def warnings(self) -> tuple[str, ...]:
        if self.integration_id is not None:
            return ()
        missing = (
            "the credentials contain no integration_id. With Veriff's flexible API keys no session "
            "can be started without it, and it is not checked that a session is one of this "
            f"integration: one of your others counts as {self.environment}, too."
        )
        return (missing,)

    def check(self) -> None:
        if not 1 <= len(self.shared_secrets) <= _SECRETS_MAX:
            raise ValueError(
                f"shared_secrets: give 1 to {_SECRETS_MAX} secrets, the current one first"
            )
        self.check_visible(
            api_key=self.api_key,
            shared_secrets=self.shared_secrets,
            integration_id=() if self.integration_id is None else (self.integration_id,),
        )
        if self.api_key in self.shared_secrets:
            raise ValueError(
                "shared_secrets: this value is the API key; give the shared secret key"
            )
        if _HOST.fullmatch(self.host) is None:
            raise ValueError("host: give the host of the portal's base URL, such as " + HOST)


class Veriff(IdentityProvider[VeriffCredentials]):
    """Veriff with the credentials of one integration."""

    name = "veriff"
    credentials_type = VeriffCredentials
    session_id = UUID
    probe_session_id = "00000000-0000-4000-8000-000000000000"
    api_version = "v1"
    words = words_of(__file__)
    pages = ("veriff.com", "veriff.me")

    def _request(self, session_id: str) -> ProviderRequest:
        # For a GET, the session id is signed.
        return ProviderRequest(
            path=f"/v1/sessions/{session_id}/decision",
            headers={**self._signed(session_id.encode("ascii")), "Accept": "application/json"},
        )

    def _signed(self, content: bytes) -> dict[str, str]:
        return {
            "X-AUTH-CLIENT": self._credentials.api_key,
            "X-HMAC-SIGNATURE": hmac_sha256(self._credentials.shared_secrets[0], content),
        }

    async def _start(self, wanted: StartRequest, budget: Budget) -> StartedSession:
        verification = {
            "callback": wanted.return_url,
            "vendorData": wanted.reference,
            "lang": wanted.locale,
        }
        # The requested members belong to the integration. Veriff knows no repetition.
        making = post("/v1/sessions", {"verification": verification}, {}, repeatable=False)
        ours = self._credentials.integration_id
        # "Required when the flexible API keys solution is used", says Veriff's page of this call,
        # and its own JavaScript SDK sends it here. No page was found that wants it elsewhere.
        named = {} if ours is None else {"vrf-integration-id": ours}
        signed = {**making.headers, **named, **self._signed(making.body or b"")}
        reply, body = await self._make(replace(making, headers=signed), budget)
        signature = _header(reply, "hmac-signature")
        if signature is not None and not self._is_theirs(reply, signature):
            raise read.Unreadable("signature")
        made = read.mapping(body, "verification")
        if body.get("status") != "success" or made.get("vendorData") != wanted.reference:
            raise read.Unreadable("status or vendorData")
        url = read.matching(made, "url", ADDRESS)
        return StartedSession(session_id=read.matching(made, "id", UUID), url=url)

    def _is_theirs(self, reply: ProviderReply, signature: str) -> bool:
        return is_signed(reply.body, self._credentials.shared_secrets, signature.lower())

    async def _read_webhook(self, headers: Mapping[str, str], body: bytes) -> WebhookHint | None:
        signature = headers.get("x-hmac-signature", "").lower()
        if not is_signed(body, self._credentials.shared_secrets, signature):
            raise WebhookRefused
        if not _same(headers.get("x-auth-client", ""), self._credentials.api_key):
            raise WebhookRefused
        return _hint(read.parse(body))

    def translate(self, response: Response) -> ProviderResult:
        """Translate a response; no other response of a provider is signed."""
        reply = response.reply
        signature = _header(reply, "hmac-signature") or ""
        if _SIGNATURE.fullmatch(signature):
            evidence = replace(response.evidence, response_signature=signature)
            response = replace(response, evidence=evidence)
        client = _header(reply, "auth-client")
        ours = client is None or _same(client, self._credentials.api_key)
        if reply.status == 200 and not (ours and self._is_theirs(reply, signature)):
            return response.refused(Finding.INVALID_RESPONSE, "bad_signature")
        return super().translate(response)

    def _error(self, response: Response, body: read.Object | None) -> ProviderResult:
        # Without a body it is the error page of something in between: its status says enough.
        error = body or {}
        code = _code(error.get("code")) if error.get("status") == "fail" else None
        if response.reply.status == 400 and code in _NOT_AN_ID:
            return response.refused(Finding.NOT_FOUND, code)
        return response.error(code, genuine=code is not None)

    def _session(self, response: Response, body: read.Object) -> ProviderResult:
        if body.get("status") != "success" or "verification" not in body:
            raise read.Unreadable("status")
        verification = read.mapping(body, "verification")
        # Veriff's reference does not list this header; the signature authenticates the response.
        named, ours = response.reply.headers.get("vrf-integration-id"), self._credentials
        own = ours.integration_id
        other = named and own is not None and not _same(named, own)
        live = ours.environment == "live" and not other
        if not verification:
            # There is no decision yet.
            return replace(response.result(Finding.PENDING), live=live)
        if verification.get("id") != response.session_id:
            return response.result(Finding.INVALID_RESPONSE, "other_session")
        result = self._decided(
            response,
            read.text(verification, "status"),
            _code(verification.get("reasonCode")),
            live=live,
            subject=read.text(verification, "vendorData") or read.text(verification, "endUserId"),
        )
        with read.facts_unknown() as unread:
            result = replace(result, decided_at=read.instant(verification, "decisionTime"))
            if result.outcome is Finding.VERIFIED:
                result = self._with_person(result, verification)
        return replace(result, unread=tuple(unread))

    def _with_person(self, result: ProviderResult, verification: read.Object) -> ProviderResult:
        """The result with the facts about the person in an approved verification."""
        kind = read.text(verification, "document.type")
        # Checks without a document return the input: that proves nothing.
        source = FactSource.DOCUMENT if kind else FactSource.USER
        names = {"region": "state", "postal_code": "postcode"}
        addresses = [
            address(read.mapping(entry, "parsedAddress"), source, "country", **names)
            for entry in read.objects(verification, "person.addresses")
        ]
        # A document without a state was issued by that of the address on it.
        regions = (each.region for each in addresses if each and each.region)
        expiry = read.expiry(verification, "document.validUntil")
        country = read.text(verification, "document.country")
        region = read.text(verification, "document.state") or next(regions, None)
        document = document_of(expiry, type=kind, issuing_country=country, issuing_region=region)
        return self._of_person(
            result,
            read.iso_date(verification, "person.dateOfBirth"),
            addresses,
            born_by=source,
            document=document if kind else None,
            number=read.text(verification, "document.number"),
        )


def _header(reply: ProviderReply, name: str) -> str | None:
    """A header under either of its names; empty, and so never valid, if the two differ.

    Veriff's reference of this call says `x-`, its older pages and the Feedback API say `vrf-`.
    """
    names = (f"x-{name}", f"vrf-{name}")
    values = {reply.headers[name] for name in names if name in reply.headers}
    return "" if len(values) > 1 else next(iter(values), None)


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


def _hint(message: read.Object) -> WebhookHint | None:
    """The subject of a decision or event webhook.

    Veriff's messages carry no time, so they can be replayed: the key of an event is made of
    session, attempt and status.
    """
    about = read.mapping(message, "verification") if "verification" in message else message
    status = read.text(about, "status" if "verification" in message else "action")
    session_id = read.text(about, "id")
    if session_id is None or status is None:
        # Veriff sends other messages of other products; none of them is about a decision.
        return None
    attempt_id = read.text(about, "attemptId") or ""
    if not UUID.fullmatch(session_id) or not _WORD.fullmatch(status):
        raise read.Unreadable("id or status")
    if attempt_id and UUID.fullmatch(attempt_id) is None:
        raise read.Unreadable("attemptId")
    return WebhookHint(session_id=session_id, event_key=f"{session_id}:{attempt_id}:{status}")


def _code(value: object) -> str | None:
    """A number as text; anything else could be a text about a person."""
    written = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    return written if _CODE.fullmatch(written) else None
