"""The decision: a table of every rule, and a property that no table can miss."""

from __future__ import annotations

import calendar
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.base.values import Reason
from countersign.core.buyers.decision import AGES_KEPT, ProvedZip, age_on
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.rules import (
    PROOFS,
    AbsentCountry,
    DocumentExpiry,
    VerificationRules,
)
from countersign.identity.model import Address, Document, FactSource, Finding, ProviderResult, Tri
from tests.support.every import every
from tests.unit.decisions import ADULT, NOW, ZIP, address, decided, document, result

S, R, O = BuyerStatus, Reason, Finding  # noqa: E741 - as short as a table needs
ANY_EXPIRY = VerificationRules(document_expiry=DocumentExpiry.IGNORED)
STRICT_EXPIRY = VerificationRules(document_expiry=DocumentExpiry.UNEXPIRED)
BOUND = VerificationRules(subject_reference_required=True)
TODAY = date(2026, 11, 20)


def test_a_result_with_nothing_wrong_verifies() -> None:
    """Otherwise every refusal below would prove nothing."""
    decision = decided()
    assert (decision.status, decision.reasons) == (S.VERIFIED, ())
    assert decision.expires_at == NOW + timedelta(days=365)
    assert decision.zips == (ProvedZip(ZIP, FactSource.DOCUMENT, country_assumed=False),)
    assert decision.facts is not None
    assert decision.facts.age_over == 30
    assert decision.facts.document_checked
    assert decision.facts.document_unexpired is Tri.PASS
    assert decision.facts.zip_sources == (FactSource.DOCUMENT,)


