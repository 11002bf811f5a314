"""Plaid Identity Verification, and the webhooks about it.

`user` is "either collected from the user or provided via API", so it counts only where `kyc_check`
says that a data source has exactly that; `extracted_data` is read from the document. Sources:
Plaid's published description, API version 2020-09-14; "Webhook verification".
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any, Final, Literal

import jwt

from countersign.identity import json_reader as read
from countersign.identity.base import Adapter, Credentials, Response, outcome_of_status
from countersign.identity.budget import Budget
from countersign.identity.fields import Fields, listed
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
from countersign.identity.types import ProviderReply, ProviderRequest, TransportFailure
from countersign.identity.webhook_jwt import PublicKey, WebhookKeys
from countersign.reason import Reason

API_VERSION: Final = "2020-09-14"
SESSION_ID: Final = re.compile(r"idv_[A-Za-z0-9]{8,64}", re.ASCII)
RETRIEVED_MAX: Final = 4096
"""Sessions that are remembered, so that strangers' messages do not delay those about them."""
_PRINTABLE: Final = re.compile(r"[\x21-\x7e]{8,200}")
_WORD: Final = re.compile(r"(?=_*[A-Za-z0-9])[A-Za-z0-9_]{1,64}", re.ASCII)
"""An error code or a status; a sentence could contain anything."""
_UNVERIFIED_BYTES_MAX: Final = 4096
"""Of a body that is read before its signature is checked; Plaid's messages have some 200 bytes."""
_CODES: Final = frozenset({"STATUS_UPDATED", "STEP_UPDATED", "RETRIED"})

_OUTCOMES: Final[Mapping[str, Finding]] = {
    "active": Finding.REQUIRES_INPUT,
    "success": Finding.VERIFIED,
    "failed": Finding.FAILED,
    "expired": Finding.EXPIRED,
    "canceled": Finding.CANCELED,
    "pending_review": Finding.PENDING,
}
_OURS: Final = frozenset(
    listed("""
    INCOMPATIBLE_API_VERSION INVALID_API_KEYS INVALID_BODY INVALID_HEADERS INVALID_PRODUCT
    INVALID_PRODUCTS MISSING_FIELDS PRODUCTS_NOT_ENABLED PRODUCT_NOT_ENABLED SANDBOX_ONLY
    UNKNOWN_FIELDS
    """)
)
"""Error codes about our credentials or our request. Which code means an unknown identifier is not
published: it is one of the remaining ones of the following types."""
_ABOUT_THE_ID: Final = frozenset({"INVALID_INPUT", "INVALID_REQUEST"})
_LATER: Final = frozenset({"API_ERROR", "RATE_LIMIT_EXCEEDED"})
REASONS: Final[Mapping[str, Reason]] = {
    "accept_tos": Reason.CONSENT_DECLINED,
    "verify_sms": Reason.CONTACT_UNVERIFIED,
    "kyc_check": Reason.DETAILS_MISMATCH,
    "documentary_verification": Reason.DOCUMENT_NOT_ACCEPTED,
    "selfie_check": Reason.SELFIE_NOT_ACCEPTED,
}
"""For failed steps."""
_STEPS: Final[Mapping[str, Tri]] = {
    **dict.fromkeys(("success", "manually_approved"), Tri.PASS),
    **dict.fromkeys(("failed", "manually_rejected"), Tri.FAIL),
    **dict.fromkeys(
        listed(
            "active waiting_for_prerequisite not_applicable skipped expired canceled",
            "pending_review",
        ),
        Tri.UNKNOWN,
    ),
}
"""The statuses of a step."""
_ACCEPTED: Final = frozenset({"success", "manually_approved"})
"""Of a step or a document: Plaid, or the account's reviewer at Plaid, lets it pass."""
_ABSENT: Final = frozenset({"not_applicable", "skipped"})
"""Of a step that this verification did not take."""
_STEP_NAMES: Final = (
    *("accept_tos", "verify_sms", "kyc_check", "documentary_verification", "selfie_check"),
    *("watchlist_screening", "risk_check"),
)
_MATCHES: Final = {
    "match": Tri.PASS,
    "no_match": Tri.FAIL,
    **dict.fromkeys(("partial_match", "no_data", "no_input"), Tri.UNKNOWN),
}
_SUMMARIES: Final = ("name", "date_of_birth", "address", "id_number", "phone_number")
FIELDS: Final = Fields(
    "id client_user_id status redacted_at completed_at request_id",
    f"user(date_of_birth name(given_name family_name) address) steps({' '.join(_STEP_NAMES)})",
    "documentary_verification(status documents(status attempt redacted_at",
    "extracted_data(date_of_birth address(postal_code country street city region) expiration_date",
    "name(given_name family_name) id_number category issuing_country issuing_region)",
    "analysis(authenticity aamva_verification(is_verified)",
    "extracted_data(name date_of_birth expiration_date))))",
    "kyc_check(status name(summary) date_of_birth(summary) address(summary postal_code)",
    "id_number(summary ssa_verification(is_deceased)) phone_number(summary))",
    # Ignored. Links, and contact data of the person.
    "created_at previous_attempt_id shareable_url template watchlist_screening_id beacon_user_id",
    "user_id user(phone_number email_address ip_address id_number)",
    # How Plaid reached its decision, and links that open for a minute to anyone.
    "documentary_verification(documents(extracted_data(issue_date) images",
    "analysis(extracted_data(issuing_country) aamva_verification(*) fraud_analysis_details",
    "human_review image_quality image_quality_details)))",
    # Parts of a summary, and what kind of address it is.
    "kyc_check(name(given_name family_name) date_of_birth(day month year) phone_number(area_code)",
    "address(street city region po_box type international_details)",
    "id_number(ssa_verification(match)))",
    # The status of the step is used; the rest is a face, a device, a telephone, a score.
    "selfie_check risk_check verify_sms latest_scored_protect_event",
)


