"""Persona: the result of each response, by function and over HTTP."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.base.values import Reason, from_ns
from countersign.core.buyers.decision import decide
from countersign.core.buyers.rules import DocumentExpiry, VerificationRules
from countersign.identity import persona
from countersign.identity.model import FactSource, Finding, ProviderResult, Tri
from countersign.identity.transport import ProviderReply
from countersign_simulators import persona as simulated
from countersign_simulators.base import Request, Session
from countersign_simulators.persona import DECIDED_AFTER_SECONDS
from countersign_simulators.persona_sessions import session_id
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

INQUIRY: Final = "inq_Example1234567890AbCdEfGhIjK"
PRODUCTION: Final = "env_Production000000"
OURS: Final = persona.PersonaCredentials(
    api_key="persona_production_of_this_test", environment="live", environment_id=PRODUCTION
)
GOVERNMENT_ID: Final[dict[str, Any]] = {
    "type": "verification/government-id",
    "id": "ver_Licence",
    "attributes": {
        "status": "passed",
        "completed-at": "2026-11-01T17:03:00.000Z",
        "redacted-at": None,
        "country-code": "US",
        "id-class": "dl",
        "name-first": "FENWICKA",
        "name-last": "BRAMBLETHORPE",
        "birthdate": "1991-07-22",
        "address-street-1": "8801 PERIWINKLE GASKET RD",
        "address-city": "SAN FRANCISCO",
        "address-subdivision": "CA",
        "address-postal-code": "94110",
        "issuing-subdivision": "CA",
        "expiration-date": "2030-01-01",
        "identification-number": "B8801447",
        "checks": [
            {"name": "id_barcode_detection", "status": "passed", "requirement": "required"},
            {"name": "id_glare_detection", "status": "failed", "requirement": "not_required"},
        ],
    },
    "relationships": {"inquiry": {"data": {"type": "inquiry", "id": INQUIRY}}},
}
APPROVED: Final[dict[str, Any]] = {
    "data": {
        "type": "inquiry",
        "id": INQUIRY,
        "attributes": {
            "status": "approved",
            "reference-id": "buyer-1",
            "completed-at": "2026-11-01T17:04:00.000Z",
            "decisioned-at": "2026-11-01T17:04:30.000Z",
            "redacted-at": None,
            "fields": {
                "birthdate": {"type": "date", "value": "1950-01-01"},
                "address-postal-code": {"type": "string", "value": "90210"},
            },
        },
        "relationships": {
            "verifications": {"data": [{"type": GOVERNMENT_ID["type"], "id": "ver_Licence"}]}
        },
    },
    "included": [GOVERNMENT_ID],
}


def read(answer: ProviderReply, credentials: persona.PersonaCredentials = OURS) -> ProviderResult:
    return translated(persona.Persona, credentials, answer, INQUIRY)


def result_of(
    body: object, asked: persona.PersonaCredentials = OURS, environment: str = PRODUCTION
) -> ProviderResult:
    return read(reply(body, persona_environment_id=environment), asked)


def inquiry(**attributes: object) -> dict[str, Any]:
    named = {name.replace("_", "-"): value for name, value in attributes.items()}
    data = APPROVED["data"]
    return APPROVED | {"data": data | {"attributes": data["attributes"] | named}}


def licence(**attributes: object) -> dict[str, Any]:
    named = {name.replace("_", "-"): value for name, value in attributes.items()}
    return GOVERNMENT_ID | {"attributes": GOVERNMENT_ID["attributes"] | named}


def proved_by(*included: dict[str, Any], **attributes: object) -> dict[str, Any]:
    body = inquiry(**attributes)
    links = [{"type": one["type"], "id": one["id"]} for one in included]
    related = {"verifications": {"data": links}}
    return {"data": body["data"] | {"relationships": related}, "included": list(included)}


def verification(kind: str, **attributes: object) -> dict[str, Any]:
    named = {name.replace("_", "-"): value for name, value in attributes.items()}
    return {"type": f"verification/{kind}", "id": f"ver_{kind}", "attributes": named}


def database(match: str, **attributes: object) -> dict[str, Any]:
    requirements = [
        {"name": name, "status": "passed", "match-result": match}
        for name in ("birthdate", "address_postal_code")
    ]
    compared = {
        "name": "database_identity_comparison",
        "status": "passed",
        "metadata": {"check-requirements": requirements},
    }
    facts: dict[str, object] = {
        "status": "passed",
        "checks": [compared],
        "birthdate": "1991-07-22",
        "address_postal_code": "94110",
        "normalized_address_postal_code": "94110-2214",
        "country_code": "US",
    }
    return verification("database", **(facts | attributes))


def test_an_approved_inquiry_gives_the_documents_facts() -> None:
    """The buyer's contradicting input in `fields` does not count."""
    result = result_of(APPROVED)
    assert (result.outcome, result.live, result.subject_reference) == (
        Finding.VERIFIED,
        True,
        "buyer-1",
    )
    assert result.decided_at == day("2026-11-01T17:04:30")
    assert (result.date_of_birth, result.date_of_birth_source) == (
        date(1991, 7, 22),
        FactSource.DOCUMENT,
    )
    (address,) = result.addresses
    assert (address.postal_code, address.country, address.source) == (
        "94110",
        "US",
        FactSource.DOCUMENT,
    )
    assert result.document is not None
    assert (result.document.type, result.document.issuing_region) == ("dl", "CA")
    assert result.document.expires_on == date(2030, 1, 1)
    assert result.document_fingerprint == fingerprint(
        "USA", "California", "driving_license", "B8801447"
    )
    assert {check.name: check.verdict for check in result.checks} == {
        "id_barcode_detection": Tri.PASS,
        "id_glare_detection": Tri.FAIL,
    }
    assert result.evidence is not None
    assert result.evidence.sensitive_complete