# The differences from the usual case, the rules if different, and the result.
RULES: list[tuple[dict[str, Any], VerificationRules | None, BuyerStatus, tuple[Reason, ...]]] = [
    # The provider's own decision.
    ({"outcome": O.PENDING}, None, S.PENDING, ()),
    ({"outcome": O.REQUIRES_INPUT}, None, S.REQUIRES_INPUT, (R.IDENTITY_REQUIRES_INPUT,)),
    ({"outcome": O.CANCELED}, None, S.REQUIRES_INPUT, (R.SESSION_CANCELED,)),
    ({"outcome": O.EXPIRED}, None, S.REQUIRES_INPUT, (R.SESSION_EXPIRED,)),
    ({"outcome": O.FAILED}, None, S.FAILED, (R.IDENTITY_FAILED,)),
    ({"outcome": O.REDACTED}, None, S.FAILED, (R.SESSION_REDACTED,)),
    ({"outcome": O.UNPROVED}, None, S.FAILED, (R.IDENTITY_NOT_PROVED,)),
    # Why it decided so comes after that.
    *(
        ({"outcome": O.FAILED, "reason": why}, None, S.FAILED, (R.IDENTITY_FAILED, why))
        for why in (
            R.DOCUMENT_UNREADABLE, R.DOCUMENT_UNSUPPORTED, R.DOCUMENT_NOT_ACCEPTED,
            R.SELFIE_MISMATCH, R.SELFIE_NOT_ACCEPTED, R.DETAILS_MISMATCH, R.CONTACT_UNVERIFIED,
            R.CONSENT_DECLINED, R.DEVICE_UNSUPPORTED, R.AGE_BELOW_MINIMUM, R.DOCUMENT_EXPIRED,
        )
    ),
    (
        {"outcome": O.REQUIRES_INPUT, "reason": R.SELFIE_MISMATCH},
        None,
        S.REQUIRES_INPUT,
        (R.IDENTITY_REQUIRES_INPUT, R.SELFIE_MISMATCH),
    ),
    # Intermediate results of a provider decide nothing.
    ({"outcome": O.PENDING, "reason": R.AGE_BELOW_MINIMUM}, None, S.PENDING, ()),
    *(
        ({"outcome": outcome}, None, S.FAILED, (R.IDENTITY_FAILED,))
        for outcome in (
            O.NOT_FOUND, O.PROVIDER_UNAVAILABLE, O.PROVIDER_REJECTED, O.INVALID_RESPONSE,
        )
    ),
    # Age.
    ({"date_of_birth": None}, None, S.FAILED, (R.AGE_UNKNOWN,)),
    ({"date_of_birth": date(1, 1, 1)}, None, S.FAILED, (R.AGE_UNKNOWN,)),
    ({"date_of_birth": date(1899, 12, 31)}, None, S.FAILED, (R.AGE_UNKNOWN,)),
    # No one is 121 years old.
    ({"date_of_birth": date(1905, 11, 20)}, None, S.FAILED, (R.AGE_UNKNOWN,)),
    ({"date_of_birth": date(1905, 11, 21)}, None, S.VERIFIED, ()),
    ({"date_of_birth": TODAY + timedelta(days=1)}, None, S.FAILED, (R.AGE_UNKNOWN,)),
    ({"date_of_birth": TODAY}, None, S.FAILED, (R.AGE_BELOW_MINIMUM,)),
    ({"date_of_birth": date(2010, 1, 1)}, None, S.FAILED, (R.AGE_BELOW_MINIMUM,)),
    ({"date_of_birth_source": FactSource.USER}, None, S.FAILED, (R.AGE_UNKNOWN,)),
    ({"date_of_birth_source": FactSource.NONE}, None, S.FAILED, (R.AGE_UNKNOWN,)),
    ({"date_of_birth_source": FactSource.DATABASE}, None, S.VERIFIED, ()),
    ({"date_of_birth": date(2006, 1, 1)}, None, S.VERIFIED, ()),
    (
        {"date_of_birth": date(2006, 1, 1)},
        VerificationRules(minimum_age=21),
        S.FAILED,
        (R.AGE_BELOW_MINIMUM,),
    ),
    # The document.
    ({"document": document(TODAY)}, None, S.VERIFIED, ()),
    ({"document": document(TODAY - timedelta(days=1))}, None, S.FAILED, (R.DOCUMENT_EXPIRED,)),
    ({"document": document(TODAY - timedelta(days=1))}, ANY_EXPIRY, S.VERIFIED, ()),
    ({"document": document(None)}, None, S.VERIFIED, ()),
    ({"document": document(None)}, STRICT_EXPIRY, S.FAILED, (R.DOCUMENT_EXPIRY_UNKNOWN,)),
    ({"document": None}, None, S.VERIFIED, ()),
    ({"document": None}, STRICT_EXPIRY, S.FAILED, (R.DOCUMENT_EXPIRY_UNKNOWN,)),
    # The address.
    ({"addresses": ()}, None, S.FAILED, (R.ZIP_UNKNOWN,)),
    ({"addresses": (address("90210"),)}, None, S.FAILED, (R.ZIP_MISMATCH,)),
    ({"addresses": (address("90210"), address())}, None, S.VERIFIED, ()),
    ({"addresses": (address(source=FactSource.USER),)}, None, S.FAILED, (R.ZIP_UNKNOWN,)),
    ({"addresses": (address(source=FactSource.NONE),)}, None, S.FAILED, (R.ZIP_UNKNOWN,)),
    (
        {"addresses": (address("90210"), address(source=FactSource.USER))},
        None,
        S.FAILED,
        (R.ZIP_MISMATCH,),
    ),
    ({"addresses": (address(source=FactSource.DATABASE),)}, None, S.VERIFIED, ()),
    ({"addresses": (address(source=FactSource.PROOF_OF_ADDRESS),)}, None, S.VERIFIED, ()),
    (
        {"addresses": (address(source=FactSource.DATABASE),)},
        VerificationRules(zip_sources=(FactSource.DOCUMENT,)),
        S.FAILED,
        (R.ZIP_UNKNOWN,),
    ),
    # An operator gains nothing by putting user-entered data into the settings by hand.
    (
        {"addresses": (address(source=FactSource.USER),)},
        VerificationRules(zip_sources=(FactSource.USER, FactSource.NONE)),
        S.FAILED,
        (R.ZIP_UNKNOWN,),
    ),
    *(
        ({"addresses": (address(country=name),)}, None, S.VERIFIED, ())
        for name in (
            "US", "us", " USA ", "United States", "United States of America", "U.S.", "U.S.A.",
            "PR", "GU", "VI", "AS", "MP", "PRI", "Puerto Rico", "Guam",
        )
    ),
    *(
        ({"addresses": (address(country=name),)}, None, S.FAILED, (R.ZIP_UNKNOWN,))
        for name in ("CA", "DE", "UK", "UM", "U", "XX", "VG")
    ),
    *(
        ({"addresses": (address(country=name),)}, None, S.FAILED, (R.ZIP_UNKNOWN,))
        for name in (None, "", "  ")
    ),
    *(
        (
            {"addresses": (address(country=name),)},
            VerificationRules(absent_country=AbsentCountry.US),
            S.VERIFIED,
            (),
        )
        for name in (None, "", "  ")
    ),
    (
        {"addresses": (address(country="CA"),)},
        VerificationRules(absent_country=AbsentCountry.US),
        S.FAILED,
        (R.ZIP_UNKNOWN,),
    ),
    # Every reason is given at once.
    (
        {"document": document(date(2020, 1, 1)), "date_of_birth": None, "addresses": ()},
        None,
        S.FAILED,
        (R.DOCUMENT_EXPIRED, R.AGE_UNKNOWN, R.ZIP_UNKNOWN),
    ),
    # The provider's mode.
    ({"live": False}, None, S.FAILED, (R.TEST_SESSION,)),
    ({"live": None}, None, S.FAILED, (R.TEST_SESSION,)),
    ({"live": None, "outcome": O.PENDING}, None, S.PENDING, ()),
    ({"live": False, "outcome": O.PENDING}, None, S.FAILED, (R.TEST_SESSION,)),
    ({"live": False, "outcome": O.FAILED}, None, S.FAILED, (R.TEST_SESSION,)),
]  # fmt: skip