class PlaidCredentials(Credentials, frozen=True, kw_only=True):
    """The credentials file for Plaid. Webhooks need no secret: Plaid signs them with its key."""

    client_id: str
    secret: str
    """The secret of the environment."""
    environment: Literal["live", "sandbox"]
    """Selects the host; Plaid's responses do not say it."""
    accept_kyc: bool = False
    """Whether a template without a document proves a person by what data sources confirm."""

    @property
    def origin(self) -> str:
        host = "production" if self.environment == "live" else "sandbox"
        return f"https://{host}.plaid.com"

    def check(self) -> None:
        for name, value in (("client_id", self.client_id), ("secret", self.secret)):
            if _PRINTABLE.fullmatch(value) is None:
                raise ValueError(f"`{name}` must be 8 to 200 printable characters without spaces")
        if self.client_id == self.secret:
            raise ValueError("`secret` is the client identifier; Plaid shows the secret next to it")


class Plaid(Adapter[PlaidCredentials]):
    """Plaid with the credentials of one account."""

    name = "plaid"
    credentials_type = PlaidCredentials
    session_id = SESSION_ID
    probe_session_id = "idv_CountersignAsksWhetherItMay"
    api_version = API_VERSION
    error_codes = frozenset(
        listed("""
        API_ERROR INTERNAL_SERVER_ERROR INVALID_API_KEYS INVALID_PRODUCT PRODUCTS_NOT_ENABLED
        PRODUCT_NOT_ENABLED RATE_LIMIT_EXCEEDED UNAUTHORIZED_ENVIRONMENT UNAUTHORIZED_ROUTE_ACCESS
        """)
    )

    def __init__(self, credentials: PlaidCredentials, **rest: Any) -> None:  # noqa: ANN401 - see the base
        super().__init__(credentials, **rest)
        self._keys = WebhookKeys(self._fetch_key, self._clock)
        self._retrieved: OrderedDict[str, None] = OrderedDict()

    async def _retrieve(self, session_id: str, budget: Budget) -> ProviderResult:
        self._retrieved[session_id] = None
        if len(self._retrieved) > RETRIEVED_MAX:
            self._retrieved.popitem(last=False)
        request = self._request("/identity_verification/get", identity_verification_id=session_id)
        return translate(await self._ask(session_id, request, budget))

    async def _read_webhook(self, headers: Mapping[str, str], body: bytes) -> WebhookHint | None:
        token = headers.get("plaid-verification", "")
        expected = _session_named(body) in self._retrieved
        signed = await self._keys.verify(token, body, self._now(), expected=expected)
        return _hint(read.parse(body), signed)

    async def _fetch_key(self, kid: str) -> PublicKey:
        request = self._request("/webhook_verification_key/get", key_id=kid)
        return key_of(await self._http.send(request), kid)

    def _request(self, path: str, **body: str) -> ProviderRequest:
        # A POST that only reads: safe to repeat.
        return ProviderRequest(
            method="POST",
            path=path,
            headers={
                "Content-Type": "application/json",
                "Accept": "application/json",
                "PLAID-CLIENT-ID": self._credentials.client_id,
                "PLAID-SECRET": self._credentials.secret,
                "Plaid-Version": API_VERSION,
            },
            body=json.dumps(body).encode("ascii"),
        )