@every(
    ("status", "outcome"),
    [
        ("created", Finding.REQUIRES_INPUT),
        ("pending", Finding.REQUIRES_INPUT),
        ("completed", Finding.PENDING),
        ("needs_review", Finding.PENDING),
        ("declined", Finding.FAILED),
        ("failed", Finding.FAILED),
        ("expired", Finding.EXPIRED),
        ("approved_provisionally", Finding.INVALID_RESPONSE),
        ("Approved", Finding.INVALID_RESPONSE),
        ("", Finding.INVALID_RESPONSE),
        (None, Finding.INVALID_RESPONSE),
        (["approved"], Finding.INVALID_RESPONSE),
    ],
)
def test_every_status_has_its_outcome(status: object, outcome: Finding) -> None:
    """Only `approved` is positive, and no other has personal data."""
    result = result_of(inquiry(status=status))
    assert result.outcome is outcome
    assert (result.date_of_birth, result.addresses) == (None, ())


@pytest.mark.parametrize(
    ("body", "member", "reasons"),
    [
        (proved_by(licence(birthdate="1990")), "birthdate", ["age_unknown"]),
        (
            proved_by(licence(expiration_date="01/2030")),
            "expiration-date",
            ["document_expiry_unknown"],
        ),
        (proved_by(licence(address_postal_code=94110)), "address-postal-code", ["zip_unknown"]),
        (inquiry(decisioned_at="soon"), "decisioned-at", []),
    ],
)
def test_a_fact_that_cannot_be_read_is_unknown(
    body: dict[str, Any], member: str, reasons: list[str]
) -> None:
    """One misread member does not make the inquiry unusable for good, and is named for the log."""
    result = result_of(body)
    decision = decide(
        result,
        VerificationRules(document_expiry=DocumentExpiry.UNEXPIRED),
        shipping_zip="94110",
        subject_reference="buyer-1",
        now=from_ns(FixedClock().time_ns()),
    )
    assert result.unread == (member,)
    assert list(decision.reasons) == reasons


@pytest.mark.parametrize("metadata", [[], {}, None, "odd"])
def test_a_check_without_readable_metadata_is_a_check(metadata: object) -> None:
    """Persona writes `[]` for an empty object, too."""
    check = {"name": "id_glare_detection", "status": "passed", "metadata": metadata}
    assert result_of(proved_by(licence(checks=[check]))).outcome is Finding.VERIFIED


@pytest.mark.parametrize(
    ("kind", "check", "reason"),
    [
        ("government-id", "id_expired_detection", Reason.DOCUMENT_EXPIRED),
        ("government-id", "id_blur_detection", Reason.DOCUMENT_UNREADABLE),
        ("selfie", "selfie_id_comparison", Reason.SELFIE_MISMATCH),
        ("selfie", "selfie_liveness_detection", Reason.SELFIE_NOT_ACCEPTED),
        ("government-id", "id_public_figure_detection", None),
    ],
)
def test_a_failed_check_becomes_a_reason_of_ours(
    kind: str, check: str, reason: Reason | None
) -> None:
    """For a selfie too; an unknown check adds nothing."""
    failed = verification(kind, status="failed", checks=[{"name": check, "status": "failed"}])
    result = result_of(proved_by(failed, status="declined"))
    assert (result.outcome, result.reason_code, result.reason) == (Finding.FAILED, check, reason)


