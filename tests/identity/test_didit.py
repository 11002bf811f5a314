"""Didit: the result of each response, by function and over HTTP."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, date, datetime
from hashlib import sha256
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.base.values import Reason, from_ns
from countersign.core.buyers.decision import decide
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.rules import DocumentExpiry, VerificationRules
from countersign.identity import didit
from countersign.identity.model import FactSource, Finding, ProviderCheck, ProviderResult, Tri
from countersign_simulators import didit as simulated
from countersign_simulators.base import Request, Session, Simulator
from countersign_simulators.server import serve
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
from tests.support.every import every

SESSION: Final = "3b2c1d0e-1111-4222-8333-444455556666"
PARSED: Final = {
    "street_1": "123 Hobnail Spiral",
    "city": "San Francisco",
    "region": "CA",
    "country": "US",
    "postal_code": "94111",
    "is_verified": True,
}
DOCUMENT: Final[dict[str, Any]] = {
    "status": "Approved",
    "document_type": "Driver's License",
    "document_number": "Y7714093",
    "date_of_birth": "1990-01-15",
    "age": 24,
    "expiration_date": "2030-01-15",
    "issuing_state": "USA",
    "first_name": "Tulipane",
    "last_name": "Whiskerton",
    "parsed_address": PARSED,
    "warnings": [],
}
ANSWER: Final[dict[str, Any]] = {
    "session_id": SESSION,
    "session_kind": "user",
    "status": "Approved",
    "environment": "live",
    "vendor_data": "buyer-1",
    "metadata": {},
    "id_verifications": [DOCUMENT],
    "liveness_checks": [{"status": "Approved", "score": 95.0}],
    "face_matches": [{"status": "In Review", "score": 61.5}],
    "poa_verifications": None,
    "database_validations": [],
}


def read(answer: object, status: int = 200) -> ProviderResult:
    credentials = make(FixedClock())[1]
    return translated(didit.Didit, credentials, reply(answer, status), SESSION)


def changed(**members: object) -> dict[str, Any]:
    return ANSWER | members


def with_document(**members: object) -> dict[str, Any]:
    return changed(id_verifications=[DOCUMENT | members])


def test_an_approval_gives_every_fact_with_the_document_as_its_source() -> None:
    """Name, birth, address, document and reference are read; the number only as a fingerprint."""
    result = read(ANSWER)
    assert result.outcome is Finding.VERIFIED
    assert result.date_of_birth == date(1990, 1, 15)
    assert result.date_of_birth_source is FactSource.DOCUMENT
    assert (result.live, result.subject_reference) == (True, "buyer-1")
    (address,) = result.addresses
    assert (address.source, address.postal_code) == (FactSource.DOCUMENT, "94111")
    assert result.document is not None
    assert result.document.expires_on == date(2030, 1, 15)
    assert result.document_fingerprint == fingerprint("US", "CA", "dl", "Y7714093")
    assert ProviderCheck(name="face_matches", verdict=Tri.UNKNOWN, raw="In Review") in result.checks


@every(
    ("status", "outcome"),
    [
        ("Approved", Finding.VERIFIED),
        ("In Progress", Finding.PENDING),
        ("In Review", Finding.PENDING),
        ("Not Started", Finding.REQUIRES_INPUT),
        ("Awaiting User", Finding.REQUIRES_INPUT),
        ("Resubmitted", Finding.REQUIRES_INPUT),
        ("Declined", Finding.FAILED),
        ("Abandoned", Finding.CANCELED),
        ("Expired", Finding.EXPIRED),
        ("Kyc Expired", Finding.EXPIRED),
        ("approved", Finding.INVALID_RESPONSE),
        ("APPROVED", Finding.INVALID_RESPONSE),
        ("Approved ", Finding.INVALID_RESPONSE),
        ("In\u00a0Review", Finding.INVALID_RESPONSE),
        ("Verified", Finding.INVALID_RESPONSE),
        ("", Finding.INVALID_RESPONSE),
        (None, Finding.INVALID_RESPONSE),
        (True, Finding.INVALID_RESPONSE),
    ],
)
def test_a_status_is_compared_exactly(status: object, outcome: Finding) -> None:
    """Capitals and spaces count; a word that is not in the table is invalid."""
    result = read(changed(status=status))
    assert result.outcome is outcome
    personal = (result.date_of_birth, result.document_fingerprint)
    assert outcome is Finding.VERIFIED or (personal == (None, None) and not result.addresses)


@pytest.mark.parametrize(
    ("environment", "live"),
    [("live", True), ("sandbox", False), ("Live", False), ("production", False), (None, None)],
)
def test_only_the_environment_live_is_live(environment: str | None, live: bool | None) -> None:
    """The sandbox is not live, and an unknown word is not either; no word is not known."""
    assert read(changed(environment=environment)).live is live


@every(
    ("answer", "reason"),
    [
        (changed(session_id="3b2c1d0e-1111-4222-8333-444455556667"), "other_session"),
        (changed(session_id=SESSION.upper()), "other_session"),
        (changed(session_id=None), "other_session"),
        (changed(session_kind="business"), "unknown_kind"),
        (changed(session_kind=["user"]), "unknown_kind"),
        (changed(status="Almost Approved"), "unknown_status"),
        ([ANSWER], "unreadable"),
        (b"", "unreadable"),
        (b"\xff\xfe", "unreadable"),
        (json.dumps(ANSWER).encode()[:-40], "unreadable"),
        (json.dumps(ANSWER).encode()[:-1] + b',"status":"Approved"}', "unreadable"),
        (changed(environment=True), "unreadable"),
    ],
)
def test_unreadable_responses_are_invalid(answer: object, reason: str) -> None:
    """Another session's answer, broken JSON and impossible values never verify."""
    result = read(answer)
    assert (result.outcome, result.reason_code) == (Finding.INVALID_RESPONSE, reason)


