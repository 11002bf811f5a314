"""Stripe Identity: the result of each response, by function and over HTTP."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.base.values import from_ns
from countersign.core.buyers.decision import decide
from countersign.core.buyers.rules import DocumentExpiry, VerificationRules
from countersign.identity import stripe
from countersign.identity.model import FactSource, Finding, ProviderResult, Tri
from countersign.identity.transport import ProviderReply
from countersign_simulators import stripe as simulated
from countersign_simulators.base import Session
from countersign_simulators.server import serve
from countersign_simulators.stripe_sessions import session_id
from tests.identity.asking import (
    JUNK,
    FixedClock,
    fingerprint,
    places,
    put,
    reply,
    single,
    translated,
)
from tests.simulators.published import STRIPE_ERROR_CODES
from tests.support.every import every

SESSION: Final = "vs_1ExampleAbCdEfGhIjKlMnOp"
ADDRESS: Final = {
    "line1": "7714 Marrowbone Lantern Way",
    "line2": None,
    "city": "San Francisco",
    "state": "CA",
    "postal_code": "94110",
    "country": "US",
}
VERIFIED: Final[dict[str, Any]] = {
    "id": SESSION,
    "object": "identity.verification_session",
    "client_reference_id": "buyer-1",
    "created": 1794873600,
    "last_error": None,
    "livemode": True,
    "metadata": {"order": "buyer-2"},
    "redaction": None,
    "status": "verified",
    "verified_outputs": {
        "first_name": "Zaphira",
        "last_name": "Quillfeather",
        "dob": {"day": 14, "month": 3, "year": 1987},
        "address": ADDRESS,
    },
    "last_verification_report": {
        "id": "vr_1Example",
        "object": "identity.verification_report",
        "created": 1794873900,
        "verification_session": SESSION,
        "document": {
            "status": "verified",
            "type": "driving_license",
            "issuing_country": "US",
            "number": "Q7714093",
            "expiration_date": {"day": 1, "month": 12, "year": 2030},
        },
        "selfie": {"status": "unverified"},
    },
}
CREDENTIALS: Final = stripe.StripeCredentials(
    api_key=simulated.SENSITIVE_KEY, webhook_secrets=(simulated.WEBHOOK_SECRET,)
)


def read(
    answer: ProviderReply, credentials: stripe.StripeCredentials = CREDENTIALS
) -> ProviderResult:
    return translated(stripe.Stripe, credentials, answer, SESSION)


def changed(**members: object) -> dict[str, Any]:
    return VERIFIED | members


def outputs(**members: object) -> dict[str, Any]:
    return changed(verified_outputs=VERIFIED["verified_outputs"] | members)


def document(**members: object) -> dict[str, Any]:
    report = VERIFIED["last_verification_report"]
    given = report["document"] | members
    return changed(last_verification_report=report | {"document": given})


def test_a_verified_session_gives_the_documents_facts() -> None:
    """Name, birth, address, expiry and reference come from where Stripe documents them."""
    result = read(reply(VERIFIED))
    assert (result.outcome, result.live, result.subject_reference) == (
        Finding.VERIFIED,
        True,
        "buyer-1",
    )
    assert (result.date_of_birth, result.date_of_birth_source) == (
        date(1987, 3, 14),
        FactSource.DOCUMENT,
    )
    (address,) = result.addresses
    assert (address.postal_code, address.country, address.source) == (
        "94110",
        "US",
        FactSource.DOCUMENT,
    )
    assert result.document is not None
    assert (result.document.type, result.document.issuing_region) == ("driving_license", "CA")
    assert result.document.expires_on == date(2030, 12, 1)
    assert result.document_fingerprint == fingerprint("US", "CA", "dl", "Q7714093")
    assert {check.name: check.verdict for check in result.checks} == {
        "document": Tri.PASS,
        "selfie": Tri.FAIL,
    }


@every(
    ("body", "outcome", "reason"),
    [
        (changed(status="processing"), Finding.PENDING, None),
        (changed(status="requires_input"), Finding.REQUIRES_INPUT, None),
        (changed(status="canceled"), Finding.CANCELED, None),
        (changed(status="verified_probably"), Finding.INVALID_RESPONSE, "unknown_status"),
        (changed(status="Verified"), Finding.INVALID_RESPONSE, "unknown_status"),
        (changed(status=None), Finding.INVALID_RESPONSE, "unknown_status"),
        (changed(status=["verified"]), Finding.INVALID_RESPONSE, "unreadable"),
        (changed(id="vs_1AnotherSessionAltogether"), Finding.INVALID_RESPONSE, "unreadable"),
        (changed(object="identity.verification_report"), Finding.INVALID_RESPONSE, "unreadable"),
        (changed(livemode=None), Finding.INVALID_RESPONSE, "unreadable"),
        (changed(redaction={"status": "processing"}), Finding.REDACTED, None),
        (changed(redaction={"status": "redacted"}), Finding.REDACTED, None),
        (changed(redaction={"status": "never_heard_of"}), Finding.REDACTED, None),
        (outputs(first_name="[redacted]"), Finding.REDACTED, None),
        (outputs(dob={"day": 1, "month": 1, "year": 1}), Finding.REDACTED, None),
        (document(number="[redacted]"), Finding.REDACTED, None),
    ],
)
def test_every_status_and_trap_has_its_outcome(
    body: dict[str, Any], outcome: Finding, reason: str | None
) -> None:
    """The table of the reference, and nothing but `verified` verifies."""
    result = read(reply(body))
    assert (result.outcome, result.reason_code) == (outcome, reason)
    assert (result.date_of_birth, result.addresses) == (None, ())


@pytest.mark.parametrize(
    ("body", "member", "reasons"),
    [
        (
            outputs(dob={"day": 31, "month": 2, "year": 1990}),
            "verified_outputs.dob",
            ["age_unknown"],
        ),
        (outputs(address="94110"), "verified_outputs.address", ["zip_unknown"]),
        (
            document(expiration_date={"day": "1", "month": 12, "year": 2030}),
            "document.expiration_date",
            ["document_expiry_unknown"],
        ),
    ],
)
def test_a_fact_that_cannot_be_read_is_unknown(
    body: dict[str, Any], member: str, reasons: list[str]
) -> None:
    """One misread member does not make the session unusable for good, and is named for the log."""
    result = read(reply(body))
    decision = decide(
        result,
        VerificationRules(document_expiry=DocumentExpiry.UNEXPIRED),
        shipping_zip="94110",
        subject_reference="buyer-1",
        now=from_ns(FixedClock().time_ns()),
    )
    assert result.unread == (member,)
    assert list(decision.reasons) == reasons


@every("code", STRIPE_ERROR_CODES)
def test_every_error_becomes_a_reason_of_ours(code: str) -> None:
    """Of the published codes only `abandoned` says nothing beyond the missing result."""
    result = read(reply(changed(status="requires_input", last_error={"code": code})))
    assert (result.reason is None) is (code == "abandoned")
    unknown = changed(status="requires_input", last_error={"code": "never_heard_of"})
    assert read(reply(unknown)).reason is None


@every("code", STRIPE_ERROR_CODES)
def test_an_error_that_forbids_another_attempt_is_a_no(code: str) -> None:
    """Only the codes that the account names are final; the code is passed on."""
    result = read(reply(changed(status="requires_input", last_error={"code": code})))
    final = code in {"selfie_manipulated", "under_supported_age"}
    assert result.outcome is (Finding.FAILED if final else Finding.REQUIRES_INPUT)
    assert result.reason_code == code


def test_a_sentence_as_reason_is_not_passed_on() -> None:
    """Text other than a code could name the person."""
    error = {"code": "Zaphira Quillfeather is 12", "reason": "Zaphira Quillfeather is 12"}
    assert read(reply(changed(status="requires_input", last_error=error))).reason_code is None


@pytest.mark.parametrize(
    "body",
    [
        document(status="unverified"),
        changed(last_verification_report="vr_1Example"),
        changed(last_verification_report=None),
    ],
    ids=["unverified", "not expanded", "none"],
)
def test_facts_without_a_document_are_user_entered(body: dict[str, Any]) -> None:
    """Without a verified document in the report, birth and address prove nothing."""
    result = read(reply(body))
    assert result.outcome is Finding.VERIFIED
    assert result.date_of_birth_source is FactSource.USER
    assert {address.source for address in result.addresses} == {FactSource.USER}
    assert (result.document, result.document_fingerprint) == (None, None)


def test_an_id_number_check_proves_the_birth_only() -> None:
    """The number is matched against a database; an address is not part of that."""
    report = VERIFIED["last_verification_report"] | {
        "document": None,
        "id_number": {"status": "verified"},
    }
    result = read(reply(changed(last_verification_report=report)))
    assert result.date_of_birth_source is FactSource.DATABASE
    assert {address.source for address in result.addresses} == {FactSource.USER}


def test_a_report_of_another_session_is_refused() -> None:
    """Another session's report must not count for this one."""
    report = VERIFIED["last_verification_report"] | {"verification_session": "vs_1Another0000"}
    result = read(reply(changed(last_verification_report=report)))
    assert result.outcome is Finding.INVALID_RESPONSE