def test_a_mobile_licence_proves_a_person() -> None:
    """`verification/mdoc` (ISO 18013-5): the same document as the card."""
    mobile = verification(
        "mdoc",
        status="passed",
        name_first="FENWICKA",
        name_last="BRAMBLETHORPE",
        birthdate="1991-07-22",
        address_street="412 Crumpet Lane",
        address_city="San Francisco",
        address_state="CA",
        address_postal_code="94110",
        address_country_code="US",
        issuing_country="US",
        issuing_jurisdiction="CA",
        expiration_date="2030-01-01",
        identification_number="B8801447",
    )
    result = result_of(proved_by(mobile))
    assert (result.outcome, result.date_of_birth_source) == (Finding.VERIFIED, FactSource.DOCUMENT)
    (address,) = result.addresses
    assert (address.postal_code, address.country, address.source) == (
        "94110",
        "US",
        FactSource.DOCUMENT,
    )
    assert result.document_fingerprint == result_of(APPROVED).document_fingerprint
    assert result.document is not None
    assert result.document.expires_on == date(2030, 1, 1)


def test_the_chip_of_a_document_proves_a_person() -> None:
    """`verification/government-id-nfc`: a passport's number is the country's."""
    chip = verification(
        "government-id-nfc",
        status="passed",
        birthdate="1991-07-22",
        id_class="pp",
        country_code="US",
        identification_number="P16004243",
        expiration_date="2030-01-01",
    )
    result = result_of(proved_by(chip))
    assert (result.outcome, result.date_of_birth_source) == (Finding.VERIFIED, FactSource.DOCUMENT)
    assert result.document_fingerprint == fingerprint("US", None, "passport", "P16004243")
    assert result.addresses == ()


@pytest.mark.parametrize(
    ("kind", "check", "source"),
    [
        ("database", {"match-result": "full"}, FactSource.DATABASE),
        ("database", {}, FactSource.DATABASE),
        ("database", {"match-result": "partial"}, FactSource.USER),
        ("aamva", {"match-result": None}, FactSource.DATABASE),
        ("aamva", {"match-result": "partial"}, FactSource.USER),
    ],
)
def test_a_comparison_of_one_attribute_proves_that_one(
    kind: str, check: dict[str, Any], source: FactSource
) -> None:
    """`database_birthdate_comparison` and its like, unless they say that the match is partial."""
    checks = [
        {"name": f"{kind}_{name}_comparison", "status": "passed", "metadata": check}
        for name in ("birthdate", "address")
    ]
    facts = {"birthdate": "1991-07-22", "address_postal_code": "94110", "country_code": "US"}
    result = result_of(proved_by(verification(kind, status="passed", checks=checks, **facts)))
    assert result.date_of_birth_source is source
    assert {address.source for address in result.addresses} == {source}


@pytest.mark.parametrize(
    ("kind", "name"),
    [("aamva", "aamva_identity_comparison"), ("database", "database_standard_identity_comparison")],
)
@pytest.mark.parametrize(
    ("match", "source"), [("full", FactSource.DATABASE), ("partial", FactSource.USER)]
)
def test_a_comparison_of_all_attributes_proves_each_that_matches_fully(
    kind: str, name: str, match: str, source: FactSource
) -> None:
    """Newer templates compare everything in one check, and name each attribute in it."""
    checks = [database(match)["attributes"]["checks"][0] | {"name": name}]
    facts = {"birthdate": "1991-07-22", "address_postal_code": "94110", "country_code": "US"}
    result = result_of(proved_by(verification(kind, status="passed", checks=checks, **facts)))
    assert result.date_of_birth_source is source
    assert {address.source for address in result.addresses} == {source}


def test_a_redacted_inquiry_still_says_approved_and_does_not_verify() -> None:
    """`redacted-at` is read before the status, for the inquiry and its proof."""
    gone = "2026-11-02T00:00:00.000Z"
    assert result_of(inquiry(redacted_at=gone)).outcome is Finding.REDACTED
    assert result_of(proved_by(licence(redacted_at=gone))).outcome is Finding.REDACTED


@pytest.mark.parametrize(
    ("included", "reason"),
    [
        ((licence(status="failed"),), "id_glare_detection"),
        ((licence(status="tentatively_passed", checks=[]),), "no_passed_verification"),
        ((verification("selfie", status="passed", checks=[]),), "no_passed_verification"),
        ((verification("phone-number", status="confirmed"),), "no_passed_verification"),
        ((verification("document", status="passed"),), "no_passed_verification"),
        ((), "no_passed_verification"),
    ],
)
def test_approval_without_proof_verifies_no_one(
    included: tuple[dict[str, Any], ...], reason: str
) -> None:
    """A reviewer's approval of a selfie, a telephone or a bill does not identify the person."""
    result = result_of(proved_by(*included))
    assert (result.outcome, result.reason_code) == (Finding.UNPROVED, reason)


