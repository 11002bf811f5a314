"""A sandbox buyer is put in any state, with the events and the answers of the real one."""

from __future__ import annotations

from datetime import timedelta

import httpx2
import pytest

from countersign.core.buyers.model import BuyerStatus
from tests.http.backstage import Operator, Vendor
from tests.http.calls import refusal, verify
from tests.sandbox.calls import (
    DAY,
    ZIP,
    advance,
    buyer,
    clear,
    events,
    move,
    ok,
    order,
    status,
    time,
)

pytestmark = pytest.mark.one_engine

# From verified to this: the event, the clearance's reason, and the reasons of verify.
STATES = {
    "pending": (None, ["buyer_not_verified"], []),
    "requires_input": ("buyer.requires_input", ["buyer_requires_input"], ["x"]),
    "failed": ("buyer.failed", ["buyer_not_verified"], ["x"]),
    "expired": ("buyer.expired", ["buyer_expired"], []),
    "revoked": ("buyer.revoked", ["buyer_revoked"], []),
}


def again(client: httpx2.Client) -> dict[str, object]:
    return ok(verify(client, provider_identity_session_id="someone", shipping_zip=ZIP))


def test_every_state_is_here() -> None:
    """Each can be set; `verified` has a test of its own."""
    assert {*STATES, "verified"} == {status.value for status in BuyerStatus}


@pytest.mark.parametrize("state", STATES)
def test_a_buyer_is_put_in_a_state(client: httpx2.Client, state: str) -> None:
    """Status, verify and clearance show it, and one event, as for the real transition."""
    event, against, reasons = STATES[state]
    cbid = buyer(client)
    asked = order(client, cbid)
    answer = ok(move(client, cbid, state))
    assert (answer["cbid"], answer["status"]) == (cbid, state)
    assert status(client, cbid)["status"] == state
    repeated = again(client)
    assert (repeated["cbid"], repeated["status"]) == (cbid, state)
    assert bool(repeated.get("reasons")) == bool(reasons)
    found = clear(client, asked)
    assert found["cleared"] is False
    assert [reason for reason in found["reasons"] if reason.startswith("buyer_")] == against
    written = events(client, "buyer.verified", *([event] if event else []))
    assert [one["type"] for one in written] == ["buyer.verified", *([event] if event else [])]
    assert {one["livemode"] for one in written} == {False}
    assert not any("triggered" in one for one in written)
    # Once more changes nothing, and makes no event.
    ok(move(client, cbid, state))
    assert len(events(client, "buyer.verified", *([event] if event else []))) == len(written)


@pytest.mark.parametrize("state", STATES)
def test_a_buyer_is_verified_from_any_state(client: httpx2.Client, state: str) -> None:
    """Then its orders are cleared."""
    cbid = buyer(client)
    ok(move(client, cbid, state))
    answer = ok(move(client, cbid, "verified"))
    assert answer["status"] == "verified"
    assert time(answer["expires_at"]) - time(answer["verified_at"]) == timedelta(days=365)
    assert clear(client, order(client, cbid))["cleared"] is True
    assert events(client, "buyer.verified")[-1]["data"] == {"cbid": cbid}


def test_given_reasons_are_returned(client: httpx2.Client) -> None:
    """They are named by verify, and by a clearance if the buyer has to act."""
    cbid = buyer(client)
    ok(move(client, cbid, "failed", reasons=["age_below_minimum", "zip_mismatch"]))
    assert again(client)["reasons"] == ["age_below_minimum", "zip_mismatch"]
    ok(move(client, cbid, "failed"))
    assert again(client)["reasons"] == ["identity_failed"]
    ok(move(client, cbid, "requires_input", reasons=["document_expired"]))
    assert again(client)["reasons"] == ["document_expired"]


def test_an_expiry_by_hand_makes_no_second_event_by_time(client: httpx2.Client) -> None:
    """One event: the sweep knows of it."""
    cbid = buyer(client)
    ok(move(client, cbid, "expired"))
    advance(client, seconds=800 * DAY)
    assert len(events(client, "buyer.expired")) == 1
    ok(move(client, cbid, "verified"))
    advance(client, seconds=365 * DAY)
    assert len(events(client, "buyer.expired")) == 2


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"status": "unknown"},
        {"status": "verified", "reasons": ["age_below_minimum"]},
        {"status": "failed", "reasons": ["no_such_reason"]},
        {"status": "failed", "reasons": []},
    ],
)
def test_an_invalid_state_is_refused(client: httpx2.Client, body: dict[str, object]) -> None:
    """And nothing changes."""
    cbid = buyer(client)
    answer = client.post("/v1/test/buyers", json={"cbid": cbid} | body)
    assert refusal(answer) == (400, "invalid_request")
    assert status(client, cbid)["status"] == "verified"


def test_only_ones_own_sandbox_buyers_are_moved(
    operator: Operator, vendor: Vendor, other: Vendor
) -> None:
    """Another's, a live one and one that never was are all not found, in the same words."""
    cbid = buyer(vendor.test)
    answers = [
        move(other.test, cbid, "revoked"),
        move(other.test, "cbid_test_00000000000000000000000000", "revoked"),
        move(other.test, "cbid_00000000000000000000000000", "revoked"),
        move(other.test, "someone", "revoked"),
    ]
    assert {refusal(answer) for answer in answers} == {(404, "not_found")}
    assert len({answer.content for answer in answers}) == 1
    assert status(vendor.test, cbid)["status"] == "verified"
    assert events(other.test) == []
    held = operator.rows("SELECT count(*) AS n FROM verifications WHERE cbid = :c", c=cbid)
    assert held[0]["n"] == 1


def test_a_repeated_request_acts_once(client: httpx2.Client) -> None:
    """The first answer again, and one event; verifying again in between is not undone."""
    cbid = buyer(client)
    body, headers = {"cbid": cbid, "status": "revoked"}, {"Idempotency-Key": "revoke"}
    first = client.post("/v1/test/buyers", json=body, headers=headers)
    ok(move(client, cbid, "verified"))
    second = client.post("/v1/test/buyers", json=body, headers=headers)
    assert second.content == first.content
    assert second.headers["idempotent-replayed"] == "true"
    assert status(client, cbid)["status"] == "verified"
    assert len(events(client, "buyer.revoked")) == 1


def test_the_record_says_that_no_session_was_judged(
    operator: Operator, vendor: Vendor, client: httpx2.Client
) -> None:
    """Its time is real, the test clock's time is next to it, and nothing is personal."""
    cbid = buyer(client)
    ahead = advance(client, seconds=10 * DAY)
    ok(move(client, cbid, "failed"))
    rows = operator.rows(
        "SELECT body FROM records WHERE account_id = :a AND type = 'verification' ORDER BY id",
        a=vendor.account_id,
    )
    judged, moved = (bytes(row["body"]) for row in rows)
    assert b'"test_helper"' not in judged
    assert b'"test_clock"' not in judged
    assert b'"simulated":true' in moved
    assert b'"test_helper":true' in moved
    assert f'"test_clock":"{ahead["now"][:10]}'.encode() in moved
    assert f'"at":"{ahead["real_time"][:10]}'.encode() in moved
    assert cbid.encode() not in moved