@pytest.mark.parametrize(
    ("answer", "member", "reasons"),
    [
        (with_document(date_of_birth="15.01.1990"), "date_of_birth", ["age_unknown"]),
        (with_document(date_of_birth="1990-02-30"), "date_of_birth", ["age_unknown"]),
        (
            with_document(expiration_date="01/01/2030"),
            "expiration_date",
            ["document_expiry_unknown"],
        ),
        (with_document(parsed_address="94111"), "parsed_address", ["zip_unknown"]),
        (
            with_document(parsed_address=PARSED | {"postal_code": 94111}),
            "postal_code",
            ["zip_unknown"],
        ),
        (with_document(document_number="\ud800"), "document_number", []),
        (changed(id_verifications=DOCUMENT), "id_verifications", ["identity_not_proved"]),
        (changed(created_at="today"), "created_at", []),
    ],
)
def test_a_fact_that_cannot_be_read_is_unknown(
    answer: object, member: str, reasons: list[str]
) -> None:
    """One misread member does not make the session unusable for good, and is named for the log."""
    result = read(answer)
    decision = decide(
        result,
        VerificationRules(document_expiry=DocumentExpiry.UNEXPIRED),
        shipping_zip="94111",
        subject_reference=None,
        now=from_ns(FixedClock().time_ns()),
    )
    assert result.unread == (member,)
    assert list(decision.reasons) == reasons


@pytest.mark.parametrize("verified", [False, "yes", 1, "false"])
def test_an_address_counts_only_without_any_doubt(verified: object) -> None:
    """A doubt that cannot be read is a doubt."""
    (address,) = read(with_document(parsed_address=PARSED | {"is_verified": verified})).addresses
    assert address.source is FactSource.NONE


def test_a_session_is_as_old_as_its_beginning() -> None:
    """Didit does not say when it decided; a session of four years ago is not decided today."""
    made = "2022-11-20T10:00:00Z"
    result = read(changed(created_at=made))
    assert result.decided_at == datetime(2022, 11, 20, 10, tzinfo=UTC)
    decision = decide(
        result,
        VerificationRules(),
        shipping_zip="94111",
        subject_reference=None,
        now=from_ns(FixedClock().time_ns()),
    )
    assert decision.expires_at == datetime(2023, 11, 20, 10, tzinfo=UTC)


@pytest.mark.parametrize("country", [None, ""])
def test_an_address_without_a_country_gets_that_of_its_document(country: str | None) -> None:
    """Older answers name none in the address."""
    parsed = PARSED | {"country": country}
    (address,) = read(with_document(parsed_address=parsed)).addresses
    assert address.country == "USA"


@pytest.mark.parametrize(
    ("feature", "risk", "reason"),
    [
        ("id_verifications", "DOCUMENT_EXPIRED", Reason.DOCUMENT_EXPIRED),
        ("face_matches", "LOW_FACE_MATCH_SIMILARITY", Reason.SELFIE_MISMATCH),
        ("liveness_checks", "NO_FACE_DETECTED", Reason.SELFIE_NOT_ACCEPTED),
        ("id_verifications", "MINIMUM_AGE_NOT_MET", Reason.AGE_BELOW_MINIMUM),
        ("id_verifications", "ID_DOCUMENT_IN_BLOCKLIST", None),
    ],
)
def test_a_risk_becomes_a_reason_of_ours(feature: str, risk: str, reason: Reason | None) -> None:
    """From a feature that is not approved; an unknown risk adds nothing."""
    declined = {"status": "Declined", "warnings": [{"risk": risk}]}
    result = read(changed(status="Declined", **{feature: [declined]}))
    assert (result.reason_code, result.reason) == (risk, reason)
    approved = declined | {"status": "Approved"}
    assert read(changed(status="Declined", **{feature: [approved]})).reason is None


