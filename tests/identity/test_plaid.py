"""Plaid Identity Verification: the result of each response, by function and over HTTP."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, date, datetime
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.base.values import Reason, from_ns
from countersign.core.buyers.decision import decide
from countersign.core.buyers.rules import DocumentExpiry, VerificationRules
from countersign.identity import plaid
from countersign.identity.model import FactSource, Finding, ProviderResult, Tri
from countersign.identity.transport import ProviderReply
from countersign_simulators import plaid as simulated
from countersign_simulators.base import Session, merged
from countersign_simulators.server import serve
from tests.identity.asking import (
    JUNK,
    FixedClock,
    day,
    fingerprint,
    places,
    put,
    reply,
    single,
    translated,
)
from tests.support.every import every

SESSION: Final = "idv_ExampleAbC123"
DOCUMENT: Final[dict[str, Any]] = {
    "status": "success",
    "attempt": 1,
    "extracted_data": {
        "id_number": "AB123456",
        "category": "drivers_license",
        "expiration_date": "2030-05-29",
        "issuing_country": "US",
        "issuing_region": "CA",
        "date_of_birth": "1990-05-29",
        "address": {
            "street": "123 Main St.",
            "city": "San Francisco",
            "region": "CA",
            "postal_code": "94111",
            "country": "US",
        },
        "name": {"given_name": "Jane", "family_name": "Doe"},
    },
    "analysis": {
        "authenticity": "match",
        "extracted_data": {
            "name": "match",
            "date_of_birth": "match",
            "expiration_date": "not_expired",
        },
        "aamva_verification": {"is_verified": True},
    },
    "redacted_at": None,
}
KYC: Final[dict[str, Any]] = {
    "status": "success",
    "address": {"summary": "match", "postal_code": "match"},
    "name": {"summary": "match"},
    "date_of_birth": {"summary": "match"},
}
SUCCESS: Final[dict[str, Any]] = {
    "id": SESSION,
    "client_user_id": "buyer-1",
    "completed_at": "2026-11-01T17:04:00Z",
    "status": "success",
    "user": {
        "date_of_birth": "1951-01-02",
        "name": {"given_name": "Typed", "family_name": "Elsewhere"},
        "address": {
            "street": "9 Typed Rd",
            "street2": None,
            "city": "Oakland",
            "region": "CA",
            "postal_code": "94612",
            "country": "US",
        },
    },
    "steps": {
        "accept_tos": "success",
        "verify_sms": "success",
        "kyc_check": "success",
        "documentary_verification": "success",
        "selfie_check": "success",
        "watchlist_screening": "success",
        "risk_check": "success",
    },
    "documentary_verification": {"status": "success", "documents": [DOCUMENT]},
    "kyc_check": KYC,
    "redacted_at": None,
    "request_id": "req-1",
}
CREDENTIALS: Final = plaid.PlaidCredentials(
    client_id=simulated.CLIENT_ID, secret=simulated.SECRETS["live"], environment="live"
)
KYC_ACCEPTED: Final = msgspec.structs.replace(CREDENTIALS, accept_kyc=True)


def read(answer: ProviderReply, asked: plaid.PlaidCredentials = CREDENTIALS) -> ProviderResult:
    return translated(plaid.Plaid, asked, answer, SESSION)


def changed(**members: object) -> dict[str, Any]:
    return merged(SUCCESS, members)


def documents(*given_: object, step: str = "success") -> dict[str, Any]:
    return changed(
        documentary_verification={"status": step, "documents": list(given_)},
        steps={"documentary_verification": step},
    )


def document(**members: object) -> dict[str, Any]:
    return merged(DOCUMENT, members)


def extracted(**members: object) -> dict[str, Any]:
    return documents(document(extracted_data=members))


NO_DOCUMENT: Final = changed(
    documentary_verification=None,
    steps={"documentary_verification": "not_applicable", "selfie_check": "not_applicable"},
)


def test_a_success_gives_the_documents_facts_and_the_matched_address() -> None:
    """Data read from the document comes first; the typed address counts if it matched."""
    result = read(reply(SUCCESS))
    assert (result.outcome, result.live, result.subject_reference) == (
        Finding.VERIFIED,
        True,
        "buyer-1",
    )
    assert result.date_of_birth == date(1990, 5, 29)
    assert result.date_of_birth_source is FactSource.DOCUMENT
    assert [(a.postal_code, a.source) for a in result.addresses] == [
        ("94111", FactSource.DOCUMENT),
        ("94612", FactSource.DATABASE),
    ]
    assert result.document is not None
    assert (result.document.type, result.document.issuing_region) == ("drivers_license", "CA")
    assert result.document.expires_on == date(2030, 5, 29)
    assert result.document_fingerprint == fingerprint("USA", "California", "dl", "AB123456")
    assert result.decided_at == datetime(2026, 11, 1, 17, 4, tzinfo=UTC)
    assert result.evidence is not None
    assert result.evidence.request_id == "req-1"


@every(
    ("body", "outcome", "reason"),
    [
        (changed(status="active"), Finding.REQUIRES_INPUT, None),
        (changed(status="pending_review"), Finding.PENDING, None),
        (changed(status="expired"), Finding.EXPIRED, None),
        (changed(status="canceled"), Finding.CANCELED, None),
        (
            changed(status="failed", steps={"selfie_check": "failed"}),
            Finding.FAILED,
            "selfie_check",
        ),
        (changed(status="succeeded"), Finding.INVALID_RESPONSE, "unknown_status"),
        (changed(status=None), Finding.INVALID_RESPONSE, "unknown_status"),
        (changed(status=["success"]), Finding.INVALID_RESPONSE, "unreadable"),
        (changed(id="idv_SomebodyElse1"), Finding.INVALID_RESPONSE, "other_session"),
        (changed(id=...), Finding.INVALID_RESPONSE, "other_session"),
        # Redacted, whatever the status says, and although data may still be there.
        (changed(redacted_at="2026-11-02T00:00:00Z"), Finding.REDACTED, None),
        (changed(redacted_at=""), Finding.REDACTED, None),
        (changed(redacted_at="x", status="odd"), Finding.REDACTED, None),
        (documents(document(redacted_at="2026-11-02T00:00:00Z")), Finding.REDACTED, None),
        # `success` without a document, a face, or a verdict proves no one.
        (NO_DOCUMENT, Finding.UNPROVED, "documentary_verification.not_applicable"),
        (
            documents(document(status="failed"), step="success"),
            Finding.UNPROVED,
            "documentary_verification.success",
        ),
        (documents(DOCUMENT, step="failed"), Finding.FAILED, "documentary_verification.failed"),
        (
            documents(DOCUMENT, step="manually_rejected"),
            Finding.FAILED,
            "documentary_verification.manually_rejected",
        ),
        (changed(steps={"selfie_check": "failed"}), Finding.FAILED, "selfie_check.failed"),
        (changed(steps={"selfie_check": "active"}), Finding.UNPROVED, "selfie_check.active"),
        (changed(steps={"selfie_check": "splendid"}), Finding.INVALID_RESPONSE, "unreadable"),
        (documents(DOCUMENT, step="splendid"), Finding.INVALID_RESPONSE, "unreadable"),
        (
            changed(documentary_verification={"status": "failed"}),
            Finding.INVALID_RESPONSE,
            "unreadable",
        ),
    ],
)
def test_every_status_and_trap_has_its_outcome(
    body: dict[str, Any], outcome: Finding, reason: str | None
) -> None:
    """One outcome each; personal data is returned only if verified."""
    result = read(reply(body))
    assert (result.outcome, result.reason_code) == (outcome, reason)
    assert (result.date_of_birth, result.addresses) == (None, ())
    assert (result.document, result.document_fingerprint) == (None, None)


def test_the_last_accepted_attempt_counts() -> None:
    """Neither a failed attempt nor the order in the list decides which document counts."""
    third = document(attempt=3, extracted_data={"date_of_birth": "1977-07-07"})
    failed = document(attempt=2, status="failed", extracted_data={"date_of_birth": "2011-01-01"})
    result = read(reply(documents(third, DOCUMENT, failed)))
    assert result.date_of_birth == date(1977, 7, 7)


def test_a_document_approved_by_a_reviewer_counts() -> None:
    """The account's own reviewer at Plaid may let a document pass."""
    body = documents(document(status="manually_approved"), step="manually_approved")
    assert read(reply(body)).outcome is Finding.VERIFIED


