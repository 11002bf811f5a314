"""Whether an order goes through the notice, and the fate of its session."""

from __future__ import annotations

import pytest

from tests.cli.serving import wait_until
from tests.woocommerce.conftest import GATEWAYS, Browser, Shop, nonce_in, offered
from tests.woocommerce.paths import pay_by_app
from tests.woocommerce.test_history import mails, sending
from tests.woocommerce.test_need import NEVADA, review

pytestmark = [pytest.mark.shops, pytest.mark.long, pytest.mark.one_engine]


def test_an_app_can_lead_to_the_notice(shop: Shop, browser: Browser) -> None:
    """The order is the one in the address of the request, whatever is in the cart."""
    order = shop.made()
    browser.put_in_cart(shop.product(""))
    answer = pay_by_app(browser, order, "countersign")
    assert answer.status_code == 200, answer.text
    assert answer.json()["payment_result"]["redirect_url"].startswith(shop.server.url)
    assert order.see("status", "state") == ("pending", "open")


def test_an_app_can_pay_a_cleared_order(shop: Shop, browser: Browser) -> None:
    """With the same goods left over in its cart."""
    order = shop.cleared(browser)
    browser.put_in_cart(shop.product())
    assert pay_by_app(browser, order, "cod").status_code == 200
    assert order.see("status", "taken") == ("processing", 1)


def test_a_cleared_order_is_paid_at_the_checkout_too(shop: Shop, browser: Browser) -> None:
    """Its buyer went back to it, or a plugin for subscriptions led there; not for another place."""
    order = shop.cleared(browser)
    assert offered(browser.checkout()) == set(GATEWAYS)
    assert offered(review(browser, postcode="90210")) == {"countersign"}
    assert "Invalid payment method." in browser.place("cod", postcode="90210").said
    assert offered(review(browser)) == set(GATEWAYS)
    assert "order-received" in browser.place("cod").url
    assert order.see("status", "state", "taken") == ("processing", "cleared", 1)


def test_no_other_plugin_takes_the_notice_away(shop: Shop, browser: Browser) -> None:
    """As plugins for subscriptions do, which offer their own gateways alone."""
    plugin = shop.wp.folder / "wp-content" / "mu-plugins" / "alone.php"
    takes = "unset($gateways['countersign'], $gateways['cod']); return $gateways;"
    plugin.write_text(f"""<?php add_filter('woocommerce_available_payment_gateways',
        static function ($gateways) {{ {takes} }}, 20);""")
    try:
        browser.put_in_cart(shop.product())
        link = browser.place().url
        assert link.startswith(shop.server.url)
        assert offered(browser.back(browser.finish(link))) == {"bacs"}
    finally:
        plugin.unlink()


def test_an_app_reads_that_the_service_is_away(shop: Shop, browser: Browser) -> None:
    order = shop.cleared(browser)
    with shop.without_service():
        answer = pay_by_app(browser, order, "cod")
    assert (answer.status_code, answer.json()["code"]) == (503, "countersign_unavailable")
    assert "Nothing was charged" in answer.json()["message"]
    assert order.see("status", "taken") == ("pending", 0)


_BEGIN = """$order = wc_get_order($id);
    foreach ($shipping as $name => $value) { $order->{"set_shipping_$name"}($value); }
    foreach ($billing as $name => $value) { $order->{"set_billing_$name"}($value); }
    $order->save();
    $gateway = new \\Countersign\\WooCommerce\\Gateway();
    return $gateway->process_payment($id)['result'];"""


def test_a_californian_zip_code_makes_the_residence_unknown(shop: Shop, browser: Browser) -> None:
    """Whatever the state next to it says."""
    order = shop.made()
    truckee = {"state": "NV", "postcode": "96161"}
    shop.settings(residence="billing")
    try:
        shop.wp.php(_BEGIN, id=order.id, shipping=NEVADA, billing=truckee)
        assert order.state == "open"
    finally:
        shop.settings(residence="")


