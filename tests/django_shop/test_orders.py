"""An order on its way: begun, decided once, reported, stopped; its evidence in the admin."""

from __future__ import annotations

import io
import zipfile
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.test.utils import override_settings
from django.utils import timezone

from countersign_client import CountersignError, errors
from countersign_client.testing import webhook_message
from countersign_client.types import Event
from countersign_django import orders, receiving, signals
from countersign_django.conf import client
from countersign_django.following import Do, Wants, follow
from countersign_django.models import ReceivedEvent, State
from tests.cli.serving import wait_until
from tests.django_shop.conftest import Shop
from tests.django_shop.models import Order
from tests.storefront.shopper import Shopper
from tests.support.service import free_port

pytestmark = pytest.mark.long


def fresh(order: Order) -> Order:
    order.refresh_from_db()
    return order


def post(shop: Shop, body: bytes, headers: dict[str, str]) -> int:
    url = f"{shop.url}/countersign/webhook/"
    return httpx2.post(url, content=body, headers=headers, timeout=30, verify=False).status_code


def test_a_buyer_who_comes_back_is_thanked(shop: Shop) -> None:
    order = shop.order()
    shopper = Shopper(shop.url)
    with shopper.client:
        done = shopper.initial(shopper.identify(shopper.open(order.notice_url)))
        assert shopper.come_back(done).heading == "Thank you"
    assert fresh(order).state == State.CLEARED
    assert order.ack_id
    assert order.cbid
    assert order.clearance_token
    assert order.obligations == [{"type": "compared", "what": "zip"}]
    assert not order.client_token


def test_the_evidence_of_an_order_is_found_by_its_number(shop: Shop) -> None:
    """By the model's own field; tokens still name the order's random id."""
    order = shop.bought(number="100042")
    [found] = shop.client.acknowledgments.list(order_reference="100042")
    assert (found.ack_id, found.order_reference) == (order.ack_id, "100042")
    assert found.session_id == order.reference
    assert shop.client.clearances.retrieve(order.clearance_id).order_reference == "100042"


def test_a_known_buyer_gives_initials_alone_until_an_order_is_refused(shop: Shop) -> None:
    """The newest decided order counts, whatever waits after it."""
    first = shop.bought(number="of a customer")
    mine = Order.objects.filter(pk__gte=first.pk).order_by("-pk")
    shop.order()
    assert orders.known_buyer(mine) == first.cbid
    again = shop.order(cbid=orders.known_buyer(mine))
    shopper = Shopper(shop.url)
    with shopper.client:
        shopper.initial(shopper.open(again.notice_url))
    assert orders.refresh(again) == State.CLEARED
    other = shop.order(cbid=orders.known_buyer(mine), zip_code="90210")
    with (elsewhere := Shopper(shop.url)).client:
        elsewhere.initial(elsewhere.open(other.notice_url))
    assert orders.refresh(other) == State.REFUSED
    assert orders.known_buyer(mine) == ""


def test_a_buyer_who_comes_back_early_is_redirected_to_the_notice(shop: Shop) -> None:
    order = shop.order()
    back = httpx2.get(f"{shop.url}/back/{order.pk}/?ack_id=ack_typed", verify=False)
    assert (back.status_code, back.headers["Location"]) == (302, order.notice_url)


def test_a_webhook_pays_the_order_of_a_buyer_who_never_comes_back_once(shop: Shop) -> None:
    order = shop.order()
    shop.buy(order)
    wait_until(lambda: fresh(order).state == State.CLEARED, "the webhook")
    orders.refresh(order)
    assert fresh(order).captured == 1


def test_another_zip_code_than_the_proved_one_is_not_cleared(shop: Shop) -> None:
    cbid = shop.bought().cbid
    order = shop.bought(zip_code="90210", cbid=cbid)
    assert (order.state, order.reasons) == (State.REFUSED, ["zip_mismatch"])
    assert (fresh(order).captured, order.voided) == (0, 1)


