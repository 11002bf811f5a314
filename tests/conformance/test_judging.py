"""Verdicts from observations: the cases between a pass and a failure, one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from countersign_conformance import checks
from countersign_conformance import webhook_checks as webhooks
from countersign_conformance.catalogue import CATALOGUE
from countersign_conformance.history import History
from countersign_conformance.model import (
    ACKNOWLEDGE,
    CLEAR,
    FULFIL,
    GET_NOTICE,
    VERIFY,
    WEBHOOK,
    Check,
    Finding,
    Observation,
    Probe,
    Provocation,
    Report,
    Run,
    Verdict,
)
from countersign_conformance.webhook_checks import SENT

pytestmark = pytest.mark.long

START = datetime(2026, 11, 21, tzinfo=UTC)
Judge = Callable[[History], Finding]


def see(operation: str, **more: object) -> Observation:
    """Something that was seen; a good answer, unless the arguments say otherwise."""
    return Observation(operation=operation, **({"at": START, "status": 200} | more))  # type: ignore[arg-type]  # whichever there are


def refused(provocation: Provocation, operation: str, **more: object) -> Observation:
    """A request that met a provoked refusal."""
    return see(operation, provoked=provocation, **({"status": 409, "session": "one"} | more))


def verdict(judge: Judge, *seen: Observation, later: float = 0) -> Verdict:
    """The result some seconds later."""
    return judge(History(seen, START + timedelta(seconds=later))).verdict


REFUSED = refused(Provocation.ACKNOWLEDGMENT_REFUSED, ACKNOWLEDGE)
DOWN = refused(Provocation.PROVIDER_UNAVAILABLE, VERIFY, status=503, subject="somebody")
LOST = see(ACKNOWLEDGE, provoked=Provocation.ANSWER_WITHHELD, session="one", key="k")
KEPT = see(
    CLEAR, provoked=Provocation.ORDER_NOT_CLEARED, session="one", clearance="c", cleared=False
)
NOTICE = see(GET_NOTICE)
FRESH = see(ACKNOWLEDGE, session="one", key="another")
NAMELESS = replace(REFUSED, session=None)
FRESH_AGAIN = replace(FRESH, key="a third")
REPEATED = see(ACKNOWLEDGE, replayed=True, session="one", key="k")
IN_TIME = see(VERIFY, subject="somebody", buyer="b", at=START + timedelta(seconds=2))

CASES: Sequence[tuple[str, Judge, Sequence[Observation], Verdict]] = (
    ("given up", checks.refusal_handled, [REFUSED], Verdict.NOT_SEEN),
    ("with a fresh key", checks.refusal_handled, [REFUSED, NOTICE, FRESH], Verdict.PASSED),
    ("blindly", checks.refusal_handled, [REFUSED, FRESH], Verdict.FAILED),
    (
        "in a new session",
        checks.refusal_handled,
        [REFUSED, NOTICE, see(ACKNOWLEDGE, session="two")],
        Verdict.NOT_SEEN,
    ),
    (
        "another order goes on meanwhile",
        checks.refusal_handled,
        [REFUSED, see(CLEAR, session="two"), NOTICE, FRESH],
        Verdict.PASSED,
    ),
    (
        "dropped, by a shop that names no order",
        checks.refusal_handled,
        [NAMELESS, NOTICE, see(ACKNOWLEDGE)],
        Verdict.NOT_SEEN,
    ),
    (
        "fresh, known by its buyer",
        checks.refusal_handled,
        [replace(NAMELESS, buyer="b"), NOTICE, see(ACKNOWLEDGE, buyer="b")],
        Verdict.PASSED,
    ),
    (
        "dropped, by a shop with one session for all orders",
        checks.refusal_handled,
        [FRESH, REFUSED, NOTICE, FRESH_AGAIN],
        Verdict.NOT_SEEN,
    ),
    (
        "another notice is fetched",
        checks.refusal_handled,
        [REFUSED, see(GET_NOTICE, notice="other"), FRESH],
        Verdict.FAILED,
    ),
    (
        "the notice is fetched for another order",
        checks.refusal_handled,
        [REFUSED, NOTICE, see(ACKNOWLEDGE, session="two"), FRESH],
        Verdict.NOT_SEEN,
    ),
    (
        "the notice is fetched for another order, which goes on later",
        checks.refusal_handled,
        [NOTICE, REFUSED, see(GET_NOTICE), FRESH, see(ACKNOWLEDGE, session="two")],
        Verdict.NOT_SEEN,
    ),
    (
        "one identity session for all orders",
        checks.unavailable_handled,
        [see(VERIFY, subject="somebody"), DOWN, IN_TIME],
        Verdict.NOT_SEEN,
    ),
    (
        "verified again, and refused",
        checks.unavailable_handled,
        [DOWN, replace(IN_TIME, status=422, code="x")],
        Verdict.FAILED,
    ),
    (
        "repeated, and stored once more later",
        checks.timeout_repeated,
        [replace(LOST, body="x"), replace(REPEATED, body="x"), replace(FRESH, body="x")],
        Verdict.FAILED,
    ),
    (
        "orders without a session",
        checks.timeout_repeated,
        [replace(LOST, session=None, key=None), see(ACKNOWLEDGE)],
        Verdict.NOT_SEEN,
    ),
    (
        "an old acknowledgment, long after a refusal",
        checks.clearance_first,
        [REFUSED, FRESH, see(CLEAR, session="one", reasons=("session_mismatch",))],
        Verdict.FAILED,
    ),
    (
        "fresh, and wrong",
        checks.refusal_handled,
        [REFUSED, NOTICE, see(ACKNOWLEDGE, session="one", status=422, code="empty_initials")],
        Verdict.FAILED,
    ),
    ("never again", checks.unavailable_handled, [DOWN], Verdict.NOT_SEEN),
    ("in time", checks.unavailable_handled, [DOWN, IN_TIME], Verdict.PASSED),
    (
        "somebody known goes on meanwhile",
        checks.unavailable_handled,
        [see(VERIFY, buyer="known"), DOWN, see(CLEAR, buyer="known"), IN_TIME],
        Verdict.PASSED,
    ),
    (
        "somebody else is verified meanwhile",
        checks.unavailable_handled,
        [DOWN, see(VERIFY, subject="another", buyer="x")],
        Verdict.NOT_SEEN,
    ),
    ("no repetition", checks.timeout_repeated, [LOST], Verdict.NOT_SEEN),
    (
        "repeated",
        checks.timeout_repeated,
        [LOST, see(ACKNOWLEDGE, replayed=True, session="one", key="k")],
        Verdict.PASSED,
    ),
    ("stored twice", checks.timeout_repeated, [LOST, FRESH], Verdict.FAILED),
    (
        "another order is acknowledged meanwhile",
        checks.timeout_repeated,
        [
            LOST,
            see(ACKNOWLEDGE, session="two", key="l"),
            see(ACKNOWLEDGE, replayed=True, session="one", key="k"),
        ],
        Verdict.PASSED,
    ),
    (
        "another body under the key",
        checks.timeout_repeated,
        [LOST, see(ACKNOWLEDGE, session="one", key="k", status=422, code="idempotency_key_reused")],
        Verdict.FAILED,
    ),
    (
        "gone on without an answer",
        checks.timeout_repeated,
        [LOST, see(CLEAR, session="one")],
        Verdict.FAILED,
    ),
    ("shipped", checks.not_cleared_kept, [KEPT, see(FULFIL, clearance="c")], Verdict.FAILED),
    (
        "tried to ship",
        checks.not_cleared_kept,
        [KEPT, see(FULFIL, clearance="c", status=409)],
        Verdict.FAILED,
    ),
    (
        "asked again",
        checks.not_cleared_kept,
        [KEPT, see(CLEAR, session="one", cleared=True)],
        Verdict.PASSED,
    ),
    (
        "cleared, and never reported",
        checks.clearance_first,
        [see(CLEAR, session="one", clearance="c", cleared=True)],
        Verdict.NOT_SEEN,
    ),
    (
        "reported without a clearance",
        checks.clearance_first,
        [see(FULFIL, clearance="c", status=404, code="not_found")],
        Verdict.FAILED,
    ),
    (
        "clocks apart by half a minute",
        checks.clearance_first,
        [
            see(CLEAR, clearance="c", cleared=True),
            see(FULFIL, clearance="c", shipped_at=START - timedelta(seconds=30)),
        ],
        Verdict.PASSED,
    ),
    (
        "a key used for two bodies",
        checks.idempotency_keys,
        [see(VERIFY, key="k"), see(VERIFY, key="k", status=422, code="idempotency_key_reused")],
        Verdict.FAILED,
    ),
)


@pytest.mark.parametrize(
    ("judge", "seen", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_a_history_is_judged_as_the_page_says(
    judge: Judge, seen: Sequence[Observation], expected: Verdict
) -> None:
    """One history, one verdict."""
    assert verdict(judge, *seen, later=30) is expected


@pytest.mark.parametrize(
    ("judge", "seen"),
    [
        (checks.not_cleared_kept, [KEPT]),
        (checks.not_cleared_kept, [KEPT, see(CLEAR, session="one", cleared=True)]),
        (checks.timeout_repeated, [LOST, REPEATED]),
    ],
)
def test_a_forbidden_act_is_watched_for_before_the_check_passes(
    judge: Judge, seen: Sequence[Observation]
) -> None:
    """That an act is not done can only be observed over a time."""
    assert verdict(judge, *seen, later=29) is Verdict.NOT_SEEN
    early = judge(History(seen, START + timedelta(seconds=7)))
    assert early.due == START + timedelta(seconds=30)
    assert "watched for 7.0 s of 30 s" in early.seen
    assert verdict(judge, *seen, later=30) is Verdict.PASSED


@pytest.mark.parametrize("check", CATALOGUE, ids=lambda one: one[0].id)
def test_a_run_without_observations_passes_nothing(check: tuple[Check, Judge]) -> None:
    """And it fails nothing."""
    assert verdict(check[1]) is Verdict.NOT_SEEN


def message(probe: Probe, status: int, *meanwhile: Observation) -> list[Observation]:
    """A sent and acknowledged message, and the acts after it."""
    sent = see(WEBHOOK, probe=probe, endpoint="e", status=0, code=SENT)
    return [sent, see(WEBHOOK, probe=probe, endpoint="e", status=status), *meanwhile]


def messages(answers: dict[Probe, int], meanwhile: Sequence[Observation] = ()) -> list[Observation]:
    """All messages, answered as a good receiver does, but for these."""
    good = dict.fromkeys(Probe, 400)
    good |= dict.fromkeys((Probe.GENUINE, Probe.AGAIN, Probe.GENUINE_AFTER), 204)
    return [
        one
        for probe, status in (good | answers).items()
        for one in message(
            probe, status, *(meanwhile if probe in {Probe.GENUINE, Probe.AGAIN} else ())
        )
    ]


ALL = dict.fromkeys(Probe, 401)


@pytest.mark.parametrize(
    ("answers", "twice", "signature", "age"),
    [
        ({}, "passed", "passed", "passed"),
        ({Probe.UNSIGNED: 200}, "passed", "failed", "passed"),
        ({Probe.ALTERED: 500}, "passed", "failed", "passed"),
        ({Probe.FOREIGN_KEY: 302}, "passed", "failed", "passed"),
        ({Probe.OLD: 202}, "passed", "passed", "failed"),
        ({Probe.AGAIN: 409}, "failed", "passed", "passed"),
        ({Probe.GENUINE_AFTER: 0}, "failed", "not_seen", "not_seen"),
        ({Probe.GENUINE_AFTER: 429, Probe.OLD: 200}, "failed", "not_seen", "failed"),
        ({Probe.OLD: 429}, "passed", "passed", "not_seen"),
        (ALL, "failed", "not_seen", "not_seen"),
    ],
)
def test_endpoints_are_judged_by_their_answers(
    answers: dict[Probe, int], twice: str, signature: str, age: str
) -> None:
    """An endpoint that refuses everything has not checked a signature."""
    seen = messages(answers)
    assert verdict(webhooks.duplicate_accepted, *seen) == twice
    assert verdict(webhooks.signature_checked, *seen) == signature
    assert verdict(webhooks.age_checked, *seen) == age


def test_the_endpoint_that_answered_wrongly_is_named() -> None:
    """An account may have several, one of which is forgotten."""
    good = messages({})
    bad = [replace(one, endpoint="whe_forgotten") for one in messages(ALL)]
    found = webhooks.duplicate_accepted(History([*good, *bad], START))
    assert found.verdict is Verdict.FAILED
    assert "from whe_forgotten" in found.seen


def test_an_act_repeated_after_the_second_message_is_its_reaction() -> None:
    """Acts that the vendor does anyway, or with the stored response, were not."""
    act = see(CLEAR, body="b")
    assert verdict(webhooks.duplicate_accepted, *messages({}, [act])) is Verdict.FAILED
    assert verdict(webhooks.duplicate_accepted, act, *messages({}, [act])) is Verdict.PASSED
    later = see(CLEAR, body="b", at=START + timedelta(seconds=60))
    assert verdict(webhooks.duplicate_accepted, *messages({}, [act]), later) is Verdict.PASSED
    replayed = see(CLEAR, body="b", replayed=True)
    assert verdict(webhooks.duplicate_accepted, *messages({}, [replayed])) is Verdict.PASSED


@pytest.mark.parametrize(
    ("verdicts", "passed"),
    [
        ([Verdict.PASSED, Verdict.NOT_SEEN], True),
        ([Verdict.PASSED, Verdict.FAILED], False),
        ([Verdict.NOT_SEEN, Verdict.NOT_SEEN], False),
    ],
)
def test_a_run_passes_if_at_least_one_check_was_judged_and_all_judged_ones_passed(
    verdicts: Sequence[Verdict], passed: bool
) -> None:
    """The exit status of the command says the same."""
    check, _ = CATALOGUE[0]
    run = Run(
        id="cfr",
        account_id="acct",
        started_at=START,
        ends_at=START,
        active_until=START,
        hold=timedelta(0),
    )
    findings = tuple((check, Finding(verdict=one, seen="")) for one in verdicts)
    report = Report(run=run, ended_at=START, observed=0, complete=True, findings=findings)
    assert report.passed is passed
