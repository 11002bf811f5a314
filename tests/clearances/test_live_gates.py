"""Obstacles for a live order that do not depend on its buyer: an injunction, and unnamed goods."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from countersign.base.values import Mode
from countersign.core.clearances.model import ClearanceRules
from countersign.core.notices import publish as publishing
from tests.clearances.desk import Desk, order
from tests.http.backstage import notice_file
from tests.support.acts import done


def test_an_injunction_keeps_live_orders_back_until_a_version_is_reinstated(desk: Desk) -> None:
    """An order whose text is still the same continues where it stopped."""
    notices = desk.deployment.notices
    desk.publish(notice_file("stopped-orders", "1"))
    desk.publish(notice_file("stopped-orders", "2", effective_from="2021-01-01"))
    who = desk.account(Mode.LIVE)
    cbid = desk.live_buyer(who, "94110")
    asked = order(desk.acknowledge(who, "stopped-orders", "cs_1"), cbid, "cs_1", "94110")
    stop = partial(publishing.withdraw, reason="Case 1", enjoined=True)
    desk.do(done(stop, notices, "stopped-orders", "1"))
    desk.clock.advance(timedelta(seconds=1))
    assert desk.clear(who, asked).reasons == ("notice_not_in_force",)
    against = "https://law.example/text"
    again = partial(publishing.review, by="A. Reader", against=against, reinstates=True)
    desk.do(done(again, notices, "stopped-orders", "2"))
    assert desk.clear(who, asked).cleared


def test_a_live_order_names_its_class_unless_the_account_may_leave_it_out(desk: Desk) -> None:
    """A new account has to: a class that was forgotten would let a barrel through."""
    desk.publish(notice_file("of-classes", "1"))
    who = desk.account(Mode.LIVE)
    cbid = desk.live_buyer(who, "94110")
    ack_id = desk.acknowledge(who, "of-classes", "cs_1")
    asked = order(ack_id, cbid, "cs_1", "94110", product_class=None)
    assert desk.clear(who, asked).reasons == ("product_class_missing",)
    desk.rules(who, ClearanceRules(product_class_required=False))
    assert desk.clear(who, asked).cleared
