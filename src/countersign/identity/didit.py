"""Didit: the decision of a session, `GET /v3/session/{id}/decision/`, and the webhooks.

Sources: Didit's pages "Retrieve session", "Verification statuses" and "Webhooks". The statuses are
words with capitals and spaces, and are compared exactly. The package `didit` in Python's index has
nothing to do with this provider.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final

from countersign.errors import WebhookRefused
from countersign.identity import json_reader as read
from countersign.identity.base import Adapter, Credentials, Response
from countersign.identity.budget import Budget
from countersign.identity.fields import Fields, by_word
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
from countersign.identity.same_person import Holder
from countersign.identity.types import ProviderRequest
from countersign.identity.webhook_signature import is_fresh, is_signed
from countersign.reason import Reason

API_VERSION: Final = "v3"
SESSION_ID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.ASCII)
CANONICAL_BYTES_MAX: Final = 64 * 1024
CANONICAL_MEMBERS_MAX: Final = 2048
"""Above these, only the signature of the bytes counts: a body has to be parsed before
X-Signature-V2 can be checked. Didit's messages have some hundred members."""
_VISIBLE: Final = re.compile(r"[!-~]{8,300}", re.ASCII)
_SECRETS_MAX: Final = 5
_SECONDS: Final = re.compile(r"[0-9]{1,12}", re.ASCII)
_EVENT_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,100}", re.ASCII)
_WHOLE_MAX: Final = 2.0**53
"""Above it a number with a fraction or an exponent is no exact integer: `1e300` would become 301
digits."""
_HANDLED: Final = frozenset({"status.updated", "data.updated"})

_OUTCOMES: Final[Mapping[str, Finding]] = {
    "Approved": Finding.VERIFIED,
    "In Progress": Finding.PENDING,
    "In Review": Finding.PENDING,
    "Not Started": Finding.REQUIRES_INPUT,
    "Awaiting User": Finding.REQUIRES_INPUT,
    "Resubmitted": Finding.REQUIRES_INPUT,
    "Declined": Finding.FAILED,
    "Abandoned": Finding.CANCELED,
    "Expired": Finding.EXPIRED,
    "Kyc Expired": Finding.EXPIRED,
}
_LIVE: Final[Mapping[str | None, bool | None]] = {None: None, "live": True}
"""Any other environment is not the live one."""
_VERDICTS: Final[Mapping[str, Tri]] = {
    "Approved": Tri.PASS,
    "Declined": Tri.FAIL,
    "In Review": Tri.UNKNOWN,
    "Not Finished": Tri.UNKNOWN,
}
_FEATURES: Final = (
    "id_verifications",
    "liveness_checks",
    "face_matches",
    "poa_verifications",
    "database_validations",
)
_RISK: Final = re.compile(r"[A-Z][A-Z0-9_]{0,79}", re.ASCII)
_NAME_MISMATCHES: Final = (
    "NAME_MISMATCH_ID_VERIFICATION",
    "NAME_MISMATCH_WITH_PROVIDED",
    "POA_NAME_MISMATCH_BETWEEN_DOCUMENTS",
)
REASONS: Final[Mapping[str, Reason]] = by_word(
    {
        Reason.DOCUMENT_EXPIRED: "DOCUMENT_EXPIRED",
        Reason.AGE_BELOW_MINIMUM: "MINIMUM_AGE_NOT_MET",
        Reason.DOCUMENT_UNSUPPORTED: (
            "DOCUMENT_NOT_SUPPORTED_FOR_APPLICATION PORTRAIT_IMAGE_NOT_DETECTED"
        ),
        Reason.DOCUMENT_UNREADABLE: """
        QR_NOT_DETECTED BARCODE_NOT_DETECTED MRZ_NOT_DETECTED COULD_NOT_RECOGNIZE_DOCUMENT
        DOCUMENT_SIDES_MISMATCH""",
        Reason.DOCUMENT_NOT_ACCEPTED: """
        QR_VALIDATION_FAILED BARCODE_VALIDATION_FAILED MRZ_VALIDATION_FAILED
        MRZ_AND_DATA_EXTRACTED_FROM_OCR_NOT_SAME DATA_INCONSISTENT SCREEN_CAPTURE_DETECTED
        PRINTED_COPY_DETECTED PORTRAIT_MANIPULATION_DETECTED""",
        Reason.SELFIE_MISMATCH: "LOW_FACE_MATCH_SIMILARITY",
        Reason.SELFIE_NOT_ACCEPTED: """
        NO_FACE_DETECTED LOW_LIVENESS_SCORE LIVENESS_FACE_ATTACK LOW_FACE_QUALITY""",
        Reason.DETAILS_MISMATCH: " ".join(
            ("DOCUMENT_NAME_DIFFERENT_FROM_OTHER_APPROVED_DOCUMENTS", *_NAME_MISMATCHES)
        ),
    }
)
"""For Didit's risks (its pages of warnings), without those of the lists of blocked people."""
_NAME_MATCH_MIN: Final = 90
"""Of 100: how alike the name on a proof of address has to be to that on the document. Didit's page
"Proof of address warnings" says that 90 to 95 is typical; an account can let any mismatch pass, and
the proof is approved all the same."""
_PARSED: Final = (
    "(street_1 street_2 city region country postal_code is_verified address_type "
    "document_location raw_results)"
)
FIELDS: Final = Fields(
    "session_id session_kind status environment vendor_data created_at",
    # Ignored (`*`): the age, which contradicts the date of birth in Didit's examples, addresses in
    # one line, pictures, and what else no decision needs.
    "id_verifications(status document_type document_number issuing_state expiration_date",
    f"first_name last_name date_of_birth parsed_address{_PARSED} warnings(risk *) *)",
    f"poa_verifications(status issuing_state poa_parsed_address{_PARSED} warnings(risk *)",
    "name_match_score_id_verification *)",
    # A database match depends on what was sent in, and is not described well enough to trust.
    "liveness_checks(status *) face_matches(status *) database_validations(status *) ip_analyses",
    # Input, which proves nothing, and how the account uses Didit.
    "expected_details metadata session_number workflow_id features",
)