@every(("different", "rules", "status", "reasons"), RULES)
def test_each_rule_decides_as_the_table_says(
    different: dict[str, Any],
    rules: VerificationRules | None,
    status: BuyerStatus,
    reasons: tuple[Reason, ...],
) -> None:
    """One thing is otherwise than in a result that verifies."""
    decision = decided(result(**different), rules)
    assert (decision.status, decision.reasons) == (status, reasons)
    # Proofs are shown for a verified buyer only.
    assert (decision.facts is not None) == (status is S.VERIFIED)
    assert bool(decision.zips) == (status is S.VERIFIED)
    assert (decision.expires_at is not None) == (status is S.VERIFIED)


def test_the_table_has_every_outcome_and_every_reason_of_ours() -> None:
    """A new outcome or reason has to be thought through here."""
    assert {row[0].get("outcome", O.VERIFIED) for row in RULES} == set(O)
    answer = {reason for row in RULES for reason in row[3]}
    elsewhere = {
        R.SESSION_NOT_BOUND, R.SESSION_UNDECIDED, R.AGE_NOT_PROVED, R.ADDRESS_NOT_PROVED,
        R.SIMULATED_ELSEWHERE,
        # Why a link is blocked: nothing was decided about the buyer.
        R.VERIFICATION_MISCONFIGURED, R.VERIFICATION_NOT_CONFIGURED,
        R.PROVIDER_SESSION_NOT_FOUND, R.REVOKED,
        # The time after a decision.
        R.VERIFICATION_WITHDRAWN,
    }  # fmt: skip
    assert answer == set(R) - elsewhere


@pytest.mark.parametrize("rules", [None, BOUND])
def test_redaction_is_seen_before_anything_else(rules: VerificationRules | None) -> None:
    """A redacted session may look like one of the year 1."""
    said = result(
        outcome=O.REDACTED,
        live=None,
        subject_reference=None,
        date_of_birth=date(1, 1, 1),
        addresses=(address("[redacted]"),),
    )
    required = rules is not None and rules.subject_reference_required
    for subject in ("buyer-1",) if required else ("buyer-1", None):
        decision = decided(said, rules, subject_reference=subject)
        assert (decision.status, decision.reasons) == (S.FAILED, (R.SESSION_REDACTED,))


