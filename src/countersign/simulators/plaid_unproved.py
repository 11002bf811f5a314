"""The sessions of the simulated Plaid that succeeded there, and still prove too little."""

from __future__ import annotations

from collections.abc import Sequence

from countersign.simulators.document_people import merged, today, turned, turns_tomorrow
from countersign.simulators.plaid_parts import (
    OTTOLINDE,
    THISTLEWANE,
    ZENOBELLE,
    Part,
    part_of,
    person_with,
    shown,
)
from countersign.simulators.plaid_people import document, stamp, success


def unproved(now: float) -> Sequence[Part]:
    day = today(now)
    gone = stamp(now - 86400)
    nulls = {"date_of_birth": None, "name": None, "address": None, "id_number": None}
    emptied = {
        **document(ZENOBELLE, 1, "success", "idv_RedactedAltogether"),
        "extracted_data": None,
    }
    redacted = {
        "redacted_at": gone,
        "user": {**nulls, "phone_number": None, "email_address": None},
        "documentary_verification": {"documents": [{**emptied, "redacted_at": gone}]},
    }
    young = person_with(14, "Philomenka", "Larkspurrow", born=turned(17, day))
    tomorrow = person_with(15, "Crispinella", "Bogglesworth", born=turns_tomorrow(18, day))
    abroad = person_with(
        16, "Roderigan", "Maplewhisk", country="CA", region="ON", postal_code="K1A 0B1"
    )
    half = document(THISTLEWANE, 1, "success", "idv_RedactedDocument")
    no_document = {
        "documentary_verification": None,
        "selfie_check": None,
        "steps": {"documentary_verification": "not_applicable", "selfie_check": "not_applicable"},
    }
    partial = {"address": {"summary": "partial_match", "postal_code": "partial_match"}}
    undated = document(ZENOBELLE, 1, "success", "idv_ExpiredUndated")
    of_another = document(THISTLEWANE, 1, "success", "idv_KycOfAnother")
    return (
        part_of("RedactedAltogether", "redacted", ZENOBELLE, redacted),
        part_of(
            "RedactedDocument",
            "redacted_document",
            THISTLEWANE,
            {"documentary_verification": {"documents": [{**half, "redacted_at": gone}]}},
        ),
        part_of("UnderageBuyer", "underage", young),
        part_of("BirthdayTomorrow", "underage_until_tomorrow", tomorrow),
        part_of(
            "ExpiredDocument",
            "expired_document",
            ZENOBELLE,
            shown("idv_ExpiredDocument", ZENOBELLE, expiration_date="2021-03-04"),
        ),
        part_of(
            "ExpiredUndated",
            "expired_document_without_date",
            ZENOBELLE,
            {
                "documentary_verification": {
                    "documents": [
                        merged(
                            undated,
                            {
                                "extracted_data": {"expiration_date": None},
                                "analysis": {"extracted_data": {"expiration_date": "expired"}},
                            },
                        )
                    ]
                }
            },
        ),
        part_of(
            "NoDateOfBirth",
            "age_unknown",
            ZENOBELLE,
            {
                **shown("idv_NoDateOfBirth", ZENOBELLE, date_of_birth=None),
                "kyc_check": {"date_of_birth": {"summary": "no_data"}},
            },
        ),
        part_of(
            "PassportNoAddress",
            "zip_unknown",
            ZENOBELLE,
            {
                **shown(
                    "idv_PassportNoAddress",
                    ZENOBELLE,
                    address=None,
                    category="passport",
                    issuing_region=None,
                ),
                "kyc_check": None,
                "steps": {"kyc_check": "not_applicable"},
            },
        ),
        part_of("CanadianAddress", "foreign_address", abroad, shipping_zip="94110"),
        part_of("ZipOfAnotherTown", "zip_mismatch", THISTLEWANE, shipping_zip="94110"),
        # The typed address is about right, says the data source: that is not enough.
        part_of(
            "PartialMatchZip",
            "zip_partial_match",
            ZENOBELLE,
            {
                "user": {"address": {"postal_code": "94704"}},
                "kyc_check": partial,
            },
            shipping_zip="94704",
        ),
        # One's own licence, and the name and address of somebody else.
        part_of(
            "KycOfAnother",
            "typed_another_person",
            THISTLEWANE,
            {
                "user": success("idv_KycOfAnother", OTTOLINDE, "", now)["user"],
                "documentary_verification": {
                    "documents": [
                        merged(of_another, {"analysis": {"extracted_data": {"name": "no_match"}}})
                    ]
                },
            },
            shipping_zip=OTTOLINDE.postal_code,
            others=(OTTOLINDE,),
        ),
        # The typed number and address are those of a person who has died.
        part_of(
            "KycOfTheDead",
            "typed_dead_person",
            THISTLEWANE,
            {
                "user": success("idv_KycOfTheDead", OTTOLINDE, "", now)["user"],
                "kyc_check": {"id_number": {"ssa_verification": {"is_deceased": True}}},
            },
            shipping_zip=OTTOLINDE.postal_code,
            others=(OTTOLINDE,),
        ),
        # The template has no document step: every step passed, and none shows a document.
        part_of("NoDocumentStep", "no_document", ZENOBELLE, no_document),
        # Nor is it where the goods shall go, for whoever says nothing of the buyer.
        part_of(
            "OtherSubject",
            "other_subject",
            ZENOBELLE,
            {"client_user_id": "buyer-of-another"},
            shipping_zip="94118",
        ),
        part_of("SandboxEnvironment", "other_environment", ZENOBELLE, environment="sandbox"),
    )