@every(
    "change",
    [
        {"kyc_check": {"address": {"summary": "partial_match"}}},
        {"kyc_check": {"address": {"summary": "no_data"}}},
        {"kyc_check": {"address": {"postal_code": "partial_match"}}},
        {"kyc_check": {"address": {"postal_code": "no_match"}}},
        {
            "kyc_check": {
                "name": {"summary": "partial_match"},
                "date_of_birth": {"summary": "no_data"},
            }
        },
        {"kyc_check": {"name": {"summary": ["match"]}}},
        {"kyc_check": {"date_of_birth": {"summary": ["no_match"]}}},
        {"kyc_check": {"address": {"postal_code": ["match"]}}},
        {"kyc_check": {"id_number": {"ssa_verification": {"is_deceased": "yes"}}}},
        {"kyc_check": {"status": "failed"}},
        {"kyc_check": {"id_number": {"ssa_verification": {"is_deceased": True}}}},
        {"kyc_check": None},
        {"steps": {"kyc_check": "failed"}},
        {"steps": {"kyc_check": "manually_approved"}},
    ],
)
def test_a_typed_address_that_did_not_match_is_left_out(change: dict[str, Any]) -> None:
    """`user` is typed or pre-filled: only an exact match by a data source proves it."""
    result = read(reply(merged(SUCCESS, change)))
    assert result.outcome is Finding.VERIFIED
    assert [address.source for address in result.addresses] == [FactSource.DOCUMENT]