def test_an_age_without_a_birth_date_is_no_age() -> None:
    """Didit's `age` disagrees with its own dates and is never used."""
    result = read(with_document(date_of_birth=None, age=41))
    assert (result.date_of_birth, result.date_of_birth_source) == (None, FactSource.NONE)


@pytest.mark.parametrize("status", ["Declined", "In Review", "Not Finished", None, "approved"])
def test_an_unapproved_document_proves_nothing(status: str | None) -> None:
    """A workflow can approve a session without its document."""
    result = read(with_document(status=status))
    assert result.outcome is Finding.UNPROVED
    assert (result.date_of_birth, result.addresses, result.document) == (None, (), None)


def test_documents_that_disagree_about_the_birth_prove_neither_date() -> None:
    """Two approved documents must have the same date of birth."""
    other = DOCUMENT | {"date_of_birth": "1999-01-15"}
    assert read(changed(id_verifications=[DOCUMENT, other])).date_of_birth is None
    assert read(changed(id_verifications=[DOCUMENT, DOCUMENT])).date_of_birth == date(1990, 1, 15)


def test_a_doubted_address_has_no_source() -> None:
    """An address that the map does not know may have a ZIP code that somebody guessed."""
    (address,) = read(with_document(parsed_address=PARSED | {"is_verified": False})).addresses
    assert address.source is FactSource.NONE
    (silent,) = read(with_document(parsed_address=PARSED | {"is_verified": None})).addresses
    assert silent.source is FactSource.DOCUMENT


BILL: Final[dict[str, Any]] = {
    "status": "Approved",
    "name_match_score_id_verification": 97.5,
    "poa_parsed_address": PARSED | {"postal_code": "95816"},
}


def test_a_proof_of_address_is_a_separate_address() -> None:
    """A bill's address comes after the document's, and only if Didit approved the bill."""
    result = read(changed(poa_verifications=[BILL]))
    found = [(address.source, address.postal_code) for address in result.addresses]
    assert found == [(FactSource.DOCUMENT, "94111"), (FactSource.PROOF_OF_ADDRESS, "95816")]
    declined = read(changed(poa_verifications=[BILL | {"status": "Declined"}]))
    assert [address.postal_code for address in declined.addresses] == ["94111"]
    least = read(changed(poa_verifications=[BILL | {"name_match_score_id_verification": 90}]))
    assert least.addresses == result.addresses


@pytest.mark.parametrize("score", [3, 89.9, 0.98, None, "97", True, ...])
def test_a_bill_of_another_name_proves_no_address(score: object) -> None:
    """An account can let Didit approve it: below 90 of 100, or without a score, it is no one's."""
    bill = put(BILL, ("name_match_score_id_verification",), score)
    result = read(changed(poa_verifications=[bill]))
    assert result.outcome is Finding.VERIFIED
    assert [address.postal_code for address in result.addresses] == ["94111"]


def test_a_bill_that_didit_warns_of_proves_no_address() -> None:
    """The warning that the names differ counts more than the number."""
    bill = BILL | {"warnings": [{"risk": "NAME_MISMATCH_ID_VERIFICATION"}]}
    result = read(changed(poa_verifications=[bill]))
    assert [address.postal_code for address in result.addresses] == ["94111"]
    other = BILL | {"warnings": [{"risk": "DOCUMENT_METADATA_MISMATCH"}]}
    assert len(read(changed(poa_verifications=[other])).addresses) == 2


def test_a_bill_without_a_document_proves_nothing() -> None:
    """There is no person for the address."""
    result = read(changed(id_verifications=None, poa_verifications=[BILL]))
    assert (result.addresses, result.date_of_birth) == ((), None)