def test_verifications_that_the_key_may_not_read_are_our_mistake() -> None:
    """The inquiry names a passed document, but nothing is included: the key lacks a permission."""
    result = result_of(APPROVED | {"included": []})
    assert (result.outcome, result.reason_code) == (
        Finding.PROVIDER_REJECTED,
        "verifications_withheld",
    )


def test_the_newest_passed_document_counts() -> None:
    """A failed attempt before it, and an older document, do not."""
    failed = licence(status="failed", birthdate="1901-01-01") | {"id": "ver_Failed"}
    old = licence(birthdate="1902-02-02", completed_at="2025-01-01T00:00:00.000Z")
    result = result_of(proved_by(failed, GOVERNMENT_ID, old | {"id": "ver_Old"}))
    assert result.date_of_birth == date(1991, 7, 22)


def test_a_verification_of_another_inquiry_is_refused_or_ignored() -> None:
    """One naming another inquiry makes the response unreadable; an unlinked one does not count."""
    other = GOVERNMENT_ID | {"relationships": {"inquiry": {"data": {"id": "inq_Another"}}}}
    assert result_of(proved_by(other)).outcome is Finding.INVALID_RESPONSE
    stranger = GOVERNMENT_ID | {"id": "ver_Stranger"}
    assert result_of(APPROVED | {"included": [stranger]}).outcome is not Finding.VERIFIED


def test_without_relationships_the_included_verifications_count() -> None:
    """Sparse fields may leave the links out."""
    data = {name: value for name, value in APPROVED["data"].items() if name != "relationships"}
    assert result_of(APPROVED | {"data": data}).outcome is Finding.VERIFIED


@pytest.mark.parametrize("withheld", ["birthdate", "expiration-date"])
def test_fields_on_a_keys_blocklist_are_unknown(withheld: str) -> None:
    """A blocked attribute is absent, whereas one that the document lacks is null."""
    attributes = {k: v for k, v in GOVERNMENT_ID["attributes"].items() if k != withheld}
    blocked = result_of(proved_by(GOVERNMENT_ID | {"attributes": attributes}))
    assert blocked.evidence is not None
    assert not blocked.evidence.sensitive_complete
    assert (blocked.date_of_birth is None) is (withheld == "birthdate")
    empty = result_of(proved_by(licence(**{withheld: None})))
    assert empty.evidence is not None
    assert empty.evidence.sensitive_complete


def test_a_passport_has_no_address() -> None:
    """No address at all, rather than one of nulls."""
    parts = ("street-1", "city", "subdivision", "postal-code")
    result = result_of(proved_by(licence(**{f"address-{part}": None for part in parts})))
    assert result.addresses == ()


@pytest.mark.parametrize(
    ("match", "source"),
    [("full", FactSource.DATABASE), ("partial", FactSource.USER), ("none", FactSource.USER)],
)
def test_a_database_proves_only_full_matches(match: str, source: FactSource) -> None:
    """Persona lets a birth date pass that is a day off: that is not the buyer's birth date."""
    result = result_of(proved_by(database(match)))
    assert result.outcome is Finding.VERIFIED
    assert (result.date_of_birth_source, result.addresses[0].source) == (source, source)
    assert result.addresses[0].postal_code == "94110-2214"
    assert (result.document, result.document_fingerprint) == (None, None)


@pytest.mark.parametrize(
    "checks", [[], [{"name": "database_identity_comparison", "status": "failed"}]]
)
def test_a_database_that_compared_nothing_proves_nothing(checks: list[object]) -> None:
    """A verification can pass without the comparison."""
    result = result_of(proved_by(database("full", checks=checks)))
    assert result.date_of_birth_source is FactSource.USER
    assert {address.source for address in result.addresses} == {FactSource.USER}


