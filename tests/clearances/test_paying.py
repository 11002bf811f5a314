"""A payment keeps the acknowledgment of its order; buyer and address are judged again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from countersign.base.errors import FulfilmentContradicted, InvalidRequest
from countersign.base.values import rfc3339
from countersign.core.access.key import Principal
from countersign.core.clearances.model import ClearanceRules
from countersign.core.clearances.read import stored_clearance
from countersign.core.clearances.schemas import (
    ClearanceDecision,
    ClearanceRequest,
    FulfilmentReceipt,
)
from tests.clearances.desk import Desk, order
from tests.http.backstage import notice_file

ZIP = "94110"
DAY = timedelta(days=1)


class Paying:
    """A vendor with one cleared order."""

    def __init__(self, desk: Desk, notice_id: str) -> None:
        desk.publish(notice_file(notice_id, "1"))
        self.desk, self.who = desk, desk.account()
        self.cbid = desk.sandbox_buyer(self.who, "vs_1", ZIP)
        ack_id = desk.acknowledge(self.who, notice_id, "cs_1")
        self.order = order(ack_id, self.cbid, "cs_1", ZIP, order_reference="1001")
        self.first = self.ask()

    def ask(self, asked: ClearanceRequest | None = None) -> ClearanceDecision:
        return self.desk.clear(self.who, asked or self.order)

    def pay(self, after: timedelta = timedelta(0), **more: object) -> FulfilmentReceipt:
        at = self.desk.clock.now + after
        return self.desk.fulfil(self.who, self.first.clearance_id, paid_at=at, **more)

    def wait(self, days: int) -> None:
        self.desk.clock.advance(days * DAY)


def test_a_payment_keeps_the_acknowledgment_for_180_days(desk: Desk) -> None:
    """Without one it is too old after seven; a newer version of the notice changes nothing."""
    unpaid, paid = Paying(desk, "of-unpaid"), Paying(desk, "of-paid")
    assert paid.first.cleared
    paid.pay()
    desk.clock.advance(8 * DAY)
    desk.publish(notice_file("of-paid", "2", effective_from="2021-01-01"))
    desk.clock.advance(timedelta(seconds=1))
    assert unpaid.ask().reasons == ("acknowledgment_too_old",)
    later = paid.ask()
    assert (later.cleared, later.already_shipped) == (True, False)
    assert later.clearance_id != paid.first.clearance_id
    desk.clock.advance(171 * DAY)
    assert paid.ask().cleared
    desk.clock.advance(2 * DAY)
    assert paid.ask().reasons == ("acknowledgment_too_old",)


def test_the_buyer_and_the_order_are_judged_again(desk: Desk) -> None:
    paid = Paying(desk, "of-revoked-payers")
    paid.pay()
    paid.wait(8)
    other = order(paid.order.ack_id or "", paid.cbid, "cs_1", "10001", order_reference="1001")
    assert {"acknowledgment_already_used", "acknowledgment_too_old", "zip_mismatch"} == {
        *paid.ask(other).reasons
    }
    desk.revoke(paid.cbid)
    assert paid.ask().reasons == ("buyer_revoked",)


def test_an_account_may_keep_it_for_a_shorter_time(desk: Desk) -> None:
    """Not for less than any acknowledgment counts, and not for more than 180 days."""
    paid = Paying(desk, "of-short-payments")
    paid.pay()
    desk.rules(paid.who, ClearanceRules(paid_max_age=10 * DAY))
    paid.wait(9)
    assert paid.ask().cleared
    paid.wait(2)
    assert paid.ask().reasons == ("acknowledgment_too_old",)
    assert ClearanceRules(paid_max_age=181 * DAY).mistake()


def test_a_payment_closes_and_ships_nothing(desk: Desk) -> None:
    """It is repeated as a no-op, and contradicted by another one."""
    paid = Paying(desk, "of-open-payments")
    at = desk.clock.now
    made = desk.fulfil(paid.who, paid.first.clearance_id, paid_at=at)
    assert made.closed_at is None
    paid.wait(2)
    assert desk.fulfil(paid.who, paid.first.clearance_id, paid_at=at) == made
    with pytest.raises(FulfilmentContradicted):
        paid.pay()
    again = paid.ask()
    assert (again.cleared, again.already_shipped) == (True, False)
    assert desk.fulfil(paid.who, again.clearance_id, carrier="UPS").closed_at is not None
    assert paid.ask().already_shipped


def test_a_payment_is_reported_alone_while_the_clearance_is_valid(desk: Desk) -> None:
    """And is neither earlier than it nor in the future, by the tolerance of clocks."""
    paid = Paying(desk, "of-late-payments")
    with pytest.raises(InvalidRequest, match="paid_at"):
        paid.pay(carrier="UPS")
    for apart in (-timedelta(minutes=6), timedelta(minutes=6)):
        with pytest.raises(FulfilmentContradicted):
            paid.pay(apart)
    paid.wait(2)
    with pytest.raises(FulfilmentContradicted, match="while the clearance is valid"):
        paid.pay(-2 * DAY)


def test_the_record_says_that_a_payment_was_needed(desk: Desk) -> None:
    """Only where the decision relied on it."""
    paid = Paying(desk, "of-said-payments")
    at = rfc3339(desk.clock.now)
    paid.pay()
    paid.wait(2)
    early = paid.ask()
    paid.wait(6)
    said = [_body(desk, paid.who, one.clearance_id) for one in (paid.first, early, paid.ask())]
    assert ["paid_at" in body for body in said] == [False, False, True]
    assert f'"paid_at":"{at}"' in said[2]


def _body(desk: Desk, who: Principal, clearance_id: str) -> str:
    stored = desk.do(stored_clearance(desk.deployment.clearances, who, clearance_id))
    return stored.record.body.decode()


def test_a_payment_that_was_reported_by_mistake_keeps_nothing(desk: Desk) -> None:
    """A report corrects it, of nothing: the order is neither closed nor shipped by that."""
    vendor = Paying(desk, "of-mistake")
    wrong = vendor.pay()
    first = vendor.first.clearance_id
    corrected = desk.fulfil(vendor.who, first, corrects=wrong.fulfilment_id)
    assert corrected.closed_at is None
    assert not vendor.ask().already_shipped
    vendor.wait(8)
    assert vendor.ask().reasons == ("acknowledgment_too_old",)