def overridden(shop: Shop) -> Order:
    """An order that was refused, and has a manual override that it does not know of."""
    order = shop.bought(zip_code="90210", cbid=shop.bought().cbid)
    made = shop.client.clearances.override(
        order.clearance_id, reason="case 4712", claimed_user="shop user 17"
    )
    assert (made.overridden, fresh(order).state) == (True, State.REFUSED)
    return order


def test_an_order_with_a_manual_override_is_released_as_what_it_is(shop: Shop) -> None:
    """Once it is asked about again; without a token, and with the duties for the parcel."""
    order = overridden(shop)
    assert orders.decide(order, present(zip_code="90210")) == State.OVERRIDDEN
    assert (fresh(order).captured, order.cleared, order.clearance_token) == (1, False, "")
    assert order.override_id.startswith("ovr_")
    said = f"Manual override {order.override_id}: shipped on your own responsibility"
    assert order.manual_override == said
    assert order.obligations == [{"type": "compared", "what": "zip"}]
    assert follow(order, Wants.HELD, ["accessory"], state="CA", zip_code="90210") == Do.RELEASE
    assert orders.begin(order, present(zip_code="90210"), return_url=shop.url) == shop.url
    assert orders.decide(order, present()) == State.NONE, "another address"
    assert (order.override_id, order.manual_override) == ("", "")


def test_nothing_is_reported_of_an_order_with_a_manual_override(shop: Shop) -> None:
    """The service takes no report of it; that it was shipped is noted, and it stays so."""
    order = overridden(shop)
    orders.decide(order)
    orders.paid(order)
    orders.report(order, carrier="UPS", tracking_number="1Z999")
    assert fresh(order).shipped_at is not None
    assert not shop.client.clearances.retrieve(order.clearance_id).fulfilments
    shop.client.sandbox.move_buyer(cbid=order.cbid, status="revoked")
    assert orders.decide(order) == State.OVERRIDDEN


def test_a_revoked_buyer_stops_an_order_with_a_manual_override(shop: Shop) -> None:
    order = overridden(shop)
    orders.decide(order)
    shop.client.sandbox.move_buyer(cbid=order.cbid, status="revoked")
    wait_until(lambda: fresh(order).state == State.REFUSED, "the webhook")
    assert (order.override_id, "buyer_revoked" in order.reasons) == ("", True)


def test_staff_ask_again_in_the_admin(shop: Shop, staff: Client) -> None:
    order, place = overridden(shop), "/admin/django_shop/order/"
    chosen = {"action": "ask_again", "_selected_action": [order.pk]}
    page = staff.post(place, chosen, follow=True).content.decode()
    assert fresh(order).state == State.OVERRIDDEN
    assert order.manual_override in page
    away = {"BASE_URL": f"http://127.0.0.1:{free_port()}", "API_KEY": "csign_sk_test_x"}
    with override_settings(COUNTERSIGN=away):
        assert "connection" in staff.post(place, chosen, follow=True).content.decode().lower()
    assert fresh(order).state == State.OVERRIDDEN


def test_a_declined_order_can_be_begun_again(shop: Shop) -> None:
    """While a session is open there is no other, and nothing to decide."""
    order = shop.order()
    assert orders.decide(order) == State.OPEN
    first, needed = (
        order.checkout_session_id,
        orders.needs(["accessory"], state="CA", zip_code="94105"),
    )
    assert needed is not None
    assert orders.begin(order, needed, return_url=shop.url) == order.notice_url
    assert order.checkout_session_id == first
    assert orders.cancel(order) == State.CANCELLED
    orders.begin(order, needed, return_url=shop.url)
    assert (order.state, order.checkout_session_id == first) == (State.OPEN, False)


def test_an_order_that_reads_itself_when_it_is_made_is_begun(shop: Shop) -> None:
    """Many shops' own models do so, to detect changes."""
    assert shop.order().state == State.OPEN


