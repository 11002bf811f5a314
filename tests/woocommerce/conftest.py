"""A shop with the plugin, and a Countersign for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from countersign_client import Countersign
from countersign_client.types import EventType
from tests.checkout.surfer import Page
from tests.clients.conftest import SCOPES, allow_overrides, running_place
from tests.clients.proxy import Proxy
from tests.storefront.shopper import Shopper
from tests.support.service import Server, free_port
from tests.woocommerce.shops import NEW, OLD, SUBSCRIPTIONS, Release, subscriptions
from tests.woocommerce.wordpress import WordPress, running_wordpress

ADDRESS: Final = {
    "first_name": "Jo",
    "last_name": "Doe",
    "company": "",
    "address_1": "1 Main Street",
    "address_2": "",
    "city": "San Francisco",
    "state": "CA",
    "postcode": "94105",
    "country": "US",
    "phone": "5551234567",
}
EMAIL: Final = "jo@example.com"
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
GATEWAYS: Final = ("cod", "bacs")
collect_ignore = [] if subscriptions() else ["test_subscriptions.py"]
_NONCE: Final = 'name="{}" value="([0-9a-f]+)"'
STORE: Final = "index.php?rest_route=/wc/store/v1"


def pytest_report_header() -> str:
    """What is left out for want of somebody else's files."""
    found = subscriptions()
    return f"{SUBSCRIPTIONS}: {found or 'not at hand, so test_subscriptions.py is left out'}"


def nonce_in(page: str, name: str = "_wpnonce") -> str:
    """The nonce of a form."""
    found = re.search(_NONCE.format(re.escape(name)), page)
    assert found is not None, page
    return found[1]


@dataclass(frozen=True)
class Placed:
    """The response of the classic checkout: the redirect, or the text for the buyer."""

    url: str
    said: str


class Browser(Shopper):
    """A buyer, or somebody of the shop."""

    _nonce = ""

    def place(self, payment: str = "countersign", **address: str) -> Placed:
        """Send the form of the classic checkout, as its script does."""
        name = "woocommerce-process-checkout-nonce"
        # Valid for hours, as that of a page that stays open.
        self._nonce = self._nonce or nonce_in(self.checkout(), name)
        fields = {**ADDRESS, **address}
        form = {f"{kind}_{k}": v for kind in ("billing", "shipping") for k, v in fields.items()}
        form |= {k: v for k, v in address.items() if k.startswith(("billing_", "shipping_"))}
        form |= {"billing_email": address.get("email", EMAIL), "ship_to_different_address": "1"}
        form |= {"payment_method": payment, name: self._nonce}
        answer = self.client.post(f"{self.shop}/?wc-ajax=checkout", data=form).json()
        return Placed(answer.get("redirect", ""), answer.get("messages", ""))

    def checkout(self) -> str:
        """The page of the classic checkout."""
        return self.client.get(f"{self.shop}/?pagename=classic-checkout").text

    def put_in_cart(self, *products: int) -> None:
        for product in products:
            form = {"product_id": product, "quantity": 1}
            done = self.client.post(f"{self.shop}/?wc-ajax=add_to_cart", data=form).json()
            assert "error" not in done, done

    def store(
        self, path: str = "/checkout", *, payment: str = "", **fields: object
    ) -> httpx2.Response:
        """Place or pay an order over the Store API, as the block checkout does, or an app."""
        nonce = self.client.get(f"{self.shop}/{STORE}/cart").headers["Nonce"]
        body: dict[str, object] = {
            "billing_address": ADDRESS | {"email": EMAIL},
            "shipping_address": ADDRESS,
            "payment_method": payment,
        }
        url, headers = f"{self.shop}/{STORE}{path}", {"Nonce": nonce}
        return self.client.post(url, json=body | fields, headers=headers)

    def _send_payment(self, url: str, payment: str, *, follow: bool) -> httpx2.Response:
        page = self.client.get(url)
        if "woocommerce-pay-nonce" not in page.text:
            return page
        return self._send_form(page.text, url, payment, follow=follow)

    def _send_form(self, page: str, url: str, payment: str, *, follow: bool) -> httpx2.Response:
        fields = {"woocommerce_pay": "1", "payment_method": payment}
        fields["woocommerce-pay-nonce"] = nonce_in(page, "woocommerce-pay-nonce")
        return self.client.post(url, data=fields, follow_redirects=follow)

    def pay_on(self, page: str, url: str, payment: str = "cod") -> str:
        """Send the form of a page that was loaded before; returns the next page."""
        return self._send_form(page, url, payment, follow=True).text

    def pay(self, url: str, payment: str = "cod") -> str:
        """Send the payment page's form of an order; returns the next page."""
        return self._send_payment(url, payment, follow=True).text

    def lead(self, url: str) -> str:
        """Choose the notice on that page; gives the link."""
        return self._send_payment(url, "countersign", follow=False).headers["Location"]

    def log_in(self, name: str, password: str) -> None:
        self.client.get(f"{self.shop}/wp-login.php")
        form = {"log": name, "pwd": password, "testcookie": "1"}
        done = self.client.post(f"{self.shop}/wp-login.php", data=form, follow_redirects=False)
        assert done.status_code == 302, done.text

    def back(self, page: Page) -> str:
        """Follow the link from the service to the shop."""
        (url,) = {url for url in page.links.values() if url.startswith(self.shop)}
        return self.client.get(url).text

    def finish(self, link: str) -> Page:
        """Go through the notice, as far as the service's last page."""
        return self.initial(self.identify(self.open(link)))


