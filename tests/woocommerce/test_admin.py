"""The pages of the admin: settings, classes of products, the box of an order."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

import httpx2
import pytest

from tests.woocommerce.conftest import Browser, Order, Shop, nonce_in

pytestmark = [pytest.mark.shops, pytest.mark.long, pytest.mark.one_engine]


def test_settings_are_stored_by_their_page(shop: Shop, people: dict[str, Browser]) -> None:
    """Secrets are never shown, and a key is not sent to another address than it was entered for."""
    staff, place = people["administrator"], f"{shop.url}/wp-admin/admin.php"
    before = shop.stored()
    page = staff.client.get(place, params={"page": "countersign"}).text
    assert shop.key not in page
    assert shop.secret not in page
    assert shop.server.url in page

    def send(**changed: str) -> str:
        fields = {f"countersign_settings[{name}]": value for name, value in changed.items()}
        nonce = nonce_in(page.partition("option_page")[2])
        form = {"option_page": "countersign", "action": "update", "_wpnonce": nonce}
        form["_wp_http_referer"] = "/wp-admin/admin.php?page=countersign"
        return staff.client.post(f"{shop.url}/wp-admin/options.php", data=form | fields).text

    same = shop.server.url
    send(base_url=same, api_key="", webhook_secret="")
    assert shop.stored() == before
    for unsafe in (
        "http://shop.example",
        "ftp://127.0.0.1",
        "https://u:p@x.example",
        "http://[::1]@x.example",
    ):
        assert "has to begin with https://" in send(base_url=unsafe)
    assert "This is no API key" in send(base_url=same, api_key="sk_live_x")
    assert shop.stored() == before
    send(base_url="https://elsewhere.example")
    assert shop.stored()["api_key"] == ""
    send(base_url=same, api_key=shop.key)
    assert shop.stored() == before


def test_the_connection_is_checked(shop: Shop, people: dict[str, Browser]) -> None:
    """Whenever the page is opened, in words."""
    staff, place = people["administrator"], f"{shop.url}/wp-admin/admin.php?page=countersign"
    page = staff.client.get(place).text
    assert "The service responds, and knows the key. It is a test key" in page
    with shop.without_service():
        assert "It does not work: the service does not respond" in staff.client.get(place).text
    shop.settings(api_key="csign_sk_test_wrong")
    assert "(invalid_api_key)" in staff.client.get(place).text
    shop.settings(api_key=shop.key)
    assert "<script>x" not in staff.client.get(f"{place}&failed=<script>x</script>").text


def test_constants_override_stored_settings(shop: Shop) -> None:
    code = r"""define('COUNTERSIGN_BASE_URL', 'http://shop.example');
        ob_start(); \Countersign\WooCommerce\Settings_Page::show_field(array('name' => 'base_url'));
        try { \Countersign\WooCommerce\Client::get('/v1/notices'); $error = ''; }
        catch (\Countersign\WooCommerce\Service_Error $refused) { $error = $refused->reason; }
        return array(ob_get_clean(), $error);"""
    assert shop.wp.php(code) == ["Set in wp-config.php", "not_configured"]


def test_products_have_a_class_of_their_own(shop: Shop, people: dict[str, Browser]) -> None:
    staff, product = people["shop_manager"], shop.new_product("")
    place = f"{shop.url}/wp-admin/post.php"
    page = staff.client.get(place, params={"post": product, "action": "edit"}).text
    form = {
        "post_ID": str(product),
        "action": "editpost",
        "post_type": "product",
        "_wpnonce": nonce_in(page),
        "woocommerce_meta_nonce": nonce_in(page, "woocommerce_meta_nonce"),
        "countersign_class_nonce": nonce_in(page, "countersign_class_nonce"),
        "_countersign_class": "manufacturing_machine",
    }
    of = r"return \Countersign\WooCommerce\Products::classes_of(array($id));"
    staff.client.post(place, data=form | {"countersign_class_nonce": "0"})
    assert shop.wp.php(of, id=product) == []
    staff.client.post(place, data=form | {"_countersign_class": "<b>"})
    assert shop.wp.php(of, id=product) == []
    staff.client.post(place, data=form)
    assert shop.wp.php(of, id=product) == ["manufacturing_machine"]


def test_products_have_the_class_of_their_categories(
    shop: Shop, people: dict[str, Browser]
) -> None:
    """And of parent categories, unless they have their own."""
    make = """$top = wp_insert_term('Top', 'product_cat')['term_id'];
        $low = wp_insert_term('Low', 'product_cat', array('parent' => $top))['term_id'];
        wp_set_object_terms($id, array($low), 'product_cat'); return $top;"""
    product = shop.new_product("")
    top = int(shop.wp.php(make, id=product))
    staff, place = people["shop_manager"], f"{shop.url}/wp-admin/term.php"
    about = {"taxonomy": "product_cat", "tag_ID": str(top), "post_type": "product"}
    page = staff.client.get(place, params=about).text
    form = about | {
        "action": "editedtag",
        "name": "Top",
        "_wpnonce": nonce_in(page),
        "countersign_class_nonce": nonce_in(page, "countersign_class_nonce"),
        "_countersign_class": "accessory",
    }
    of = r"return \Countersign\WooCommerce\Products::classes_of(array($id));"
    staff.client.post(
        f"{shop.url}/wp-admin/edit-tags.php", data=form | {"countersign_class_nonce": "0"}
    )
    assert shop.wp.php(of, id=product) == []
    staff.client.post(f"{shop.url}/wp-admin/edit-tags.php", data=form)
    assert shop.wp.php(of, id=product) == ["accessory"]
    shop.wp.php("update_post_meta($id, '_countersign_class', 'barrel'); return 1;", id=product)
    assert shop.wp.php(of, id=product) == ["barrel"]


@dataclass(frozen=True)
class Box:
    """The box on the page of an order, as somebody sees it."""

    staff: Browser
    order: Order

    @property
    def text(self) -> str:
        code = "return wc_get_order($id)->get_edit_order_url();"
        return self.staff.client.get(self.order.wp.php(code, id=self.order.id)).text

    def do(self, what: str, nonce: str | None = None, **fields: str) -> httpx2.Response:
        if nonce is None:
            nonce = nonce_in(self.text.partition('<form id="countersign-order-form"')[2])
        form = {"action": "countersign_order", "order_id": str(self.order.id), "do": what}
        url = f"{self.order.wp.url}/wp-admin/admin-post.php"
        return self.staff.client.post(url, data=form | {"_wpnonce": nonce} | fields)


def test_the_box_of_an_order_shows_the_decision(
    shop: Shop, browser: Browser, people: dict[str, Browser]
) -> None:
    """Evidence is downloaded, and the fulfilment reported, with the key of the shop."""
    order = shop.cleared(browser)
    browser.pay(order.url)
    box, data = Box(people["shop_manager"], order), order.data
    page = box.text
    for shown in (
        data["session"],
        data["ack"],
        data["buyer"],
        data["clearance"],
        "Send it only to",
    ):
        assert shown in page
    assert shop.key not in page
    links = re.findall(r'href="([^"]+kind=(\w+)[^"]*)"', page)
    files = {kind: box.staff.client.get(html.unescape(url)) for url, kind in links}
    assert {kind: got.content[:2] for kind, got in files.items()} == {
        "certificate": b"%P",
        "dossier": b"PK",
    }
    assert files["dossier"].headers["content-disposition"].endswith('-dossier.zip"')
    assert "nothing_to_report" in str(box.do("report").url)
    done = box.do("report", carrier="UPS", tracking_number="1Z<script>")
    assert "countersign=reported" in str(done.url)
    kept = shop.client.clearances.retrieve(data["clearance"])
    assert [one.tracking_number for one in kept.fulfilments] == ["1Z"]
    assert order.data["closed"]
    order.set_status("completed")
    assert order.status == "completed"


def test_a_fulfilment_is_not_reported_for_a_buyer_who_was_revoked(
    shop: Shop, browser: Browser, people: dict[str, Browser]
) -> None:
    order = shop.cleared(browser)
    browser.pay(order.url)
    box = Box(people["shop_manager"], order)
    page = box.text
    nonce = nonce_in(page.partition('<form id="countersign-order-form"')[2])
    with shop.without_webhooks():
        shop.client.sandbox.move_buyer(cbid=order.data["buyer"], status="revoked")
        assert "not_cleared" in str(box.do("report", nonce, carrier="UPS").url)
    assert order.see("status", "state") == ("on-hold", "refused")
    shop.client.sandbox.move_buyer(cbid=order.data["buyer"], status="verified")
    assert "countersign=asked" in str(box.do("decide").url)
    assert order.state == "cleared"


def test_only_people_who_may_edit_orders_can_use_the_box(
    shop: Shop, browser: Browser, people: dict[str, Browser]
) -> None:
    """Not customers with their own nonce, not visitors, and not forms of other pages."""
    order = shop.cleared(browser)
    box = Box(people["shop_manager"], order)
    nonce = nonce_in(box.text.partition('<form id="countersign-order-form"')[2])
    before, url = order.data, f"{shop.url}/wp-admin/admin-post.php"

    def nonce_of(person: str, action: str) -> str:
        signed_in = people[person].client.cookies
        return str(shop.wp.php_as(signed_in, "return wp_create_nonce($action);", action=action))

    assert nonce_of("shop_manager", f"countersign_order{order.id}") == nonce
    own = nonce_of("customer", f"countersign_order{order.id}")
    for refused in (
        Box(people["customer"], order).do("report", own, carrier="UPS"),
        box.do("report", "0", carrier="UPS"),
        box.do("report", nonce_of("shop_manager", "countersign_order1"), carrier="UPS"),
    ):
        assert refused.status_code == 403
    assert "countersign=" not in str(Box(browser, order).do("report", nonce, carrier="UPS").url)
    fetch = {"action": "countersign_evidence", "order_id": str(order.id), "kind": "dossier"}
    own = nonce_of("customer", f"countersign_evidence{order.id}")
    for person, given in (("shop_manager", ""), ("shop_manager", nonce), ("customer", own)):
        got = people[person].client.get(url, params=fetch | {"_wpnonce": given})
        assert got.status_code == 403
    settings = f"{shop.url}/wp-admin/admin.php?page=countersign"
    assert people["shop_manager"].client.get(settings).status_code == 403
    assert order.data == before


def test_no_name_becomes_a_script(shop: Shop, browser: Browser, people: dict[str, Browser]) -> None:
    """Neither a buyer's text nor a service's."""
    evil = "\"'><script>alert(1)</script>"
    order = shop.cleared(browser, first_name=evil)
    code = """$order = wc_get_order($id); $data = $order->get_meta('_countersign');
        foreach (array('session', 'ack', 'buyer', 'clearance') as $name) { $data[$name] = $evil; }
        $data['reasons'] = array($evil);
        $data['obligations'] = array(array('type' => 'x', 'text' => $evil));
        $order->update_meta_data('_countersign', $data); $order->save(); return 1;"""
    shop.wp.php(code, id=order.id, evil=evil)
    box = Box(people["shop_manager"], order)
    assert "&lt;script&gt;alert(1)" in box.text
    assert "<script>alert(1)" not in box.text
    assert "<script>alert(1)" not in browser.client.get(f"{order.url}&checked={evil}").text


def test_without_woocommerce_the_plugin_says_so(shop: Shop, people: dict[str, Browser]) -> None:
    change = (
        "$all = get_option('active_plugins'); update_option('active_plugins', $new); return $all;"
    )
    own = ["countersign-woocommerce/countersign-woocommerce.php"]
    before = shop.wp.php(change, new=own)
    try:
        page = people["administrator"].client.get(f"{shop.url}/wp-admin/").text
    finally:
        shop.wp.php(change, new=before)
    assert "Countersign needs WooCommerce" in page


def test_secrets_are_removed_with_the_plugin(shop: Shop) -> None:
    """Classes stay: the same products are gated again after another installation."""
    product = shop.product()
    before = shop.stored()
    code = """define('WP_UNINSTALL_PLUGIN', 'x');
        include WP_PLUGIN_DIR . '/countersign-woocommerce/uninstall.php';
        $kept = get_option('countersign_settings');
        update_option('countersign_settings', $before);
        return array($kept, get_post_meta($id, '_countersign_class', true));"""
    assert shop.wp.php(code, id=product, before=before) == [False, "accessory"]
