"""examples/shopify-function: a checkout opens with the token of its cart, and not of another.

The function runs in Node.js, with inputs that the published schema made of its own query.
"""

from __future__ import annotations

import hmac
import json
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final
from urllib.parse import urlencode

import pytest
from graphql import build_schema, graphql_sync

from countersign_client import Countersign
from tests.bridge.conftest import Between
from tests.bridge.mocks import DOCUMENTS, SECRET, TOKEN, Shop, Shopify
from tests.docs.markdown import ROOT
from tests.storefront.shopper import Shopper

pytestmark = [pytest.mark.npm, pytest.mark.one_engine]
EXAMPLE: Final = ROOT / "examples" / "shopify-function"
KEY: Final = "k" * 32
PART, APRON = "gid://shopify/ProductVariant/1", "gid://shopify/ProductVariant/2"
HOUR: Final = 60 * 60
# 2026-11-28 02:00 in UTC is the day before in the shop.
NOW: Final = 1_795_831_200.0
TODAY: Final = "2026-11-27"
SCHEMA: Final = build_schema((DOCUMENTS / "shopify-function.graphql").read_text("utf-8"))
QUERY: Final = (EXAMPLE / "src" / "run.graphql").read_text("utf-8")
RUN: Final = """
import { cartValidationsGenerateRun, hmac } from "%s";
const asked = JSON.parse(await new Response(process.stdin).text());
const act = { run: cartValidationsGenerateRun, hmac: ([key, text]) => hmac(key, text) }[asked.act];
console.log(JSON.stringify(asked.inputs.map((one) => act(one))));
"""
RESULT: Final = (
    "mutation ($it: CartValidationsGenerateRunResult!) { cartValidationsGenerateRun(result: $it) }"
)