# Asked for, required, named by the provider, outcome: whether the session is bound to the buyer.
BINDING = [
    ("buyer-1", False, "buyer-1", O.VERIFIED, True),
    ("buyer-1", True, "buyer-1", O.VERIFIED, True),
    ("buyer-1", False, "buyer-2", O.VERIFIED, False),
    ("buyer-1", False, None, O.VERIFIED, False),
    ("buyer-1", False, "", O.VERIFIED, False),
    ("buyer-1", False, "BUYER-1", O.VERIFIED, False),
    ("buyer-1", False, "buyer-1 ", O.VERIFIED, False),
    (None, False, "buyer-2", O.VERIFIED, True),
    (None, False, None, O.VERIFIED, True),
    (None, True, "buyer-1", O.VERIFIED, False),
    (None, True, None, O.VERIFIED, False),
    (None, True, None, O.PENDING, False),
    # Some providers tell it only with the decision.
    ("buyer-1", True, None, O.PENDING, True),
    ("buyer-1", True, None, O.REQUIRES_INPUT, True),
    ("buyer-1", True, "buyer-1", O.PENDING, True),
    ("buyer-1", False, "buyer-2", O.PENDING, False),
    ("buyer-1", False, "buyer-2", O.FAILED, False),
]


@every(("asked", "required", "named", "outcome", "bound"), BINDING)
def test_a_session_must_be_the_buyers(
    asked: str | None, required: bool, named: str | None, outcome: Finding, bound: bool
) -> None:
    """Another buyer's session verifies no one, and is not even reported as undecided."""
    rules = VerificationRules(subject_reference_required=required)
    decision = decided(
        result(subject_reference=named, outcome=outcome), rules, subject_reference=asked
    )
    assert (R.SESSION_NOT_BOUND in decision.reasons) is not bound
    if not bound:
        assert decision.reasons == (R.SESSION_NOT_BOUND,)
        assert decision.status is S.FAILED


# --- age ---------------------------------------------------------------------------------------

LOS_ANGELES = ZoneInfo("America/Los_Angeles")


@every(
    ("born", "day", "age"),
    [
        (date(2008, 11, 20), date(2026, 11, 19), 17),
        (date(2008, 11, 20), date(2026, 11, 20), 18),
        (date(2008, 11, 20), date(2026, 11, 21), 18),
        (date(2008, 12, 31), date(2026, 12, 30), 17),
        (date(2008, 12, 31), date(2027, 1, 1), 18),
        # Born on 29 February: on 1 March in a common year, on the day in a leap year.
        (date(2008, 2, 29), date(2026, 2, 28), 17),
        (date(2008, 2, 29), date(2026, 3, 1), 18),
        (date(2008, 2, 29), date(2028, 2, 28), 19),
        (date(2008, 2, 29), date(2028, 2, 29), 20),
        (date(2008, 3, 1), date(2028, 2, 29), 19),
        (date(1900, 1, 1), date(2026, 11, 20), 126),
        (date(2027, 1, 1), date(2026, 11, 20), -1),
    ],
)
def test_a_year_of_age_is_complete_on_the_birthday(born: date, day: date, age: int) -> None:
    """California Family Code § 6500: from the beginning of the day."""
    assert age_on(born, day) == age


@given(st.dates(date(1900, 1, 1), date(2030, 1, 1)), st.integers(0, 120))
def test_an_age_begins_once_and_on_a_single_day(born: date, age: int) -> None:
    """Restated by the calendar: the anniversary, or 1 March where it has no 29 February."""
    year = born.year + age
    leapless = (born.month, born.day) == (2, 29) and not calendar.isleap(year)
    first = date(year, 3, 1) if leapless else born.replace(year=year)
    assert age_on(born, first) == age
    assert age_on(born, first - timedelta(days=1)) == age - 1


BIRTHDAY_BEGINS = datetime(2026, 11, 20, 0, 0, tzinfo=LOS_ANGELES)


