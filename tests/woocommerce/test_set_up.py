"""The staff's view before the first order: WooCommerce's pages, the set-up check, commands."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import pytest

from countersign_client.testing import webhook_message
from tests.cli.serving import wait_until
from tests.woocommerce.conftest import Browser, Shop, nonce_in
from tests.woocommerce.wordpress import MAIN

pytestmark = [pytest.mark.shops, pytest.mark.long, pytest.mark.one_engine]
CHECKS = r"return \Countersign\WooCommerce\Health::checks();"
AS_ADMIN = "wp_set_current_user(get_user_by('login', 'a_administrator')->ID);"


def states(shop: Shop) -> dict[str, str]:
    return {name: one["state"] for name, one in shop.wp.php(CHECKS).items()}


def test_woocommerce_says_that_it_is_on(shop: Shop) -> None:
    """Whatever was stored of a switch; with a test key its list says so, and *Manage* leads on."""
    ask = (
        AS_ADMIN
        + """$request = new WP_REST_Request($method, '/wc/v3/payment_gateways/countersign');
        $request->set_body_params(array('enabled' => false));
        return rest_do_request($request)->get_data()['enabled'];"""
    )
    assert [shop.wp.php(ask, method=one) for one in ("PUT", "GET")] == [True, True]
    details = r"""use \Automattic\WooCommerce\Internal\Admin\Settings\PaymentsProviders;
        $provider = new PaymentsProviders\PaymentGateway();
        $gateways = WC()->payment_gateways()->payment_gateways();
        $made = $provider->get_details($gateways['countersign']);
        return array($made['state'], $made['management']['_links']['settings']['href']);"""
    state, href = shop.wp.php(details)
    assert (state["enabled"], state["test_mode"], state["needs_setup"]) == (True, True, False)
    assert href == f"{shop.url}/wp-admin/admin.php?page=countersign"
    stored = shop.stored()
    shop.settings(api_key="")
    assert shop.wp.php(details)[0]["needs_setup"] is True
    shop.settings(**stored)


def test_a_crashed_database_is_started_again(shop: Shop) -> None:
    """Or each later test in this shop would fail with it."""
    backstage = shop.wp.folder.parent
    crashed = (backstage / "pid").read_text()
    os.kill(int(crashed), signal.SIGSEGV)
    wait_until(lambda: (backstage / "pid").read_text() not in {crashed, ""}, "another process")
    wait_until(lambda: httpx2.get(shop.url, timeout=60).status_code == 200, "the shop's answer")


def test_every_switch_has_an_effect(shop: Shop, people: dict[str, Browser]) -> None:
    """WooCommerce's request for one is answered with the way to the settings."""
    staff = people["administrator"].client
    nonce = shop.wp.php_as(
        staff.cookies, "return wp_create_nonce('woocommerce-toggle-payment-gateway-enabled');"
    )
    form = {"action": "woocommerce_toggle_gateway_enabled", "security": nonce}
    url = f"{shop.url}/wp-admin/admin-ajax.php"
    done = staff.post(url, data=form | {"gateway_id": "countersign"}).json()
    assert done == {"success": False, "data": "needs_setup"}
    # WooCommerce redirects new users to other pages first.
    staff.get(f"{shop.url}/wp-admin/")
    section = f"{shop.url}/wp-admin/admin.php?page=wc-settings&tab=checkout&section=countersign"
    page = staff.get(section).text
    assert f"{shop.url}/wp-admin/admin.php?page=countersign" in page
    assert "woocommerce-save-button" not in page


def test_the_settings_are_where_staff_look(shop: Shop, people: dict[str, Browser]) -> None:
    """A link in the list of plugins, and a page in WooCommerce's menu."""
    staff = people["administrator"].client
    page = staff.get(f"{shop.url}/wp-admin/plugins.php").text
    row = page.partition(f'data-plugin="{MAIN}"')[2].partition("</tr>")[0]
    assert f'href="{shop.url}/wp-admin/admin.php?page=countersign">Settings' in row
    compatible = r"""return \Automattic\WooCommerce\Utilities\FeaturesUtil::
        get_compatible_plugins_for_feature($feature);"""
    for feature in ("cart_checkout_blocks", "custom_order_tables"):
        assert MAIN in shop.wp.php(compatible, feature=feature)["compatible"]


def test_the_set_up_check_names_what_is_missing(shop: Shop) -> None:
    shop.product()
    good = states(shop)
    assert good == {
        "connection": "watch",
        "notice": "good",
        "webhook": good["webhook"],
        "tasks": "good",
        "class": "good",
        "payment": "good",
    }
    stored = shop.stored()
    shop.settings(webhook_secret="", api_key="csign_sk_test_wrong")
    try:
        checks = shop.wp.php(CHECKS)
        assert (checks["connection"]["state"], checks["webhook"]["state"]) == ("todo", "todo")
        assert "does not know the key" in checks["connection"]["words"]
        none = """add_filter('pre_get_scheduled_event', static function ($found, $hook) {
                return 'countersign_catch_up' === $hook ? false : $found;
            }, 10, 2);
            foreach (WC()->payment_gateways()->payment_gateways() as $one) {
                if ('countersign' !== $one->id) { $one->enabled = 'no'; }
            }"""
        assert shop.wp.php(none + CHECKS)["payment"]["state"] == "todo"
        assert shop.wp.php(none + CHECKS)["tasks"]["state"] == "watch"
    finally:
        shop.settings(**stored)
    with shop.without_service():
        assert "does not respond" in shop.wp.php(CHECKS)["connection"]["words"]