def in_node(act: str, inputs: list[Any]) -> list[Any]:
    code = RUN % (EXAMPLE / "src" / "index.js").as_uri()
    command = ["node", "--input-type=module", "--eval", code]
    sent = json.dumps({"act": act, "inputs": inputs})
    done = subprocess.run(command, input=sent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found


def product(id_: str, product_class: str | None, quantity: int = 1) -> dict[str, Any]:
    of = {"metafield": product_class and {"value": product_class}}
    about = {"__typename": "ProductVariant", "id": id_, "product": of}
    return {"quantity": quantity, "merchandise": about}


def a_cart(token: str | None, **changed: Any) -> dict[str, Any]:  # noqa: ANN401 - any value
    """The function's input, as the schema answers its query."""
    given = {
        "step": "CHECKOUT_COMPLETION",
        "date": TODAY,
        "keys": KEY,
        "zips": ["94105"],
        "customer": None,
        "lines": [product(PART, "accessory"), product(APRON, None)],
    } | changed
    places = [{"countryCode": "US", "provinceCode": "CA", "zip": one} for one in given["zips"]]
    customer = given["customer"] and {"id": given["customer"]}
    root = {
        "buyerJourney": {"step": given["step"]},
        "shop": {"localTime": {"date": given["date"]}},
        "validation": {"metafield": None if given["keys"] is None else {"value": given["keys"]}},
        "cart": {
            "attribute": token and {"value": token},
            "buyerIdentity": {"customer": customer},
            "deliveryGroups": [{"deliveryAddress": one} for one in places],
            "lines": given["lines"],
        },
    }
    found = graphql_sync(SCHEMA, QUERY, root)
    assert found.errors is None, found.errors
    assert found.data is not None
    return found.data


def opens(*carts: dict[str, Any]) -> list[bool]:
    """Whether each checkout may go on; the results are as the schema wants them."""
    results = in_node("run", list(carts))
    for one in results:
        done = graphql_sync(SCHEMA, RESULT, {"cartValidationsGenerateRun": ""}, None, {"it": one})
        assert done.errors is None, done.errors
    return [not one["operations"][0]["validationAdd"]["errors"] for one in results]


def test_the_function_knows_hmac_sha_256() -> None:
    """As Python does, for texts over each edge of its blocks."""
    pairs = [["k" * (n % 130 + 1), "é😀x"[: n % 4] * (n % 41) + "a" * n] for n in range(300)]
    expected = [hmac.digest(key.encode(), text.encode(), "sha256").hex() for key, text in pairs]
    assert in_node("hmac", pairs) == expected


@dataclass
class Sold:
    """A shop with the checkout's program in this process."""

    between: Between
    checkout: Any
    module: Any

    def cart(self, zip_code: str = "94105", customer: str = "", *lines: str) -> Any:  # noqa: ANN401
        return self.module.Cart(customer, "US", "CA", zip_code, list(lines or [f"{PART} 1"]))

    def token(self, cart: Any, *, finish: bool = True) -> str:  # noqa: ANN401 - a cart
        """The token of a cart whose buyer does the notice."""
        name, url = self.checkout.begin(cart)
        if finish:
            with (shopper := Shopper("http://checkout.example")).client:
                shopper.initial(shopper.identify(shopper.open(url)))
        token: str = self.checkout.attribute(name)
        return token

    def order(self, token: str, zip_code: str = "94105", at: str = "2026-11-28T02:05:00Z") -> None:
        """Shopify says that an order with this token was placed."""
        shop = self.between.shop
        shop.ship_to = ("California", "CA", zip_code)
        body = json.loads(shop.message()[1]) | {
            "created_at": at,
            "customer": {"admin_graphql_api_id": "gid://shopify/Customer/9"},
            "note_attributes": [{"name": "countersign", "value": token}] if token else [],
            "shipping_address": {"country_code": "US", "province_code": "CA", "zip": zip_code},
            "line_items": [{"variant_id": 1, "quantity": 1}, {"variant_id": 2, "quantity": 1}],
        }
        text = json.dumps(body).encode()
        mac = b64encode(hmac.digest(SECRET.encode(), text, "sha256")).decode()
        assert self.checkout.placed({"x-shopify-hmac-sha256": mac}, text) == 204
        self.checkout.advance()


@pytest.fixture
def sold(
    shops: dict[type[Shop], Shop],
    client: Countersign,
    tmp_path: Any,  # noqa: ANN401
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Sold]:
    monkeypatch.syspath_prepend(ROOT / "examples" / "bridge")
    monkeypatch.syspath_prepend(EXAMPLE)
    monkeypatch.setattr(sys, "path", [*sys.path])
    module = import_module("checkout")
    shop = shops[Shopify]
    shop.begin()
    between = Between(shop, client, tmp_path, now=NOW)
    between.bridge = module.Checkout(
        import_module("platforms").Shopify(shop.url, TOKEN, SECRET),
        client,
        lambda *mail: between.mails.append(mail),
        key=KEY,
        zone="America/Los_Angeles",
        variants={PART: "accessory"},
        classes={"HG-1": "accessory"},
        database=tmp_path / "bridge.db",
        url="http://checkout.example",
        now=lambda: between.now,
    )
    yield Sold(between, between.bridge, module)
    between.close()


def test_a_checkout_opens_with_the_token_of_its_cart(sold: Sold) -> None:
    """And not of another address, customer, product, quantity, day or key."""
    assert sold.token(sold.cart(), finish=False) == ""
    token = sold.token(sold.cart())
    mine = "gid://shopify/Customer/7"
    two = [product(PART, "accessory", 2)]
    other = [product("gid://shopify/ProductVariant/9", "accessory")]
    good = [
        a_cart(token),
        a_cart(token, keys=f"{'n' * 32} {KEY}"),
        a_cart(token, zips=["94105-1234"]),
        a_cart(None, lines=[product(APRON, None)]),
        a_cart(None, step="CART_INTERACTION"),
        a_cart(token, step=None),
    ]
    bad = [
        a_cart(None),
        a_cart("x"),
        a_cart(f"2027-01-01.{token.partition('.')[2]}"),
        a_cart(token.replace("cs_", "cs_0")),
        a_cart(token, zips=["90210"]),
        a_cart(token, zips=["94105", "90210"]),
        a_cart(token, zips=[]),
        a_cart(token, customer=mine),
        a_cart(token, lines=two),
        a_cart(token, lines=other),
        a_cart(token, date="2026-11-28"),
        a_cart(token, keys="n" * 32),
        a_cart(token, keys=""),
        a_cart(token, keys=None),
        a_cart(None, step=None),
    ]
    assert opens(*good, *bad) == [True] * len(good) + [False] * len(bad)


def test_the_order_goes_on_with_the_session_of_its_cart(sold: Sold) -> None:
    """Nobody gets a mail; a second order with the same token does the notice itself."""
    token = sold.token(sold.cart())
    sold.order(token)
    assert (sold.between.shop.acts, sold.between.mails) == (["held", "released"], [])
    sold.between.shop.order = "gid://shopify/Order/2"
    sold.between.shop.state = "new"
    try:
        sold.order(token)
        assert sold.between.shop.acts == ["held", "released", "held"]
        assert len(sold.between.mails) == 1
    finally:
        del sold.between.shop.order


@pytest.mark.parametrize(
    "order",
    [{"zip_code": "90210"}, {"at": "2026-11-28T02:31:00Z"}, {"token": ""}],
    ids=["another address", "after half an hour", "without a token"],
)
def test_another_order_is_held_until_its_own_notice(sold: Sold, order: dict[str, str]) -> None:
    given = {"token": sold.token(sold.cart())} | order
    sold.order(**given)
    assert sold.between.shop.acts == ["held"]
    assert len(sold.between.mails) == 1


def test_equal_carts_have_a_token_each(sold: Sold) -> None:
    """Of a guest who begins again, or of two; a cart without classed products needs none."""
    first, second = sold.token(sold.cart()), sold.token(sold.cart())
    assert first != second
    assert opens(a_cart(first), a_cart(second)) == [True, True]
    name, url = sold.checkout.begin(sold.module.Cart("", "US", "CA", "94105", []))
    assert (url, bool(sold.checkout.attribute(name))) == ("", True)


def test_only_the_theme_can_ask(sold: Sold) -> None:
    """By Shopify's app proxy, which signs who is signed in."""
    named = {"shop": "x.myshopify.com", "logged_in_customer_id": "7", "timestamp": "1000"}
    text = "".join(f"{name}={value}" for name, value in sorted(named.items()))
    signature = hmac.digest(SECRET.encode(), text.encode(), "sha256").hex()
    customer_of = sold.module.customer_of
    signed = named | {"signature": signature}
    assert customer_of(urlencode(signed), SECRET, 1290) == "gid://shopify/Customer/7"
    assert customer_of(urlencode(signed), SECRET, 1310) is None
    assert customer_of(urlencode(signed | {"logged_in_customer_id": "8"}), SECRET, 1000) is None
    assert customer_of(urlencode(named), SECRET, 1000) is None
