"""examples/node-shop and docs/node.md: real processes of Node.js, and a buyer over HTTP."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from countersign_client import Countersign
from countersign_client.testing import SECRET, webhook_message
from countersign_client.types import CheckoutSession
from tests.checkout.surfer import Page
from tests.cli.serving import running, wait_for, wait_until
from tests.clients.conftest import SCOPES, Place
from tests.docs.markdown import ROOT, read
from tests.storefront.shopper import Shopper
from tests.support import node
from tests.support.service import free_port

pytestmark = [pytest.mark.npm, pytest.mark.one_engine, pytest.mark.long]
STAFF = ("staff", "sandbox")


def project(folder: Path, built: Path) -> Path:
    """A folder where programs find the client and the framework as installed packages."""
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / "countersign-client").symlink_to(built.parent)
    for name in ("express", "@types"):
        (folder / "node_modules" / name).symlink_to(node.SHOP / "node_modules" / name)
    return folder


@dataclass(frozen=True, kw_only=True)
class Shop:
    """The shop with its files, and a client of the service with every scope."""

    folder: Path
    url: str
    environment: dict[str, str]
    client: Countersign

    @contextmanager
    def open(self, **changed: str) -> Iterator[None]:
        log, environment = self.folder / "log", self.environment | changed
        with running(["node", "shop.mjs"], environment, log, self.folder) as process:
            wait_for(process, log, "The shop is open")
            yield

    def last(self) -> dict[str, Any]:
        """The last order, as stored."""
        order: dict[str, Any] = json.loads((self.folder / "var/orders.json").read_bytes())[-1][1]
        return order

    def is_now(self, *payments: str) -> None:
        wait_until(lambda: self.last()["payments"] == [*payments], f"the payment: {payments}")

    def message(self, order: dict[str, Any], secret: str = "") -> tuple[bytes, dict[str, str]]:
        """The event of an order's completion, signed for this shop or with this secret."""
        secret = secret or self.environment["SHOP_WEBHOOK_SECRET"]
        known = {"checkout_session_id": order["session"]}
        return webhook_message("checkout_session.completed", known, secret=secret)

    def post(self, body: bytes, headers: dict[str, str]) -> int:
        return httpx2.post(f"{self.url}/webhooks", content=body, headers=headers).status_code


class Customer(Shopper):
    """A browser at this shop."""

    def check_out(self, product: str = "handguard", **fields: str) -> Page:
        """Order a product, which leads to the notice if one is needed."""
        page = self.open(f"/products/{product}")
        return self.send(page, page.form, **{"state": "CA", "zip": "94105"} | fields)

    def buy(self) -> Page:
        """Do all that the service wants; the buyer does not come back."""
        return self.initial(self.identify(self.check_out()))


@contextmanager
def closed_shop(place: Place, folder: Path, port: int) -> Iterator[Shop]:
    """A shop of an account of its own, before it is opened."""
    url = f"http://localhost:{port}"
    key = place.operator.key(place.operator.account(), scopes=SCOPES).token
    with Countersign(api_key=key, base_url=place.server.url) as client:
        endpoint = client.webhook_endpoints.create(url=f"{url}/webhooks")
        environment = os.environ | {
            "COUNTERSIGN_BASE_URL": place.server.url,
            "COUNTERSIGN_API_KEY": key,
            "SHOP_WEBHOOK_SECRET": endpoint.secret,
            "SHOP_DATA_DIR": str(folder / "var"),
            "SHOP_PORT": str(port),
        }
        yield Shop(folder=folder, url=url, environment=environment, client=client)
        client.webhook_endpoints.delete(endpoint.endpoint_id)