@pytest.mark.parametrize(
    ("zone", "now", "adult"),
    [
        ("America/Los_Angeles", BIRTHDAY_BEGINS - timedelta(milliseconds=1), False),
        ("America/Los_Angeles", BIRTHDAY_BEGINS, True),
        # Midnight in UTC: in California it is four in the afternoon of the day before.
        ("America/Los_Angeles", datetime(2026, 11, 20, 0, 0, tzinfo=UTC), False),
        ("America/Los_Angeles", datetime(2026, 11, 20, 7, 59, 59, 999_000, UTC), False),
        ("America/Los_Angeles", datetime(2026, 11, 20, 8, 0, tzinfo=UTC), True),
        ("UTC", datetime(2026, 11, 20, 0, 0, tzinfo=UTC), True),
        ("Pacific/Honolulu", datetime(2026, 11, 20, 9, 59, tzinfo=UTC), False),
        ("Pacific/Honolulu", datetime(2026, 11, 20, 10, 0, tzinfo=UTC), True),
        ("Asia/Tokyo", datetime(2026, 11, 19, 15, 0, tzinfo=UTC), True),
    ],
)
def test_no_one_comes_of_age_hours_early(zone: str, now: datetime, adult: bool) -> None:
    """The birthday begins at midnight in the account's zone, not in that of the server."""
    said = result(date_of_birth=date(2008, 11, 20))
    decision = decided(said, VerificationRules(zone=zone), now=now)
    assert decision.reasons == (() if adult else (R.AGE_BELOW_MINIMUM,))


def test_a_document_is_valid_until_its_last_day_ends_in_the_zone() -> None:
    """By the same day as the age."""
    said = result(document=document(date(2026, 11, 20)))
    ends = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
    assert decided(said, now=ends - timedelta(seconds=1)).status is S.VERIFIED
    assert decided(said, now=ends).reasons == (R.DOCUMENT_EXPIRED,)


@pytest.mark.parametrize(
    ("last", "expiry", "expires_at"),
    [
        # Through the last day of the document, in the account's zone.
        (
            date(2026, 11, 23),
            DocumentExpiry.UNEXPIRED_IF_KNOWN,
            datetime(2026, 11, 24, 8, tzinfo=UTC),
        ),
        (date(2026, 11, 23), DocumentExpiry.UNEXPIRED, datetime(2026, 11, 24, 8, tzinfo=UTC)),
        (date(2026, 11, 20), DocumentExpiry.UNEXPIRED, datetime(2026, 11, 21, 8, tzinfo=UTC)),
        (date(2026, 11, 23), DocumentExpiry.IGNORED, NOW + timedelta(days=365)),
        (date(2027, 11, 19), DocumentExpiry.UNEXPIRED, datetime(2027, 11, 20, 8, tzinfo=UTC)),
        (date(2027, 11, 20), DocumentExpiry.UNEXPIRED, NOW + timedelta(days=365)),
        (date.max, DocumentExpiry.UNEXPIRED, NOW + timedelta(days=365)),
        (None, DocumentExpiry.UNEXPIRED_IF_KNOWN, NOW + timedelta(days=365)),
    ],
)
def test_a_verification_ends_with_its_document(
    last: date | None, expiry: DocumentExpiry, expires_at: datetime
) -> None:
    """A buyer is not verified for a year by a licence that is valid for three days."""
    rules = VerificationRules(document_expiry=expiry)
    decision = decided(result(document=document(last)), rules)
    assert decision.expires_at == expires_at
    # An account with other rules can need the day, unless the validity ends before it anyway.
    needed = last is not None and last <= expires_at.date()
    assert decision.document_expires_on == (last if needed else None)


@every("minimum", [18, 21, 23, 50])
@every("years", [18, 20, 21, 24, 25, 29, 30, 49, 50, 99])
def test_only_a_few_thresholds_of_an_age_are_kept(years: int, minimum: int) -> None:
    """The highest that was reached, of the common ones and the account's own."""
    decision = decided(
        result(date_of_birth=date(2026 - years, 11, 20)), VerificationRules(minimum_age=minimum)
    )
    if years < minimum:
        assert decision.facts is None
    else:
        assert decision.facts is not None
        reached = [age for age in (*AGES_KEPT, minimum) if age <= years]
        assert decision.facts.age_over == max(reached)