def offered(page: str) -> set[str]:
    """The ways to pay on a page."""
    return set(re.findall(r'name="payment_method"[^>]*?value="(\w+)"', page))


_SEEN: Final = r"""
$order = wc_get_order($id);
$notes = wc_get_order_notes(array('order_id' => $id));
return array(
    'status' => $order->get_status(),
    'state' => \Countersign\WooCommerce\Orders::state($order),
    'data' => \Countersign\WooCommerce\Orders::data($order),
    'taken' => (int) $order->get_meta('_tests_taken'),
    'completed' => null !== $order->get_date_completed(),
    'notes' => implode(chr(10), wp_list_pluck($notes, 'content')),
);"""


@dataclass(frozen=True, kw_only=True)
class Order:
    """An order, as the database of the shop has it."""

    wp: WordPress
    id: int
    url: str
    """The address where it is paid, with a key that only its buyer knows."""

    def see(self, *names: str) -> tuple[Any, ...]:
        """Its present values; `taken` is how often a gateway was asked for its payment."""
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

    @property
    def key(self) -> str:
        return self.url.rpartition("key=")[2].partition("&")[0]

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
        code = """$product = new WC_Product_Simple(); $product->set_name('P');
            $product->set_regular_price($price);
            $product->update_meta_data('_countersign_class', $class);
            return $product->save();"""
        return int(self.wp.php(code, **{"class": product_class, "price": price}))

    def product(self, product_class: str = "accessory", price: str = "10") -> int:
        """A product that no test changes."""
        if (product_class, price) not in self.products:
            self.products[product_class, price] = self.new_product(product_class, price)
        return self.products[product_class, price]

    def browser(self) -> Browser:
        return Browser(self.url)

    def order(self, code: str = "$order = wc_get_order($id);", **given: object) -> Order:
        """The order with this id, or the order that other code makes."""
        code += "return array($order->get_id(), $order->get_checkout_payment_url());"
        number, url = self.wp.php(code, **given)
        return Order(wp=self.wp, id=number, url=url)

    def newest(self) -> Order:
        code = """list($order) = wc_get_orders(array(
            'limit' => 1, 'orderby' => 'ID', 'order' => 'DESC', 'type' => 'shop_order'));"""
        return self.order(code)

    def made(self, product_class: str = "accessory", **address: str) -> Order:
        """An order that was not begun, made as the admin or another plugin makes one."""
        code = """$order = wc_create_order();
            $order->add_product(wc_get_product($product));
            $order->set_address($address, 'billing'); $order->set_address($address, 'shipping');
            $order->set_billing_email($email); $order->calculate_totals(); $order->save();"""
        given = {"product": self.product(product_class), "email": EMAIL}
        return self.order(code, address={**ADDRESS, **address}, **given)

    def ordered(self, browser: Browser, *, price: str = "10", **address: str) -> tuple[Order, str]:
        """An order that waits for its buyer, and the buyer's link."""
        browser.put_in_cart(self.product(price=price))
        placed = browser.place(**address)
        assert placed.url, placed.said
        return self.newest(), placed.url

    def cleared(self, browser: Browser, *, returns: bool = True, **how: str) -> Order:
        """An order that its buyer has done all for but the payment."""
        order, link = self.ordered(browser, **how)
        done = browser.finish(link)
        if returns:
            browser.back(done)
        return order

    def copied(self, order: Order) -> Order:
        """A copy of an order with all of its fields, as a plugin that clones orders makes one."""
        code = """$old = wc_get_order($id); $order = wc_create_order();
            foreach ($old->get_items() as $item) { $order->add_product($item->get_product()); }
            $order->set_address($old->get_address('billing'), 'billing');
            $order->set_address($old->get_address('shipping'), 'shipping');
            foreach ($old->get_meta_data() as $one) {
                if ('_tests_taken' !== $one->key) {
                    $order->update_meta_data($one->key, $one->value);
                }
            }
            $order->calculate_totals(); $order->save();"""
        return self.order(code, id=order.id)

    def settings(self, **changed: str) -> None:
        code = """update_option('countersign_settings', array_merge(
            (array) get_option('countersign_settings', array()), $changed)); return 1;"""
        self.wp.php(code, changed=changed)

    @contextmanager
    def options(self, values: Mapping[str, object]) -> Iterator[None]:
        """WordPress has these options in the block, and its earlier ones afterwards."""
        code = """$old = array();
            foreach ($values as $name => $value) {
                $old[$name] = get_option($name, null);
                null === $value ? delete_option($name) : update_option($name, $value);
            }
            return $old;"""
        before = self.wp.php(code, values=values)
        try:
            yield
        finally:
            self.wp.php(code, values=before)

    @contextmanager
    def without_service(self) -> Iterator[None]:
        """Nothing listens at the service's address."""
        self.settings(base_url=f"http://127.0.0.1:{free_port()}")
        try:
            yield
        finally:
            self.settings(base_url=self.server.url)
            # The checkout would not ask for a minute.
            self.wp.php("return delete_transient('countersign_need_away');")

    def revoked(self, browser: Browser) -> Order:
        """An order that was cleared before its buyer was revoked; no webhook reports it."""
        with self.without_webhooks():
            order = self.cleared(browser)
            self.client.sandbox.move_buyer(cbid=order.data["buyer"], status="revoked")
        return order

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

    def stored(self) -> dict[str, str]:
        """The settings of the plugin."""
        return dict(self.wp.php("return get_option('countersign_settings');"))


