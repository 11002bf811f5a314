"""Veriff: the result of each response, by function and over HTTP."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, date, datetime
from hashlib import sha256
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.base.values import from_ns
from countersign.core.buyers.decision import decide
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.rules import DocumentExpiry, VerificationRules
from countersign.identity import veriff
from countersign.identity.model import FactSource, Finding, ProviderResult
from countersign.identity.webhook_signature import hmac_sha256
from countersign_simulators import veriff as simulated
from countersign_simulators.base import Reply, Request, Session, Simulator, hmac_hex
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
from tests.identity.starts import CASES, start
from tests.support.every import every

SESSION: Final = "7f1c2a34-0b5d-3e6f-8a90-1234567890ab"
PARSED: Final = {
    "city": "San Francisco",
    "state": "California",
    "street": "1234 Hobnail Spiral",
    "country": "USA",
    "postcode": "94111",
}
PERSON: Final[dict[str, Any]] = {
    "firstName": "TULIPANE",
    "lastName": "WHISKERTON",
    "dateOfBirth": "1990-03-30",
    "yearOfBirth": "1990",
    "addresses": [{"fullAddress": "1234 Hobnail Spiral, CA 94111", "parsedAddress": PARSED}],
}
DOCUMENT: Final = {
    "type": "DRIVERS_LICENSE",
    "number": "Y7714093",
    "country": "US",
    "validUntil": "2030-04-20",
}
VERIFICATION: Final[dict[str, Any]] = {
    "id": SESSION,
    "attemptId": "0f9e8d7c-6b5a-4c3d-9e2f-ba0987654321",
    "vendorData": "buyer-1",
    "endUserId": None,
    "status": "approved",
    "code": 9001,
    "reason": None,
    "reasonCode": None,
    "decisionTime": "2026-11-01T17:18:36.916Z",
    "person": PERSON,
    "document": DOCUMENT,
    "additionalVerifiedData": {"estimatedAge": 36},
}
ANSWER: Final = {"status": "success", "verification": VERIFICATION}


def read(answer: object, status: int = 200) -> ProviderResult:
    credentials = make(FixedClock())[1]
    signature = hmac_sha256(credentials.shared_secrets[0], reply(answer).body)
    sent = reply(answer, status, x_hmac_signature=signature)
    return translated(veriff.Veriff, credentials, sent, SESSION)


def changed(**members: object) -> dict[str, Any]:
    return ANSWER | {"verification": VERIFICATION | members}


def test_an_approval_gives_every_fact_with_the_document_as_its_source() -> None:
    """Name, birth, address, document and reference are read; the number only as a fingerprint."""
    result = read(ANSWER)
    assert result.outcome is Finding.VERIFIED
    assert result.date_of_birth == date(1990, 3, 30)
    assert result.date_of_birth_source is FactSource.DOCUMENT
    assert result.subject_reference == "buyer-1"
    assert result.decided_at == datetime(2026, 11, 1, 17, 18, 36, 916000, UTC)
    (address,) = result.addresses
    assert address.source is FactSource.DOCUMENT
    assert (address.postal_code, address.region) == ("94111", "California")
    assert result.document is not None
    assert result.document.expires_on == date(2030, 4, 20)
    assert result.document_fingerprint == fingerprint("US", "CA", "dl", "Y7714093")


@every(
    ("status", "outcome"),
    [
        ("approved", Finding.VERIFIED),
        ("created", Finding.PENDING),
        ("started", Finding.PENDING),
        ("submitted", Finding.PENDING),
        ("review", Finding.PENDING),
        ("resubmission_requested", Finding.REQUIRES_INPUT),
        ("declined", Finding.FAILED),
        ("abandoned", Finding.CANCELED),
        ("expired", Finding.EXPIRED),
        ("Approved", Finding.INVALID_RESPONSE),
        ("approved ", Finding.INVALID_RESPONSE),
        ("success", Finding.INVALID_RESPONSE),
        ("", Finding.INVALID_RESPONSE),
        (None, Finding.INVALID_RESPONSE),
        (9001, Finding.INVALID_RESPONSE),
        (["approved"], Finding.INVALID_RESPONSE),
    ],
)
@every("code", [9001, 9102, 9121, None])
def test_the_status_decides_and_never_the_code(
    status: object, outcome: Finding, code: int | None
) -> None:
    """Whatever the code, the outcome is that of the status; an unknown status is invalid."""
    result = read(changed(status=status, code=code))
    assert result.outcome is outcome
    personal = (result.date_of_birth, result.document_fingerprint)
    assert outcome is Finding.VERIFIED or (personal == (None, None) and not result.addresses)


@pytest.mark.parametrize("verification", [None, {}])
def test_a_missing_verification_is_no_decision_yet(verification: object) -> None:
    """Veriff expresses that it has not decided by a null (or an empty object), not by an error."""
    assert read({"status": "success", "verification": verification}).outcome is Finding.PENDING


@every(
    ("answer", "reason"),
    [
        (changed(id="7f1c2a34-0b5d-3e6f-8a90-1234567890ac"), "other_session"),
        (changed(id=SESSION.upper()), "other_session"),
        (changed(id=None), "other_session"),
        (changed(status="approved_later"), "unknown_status"),
        ({"status": "fail", "verification": VERIFICATION}, "unreadable"),
        ({"status": "success"}, "unreadable"),
        ({"verification": VERIFICATION}, "unreadable"),
        ([ANSWER], "unreadable"),
        (b"", "unreadable"),
        (b"\xff\xfe", "unreadable"),
        (json.dumps(ANSWER).encode()[:-40], "unreadable"),
        (b'{"status":"success","status":"success","verification":null}', "unreadable"),
    ],
)
def test_unreadable_responses_are_invalid(answer: object, reason: str) -> None:
    """Another session's answer, broken JSON and impossible values never verify."""
    result = read(answer)
    assert (result.outcome, result.reason_code) == (Finding.INVALID_RESPONSE, reason)


