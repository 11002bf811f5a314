"""The sessions that the simulated Plaid knows; every person in them is made up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from countersign.simulators.document_people import today, turned
from countersign.simulators.plaid_parts import (
    OTTOLINDE,
    THISTLEWANE,
    ZENOBELLE,
    Part,
    part_of,
    person_with,
)
from countersign.simulators.plaid_people import document, kyc, without_results
from countersign.simulators.plaid_unproved import unproved


def parts(now: float) -> Sequence[Part]:
    """Every part, in a fixed order; ages are reckoned from `now`, in Unix seconds."""
    return (*_verified(now), *_undecided(), *unproved(now), *_troubled())


def _verified(now: float) -> Sequence[Part]:
    day = today(now)
    plus_four = person_with(4, "Euphronia", "Tanglewick", postal_code="95814-2215")
    nine = person_with(5, "Cadwallonius", "Fernbottom", postal_code="900410123")
    zero = person_with(6, "Hesperina", "Dunmarrow", postal_code="02139", region="MA")
    third = person_with(7, "Lysanderine", "Cobblegrove")
    failed = person_with(8, "Grizelbart", "Underquay")
    reviewed = person_with(9, "Marigolda", "Pepperwhistle")
    moved = person_with(10, "Bartholoma", "Snickerthorn")
    contradicted = person_with(11, "Isambardine", "Wolverquist")
    eighteen = person_with(12, "Peregrinelle", "Hatherswick", born=turned(18, day))
    extra = person_with(13, "Oswaldina", "Tumbleferry")
    thrice = [
        document(failed, 1, "failed", "idv_VerifiedThirdAttempt"),
        document(third, 3, "success", "idv_VerifiedThirdAttempt"),
        document(failed, 2, "failed", "idv_VerifiedThirdAttempt"),
    ]
    manual = document(reviewed, 1, "manually_approved", "idv_VerifiedByReviewer")
    typed = {
        "date_of_birth": "1931-02-03",
        "address": {"street": OTTOLINDE.street, "postal_code": OTTOLINDE.postal_code},
    }
    return (
        part_of("VerifiedLicense", "verified", ZENOBELLE),
        part_of("VerifiedSecondBuyer", "verified", THISTLEWANE),
        # The same licence as the first: the same buyer.
        part_of("VerifiedSameDocument", "verified", ZENOBELLE),
        part_of("VerifiedZipPlusFour", "verified", plus_four, shipping_zip="95814"),
        part_of("VerifiedNineDigitZip", "verified", nine, shipping_zip="90041"),
        part_of("VerifiedLeadingZeroZip", "verified", zero),
        part_of(
            "VerifiedThirdAttempt",
            "verified",
            third,
            {"documentary_verification": {"documents": thrice}},
            others=(failed,),
        ),
        part_of(
            "VerifiedByReviewer",
            "verified",
            reviewed,
            {
                "steps": {"documentary_verification": "manually_approved"},
                "documentary_verification": {"status": "manually_approved", "documents": [manual]},
            },
        ),
        # The licence has the old address; a data source has the typed one.
        part_of(
            "VerifiedMovedHouse",
            "verified",
            moved,
            {"user": {"address": {"street": "12 Mossgable Court", "postal_code": "94704"}}},
            shipping_zip="94704",
            others=(person_with(10, "Bartholoma", "Snickerthorn", street="12 Mossgable Court"),),
        ),
        # What was typed is not what the document says, and no data source has it.
        part_of(
            "VerifiedTypedElse",
            "verified",
            contradicted,
            {"user": typed, "kyc_check": kyc("no_match"), "steps": {"kyc_check": "failed"}},
            others=(person_with(11, "Isambardine", "Wolverquist", **_flat(typed)),),
        ),
        part_of("BirthdayToday", "verified", eighteen),
        part_of(
            "UnknownExtraFields",
            "verified",
            extra,
            {"an_addition": {"of": ["next", "year"]}, "steps": {"palm_check": "success"}},
        ),
        part_of("RateLimitedOnce", "verified", extra, trouble="rate_limited"),
    )


def _flat(typed: Mapping[str, Any]) -> dict[str, str]:
    return {"born": typed["date_of_birth"], "street": typed["address"]["street"]}


def _undecided() -> Sequence[Part]:
    nobody = {
        "user": {
            "phone_number": None,
            "date_of_birth": None,
            "email_address": None,
            "name": None,
            "address": None,
            "id_number": None,
        }
    }
    waiting = without_results("active", "waiting_for_prerequisite")
    review = {"status": "pending_review", "steps": {"watchlist_screening": "pending_review"}}
    failed = document(ZENOBELLE, 1, "failed", "idv_FailedDocument")
    return (
        part_of("ActiveNotBegun", "requires_input", ZENOBELLE, {**waiting, **nobody}),
        part_of("PendingReview", "pending", THISTLEWANE, review),
        part_of(
            "FailedDocument",
            "failed",
            ZENOBELLE,
            {
                "status": "failed",
                "steps": {"documentary_verification": "failed"},
                "documentary_verification": {"status": "failed", "documents": [failed]},
            },
        ),
        part_of(
            "FailedSelfie", "failed_selfie", THISTLEWANE, {"steps": {"selfie_check": "failed"}}
        ),
        part_of("CanceledInReview", "canceled", ZENOBELLE, without_results("canceled", "canceled")),
        part_of("ExpiredUnfinished", "expired", ZENOBELLE, without_results("expired", "expired")),
        part_of("UnknownStatus", "unknown_status", ZENOBELLE, {"status": "under_observation"}),
    )


def _troubled() -> Sequence[Part]:
    return (
        part_of("WrongIdEchoed", "wrong_id", ZENOBELLE, {"id": "idv_VerifiedLicense"}),
        part_of("TruncatedJson", "truncated", ZENOBELLE, trouble="truncated"),
        part_of("FiftyMegabytes", "oversized", ZENOBELLE, trouble="oversized"),
        part_of("RateLimitedLonger", "rate_limited", ZENOBELLE, trouble="rate_limited_30"),
        part_of("ServerError", "server_error", ZENOBELLE, trouble="server_error"),
        part_of("BadGatewayPage", "bad_gateway", ZENOBELLE, trouble="bad_gateway"),
        part_of("SlowAnswer", "slow", ZENOBELLE, trouble="slow"),
        part_of("CutConnection", "cut", ZENOBELLE, trouble="cut"),
    )
