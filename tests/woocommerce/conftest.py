"""A shop with the plugin, and a Countersign for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2
import pytest

from countersign_client import Countersign
from countersign_client.types import EventType
from tests.checkout.surfer import Page
from tests.clients.conftest import SCOPES, running_place
from tests.clients.proxy import Proxy
from tests.storefront.shopper import Shopper
from tests.support.service import Server, free_port
from tests.woocommerce.wordpress import WordPress, running_wordpress

ADDRESS: Final = {
    "shipping_country": "US",
    "shipping_state": "CA",
    "shipping_postcode": "94105",
    "shipping_first_name": "Jo",
    "billing_email": "jo@example.com",
}
EVENTS: Final[Sequence[EventType]] = [
    "buyer.expired",
    "buyer.failed",
    "buyer.requires_input",
    "buyer.revoked",
    "buyer.verified",
    "checkout_session.completed",
    "checkout_session.declined",
    "checkout_session.expired",
]
"""As docs/woocommerce.md says."""
_NONCE: Final = 'name="{}" value="([0-9a-f]+)"'


def nonce_in(page: str, name: str = "_wpnonce") -> str:
    """The nonce of a form."""
    found = re.search(_NONCE.format(re.escape(name)), page)
    assert found is not None, page
    return found[1]


class Browser(Shopper):
    """A buyer, or somebody of the shop."""

    _nonce = ""

    def place(self, payment: str = "countersign", **address: str) -> httpx2.Response:
        """Send the form of the checkout; the response is usually a redirect."""
        page = f"{self.shop}/?stub_page=checkout"
        name = "woocommerce-process-checkout-nonce"
        # Good for hours, as that of a page that stays open.
        self._nonce = self._nonce or nonce_in(self.client.get(page).text, name)
        return self.client.post(
            page,
            data={
                **ADDRESS,
                **address,
                "payment_method": payment,
                "woocommerce_checkout_place_order": "1",
                name: self._nonce,
            },
            follow_redirects=False,
        )

    def put_in_cart(self, *products: int) -> None:
        for product in products:
            self.client.get(f"{self.shop}/?add-to-cart={product}")

    def _send_payment(self, url: str, payment: str, *, follow: bool) -> httpx2.Response:
        page = self.client.get(url)
        if "woocommerce-pay-nonce" not in page.text:
            return page
        fields = {"woocommerce_pay": "1", "payment_method": payment}
        fields["woocommerce-pay-nonce"] = nonce_in(page.text, "woocommerce-pay-nonce")
        return self.client.post(url, data=fields, follow_redirects=follow)

    def pay(self, url: str, payment: str = "card") -> str:
        """Send the form of the page where an order is paid; gives what is shown then."""
        return self._send_payment(url, payment, follow=True).text

    def lead(self, url: str) -> str:
        """Choose the notice on that page; gives the link."""
        return self._send_payment(url, "countersign", follow=False).headers["Location"]

    def log_in(self, name: str, password: str) -> None:
        self.client.get(f"{self.shop}/wp-login.php")
        form = {"log": name, "pwd": password, "testcookie": "1"}
        done = self.client.post(f"{self.shop}/wp-login.php", data=form)
        assert "login_error" not in done.text

    def back(self, page: Page) -> str:
        """Follow the link from the service to the shop."""
        (url,) = {url for url in page.links.values() if url.startswith(self.shop)}
        return self.client.get(url).text


_SEEN: Final = r"""
$order = wc_get_order($id);
$notes = get_comments(array('post_id' => $id));
return array(
    'status' => $order->get_status(),
    'state' => \Countersign\WooCommerce\Orders::state($order),
    'data' => \Countersign\WooCommerce\Orders::data($order),
    'captured' => (int) $order->get_meta('_stub_captured'),
    'notes' => implode(chr(10), wp_list_pluck($notes, 'comment_content')),
);"""


@dataclass(frozen=True, kw_only=True)
class Order:
    """An order, as the database of the shop has it."""

    wp: WordPress
    id: int
    url: str
    """Where it is paid; only its buyer knows the key in it."""

    def see(self, *names: str) -> tuple[Any, ...]:
        """What it has now; the money that was taken is `captured`."""
        seen = self.wp.php(_SEEN, id=self.id)
        return tuple(seen[name] for name in names)

    @property
    def status(self) -> str:
        return str(*self.see("status"))

    @property
    def state(self) -> str:
        return str(*self.see("state"))

    @property
    def data(self) -> dict[str, Any]:
        return dict(*self.see("data"))

    @property
    def notes(self) -> str:
        return str(*self.see("notes"))

    def set_status(self, status: str) -> None:
        """As another plugin does, or a gateway's message."""
        self.wp.php("wc_get_order($id)->update_status($to); return 1;", id=self.id, to=status)


