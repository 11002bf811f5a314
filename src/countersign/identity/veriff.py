"""Veriff: the decision of a session, `GET /v1/sessions/{id}/decision`, and the webhooks.

The one provider that signs its responses. The signature is an HMAC with a secret that we have too:
it protects us against a stranger, and proves nothing to one.

Sources: Veriff's pages "Verification session status codes" and "Decision data". The numeric `code`
is not used: Veriff's pages contradict each other about 9121.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, Literal

from countersign.errors import WebhookRefused
from countersign.identity import json_reader as read
from countersign.identity.base import Adapter, Credentials, Response
from countersign.identity.budget import Budget
from countersign.identity.fields import Fields
from countersign.identity.fingerprint import Fingerprint
from countersign.identity.model import (
    Address,
    Document,
    FactSource,
    Finding,
    ProviderResult,
    WebhookHint,
)
from countersign.identity.types import ProviderReply, ProviderRequest
from countersign.identity.webhook_signature import hmac_sha256, is_signed
from countersign.reason import Reason

API_VERSION: Final = "v1"
HOST: Final = "stationapi.veriff.com"
SESSION_ID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.ASCII)
"""A UUID of any version: Veriff's examples are not all version 4."""
_SIGNATURE: Final = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)
_HOST: Final = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,3}veriff\.com", re.ASCII)
_VISIBLE: Final = re.compile(r"[!-~]{8,200}", re.ASCII)
_WORD: Final = re.compile(r"[a-z_]{1,40}", re.ASCII)
_CODE: Final = re.compile(r"[0-9]{1,6}", re.ASCII)
_SECRETS_MAX: Final = 5
_NOT_AN_ID: Final = frozenset({"1002", "1104"})
"""Error codes for an identifier that Veriff cannot read: the only parameter that we send."""

_OUTCOMES: Final[Mapping[str, Finding]] = {
    "approved": Finding.VERIFIED,
    "created": Finding.PENDING,
    "started": Finding.PENDING,
    "submitted": Finding.PENDING,
    "review": Finding.PENDING,
    "resubmission_requested": Finding.REQUIRES_INPUT,
    "declined": Finding.FAILED,
    "abandoned": Finding.CANCELED,
    "expired": Finding.EXPIRED,
}
REASONS: Final[Mapping[str, Reason]] = {
    **dict.fromkeys(("206", "510"), Reason.DOCUMENT_UNSUPPORTED),
    **dict.fromkeys(("101", "102", "205", "506", "507", "508"), Reason.DOCUMENT_NOT_ACCEPTED),
    **dict.fromkeys(("103", "120", "509"), Reason.SELFIE_MISMATCH),
    **dict.fromkeys(("202", "208", "515"), Reason.SELFIE_NOT_ACCEPTED),
    **dict.fromkeys(("104", "123"), Reason.DETAILS_MISMATCH),
    # 201 and 204 can be about the face, too; it is the document far more often.
    **dict.fromkeys(("201", "203", "204", "209", "210"), Reason.DOCUMENT_UNREADABLE),
    **dict.fromkeys(("207", "511"), Reason.DOCUMENT_EXPIRED),
    **dict.fromkeys(("530", "531", "532", "533"), Reason.AGE_BELOW_MINIMUM),
}
"""For Veriff's reason codes (its "Granular reason codes"). Those for an age above 18, 534 to 536,
say nothing about the account's minimum; those of fraud say no more than the outcome."""
FIELDS: Final = Fields(
    "status verification(id status vendorData endUserId decisionTime reasonCode",
    "person(firstName lastName dateOfBirth",
    "addresses(parsedAddress(street city state postcode country) fullAddress)",
    # Ignored, as is `fullAddress`: not enough for an age, and nothing that a decision needs.
    "yearOfBirth gender idNumber)",
    "document(type number country state validUntil validFrom)",
    # Ignored: the same as `status`, or the contrary; a sentence; one of several attempts; ages
    # guessed from a face; what Veriff has considered in its decision.
    "code reason attemptId acceptanceTime submissionTime additionalVerifiedData riskLabels",
    "comments) technicalData",
)