@pytest.mark.parametrize(
    "analysis",
    [
        {"extracted_data": {"name": "no_match"}},
        {"extracted_data": {"name": "partial_match", "date_of_birth": "no_data"}},
        {"extracted_data": {"date_of_birth": "no_match"}},
        {"extracted_data": None},
    ],
)
def test_matched_data_of_another_person_is_not_mixed_in(analysis: dict[str, Any]) -> None:
    """One's own licence with the typed name and address of somebody else proves no address."""
    result = read(reply(documents(document(analysis=analysis))))
    assert [address.source for address in result.addresses] == [FactSource.DOCUMENT]


@pytest.mark.parametrize(
    "change",
    [
        {"kyc_check": {"name": {"summary": "partial_match"}}},
        {
            "documentary_verification": {
                "documents": [document(analysis={"extracted_data": {"name": "partial_match"}})]
            }
        },
    ],
)
def test_a_name_that_agrees_in_part_counts_with_the_birth_date(change: dict[str, Any]) -> None:
    """Mike is Michael, and a middle name is left out, where the birth date is the same."""
    result = read(reply(merged(SUCCESS, change)))
    assert [address.source for address in result.addresses] == [
        FactSource.DOCUMENT,
        FactSource.DATABASE,
    ]


@pytest.mark.parametrize(
    ("body", "member", "reasons"),
    [
        (extracted(date_of_birth="29/05/1990"), "date_of_birth", ["age_unknown"]),
        (extracted(date_of_birth=19900529), "date_of_birth", ["age_unknown"]),
        (
            extracted(expiration_date="2030-02-30"),
            "extracted_data.expiration_date",
            ["document_expiry_unknown"],
        ),
        (extracted(address="94111"), "address", ["zip_unknown"]),
        (changed(completed_at="yesterday"), "completed_at", []),
    ],
)
def test_a_fact_that_cannot_be_read_is_unknown(
    body: dict[str, Any], member: str, reasons: list[str]
) -> None:
    """One misread member does not make the session unusable for good, and is named for the log."""
    result = read(reply(merged(body, {"kyc_check": None})))
    decision = decide(
        result,
        VerificationRules(document_expiry=DocumentExpiry.UNEXPIRED),
        shipping_zip="94111",
        subject_reference=None,
        now=from_ns(FixedClock().time_ns()),
    )
    assert result.unread == (member,)
    assert list(decision.reasons) == reasons


def test_a_reviewers_yes_counts_like_plaids_own() -> None:
    """The step says `manually_approved` although the section still shows Plaid's findings."""
    body = merged(SUCCESS, {"steps": {"documentary_verification": "manually_approved"}})
    assert read(reply(body)).outcome is Finding.VERIFIED


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ("selfie_check", Reason.SELFIE_NOT_ACCEPTED),
        ("documentary_verification", Reason.DOCUMENT_NOT_ACCEPTED),
        ("kyc_check", Reason.DETAILS_MISMATCH),
        ("verify_sms", Reason.CONTACT_UNVERIFIED),
        ("watchlist_screening", None),
        ("risk_check", None),
    ],
)
def test_a_failed_step_becomes_a_reason_of_ours(step: str, reason: Reason | None) -> None:
    """Where it says something that the buyer can act on."""
    assert read(reply(changed(status="failed", steps={step: "failed"}))).reason is reason


