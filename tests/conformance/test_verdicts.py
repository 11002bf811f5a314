"""Shops of all manners, judged while they do business: each fault fails its own check alone."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from countersign_conformance.model import Verdict
from tests.conformance.conftest import GOOD, Judged, judge_all
from tests.conformance.shop import Manners
from tests.http.backstage import Operator
from tests.support.service import Server

pytestmark = [pytest.mark.later, pytest.mark.long, pytest.mark.one_engine]

BAD = {
    "acknowledges without saying which text": ("version_sent", Manners(sends_version=False)),
    "begins with one value for all lines": (
        "lines_initialed",
        Manners(begins_with_one_value=True),
    ),
    "repeats what was refused": ("refusal_handled", Manners(repeats_what_was_refused=True)),
    "goes on after a refusal": ("refusal_handled", Manners(clears_what_was_refused=True)),
    "does not wait for Retry-After": ("unavailable_handled", Manners(hurries=True)),
    "goes on with a buyer nobody verified": (
        "unavailable_handled",
        Manners(clears_unverified=True),
    ),
    "takes a new key for each try": ("timeout_repeated", Manners(new_key_for_each_try=True)),
    "sends no key with a report": ("idempotency_keys", Manners(sends_keys=False)),
    "asks with the acknowledgment of another order": (
        "clearance_first",
        Manners(clears_with_an_old_acknowledgment=True),
    ),
    "ships before it asks": ("clearance_first", Manners(ships_before_clearance=True)),
    "ships what was not cleared": ("not_cleared_kept", Manners(ships_uncleared=True)),
    "ships what was not cleared, a while later": (
        "not_cleared_kept",
        Manners(ships_uncleared=True, ships_uncleared_after_seconds=4),
    ),
    "fails at an event that comes twice": ("webhook_duplicate", Manners(refuses_duplicates=True)),
    "acts twice on one event": ("webhook_duplicate", Manners(acts_on_duplicates=True)),
    "believes every message": ("webhook_signature", Manners(checks_signatures=False)),
    "believes old messages": ("webhook_timestamp", Manners(checks_age=False)),
}


DROPS = Manners(drops_what_was_refused=True)


@pytest.fixture(scope="module")
def judged(operator: Operator, server: Server) -> Mapping[str, Judged]:
    """The results of all of them: they were judged at the same time, independently."""
    cases = {name: manners for name, (_, manners) in BAD.items()}
    return judge_all(operator, server, cases | {"good": GOOD, "drops": DROPS})


@pytest.mark.timeout(300)
def test_an_integration_as_documented_passes_every_check(judged: Mapping[str, Judged]) -> None:
    """Nothing is left unseen, and the shop itself noticed only ordinary faults."""
    good = judged["good"]
    assert good.with_verdict(Verdict.PASSED) == {c.id for c, _ in good.report.findings}, good
    assert good.report.passed
    assert good.shop.errors == []
    assert good.shop.orders > 5


@pytest.mark.timeout(300)
@pytest.mark.parametrize("fault", BAD)
def test_a_fault_fails_its_own_check_alone(judged: Mapping[str, Judged], fault: str) -> None:
    """The report has the observation and its time."""
    check_id, _ = BAD[fault]
    case = judged[fault]
    assert case.with_verdict(Verdict.FAILED) == {check_id}, case.report
    assert not case.report.passed
    finding = case.finding(check_id)
    assert finding.seen
    assert finding.at or fault == "acts twice on one event"
    assert case.shop.errors == []


@pytest.mark.timeout(300)
def test_the_next_order_is_not_affected_by_a_dropped_one(judged: Mapping[str, Judged]) -> None:
    """It fetched the notice and was acknowledged as it should, and is another order."""
    dropped = judged["drops"]
    assert dropped.with_verdict(Verdict.NOT_SEEN) == {"refusal_handled"}, dropped.report
    assert "started again under other identifiers" in dropped.finding("refusal_handled").seen
    assert dropped.shop.orders > 5