def test_the_set_up_check_says_what_becomes_of_express_buttons(shop: Shop) -> None:
    """If the shop has a gateway that could show one."""
    other = """$gateways = WC()->payment_gateways(); $one = new WC_Gateway_Paypal();
        $one->id = 'other'; $one->enabled = 'yes'; $gateways->payment_gateways[] = $one;"""
    said = [shop.wp.php(code + CHECKS)["payment"]["words"] for code in ("", other)]
    assert ["express buttons are hidden" in words for words in said] == [False, True]


@contextmanager
def unconnected(shop: Shop) -> Iterator[None]:
    """The webhook is not connected yet; changes of the test are undone."""
    stored = shop.stored()
    shop.settings(webhook_secret="")
    shop.wp.php("delete_option('countersign_health'); return 1;")
    try:
        yield
    finally:
        shop.settings(**stored)


def test_one_press_connects_the_webhook(shop: Shop, people: dict[str, Browser]) -> None:
    """The endpoint of this shop gets a secret, which the shop stores, and an example comes."""
    staff = people["administrator"].client
    place, url = f"{shop.url}/wp-admin/admin.php", f"{shop.url}/wp-admin/admin-post.php"
    with unconnected(shop):
        page = staff.get(place, params={"page": "countersign"}).text
        form = {"action": "countersign_connect"}
        form["_wpnonce"] = nonce_in(page.partition("countersign_connect")[2])
        assert staff.post(url, data=form | {"_wpnonce": "0"}).status_code == 403
        done = staff.post(url, data=form).text
        assert 'data-check="webhook" data-state="good"' in done
        secret = shop.stored()["webhook_secret"]
        assert secret not in done
        assert shop.deliver(*webhook_message("x", {}, secret=secret)) == 204
        with shop.without_service():
            assert "the service does not respond" in staff.post(url, data=form).text
    assert len([*shop.client.webhook_endpoints.list()]) == 1


def test_only_administrators_connect_it(shop: Shop, people: dict[str, Browser]) -> None:
    staff = people["shop_manager"].client
    nonce = shop.wp.php_as(staff.cookies, "return wp_create_nonce('countersign_connect');")
    form = {"action": "countersign_connect", "_wpnonce": nonce}
    done = staff.post(f"{shop.url}/wp-admin/admin-post.php", data=form)
    assert done.status_code == 403


def test_staff_are_warned_where_they_look(shop: Shop, people: dict[str, Browser]) -> None:
    """Of a test key and of an unfinished shop: not on every page, and not on a copy."""
    staff = people["administrator"].client
    orders, posts = f"{shop.url}/wp-admin/", f"{shop.url}/wp-admin/edit.php"
    # The shop of the tests is `local`.
    assert "Countersign has a test key" not in staff.get(orders).text
    stored = shop.stored()
    shop.settings(api_key="")
    try:
        assert "Countersign is not set up" in staff.get(orders).text
        assert "Countersign is not set up" not in staff.get(posts).text
    finally:
        shop.settings(**stored)


def test_site_health_and_the_status_page_have_the_checks(
    shop: Shop, people: dict[str, Browser]
) -> None:
    test = """$tests = apply_filters('site_status_tests', array('direct' => array()));
        return call_user_func($tests['direct']['countersign']['test']);"""
    assert shop.wp.php(test)["status"] == "recommended"
    with shop.without_service():
        found = shop.wp.php(test)
        assert (found["status"], "does not respond" in found["description"]) == ("critical", True)
    page = people["administrator"].client.get(f"{shop.url}/wp-admin/admin.php?page=wc-status").text
    lines = page.partition('data-export-label="Countersign"')[2].partition("</table>")[0]
    assert set(re.findall(r'<td data-export-label="(\w+)"', lines)) == {
        *("Connection", "Notice", "Webhook", "Tasks", "Class", "Payment")
    }


@pytest.mark.parametrize(
    ("locale", "word"), [("es_ES", "Autorizado"), ("es_MX", "Autorizado"), ("fr_FR", "Cleared")]
)
def test_spanish_is_spoken_in_all_countries(shop: Shop, locale: str, word: str) -> None:
    code = r"""add_filter('locale', static function () use ($locale) { return $locale; });
        $domain = 'countersign-woocommerce'; unload_textdomain($domain, true);
        load_plugin_textdomain($domain, false, "$domain/languages");
        return \Countersign\WooCommerce\Words::state('cleared');"""
    assert shop.wp.php(code, locale=locale) == word