def test_a_birth_that_no_document_shows_may_come_from_the_data_source() -> None:
    """With its own source, and only where it matched."""
    body = extracted(date_of_birth=None)
    result = read(reply(body))
    assert (result.date_of_birth, result.date_of_birth_source) == (
        date(1951, 1, 2),
        FactSource.DATABASE,
    )
    unmatched = merged(body, {"kyc_check": {"date_of_birth": {"summary": "partial_match"}}})
    result = read(reply(unmatched))
    assert (result.date_of_birth, result.date_of_birth_source) == (None, FactSource.NONE)


def test_without_a_document_only_accounts_that_accept_it_are_served() -> None:
    """By that policy, matched data proves a person, without a document."""
    result = read(reply(NO_DOCUMENT), KYC_ACCEPTED)
    assert result.outcome is Finding.VERIFIED
    assert result.date_of_birth_source is FactSource.DATABASE
    assert [address.source for address in result.addresses] == [FactSource.DATABASE]
    assert (result.document, result.document_fingerprint) == (None, None)


@pytest.mark.parametrize(
    "change",
    [
        {"steps": {"kyc_check": "failed"}},
        {"steps": {"kyc_check": "skipped"}},
        {"steps": {"documentary_verification": "failed"}},
        {"steps": {"documentary_verification": "active"}},
    ],
)
def test_that_policy_covers_a_missing_document_not_a_refused_one(change: dict[str, Any]) -> None:
    """A document that failed is not made good by data that matched."""
    outcome = read(reply(merged(NO_DOCUMENT, change)), KYC_ACCEPTED).outcome
    assert outcome in {Finding.FAILED, Finding.UNPROVED}


def test_an_unmatched_name_identifies_no_one() -> None:
    """Without document and match, the typed name is unproved."""
    body = merged(NO_DOCUMENT, {"kyc_check": {"name": {"summary": "no_match"}}})
    result = read(reply(body), KYC_ACCEPTED)
    assert (result.date_of_birth, result.addresses) == (None, ())


@pytest.mark.parametrize("missing", ["id_number", "issuing_country", "category"])
def test_no_fingerprint_without_number_issuer_or_kind(missing: str) -> None:
    """Half a document would be the same document as somebody else's."""
    assert read(reply(extracted(**{missing: None}))).document_fingerprint is None


def test_a_document_that_has_expired_on_an_unknown_day_is_an_expired_one() -> None:
    """Plaid says so without the date: it is judged as any other expired document is."""
    undated = document(
        extracted_data={"expiration_date": None},
        analysis={"extracted_data": {"expiration_date": "expired"}},
    )
    result = read(reply(documents(undated)))
    now = day("2026-11-01T18:00:00")

    def judged(rule: DocumentExpiry) -> list[str]:
        rules = VerificationRules(document_expiry=rule)
        zip_ = result.addresses[0].postal_code or ""
        answer = decide(result, rules, shipping_zip=zip_, subject_reference=None, now=now)
        return list(answer.reasons)

    assert judged(DocumentExpiry.UNEXPIRED_IF_KNOWN) == ["document_expired"]
    assert judged(DocumentExpiry.IGNORED) == []
    read_later = read(reply(merged(documents(undated), {"completed_at": None})))
    assert read_later.document is not None
    assert read_later.document.expires_on == date.min


@pytest.mark.parametrize("code", ["no_match", "partial_match"])
def test_an_address_of_somebody_born_on_another_day_is_not_the_buyers(code: str) -> None:
    """Father and son have one name and one address in the data source."""
    result = read(reply(changed(kyc_check={"date_of_birth": {"summary": code}})))
    assert [address.source for address in result.addresses] == [FactSource.DOCUMENT]


@pytest.mark.parametrize("body", [{}, {"detail": "Not Found"}, {"error": {"code": "not_found"}}])
def test_a_404_that_is_not_plaids_is_not_about_the_session(body: object) -> None:
    """Nor about our credentials: `--check` against another server must not praise them."""
    assert read(reply(body, 404)).outcome is Finding.INVALID_RESPONSE