def test_two_documents_of_two_people_prove_nothing_of_either() -> None:
    """A person's own licence and somebody else's: neither birth nor address counts."""
    other = DOCUMENT | {"last_name": "Otherwise", "first_name": "Somebody"}
    result = read(changed(id_verifications=[other, DOCUMENT]))
    assert (result.date_of_birth, result.date_of_birth_source) == (None, FactSource.NONE)
    assert {address.source for address in result.addresses} == {FactSource.NONE}
    again = read(changed(id_verifications=[DOCUMENT, DOCUMENT]))
    assert again.date_of_birth is not None
    assert {address.source for address in again.addresses} == {FactSource.DOCUMENT}


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ({"detail": "Not found."}, Finding.NOT_FOUND),
        ({"detail": "Session not found.", "code": "session_not_found"}, Finding.NOT_FOUND),
        ({"detail": "Not Found"}, Finding.INVALID_RESPONSE),
        ({"detail": 7}, Finding.INVALID_RESPONSE),
        ({"detail": "Not found.", "status": 404}, Finding.INVALID_RESPONSE),
        ({"error": {"code": "not_found"}}, Finding.INVALID_RESPONSE),
        ({}, Finding.INVALID_RESPONSE),
        (None, Finding.INVALID_RESPONSE),
    ],
)
def test_only_didits_own_404_is_about_the_session(body: object, outcome: Finding) -> None:
    """Another server's 404 says nothing about it, nor about our credentials."""
    assert read(body, 404).outcome is outcome


def test_the_issuing_state_is_a_country() -> None:
    """`USA` is no state of the US: the state is the address's, and without it no fingerprint."""
    result = read(ANSWER)
    assert result.document is not None
    assert (result.document.issuing_country, result.document.issuing_region) == ("USA", "CA")
    stateless = read(with_document(parsed_address=PARSED | {"region": None}))
    assert stateless.document_fingerprint is None
    passport = read(with_document(document_type="Passport", parsed_address=None))
    assert passport.document_fingerprint == fingerprint("US", None, "pp", "Y7714093")


def test_an_address_keeps_the_document_that_shows_it() -> None:
    """The last document proves the age; an earlier one has its own last day."""
    old = DOCUMENT | {"expiration_date": "2019-01-15"}
    passport = DOCUMENT | {"document_type": "Passport", "parsed_address": None}
    result = read(changed(id_verifications=[old, passport]))
    (address,) = result.addresses
    assert address.document is not None
    assert address.document.expires_on == date(2019, 1, 15)


def test_two_documents_of_twins_prove_nothing() -> None:
    """The same birth date and family name, and another given name."""
    twin = DOCUMENT | {"first_name": "Somebody", "document_number": "Y0000001"}
    result = read(changed(id_verifications=[twin, DOCUMENT]))
    assert result.date_of_birth is None
    assert {one.source for one in result.addresses} == {FactSource.NONE}


def test_reasons_are_words_for_risks_and_never_sentences() -> None:
    """Only a code can be a reason: Didit's sentences tell of the person."""

    def declined(warning: dict[str, Any]) -> str | None:
        document = DOCUMENT | {"status": "Declined", "warnings": [warning]}
        return read(changed(status="Declined", id_verifications=[document])).reason_code

    assert declined({"risk": "DOCUMENT_EXPIRED"}) == "DOCUMENT_EXPIRED"
    assert declined({"risk": "Tulipane lied", "long_description": "Tulipane lied"}) is None
    assert declined({}) is None


@given(st.sampled_from(places(ANSWER)), JUNK | st.just(...))
def test_no_mutation_raises_or_verifies_an_unapproved_session(
    place: tuple[str | int, ...], junk: object
) -> None:
    """Any member replaced by anything (or left out) gives a result; approval needs its words."""
    mutated = put(ANSWER, place, junk)
    result = read(mutated)
    if result.outcome is Finding.VERIFIED:
        assert (mutated["session_id"], mutated["status"]) == (SESSION, "Approved")
    else:
        assert (result.date_of_birth, result.addresses, result.document) == (None, (), None)


@given(st.binary(max_size=200) | JUNK.map(lambda junk: json.dumps(junk).encode()))
def test_no_bytes_raise(body: bytes) -> None:
    """Whatever arrives, there is a result, and it is an invalid one."""
    assert read(body).outcome is Finding.INVALID_RESPONSE


# --- over HTTP ------------------------------------------------------------------------------------


def make(clock: FixedClock) -> tuple[Simulator, didit.DiditCredentials]:
    simulator = simulated.Didit(clock.now)
    text = json.dumps(simulator.credentials)
    return simulator, msgspec.json.decode(text, type=didit.DiditCredentials)


