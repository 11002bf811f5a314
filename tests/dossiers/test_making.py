"""The parts of an order's dossier, and when its bytes change."""

from __future__ import annotations

from datetime import timedelta

import pytest

from countersign.base.errors import InvalidRequest, NotFound
from countersign_evidence.dossier import CLEARANCE, FULFILMENT, OVERRIDE
from countersign_evidence.verification import Conclusion, verify_file
from tests.clearances.desk import order
from tests.clearances.overriding import Shop
from tests.dossiers.orders import ZIP, Orders, kinds, said

WHOLE = [
    *("operator", "account", "capture_process", "notice_event"),
    *("acknowledgment", "verification", "clearance", "fulfilment"),
]


def test_one_file_has_all_records_of_an_order(orders: Orders) -> None:
    """The parties, the notice, initials, check, decision and report, under one head."""
    one = orders.order(orders.vendor())
    data = orders.dossier(one.who, one.clearance_id)
    assert kinds(data) == WHOLE
    dossier = said(data)
    assert dossier.order["missing"] == ["the time of the shipment", "a report of the delivery"]
    assert len(dossier.order["joins"]) == 9
    assert verify_file(data).outcome is Conclusion.CONSISTENT
    (clearance,) = dossier.of("clearance")
    (check,) = dossier.of("verification")
    assert clearance.shown["verification"] == check.id
    assert clearance.shown["cbid"] == one.cbid


def test_acknowledgment_and_clearance_have_the_same_dossier(orders: Orders) -> None:
    """Whichever identifier a court has."""
    one = orders.order(orders.vendor())
    by_clearance = orders.dossier(one.who, one.clearance_id)
    assert orders.dossier(one.who, one.ack_id) == by_clearance


def test_the_bytes_stay_the_same_while_the_log_grows(orders: Orders) -> None:
    """With a size and without: records of other orders change nothing."""
    who = orders.vendor()
    one = orders.order(who)
    data = orders.dossier(who, one.ack_id)
    size = said(data).size
    orders.order(who)
    assert orders.dossier(who, one.ack_id) == data
    assert orders.dossier(who, one.ack_id, size=size) == data


def test_a_later_record_leaves_the_dossier_at_a_given_size_unchanged(orders: Orders) -> None:
    """A dossier given to a court can be made again after the order was fulfilled."""
    one = orders.order(orders.vendor(), fulfilled=False)
    before = orders.dossier(one.who, one.clearance_id)
    assert said(before).order["missing"] == ["a report of fulfilment"]
    orders.desk.fulfil(one.who, one.clearance_id, carrier="a carrier", tracking_number="1Z")
    assert kinds(orders.dossier(one.who, one.clearance_id)) == WHOLE
    assert orders.dossier(one.who, one.clearance_id, size=said(before).size) == before


def test_the_dossier_has_the_clearance_with_which_the_goods_left(orders: Orders) -> None:
    """Also if there is a newer one, which is shown until a shipment is reported."""
    one = orders.order(orders.vendor(), fulfilled=False)
    orders.desk.fulfil(one.who, one.clearance_id, paid_at=orders.desk.clock.now)
    orders.desk.clock.advance(timedelta(hours=25))
    again = orders.desk.clear(one.who, order(one.ack_id, one.cbid, one.session, ZIP))
    assert again.clearance_id != one.clearance_id
    before = orders.dossier(one.who, one.ack_id)
    assert [found.id for found in said(before).of(CLEARANCE)] == [again.clearance_id]
    left = orders.desk.fulfil(one.who, one.clearance_id, carrier="a carrier")
    shown = said(orders.dossier(one.who, one.ack_id))
    assert [found.id for found in shown.of(CLEARANCE)] == [one.clearance_id]
    assert shown.of(FULFILMENT)[-1].id == left.fulfilment_id
    assert orders.dossier(one.who, one.ack_id, size=said(before).size) == before


def test_a_size_without_the_record_is_not_found(orders: Orders) -> None:
    """Nor is a size without a checkpoint."""
    who = orders.vendor()
    one = orders.order(who)
    data = orders.dossier(who, one.ack_id)
    size = said(data).of("acknowledgment")[0].position
    two = orders.order(who)
    orders.dossier(who, two.ack_id)
    for wrong in (size, 10**9):
        with pytest.raises(NotFound):
            orders.dossier(who, two.ack_id, size=wrong)