@contextmanager
def running_shop(folder: Path, release: Release) -> Iterator[Shop]:
    """Run a shop of this release, and the service for it."""
    with running_place(folder / "data", None) as place, running_wordpress(folder, release) as wp:
        account = place.operator.account()
        allow_overrides(place, account)
        key = place.operator.key(account, scopes=SCOPES).token
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
            shop.settings(
                base_url=place.server.url,
                api_key=key,
                webhook_secret=shop.secret,
                residence="",
                customers="",
            )
            yield shop
            assert wp.complaints() == [], "\n".join(wp.complaints())


@pytest.fixture(scope="package")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Run the newer shop while the tests of this folder run."""
    with running_shop(tmp_path_factory.mktemp("new"), NEW) as made:
        yield made


@pytest.fixture(scope="package")
def old_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Run the oldest shop that the plugin names."""
    with running_shop(tmp_path_factory.mktemp("old"), OLD) as made:
        yield made


@pytest.fixture
def browser(shop: Shop) -> Iterator[Browser]:
    made = shop.browser()
    with made.client:
        yield made


@pytest.fixture(scope="package")
def people(shop: Shop) -> Iterator[dict[str, Browser]]:
    """Somebody of each role, signed in."""
    made = {}
    with ExitStack() as stack:
        for role in ("administrator", "shop_manager", "customer"):
            made[role] = shop.browser()
            stack.enter_context(made[role].client)
            made[role].log_in(f"a_{role}", "p")
            # WooCommerce leads its first manager to its own set-up first, once.
            made[role].client.get(f"{shop.url}/wp-admin/")
        yield made