@pytest.mark.parametrize("compared", ["passed", "not_applicable", "failed"])
def test_the_licence_register_proves_the_compared_facts(compared: str) -> None:
    """AAMVA compares member by member."""
    checks = [
        {"name": "aamva_birthdate_comparison", "status": compared},
        {"name": "aamva_address_comparison", "status": "passed"},
    ]
    result = result_of(
        proved_by(
            verification(
                "aamva",
                status="passed",
                checks=checks,
                birthdate="1991-07-22",
                address_postal_code="94110",
                issuing_authority="CA",
                expiration_date="2030-01-01",
                identification_number="B8801447",
            )
        )
    )
    expected = FactSource.DATABASE if compared == "passed" else FactSource.USER
    assert result.date_of_birth_source is expected
    (address,) = result.addresses
    assert (address.source, address.country) == (FactSource.DATABASE, "US")
    assert result.document is not None
    assert result.document.expires_on == date(2030, 1, 1)


def test_the_document_comes_before_the_database() -> None:
    """Birth and name are the document's; each address names its own source."""
    moved = database("full", normalized_address_postal_code="95814")
    result = result_of(proved_by(moved, GOVERNMENT_ID))
    assert (result.date_of_birth, result.date_of_birth_source) == (
        date(1991, 7, 22),
        FactSource.DOCUMENT,
    )
    assert [(one.postal_code, one.source) for one in result.addresses] == [
        ("94110", FactSource.DOCUMENT),
        ("95814", FactSource.DATABASE),
    ]


@pytest.mark.parametrize(
    "other",
    [
        {"birthdate": "2012-05-05"},
        {"name_last": "SOMEBODY"},
        {"birthdate": None},
        {"birthdate": None, "name_last": "BRAMBLETHORPE", "name_first": "SPOUSE"},
    ],
    ids=["born on another day", "of another name", "nobody", "of the same family"],
)
def test_proofs_of_two_people_are_not_combined(other: dict[str, object]) -> None:
    """An adult's document with the address from a database entry of somebody else: no ZIP code."""
    elsewhere = {"normalized_address_postal_code": "95814"} | other
    result = result_of(proved_by(database("full", **elsewhere), GOVERNMENT_ID))
    assert result.date_of_birth == date(1991, 7, 22)
    assert [one.postal_code for one in result.addresses] == ["94110"]


def test_an_adults_passport_does_not_take_the_address_of_a_minors_licence() -> None:
    """Two documents that passed in one inquiry: birth, address and number come from one of them."""
    minor = licence(
        birthdate="2012-01-01",
        name_last="SOMEBODY",
        completed_at="2026-11-01T16:00:00.000Z",
        identification_number="M7777777",
    ) | {"id": "ver_Minor"}
    adult = licence(
        id_class="pp",
        completed_at="2026-11-01T17:00:00.000Z",
        address_postal_code=None,
        address_street_1=None,
        address_city=None,
        address_subdivision=None,
    )
    result = result_of(proved_by(minor, adult))
    assert (result.date_of_birth, result.addresses) == (date(1991, 7, 22), ())
    assert result.document_fingerprint == fingerprint("US", None, "pp", "B8801447")


def test_an_address_keeps_the_document_that_shows_it() -> None:
    """Of several documents of one person, each with its own last day."""
    old = licence(expiration_date="2019-01-01", completed_at="2026-11-01T16:00:00.000Z")
    passport = licence(
        id_class="pp",
        completed_at="2026-11-01T17:00:00.000Z",
        address_postal_code=None,
        address_street_1=None,
        address_city=None,
        address_subdivision=None,
    )
    result = result_of(proved_by(old | {"id": "ver_Old"}, passport))
    assert result.document is not None
    assert (result.document.type, result.document.expiry_unread) == ("pp", False)
    (address,) = result.addresses
    assert address.document is not None
    assert address.document.expires_on == date(2019, 1, 1)
    decision = decide(
        result,
        VerificationRules(),
        shipping_zip="94110",
        subject_reference="buyer-1",
        now=from_ns(FixedClock().time_ns()),
    )
    assert decision.reasons == (Reason.DOCUMENT_EXPIRED,)


def test_the_address_of_a_twin_does_not_count() -> None:
    """The same birth date and family name, and another given name."""
    twin = licence(
        name_first="SOMEBODY",
        address_postal_code="95814",
        completed_at="2026-11-01T16:00:00.000Z",
        identification_number="T7777777",
    )
    result = result_of(proved_by(twin | {"id": "ver_Twin"}, GOVERNMENT_ID))
    assert [one.postal_code for one in result.addresses] in (["94110"], ["95814"])


def test_names_are_equal_despite_capitals_accents_and_hyphens() -> None:
    """A document in capitals and a database in small letters describe one person."""
    named = licence(name_last="GARCÍA LÓPEZ")
    entry = database("full", name_last="Garcia-Lopez", normalized_address_postal_code="95814")
    result = result_of(proved_by(entry, named))
    assert [one.postal_code for one in result.addresses] == ["94110", "95814"]