@pytest.mark.parametrize(
    ("answer", "member", "reasons"),
    [
        (
            changed(person=PERSON | {"dateOfBirth": "30.03.1990"}),
            "person.dateOfBirth",
            ["age_unknown"],
        ),
        (
            changed(person=PERSON | {"dateOfBirth": "1990-02-31"}),
            "person.dateOfBirth",
            ["age_unknown"],
        ),
        (changed(person=PERSON | {"dateOfBirth": 19900330}), "person.dateOfBirth", ["age_unknown"]),
        (
            changed(document=DOCUMENT | {"validUntil": "2030-02-30"}),
            "document.validUntil",
            ["document_expiry_unknown"],
        ),
        (changed(person=PERSON | {"addresses": "94111"}), "person.addresses", ["zip_unknown"]),
        (
            changed(
                person=PERSON | {"addresses": [{"parsedAddress": PARSED | {"postcode": 94111}}]}
            ),
            "postcode",
            ["zip_unknown"],
        ),
        (changed(decisionTime="0001-01-01T00:00:00+14:00"), "decisionTime", []),
        (changed(document=DOCUMENT | {"number": "\ud800"}), "document.number", []),
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
        subject_reference="buyer-1",
        now=from_ns(FixedClock().time_ns()),
    )
    assert result.unread == (member,)
    assert list(decision.reasons) == reasons


def test_an_unusable_response_names_its_missing_members() -> None:
    """The log names the member, because the operator has no other information."""
    assert read(changed(vendorData={})).unread == ("vendorData",)


@pytest.mark.parametrize(
    ("status", "code", "reasons"),
    [
        ("declined", 103, ["identity_failed", "selfie_mismatch"]),
        ("declined", "511", ["identity_failed", "document_expired"]),
        ("declined", 106, ["identity_failed"]),
        ("declined", 99999, ["identity_failed"]),
        ("resubmission_requested", 204, ["identity_requires_input", "document_unreadable"]),
        ("resubmission_requested", None, ["identity_requires_input"]),
    ],
)
def test_a_reason_code_becomes_a_reason_of_ours(
    status: str, code: object, reasons: list[str]
) -> None:
    """After the outcome's own reason; a code that is not in the table adds none."""
    decision = decide(
        read(changed(status=status, reasonCode=code)),
        VerificationRules(),
        shipping_zip="94111",
        subject_reference="buyer-1",
        now=from_ns(FixedClock().time_ns()),
    )
    assert list(decision.reasons) == reasons


def test_an_age_guessed_from_a_face_and_a_bare_year_are_no_birth_date() -> None:
    """Without dateOfBirth the date is unknown, even where an age is named."""
    result = read(changed(person=PERSON | {"dateOfBirth": None}))
    assert result.date_of_birth is None
    assert result.date_of_birth_source is FactSource.NONE


def test_without_a_document_everything_counts_as_typed_by_the_user() -> None:
    """A stand-alone check returns the typed data, which proves nothing."""
    result = read(changed(document=dict.fromkeys(DOCUMENT)))
    assert result.date_of_birth_source is FactSource.USER
    assert {address.source for address in result.addresses} == {FactSource.USER}
    assert result.document is None
    assert result.document_fingerprint is None


def test_an_address_without_parts_has_no_postal_code() -> None:
    """A ZIP code is never picked out of a line of text."""
    result = read(changed(person=PERSON | {"addresses": [{"fullAddress": "9 Elm, CA 94111"}]}))
    assert result.addresses == ()


def test_a_licence_of_an_unknown_state_has_no_fingerprint() -> None:
    """Two states may give the same number, and two people must not become one buyer."""
    no_state = changed(person=PERSON | {"addresses": [{"parsedAddress": PARSED | {"state": None}}]})
    assert read(no_state).document_fingerprint is None
    answer = changed(document=DOCUMENT | {"state": "CA"})
    assert read(answer).document_fingerprint == fingerprint("USA", "CA", "dl", "Y7714093")
    passport = changed(document=DOCUMENT | {"type": "PASSPORT"}, person=PERSON | {"addresses": []})
    assert read(passport).document_fingerprint == fingerprint("USA", None, "pp", "Y7714093")


def test_reasons_are_numbers_and_never_sentences() -> None:
    """A reason code is accepted only if it is a number: a text could describe the person."""
    assert read(changed(status="declined", reasonCode=106)).reason_code == "106"
    assert read(changed(status="declined", reasonCode="204")).reason_code == "204"
    assert read(changed(status="declined", reasonCode="TULIPANE lied")).reason_code is None
    assert read(changed(status="declined", reasonCode=True)).reason_code is None


@given(st.sampled_from(places(ANSWER)), JUNK | st.just(...))
def test_no_mutation_raises_or_verifies_an_unapproved_session(
    place: tuple[str | int, ...], junk: object
) -> None:
    """Any member replaced by anything (or left out) gives a result; approval needs its words."""
    mutated = put(ANSWER, place, junk)
    result = read(mutated)
    verification = mutated.get("verification")
    if result.outcome is Finding.VERIFIED:
        assert mutated["status"] == "success"
        assert (verification["id"], verification["status"]) == (SESSION, "approved")
    else:
        assert (result.date_of_birth, result.addresses, result.document) == (None, (), None)


@given(st.binary(max_size=200) | JUNK.map(lambda junk: json.dumps(junk).encode()))
def test_no_bytes_raise(body: bytes) -> None:
    """Whatever arrives, there is a result, and it is not a verified one."""
    assert read(body).outcome in {Finding.INVALID_RESPONSE, Finding.PENDING}


@every(
    ("status", "body", "outcome", "reason"),
    [
        (400, b'{"status":"fail","code":"1002"}', Finding.NOT_FOUND, "1002"),
        (400, b'{"status":"fail","code":"1804"}', Finding.PROVIDER_REJECTED, "1804"),
        (401, b'{"status":"fail","code":"1102"}', Finding.PROVIDER_REJECTED, "1102"),
        (403, b"", Finding.PROVIDER_REJECTED, "http_403"),
        (404, b'{"status":"fail","code":"1203"}', Finding.NOT_FOUND, "1203"),
        (404, b"<html>", Finding.INVALID_RESPONSE, "http_404"),
        (404, b'{"detail":"Not Found"}', Finding.INVALID_RESPONSE, "http_404"),
        (404, b'{"code":"1203"}', Finding.INVALID_RESPONSE, "http_404"),
        (404, b'{"status":"fail","code":"NOT_FOUND"}', Finding.INVALID_RESPONSE, "http_404"),
        (400, b'{"code":"1002"}', Finding.PROVIDER_REJECTED, "http_400"),
        (409, b"{}", Finding.PROVIDER_UNAVAILABLE, "http_409"),
        (429, b"{}", Finding.PROVIDER_UNAVAILABLE, "http_429"),
        (500, b'{"code":{"a":1}}', Finding.PROVIDER_UNAVAILABLE, "http_500"),
        (302, b"", Finding.INVALID_RESPONSE, "http_302"),
    ],
)
def test_an_error_is_judged_by_its_status(
    status: int, body: bytes, outcome: Finding, reason: str
) -> None:
    """Errors are not signed, so they only say that there is no result."""
    result = read(body, status)
    assert (result.outcome, result.reason_code) == (outcome, reason)


# --- over HTTP ------------------------------------------------------------------------------------


def make(clock: FixedClock) -> tuple[Simulator, veriff.VeriffCredentials]:
    simulator = simulated.Veriff(clock.now)
    text = json.dumps(simulator.credentials)
    return simulator, msgspec.json.decode(text, type=veriff.VeriffCredentials)


def ask(
    session_id: str,
    simulator: Simulator | None = None,
    *,
    times: int = 1,
    patient: bool = True,
    **credentials: object,
) -> ProviderResult:
    """The last of that many answers of a simulator, with the credentials changed as asked."""
    clock = FixedClock()
    plain, good = make(clock)

    async def run() -> ProviderResult:
        async with serve(simulator or plain) as served:
            provider = veriff.Veriff(
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
            return answers[-1]

    return asyncio.run(run())


def session(plays: str) -> Session:
    return next(each for each in make(FixedClock())[0].sessions if each.scenario == plays)


SESSIONS: Final = make(FixedClock())[0].sessions
EXPECTED: Final = {
    "verified": Finding.VERIFIED,
    "pending": Finding.PENDING,
    "review": Finding.PENDING,
    "requires_input": Finding.REQUIRES_INPUT,
    "failed": Finding.FAILED,
    "canceled": Finding.CANCELED,
    "expired": Finding.EXPIRED,
    "redacted": Finding.NOT_FOUND,
    "unknown_status": Finding.INVALID_RESPONSE,
    "other_session": Finding.INVALID_RESPONSE,
    "contradicting_code": Finding.FAILED,
    "truncated": Finding.INVALID_RESPONSE,
    "huge": Finding.INVALID_RESPONSE,
    "error_500": Finding.PROVIDER_UNAVAILABLE,
    "html_502": Finding.PROVIDER_UNAVAILABLE,
    "slow": Finding.PROVIDER_UNAVAILABLE,
    "cut": Finding.PROVIDER_UNAVAILABLE,
    "unsigned": Finding.INVALID_RESPONSE,
    "wrong_signature": Finding.INVALID_RESPONSE,
    "rate_limited": Finding.PROVIDER_UNAVAILABLE,
    "decided_later": Finding.PENDING,
}
"""Outcomes of the parts; unnamed ones are approved by Veriff and refused by our decision."""


@every("each", SESSIONS)
def test_each_simulated_part_has_its_outcome(each: Session) -> None:
    """Each session has its outcome over HTTP; only `verified` ones verify a buyer."""
    unable = {"error_500", "html_502", "slow", "cut"}
    result = ask(each.session_id, patient=each.scenario not in unable)
    assert result.outcome is EXPECTED.get(each.scenario, Finding.VERIFIED)
    decision = decide(
        result,
        VerificationRules(),
        shipping_zip=each.shipping_zip,
        subject_reference=each.subject_reference,
        now=from_ns(FixedClock().time_ns()),
    )
    assert (decision.status is BuyerStatus.VERIFIED) == (each.scenario == "verified")


def test_the_exact_answer_is_kept_with_its_signature() -> None:
    """Evidence holds the bytes, their digest, Veriff's signature and the request, no secret."""
    result = ask(session("verified").session_id)
    kept = result.evidence
    assert kept is not None
    assert kept.sha256 == sha256(kept.raw_body).hexdigest()
    assert json.loads(kept.raw_body)["verification"]["id"] == result.session_id
    assert kept.response_signature == hmac_hex(simulated.SHARED_SECRET, kept.raw_body)
    assert kept.request_target == f"GET /v1/sessions/{result.session_id}/decision"
    assert (kept.http_status, kept.api_version) == (200, "v1")


def test_an_undecided_session_is_verified_once_veriff_has_decided() -> None:
    """Asking again settles it."""
    assert ask(session("decided_later").session_id, times=2).outcome is Finding.VERIFIED


def test_how_long_to_wait_is_handed_on() -> None:
    """Veriff's Retry-After is what our caller gets."""
    assert ask(session("rate_limited").session_id).retry_after == 120


@pytest.mark.parametrize("wrong", [{"api_key": "not-the-key"}, {"shared_secrets": ("not-it-00",)}])
def test_wrong_credentials_are_rejected_not_unavailable(wrong: dict[str, Any]) -> None:
    """A wrong key, or a request HMAC by a wrong secret, is our misconfiguration."""
    assert ask(session("verified").session_id, **wrong).outcome is Finding.PROVIDER_REJECTED


class Tampering:
    """A simulator with something in between that changes the headers of its answers."""

    name: Final = "veriff"

    def __init__(self, header: str, value: str | None) -> None:
        self._behind = simulated.Veriff(FixedClock().now)
        self._header, self._value = header, value
        self.sessions, self.credentials = self._behind.sessions, self._behind.credentials
        self.test_credentials = self._behind.test_credentials
        self.webhook, self.take_messages = self._behind.webhook, self._behind.take_messages

    def answer(self, request: Request) -> Reply:
        sent = self._behind.answer(request)
        others = [pair for pair in sent.headers if pair[0].lower() != self._header]
        added = [] if self._value is None else [(self._header, self._value)]
        return replace(sent, headers=(*others, *added))


OLDER: Final = f"7e51ff00-0000-4000-8000-{11:012d}"
"""The session whose answer has the `vrf-` headers of Veriff's older pages."""


@pytest.mark.parametrize("session_id", [session("verified").session_id, OLDER])
def test_an_answer_is_authentic_under_either_name_of_its_headers(session_id: str) -> None:
    """Veriff's reference says `x-hmac-signature`, its older pages `vrf-hmac-signature`."""
    result = ask(session_id)
    assert result.outcome is Finding.VERIFIED
    assert result.evidence is not None
    assert result.evidence.response_signature == hmac_hex(
        simulated.SHARED_SECRET, result.evidence.raw_body
    )


@every("value", [None, "", "0" * 64, "zz" * 32, "0" * 63, "0" * 65, "sha256=" + "0" * 64])
@every(
    ("session_id", "header"),
    [(session("verified").session_id, "x-hmac-signature"), (OLDER, "vrf-hmac-signature")],
)
def test_an_answer_with_a_missing_or_malformed_signature_is_invalid(
    session_id: str, header: str, value: str | None
) -> None:
    """Only the right signature makes an answer valid."""
    result = ask(session_id, Tampering(header, value))
    assert (result.outcome, result.reason_code) == (Finding.INVALID_RESPONSE, "bad_signature")
    assert result.date_of_birth is None


@pytest.mark.parametrize(
    ("session_id", "other"),
    [(session("verified").session_id, "vrf"), (OLDER, "x")],
)
@pytest.mark.parametrize("header", ["hmac-signature", "auth-client"])
def test_two_names_that_contradict_each_other_are_invalid(
    session_id: str, other: str, header: str
) -> None:
    """Only one of two different values can be Veriff's, and nothing says which."""
    between = Tampering(f"{other}-{header}", "0" * 64)
    assert ask(session_id, between).outcome is Finding.INVALID_RESPONSE


@pytest.mark.parametrize(
    ("session_id", "header"),
    [(session("verified").session_id, "x-auth-client"), (OLDER, "vrf-auth-client")],
)
def test_an_answer_to_another_client_is_invalid(session_id: str, header: str) -> None:
    """The answer names the API key it is for; another one is not ours."""
    between = Tampering(header, "5117fab1-0000-0000-0000-000000000000")
    assert ask(session_id, between).outcome is Finding.INVALID_RESPONSE


def test_only_the_live_integration_is_live() -> None:
    """The key and the secret are the integration's; another integration's session is not live."""
    first = session("verified").session_id
    assert ask(first).live is True
    assert ask(OLDER).live is True
    assert ask(first, environment="sandbox").live is False
    assert ask(OLDER, environment="sandbox").live is False
    assert ask(session("test_session").session_id).live is False
    assert ask(first, Tampering("vrf-integration-id", "another-integration")).live is False


def test_every_field_of_an_answer_is_sorted() -> None:
    """No one can add a member to the simulated response without deciding what it means to us."""
    result = ask(session("verified").session_id)
    assert result.evidence is not None
    answer = json.loads(result.evidence.raw_body)
    assert veriff.Veriff.words.fields.unknown(answer) == 0


@pytest.mark.parametrize("integration", ["5117fab1-0000-4000-8000-00000000000b", None])
def test_a_session_is_started_at_the_integration_that_is_named(integration: str | None) -> None:
    """As Veriff's flexible API keys need it; the header is not sent without a name."""
    _, [making] = start(CASES["veriff"], integration_id=integration)
    assert making.headers.get("vrf-integration-id") == integration
