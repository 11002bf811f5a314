"""What worked once does not count: a refused key, a silent webhook, a wrong secret are told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from countersign_client.testing import webhook_message
from tests.woocommerce.conftest import Browser, Shop
from tests.woocommerce.test_history import mails, sending
from tests.woocommerce.test_set_up import CHECKS

pytestmark = [pytest.mark.shops, pytest.mark.long, pytest.mark.one_engine]

HOURLY = "do_action('countersign_catch_up'); return 1;"
LATE = """add_filter('http_response', static function ($response, $options, $url) {
        if (false !== strpos($url, '/v1/events?')) {
            $list = json_decode($response['body'], true);
            foreach ($list['data'] as &$event) {
                $event['created_at'] = gmdate('Y-m-d\\TH:i:s\\Z', time() - 301);
            }
            $response['body'] = wp_json_encode($list);
        }
        return $response;
    }, 10, 3);"""
"""The hourly task reads events that are five minutes old."""


@pytest.fixture(autouse=True)
def _as_new(shop: Shop) -> Iterator[None]:
    """What is known of the shop's health is as before afterwards."""
    with shop.options({"countersign_health": None, "countersign_events_after": None}):
        shop.wp.php(HOURLY)
        # What other tests kept from this shop is not missed here.
        shop.wp.php("return delete_option('countersign_health');")
        yield


def _age(shop: Shop, **facts: int) -> None:
    """As if this had been so many seconds ago."""
    code = """$known = (array) get_option('countersign_health', array());
        foreach ($facts as $name => $ago) { $known[$name] = time() - $ago; }
        return update_option('countersign_health', $known);"""
    shop.wp.php(code, facts=facts)


def _missed(shop: Shop, browser: Browser) -> None:
    """An event that no message brought, read by the hourly task."""
    _age(shop, heard=86_400, connected=90_000)
    with shop.without_webhooks():
        shop.cleared(browser, returns=False)
        shop.wp.php(LATE + HOURLY)


def _notices(shop: Shop, people: dict[str, Browser], path: str) -> str:
    return people["shop_manager"].client.get(f"{shop.url}/wp-admin/{path}").text


def test_a_refused_key_is_told_where_staff_look(
    shop: Shop, browser: Browser, people: dict[str, Browser]
) -> None:
    """By the order's note, in the admin, and by a mail to the shop once a day, until it works."""
    browser.put_in_cart(shop.product())
    shop.settings(api_key="csign_sk_test_wrong")
    try:
        assert "Nothing was charged" in browser.place().said
        assert "does not know the key" in shop.newest().notes
        for page in ("", "admin.php?page=wc-orders"):
            assert "No product with a class can be sold" in _notices(shop, people, page)
        with sending(shop) as sent:
            for _ in range(2):
                shop.wp.php(HOURLY)
        [(to, subject, words)] = sent
        assert (to, subject) == ("admin@example.com", "Countersign does not work in your shop")
        assert "does not know the key" in words
        _age(shop, mailed=86_400)
        with sending(shop) as again:
            shop.wp.php(HOURLY)
        assert len(again) == 1
    finally:
        shop.settings(api_key=shop.key)
    shop.wp.php(HOURLY)
    assert "No product with a class" not in _notices(shop, people, "")


def test_a_service_that_is_away_for_an_hour_is_told(shop: Shop, people: dict[str, Browser]) -> None:
    with shop.without_service():
        shop.wp.php(HOURLY)
        assert "does not respond" not in _notices(shop, people, "")
        _age(shop, since=3601)
        assert "does not respond" in _notices(shop, people, "")


def test_a_webhook_that_brings_nothing_is_told(
    shop: Shop, browser: Browser, people: dict[str, Browser]
) -> None:
    """The hourly task finds what it should have brought; silence while nothing happens is none."""
    _age(shop, heard=40 * 86_400, connected=50 * 86_400)
    assert shop.wp.php(CHECKS)["webhook"]["state"] == "good"
    with sending(shop) as sent:
        _missed(shop, browser)
    webhook = shop.wp.php(CHECKS)["webhook"]
    assert (webhook["state"], "do not come" in webhook["words"]) == ("todo", True)
    assert "Messages of the service do not come" in _notices(shop, people, "")
    assert [one[1] for one in sent].count("Countersign does not work in your shop") == 1
    body, headers = webhook_message("x", {}, secret=shop.secret)
    assert shop.deliver(body, headers) == 204
    assert shop.wp.php(CHECKS)["webhook"]["state"] == "good"
    assert "do not come" not in _notices(shop, people, "")


def test_a_secret_that_does_not_fit_is_told(
    shop: Shop, browser: Browser, people: dict[str, Browser]
) -> None:
    """A stranger's message alone is in the set-up check, and alarms nobody."""
    _age(shop, heard=60, connected=90_000)
    assert shop.deliver(*webhook_message("x", {})) == 400
    webhook = shop.wp.php(CHECKS)["webhook"]
    assert (webhook["state"], "did not fit" in webhook["words"]) == ("watch", True)
    before = len(mails(shop))
    shop.wp.php(HOURLY)
    assert len(mails(shop)) == before
    assert "do not fit" not in _notices(shop, people, "")
    _missed(shop, browser)
    assert "do not fit the webhook secret" in shop.wp.php(CHECKS)["webhook"]["words"]
    assert "do not fit the webhook secret" in _notices(shop, people, "")