# --- ZIP codes ---------------------------------------------------------------------------------

# The document's ZIP code, the destination's, and the result.
ZIPS: list[tuple[str | None, str, Reason | None]] = [
    ("94110", "94110", None),
    ("94110-1234", "94110", None),
    ("941101234", "94110", None),
    ("941100000", "94110", None),
    (" 94110 ", "94110", None),
    ("94110 1234", "94110", None),
    ("94110", "94110-1234", None),
    ("94110-9999", "94110-1234", None),
    ("02139", "02139", None),
    ("00501", "00501", None),
    ("00501", "00502", R.ZIP_MISMATCH),
    ("96201", "96201", None),  # military: the document's, and shipped to it
    ("94110", "96201", R.ZIP_MISMATCH),  # a Californian in the forces, by design
    ("09009", "09009", None),
    ("94110", "94111", R.ZIP_MISMATCH),
    ("2139", "02139", R.ZIP_UNKNOWN),
    ("941", "94110", R.ZIP_UNKNOWN),
    ("94110-", "94110", None),
    ("00000", "00000", R.ZIP_UNKNOWN),
    ("00000-0000", "00000", R.ZIP_UNKNOWN),
    ("94110-12", "94110", R.ZIP_UNKNOWN),
    ("9411012345", "94110", R.ZIP_UNKNOWN),
    ("94110abc", "94110", R.ZIP_UNKNOWN),
    ("94110\n", "94110", R.ZIP_UNKNOWN),
    ("\uff19\uff14\uff11\uff11\uff10", "94110", R.ZIP_UNKNOWN),
    ("٩٤١١٠", "94110", R.ZIP_UNKNOWN),
    ("V6B 1A1", "94110", R.ZIP_UNKNOWN),
    ("[redacted]", "94110", R.ZIP_UNKNOWN),
    ("", "94110", R.ZIP_UNKNOWN),
    (None, "94110", R.ZIP_UNKNOWN),
]


@every(("held", "shipped", "reason"), ZIPS)
def test_five_ascii_digits_are_compared_as_text(
    held: str | None, shipped: str, reason: Reason | None
) -> None:
    """A pattern and a comparison; an invalid ZIP code is unknown, not different."""
    decision = decided(result(addresses=(address(held),)), shipping_zip=shipped)
    assert decision.reasons == (() if reason is None else (reason,))


def test_every_source_that_matches_is_named_and_every_proved_zip_is_kept() -> None:
    """Of several addresses, the matching ones count; all proved ones are possible destinations."""
    decision = decided(
        result(
            addresses=(
                address("94110-0001", FactSource.PROOF_OF_ADDRESS),
                address("90210", FactSource.DOCUMENT),
                address("94110", FactSource.DATABASE),
                address("10001", FactSource.USER),
                address("10115", FactSource.DOCUMENT, "DE"),
            )
        )
    )
    assert decision.facts is not None
    assert decision.facts.zip_sources == (FactSource.DATABASE, FactSource.PROOF_OF_ADDRESS)
    assert [(one.digits, one.source) for one in decision.zips] == [
        ("94110", FactSource.PROOF_OF_ADDRESS),
        ("90210", FactSource.DOCUMENT),
        ("94110", FactSource.DATABASE),
    ]


def shown_by(last: date | None, postal_code: str = ZIP, *, unread: bool = False) -> Address:
    """An address on another document, with this last day, than the one that proves the age."""
    other = replace(document(last), expiry_unread=unread)
    return replace(address(postal_code), document=other)