def key_of(reply: ProviderReply, kid: str) -> PublicKey:
    """The key in a response of `/webhook_verification_key/get`.

    Raises:
        TransportFailure: Plaid cannot say now.
        Unreadable: there is none.
    """
    if outcome_of_status(reply.status) is Finding.PROVIDER_UNAVAILABLE:
        raise TransportFailure(Finding.PROVIDER_UNAVAILABLE, "no_key", reply.retry_after)
    jwk = read.mapping(read.parse(reply.body), "key")
    expected = {"kid": kid, "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig"}
    expired_at = jwk.get("expired_at")
    if any(jwk.get(name) != value for name, value in expected.items()):
        raise read.Unreadable("key")
    if type(expired_at) not in {int, type(None)}:
        raise read.Unreadable("expired_at")
    try:
        point = {name: read.text(jwk, name) or "" for name in ("x", "y")}
        return PublicKey(jwt.PyJWK({**expected, **point}).key, expired_at)
    except (jwt.PyJWTError, ValueError):
        raise read.Unreadable("key") from None


def _session_named(body: bytes) -> str:
    """The session that a message names, authentic or not; empty if the message is too long."""
    if len(body) > _UNVERIFIED_BYTES_MAX:
        return ""
    try:
        return read.text(read.parse(body), "identity_verification_id") or ""
    except read.Unreadable:
        return ""


def _hint(event: read.Object, signed: str) -> WebhookHint | None:
    # Plaid's events have no identifier, and two of one session have the same body; what is signed
    # differs by the time.
    if read.text(event, "webhook_type") != "IDENTITY_VERIFICATION":
        return None
    if read.text(event, "webhook_code") not in _CODES:
        return None
    session_id = read.matching(event, "identity_verification_id", SESSION_ID)
    return WebhookHint(session_id=session_id, event_key=signed)


def translate(response: Response[PlaidCredentials]) -> ProviderResult:
    """The result of any response of `/identity_verification/get`."""
    try:
        request_id = read.text(read.parse(response.reply.body), "request_id")
    except read.Unreadable:
        request_id = None
    evidence = replace(response.evidence, request_id=request_id)
    return replace(response, evidence=evidence).translated(_error, _session, FIELDS)


def _error(response: Response[PlaidCredentials]) -> ProviderResult:
    status = response.reply.status
    outcome = outcome_of_status(status)
    try:
        body = read.parse(response.reply.body)
        kind, code = read.text(body, "error_type"), read.text(body, "error_code")
    except read.Unreadable:
        # A gateway's page instead of Plaid's response can only mean "later".
        later = outcome is Finding.PROVIDER_UNAVAILABLE
        return response.refused(outcome if later else Finding.INVALID_RESPONSE)
    if kind in _LATER:
        outcome = Finding.PROVIDER_UNAVAILABLE
    elif status == 404 and kind is None:
        # Another server's 404: it says nothing about the session or the credentials.
        outcome = Finding.INVALID_RESPONSE
    elif outcome in {Finding.PROVIDER_REJECTED, Finding.NOT_FOUND}:
        ours = code is None or code in _OURS or code.startswith("UNAUTHORIZED_")
        about_the_id = kind in _ABOUT_THE_ID and status in {400, 404} and not ours
        outcome = Finding.NOT_FOUND if about_the_id else Finding.PROVIDER_REJECTED
    return response.refused(outcome, read.word(code, _WORD))