class VeriffCredentials(Credentials, frozen=True, kw_only=True):
    """The credentials file for Veriff; all of it is on the integration's page."""

    api_key: str
    shared_secrets: tuple[str, ...]
    """The first signs our requests; any of them may have signed a response or a webhook, so that
    the secret can be changed without a gap."""
    integration_id: str | None = None
    """The integration whose sessions count. A response that names another one is not live; API key
    and secret belong to one integration, so a response that names none is from that one."""
    environment: Literal["live", "sandbox"]
    """Whether that is a live or a test integration: Veriff's responses do not say."""
    host: str = HOST
    """The host of the base URL that the portal shows."""

    @property
    def origin(self) -> str:
        return f"https://{self.host}"

    def check(self) -> None:
        if not 1 <= len(self.shared_secrets) <= _SECRETS_MAX:
            raise ValueError(
                f"shared_secrets: give 1 to {_SECRETS_MAX} secrets, the current one first"
            )
        named = {f"shared_secrets[{i}]": secret for i, secret in enumerate(self.shared_secrets)}
        if self.integration_id is not None:
            named["integration_id"] = self.integration_id
        for name, value in {"api_key": self.api_key, **named}.items():
            if _VISIBLE.fullmatch(value) is None:
                raise ValueError(f"{name}: give 8 to 200 visible ASCII characters, without spaces")
        if self.api_key in self.shared_secrets:
            raise ValueError(
                "shared_secrets: this value is the API key; give the shared secret key"
            )
        if _HOST.fullmatch(self.host) is None:
            raise ValueError("host: give the host of the portal's base URL, such as " + HOST)


class Veriff(Adapter[VeriffCredentials]):
    """Veriff with the credentials of one integration."""

    name = "veriff"
    credentials_type = VeriffCredentials
    session_id = SESSION_ID
    probe_session_id = "00000000-0000-4000-8000-000000000000"
    api_version = API_VERSION

    async def _retrieve(self, session_id: str, budget: Budget) -> ProviderResult:
        # For a GET, the session id is signed.
        signature = hmac_sha256(self._credentials.shared_secrets[0], session_id.encode("ascii"))
        request = ProviderRequest(
            path=f"/v1/sessions/{session_id}/decision",
            headers={
                "X-AUTH-CLIENT": self._credentials.api_key,
                "X-HMAC-SIGNATURE": signature,
                "Accept": "application/json",
            },
        )
        response = await self._ask(session_id, request, budget)
        signature = _header(response.reply, "hmac-signature") or ""
        if _SIGNATURE.fullmatch(signature):
            evidence = replace(response.evidence, response_signature=signature)
            response = replace(response, evidence=evidence)
        return translate(response)

    async def _read_webhook(self, headers: Mapping[str, str], body: bytes) -> WebhookHint | None:
        signature = headers.get("x-hmac-signature", "").lower()
        if not is_signed(body, self._credentials.shared_secrets, signature):
            raise WebhookRefused
        if not _same(headers.get("x-auth-client", ""), self._credentials.api_key):
            raise WebhookRefused
        return _hint(read.parse(body))


def _header(reply: ProviderReply, name: str) -> str | None:
    """A header under either of its names; empty, which is never valid, if the two differ.

    Veriff's reference of this call says `x-`, its older pages and the Feedback API say `vrf-`.
    """
    names = (f"x-{name}", f"vrf-{name}")
    values = {reply.headers[name] for name in names if name in reply.headers}
    return "" if len(values) > 1 else next(iter(values), None)


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