class DiditCredentials(Credentials, frozen=True, kw_only=True):
    """The credentials file for Didit, whose responses say whether a session is live."""

    api_key: str
    """Of the application whose sessions count."""
    webhook_secrets: tuple[str, ...] = ()
    """Of each webhook destination, old and new during a replacement. Without any, webhooks are
    refused, and undecided sessions are only polled."""

    @property
    def origin(self) -> str:
        return "https://verification.didit.me"

    def check(self) -> None:
        if len(self.webhook_secrets) > _SECRETS_MAX:
            raise ValueError(f"webhook_secrets: give at most {_SECRETS_MAX}")
        named = {f"webhook_secrets[{i}]": secret for i, secret in enumerate(self.webhook_secrets)}
        for name, value in {"api_key": self.api_key, **named}.items():
            if _VISIBLE.fullmatch(value) is None:
                raise ValueError(f"{name}: give 8 to 300 visible ASCII characters, without spaces")
        if self.api_key in self.webhook_secrets:
            raise ValueError(
                "webhook_secrets: this value is the API key; give the destination's secret"
            )


class Didit(Adapter[DiditCredentials]):
    """Didit with the credentials of one application."""

    name = "didit"
    credentials_type = DiditCredentials
    session_id = SESSION_ID
    probe_session_id = "00000000-0000-4000-8000-000000000000"
    api_version = API_VERSION

    async def _retrieve(self, session_id: str, budget: Budget) -> ProviderResult:
        request = ProviderRequest(
            # Without the slash at the end Didit redirects, and the key is lost on the way.
            path=f"/v3/session/{session_id}/decision/",
            headers={"x-api-key": self._credentials.api_key, "Accept": "application/json"},
        )
        return translate(await self._ask(session_id, request, budget))

    async def _read_webhook(self, headers: Mapping[str, str], body: bytes) -> WebhookHint | None:
        now, secrets = self._now(), self._credentials.webhook_secrets
        sent = headers.get("x-timestamp", "")
        if _SECONDS.fullmatch(sent) is None or not is_fresh(int(sent), now):
            raise WebhookRefused
        if is_signed(body, secrets, headers.get("x-signature", "").lower()):
            return _hint(read.parse(body), now)
        signature = headers.get("x-signature-v2", "").lower()
        return _hint(_signed_content(signature, body, secrets), now)