def test_a_missing_birth_or_address_stays_missing() -> None:
    """Stripe leaves out `dob` unless it is expanded, and a passport has no address."""
    result = read(reply(outputs(dob=None, address=None)))
    assert (result.date_of_birth, result.date_of_birth_source) == (None, FactSource.NONE)
    assert result.addresses == ()
    # A licence of any state of the United States is not one document.
    assert result.document_fingerprint is None


@pytest.mark.parametrize("missing", ["number", "issuing_country"])
def test_no_fingerprint_without_number_or_issuer(missing: str) -> None:
    """Half a document would be the same document as somebody else's."""
    assert read(reply(document(**{missing: None}))).document_fingerprint is None


def test_the_reference_can_be_in_the_metadata() -> None:
    """An account that keeps its reference in a metadata key names the key."""
    credentials = msgspec.structs.replace(CREDENTIALS, subject_metadata_key="order")
    assert read(reply(VERIFIED), credentials).subject_reference == "buyer-2"
    assert read(reply(changed(metadata={})), credentials).subject_reference is None


@every(
    ("status", "body", "outcome", "reason"),
    [
        (404, {"error": {"code": "resource_missing"}}, Finding.NOT_FOUND, "resource_missing"),
        (404, {"error": {"message": "Unrecognized"}}, Finding.INVALID_RESPONSE, "http_404"),
        (404, b"<html>", Finding.INVALID_RESPONSE, "http_404"),
        (401, {"error": {"type": "invalid_request_error"}}, Finding.PROVIDER_REJECTED, "http_401"),
        (403, {"error": {}}, Finding.PROVIDER_REJECTED, "http_403"),
        (
            400,
            {"error": {"code": "parameter_unknown"}},
            Finding.PROVIDER_REJECTED,
            "parameter_unknown",
        ),
        (409, {"error": {"code": "lock_timeout"}}, Finding.PROVIDER_UNAVAILABLE, "lock_timeout"),
        (429, {"error": {"code": "rate_limit"}}, Finding.PROVIDER_UNAVAILABLE, "rate_limit"),
        (500, {"error": {"type": "api_error"}}, Finding.PROVIDER_UNAVAILABLE, "http_500"),
        (502, b"<html>", Finding.PROVIDER_UNAVAILABLE, "http_502"),
        (302, b"", Finding.INVALID_RESPONSE, "http_302"),
        (200, b"", Finding.INVALID_RESPONSE, "unreadable"),
        (200, b"[]", Finding.INVALID_RESPONSE, "unreadable"),
        (200, json.dumps(VERIFIED).encode()[:-30], Finding.INVALID_RESPONSE, "unreadable"),
        (200, b'{"id":"a","id":"b"}', Finding.INVALID_RESPONSE, "unreadable"),
    ],
)
def test_every_error_has_its_outcome(
    status: int, body: object, outcome: Finding, reason: str
) -> None:
    """The codes are Stripe's; its messages, which name the session, go nowhere."""
    result = read(reply(body, status))
    assert (result.outcome, result.reason_code) == (outcome, reason)
    assert result.retry_after is not None