@pytest.fixture(scope="module")
def closed(place: Place, built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Give the shop of the examples."""
    folder = project(tmp_path_factory.mktemp("shop"), built)
    for path in [path for kind in ("mjs", "json", "css") for path in node.SHOP.glob(f"*.{kind}")]:
        shutil.copy(path, folder)
    with closed_shop(place, folder, free_port()) as shop:
        yield shop


@pytest.fixture
def customer(closed: Shop) -> Iterator[Customer]:
    shopper = Customer(closed.url)
    with shopper.client:
        yield shopper


def test_an_order_is_right_after_outages(closed: Shop, customer: Customer) -> None:
    """No webhook arrived: a shop that starts asks about its orders. Its file has its state."""
    with closed.open():
        identity = customer.check_out()
        assert closed.last()["payments"] == ["authorised"]
        order = closed.last()
    done = customer.initial(customer.identify(identity))
    with closed.open(COUNTERSIGN_BASE_URL=f"http://127.0.0.1:{free_port()}"):
        # Without the service nothing is decided: the page says so, and the message is sent again.
        assert customer.open(f"/orders/{order['id']}").heading == "Please try again later"
        assert closed.post(*closed.message(order)) == 503
        assert closed.last() == order
    with closed.open():
        assert closed.last()["payments"] == ["authorised", "captured"]
        assert customer.come_back(done).heading == "Thank you"


def test_a_copy_of_a_cleared_order_has_not_begun(closed: Shop, customer: Customer) -> None:
    """It ships only with its own notice, and opening its page requests no decision."""
    file = closed.folder / "var" / "orders.json"
    with closed.open():
        customer.buy()
        closed.is_now("authorised", "captured")
    first = closed.last()
    [paid, waiting] = [
        first | {"id": f"cs_{digit * 32}", "number": number, "payments": payments}
        for digit, number, payments in (
            ("a", "9001", ["authorised", "captured"]),
            ("b", "9002", ["authorised"]),
        )
    ]
    undecided = waiting | {"id": f"cs_{'c' * 32}", "number": first["number"]}
    kept = json.loads(file.read_bytes())
    file.write_text(json.dumps([*kept, *((one["id"], one) for one in (paid, undecided, waiting))]))
    headers = {"Origin": closed.url}
    with closed.open():
        for one in (waiting, undecided):
            assert customer.open(f"/orders/{one['id']}").heading != "Thank you"
        assert closed.last() == waiting
        parcel = f"{closed.url}/dispatch/{paid['id']}"
        assert customer.client.post(parcel, headers=headers, auth=STAFF).status_code == 409
        notice = f"{closed.url}/orders/{waiting['id']}/notice"
        done = customer.client.post(notice, headers=headers, follow_redirects=False)
        assert done.headers["Location"].startswith(closed.environment["COUNTERSIGN_BASE_URL"])
    begun = closed.last()
    assert begun["session"] != first["session"]
    session = closed.client.checkout_sessions.retrieve(begun["session"])
    assert (session.session_id, session.order_reference) == (begun["id"], "9002")
    assert "ack_id" not in begun
    file.write_text(json.dumps(kept))


@pytest.fixture(scope="module")
def shop(closed: Shop) -> Iterator[Shop]:
    """Run the shop while the tests of this file run."""
    with closed.open():
        yield closed


def test_a_webhook_pays_once_for_a_buyer_who_never_comes_back(
    shop: Shop, customer: Customer
) -> None:
    customer.buy()
    shop.is_now("authorised", "captured")
    order = shop.last()
    message = shop.message(order)
    assert [shop.post(*message), shop.post(*message)] == [204, 204]
    assert shop.post(*shop.message(order, SECRET)) == 400
    assert shop.post(message[0] + b" ", message[1]) == 400
    assert shop.last() == order


def test_a_refused_buyer_reads_why(shop: Shop, customer: Customer) -> None:
    """The shop does not trust the return address."""
    refused = customer.identify(customer.check_out(), "underage")
    back = customer.open(f"/orders/{shop.last()['id']}?status=completed&ack_id=ack_typed")
    assert "too young" in back.text
    assert "Nothing was charged yet" in back.text
    assert refused.heading
    assert shop.last()["payments"] == ["authorised"]


def test_unknown_is_required(shop: Shop, customer: Customer) -> None:
    """Where the buyer lives was not said; the page says so in words."""
    customer.check_out(state="NV", zip="89501")
    assert shop.last()["needs"] == "unknown"
    assert "It is not known" in customer.open(f"/orders/{shop.last()['id']}").text


@pytest.mark.parametrize(("state", "zip_code"), [("OR", "94105"), ("WA", "90210"), ("HI", "94105")])
def test_a_parcel_to_california_waits_whatever_the_state_says(
    shop: Shop, customer: Customer, state: str, zip_code: str
) -> None:
    """It is neither charged nor packed, and prohibited goods are refused."""
    where = {"state": state, "zip": zip_code, "residence": state}
    assert customer.check_out("mill", **where).heading == "Identity check"
    assert (shop.last()["needs"], shop.last()["payments"]) == ("required", ["authorised"])
    customer.client.auth = STAFF
    assert f"mill to {state}" not in customer.open("/dispatch").text
    assert customer.check_out("barrel", **where).heading == "Not sold here"


def test_products_without_a_notice_are_sold_as_before(shop: Shop, customer: Customer) -> None:
    assert customer.check_out("apron").heading == "Thank you"
    assert shop.last()["payments"] == ["authorised", "captured"]


def test_goods_that_may_not_be_sent_make_no_order(shop: Shop, customer: Customer) -> None:
    before = shop.last()
    refused = customer.check_out("barrel")
    assert (refused.status, refused.heading) == (422, "Not sold here")
    assert shop.last() == before


def test_a_form_sent_twice_makes_one_order(shop: Shop, customer: Customer) -> None:
    page = customer.open("/products/mill")
    where = {"state": "CA", "zip": "94105"}
    once, again = (customer.send(page, page.form, **where) for _ in range(2))
    assert "Identity check" in once.text
    assert once.text == again.text
    sessions = shop.client.checkout_sessions.list(session_id=shop.last()["id"])
    assert len(list(sessions)) == 1


def test_an_order_is_shown_to_its_own_browser(shop: Shop, customer: Customer) -> None:
    """Forms of other sites change nothing."""
    customer.check_out()
    address = f"{shop.url}/orders/{shop.last()['id']}"
    assert httpx2.get(address).status_code == 404
    form = {"Origin": "https://elsewhere.example"}
    assert customer.client.post(f"{address}/notice", headers=form).status_code == 403


def test_a_parcel_is_reported_when_it_leaves(shop: Shop, customer: Customer) -> None:
    customer.buy()
    shop.is_now("authorised", "captured")
    assert customer.open("/dispatch").status == 401
    customer.client.auth = STAFF
    page = customer.open("/dispatch")
    assert "Ship only to the verified ZIP code" in page.text
    form = next(form for form in page.forms if shop.last()["id"] in form.action)
    customer.send(page, form, tracking_number="1Z999")
    order = shop.last()
    assert order["shipped"] == "1Z999"
    (report,) = shop.client.clearances.retrieve(order["clearance_id"]).fulfilments
    assert report.tracking_number == "1Z999"
    assert order["id"] not in customer.open("/dispatch").response.text


def test_a_revoked_buyer_stops_the_parcel(shop: Shop, customer: Customer) -> None:
    customer.buy()
    shop.is_now("authorised", "captured")
    order = shop.last()
    shop.client.sandbox.move_buyer(cbid=order["cbid"], status="revoked")
    shop.is_now("authorised", "captured", "refunded")
    assert "withdrawn" in customer.open(f"/orders/{order['id']}").text
    customer.client.auth = STAFF
    page = customer.open("/dispatch")
    headers = {"Origin": shop.url}
    parcel = f"{shop.url}/dispatch/{order['id']}"
    refused = customer.client.post(parcel, data={"tracking_number": "1Z9"}, headers=headers)
    assert (refused.status_code, "withdrawn" in refused.text) == (409, True)
    assert order["id"] not in page.response.text


def test_concurrently_reported_parcels_are_reported_once(shop: Shop, customer: Customer) -> None:
    """The others get a response that this report is under way, or was made."""
    customer.buy()
    shop.is_now("authorised", "captured")
    customer.client.auth = STAFF
    parcel = f"{shop.url}/dispatch/{shop.last()['id']}"

    def report(number: int) -> httpx2.Response:
        data, headers = {"tracking_number": f"1Z{number}"}, {"Origin": shop.url}
        return httpx2.post(parcel, data=data, headers=headers, auth=STAFF, timeout=30, verify=False)

    with ThreadPoolExecutor(5) as pool:
        answers = [*pool.map(report, range(5))]
    assert sorted(answer.status_code for answer in answers) == [303, 409, 409, 409, 409]
    refused = [answer.text for answer in answers if answer.status_code == 409]
    assert all("is being reported" in text or "was reported before" in text for text in refused)
    (fulfilment,) = shop.client.clearances.retrieve(shop.last()["clearance_id"]).fulfilments
    assert fulfilment.tracking_number == shop.last()["shipped"]


def test_the_receipts_of_all_orders_are_collected(
    shop: Shop, customer: Customer, tmp_path: Path
) -> None:
    """Byte for byte as the service gave them, each once, while the shop runs."""
    customer.buy()
    shop.is_now("authorised", "captured")
    order, folder = shop.last(), tmp_path / "receipts"
    receipt = shop.client.checkout_sessions.retrieve(order["session"]).receipt
    command = ["node", "receipts.mjs", str(folder)]
    said = [
        subprocess.check_output(command, cwd=shop.folder, env=shop.environment) for _ in range(2)
    ]
    assert said[1] == b"0 receipts were new.\n"
    assert (folder / f"{order['ack_id']}.txt").read_text("utf-8") == receipt
    assert [*tmp_path.iterdir()] == [folder]


def test_a_shop_with_a_live_key_has_its_own_password(closed: Shop) -> None:
    """It does not start with the published password."""
    environment = closed.environment | {"COUNTERSIGN_API_KEY": "csign_sk_live_" + "a" * 43}
    for password in ({}, {"SHOP_PASSWORD": ""}):
        done = subprocess.run(
            ["node", "shop.mjs"],
            cwd=closed.folder,
            env=environment | password,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, "Set SHOP_PASSWORD" in done.stderr) == (1, True)


def test_the_shop_has_the_types_of_the_client(closed: Shop) -> None:
    """Its annotations are checked by TypeScript, strictly."""
    command = [str(node.CLIENT / "node_modules/.bin/tsc"), "--project", str(closed.folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_documented_shop_sells(place: Place, built: Path, tmp_path: Path) -> None:
    """docs/node.md as it stands there: a yes, a no, a forged message, a parcel, a revoked buyer."""
    port = free_port()
    blocks = read(ROOT / "docs" / "node.md").blocks
    program = "\n".join(block.text for block in blocks if block.language == "js")
    for shown in ("localhost:3000", "listen(3000"):
        assert shown in program
        program = program.replace(shown, shown.replace("3000", str(port)))
    (project(tmp_path, built) / "shop.mjs").write_text(program, encoding="utf-8")
    customer = Customer(f"http://localhost:{port}")
    with closed_shop(place, tmp_path, port) as shop, shop.open(SHOP_PASSWORD="p"), customer.client:

        def ordered() -> Page:
            return customer.send(page := customer.open("/"), page.form)

        def session() -> CheckoutSession:
            return next(iter(shop.client.checkout_sessions.list()))

        def order_page() -> str:
            return customer.open(f"/orders/{session().session_id}").text

        def leaves(password: str = "p") -> str:
            parcel = f"{shop.url}/dispatch/{session().session_id}"
            data, auth = {"tracking_number": "1Z9"}, ("staff", password)
            return customer.client.post(parcel, data=data, auth=auth).text

        wrong = {"product": "handgard", "state": "CA", "zip": "94105"}
        assert customer.client.post(f"{shop.url}/orders", data=wrong).status_code == 400
        wrong |= {"product": "handguard", "state": "California"}
        assert customer.client.post(f"{shop.url}/orders", data=wrong).status_code == 422
        customer.identify(ordered(), "underage")
        assert "age_below_minimum" in order_page()
        done = customer.initial(customer.identify(ordered()))
        assert "Thank you" in customer.come_back(done).text
        message = shop.message({"session": session().checkout_session_id})
        assert [shop.post(*message), shop.post(message[0] + b" ", message[1])] == [204, 400]
        assert leaves("undefined") == "Unauthorized"
        assert leaves() == "Shipped"
        assert leaves().startswith("Do not ship")
        customer.initial(customer.identify(ordered()))
        wait_until(lambda: "Thank you" in order_page(), "the webhook")
        shop.client.sandbox.move_buyer(cbid=str(session().cbid), status="revoked")
        # Opening the page asks for no decision: the message about the buyer does.
        wait_until(lambda: "not released" in order_page(), "the webhook")
        assert "buyer_revoked" in leaves()