def _session(response: Response[PlaidCredentials], body: read.Object) -> ProviderResult:
    document = _accepted_document(body)
    if read.text(body, "id") != response.session_id:
        live = response.credentials.environment == "live"
        return replace(response.result(Finding.INVALID_RESPONSE, "other_session"), live=live)
    status = read.text(body, "status") or ""
    result = replace(
        response.result(_OUTCOMES.get(status, Finding.INVALID_RESPONSE)),
        live=response.credentials.environment == "live",
        provider_status=read.word(status, _WORD),
    )
    if body.get("redacted_at") is not None or document.get("redacted_at") is not None:
        return replace(result, outcome=Finding.REDACTED)
    if result.outcome is Finding.INVALID_RESPONSE:
        return replace(result, reason_code="unknown_status")
    steps = _steps(body)
    result = replace(result, subject_reference=read.text(body, "client_user_id"))
    with read.facts_unknown() as unread:
        result = replace(
            result,
            decided_at=read.instant(body, "completed_at"),
            checks=(*_step_checks(steps), *_match_checks(body, document)),
        )
    if result.outcome in {Finding.FAILED, Finding.PENDING}:
        failed = (name for name, step in steps.items() if _STEPS.get(step) is Tri.FAIL)
        step = next(failed, None)
        result = replace(result, reason_code=step, reason=REASONS.get(step or ""))
    if result.outcome is Finding.VERIFIED:
        unproved = _unproved(response, body, steps, document)
        if unproved:
            return _without_proof(result, *unproved)
        shown = document if steps["documentary_verification"] in _ACCEPTED else {}
        with read.facts_unknown() as unread_of_person:
            result = _with_person(result, body, steps, shown, response.fingerprint)
        unread += [name for name in unread_of_person if name not in unread]
    return replace(result, unread=tuple(unread))


def _steps(body: read.Object) -> Mapping[str, str]:
    """The status of each step; one that is missing or not published is `unknown`."""
    found = {name: read.text(body, f"steps.{name}") or "" for name in _STEP_NAMES}
    return {name: status if status in _STEPS else "unknown" for name, status in found.items()}


def _accepted_document(body: read.Object) -> read.Object:
    """The last attempt that was accepted, of at most three; empty if there is none."""
    documents = read.objects(body, "documentary_verification.documents")
    accepted = [each for each in documents if read.text(each, "status") in _ACCEPTED]
    return max(accepted, key=_attempt, default={})


def _attempt(document: read.Object) -> int:
    attempt = document.get("attempt")
    if not isinstance(attempt, int) or isinstance(attempt, bool):
        raise read.Unreadable("documents.attempt")
    return attempt


def _unproved(
    response: Response[PlaidCredentials],
    body: read.Object,
    steps: Mapping[str, str],
    document: read.Object,
) -> tuple[str, str] | None:
    """The step, and its status, because of which `success` proves nothing.

    `success` says that every step of the template is settled, no more.
    """
    selfie, shown = steps["selfie_check"], steps["documentary_verification"]
    if not {selfie, shown, steps["kyc_check"]} <= _STEPS.keys():
        raise read.Unreadable("steps")
    if selfie not in _ACCEPTED | _ABSENT:
        return "selfie_check", selfie
    if shown in _ACCEPTED and document:
        # The section may still say what Plaid found where a reviewer decided the step.
        if read.text(body, "documentary_verification.status") not in _ACCEPTED:
            raise read.Unreadable("documentary_verification.status")
        return None
    by_data = response.credentials.accept_kyc and shown in _ABSENT
    if by_data and steps["kyc_check"] == "success":
        return None
    return "documentary_verification", shown


def _without_proof(result: ProviderResult, step: str, status: str) -> ProviderResult:
    fails = _STEPS[status] is Tri.FAIL
    return replace(
        result,
        outcome=Finding.FAILED if fails else Finding.UNPROVED,
        reason_code=f"{step}.{status}",
        reason=REASONS.get(step) if fails else None,
    )


def _step_checks(steps: Mapping[str, str]) -> list[Check]:
    return [
        Check(name=f"steps.{name}", verdict=_STEPS.get(status, Tri.UNKNOWN), raw=status)
        for name, status in steps.items()
    ]


def _match_checks(body: read.Object, document: read.Object) -> list[Check]:
    """What matched a data source, and what was found of the document."""
    codes = {f"kyc_check.{name}": _summary(body, name) for name in _SUMMARIES}
    codes["document.authenticity"] = read.text(document, "analysis.authenticity")
    # A code that is not published is not repeated: it could be anything.
    found = [
        Check(name=name, verdict=_MATCHES[code], raw=code)
        for name, code in codes.items()
        if code is not None and code in _MATCHES
    ]
    verified = read.flag(document, "analysis.aamva_verification.is_verified")
    if verified is not None:
        verdict = Tri.PASS if verified else Tri.UNKNOWN
        found.append(Check(name="document.aamva", verdict=verdict, raw=str(verified).lower()))
    return found