def ask(
    session_id: str, *, times: int = 1, patient: bool = True, **credentials: object
) -> tuple[ProviderResult, list[Request]]:
    """The last of that many answers, and every request that it took."""
    clock = FixedClock()
    simulator, good = make(clock)

    async def run() -> tuple[ProviderResult, list[Request]]:
        async with serve(simulator) as served:
            provider = didit.Didit(
                msgspec.structs.replace(good, **credentials),
                base_url=served.url,
                fingerprint=fingerprint,
                clock=clock,
            )
            if not patient:
                provider._http = single(served.url, clock, read_seconds=0.5)
            try:
                answers = [await provider.retrieve(session_id) for _ in range(times)]
            finally:
                await provider.close()
            return answers[-1], served.requests

    return asyncio.run(run())


SESSIONS: Final = make(FixedClock())[0].sessions
EXPECTED: Final = {
    "document_not_approved": Finding.UNPROVED,
    "failed": Finding.FAILED,
    "redacted": Finding.NOT_FOUND,
    "unknown_status": Finding.INVALID_RESPONSE,
    "other_session": Finding.INVALID_RESPONSE,
    "business": Finding.INVALID_RESPONSE,
    "pending": Finding.PENDING,
    "review": Finding.PENDING,
    "requires_input": Finding.REQUIRES_INPUT,
    "awaiting_user": Finding.REQUIRES_INPUT,
    "resubmitted": Finding.REQUIRES_INPUT,
    "canceled": Finding.CANCELED,
    "expired": Finding.EXPIRED,
    "document_check_expired": Finding.EXPIRED,
    "truncated": Finding.INVALID_RESPONSE,
    "huge": Finding.INVALID_RESPONSE,
    "error_500": Finding.PROVIDER_UNAVAILABLE,
    "html_502": Finding.PROVIDER_UNAVAILABLE,
    "slow": Finding.PROVIDER_UNAVAILABLE,
    "cut": Finding.PROVIDER_UNAVAILABLE,
    "rate_limited": Finding.PROVIDER_UNAVAILABLE,
    "decided_later": Finding.PENDING,
}
"""Results of the simulated sessions; others are approved by Didit."""


def session(plays: str) -> Session:
    return next(each for each in SESSIONS if each.scenario == plays)


@every("each", SESSIONS)
def test_each_simulated_part_has_its_outcome(each: Session) -> None:
    """Each session has its outcome over HTTP; only `verified` ones verify a buyer."""
    unable = {"error_500", "html_502", "slow", "cut"}
    result, _ = ask(each.session_id, patient=each.scenario not in unable)
    assert result.outcome is EXPECTED.get(each.scenario, Finding.VERIFIED)
    decision = decide(
        result,
        VerificationRules(),
        shipping_zip=each.shipping_zip,
        subject_reference=each.subject_reference,
        now=from_ns(FixedClock().time_ns()),
    )
    assert (decision.status is BuyerStatus.VERIFIED) == (each.scenario == "verified")


def test_the_path_ends_in_a_slash_and_the_key_is_only_in_its_header() -> None:
    """Without the slash Didit redirects, and the key would be lost."""
    result, (request,) = ask(session("verified").session_id)
    assert request.path == f"/v3/session/{result.session_id}/decision/"
    assert request.headers["x-api-key"] == simulated.API_KEY
    assert request.query == ()


def test_the_exact_answer_is_kept() -> None:
    """Evidence holds the bytes, their digest and the request, without the key."""
    result, _ = ask(session("verified").session_id)
    kept = result.evidence
    assert kept is not None
    assert kept.sha256 == sha256(kept.raw_body).hexdigest()
    assert json.loads(kept.raw_body)["session_id"] == result.session_id
    assert kept.request_target == f"GET /v3/session/{result.session_id}/decision/"
    assert (kept.http_status, kept.api_version) == (200, "v3")


def test_an_undecided_session_is_verified_once_didit_has_decided() -> None:
    """Asking again settles it."""
    result, _ = ask(session("decided_later").session_id, times=2)
    assert result.outcome is Finding.VERIFIED


def test_how_long_to_wait_is_handed_on() -> None:
    """Didit's Retry-After is what our caller gets."""
    assert ask(session("rate_limited").session_id)[0].retry_after == 120


def test_a_wrong_key_is_rejected_not_unavailable() -> None:
    """A wrong key is our misconfiguration."""
    result, _ = ask(session("verified").session_id, api_key="not-the-key")
    assert result.outcome is Finding.PROVIDER_REJECTED


def test_every_field_of_an_answer_is_sorted() -> None:
    """No one can add a member to the simulated response without deciding what it means to us."""
    proved = [each for each in SESSIONS if each.session_id.endswith("08")]
    result, _ = ask(proved[0].session_id)
    assert result.evidence is not None
    assert didit.Didit.words.fields.unknown(json.loads(result.evidence.raw_body)) == 0