def present(state: str = "CA", zip_code: str = "94105", class_: str = "accessory") -> orders.Needed:
    """The needs of an order of this class to this place."""
    needed = orders.needs([class_], state=state, zip_code=zip_code, residence_state=state)
    assert needed is not None
    return needed


CHANGES = pytest.mark.parametrize(
    "changed", [{"zip_code": "90210"}, {"class_": "firearm_manufacturing_machine"}], ids=str
)


@CHANGES
def test_a_changed_open_order_begins_again(shop: Shop, changed: dict[str, str]) -> None:
    """Its old link collects nothing more, nothing is given up; changing it back is a change."""
    order = shop.order()
    seen = [(order.checkout_session_id, order.notice_url)]
    for needed in (present(**changed), present()):
        old, link = seen[-1]
        again = orders.begin(order, needed, return_url=shop.url)
        assert shop.client.checkout_sessions.retrieve(old).status == "cancelled"
        assert again not in {link, shop.url}
        assert (order.state, order.product_class, order.shipping_zip) == (
            State.OPEN,
            needed.product_class,
            needed.shipping_zip,
        )
        assert orders.begin(order, needed, return_url=shop.url) == again
        seen.append((order.checkout_session_id, again))
    assert len({session for session, _ in seen}) == 3
    assert fresh(order).voided == 0


@CHANGES
def test_a_changed_cleared_order_is_no_longer_cleared(shop: Shop, changed: dict[str, str]) -> None:
    order = shop.bought()
    back = shop.url
    assert orders.begin(order, present(), return_url=back) == back
    assert orders.begin(order, present(**changed), return_url=back) == order.notice_url
    assert fresh(order).state == State.OPEN
    assert (order.cleared, order.clearance_id, order.clearance_token) == (None, "", "")
    assert order.receipt, "it is collected until there is another one"


@CHANGES
def test_a_decision_is_about_the_order_as_it_is_now(shop: Shop, changed: dict[str, str]) -> None:
    order = shop.bought()
    assert orders.decide(order, present()) == State.CLEARED
    assert orders.decide(order, present(**changed)) == State.NONE
    assert fresh(order).state == State.NONE
    assert orders.decide(order, present()) == State.NONE
    orders.begin(order, present(), return_url=shop.url, cbid=order.cbid)
    shop.buy(order)
    assert orders.refresh(order) == State.CLEARED


def test_a_session_finished_for_another_address_is_not_paid(shop: Shop) -> None:
    """Its end was not known here when the order was changed."""
    order = shop.order()
    mine, session = Order.objects.filter(pk=order.pk), order.checkout_session_id
    mine.update(checkout_session_id="elsewhere")
    shop.buy(order)

    def is_received() -> bool:
        ended = shop.client.events.list(type="checkout_session.completed")
        mine = [one.id for one in ended if one.data["checkout_session_id"] == session]
        return ReceivedEvent.objects.filter(pk__in=mine).exists()

    wait_until(is_received, "the webhook")
    mine.update(checkout_session_id=session)
    orders.begin(order, present(zip_code="90210"), return_url=shop.url)
    assert (fresh(order).state, order.captured, order.shipping_zip) == (State.OPEN, 0, "90210")


def test_a_shipped_parcel_is_not_begun_again(shop: Shop) -> None:
    order = shop.bought()
    orders.report(order, carrier="UPS", tracking_number="1Z999")
    assert orders.begin(order, present(), return_url=shop.url) == shop.url
    assert orders.decide(order, present()) == State.CLEARED


def test_a_shipped_order_that_changes_is_a_new_one(shop: Shop) -> None:
    """Another address was not shipped to: it needs its own notice."""
    order = shop.bought()
    orders.report(order, carrier="UPS", tracking_number="1Z999")
    assert orders.decide(order, present(zip_code="90210")) == State.NONE
    assert (order.clearance_id, order.shipped_at) == ("", None)
    link = orders.begin(order, present(zip_code="90210"), return_url=shop.url)
    assert "/c/cst_" in link