@given(place=st.sampled_from(places(VERIFIED)), junk=JUNK | st.just(...))
def test_no_malformed_answer_raises(place: tuple[str | int, ...], junk: object) -> None:
    """Any content gives a result; only the word `verified` verifies."""
    body = put(VERIFIED, place, junk)
    result = read(reply(body))
    if body.get("status") != "verified" or body.get("id") != SESSION:
        assert result.outcome is not Finding.VERIFIED
    if result.outcome is not Finding.VERIFIED:
        assert result.date_of_birth is None


@given(st.binary(max_size=200), st.integers(100, 599))
def test_no_bytes_raise_or_verify(body: bytes, status: int) -> None:
    """Bytes that are no session give an outcome, and no buyer."""
    assert read(reply(body, status)).outcome is not Finding.VERIFIED


# --- over HTTP ----------------------------------------------------------------------------------

OUTCOMES: Final = {
    "pending": Finding.PENDING,
    "requires_input": Finding.REQUIRES_INPUT,
    "error_abandoned": Finding.REQUIRES_INPUT,
    "error_selfie_manipulated": Finding.FAILED,
    "error_under_supported_age": Finding.FAILED,
    "canceled": Finding.CANCELED,
    "redaction_begun": Finding.REDACTED,
    "redacted": Finding.REDACTED,
    "redacted_unsaid": Finding.REDACTED,
    "unknown_status": Finding.INVALID_RESPONSE,
    "wrong_id": Finding.INVALID_RESPONSE,
    "truncated": Finding.INVALID_RESPONSE,
    "huge": Finding.INVALID_RESPONSE,
    "other_mode": Finding.NOT_FOUND,
    "rate_limited": Finding.PROVIDER_UNAVAILABLE,
    "rate_limited_no_retry": Finding.PROVIDER_UNAVAILABLE,
    "server_error": Finding.PROVIDER_UNAVAILABLE,
    "bad_gateway_html": Finding.PROVIDER_UNAVAILABLE,
    "slow": Finding.PROVIDER_UNAVAILABLE,
    "cut": Finding.PROVIDER_UNAVAILABLE,
}