def _signed_content(signature: str, body: bytes, secrets: Sequence[str]) -> read.Object:
    """The content of a message by X-Signature-V2.

    It covers what the bytes say, so that it survives proxies that re-encode JSON. The bytes have to
    be parsed before it can be checked: only few. X-Signature-Simple covers only some members and is
    not accepted.

    Raises:
        WebhookRefused: it is not authentic.
        read.Unreadable: it is not JSON within bounds, or has no canonical form.
    """
    # Signs inside of texts count too: too many of them only cost this way to sign.
    members = sum(body.count(sign) for sign in (b",", b"[", b"{"))
    if not signature or len(body) > CANONICAL_BYTES_MAX or members > CANONICAL_MEMBERS_MAX:
        raise WebhookRefused
    message = read.parse(body)
    if not is_signed(canonical_json(message), secrets, signature):
        raise WebhookRefused
    return message


def canonical_json(message: read.Object) -> bytes:
    """What X-Signature-V2 signs.

    Members sorted by name, no spaces, Unicode as it is, and numbers without a fraction written as
    integers.

    Raises:
        read.Unreadable: it holds text that has no encoding, or a number that is not exact.
    """
    try:
        return json.dumps(
            _whole(message), sort_keys=True, separators=(",", ":"), ensure_ascii=False
        ).encode("utf-8")
    except ValueError:
        raise read.Unreadable("no canonical form") from None