@pytest.mark.parametrize(("state", "zip_code"), [("OR", "94105"), ("WA", "90210"), ("HI", "94105")])
def test_a_parcel_to_california_needs_the_notice_whatever_the_state_says(
    shop: Shop, state: str, zip_code: str
) -> None:
    assert present(state, zip_code).identity


def test_the_receipts_of_all_orders_are_collected(shop: Shop, tmp_path: Path) -> None:
    """Byte for byte, each once; an order without one is left out."""
    order = shop.bought()
    shop.order()
    folder, said = tmp_path / "receipts", io.StringIO()
    for _ in range(2):
        call_command("countersign_receipts", str(folder), stdout=said)
    assert (folder / f"{order.ack_id}.txt").read_bytes() == order.receipt.encode()
    kept = {one.ack_id for one in Order.objects.exclude(receipt="")}
    assert {file.stem for file in folder.iterdir()} == kept
    assert said.getvalue().endswith("0 receipts were new.\n")
    assert [*tmp_path.iterdir()] == [folder]
    with pytest.raises(CommandError, match="could not be written"):
        call_command("countersign_receipts", str(folder / f"{order.ack_id}.txt"))


def test_a_revoked_buyer_stops_the_order(shop: Shop) -> None:
    order = shop.bought()
    shop.client.sandbox.move_buyer(cbid=order.cbid, status="revoked")
    wait_until(lambda: fresh(order).state == State.REFUSED, "the webhook")
    assert order.reasons == ["buyer_revoked"]
    assert (order.captured, order.voided) == (1, 1)


def test_a_shipped_parcel_is_not_decided_again(shop: Shop) -> None:
    order = shop.bought()
    orders.report(order, carrier="UPS", tracking_number="1Z999")
    assert fresh(order).shipped_at is not None
    assert order.closed_at is not None
    shop.client.sandbox.move_buyer(cbid=order.cbid, status="revoked")
    assert orders.decide(order) == State.CLEARED
    kept = shop.client.clearances.retrieve(order.clearance_id)
    assert [one.tracking_number for one in kept.fulfilments] == ["1Z999"]


def test_times_that_contradict_each_other_are_reported_if_confirmed(shop: Shop) -> None:
    """Shipped before it was cleared: refused and not stored, unless the shop says that it is so."""
    order, early = shop.bought(), timezone.now() - timedelta(days=1)
    with pytest.raises(errors.FulfilmentContradicted):
        orders.report(order, shipped_at=early)
    assert fresh(order).shipped_at is None
    orders.report(order, shipped_at=early, confirm_order_of_events=True)
    assert fresh(order).shipped_at == early


def test_a_wrong_report_is_corrected(shop: Shop) -> None:
    order, right = shop.bought(), timezone.now()
    orders.report(order, shipped_at=right + timedelta(minutes=3))
    [wrong] = shop.client.clearances.retrieve(order.clearance_id).fulfilments
    orders.report(order, shipped_at=right, corrects=wrong.fulfilment_id)
    assert fresh(order).shipped_at == right


def test_a_parcel_reported_before_a_crash_counts_as_shipped(shop: Shop) -> None:
    """A message that comes between the report and its storing does not give the payment up."""
    order = shop.bought()
    shop.client.clearances.fulfil(order.clearance_id, carrier="UPS", tracking_number="1Z999")
    assert orders.decide(order) == State.CLEARED
    assert fresh(order).shipped_at is not None
    assert (order.captured, order.voided) == (1, 0)


@pytest.mark.parametrize("classes", [["barrel"], ["accessory", "barrel"]])
def test_unsellable_products_are_refused_before_any_request(shop: Shop, classes: list[str]) -> None:
    with pytest.raises(orders.CannotSell) as caught:
        orders.needs(classes, state="CA", zip_code="94105")
    assert caught.value.code == "not_sufficient"