def outcome_of(plays: str) -> Finding:
    """The outcome of a session; all others are verified at Stripe, and judged by the decision."""
    if plays in OUTCOMES:
        return OUTCOMES[plays]
    return Finding.REQUIRES_INPUT if plays.startswith("error_") else Finding.VERIFIED


async def ask(
    *session_ids: str,
    credentials: stripe.StripeCredentials = CREDENTIALS,
    once_within: float | None = None,
    simulator: simulated.Stripe | None = None,
) -> tuple[list[ProviderResult], list[str]]:
    """The results, and the targets of the requests that arrived."""
    clock = FixedClock()
    async with serve(simulator or simulated.Stripe(clock.now)) as served:
        provider = stripe.Stripe(
            credentials, base_url=served.url, fingerprint=fingerprint, clock=clock
        )
        if once_within is not None:
            provider._http = single(served.url, clock, read_seconds=once_within)
        results = [await provider.retrieve(asked) for asked in session_ids]
        await provider.close()
        return results, [f"{seen.method} {seen.path}" for seen in served.requests]


def listed() -> list[Session]:
    return list(simulated.Stripe(FixedClock().now).sessions)


def test_every_simulated_session_has_its_outcome() -> None:
    """All except those that need a retry or a long wait, through a real socket."""
    apart = {session_id(name) for name in ("LimitedOnce", "LimitedBriefly", "LockedOnce", "Slow")}
    sessions = [session for session in listed() if session.session_id not in apart]
    results, _ = asyncio.run(ask(*(s.session_id for s in sessions), once_within=10.0))
    found = {s.session_id: r.outcome for s, r in zip(sessions, results, strict=True)}
    assert found == {s.session_id: outcome_of(s.scenario) for s in sessions}


def test_the_request_to_a_hanging_provider_is_abandoned() -> None:
    """Its response would come after thirty seconds; the client does not wait for it."""
    (result,), _ = asyncio.run(ask(session_id("Slow"), once_within=0.2))
    assert result.outcome is Finding.PROVIDER_UNAVAILABLE
    assert result.evidence is None


@pytest.mark.parametrize("name", ["LimitedOnce", "LimitedBriefly", "LockedOnce"])
def test_a_passing_trouble_is_outlived_by_a_second_attempt(name: str) -> None:
    """429 with and without Retry-After, and Stripe's 409, do not reach the caller."""
    (result,), targets = asyncio.run(ask(session_id(name)))
    assert result.outcome is Finding.VERIFIED
    assert len(targets) == 2


def test_a_long_wait_is_passed_on_to_the_caller() -> None:
    """No one waits thirty seconds in an open request; the next one succeeds."""
    (first, second), targets = asyncio.run(ask(*[session_id("LimitedLong")] * 2))
    assert (first.outcome, first.retry_after) == (Finding.PROVIDER_UNAVAILABLE, 30)
    assert second.outcome is Finding.VERIFIED
    assert len(targets) == 2


def test_stripe_decides_whether_another_attempt_makes_sense() -> None:
    """`Stripe-Should-Retry: false` is obeyed also for a 429."""
    _, targets = asyncio.run(ask(session_id("LimitedForGood")))
    assert len(targets) == 1


@pytest.mark.parametrize("key", [simulated.PLAIN_RESTRICTED_KEY, simulated.SECRET_KEY])
def test_a_key_without_sensitive_results_gets_the_rest(key: str) -> None:
    """One further request without the sensitive expansions; the birth is then unknown."""
    credentials = msgspec.structs.replace(CREDENTIALS, api_key=key)
    (result,), targets = asyncio.run(ask(session_id("Verified"), credentials=credentials))
    assert len(targets) == 2
    assert result.outcome is Finding.VERIFIED
    assert (result.date_of_birth, result.document_fingerprint) == (None, None)
    assert result.addresses[0].postal_code == "94110"
    assert result.evidence is not None
    assert not result.evidence.sensitive_complete


