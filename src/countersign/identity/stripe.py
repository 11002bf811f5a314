"""Stripe Identity: VerificationSessions, and the webhooks about them.

Sources: Stripe's API reference, version 2026-10-28.endive; "Access verification results" for which
key may read what; "Verify webhook signatures manually".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import Final

from countersign.identity import json_reader as read
from countersign.identity.base import Adapter, Credentials, Response
from countersign.identity.budget import Budget
from countersign.identity.fields import Fields
from countersign.identity.fingerprint import Fingerprint
from countersign.identity.model import (
    Address,
    Check,
    Document,
    FactSource,
    Finding,
    ProviderResult,
    Tri,
    WebhookHint,
)
from countersign.identity.types import ProviderReply, ProviderRequest, is_transient
from countersign.identity.webhook_signature import check_timestamped
from countersign.reason import Reason

API_VERSION: Final = "2026-10-28.endive"
SESSION_ID: Final = re.compile(r"vs_[A-Za-z0-9]{8,200}", re.ASCII)
_API_KEY: Final = re.compile(r"rk_(?:live|test)_[A-Za-z0-9_]{8,250}", re.ASCII)
_WEBHOOK_SECRET: Final = re.compile(r"whsec_[!-~]{8,250}", re.ASCII)
_EVENT_ID: Final = re.compile(r"evt_[A-Za-z0-9_]{1,200}", re.ASCII)
_WORD: Final = re.compile(r"[a-z0-9_]{1,64}", re.ASCII)
_EVENT: Final = "identity.verification_session."
_CHANGES: Final = frozenset(
    {"created", "processing", "verified", "requires_input", "canceled", "redacted"}
)
_EXPANDED: Final = ("verified_outputs", "last_verification_report")
_SENSITIVE: Final = (
    "verified_outputs.dob",
    "last_verification_report.document.expiration_date",
    # Only for the fingerprint.
    "last_verification_report.document.number",
)
_OUTCOMES: Final[Mapping[str, Finding]] = {
    "verified": Finding.VERIFIED,
    "processing": Finding.PENDING,
    "requires_input": Finding.REQUIRES_INPUT,
    "canceled": Finding.CANCELED,
}
REASONS: Final[Mapping[str, Reason]] = {
    "consent_declined": Reason.CONSENT_DECLINED,
    "country_not_supported": Reason.DOCUMENT_UNSUPPORTED,
    "device_not_supported": Reason.DEVICE_UNSUPPORTED,
    "document_expired": Reason.DOCUMENT_EXPIRED,
    "document_type_not_supported": Reason.DOCUMENT_UNSUPPORTED,
    "document_unverified_other": Reason.DOCUMENT_NOT_ACCEPTED,
    "email_unverified_other": Reason.CONTACT_UNVERIFIED,
    "email_verification_declined": Reason.CONTACT_UNVERIFIED,
    "id_number_insufficient_document_data": Reason.DOCUMENT_UNREADABLE,
    "id_number_mismatch": Reason.DETAILS_MISMATCH,
    "id_number_unverified_other": Reason.DETAILS_MISMATCH,
    "phone_unverified_other": Reason.CONTACT_UNVERIFIED,
    "phone_verification_declined": Reason.CONTACT_UNVERIFIED,
    "selfie_document_missing_photo": Reason.DOCUMENT_UNSUPPORTED,
    "selfie_face_mismatch": Reason.SELFIE_MISMATCH,
    "selfie_manipulated": Reason.SELFIE_NOT_ACCEPTED,
    "selfie_unverified_other": Reason.SELFIE_NOT_ACCEPTED,
    "under_supported_age": Reason.AGE_BELOW_MINIMUM,
}
"""For the codes of `last_error`; `abandoned` says no more than the outcome."""
_VERDICTS: Final = {"verified": Tri.PASS, "unverified": Tri.FAIL}
_CHECKS: Final = ("document", "id_number", "selfie", "email", "phone")
_REDACTED: Final = "[redacted]"
_REDACTED_BIRTH: Final = date(1, 1, 1)
_NAMES: Final = "first_name last_name"
_ADDRESS: Final = "address(postal_code country line1 line2 city state)"
FIELDS: Final = Fields(
    "object id status livemode redaction(status) last_error(code) client_reference_id metadata",
    f"verified_outputs(dob {_ADDRESS} {_NAMES})",
    "last_verification_report(verification_session created",
    "document(status type issuing_country expiration_date number) selfie(status) email(status)",
    "phone(status) id_number(status))",
    # Ignored. A sentence that can contain personal data, and secrets of the buyer's browser.
    "last_error(reason) client_secret url",
    # When and how the session was begun; input, which proves nothing; links to other objects.
    "created type options verification_flow provided_details related_customer",
    "related_customer_account related_person",
    "verified_outputs(email phone id_number id_number_type sex unparsed_sex",
    "unparsed_place_of_birth)",
    # `verified_outputs` has Stripe's final values; pictures are never requested.
    "last_verification_report(document(address dob first_name last_name issued_date sex",
    "unparsed_sex unparsed_place_of_birth files error) selfie(document selfie error)",
    "email(email error) phone(phone error) id_number(dob first_name last_name id_number",
    "id_number_type error) id object livemode client_reference_id type options verification_flow)",
)


class StripeCredentials(Credentials, frozen=True, kw_only=True):
    """The credentials file of an account that uses Stripe Identity.

    Stripe's responses say whether a session is live.
    """

    api_key: str
    """A restricted key, `rk_live_…` or `rk_test_…`."""
    webhook_secrets: tuple[str, ...] = ()
    """Each `whsec_…`; two during a replacement. Without any, webhooks are refused."""
    failing_errors: tuple[str, ...] = ("selfie_manipulated", "under_supported_age")
    """The codes of `last_error` that are a final refusal, rather than a reason to try again."""
    subject_metadata_key: str | None = None
    """The metadata key with the reference to the buyer, if not `client_reference_id`."""

    @property
    def origin(self) -> str:
        return "https://api.stripe.com"

    @property
    def is_test(self) -> bool:
        return self.api_key.startswith("rk_test_")

    def check(self) -> None:
        if self.api_key.startswith(("sk_", "pk_")):
            raise ValueError(
                "api_key: only a restricted key (rk_…) can read dates of birth. Create one at "
                "Stripe with the permissions 'Verification Sessions and Reports: Read' and 'Access "
                "recent sensitive verification results: Read', and nothing else."
            )
        if not _API_KEY.fullmatch(self.api_key):
            raise ValueError("api_key: give a restricted key, rk_live_… or rk_test_….")
        if not all(map(_WEBHOOK_SECRET.fullmatch, self.webhook_secrets)):
            raise ValueError("webhook_secrets: each must begin with whsec_, as Stripe shows it.")
        if self.subject_metadata_key == "":
            raise ValueError("subject_metadata_key: leave it out to use client_reference_id.")


class Stripe(Adapter[StripeCredentials]):
    """Stripe Identity with the credentials of one account."""

    name = "stripe"
    credentials_type = StripeCredentials
    session_id = SESSION_ID
    probe_session_id = "vs_000000000000000000000000"
    api_version = API_VERSION
    request_id_header = "request-id"
    error_codes = frozenset({"api_key_expired", "lock_timeout", "rate_limit"})

    async def _retrieve(self, session_id: str, budget: Budget) -> ProviderResult:
        everything = self._request(session_id, (*_EXPANDED, *_SENSITIVE))
        response = await self._ask(session_id, everything, budget)
        if response.reply.status != 403:
            return translate(response)
        # A key without access to sensitive results makes the whole request fail. The outcome is
        # useful without them, and the decision sees what is missing.
        response = await self._ask(session_id, self._request(session_id, _EXPANDED), budget)
        evidence = replace(response.evidence, sensitive_complete=False)
        return translate(replace(response, evidence=evidence))

    async def _read_webhook(self, headers: Mapping[str, str], body: bytes) -> WebhookHint | None:
        secrets = self._credentials.webhook_secrets
        check_timestamped(headers.get("stripe-signature", ""), body, secrets, self._now())
        return _hint(read.parse(body))

    def _request(self, session_id: str, expanded: tuple[str, ...]) -> ProviderRequest:
        return ProviderRequest(
            path=f"/v1/identity/verification_sessions/{session_id}",
            query=tuple(("expand[]", path) for path in expanded),
            headers={
                "Authorization": f"Bearer {self._credentials.api_key}",
                "Stripe-Version": API_VERSION,
            },
            is_transient=_is_transient,
        )


def _is_transient(reply: ProviderReply) -> bool:
    """Stripe can say itself whether to try again; 409 is an object locked for a moment."""
    advice = reply.headers.get("stripe-should-retry")
    if advice in {"true", "false"}:
        return advice == "true"
    return reply.status == 409 or is_transient(reply)


def _hint(event: read.Object) -> WebhookHint | None:
    kind = event.get("type")
    if event.get("object") != "event" or not isinstance(kind, str):
        raise read.Unreadable("event")
    if not kind.startswith(_EVENT) or kind.removeprefix(_EVENT) not in _CHANGES:
        return None
    session_id = read.matching(event, "data.object.id", SESSION_ID)
    return WebhookHint(session_id=session_id, event_key=read.matching(event, "id", _EVENT_ID))


def translate(response: Response[StripeCredentials]) -> ProviderResult:
    """The result of any response of `GET /v1/identity/verification_sessions/{id}`."""
    return response.translated(_error, _session, FIELDS)


def _error(response: Response[StripeCredentials]) -> ProviderResult:
    """By `error.code`, never `error.message`, which contains the session id."""
    try:
        code = read.word(read.value(read.parse(response.reply.body), "error.code"), _WORD)
    except read.Unreadable:
        code = None
    return response.error(code, genuine=code == "resource_missing")


def _session(response: Response[StripeCredentials], session: read.Object) -> ProviderResult:
    if session.get("object") != "identity.verification_session":
        raise read.Unreadable("object")
    if session.get("id") != response.session_id:
        raise read.Unreadable("id")
    live = read.flag(session, "livemode")
    if live is None:
        raise read.Unreadable("livemode")
    status = read.text(session, "status")
    report = _report(session)
    code = read.word(read.value(session, "last_error.code"), _WORD)
    outcome = _OUTCOMES.get(status or "", Finding.INVALID_RESPONSE)
    # Before the status: a redacted session is still `verified`.
    if _redacted(session, report):
        outcome = Finding.REDACTED
    elif outcome is Finding.REQUIRES_INPUT and code in response.credentials.failing_errors:
        outcome = Finding.FAILED
    result = replace(
        response.result(outcome, code),
        provider_status=read.word(status, _WORD),
        reason=REASONS.get(code or ""),
        live=live,
        subject_reference=_subject(session, response.credentials.subject_metadata_key),
    )
    if outcome is Finding.INVALID_RESPONSE:
        return replace(result, reason_code="unknown_status")
    if outcome is not Finding.VERIFIED:
        return result
    if report and report.get("verification_session") != response.session_id:
        raise read.Unreadable("last_verification_report.verification_session")
    if _withholds_sensitive(session, report):
        result = replace(result, evidence=replace(response.evidence, sensitive_complete=False))
    with read.facts_unknown() as unread:
        result = _with_person(result, session, report, response.fingerprint)
    return replace(result, unread=tuple(unread))


def _report(session: read.Object) -> read.Object:
    """The report; empty if there is none, or only its identifier."""
    name = "last_verification_report"
    return {} if isinstance(session.get(name), str) else read.mapping(session, name)


def _withholds_sensitive(session: read.Object, report: read.Object) -> bool:
    """Whether a verified session came without members that were requested.

    Stripe leaves them out for a restricted key without an allow-list 48 hours after the
    verification; a document that has none shows null instead.
    """
    try:
        outputs, document = (
            read.mapping(session, "verified_outputs"),
            read.mapping(report, "document"),
        )
    except read.Unreadable:
        return False
    return "dob" not in outputs or (bool(document) and "expiration_date" not in document)


def _redacted(session: read.Object, report: read.Object) -> bool:
    """Whether Stripe has redacted it, or is about to.

    The placeholders count too, so that a session is recognised before `redaction` is set.
    """
    if session.get("redaction") is not None:
        return True
    with read.facts_unknown():
        outputs = read.mapping(session, "verified_outputs")
        if read.parts_date(outputs, "dob") == _REDACTED_BIRTH:
            return True
    return _has_placeholder(outputs) or _has_placeholder(report)


def _has_placeholder(value: object) -> bool:
    if isinstance(value, dict):
        return any(_has_placeholder(member) for member in value.values())
    return value == _REDACTED


def _subject(session: read.Object, metadata_key: str | None) -> str | None:
    if metadata_key is None:
        return read.text(session, "client_reference_id")
    return read.as_text(read.mapping(session, "metadata").get(metadata_key), "metadata")


def _with_person(
    result: ProviderResult, session: read.Object, report: read.Object, fingerprint: Fingerprint
) -> ProviderResult:
    """The result with what a verified session and its report say about a person."""
    by_document = read.value(report, "document.status") == "verified"
    # A passport has none.
    address = _address(session, FactSource.DOCUMENT if by_document else FactSource.USER)
    document = _document(report, address) if by_document else None
    born = read.parts_date(session, "verified_outputs.dob")
    result = replace(
        result,
        decided_at=read.instant(session, "last_verification_report.created") if report else None,
        given_name=read.text(session, "verified_outputs.first_name"),
        family_name=read.text(session, "verified_outputs.last_name"),
        date_of_birth=born,
        date_of_birth_source=_birth_source(report) if born else FactSource.NONE,
        addresses=(address,) if address else (),
        document=document,
        checks=tuple(_checks(report)),
    )
    number = read.text(report, "document.number")
    if document is None:
        return result
    issuer = document.issuing_country, document.issuing_region
    return replace(result, document_fingerprint=fingerprint(*issuer, document.type, number))


def _birth_source(report: read.Object) -> FactSource:
    """What proves `verified_outputs.dob`, which can also be input of the buyer."""
    if read.value(report, "document.status") == "verified":
        return FactSource.DOCUMENT
    matched = read.value(report, "id_number.status") == "verified"
    return FactSource.DATABASE if matched else FactSource.USER


def _address(session: read.Object, source: FactSource) -> Address | None:
    parts = read.mapping(session, "verified_outputs.address")
    if not parts:
        return None
    # One sample of Stripe's has `zip`; the schema and every SDK have `postal_code`.
    given = read.texts(parts, "line1", "line2", "city", "postal_code", "country", region="state")
    return Address(source=source, **given)


def _document(report: read.Object, address: Address | None) -> Document:
    return Document(
        type=read.text(report, "document.type"),
        issuing_country=read.text(report, "document.issuing_country"),
        # Stripe does not name the issuing state: a licence is issued where its holder lives.
        issuing_region=address.region if address else None,
        expires_on=read.parts_date(report, "document.expiration_date"),
    )


def _checks(report: read.Object) -> list[Check]:
    words = {name: read.word(read.value(report, f"{name}.status"), _WORD) for name in _CHECKS}
    return [
        Check(name=name, verdict=_VERDICTS.get(word, Tri.UNKNOWN), raw=word)
        for name, word in words.items()
        if word is not None
    ]