def test_a_payment_is_reported_and_ships_nothing(shop: Shop) -> None:
    order = shop.bought()
    orders.paid(order)
    [reported] = shop.client.clearances.retrieve(order.clearance_id).fulfilments
    assert reported.paid_at is not None
    assert order.shipped_at is None
    with pytest.raises(ValueError, match="not begun"):
        orders.paid(Order.objects.create())


def test_several_classes_are_one_order(shop: Shop) -> None:
    """Each decision is about all of them, in whatever order they are in the cart."""
    order = shop.order("manufacturing_machine", "accessory")
    shop.buy(order)
    assert orders.settle(order) == State.CLEARED
    assert order.product_class == "accessory,manufacturing_machine"
    first = order.clearance_id
    assert orders.decide(order) == State.CLEARED
    decided = shop.client.clearances.retrieve(first)
    assert order.clearance_id == first
    assert [*decided.product_classes] == ["accessory", "manufacturing_machine"]


@pytest.mark.parametrize(
    ("state", "zip_code"),
    [("California", "94105"), ("CA", "9410"), ("CA", "94105-12")],
)
def test_a_wrong_address_is_the_mistake_of_the_buyer(
    shop: Shop, state: str, zip_code: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(orders.CannotSell, match="look at state and ZIP code once more"):
        orders.needs(["accessory"], state=state, zip_code=zip_code)
    with pytest.raises(orders.CannotSell):
        orders.needs(["no class!"], state="CA", zip_code="94105")
    assert "invalid_request" in caplog.text
    assert orders.needs(["accessory"], state=" ca", zip_code="94105 ") is not None
    assert orders.needs(["accessory"], state="CA", zip_code="94105-1234") is not None


def test_a_refusal_of_the_service_is_logged_once(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    """The page of the buyer does not say it. Here `begin` fails in `refresh`."""
    order, needed = shop.order(), orders.needs(["accessory"], state="CA", zip_code="94105")
    assert needed is not None
    wrong = {"BASE_URL": shop.server.url, "API_KEY": "csign_sk_test_wrong"}
    away = wrong | {"BASE_URL": f"http://127.0.0.1:{free_port()}"}
    for conf, code in ((wrong, "invalid_api_key"), (away, "connection_failed")):
        caplog.clear()
        with override_settings(COUNTERSIGN=conf):
            with pytest.raises(CountersignError):
                orders.begin(order, needed, return_url=shop.url)
            client().close()
        # Webhooks of other tests may arrive meanwhile: theirs is another module.
        said = [one for one in caplog.records if one.name == "countersign_django"]
        (record,) = (one for one in said if one.module == "needing")
        assert record.levelname == "ERROR"
        assert code in record.getMessage()
        assert ("request req_" in caplog.text) == (conf is wrong)
        assert "csign_sk_test_wrong" not in caplog.text


def test_events_are_not_caught_up_while_the_service_is_down(shop: Shop) -> None:
    away = {"BASE_URL": f"http://127.0.0.1:{free_port()}", "API_KEY": "csign_sk_test_x"}
    with (
        override_settings(COUNTERSIGN=away),
        pytest.raises(CommandError, match=r"could not be read: connection_failed"),
    ):
        call_command("countersign_catch_up", hours=1)


def test_goods_without_a_class_are_sold_without_a_notice(shop: Shop) -> None:
    assert orders.needs([], state="CA", zip_code="94105") is None
    assert orders.needs(["accessory"], state="NV", zip_code="89101", residence_state="NV") is None


def test_an_inauthentic_message_is_refused(shop: Shop) -> None:
    body, headers = webhook_message("buyer.revoked", {"cbid": "cbid_x"})
    assert post(shop, body, headers) == 400
    assert httpx2.get(f"{shop.url}/countersign/webhook/", verify=False).status_code == 405


def test_an_event_is_processed_once(shop: Shop) -> None:
    seen: list[str] = []

    def listen(event: Event, **_: object) -> None:
        seen.append(event.id)

    signals.event_received.connect(listen)
    data = {"cbid": "cbid_unknown"}
    body, headers = webhook_message("buyer.revoked", data, secret=shop.secret)
    assert [post(shop, body, headers), post(shop, body, headers)] == [204, 204]
    signals.event_received.disconnect(listen)
    # Events of other tests may arrive meanwhile.
    assert seen.count(headers["webhook-id"]) == 1


def test_an_event_is_sent_again_if_the_service_did_not_respond(shop: Shop) -> None:
    order = shop.order()
    data = {"checkout_session_id": order.checkout_session_id}
    body, headers = webhook_message("checkout_session.expired", data, secret=shop.secret)
    away = {"BASE_URL": f"http://127.0.0.1:{free_port()}", "API_KEY": "csign_sk_test_x"}
    with override_settings(COUNTERSIGN=away | {"WEBHOOK_SECRET": shop.secret}):
        assert post(shop, body, headers) == 503
    with override_settings(COUNTERSIGN=away):
        assert post(shop, body, headers) == 503
    assert not ReceivedEvent.objects.filter(pk=headers["webhook-id"]).exists()
    assert post(shop, body, headers) == 204


def test_a_failed_payment_leaves_the_order_as_it_was(shop: Shop) -> None:
    """Receivers run in the transaction, so the event is not lost."""
    order = shop.order()
    Order.objects.filter(pk=order.pk).update(gateway_works=False)
    shop.buy(order)
    with pytest.raises(AssertionError):
        orders.refresh(order)
    assert fresh(order).state == State.OPEN
    Order.objects.filter(pk=order.pk).update(gateway_works=True)
    assert orders.refresh(order) == State.CLEARED


def test_saving_an_outdated_order_does_not_undo_a_decision(shop: Shop) -> None:
    """A view that holds an old copy would have the order paid a second time."""
    order = shop.order()
    copy = Order.objects.get(pk=order.pk)
    shop.buy(order)
    assert orders.refresh(order) == State.CLEARED
    copy.voided = 5
    copy.save()
    assert fresh(order).state == State.CLEARED
    # The shop's own field is as the copy had it: 1 again would be a second payment.
    assert (orders.refresh(copy), fresh(order).captured, order.voided) == (State.CLEARED, 0, 5)


def test_the_end_of_an_old_session_does_not_end_a_new_one(shop: Shop) -> None:
    """A slow request stores nothing about a session that is no longer the order's."""
    order, needed = shop.order(), orders.needs(["accessory"], state="CA", zip_code="94105")
    assert needed is not None
    slow = Order.objects.get(pk=order.pk)
    orders.cancel(order)
    orders.begin(order, needed, return_url=shop.url)
    assert orders.refresh(slow) == State.OPEN
    assert fresh(order).state == State.OPEN


def test_two_requests_begin_the_same_session(shop: Shop) -> None:
    """The reference is made once."""
    needed = orders.needs(["accessory"], state="CA", zip_code="94105")
    assert needed is not None
    first = Order.objects.create()
    second = Order.objects.get(pk=first.pk)
    links = {orders.begin(one, needed, return_url=shop.url) for one in (first, second)}
    assert (len(links), first.reference) == (1, second.reference)


def test_a_session_whose_response_was_lost_does_not_block_the_order(shop: Shop) -> None:
    """The same request finds it again, and one from another address makes another."""
    order, needed = shop.order(), orders.needs(["accessory"], state="CA", zip_code="94105")
    assert needed is not None
    lost, links = {"checkout_session_id": "", "session_status": ""}, []
    for back in ("http://localhost/", "http://127.0.0.1/", "http://127.0.0.1/"):
        Order.objects.filter(pk=order.pk).update(**lost)
        links.append(orders.begin(fresh(order), needed, return_url=back))
    assert links[0] != links[1] == links[2]


def test_a_failing_order_does_not_delay_the_others(shop: Shop) -> None:
    """A buyer is revoked with two orders, and the refund of the first one fails."""
    one = shop.bought()
    two = shop.bought(cbid=one.cbid)
    Order.objects.filter(pk=one.pk).update(gateway_works=False)
    (endpoint,) = shop.client.webhook_endpoints.list()
    shop.client.webhook_endpoints.change(endpoint.endpoint_id, disabled=True)
    shop.client.sandbox.move_buyer(cbid=one.cbid, status="revoked")
    try:
        with pytest.raises(CommandError, match="could not be processed"):
            call_command("countersign_catch_up", hours=1)
        assert (fresh(one).state, fresh(two).state) == (State.CLEARED, State.REFUSED)
        Order.objects.filter(pk=one.pk).update(gateway_works=True)
        call_command("countersign_catch_up", hours=1)
    finally:
        shop.client.webhook_endpoints.change(endpoint.endpoint_id, disabled=False)
    assert (fresh(one).state, fresh(two).voided) == (State.REFUSED, 1)


def test_events_that_no_webhook_brought_are_caught_up(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    (endpoint,) = shop.client.webhook_endpoints.list()
    shop.client.webhook_endpoints.change(endpoint.endpoint_id, disabled=True)
    try:
        order = shop.order()
        shop.buy(order)
        call_command("countersign_catch_up", hours=1)
    finally:
        shop.client.webhook_endpoints.change(endpoint.endpoint_id, disabled=False)
    assert fresh(order).state == State.CLEARED
    assert "events were missing" in capsys.readouterr().out
    events = list(shop.client.events.list(type="checkout_session.completed"))
    assert not receiving.receive(events[-1])


@pytest.fixture(scope="module")
def staff(running: Shop) -> Client:
    made = Client()
    made.force_login(User.objects.create_superuser("staff"))
    return made


def test_evidence_is_downloaded_with_the_key_of_the_server(shop: Shop, staff: Client) -> None:
    order = shop.bought()
    place = f"/admin/django_shop/order/{order.pk}/"
    page = staff.get(f"{place}change/").content.decode()
    assert "csign_sk" not in page
    assert f"{place}countersign/dossier/" in page
    answer = staff.get(f"{place}countersign/dossier/")
    assert answer.status_code == 200
    names = zipfile.ZipFile(io.BytesIO(answer.content)).namelist()
    assert f"records/{order.ack_id}.json" in names
    assert answer["Content-Disposition"].endswith('-dossier.zip"')
    assert staff.get(f"{place}countersign/certificate/").content.startswith(b"%PDF")
    assert staff.get(f"{place}countersign/secrets/").status_code == 404


def test_countersigns_decisions_cannot_be_edited(shop: Shop, staff: Client) -> None:
    order = shop.order()
    place = f"/admin/django_shop/order/{order.pk}/change/"
    page = staff.get(place).content.decode()
    assert 'name="cleared"' not in page
    assert order.client_token not in page
    staff.post(place, {"captured": 0, "voided": 0, "cleared": "true", "gateway_works": "on"})
    order.refresh_from_db()
    assert order.cleared is None


def test_evidence_is_for_those_who_may_view_the_order(shop: Shop) -> None:
    order = shop.order()
    visitor, place = Client(), f"/admin/django_shop/order/{order.pk}/countersign/dossier/"
    assert visitor.get(place).status_code == 302
    visitor.force_login(User.objects.create_user("packer", is_staff=True))
    assert visitor.get(place).status_code == 403


def test_a_refusal_of_the_service_is_shown(shop: Shop, staff: Client) -> None:
    order = Order.objects.create()
    typed = {"ack_id": "ack_00000000000000000000000000", "bound_to": order.itself()}
    Order.objects.filter(pk=order.pk).update(**typed)
    place = f"/admin/django_shop/order/{order.pk}/"
    page = staff.get(f"{place}countersign/dossier/", follow=True).content.decode()
    assert "Countersign: " in page