def test_a_licence_is_the_same_by_its_document_and_by_the_register() -> None:
    """The register names no kind: it has licences; and the card's own number is not used."""
    register = verification(
        "aamva",
        status="passed",
        issuing_authority="CA",
        identification_number="B8801447",
        birthdate="1991-07-22",
        checks=[{"name": "aamva_birthdate_comparison", "status": "passed"}],
    )
    by_register = result_of(proved_by(register)).document_fingerprint
    assert by_register == result_of(APPROVED).document_fingerprint is not None
    of_the_card = licence(document_number="00099911")
    assert result_of(proved_by(of_the_card)).document_fingerprint == by_register
    nameless = licence(identification_number=None, document_number="00099911")
    assert result_of(proved_by(nameless)).document_fingerprint is None


def test_completed_counts_only_if_the_account_says_so_and_a_verification_passed() -> None:
    """There is no decision in `completed`; some templates never have one."""
    accepting = msgspec.structs.replace(OURS, accept_completed=True)
    assert result_of(inquiry(status="completed"), accepting).outcome is Finding.VERIFIED
    unproved = proved_by(licence(status="failed"), status="completed")
    assert result_of(unproved, accepting).outcome is Finding.PENDING
    assert result_of(inquiry(status="needs_review"), accepting).outcome is Finding.PENDING


@pytest.mark.parametrize(
    ("environment", "kind", "live"),
    [
        (PRODUCTION, "live", True),
        ("env_Sandbox0000000", "live", False),
        (PRODUCTION, "sandbox", False),
        (None, "live", None),
        (None, "sandbox", None),
    ],
)
def test_the_environment_decides_what_is_live(
    environment: str | None, kind: str, live: bool | None
) -> None:
    """Only an answer from the environment that the account declared live is live."""
    answer = reply(APPROVED)
    if environment is not None:
        answer = reply(APPROVED, persona_environment_id=environment)
    result = read(answer, msgspec.structs.replace(OURS, environment=kind))
    assert result.live is live


NO_SUCH_RECORD: Final = {"errors": [{"title": "Record not found"}]}
REFUSAL: Final = {"errors": [{"title": "Forbidden", "details": "FENWICKA may not"}]}


@every(
    ("status", "body", "outcome", "reason"),
    [
        (404, NO_SUCH_RECORD, Finding.NOT_FOUND, "http_404"),
        (404, b"<html>", Finding.INVALID_RESPONSE, "http_404"),
        (404, {"errors": []}, Finding.INVALID_RESPONSE, "http_404"),
        (400, REFUSAL, Finding.PROVIDER_REJECTED, "http_400"),
        (401, REFUSAL, Finding.PROVIDER_REJECTED, "http_401"),
        (403, REFUSAL, Finding.PROVIDER_REJECTED, "http_403"),
        (408, REFUSAL, Finding.PROVIDER_UNAVAILABLE, "http_408"),
        (409, REFUSAL, Finding.PROVIDER_UNAVAILABLE, "http_409"),
        (429, REFUSAL, Finding.PROVIDER_UNAVAILABLE, "http_429"),
        (503, b"", Finding.PROVIDER_UNAVAILABLE, "http_503"),
        (302, b"", Finding.INVALID_RESPONSE, "http_302"),
        (200, b"", Finding.INVALID_RESPONSE, "unreadable"),
        (200, {"data": []}, Finding.INVALID_RESPONSE, "unreadable"),
        (200, APPROVED | {"data": APPROVED["data"] | {"id": "inq_Another1234567890"}},
         Finding.INVALID_RESPONSE, "unreadable"),
        (200, APPROVED | {"data": APPROVED["data"] | {"type": "account"}},
         Finding.INVALID_RESPONSE, "unreadable"),
        (200, json.dumps(APPROVED).encode()[:-20], Finding.INVALID_RESPONSE, "unreadable"),
    ],
)  # fmt: skip
def test_every_error_has_its_outcome(
    status: int, body: object, outcome: Finding, reason: str
) -> None:
    """The words are ours: Persona's texts go nowhere."""
    result = read(reply(body, status, persona_environment_id=PRODUCTION))
    assert (result.outcome, result.reason_code) == (outcome, reason)


def test_not_found_in_another_environment_is_our_mistake() -> None:
    """The key is not of the environment that the account declared."""
    result = read(reply(NO_SUCH_RECORD, 404, persona_environment_id="env_Sandbox0000000"))
    assert (result.outcome, result.reason_code) == (
        Finding.PROVIDER_REJECTED,
        "environment_mismatch",
    )