@dataclass(frozen=True, kw_only=True)
class Shop:
    """WordPress with the plugin, the service, and a client with every scope."""

    wp: WordPress
    server: Server
    proxy: Proxy
    client: Countersign
    key: str
    secret: str
    products: dict[tuple[str, str], int] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.wp.url

    def new_product(self, product_class: str = "accessory", price: str = "10") -> int:
        code = """$id = wp_insert_post(
                array('post_type' => 'product', 'post_status' => 'publish', 'post_title' => 'P'));
            update_post_meta($id, '_price', $price);
            update_post_meta($id, '_countersign_class', $class);
            return $id;"""
        return int(self.wp.php(code, **{"class": product_class, "price": price}))

    def product(self, product_class: str = "accessory", price: str = "10") -> int:
        """One that no test changes."""
        if (product_class, price) not in self.products:
            self.products[product_class, price] = self.new_product(product_class, price)
        return self.products[product_class, price]

    def browser(self) -> Browser:
        return Browser(self.url)

    def newest(self) -> Order:
        code = """$id = max(get_posts(array('post_type' => 'shop_order', 'fields' => 'ids',
                'numberposts' => -1, 'post_status' => array_keys(wc_get_order_statuses()))));
            return array($id, wc_get_order($id)->get_checkout_payment_url());"""
        id_, url = self.wp.php(code)
        return Order(wp=self.wp, id=id_, url=url)

    def ordered(self, browser: Browser, *, price: str = "10", **address: str) -> tuple[Order, str]:
        """An order that waits for its buyer, and the buyer's link."""
        browser.put_in_cart(self.product(price=price))
        response = browser.place(**address)
        assert response.status_code == 302, response.text
        return self.newest(), response.headers["Location"]

    def cleared(self, browser: Browser, *, returns: bool = True, **how: str) -> Order:
        """An order that its buyer has done all for but the payment."""
        order, link = self.ordered(browser, **how)
        done = browser.initial(browser.identify(browser.open(link)))
        if returns:
            browser.back(done)
        return order

    def settings(self, **changed: str) -> None:
        code = """update_option('countersign_settings', array_merge(
            (array) get_option('countersign_settings', array()), $changed)); return 1;"""
        self.wp.php(code, changed=changed)

    @contextmanager
    def without_service(self) -> Iterator[None]:
        """Nothing listens where the service was."""
        self.settings(base_url=f"http://127.0.0.1:{free_port()}")
        try:
            yield
        finally:
            self.settings(base_url=self.server.url)

    @contextmanager
    def without_webhooks(self) -> Iterator[None]:
        """The service sends nothing meanwhile, and not afterwards either."""
        (endpoint,) = self.client.webhook_endpoints.list()
        self.client.webhook_endpoints.change(endpoint.endpoint_id, disabled=True)
        try:
            yield
        finally:
            self.client.webhook_endpoints.change(endpoint.endpoint_id, disabled=False)

    def deliver(self, body: bytes, headers: dict[str, str]) -> int:
        """Post a message to the webhook; gives the status of the response."""
        url = f"{self.url}/index.php?rest_route=/countersign/v1/webhook"
        return httpx2.post(url, content=body, headers=headers, timeout=30, verify=False).status_code


@pytest.fixture(scope="package")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Run WordPress and the service while the tests of this folder run."""
    folder = tmp_path_factory.mktemp("wp")
    with running_place(folder / "data", None) as place, running_wordpress(folder) as wp:
        key = place.operator.key(place.operator.account(), scopes=SCOPES).token
        with Countersign(api_key=key, base_url=place.server.url) as client:
            url = f"{wp.url}/index.php?rest_route=/countersign/v1/webhook"
            endpoint = client.webhook_endpoints.create(url=url, event_types=EVENTS)
            shop = Shop(
                wp=wp,
                server=place.server,
                proxy=place.proxy,
                client=client,
                key=key,
                secret=endpoint.secret or "",
            )
            shop.settings(base_url=place.server.url, api_key=key, webhook_secret=shop.secret)
            yield shop
            assert wp.complaints() == [], "\n".join(wp.complaints())
