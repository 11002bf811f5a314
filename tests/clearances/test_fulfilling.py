"""Reports of fulfilment add up, step by step until the delivery."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import httpx2
import pytest

from countersign.core.clearances.fulfil import REPORTS_MAX
from tests.clearances.checkout import ADULT, CLEARANCES, Checkout
from tests.http.calls import message, refusal
from tests.support import postgres

SHIPPED = {
    "carrier": "UPS",
    "tracking_number": "1Z999AA10123456784",
    "shipped_at": "2099-11-21T16:05:00Z",
}


def _cleared_with_adult_signature(shop: Checkout) -> str:
    notice_id, _ = shop.notice(ADULT)
    answer = shop.decision(shop.initialed(notice_id), shop.buyer())
    assert answer["cleared"], answer
    clearance_id: str = answer["clearance_id"]
    return clearance_id


def _events(shop: Checkout, type_: str) -> list[str]:
    postgres.settle()
    answer = shop.client.get("/v1/events", params={"type": type_, "limit": "100"})
    return [event["data"]["clearance_id"] for event in answer.json()["data"]]


def test_an_order_without_other_obligations_is_closed_by_its_first_report(
    checkout: Checkout,
) -> None:
    clearance_id = checkout.cleared()["clearance_id"]
    answer = checkout.fulfil(clearance_id, **SHIPPED)
    assert answer.status_code == 200
    receipt = answer.json()
    assert list(receipt) == ["fulfilment_id", "clearance_id", "closed_at"]
    assert re.fullmatch(r"ful_[0-9a-hjkmnp-tv-z]{26}", receipt["fulfilment_id"])
    assert receipt["clearance_id"] == clearance_id
    back = checkout.back(clearance_id)
    assert back["closed_at"] == receipt["closed_at"] is not None
    (report,) = back["fulfilments"]
    assert {name: report[name] for name in SHIPPED} == SHIPPED
    assert report["fulfilment_id"] == receipt["fulfilment_id"]
    assert (report["delivered_at"], report["adult_signature_obtained"]) == (None, None)


def test_an_order_that_asks_for_an_adult_signature_is_open_until_one_was_obtained(
    checkout: Checkout,
) -> None:
    """Shipped, then turned away, then signed for: three reports, and the last one closes."""
    clearance_id = _cleared_with_adult_signature(checkout)
    assert checkout.fulfil(clearance_id, **SHIPPED).json()["closed_at"] is None
    turned_away = checkout.fulfil(clearance_id, adult_signature_obtained=False)
    assert turned_away.json()["closed_at"] is None
    assert checkout.back(clearance_id)["closed_at"] is None
    assert _events(checkout, "clearance.closed") == []
    delivered = {"delivered_at": "2099-11-22T16:05:00Z", "adult_signature_obtained": True}
    assert checkout.fulfil(clearance_id, **delivered).json()["closed_at"] is not None
    back = checkout.back(clearance_id)
    assert [r["adult_signature_obtained"] for r in back["fulfilments"]] == [None, False, True]
    assert back["closed_at"] is not None


def test_each_decision_and_the_closing_of_an_order_are_events(checkout: Checkout) -> None:
    refused = checkout.decision("nonsense", "cbid_nobody")["clearance_id"]
    clearance_id = checkout.cleared()["clearance_id"]
    checkout.fulfil(clearance_id, **SHIPPED)
    assert _events(checkout, "clearance.created") == [refused, clearance_id]
    assert _events(checkout, "clearance.closed") == [clearance_id]


def test_what_is_asked_after_the_shipment_is_answered_by_what_was_shipped(
    checkout: Checkout,
) -> None:
    """With its clearance, whatever became of the buyer; no token lets another parcel leave."""
    ack_id, cbid = checkout.initialed(), checkout.buyer()
    first = checkout.decision(ack_id, cbid)
    assert first["already_shipped"] is False
    checkout.fulfil(first["clearance_id"], **SHIPPED)
    checkout.server.deployment.run("buyers", "revoke", cbid, "--reason", "a test", "--yes")
    again = first | {"token": None, "already_shipped": True}
    assert checkout.decision(ack_id, cbid) == again
    found = checkout.client.get(CLEARANCES, params={"ack_id": ack_id}).json()["data"]
    assert [one["clearance_id"] for one in found] == [first["clearance_id"]]


def test_another_order_than_the_shipped_one_is_refused(checkout: Checkout) -> None:
    """Another class, place, buyer or reference: none of it was shipped."""
    ack_id, cbid = checkout.initialed(), checkout.buyer()
    shipped = checkout.decision(ack_id, cbid, product_class="accessory", order_reference="1001")
    checkout.fulfil(shipped["clearance_id"], **SHIPPED)
    used = ["acknowledgment_already_used"]
    for more in ({"product_class": "manufacturing_machine"}, {"shipping_zip": "94110-1234"}):
        asked = {"product_class": "accessory", "order_reference": "1001"} | more
        found = checkout.decision(ack_id, cbid, **asked)
        assert found["reasons"] == ([] if "shipping_zip" in more else used)
    assert checkout.decision(ack_id, cbid, shipping_zip="10001")["reasons"][:1] == used
    other = checkout.decision(ack_id, checkout.buyer(), product_class="accessory")
    assert other["reasons"] == ["buyer_mismatch"]
    copied = checkout.ask(ack_id, cbid, product_class="accessory", order_reference="1002")
    assert refusal(copied) == (409, "order_reference_mismatch")


def test_a_report_that_names_another_order_is_refused(checkout: Checkout) -> None:
    """One that names this one, or none, is taken; so is any of a clearance without a name."""
    ack_id, cbid = checkout.initialed(), checkout.buyer()
    clearance_id = checkout.decision(ack_id, cbid, order_reference="1001")["clearance_id"]
    refused = checkout.fulfil(clearance_id, order_reference="1002", **SHIPPED)
    assert refusal(refused) == (409, "order_reference_mismatch")
    assert checkout.back(clearance_id)["fulfilments"] == []
    assert checkout.fulfil(clearance_id, order_reference="1001", **SHIPPED).status_code == 200
    assert checkout.fulfil(clearance_id, **SHIPPED).status_code == 200
    unnamed = checkout.cleared()["clearance_id"]
    assert checkout.fulfil(unnamed, order_reference="7", **SHIPPED).status_code == 200


STEPS: tuple[dict[str, object], ...] = (
    {"carrier": "UPS", "tracking_number": "1Z999AA10123456784"},
    {"shipped_at": "2099-11-21T16:05:00Z"},
    {"delivered_at": "2099-11-22T16:05:00Z"},
    {"adult_signature_obtained": False},
    {"adult_signature_obtained": True},
)


def test_a_closed_order_takes_each_step_until_its_delivery(checkout: Checkout) -> None:
    """Its dossier can show a delivery that happens days after the first report."""
    clearance_id = checkout.cleared()["clearance_id"]
    receipts = [checkout.fulfil(clearance_id, **step) for step in STEPS]
    assert {answer.status_code for answer in receipts} == {200}
    back = checkout.back(clearance_id)
    assert {answer.json()["closed_at"] for answer in receipts} == {back["closed_at"]}
    names = dict.fromkeys(name for step in STEPS for name in step)
    found = [{name: report[name] for name in names} for report in back["fulfilments"]]
    assert found == [names | step for step in STEPS]
    assert _events(checkout, "clearance.closed") == [clearance_id]


@pytest.mark.parametrize(
    ("step", "other"),
    [
        ({"carrier": "UPS"}, {"carrier": "USPS"}),
        ({"tracking_number": "1Z999"}, {"tracking_number": "1Z998"}),
        ({"shipped_at": "2099-11-21T16:05:00Z"}, {"shipped_at": "2099-11-21T16:05:01Z"}),
        ({"delivered_at": "2099-11-22T16:05:00Z"}, {"delivered_at": "2099-11-23T16:05:00Z"}),
        ({"adult_signature_obtained": True}, {"adult_signature_obtained": False}),
    ],
)
def test_a_report_that_contradicts_another_is_refused(
    checkout: Checkout, step: dict[str, object], other: dict[str, object]
) -> None:
    """Also if it states something new as well; it makes no difference that the order is closed."""
    for clearance_id in (
        checkout.cleared()["clearance_id"],
        _cleared_with_adult_signature(checkout),
    ):
        first = checkout.fulfil(clearance_id, **step).json()["fulfilment_id"]
        answer = checkout.fulfil(clearance_id, **SHIPPED | {"carrier": "UPS"} | other)
        assert refusal(answer) == (409, "fulfilment_contradicted")
        assert first in message(answer)
        assert next(iter(other)) in message(answer)
        assert len(checkout.back(clearance_id)["fulfilments"]) == 1


def test_a_repeated_report_gets_the_earlier_receipt(
    checkout: Checkout,
) -> None:
    """A vendor that lost a response can ask without a key; the zone of a time is no matter."""
    clearance_id = checkout.cleared()["clearance_id"]
    first = checkout.fulfil(clearance_id, **SHIPPED)
    second = checkout.fulfil(clearance_id, delivered_at="2099-11-22T16:05:00Z", carrier="UPS")
    here = SHIPPED | {"shipped_at": "2099-11-21T08:05:00-08:00"}
    assert checkout.fulfil(clearance_id, **here).json() == first.json()
    arrived = checkout.fulfil(clearance_id, delivered_at="2099-11-22T16:05:00Z")
    assert arrived.json() == second.json()
    assert len(checkout.back(clearance_id)["fulfilments"]) == 2


def test_a_report_does_not_bring_erased_personal_data_back(checkout: Checkout) -> None:
    """The other steps can still be reported."""
    ack_id, cbid = checkout.initialed(), checkout.buyer()
    clearance_id = checkout.decision(ack_id, cbid)["clearance_id"]
    checkout.fulfil(clearance_id, **SHIPPED)
    checkout.server.deployment.run("erase", ack_id, "--yes")
    assert refusal(checkout.fulfil(clearance_id, **SHIPPED)) == (410, "erased")
    delivered = checkout.fulfil(clearance_id, delivered_at="2099-11-22T16:05:00Z")
    assert delivered.status_code == 200
    assert [one["carrier"] for one in checkout.back(clearance_id)["fulfilments"]] == [None, None]


def test_an_uncleared_order_accepts_no_report(checkout: Checkout) -> None:
    refused = checkout.decision("nonsense", "cbid_nobody")["clearance_id"]
    answer = checkout.fulfil(refused, **SHIPPED)
    assert refusal(answer) == (409, "clearance_not_granted")


def test_another_account_cannot_report(checkout: Checkout, other: Checkout) -> None:
    clearance_id = checkout.cleared()["clearance_id"]
    assert refusal(other.fulfil(clearance_id, **SHIPPED)) == (404, "not_found")
    live = checkout.vendor.live.post(f"{CLEARANCES}/{clearance_id}/fulfilment", json=SHIPPED)
    assert refusal(live) == (404, "not_found")
    assert checkout.back(clearance_id)["fulfilments"] == []


@pytest.mark.parametrize(
    ("stated", "named"),
    [
        ({}, "carrier"),
        ({"carrier": None}, "carrier"),
        ({"carrier": ""}, "$.carrier"),
        ({"tracking_number": "x" * 256}, "$.tracking_number"),
        ({"shipped_at": "2099-11-21"}, "$.shipped_at"),
        ({"shipped_at": "2099-11-21T16:05:00"}, "$.shipped_at"),
        ({"delivered_at": "0001-01-01T00:00:00+23:59"}, "$.delivered_at"),
        ({"adult_signature_obtained": "yes"}, "$.adult_signature_obtained"),
        ({"signature": True}, "signature"),
    ],
)
def test_a_report_that_cannot_be_read_is_refused_by_the_field(
    checkout: Checkout, stated: dict[str, object], named: str
) -> None:
    answer = checkout.fulfil(checkout.cleared()["clearance_id"], **stated)
    assert refusal(answer) == (400, "invalid_request")
    assert named in message(answer)


def test_times_are_kept_in_utc(checkout: Checkout) -> None:
    clearance_id = checkout.cleared()["clearance_id"]
    checkout.fulfil(clearance_id, shipped_at="2099-11-21T16:05:00-08:00")
    (report,) = checkout.back(clearance_id)["fulfilments"]
    assert report["shipped_at"] == "2099-11-22T00:05:00Z"


def test_a_repeated_report_is_answered_once_more_and_written_once(checkout: Checkout) -> None:
    """Including the report that closed the order."""
    clearance_id = checkout.cleared()["clearance_id"]
    path, key = f"{CLEARANCES}/{clearance_id}/fulfilment", {"Idempotency-Key": "reported-once"}
    first = checkout.client.post(path, json={"carrier": "UPS"}, headers=key)
    again = checkout.client.post(path, json={"carrier": "UPS"}, headers=key)
    assert (again.status_code, again.content) == (200, first.content)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert len(checkout.back(clearance_id)["fulfilments"]) == 1
    other = checkout.client.post(path, json={"carrier": "USPS"}, headers=key)
    assert refusal(other) == (422, "idempotency_key_reused")


def _now(checkout: Checkout, **earlier: float) -> str:
    """When the order was cleared, or so much earlier."""
    (event,) = checkout.client.get("/v1/clearances", params={"limit": "1"}).json()["data"]
    at = datetime.fromisoformat(event["created_at"]) - timedelta(**earlier)
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def _advance_two_days(checkout: Checkout) -> None:
    """By the clock of its sandbox."""
    moved = checkout.client.post("/v1/test/clock/advance", json={"seconds": 2 * 24 * 3600})
    assert moved.status_code == 200, moved.text


def test_an_erasure_takes_the_kept_response_to_a_report(checkout: Checkout) -> None:
    """Its request could be guessed from it: what is repeated is a new request."""
    ack_id = checkout.initialed()
    clearance_id = checkout.decision(ack_id, checkout.buyer())["clearance_id"]
    path, answers = f"{CLEARANCES}/{clearance_id}/fulfilment", list[httpx2.Response]()
    reports = [({"carrier": "UPS"}, "carrier"), ({"adult_signature_obtained": True}, "signature")]
    for _ in range(2):
        for report, key in reports:
            sent = checkout.client.post(path, json=report, headers={"Idempotency-Key": key})
            answers.append(sent)
        checkout.server.deployment.run("erase", ack_id, "--yes", check=False)
    assert [answer.status_code for answer in answers[:2]] == [200, 200]
    assert refusal(answers[2]) == (410, "erased")
    assert answers[3].json() == answers[1].json()
    assert all("Idempotent-Replayed" not in answer.headers for answer in answers)


@pytest.mark.parametrize(
    ("known", "report"),
    [
        ({}, {"shipped_at": "2025-01-01T00:00:00Z"}),
        ({}, {"delivered_at": "2024-01-01T00:00:00Z"}),
        (SHIPPED, {"delivered_at": "2099-11-21T15:59:00Z", "carrier": "UPS"}),
        ({"delivered_at": "2099-11-21T15:59:00Z"}, SHIPPED),
        ({}, {"delivered_at": "2099-11-21T15:59:00Z"}),
        ({"carrier": "UPS"}, {"shipped_at": "2099-11-21T15:59:00Z"}),
    ],
)
@pytest.mark.both_engines
def test_a_report_against_the_order_of_events_has_to_be_confirmed(
    checkout: Checkout, known: dict[str, object], report: dict[str, object]
) -> None:
    """Before the decision, delivered before shipped, or in the future: then it is kept."""
    clearance_id = checkout.cleared()["clearance_id"]
    if known:
        assert checkout.fulfil(clearance_id, **known).status_code == 200
    for asked in (None, False):
        refused = checkout.fulfil(clearance_id, **report | {"confirm_order_of_events": asked})
        assert refusal(refused) == (409, "fulfilment_contradicted")
        assert "confirm_order_of_events" in message(refused)
    assert len(checkout.back(clearance_id)["fulfilments"]) == len([known] if known else [])
    confirmed = report | {"confirm_order_of_events": True}
    receipt = checkout.fulfil(clearance_id, **confirmed)
    assert receipt.status_code == 200
    # Known facts are not asked again, and neither are their consequences.
    for again in (confirmed, report):
        assert checkout.fulfil(clearance_id, **again).json() == receipt.json()
    assert checkout.fulfil(clearance_id, tracking_number="1Z999AA10123456784").status_code == 200
    kept = checkout.back(clearance_id)["fulfilments"]
    said = [one.get("order_of_events_confirmed") for one in kept]
    assert said.count(True) == 1 + any(str(at).startswith("2099") for at in known.values())
    assert set(said) <= {True, None}


def test_a_delivery_without_a_required_signature_has_to_be_confirmed(checkout: Checkout) -> None:
    """Where no signature was reported yet, one can still follow; where none is asked for, none."""
    checkout.cleared()
    delivered = {"delivered_at": _now(checkout, minutes=-2)}
    for known, report in (
        (delivered, {"adult_signature_obtained": False}),
        ({"adult_signature_obtained": False}, delivered),
    ):
        clearance_id = _cleared_with_adult_signature(checkout)
        assert checkout.fulfil(clearance_id, **known).status_code == 200
        refused = checkout.fulfil(clearance_id, **report)
        assert refusal(refused) == (409, "fulfilment_contradicted")
        assert "the signature of an adult" in message(refused)
        confirmed = report | {"confirm_order_of_events": True}
        assert checkout.fulfil(clearance_id, **confirmed).status_code == 200
        assert checkout.fulfil(clearance_id, adult_signature_obtained=True).status_code == 200
    unasked = checkout.cleared()["clearance_id"]
    both = delivered | {"adult_signature_obtained": False}
    assert checkout.fulfil(unasked, **both).status_code == 200


@pytest.mark.both_engines
def test_a_wrong_report_is_corrected_by_a_new_one_that_names_it(checkout: Checkout) -> None:
    """Both are kept; nothing that the wrong one stated counts, and a retry is no second one."""
    clearance_id = checkout.cleared()["clearance_id"]
    early = {"shipped_at": "2024-01-01T00:00:00Z", "confirm_order_of_events": True}
    wrong = checkout.fulfil(clearance_id, **early).json()["fulfilment_id"]
    assert refusal(checkout.fulfil(clearance_id, **SHIPPED)) == (409, "fulfilment_contradicted")
    corrected = SHIPPED | {"corrects": wrong}
    receipt = checkout.fulfil(clearance_id, **corrected)
    assert receipt.status_code == 200
    assert checkout.fulfil(clearance_id, **corrected).json() == receipt.json()
    first, second = checkout.back(clearance_id)["fulfilments"]
    assert first["order_of_events_confirmed"]
    assert (second["corrects"], "corrects" in first) == (wrong, False)
    again = checkout.fulfil(clearance_id, carrier="USPS", corrects=wrong)
    assert refusal(again) == (409, "fulfilment_contradicted")
    delivered = checkout.fulfil(clearance_id, delivered_at="2099-11-22T16:05:00Z")
    assert delivered.status_code == 200


def test_a_report_that_should_not_have_been_is_corrected_by_an_empty_one(
    checkout: Checkout,
) -> None:
    """The order is open again. A report under another clearance is not found here."""
    clearance_id = checkout.cleared()["clearance_id"]
    wrong = checkout.fulfil(clearance_id, delivered_at="2099-11-22T16:05:00Z").json()
    assert checkout.back(clearance_id)["closed_at"] == wrong["closed_at"]
    nothing = checkout.fulfil(clearance_id, corrects=wrong["fulfilment_id"])
    assert (nothing.status_code, nothing.json()["closed_at"]) == (200, None)
    assert checkout.back(clearance_id)["closed_at"] is None
    again = checkout.fulfil(clearance_id, delivered_at="2099-11-23T16:05:00Z").json()
    assert checkout.back(clearance_id)["closed_at"] == again["closed_at"] is not None
    other = checkout.cleared()["clearance_id"]
    foreign = checkout.fulfil(other, carrier="UPS", corrects=wrong["fulfilment_id"])
    assert refusal(foreign) == (409, "fulfilment_contradicted")


@pytest.mark.both_engines
def test_an_order_whose_shipment_was_a_mistake_can_be_cleared_again(checkout: Checkout) -> None:
    named = {"session_id": "cart-never-shipped"}
    ack_id, cbid = checkout.initialed(**named), checkout.buyer()
    first = checkout.decision(ack_id, cbid, **named)
    wrong = checkout.fulfil(first["clearance_id"], carrier="UPS").json()["fulfilment_id"]
    assert checkout.decision(ack_id, cbid, **named)["already_shipped"]
    assert checkout.fulfil(first["clearance_id"], corrects=wrong).status_code == 200
    again = checkout.decision(ack_id, cbid, **named)
    assert not again.get("already_shipped")
    assert again["token"] is not None


def test_an_erased_shipment_still_closes_its_order(checkout: Checkout) -> None:
    """Also where only its carrier was reported: a later payment opens nothing."""
    ack_id, cbid = checkout.initialed(session_id="cart-erased"), checkout.buyer()
    cleared = checkout.decision(ack_id, cbid, session_id="cart-erased")
    closed_at = checkout.fulfil(cleared["clearance_id"], carrier="UPS").json()["closed_at"]
    checkout.server.deployment.run("erase", ack_id, "--yes")
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    paid = checkout.fulfil(cleared["clearance_id"], paid_at=now)
    assert (paid.status_code, paid.json()["closed_at"]) == (200, closed_at)


def test_a_report_is_corrected_under_its_own_clearance(checkout: Checkout) -> None:
    """So the dossier that has the one has the other."""
    named = {"session_id": "cart-of-two-clearances"}
    ack_id, cbid = checkout.initialed(**named), checkout.buyer()
    first = checkout.decision(ack_id, cbid, **named)["clearance_id"]
    second = checkout.decision(ack_id, cbid, **named, order_reference="A-77")["clearance_id"]
    assert second != first
    wrong = checkout.fulfil(first, carrier="UPS").json()["fulfilment_id"]
    foreign = checkout.fulfil(second, carrier="USPS", corrects=wrong)
    assert refusal(foreign) == (409, "fulfilment_contradicted")
    assert checkout.fulfil(first, carrier="USPS", corrects=wrong).status_code == 200


def test_no_more_reports_are_taken_than_a_dossier_has(checkout: Checkout) -> None:
    """Else corrections would push the first reports out of it."""
    clearance_id = checkout.cleared()["clearance_id"]
    newest = checkout.fulfil(clearance_id, carrier="UPS 0").json()["fulfilment_id"]
    for number in range(1, REPORTS_MAX):
        answer = checkout.fulfil(clearance_id, carrier=f"UPS {number}", corrects=newest)
        newest = answer.json()["fulfilment_id"]
    refused = checkout.fulfil(clearance_id, carrier="UPS", corrects=newest)
    assert refusal(refused) == (409, "fulfilment_contradicted")
    last = {"carrier": f"UPS {REPORTS_MAX - 1}"}
    assert checkout.fulfil(clearance_id, **last).json()["fulfilment_id"] == newest


def test_a_corrected_report_no_longer_decides_the_state_of_its_order(checkout: Checkout) -> None:
    named = {"session_id": "cart-delivered-by-mistake"}
    asked = checkout.decision(checkout.initialed(**named), checkout.buyer(), **named)
    clearance_id = asked["clearance_id"]

    def state() -> str:
        order: dict[str, str] = checkout.client.get(f"/v1/orders/{clearance_id}").json()
        return order["state"]

    wrong = checkout.fulfil(clearance_id, delivered_at="2099-11-22T16:05:00Z").json()
    assert state() == "delivered"
    shipped = checkout.fulfil(clearance_id, **SHIPPED, corrects=wrong["fulfilment_id"]).json()
    assert state() == "shipped"
    assert checkout.fulfil(clearance_id, corrects=shipped["fulfilment_id"]).status_code == 200
    assert state() == "cleared"


def test_the_clocks_of_two_machines_may_be_five_minutes_apart(checkout: Checkout) -> None:
    """Only larger contradictions are refused; an unneeded confirmation is not stored."""
    clearance_id = checkout.cleared()["clearance_id"]
    late = checkout.fulfil(clearance_id, shipped_at=_now(checkout, minutes=6))
    assert refusal(late) == (409, "fulfilment_contradicted")
    early = checkout.fulfil(clearance_id, delivered_at=_now(checkout, minutes=-6))
    assert refusal(early) == (409, "fulfilment_contradicted")
    assert "By this report, now is 2" in message(early)
    shipped = _now(checkout, minutes=4)
    answer = checkout.fulfil(clearance_id, shipped_at=shipped, confirm_order_of_events=True)
    assert answer.status_code == 200
    (report,) = checkout.back(clearance_id)["fulfilments"]
    assert report["shipped_at"] == shipped
    assert "order_of_events_confirmed" not in report


def test_an_order_that_was_cleared_again_may_have_shipped_after_its_first_decision(
    checkout: Checkout,
) -> None:
    """The time of the first clearance counts, whichever clearance the report names."""
    ack_id, cbid = checkout.initialed(), checkout.buyer()
    checkout.decision(ack_id, cbid)
    shipped = _now(checkout, minutes=-1)
    _advance_two_days(checkout)
    second = checkout.decision(ack_id, cbid)
    assert second["cleared"]
    assert checkout.fulfil(second["clearance_id"], shipped_at=shipped).status_code == 200


def test_the_future_is_that_of_the_sandbox_clock(checkout: Checkout) -> None:
    """A vendor who moves it on tests the shipment of the day after tomorrow."""
    clearance_id, later = checkout.cleared()["clearance_id"], _now(checkout, days=-2)
    assert checkout.fulfil(clearance_id, shipped_at=later).status_code == 409
    _advance_two_days(checkout)
    answer = checkout.fulfil(clearance_id, shipped_at=later)
    assert answer.status_code == 200, answer.text


def test_a_confirmation_alone_is_no_report(checkout: Checkout) -> None:
    clearance_id = checkout.cleared()["clearance_id"]
    answer = checkout.fulfil(clearance_id, confirm_order_of_events=True)
    assert refusal(answer) == (400, "invalid_request")
    assert "confirm_order_of_events" not in message(answer)