def _hint(message: read.Object) -> WebhookHint | None:
    """What a decision or event webhook is about.

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
    if not SESSION_ID.fullmatch(session_id) or not _WORD.fullmatch(status):
        raise read.Unreadable("id or status")
    if attempt_id and SESSION_ID.fullmatch(attempt_id) is None:
        raise read.Unreadable("attemptId")
    return WebhookHint(session_id=session_id, event_key=f"{session_id}:{attempt_id}:{status}")


def translate(response: Response[VeriffCredentials]) -> ProviderResult:
    """The result of any response of `GET /v1/sessions/{id}/decision`."""
    if response.reply.status == 200 and not _is_authentic(response):
        return response.refused(Finding.INVALID_RESPONSE, "bad_signature")
    return response.translated(_error, _session, FIELDS)


def _is_authentic(response: Response[VeriffCredentials]) -> bool:
    reply, credentials = response.reply, response.credentials
    client = _header(reply, "auth-client")
    if client is not None and not _same(client, credentials.api_key):
        return False
    signature = response.evidence.response_signature or ""
    return is_signed(reply.body, credentials.shared_secrets, signature.lower())


def _error(response: Response[VeriffCredentials]) -> ProviderResult:
    try:
        error = read.parse(response.reply.body)
        code = _code(error.get("code")) if error.get("status") == "fail" else None
    except read.Unreadable:
        # The error page of something in between: its status says enough.
        code = None
    if response.reply.status == 400 and code in _NOT_AN_ID:
        return response.refused(Finding.NOT_FOUND, code)
    return response.error(code, genuine=code is not None)


def _code(value: object) -> str | None:
    """A number as text; anything else could be a text about a person."""
    written = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    return written if _CODE.fullmatch(written) else None


def _session(response: Response[VeriffCredentials], body: read.Object) -> ProviderResult:
    if body.get("status") != "success" or "verification" not in body:
        raise read.Unreadable("status")
    verification = read.mapping(body, "verification")
    if not verification:
        # There is no decision yet.
        return replace(response.result(Finding.PENDING), live=_is_live(response))
    if verification.get("id") != response.session_id:
        return response.result(Finding.INVALID_RESPONSE, "other_session")
    status = read.text(verification, "status")
    outcome = _OUTCOMES.get(status or "")
    if outcome is None:
        return response.result(Finding.INVALID_RESPONSE, "unknown_status")
    code = _code(verification.get("reasonCode"))
    result = replace(
        response.result(outcome, code),
        provider_status=status,
        reason=REASONS.get(code or ""),
        live=_is_live(response),
        subject_reference=read.text(verification, "vendorData")
        or read.text(verification, "endUserId"),
    )
    with read.facts_unknown() as unread:
        result = replace(result, decided_at=read.instant(verification, "decisionTime"))
        if outcome is Finding.VERIFIED:
            result = _with_person(result, verification, response.fingerprint)
    return replace(result, unread=tuple(unread))


def _is_live(response: Response[VeriffCredentials]) -> bool:
    # Veriff's reference does not list this header; the signature authenticates the response.
    named, ours = response.reply.headers.get("vrf-integration-id"), response.credentials
    if named and ours.integration_id is not None and not _same(named, ours.integration_id):
        return False
    return ours.environment == "live"


def _with_person(
    result: ProviderResult, verification: read.Object, fingerprint: Fingerprint
) -> ProviderResult:
    """The result with what an approved verification says about the person."""
    document = Document(
        type=read.text(verification, "document.type"),
        issuing_country=read.text(verification, "document.country"),
        issuing_region=read.text(verification, "document.state"),
        expires_on=read.iso_date(verification, "document.validUntil"),
    )
    # Checks without a document return the input: that proves nothing.
    source = FactSource.DOCUMENT if document.type else FactSource.USER
    addresses = tuple(_addresses(verification, source))
    born = read.iso_date(verification, "person.dateOfBirth")
    number = read.text(verification, "document.number")
    # A document without a state was issued by that of the address on it.
    region = document.issuing_region or next((a.region for a in addresses if a.region), None)
    return replace(
        result,
        given_name=read.text(verification, "person.firstName"),
        family_name=read.text(verification, "person.lastName"),
        date_of_birth=born,
        date_of_birth_source=source if born else FactSource.NONE,
        addresses=addresses,
        document=document if document.type else None,
        document_fingerprint=fingerprint(document.issuing_country, region, document.type, number),
    )


def _addresses(verification: read.Object, source: FactSource) -> Iterator[Address]:
    for entry in read.objects(verification, "person.addresses"):
        parsed = read.mapping(entry, "parsedAddress")
        if parsed:
            names = {"line1": "street", "region": "state", "postal_code": "postcode"}
            yield Address(source=source, **read.texts(parsed, "city", "country", **names))