@pytest.mark.parametrize(
    ("residence", "shipping", "billing", "state"),
    [
        ("billing", NEVADA, NEVADA, "not_needed"),
        ("", NEVADA, NEVADA, "open"),
        ("billing", NEVADA, {"state": "CA", "postcode": "94105"}, "open"),
        ("billing", {"state": "NV", "postcode": "90001"}, NEVADA, "open"),
        ("billing", {"state": "CA", "postcode": "94105"}, NEVADA, "open"),
        ("billing", NEVADA, {"country": "CA", "state": "BC", "postcode": "V5K 0A1"}, "open"),
    ],
)
def test_the_shop_determines_where_the_buyer_lives(
    shop: Shop,
    residence: str,
    shipping: dict[str, str],
    billing: dict[str, str],
    state: str,
) -> None:
    """Unknown unless the shop says so, or if either address names California."""
    order = shop.made()
    shop.settings(residence=residence)
    try:
        done = shop.wp.php(_BEGIN, id=order.id, shipping=shipping, billing=billing)
        assert (done, order.state) == ("success", state)
    finally:
        shop.settings(residence="")


def test_a_changed_billing_address_makes_the_order_wait_again(shop: Shop, browser: Browser) -> None:
    """If the shop relied on it; a cleared order relied on nothing."""
    cleared = shop.cleared(browser)
    shop.settings(residence="billing")
    try:
        with_less = shop.made(**NEVADA)
        begin = "(new \\Countersign\\WooCommerce\\Gateway())->process_payment($id); return 1;"
        shop.wp.php(begin, id=with_less.id)
        assert with_less.state == "not_needed"
        move = "$o = wc_get_order($id); $o->set_billing_state('CA'); return $o->save();"
        shop.wp.php(move, id=with_less.id)
        assert (with_less.state, cleared.state) == ("changed", "cleared")
    finally:
        shop.settings(residence="")


def test_the_setting_of_the_residence_says_what_it_means(
    shop: Shop, people: dict[str, Browser]
) -> None:
    place = f"{shop.url}/wp-admin/admin.php?page=countersign"
    staff = people["administrator"]
    page = staff.client.get(place).text
    assert "your shop relies on what the buyer typed there" in page
    before = shop.stored()
    nonce = nonce_in(page.partition("option_page")[2])
    form = {"option_page": "countersign", "action": "update", "_wpnonce": nonce}
    for name, choice in (("residence", "billing"), ("customers", "account")):
        for value, stored in ((choice, choice), ("<b>", choice), ("", "")):
            form[f"countersign_settings[{name}]"] = value
            staff.client.post(f"{shop.url}/wp-admin/options.php", data=form)
            assert shop.stored() == before | {name: stored}


def test_a_customer_who_was_cleared_gives_initials_alone(
    shop: Shop, browser: Browser, people: dict[str, Browser]
) -> None:
    """Where the shop relies on the account; a refused order has an identity check again."""
    customer = people["customer"]
    first = shop.cleared(customer)
    assert first.state == "cleared"
    assert "Identity check" in customer.open(shop.ordered(customer)[1]).text
    shop.settings(customers="account")
    try:
        order, link = shop.ordered(customer)
        assert "Identity check" in browser.open(shop.ordered(browser)[1]).text
        # Whoever asks for the link of an open order, also signed out, gets the same.
        again = "return \\Countersign\\WooCommerce\\Orders::begin(wc_get_order($id));"
        assert shop.wp.php(again, id=order.id) == link
        customer.back(customer.initial(customer.open(link)))
        assert order.state == "cleared"
        assert order.data["buyer"] == first.data["buyer"]
        elsewhere, link = shop.ordered(customer, postcode="90210")
        customer.back(customer.initial(customer.open(link)))
        assert elsewhere.state == "refused"
        assert "Identity check" in customer.open(shop.ordered(customer)[1]).text
    finally:
        shop.settings(customers="")


def test_a_cancelled_order_ends_its_session(shop: Shop, browser: Browser) -> None:
    """No buyer proves an identity for nothing; the order can be begun again."""
    order, link = shop.ordered(browser)
    first = order.data["session"]
    order.set_status("cancelled")
    assert shop.client.checkout_sessions.retrieve(first).status == "cancelled"
    assert order.see("status", "state") == ("cancelled", "cancelled")
    order.set_status("pending")
    assert browser.lead(order.url) != link