def test_words_replace_codes(shop: Shop) -> None:
    """An unknown code of a later service is shown as it is."""
    code = r"""return array(
        \Countersign\WooCommerce\Words::reasons(array('buyer_revoked', 'of_2030')),
        \Countersign\WooCommerce\Words::classes(array('firearm_accessory')),
        \Countersign\WooCommerce\Words::obligation(array('type' => 'adult_signature')),
        \Countersign\WooCommerce\Words::obligation(array('type' => 'of_2030', 'text' => 'do it')),
        \Countersign\WooCommerce\Words::state('of_2030'));"""
    assert shop.wp.php(code) == [
        "the verification of the buyer was revoked, of_2030",
        "Firearm accessory",
        "Hand it over only against the signature of an adult",
        "of_2030: do it",
        "of_2030",
    ]


_COMMANDS = r"""
class WP_CLI {
    public static $said = array();
    public static function line($text) { self::$said[] = $text; }
    public static function warning($text) { self::$said[] = 'warning: ' . $text; }
    public static function error($text) {
        self::$said[] = 'error: ' . $text;
        wp_send_json(array('returned' => self::$said));
    }
}
require_once WP_PLUGIN_DIR . '/countersign-woocommerce/includes/command.php';
$command = new \Countersign\WooCommerce\Command();
$command->$name($arguments, $options);
return WP_CLI::$said;"""


def test_commands_look_after_orders(shop: Shop, browser: Browser) -> None:
    """A stand-in for WP-CLI prints their output."""
    order, _ = shop.ordered(browser)

    def run(name: str, *arguments: object, **options: str) -> list[str]:
        given = {"name": name, "arguments": [str(one) for one in arguments], "options": options}
        return list(shop.wp.php(_COMMANDS, **given))

    assert f"{order.id}\topen" in run("orders", "waiting")
    assert json.loads(run("orders", "waiting", format="json")[0])[str(order.id)] == "open"
    assert run("orders", "foo") == [
        "error: There are waiting, refused, cleared and overridden orders."
    ]
    nobody, failed = run("ask", 999_999)
    assert ("there is no such order" in nobody, failed[:6]) == (True, "error:")
    with shop.without_service():
        assert "does not respond" in run("ask", order.id)[0]
        assert run("check")[-1] == "error: Something is missing."
    shop.client.checkout_sessions.cancel(order.data["session"])
    assert run("ask", order.id) == [f"{order.id}\tcancelled"]
    assert not [line for line in run("check") if line.startswith("error")]
    assert run("catch_up") == []


def test_the_class_is_given_in_the_list_of_products(shop: Shop, people: dict[str, Browser]) -> None:
    """One by one, or several at once; saving something else leaves it as it is."""
    staff, first, second = people["shop_manager"].client, shop.new_product(""), shop.new_product("")
    of = r"return \Countersign\WooCommerce\Products::classes_of(array($id));"
    page = staff.get(f"{shop.url}/wp-admin/edit.php?post_type=product").text
    assert "Countersign class" in page
    inline = {
        "action": "inline-save",
        "_inline_edit": nonce_in(page, "_inline_edit"),
        "woocommerce_quick_edit_nonce": nonce_in(page, "woocommerce_quick_edit_nonce"),
        "woocommerce_quick_edit": "1",
        "post_type": "product",
        "post_ID": str(first),
        "post_title": "P",
        "_status": "publish",
        "post_view": "list",
        "screen": "edit-product",
    }
    ajax = f"{shop.url}/wp-admin/admin-ajax.php"
    row = staff.post(ajax, data=inline | {"_countersign_class": "firearm_accessory"}).text
    assert (shop.wp.php(of, id=first), "Firearm accessory" in row) == (["firearm_accessory"], True)
    for kept in ("-", "<b>"):
        staff.post(ajax, data=inline | {"_countersign_class": kept})
        assert shop.wp.php(of, id=first) == ["firearm_accessory"]
    bulk = {
        "post_type": "product",
        "action": "edit",
        "bulk_edit": "Update",
        "_wpnonce": nonce_in(page),
        "woocommerce_quick_edit_nonce": inline["woocommerce_quick_edit_nonce"],
        "woocommerce_bulk_edit": "1",
        "post[]": [str(first), str(second)],
        "_status": "-1",
        "change_stock": "",
        "_countersign_class": "accessory",
    }
    staff.get(f"{shop.url}/wp-admin/edit.php", params=bulk)
    assert [shop.wp.php(of, id=one) for one in (first, second)] == [["accessory"]] * 2


def test_the_payment_page_of_older_shops_says_the_same(old_shop: Shop) -> None:
    """Before WooCommerce had a list of providers, it showed the gateway's own text."""
    code = """$gateway = WC()->payment_gateways()->payment_gateways()['countersign'];
        $gateway->init_settings(); ob_start(); $gateway->admin_options();
        return array($gateway->enabled, ob_get_clean());"""
    enabled, page = old_shop.wp.php(code)
    assert (enabled, "page=countersign" in page) == ("yes", True)
    assert states(old_shop)["connection"] == "watch"