def _with_person(
    result: ProviderResult,
    body: read.Object,
    steps: Mapping[str, str],
    document: read.Object,
    fingerprint: Fingerprint,
) -> ProviderResult:
    """With what is proved of the person, by the document if there is one, else by a data source."""
    shown, user = read.mapping(document, "extracted_data"), read.mapping(body, "user")
    matched = _is_matched(body, steps) and (not document or _is_same_person(document))
    name = read.mapping(shown if document else user if matched else {}, "name")
    born, source = read.iso_date(shown, "date_of_birth"), FactSource.DOCUMENT
    if born is None and matched and _summary(body, "date_of_birth") == "match":
        born, source = read.iso_date(user, "date_of_birth"), FactSource.DATABASE
    addresses = [
        _address(shown, FactSource.DOCUMENT),
        _address(user, FactSource.DATABASE) if matched and _is_address_matched(body) else None,
    ]
    described = _document(document, shown, result.decided_at)
    issuer = described.issuing_country, described.issuing_region
    number = read.text(shown, "id_number")
    return replace(
        result,
        given_name=read.text(name, "given_name"),
        family_name=read.text(name, "family_name"),
        date_of_birth=born,
        date_of_birth_source=source if born is not None else FactSource.NONE,
        addresses=tuple(filter(None, addresses)),
        document=described if document else None,
        document_fingerprint=fingerprint(*issuer, described.type, number),
    )


def _document(document: read.Object, shown: read.Object, decided_at: datetime | None) -> Document:
    """The document; of an expired one without a date, the latest date that it can have had.

    Expired documents are a matter of the account's rules. That date is one that was over everywhere
    when Plaid decided.
    """
    expires_on = read.iso_date(shown, "expiration_date")
    found = _code(document, "analysis.extracted_data.expiration_date")
    if expires_on is None and found == "expired":
        expires_on = date.min if decided_at is None else decided_at.date() - timedelta(days=2)
    return Document(
        type=read.text(shown, "category"),
        issuing_country=read.text(shown, "issuing_country"),
        issuing_region=read.text(shown, "issuing_region"),
        expires_on=expires_on,
    )


def _is_matched(body: read.Object, steps: Mapping[str, str]) -> bool:
    """Whether a data source knows a living person with exactly the name of the input."""
    dead = read.value(body, "kyc_check.id_number.ssa_verification.is_deceased")
    passed = steps["kyc_check"] == "success" == read.text(body, "kyc_check.status")
    born, name = _summary(body, "date_of_birth"), _summary(body, "name")
    # A father has his son's name and address, and another birth date.
    other = born not in {None, "match", "no_data", "no_input"}
    return passed and dead in (None, False) and not other and _is_named_alike(name, born)


def _is_same_person(document: read.Object) -> bool:
    """Whether the document is that of the person of the input.

    Otherwise one could show one's licence with the name and address of another person as input.
    """
    born = _code(document, "analysis.extracted_data.date_of_birth")
    name = _code(document, "analysis.extracted_data.name")
    return _is_named_alike(name, born) and born in {"match", "no_data"}


def _is_named_alike(name: str | None, born: str | None) -> bool:
    """Whether a name is the same: also in part (Mike, or a middle name), if the birth date is."""
    return name == "match" or (name == "partial_match" and born == "match")


def _is_address_matched(body: read.Object) -> bool:
    """Whether the whole address matched, and the postal code too where it has a result."""
    postal_code = _code(body, "kyc_check.address.postal_code")
    return postal_code in {None, "match"} and _summary(body, "address") == "match"


def _summary(body: read.Object, name: str) -> str | None:
    return _code(body, f"kyc_check.{name}.summary")


def _code(parts: read.Object, path: str) -> str | None:
    """A match code; an unreadable one does not count as absent, which could match."""
    absent = read.value(parts, path) in (None, "")
    return read.text(parts, path) or (None if absent else "unreadable")


def _address(parts: read.Object, source: FactSource) -> Address | None:
    given = read.mapping(parts, "address")
    if not given:
        return None
    names = {"line1": "street", "line2": "street2"}
    texts = read.texts(given, "city", "region", "postal_code", "country", **names)
    return Address(source=source, **texts)