@pytest.mark.parametrize(
    ("disclose", "check", "shown"),
    [
        (None, True, {"cbid", "initials_per_line", "ip", "session_id", "user_agent"}),
        ("none", False, set[str]()),
        ("initials_per_line", False, {"initials_per_line"}),
        ("verification,initials_per_line", True, {"initials_per_line"}),
    ],
)
def test_only_requested_fields_are_shown(
    orders: Orders, disclose: str | None, check: bool, shown: set[str]
) -> None:
    """A check whose connection is withheld is left out, which the dossier says."""
    one = orders.order(orders.vendor())
    data = orders.dossier(one.who, one.clearance_id, disclose)
    assert ("verification" in kinds(data)) is check
    assert set(said(data).of("acknowledgment")[0].shown) == shown
    withheld = "an identity check: which one the clearance relied on is withheld or erased"
    assert (withheld in said(data).order["missing"]) is not check


def test_an_unknown_field_is_refused(orders: Orders) -> None:
    """A typing error must not hide promised data from a court."""
    one = orders.order(orders.vendor())
    with pytest.raises(InvalidRequest, match="shoping"):
        orders.dossier(one.who, one.ack_id, "shoping")


def test_the_order_of_another_account_is_not_found(orders: Orders) -> None:
    """As if it did not exist."""
    one, other = orders.order(orders.vendor()), orders.vendor()
    for id_ in (one.ack_id, one.clearance_id):
        with pytest.raises(NotFound):
            orders.dossier(other, id_)


def test_an_acknowledgment_alone_shows_the_newest_check_of_its_buyer(orders: Orders) -> None:
    """Before anything was cleared, the buyer is all that joins them."""
    who = orders.vendor(described=False)
    cbid = orders.desk.sandbox_buyer(who, "test_alone", ZIP)
    orders.desk.sandbox_buyer(who, "test_alone_other", ZIP)
    data = orders.dossier(who, orders.desk.acknowledge(who, "ab1263", "sess_alone", cbid))
    dossier = said(data)
    assert dossier.of("verification")[0].shown["cbid"] == cbid
    assert "a clearance" in dossier.order["missing"]


def test_a_refused_order_has_a_dossier(orders: Orders) -> None:
    """Also where it was refused since the buyer is another one."""
    who = orders.vendor()
    one, two = orders.order(who), orders.order(who)
    decision = orders.desk.clear(who, order(one.ack_id, two.cbid, "sess_wrong", ZIP))
    assert not decision.cleared
    dossier = said(orders.dossier(who, decision.clearance_id))
    assert [record.id for record in dossier.of("acknowledgment")] == [one.ack_id]
    assert [join.split()[-2:] for join in dossier.order["joins"] if "DIFFERENT" in join] == [
        ["DIFFERENT", "cbid"],
        ["DIFFERENT", "session_id"],
    ]
    # The acknowledgment leads to the clearance that was granted.
    assert said(orders.dossier(who, one.ack_id)).of("clearance")[0].id == one.clearance_id


@pytest.mark.both_engines
def test_erasing_one_buyer_changes_no_other_dossier(orders: Orders) -> None:
    """Earlier dossiers of the erased one stay valid."""
    who = orders.vendor()
    one, two = orders.order(who), orders.order(who)
    before, others = orders.dossier(who, one.ack_id), orders.dossier(who, two.ack_id)
    orders.desk.erase(one.cbid, with_acknowledgments=True)
    assert orders.dossier(who, two.ack_id) == others
    for data in (before, others):
        assert verify_file(data).ok
    after = said(orders.dossier(who, one.ack_id))
    assert not any(record.shown for record in after.records)
    assert len(after.of("erasure")) == 3
    assert not after.of("verification")
    assert one.cbid not in str(after)


def test_the_dossier_of_a_released_order_says_that_it_was_released_by_hand(orders: Orders) -> None:
    """By either identifier, and never that it was cleared."""
    who = orders.vendor()
    ack_id = orders.desk.acknowledge(who, "ab1263", "sess_released")
    wanted = order(ack_id, "cbid_nobody", "sess_released", ZIP)
    shop = Shop(orders.desk, who, orders.desk.clear(who, wanted).clearance_id, wanted)
    orders.desk.clock.advance(timedelta(seconds=1))
    made = shop.override(shop.person())
    shop.again()
    data = orders.dossier(who, shop.clearance_id)
    assert orders.dossier(who, ack_id) == data
    assert kinds(data)[-2:] == [CLEARANCE, OVERRIDE]
    [released] = said(data).of(OVERRIDE)
    assert released.id == made.override_id
    assert released.shown["override"]["by"][0]["reason"] == "case 4712"
    verdict = " ".join(said(data).summary)
    assert "a manual override by a person at the vendor, which is no clearance" in verdict
    assert "cleared" not in verdict