def test_a_passport_is_issued_by_a_country_alone() -> None:
    """Without a region, the country is the issuer; and a passport has no address."""
    result = read(reply(extracted(issuing_region=None, category="passport", address=None)))
    assert result.document_fingerprint == fingerprint("US", None, "PASSPORT", "AB123456")
    assert [address.source for address in result.addresses] == [FactSource.DATABASE]


def test_the_steps_and_matches_are_kept_as_checks() -> None:
    """Under Plaid's names, and with unknown words not repeated."""
    body = changed(
        steps={"risk_check": "Jane Doe", "verify_sms": "skipped"},
        kyc_check={"phone_number": {"summary": "no_match"}, "id_number": {"summary": "Jane"}},
    )
    checks = {check.name: (check.verdict, check.raw) for check in read(reply(body)).checks}
    assert checks["steps.documentary_verification"] == (Tri.PASS, "success")
    assert checks["steps.verify_sms"] == (Tri.UNKNOWN, "skipped")
    assert checks["steps.risk_check"] == (Tri.UNKNOWN, "unknown")
    assert checks["kyc_check.phone_number"] == (Tri.FAIL, "no_match")
    assert checks["document.authenticity"] == (Tri.PASS, "match")
    assert checks["document.aamva"] == (Tri.PASS, "true")
    assert "kyc_check.id_number" not in checks


def refusal(kind: str, code: str | None) -> dict[str, Any]:
    return {"error_type": kind, "error_code": code, "error_message": "idv_…", "request_id": "r"}


@every(
    ("status", "body", "outcome", "reason"),
    [
        (400, refusal("INVALID_INPUT", "INVALID_FIELD"), Finding.NOT_FOUND, "INVALID_FIELD"),
        (400, refusal("INVALID_REQUEST", "INVALID_FIELD"), Finding.NOT_FOUND, "INVALID_FIELD"),
        (404, refusal("INVALID_REQUEST", "NOT_FOUND"), Finding.NOT_FOUND, "NOT_FOUND"),
        (
            400,
            refusal("INVALID_INPUT", "INVALID_API_KEYS"),
            Finding.PROVIDER_REJECTED,
            "INVALID_API_KEYS",
        ),
        (
            400,
            refusal("INVALID_INPUT", "UNAUTHORIZED_ENVIRONMENT"),
            Finding.PROVIDER_REJECTED,
            "UNAUTHORIZED_ENVIRONMENT",
        ),
        (
            400,
            refusal("INVALID_REQUEST", "MISSING_FIELDS"),
            Finding.PROVIDER_REJECTED,
            "MISSING_FIELDS",
        ),
        (400, refusal("INVALID_INPUT", None), Finding.PROVIDER_REJECTED, "http_400"),
        (400, refusal("ITEM_ERROR", "ITEM_X"), Finding.PROVIDER_REJECTED, "ITEM_X"),
        (401, refusal("INVALID_INPUT", "WHATEVER"), Finding.PROVIDER_REJECTED, "WHATEVER"),
        (403, {}, Finding.PROVIDER_REJECTED, "http_403"),
        (
            400,
            refusal("RATE_LIMIT_EXCEEDED", "RATE_LIMIT"),
            Finding.PROVIDER_UNAVAILABLE,
            "RATE_LIMIT",
        ),
        (
            429,
            refusal("RATE_LIMIT_EXCEEDED", "RATE_LIMIT"),
            Finding.PROVIDER_UNAVAILABLE,
            "RATE_LIMIT",
        ),
        (
            500,
            refusal("API_ERROR", "INTERNAL_SERVER_ERROR"),
            Finding.PROVIDER_UNAVAILABLE,
            "INTERNAL_SERVER_ERROR",
        ),
        (400, refusal("INVALID_INPUT", "Jane Doe"), Finding.NOT_FOUND, "http_400"),
        (502, b"<html>", Finding.PROVIDER_UNAVAILABLE, "http_502"),
        (404, b"<html>", Finding.INVALID_RESPONSE, "http_404"),
        (400, b"<html>", Finding.INVALID_RESPONSE, "http_400"),
        (302, b"", Finding.INVALID_RESPONSE, "http_302"),
        (204, b"", Finding.INVALID_RESPONSE, "http_204"),
        (200, b"", Finding.INVALID_RESPONSE, "unreadable"),
        (200, b"[]", Finding.INVALID_RESPONSE, "unreadable"),
        (200, json.dumps(SUCCESS).encode()[:-30], Finding.INVALID_RESPONSE, "unreadable"),
        (200, b'{"id":"a","id":"b"}', Finding.INVALID_RESPONSE, "unreadable"),
    ],
)
def test_every_error_has_its_outcome(
    status: int, body: object, outcome: Finding, reason: str
) -> None:
    """An unknown identifier is distinct from refused credentials; messages go nowhere."""
    result = read(reply(body, status))
    assert (result.outcome, result.reason_code) == (outcome, reason)
    assert result.retry_after is not None