@every(
    ("others", "reasons"),
    [
        ([shown_by(date(2019, 1, 1))], (R.DOCUMENT_EXPIRED,)),
        ([shown_by(None, unread=True)], (R.DOCUMENT_EXPIRY_UNKNOWN,)),
        ([shown_by(date(2019, 1, 1), "10001")], (R.ZIP_MISMATCH,)),
        ([shown_by(date(2019, 1, 1)), address("10001")], (R.DOCUMENT_EXPIRED,)),
        ([shown_by(date(2019, 1, 1)), address()], ()),
        ([shown_by(None)], ()),
        ([shown_by(date(2031, 1, 31))], ()),
    ],
)
def test_an_address_counts_under_the_expiry_rule_of_its_own_document(
    others: list[Address], reasons: tuple[Reason, ...]
) -> None:
    """A passport that is valid does not make the address of an expired licence valid."""
    said = result(addresses=tuple(others))
    assert decided(said).reasons == reasons
    elsewhere = {one.postal_code for one in others} == {"10001"}
    assert decided(said, ANY_EXPIRY).reasons == ((R.ZIP_MISMATCH,) if elsewhere else ())


def test_a_verification_ends_with_the_document_that_shows_the_address() -> None:
    """Unless another source proves the same ZIP code for longer."""
    last = NOW.date() + timedelta(days=30)
    ending = decided(result(addresses=(shown_by(last),)))
    assert ending.document_expires_on == last
    assert [one.last_day for one in ending.zips] == [last]
    lasting = result(addresses=(shown_by(last), address(source=FactSource.DATABASE)))
    assert decided(lasting).document_expires_on is None


# --- how long it counts ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decided_at", "first", "began"),
    [
        (None, None, NOW),
        (NOW - timedelta(days=40), None, NOW - timedelta(days=40)),
        (NOW - timedelta(days=40), NOW - timedelta(days=30), NOW - timedelta(days=40)),
        (None, NOW - timedelta(days=30), NOW - timedelta(days=30)),
        # A time that moves with every change at the provider does not renew it.
        (NOW - timedelta(days=1), NOW - timedelta(days=30), NOW - timedelta(days=30)),
        # A placeholder for a deleted time is no time.
        (datetime(1, 1, 1, tzinfo=UTC), None, NOW),
        # The provider's clock goes before ours.
        (NOW + timedelta(hours=1), None, NOW),
        (NOW - timedelta(days=900), None, NOW - timedelta(days=900)),
    ],
)
def test_an_old_session_does_not_get_younger(
    decided_at: datetime | None, first: datetime | None, began: datetime
) -> None:
    """Validity runs from the provider's decision, or from when we saw it first."""
    decision = decided(
        result(decided_at=decided_at),
        VerificationRules(validity_days=100),
        first_verified_at=first,
    )
    assert decision.expires_at == began + timedelta(days=100)


def test_a_decision_shows_no_personal_data() -> None:
    """Its ZIP codes are personal."""
    assert ZIP not in repr(decided())
    assert str(ADULT) not in repr(result())


# --- the property ------------------------------------------------------------------------------

_SOURCES = st.sampled_from(FactSource)
_DATES = st.one_of(
    st.sampled_from([date(1, 1, 1), ADULT, TODAY, date(2008, 11, 20), date(2008, 11, 21)]),
    st.dates(),
)
_ADDRESSES = st.builds(
    Address,
    source=_SOURCES,
    postal_code=st.one_of(
        st.none(),
        st.sampled_from([ZIP, ZIP + "-1234", ZIP + "1234", "90210", "٩٤١١٠", "[redacted]", ""]),
        st.text(max_size=10),
    ),
    country=st.one_of(st.none(), st.sampled_from(["US", "usa", "CA", "", "DE"])),
)
_DOCUMENTS = st.builds(
    Document,
    type=st.none() | st.just("passport"),
    issuing_country=st.none(),
    issuing_region=st.none(),
    expires_on=st.none() | _DATES,
)
_RESULTS = st.builds(
    ProviderResult,
    provider=st.just("stripe"),
    session_id=st.just("vs_1"),
    outcome=st.sampled_from(Finding) | st.just(Finding.VERIFIED),
    live=st.sampled_from([True, True, True, False, None]),
    subject_reference=st.sampled_from([None, "buyer-1", "buyer-2"]),
    decided_at=st.none() | st.just(NOW - timedelta(days=30)),
    date_of_birth=st.none() | _DATES,
    date_of_birth_source=_SOURCES,
    addresses=st.lists(_ADDRESSES, max_size=3).map(tuple),
    document=st.none() | _DOCUMENTS,
)
_RULES = st.builds(
    VerificationRules,
    minimum_age=st.integers(18, 99),
    zone=st.sampled_from(["America/Los_Angeles", "UTC", "Pacific/Honolulu", "Asia/Tokyo"]),
    zip_sources=st.sets(st.sampled_from(PROOFS), min_size=1).map(tuple),
    absent_country=st.sampled_from(AbsentCountry),
    document_expiry=st.sampled_from(DocumentExpiry),
    validity_days=st.integers(1, 365),
    subject_reference_required=st.booleans(),
)


