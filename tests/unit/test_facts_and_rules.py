"""Proved facts, and the further requirements of other rules."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.base.values import Reason
from countersign.core.buyers.rules import (
    PROOFS,
    AbsentCountry,
    DocumentExpiry,
    Facts,
    VerificationRules,
    shortfalls,
    weakened,
)
from countersign.identity.model import FactSource, Tri
from tests.support.every import every
from tests.unit.decisions import decided, result

EXPIRY = DocumentExpiry


def facts(
    age_over: int = 30,
    unexpired: Tri = Tri.PASS,
    zip_sources: tuple[FactSource, ...] = (FactSource.DOCUMENT,),
) -> Facts:
    return Facts(
        age_over=age_over,
        document_checked=True,
        document_unexpired=unexpired,
        zip_sources=zip_sources,
    )


@every(
    ("proved", "rules", "missing"),
    [
        (facts(), VerificationRules(), ()),
        (facts(18), VerificationRules(), ()),
        (facts(18), VerificationRules(minimum_age=21), (Reason.AGE_NOT_PROVED,)),
        (facts(21), VerificationRules(minimum_age=21), ()),
        # Known to be over 21 only: not enough for an account that requires 23.
        (facts(21), VerificationRules(minimum_age=23), (Reason.AGE_NOT_PROVED,)),
        (
            facts(zip_sources=(FactSource.DATABASE,)),
            VerificationRules(zip_sources=(FactSource.DOCUMENT,)),
            (Reason.ADDRESS_NOT_PROVED,),
        ),
        (
            facts(zip_sources=(FactSource.DATABASE, FactSource.DOCUMENT)),
            VerificationRules(zip_sources=(FactSource.DOCUMENT,)),
            (),
        ),
        (facts(zip_sources=()), VerificationRules(), (Reason.ADDRESS_NOT_PROVED,)),
        (facts(unexpired=Tri.UNKNOWN), VerificationRules(), ()),
        (facts(unexpired=Tri.FAIL), VerificationRules(), (Reason.DOCUMENT_EXPIRED,)),
        (facts(unexpired=Tri.FAIL), VerificationRules(document_expiry=EXPIRY.IGNORED), ()),
        (
            facts(unexpired=Tri.UNKNOWN),
            VerificationRules(document_expiry=EXPIRY.UNEXPIRED),
            (Reason.DOCUMENT_EXPIRY_UNKNOWN,),
        ),
        (
            facts(18, Tri.FAIL, ()),
            VerificationRules(minimum_age=21),
            (Reason.DOCUMENT_EXPIRED, Reason.AGE_NOT_PROVED, Reason.ADDRESS_NOT_PROVED),
        ),
    ],
)
def test_rules_report_every_unproved_requirement(
    proved: Facts, rules: VerificationRules, missing: tuple[Reason, ...]
) -> None:
    """Unknown is never a pass, and all reasons come at once."""
    assert shortfalls(proved, rules) == missing


_RULES = st.builds(
    VerificationRules,
    minimum_age=st.integers(18, 40),
    zip_sources=st.sets(st.sampled_from(PROOFS), min_size=1).map(tuple),
    document_expiry=st.sampled_from(DocumentExpiry),
)


@given(_RULES)
def test_a_buyer_verified_by_some_rules_satisfies_the_same_rules(rules: VerificationRules) -> None:
    """Else an account would not believe its own verification."""
    decision = decided(result(), rules)
    assert decision.facts is None or shortfalls(decision.facts, rules) == ()


@given(_RULES, _RULES)
def test_the_floor_is_never_gone_below(own: VerificationRules, floor: VerificationRules) -> None:
    """Accounts may only tighten; settings without a floor stay as they are."""
    both = own.at_least(floor)
    assert both.minimum_age >= floor.minimum_age
    assert both.minimum_age >= own.minimum_age
    assert both.validity_days <= min(own.validity_days, floor.validity_days)
    assert (both.zip_sources, both.document_expiry) == (own.zip_sources, own.document_expiry)


def test_the_default_rules_are_the_strict_ones() -> None:
    """Unset rules must not let anybody through."""
    plain = VerificationRules()
    assert plain.minimum_age == 18
    assert plain.zone == "America/Los_Angeles"
    assert plain.absent_country is AbsentCountry.UNKNOWN
    assert FactSource.USER not in plain.zip_sources
    assert plain.validity_days <= 365


def test_a_day_begins_by_the_time_zone() -> None:
    """The same moment, two calendars."""
    moment = datetime(2026, 11, 20, 7, 30, tzinfo=UTC)
    assert VerificationRules().day_of(moment).isoformat() == "2026-11-19"
    assert VerificationRules(zone="UTC").day_of(moment).isoformat() == "2026-11-20"


@given(_RULES)
def test_rules_are_read_back_as_they_were_stored(rules: VerificationRules) -> None:
    """They are stored as JSON; an unknown member is refused, not dropped."""
    stored = msgspec.json.encode(rules)
    assert msgspec.json.decode(stored, type=VerificationRules) == rules
    later = stored[:-1] + b',"minimum_height":180}'
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(later, type=VerificationRules)


@pytest.mark.parametrize("unexpired", Tri)
def test_facts_hold_only_proved_data(unexpired: Tri) -> None:
    """A birthday or a ZIP code among them would be kept in the clear."""
    stored = msgspec.json.decode(msgspec.json.encode(facts(unexpired=unexpired)))
    assert set(stored) == {
        "age_over",
        "country_assumed",
        "document_checked",
        "document_unexpired",
        "expiry_unread",
        "zip_sources",
    }


@every(
    ("change", "weaker"),
    [
        ({"minimum_age": 20}, True),
        ({"minimum_age": 22}, False),
        ({"zone": "America/Chicago"}, True),
        ({"zip_sources": (FactSource.DOCUMENT, FactSource.DATABASE)}, True),
        ({"zip_sources": (FactSource.DATABASE,)}, True),
        ({"absent_country": AbsentCountry.US}, True),
        ({"document_expiry": DocumentExpiry.IGNORED}, True),
        ({"document_expiry": DocumentExpiry.UNEXPIRED}, False),
        ({"validity_days": 101}, True),
        ({"validity_days": 99}, False),
        ({"subject_reference_required": False}, True),
        ({}, False),
    ],
)
def test_a_rule_that_accepts_more_people_counts_as_weaker(
    change: dict[str, Any],
    weaker: bool,
) -> None:
    """And the name of the rule is given, for the operator to confirm."""
    old = VerificationRules(
        minimum_age=21,
        zip_sources=(FactSource.DOCUMENT,),
        validity_days=100,
        subject_reference_required=True,
    )
    assert weakened(old, msgspec.structs.replace(old, **change)) == (
        tuple(change) if weaker else ()
    )