def test_results_too_old_for_the_key_are_marked_as_incomplete() -> None:
    """After 48 hours Stripe omits requested members; an allow-listed key still sees them."""
    listed_key = msgspec.structs.replace(CREDENTIALS, api_key=simulated.ALLOW_LISTED_KEY)
    (old,), _ = asyncio.run(ask(session_id("Old")))
    (seen,), _ = asyncio.run(ask(session_id("Old"), credentials=listed_key))
    assert old.evidence is not None
    assert seen.evidence is not None
    assert (old.date_of_birth, old.evidence.sensitive_complete) == (None, False)
    assert (seen.date_of_birth, seen.evidence.sensitive_complete) == (date(1999, 12, 31), True)


def test_a_wrong_key_is_rejected_and_the_probe_is_not_found() -> None:
    """Asking for the probe separates working credentials from others."""
    wrong = msgspec.structs.replace(CREDENTIALS, api_key="rk_live_of_somebody_else")
    (rejected,), _ = asyncio.run(ask(stripe.Stripe.probe_session_id, credentials=wrong))
    (absent,), _ = asyncio.run(ask(stripe.Stripe.probe_session_id))
    assert rejected.outcome is Finding.PROVIDER_REJECTED
    assert absent.outcome is Finding.NOT_FOUND


def test_the_request_matches_stripes_documentation() -> None:
    """The version is pinned, the key goes into the header, and the evidence has the target."""

    async def asked() -> tuple[ProviderResult, dict[str, str], tuple[tuple[str, str], ...]]:
        clock = FixedClock()
        async with serve(simulated.Stripe(clock.now)) as served:
            provider = stripe.Stripe(
                CREDENTIALS, base_url=served.url, fingerprint=fingerprint, clock=clock
            )
            result = await provider.retrieve(session_id("Verified"))
            await provider.close()
            return result, dict(served.requests[0].headers), served.requests[0].query

    result, headers, query = asyncio.run(asked())
    assert headers["stripe-version"] == "2026-10-28.endive"
    assert headers["authorization"] == f"Bearer {simulated.SENSITIVE_KEY}"
    assert ("expand[]", "verified_outputs.dob") in query
    evidence = result.evidence
    assert evidence is not None
    assert evidence.request_target.startswith(
        f"GET /v1/identity/verification_sessions/{session_id('Verified')}?expand"
    )
    assert evidence.request_id is not None
    assert evidence.request_id.startswith("req_")
    assert evidence.api_version == "2026-10-28.endive"
    assert simulated.SENSITIVE_KEY not in evidence.request_target


def test_the_same_document_has_one_fingerprint() -> None:
    """Two sessions of one licence agree; another's do not."""
    names = ("SameDocumentOnce", "SameDocumentAgain", "Verified")
    (one, again, other), _ = asyncio.run(ask(*map(session_id, names)))
    assert one.document_fingerprint == again.document_fingerprint is not None
    assert other.document_fingerprint not in {None, one.document_fingerprint}


def test_the_parts_listed_as_verified_are_those_that_verify() -> None:
    """By the default rules, with the ZIP code and the reference listed next to them."""
    now = FixedClock().seconds
    sessions = [s for s in listed() if OUTCOMES.get(s.scenario) is not Finding.PROVIDER_UNAVAILABLE]
    results, _ = asyncio.run(ask(*(s.session_id for s in sessions)))
    decided = {
        session.session_id: decide(
            result,
            VerificationRules(),
            shipping_zip=session.shipping_zip,
            subject_reference=session.subject_reference,
            now=datetime.fromtimestamp(now, UTC),
        ).status
        for session, result in zip(sessions, results, strict=True)
    }
    playing = {s.session_id for s in sessions if s.scenario == "verified"}
    assert {found for found, status in decided.items() if status == "verified"} == playing


def test_the_results_of_stripe_show_nothing_of_a_person() -> None:
    """Neither the result nor its parts show a name in a repr."""
    result = read(reply(VERIFIED))
    shown = repr((result, result.addresses, result.document, result.evidence))
    assert not any(word in shown for word in ("Zaphira", "Marrowbone", "94110", "1987"))


def test_dates_of_the_simulator_follow_its_clock() -> None:
    """A person who comes of age today is eighteen, one who does so tomorrow is not."""
    names = ("BirthdayToday", "BirthdayTomorrow")
    (today, tomorrow), _ = asyncio.run(ask(*map(session_id, names)))
    assert today.date_of_birth == date(2008, 11, 17)
    assert tomorrow.date_of_birth == date(2008, 11, 17) + timedelta(days=1)