@given(place=st.sampled_from(places(APPROVED)), junk=JUNK | st.just(...))
def test_no_malformed_answer_raises(place: tuple[str | int, ...], junk: object) -> None:
    """Whatever stands anywhere, there is a result; only `approved` with a passed proof verifies."""
    body = put(APPROVED, place, junk)
    result = result_of(body)
    if result.outcome is Finding.VERIFIED:
        assert body["data"]["attributes"]["status"] == "approved"
        assert body["included"][0]["attributes"]["status"] == "passed"
    else:
        assert (result.date_of_birth, result.addresses) == (None, ())


@given(place=st.sampled_from(places(database("full"))), junk=JUNK | st.just(...))
def test_no_malformed_verification_raises(place: tuple[str | int, ...], junk: object) -> None:
    """The same for a database's response, down to the comparison of each member."""
    one = put(database("full"), place, junk)
    body = proved_by(database("full")) | {"included": [one]}
    result = result_of(body)
    if one.get("attributes", {}) and result.outcome is Finding.VERIFIED:
        assert one["attributes"]["status"] == "passed"


@given(st.binary(max_size=200), st.integers(100, 599))
def test_no_bytes_raise_or_verify(body: bytes, status: int) -> None:
    """Bytes that are no inquiry give an outcome, and no buyer."""
    assert read(reply(body, status)).outcome is not Finding.VERIFIED


# --- over HTTP ----------------------------------------------------------------------------------

OUTCOMES: Final = {
    "requires_input": Finding.REQUIRES_INPUT,
    "begun": Finding.REQUIRES_INPUT,
    "pending": Finding.PENDING,
    "decided_later": Finding.PENDING,
    "review": Finding.PENDING,
    "declined": Finding.FAILED,
    "failed": Finding.FAILED,
    "no_passed_verification": Finding.UNPROVED,
    "expired": Finding.EXPIRED,
    "unknown_status": Finding.INVALID_RESPONSE,
    "redacted": Finding.REDACTED,
    "proof_redacted": Finding.REDACTED,
    "verifications_withheld": Finding.PROVIDER_REJECTED,
    "wrong_id": Finding.INVALID_RESPONSE,
    "truncated": Finding.INVALID_RESPONSE,
    "huge": Finding.INVALID_RESPONSE,
    "rate_limited": Finding.PROVIDER_UNAVAILABLE,
    "server_error": Finding.PROVIDER_UNAVAILABLE,
    "bad_gateway_html": Finding.PROVIDER_UNAVAILABLE,
    "slow": Finding.PROVIDER_UNAVAILABLE,
    "cut": Finding.PROVIDER_UNAVAILABLE,
}
CREDENTIALS: Final = persona.PersonaCredentials(
    api_key=simulated.API_KEY, environment="live", environment_id=simulated.ENVIRONMENT_ID
)


async def ask(
    *session_ids: str,
    credentials: persona.PersonaCredentials = CREDENTIALS,
    once_within: float | None = None,
    clock: FixedClock | None = None,
) -> tuple[list[ProviderResult], list[Request]]:
    """The results, and the requests that arrived; between two asked the clock goes on."""
    clock = clock or FixedClock()
    async with serve(simulated.Persona(clock.now)) as served:
        provider = persona.Persona(
            credentials, base_url=served.url, fingerprint=fingerprint, clock=clock
        )
        if once_within is not None:
            provider._http = single(served.url, clock, read_seconds=once_within)
        results = []
        for asked in session_ids:
            results.append(await provider.retrieve(asked))
            clock.seconds += DECIDED_AFTER_SECONDS
        await provider.close()
        return results, served.requests


def listed() -> list[Session]:
    return list(simulated.Persona(FixedClock().now).sessions)


def test_every_simulated_session_has_its_outcome() -> None:
    """All except those that need a retry or a long wait, through a real socket."""
    apart = {session_id(name) for name in ("LimitedOnce", "LimitedBriefly", "Slow")}
    sessions = [session for session in listed() if session.session_id not in apart]
    results, _ = asyncio.run(ask(*(s.session_id for s in sessions), once_within=10.0))
    found = {s.session_id: r.outcome for s, r in zip(sessions, results, strict=True)}
    assert found == {s.session_id: OUTCOMES.get(s.scenario, Finding.VERIFIED) for s in sessions}


def test_the_request_to_a_hanging_provider_is_abandoned() -> None:
    """Its response would come after thirty seconds; the client does not wait for it."""
    (result,), _ = asyncio.run(ask(session_id("Slow"), once_within=0.2))
    assert result.outcome is Finding.PROVIDER_UNAVAILABLE
    assert result.evidence is None