def _whole(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, dict):
        return {name: _whole(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_whole(member) for member in value]
    if not isinstance(value, float):
        return value
    if abs(value) > _WHOLE_MAX:
        raise ValueError
    return int(value) if value.is_integer() else value


def _hint(message: read.Object, now: int) -> WebhookHint | None:
    written = message.get("timestamp")
    # X-Timestamp is not signed. Where the signed message has a time, that counts too: otherwise an
    # old message could be sent again under a new header.
    if isinstance(written, int | float) and not is_fresh(written, now):
        raise WebhookRefused
    kind = read.text(message, "webhook_type")
    if kind not in _HANDLED or message.get("session_kind") == "business":
        return None
    session_id = read.matching(message, "session_id", SESSION_ID)
    event_id = read.word(message.get("event_id"), _EVENT_ID)
    event_key = event_id or sha256(canonical_json(message)).hexdigest()
    return WebhookHint(session_id=session_id, event_key=event_key)


def translate(response: Response[DiditCredentials]) -> ProviderResult:
    """The result of any response of `GET /v3/session/{id}/decision/`."""
    return response.translated(_error, _session, FIELDS)


def _error(response: Response[DiditCredentials]) -> ProviderResult:
    """Didit's errors have `detail`, and sometimes `code`.

    Another framework's response for an unknown path looks much the same.
    """
    try:
        error = read.parse(response.reply.body)
    except read.Unreadable:
        error = {}
    detail = error.get("detail")
    genuine = isinstance(detail, str) and detail != "Not Found"
    return response.error(genuine=genuine and error.keys() <= {"detail", "code"})


def _session(response: Response[DiditCredentials], session: read.Object) -> ProviderResult:
    if session.get("session_id") != response.session_id:
        return response.result(Finding.INVALID_RESPONSE, "other_session")
    if session.get("session_kind") not in (None, "user"):
        # It verifies a business, not a person.
        return response.result(Finding.INVALID_RESPONSE, "unknown_kind")
    status = read.text(session, "status")
    outcome = _OUTCOMES.get(status or "")
    if outcome is None:
        return response.result(Finding.INVALID_RESPONSE, "unknown_status")
    result = replace(
        response.result(outcome),
        provider_status=status,
        live=_LIVE.get(read.text(session, "environment"), False),
        subject_reference=read.text(session, "vendor_data"),
    )
    with read.facts_unknown() as unread:
        result = replace(
            result,
            # No member has the time of the decision; it was not before the session was made.
            decided_at=read.instant(session, "created_at"),
            checks=tuple(_checks(session)),
        )
        if outcome is Finding.VERIFIED:
            result = _with_person(result, session, response.fingerprint)
        else:
            result = _with_reason(result, session)
    return replace(result, unread=tuple(unread))


def _with_person(
    result: ProviderResult, session: read.Object, fingerprint: Fingerprint
) -> ProviderResult:
    """The result with what is proved of the person; UNPROVED without a document."""
    documents = _approved(session, "id_verifications")
    if not documents:
        # Without proof of who the person is, an address could be anyone's.
        return replace(result, outcome=Finding.UNPROVED)
    last = documents[-1]
    holder = _holder(last)
    of_one = all(_holder(each).may_be(holder) for each in documents[:-1])
    proofs = [each for each in _approved(session, "poa_verifications") if _names_alike(each)]
    addresses = [
        *_addresses(documents, "parsed_address", FactSource.DOCUMENT),
        *_addresses(proofs, "poa_parsed_address", FactSource.PROOF_OF_ADDRESS),
    ]
    if not of_one:
        # Two documents that disagree about the person prove nothing of either.
        addresses = [replace(address, source=FactSource.NONE) for address in addresses]
    birth = holder.date_of_birth if of_one else None
    # The state is the one of the address on the document; `issuing_state` is a country.
    on_it = next(_addresses([last], "parsed_address", FactSource.DOCUMENT), None)
    region = on_it.region if on_it else None
    country, kind = read.text(last, "issuing_state"), read.text(last, "document_type")
    document = Document(
        type=kind,
        issuing_country=country,
        issuing_region=region if country == "USA" else None,
        expires_on=read.iso_date(last, "expiration_date"),
    )
    return replace(
        result,
        given_name=holder.given_name,
        family_name=holder.family_name,
        date_of_birth=birth,
        date_of_birth_source=FactSource.DOCUMENT if birth else FactSource.NONE,
        addresses=tuple(addresses),
        document=document if kind else None,
        document_fingerprint=fingerprint(country, region, kind, read.text(last, "document_number")),
    )


def _holder(document: read.Object) -> Holder:
    return Holder(
        given_name=read.text(document, "first_name"),
        family_name=read.text(document, "last_name"),
        date_of_birth=read.iso_date(document, "date_of_birth"),
    )


def _names_alike(proof: read.Object) -> bool:
    """Whether a proof of address is of the person on the document."""
    score = proof.get("name_match_score_id_verification")
    if not isinstance(score, int | float) or isinstance(score, bool) or score < _NAME_MATCH_MIN:
        return False
    risks = _risks(proof)
    return risks is not None and set(risks).isdisjoint(_NAME_MISMATCHES)


def _risks(entry: read.Object) -> list[str] | None:
    """Didit's codes for what it found, without its sentences; None if unreadable."""
    warnings = [] if entry.get("warnings") is None else entry["warnings"]
    if not isinstance(warnings, list) or not all(isinstance(one, dict) for one in warnings):
        read.unreadable("warnings")
        return None
    risks = [warning.get("risk") for warning in warnings]
    return [risk for risk in risks if read.word(risk, _RISK)]


def _approved(session: read.Object, feature: str) -> list[read.Object]:
    return [entry for entry in read.objects(session, feature) if entry.get("status") == "Approved"]


def _addresses(
    entries: Sequence[read.Object], member: str, source: FactSource
) -> Iterator[Address]:
    for entry in entries:
        parsed = read.mapping(entry, member)
        if not parsed:
            continue
        verified = parsed.get("is_verified")
        names = {"line1": "street_1", "line2": "street_2"}
        yield Address(
            source=source if verified is None or verified is True else FactSource.NONE,
            # Older responses name no country there, but that of the document.
            country=read.text(parsed, "country") or read.text(entry, "issuing_state"),
            **read.texts(parsed, "city", "region", "postal_code", **names),
        )


def _checks(session: read.Object) -> Iterator[Check]:
    for feature in _FEATURES:
        for entry in read.objects(session, feature):
            raw = read.text(entry, "status")
            if raw is not None and raw in _VERDICTS:
                yield Check(name=feature, verdict=_VERDICTS[raw], raw=raw)


def _with_reason(result: ProviderResult, session: read.Object) -> ProviderResult:
    """With Didit's first risk, and the first known one of what is not approved."""
    found: list[str] = []
    known: list[Reason] = []
    for feature in _FEATURES:
        for entry in read.objects(session, feature):
            risks = _risks(entry) or []
            found += risks
            if entry.get("status") != "Approved":
                known += [REASONS[risk] for risk in risks if risk in REASONS]
    return replace(result, reason_code=next(iter(found), None), reason=next(iter(known), None))