def _may_verify(
    said: ProviderResult, rules: VerificationRules, subject: str | None, now: datetime
) -> bool:
    """The rules once more, as a person would check them with a calendar in hand."""
    here = now.astimezone(ZoneInfo(rules.zone)).date()
    return (
        said.outcome == "verified"
        and said.live is True
        and (subject is not None or not rules.subject_reference_required)
        and subject in {None, said.subject_reference}
        and _old_enough(said, rules, f"{here:%Y%m%d}")
        and _document_is_fine(said, rules, here)
        and any(_proves(one, rules) for one in said.addresses)
    )


def _old_enough(said: ProviderResult, rules: VerificationRules, today: str) -> bool:
    born = said.date_of_birth
    if born is None or str(said.date_of_birth_source) in {"user_entered", "none"}:
        return False
    # A person who turns N today was born at the latest on this day N years ago.
    turns = f"{born.year + rules.minimum_age:04}{born:%m%d}"
    return today[:4] <= str(born.year + 120) and f"{born:%Y%m%d}" <= today and turns <= today


def _document_is_fine(said: ProviderResult, rules: VerificationRules, today: date) -> bool:
    expires = said.document.expires_on if said.document else None
    if expires is None:
        return rules.document_expiry != "unexpired"
    return expires >= today or rules.document_expiry == "ignored"


def _proves(one: Address, rules: VerificationRules) -> bool:
    country = (one.country or "").strip().upper()
    american = country in {"US", "USA"} or (not country and rules.absent_country == "us")
    digits = (one.postal_code or "").replace(" ", "").replace("-", "")
    zip_like = digits.isascii() and digits.isdigit() and len(digits) in {5, 9}
    trusted = one.source in rules.zip_sources and str(one.source) != "user_entered"
    return american and trusted and zip_like and digits[:5] == ZIP


@given(
    _RESULTS,
    _RULES,
    st.sampled_from([None, "buyer-1"]),
    st.sampled_from([NOW, datetime(2026, 11, 20, 7, 59, tzinfo=UTC)]),
    st.none() | st.just(NOW - timedelta(days=5)),
)
def test_nothing_verifies_with_an_unknown_or_failing_condition(
    said: ProviderResult,
    rules: VerificationRules,
    subject: str | None,
    now: datetime,
    first: datetime | None,
) -> None:
    """Any result, any settings; restated without the code that decides."""
    decision = decided(said, rules, subject_reference=subject, now=now, first_verified_at=first)
    if decision.status is S.VERIFIED:
        assert _may_verify(said, rules, subject, now)
        assert decision.reasons == ()
        assert decision.facts is not None
        assert decision.facts.age_over >= rules.minimum_age
        assert set(decision.facts.zip_sources) & set(rules.zip_sources)
        assert decision.expires_at is not None
        assert decision.expires_at <= now + timedelta(days=rules.validity_days)
    else:
        assert decision.facts is None
        assert decision.status is S.PENDING or decision.reasons


@given(_RULES, st.sampled_from(["buyer-1", None]))
def test_a_result_with_nothing_wrong_verifies_by_any_rules(
    rules: VerificationRules, subject: str | None
) -> None:
    """The property above is not kept by verifying no one."""
    said = result(
        date_of_birth=date(1910, 1, 1), addresses=tuple(address(source=s) for s in PROOFS)
    )
    decision = decided(said, rules, subject_reference=subject)
    bound = subject is not None or not rules.subject_reference_required
    assert (decision.status is S.VERIFIED) == bound