@given(place=st.sampled_from(places(SUCCESS)), junk=JUNK | st.just(...))
def test_no_malformed_answer_raises(place: tuple[str | int, ...], junk: object) -> None:
    """Whatever stands anywhere, there is a result; only a whole `success` verifies."""
    body = put(SUCCESS, place, junk)
    result = read(reply(body))
    decisive = body.get("status"), body.get("id"), body.get("redacted_at")
    if decisive != ("success", SESSION, None):
        assert result.outcome is not Finding.VERIFIED
    if result.outcome is not Finding.VERIFIED:
        assert result.date_of_birth is None
        assert result.addresses == ()


@given(st.binary(max_size=200), st.integers(100, 599))
def test_no_bytes_raise_or_verify(body: bytes, status: int) -> None:
    """Bytes that are no verification give an outcome, and no buyer."""
    assert read(reply(body, status)).outcome is not Finding.VERIFIED


# --- over HTTP ----------------------------------------------------------------------------------

OUTCOMES: Final = {
    "requires_input": Finding.REQUIRES_INPUT,
    "pending": Finding.PENDING,
    "failed": Finding.FAILED,
    "failed_selfie": Finding.FAILED,
    "canceled": Finding.CANCELED,
    "expired": Finding.EXPIRED,
    "unknown_status": Finding.INVALID_RESPONSE,
    "redacted": Finding.REDACTED,
    "redacted_document": Finding.REDACTED,
    "no_document": Finding.UNPROVED,
    "other_environment": Finding.NOT_FOUND,
    "wrong_id": Finding.INVALID_RESPONSE,
    "truncated": Finding.INVALID_RESPONSE,
    "oversized": Finding.INVALID_RESPONSE,
    "rate_limited": Finding.PROVIDER_UNAVAILABLE,
    "server_error": Finding.PROVIDER_UNAVAILABLE,
    "bad_gateway": Finding.PROVIDER_UNAVAILABLE,
    "slow": Finding.PROVIDER_UNAVAILABLE,
    "cut": Finding.PROVIDER_UNAVAILABLE,
}
"""Every other part is verified at Plaid, and judged by the decision."""
HOPELESS: Final = {"server_error", "bad_gateway", "slow", "cut"}
"""Failures that no retry cures: with a shorter time-out, to keep the test fast."""


async def ask(
    *session_ids: str, credentials: plaid.PlaidCredentials = CREDENTIALS, patient: bool = True
) -> tuple[list[ProviderResult], int]:
    """The results, and how many requests arrived."""
    clock = FixedClock()
    async with serve(simulated.Plaid(clock.now)) as served:
        provider = plaid.Plaid(
            credentials, base_url=served.url, fingerprint=fingerprint, clock=clock
        )
        if not patient:
            provider._http = single(served.url, clock, read_seconds=0.5)
        results = [await provider.retrieve(asked) for asked in session_ids]
        await provider.close()
        return results, len(served.requests)


def listed() -> list[Session]:
    return list(simulated.Plaid(FixedClock().now).sessions)


def test_every_simulated_session_has_its_outcome_and_decision() -> None:
    """Through a real socket; `verified` is decided exactly for the sessions that simulate it."""
    sessions = [s for s in listed() if s.session_id != "idv_RateLimitedOnce"]
    hopeless = [s for s in sessions if s.scenario in HOPELESS]
    others = [s for s in sessions if s.scenario not in HOPELESS]
    results, _ = asyncio.run(ask(*(s.session_id for s in others)))
    failures, _ = asyncio.run(ask(*(s.session_id for s in hopeless), patient=False))
    rules = VerificationRules(document_expiry=DocumentExpiry.UNEXPIRED)
    for session, result in zip([*others, *hopeless], [*results, *failures], strict=True):
        assert result.outcome is OUTCOMES.get(session.scenario, Finding.VERIFIED), (
            session.session_id
        )
        decision = decide(
            result,
            rules,
            shipping_zip=session.shipping_zip,
            subject_reference=session.subject_reference,
            now=datetime.fromtimestamp(FixedClock().seconds, UTC),
        )
        assert (decision.status == "verified") == (session.scenario == "verified"), (
            session.session_id
        )