@pytest.mark.parametrize("name", ["LimitedOnce", "LimitedBriefly"])
def test_a_passing_limit_is_outlived_by_a_second_attempt(name: str) -> None:
    """429 with and without a time does not reach the caller."""
    (result,), requests = asyncio.run(ask(session_id(name)))
    assert result.outcome is Finding.VERIFIED
    assert len(requests) == 2


def test_a_long_wait_is_passed_on_to_the_caller() -> None:
    """No one waits until the limit's minute is over in an open request."""
    (first, second), requests = asyncio.run(ask(*[session_id("LimitedLong")] * 2))
    assert (first.outcome, first.retry_after) == (Finding.PROVIDER_UNAVAILABLE, 42)
    assert second.outcome is Finding.VERIFIED
    assert len(requests) == 2


def test_an_inquiry_is_decided_a_while_after_it_is_completed() -> None:
    """The gap between the two is not a failure, and ends."""
    (first, second), _ = asyncio.run(ask(*[session_id("DecidedLater")] * 2))
    assert (first.outcome, first.provider_status) == (Finding.PENDING, "completed")
    assert (second.outcome, second.provider_status) == (Finding.VERIFIED, "approved")


def test_completed_verifies_over_http_if_accepted() -> None:
    """The option reaches the translation."""
    accepting = msgspec.structs.replace(CREDENTIALS, accept_completed=True)
    (result,), _ = asyncio.run(ask(session_id("Completed"), credentials=accepting))
    assert result.outcome is Finding.VERIFIED


def test_the_request_matches_personas_documentation() -> None:
    """Pinned version and key style; only used members are requested, and no pictures."""
    (result,), (request,) = asyncio.run(ask(session_id("Verified")))
    assert request.headers["authorization"] == f"Bearer {simulated.API_KEY}"
    assert request.headers["persona-version"] == "2025-12-08"
    assert request.headers["key-inflection"] == "kebab"
    assert ("include", "verifications") in request.query
    evidence = result.evidence
    assert evidence is not None
    assert evidence.request_id is not None
    assert evidence.request_id.startswith("req_")
    assert evidence.request_target.startswith(
        f"GET /api/v1/inquiries/{session_id('Verified')}?include=verifications"
    )
    assert b"8801 PERIWINKLE" in evidence.raw_body
    assert b"access_token" not in evidence.raw_body
    assert b'"fields"' not in evidence.raw_body


def test_a_wrong_key_is_rejected_and_the_probe_is_not_found() -> None:
    """Asking for the probe separates working credentials from others, and the environment too."""
    wrong = msgspec.structs.replace(CREDENTIALS, api_key="persona_production_of_somebody")
    elsewhere = msgspec.structs.replace(CREDENTIALS, environment_id="env_Elsewhere000")
    probe = persona.Persona.probe_session_id
    (rejected,), _ = asyncio.run(ask(probe, credentials=wrong))
    (mismatched,), _ = asyncio.run(ask(probe, credentials=elsewhere))
    (absent,), _ = asyncio.run(ask(probe))
    assert rejected.outcome is mismatched.outcome is Finding.PROVIDER_REJECTED
    assert mismatched.reason_code == "environment_mismatch"
    assert absent.outcome is Finding.NOT_FOUND


def test_the_same_document_has_one_fingerprint() -> None:
    """Two inquiries with one licence agree; another's do not."""
    names = ("SameDocumentOnce", "SameDocumentAgain", "Verified")
    (one, again, other), _ = asyncio.run(ask(*map(session_id, names)))
    assert one.document_fingerprint == again.document_fingerprint is not None
    assert other.document_fingerprint not in {None, one.document_fingerprint}


def test_dates_of_the_simulator_follow_its_clock() -> None:
    """A person who comes of age today is eighteen, one who does so tomorrow is not."""
    names = ("BirthdayToday", "BirthdayTomorrow")
    (today, tomorrow), _ = asyncio.run(ask(*map(session_id, names)))
    assert today.date_of_birth == date(2008, 11, 17)
    assert tomorrow.date_of_birth == date(2008, 11, 17) + timedelta(days=1)


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


def test_the_results_of_persona_show_nothing_of_a_person() -> None:
    """Neither the result nor its parts show a name in a repr."""
    result = result_of(APPROVED)
    shown = repr((result, result.addresses, result.document, result.evidence))
    assert not any(word in shown for word in ("FENWICKA", "PERIWINKLE", "94110", "1991"))