REFUND = "wc_get_order($id)->update_status('refunded');"
TRASH, DELETE = "wc_get_order($id)->delete(false);", "wc_get_order($id)->delete(true);"


@pytest.mark.parametrize(
    ("end", "tables"),
    [
        *((end, tables) for end in (REFUND, TRASH, DELETE) for tables in ("yes", "no")),
        ("wp_trash_post($id);", "no"),
        ("wp_delete_post($id, true);", "no"),
    ],
)
def test_an_order_that_is_no_longer_wanted_ends_its_session(
    shop: Shop, browser: Browser, end: str, tables: str
) -> None:
    """Refunded, put into the trash or deleted, by either kind of storage; a copy ends none."""
    with shop.options({"tests_tables": tables}):
        order, _ = shop.ordered(browser)
        session = order.data["session"]
        copy = shop.copied(order)
        shop.wp.php(f"{end} return 1;", id=copy.id)
        assert shop.client.checkout_sessions.retrieve(session).status == "open"
        shop.wp.php(f"{end} return 1;", id=order.id)
        assert shop.client.checkout_sessions.retrieve(session).status == "cancelled"


def test_an_order_is_cancelled_while_the_service_is_away(shop: Shop, browser: Browser) -> None:
    order, _ = shop.ordered(browser)
    with shop.without_service():
        order.set_status("cancelled")
    assert order.see("status", "state") == ("cancelled", "open")


def test_the_session_for_another_address_is_ended(shop: Shop, browser: Browser) -> None:
    """Also if the buyer then goes back to the first address."""
    order, link = shop.ordered(browser)
    first = order.data["session"]
    second = browser.place(postcode="90210").url
    assert shop.client.checkout_sessions.retrieve(first).status == "cancelled"
    third = browser.place().url
    assert len({link, second, third}) == 3
    now = shop.client.checkout_sessions.retrieve(order.data["session"])
    assert (now.status, order.state) == ("open", "open")


def test_a_phone_that_did_not_order_is_asked_for_the_address(shop: Shop, browser: Browser) -> None:
    """WooCommerce asks for it if an order is older than ten minutes; then the phone may pay."""
    order = shop.cleared(browser)
    age = "$o = wc_get_order($id); $o->set_date_created(time() - 1800); return $o->save();"
    shop.wp.php(age, id=order.id)
    phone = shop.browser()
    with phone.client:
        page = phone.client.get(order.url).text
        assert ("verify the email address" in page, offered(page)) == (True, set())
        form = {"email": "jo@example.com", "check_submission": nonce_in(page, "check_submission")}
        page = phone.client.post(order.url, data=form).text
        assert "cod" in offered(page)
        assert "order has been received" in phone.pay_on(page, order.url)


def test_an_order_without_a_shipping_address_is_refused_in_words_for_it(
    shop: Shop, browser: Browser
) -> None:
    """There is no field for an address."""
    code = """$p = new WC_Product_Simple(); $p->set_name('V'); $p->set_regular_price('1');
        $p->set_virtual(true); $p->update_meta_data('_countersign_class', 'accessory');
        return $p->save();"""
    browser.put_in_cart(shop.wp.php(code))
    said = browser.place().said
    assert "this order has none" in said
    assert "please enter one" not in said


def test_a_bank_transfer_of_a_revoked_buyer_is_reported(shop: Shop, browser: Browser) -> None:
    """The order waits anyway: its notes and a mail to the shop say that it is refused."""
    order = shop.cleared(browser)
    browser.pay(order.url, "bacs")
    with sending(shop) as sent:
        shop.client.sandbox.move_buyer(cbid=order.data["buyer"], status="revoked")
        wait_until(lambda: order.state == "refused", "the webhook")
        subject = f"Do not ship order #{order.id}"
        wait_until(lambda: any(subject == one[1] for one in mails(shop)), "the mail")
    assert order.status == "on-hold"
    assert "Do not ship" in order.notes
    assert [one[1] for one in sent].count(subject) == 1