def test_a_passing_trouble_is_outlived_by_a_second_attempt() -> None:
    """A 429 without Retry-After does not reach the caller."""
    (result,), requests = asyncio.run(ask("idv_RateLimitedOnce"))
    assert (result.outcome, requests) == (Finding.VERIFIED, 2)


def test_a_long_wait_is_passed_on_to_the_caller() -> None:
    """No one waits thirty seconds in an open request; the next one succeeds."""
    (first, second), requests = asyncio.run(ask(*["idv_RateLimitedLonger"] * 2))
    assert (first.outcome, first.retry_after) == (Finding.PROVIDER_UNAVAILABLE, 30)
    assert (second.outcome, requests) == (Finding.VERIFIED, 2)


def test_a_wrong_secret_is_rejected_and_the_probe_is_not_found() -> None:
    """Asking for the probe separates working credentials from others."""
    wrong = msgspec.structs.replace(CREDENTIALS, secret="of-somebody-else-altogether")
    (rejected,), _ = asyncio.run(ask(plaid.Plaid.probe_session_id, credentials=wrong))
    (absent,), _ = asyncio.run(ask(plaid.Plaid.probe_session_id))
    assert (rejected.outcome, rejected.reason_code) == (
        Finding.PROVIDER_REJECTED,
        "INVALID_API_KEYS",
    )
    assert absent.outcome is Finding.NOT_FOUND


def test_a_session_of_the_sandbox_is_not_live() -> None:
    """The credentials state the environment: a live key must refuse the session later."""
    sandbox = msgspec.structs.replace(
        CREDENTIALS, secret=simulated.SECRETS["sandbox"], environment="sandbox"
    )
    (result,), _ = asyncio.run(ask("idv_SandboxEnvironment", credentials=sandbox))
    assert (result.outcome, result.live) == (Finding.VERIFIED, False)
    assert sandbox.origin == "https://sandbox.plaid.com"
    assert CREDENTIALS.origin == "https://production.plaid.com"


def test_the_request_matches_plaids_documentation() -> None:
    """The version is pinned, the secret goes into a header only, the body names the session."""

    async def asked() -> tuple[ProviderResult, dict[str, str], bytes]:
        clock = FixedClock()
        async with serve(simulated.Plaid(clock.now)) as served:
            provider = plaid.Plaid(
                CREDENTIALS, base_url=served.url, fingerprint=fingerprint, clock=clock
            )
            result = await provider.retrieve("idv_VerifiedLicense")
            await provider.close()
            return result, dict(served.requests[0].headers), served.requests[0].body

    result, headers, body = asyncio.run(asked())
    assert headers["plaid-version"] == "2020-09-14"
    assert headers["plaid-client-id"] == CREDENTIALS.client_id
    assert headers["plaid-secret"] == CREDENTIALS.secret
    assert json.loads(body) == {"identity_verification_id": "idv_VerifiedLicense"}
    evidence = result.evidence
    assert evidence is not None
    assert evidence.request_target == "POST /identity_verification/get"
    assert (evidence.request_id, evidence.api_version) == ("sim000000000001", "2020-09-14")


def test_the_same_document_has_one_fingerprint() -> None:
    """Two sessions of one licence agree; another's do not."""
    names = ("idv_VerifiedLicense", "idv_VerifiedSameDocument", "idv_VerifiedSecondBuyer")
    (one, again, other), _ = asyncio.run(ask(*names))
    assert one.document_fingerprint == again.document_fingerprint is not None
    assert other.document_fingerprint not in {None, one.document_fingerprint}


def test_a_result_shows_nothing_of_a_person() -> None:
    """Neither the result nor its parts show a name in a repr."""
    result = read(reply(SUCCESS))
    shown = repr((result, result.addresses, result.document, result.evidence))
    assert not any(word in shown for word in ("Jane", "Main St", "94111", "1990"))
