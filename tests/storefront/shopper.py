"""The example shop as a process, and a buyer who uses it without JavaScript."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urljoin, urlsplit

import httpx2

from tests.checkout.surfer import Form, Page
from tests.cli.serving import Process, running, wait_for
from tests.support.service import free_port

ROOT: Final = Path(__file__).parents[2]
SECRET: Final = "whsec_" + "c2VjcmV0" * 4
ADDRESS: Final = {
    "name": "Jo Doe",
    "street": "1 Main Street",
    "city": "San Francisco",
    "state": "CA",
    "zip": "94105",
    "residence": "",
}


@dataclass(frozen=True)
class Storefront:
    """The shop, where it is, and the key that only it has."""

    url: str
    key: str
    process: Process
    log: Path
    receipts: Path

    def shopper(self) -> Shopper:
        return Shopper(self.url)


@contextmanager
def running_shop(
    service: str, key: str, directory: Path, *, more: str = ""
) -> Iterator[Storefront]:
    """Run the shop with only the standard library available."""
    port = free_port()
    environment = {
        "COUNTERSIGN_BASE_URL": service,
        "COUNTERSIGN_API_KEY": key,
        "SHOP_WEBHOOK_SECRET": SECRET,
        "SHOP_PORT": str(port),
        "SHOP_MORE_NOTICES": more,
        "SHOP_RECEIPTS_DIR": str(directory / "kept" / "receipts"),
    }
    command = [sys.executable, "-S", "-E", str(ROOT / "examples" / "storefront" / "shop.py")]
    log = directory / f"shop-{port}.log"
    with running(command, environment, log) as process:
        wait_for(process, log, "The shop is open")
        receipts = directory / "kept" / "receipts"
        yield Storefront(f"http://localhost:{port}", key, process, log, receipts)
        process.terminate()
        assert process.wait(20) == 0


class Shopper:
    """A browser with cookies, which follows links and sends forms."""

    def __init__(self, shop: str) -> None:
        self.shop = shop
        self.client = httpx2.Client(follow_redirects=True, timeout=30, verify=False)
        self.seen: list[str] = []
        """The pages of the shop."""

    def open(self, path: str) -> Page:
        return self._page(self.client.get(urljoin(self.shop, path)))

    def follow(self, page: Page, words: str) -> Page:
        return self.open(urljoin(str(page.response.url), page.links[words]))

    def send(self, page: Page, form: Form, **fields: str) -> Page:
        """Send a form of this page as a browser does."""
        address = urljoin(str(page.response.url), form.action)
        parts = urlsplit(str(page.response.url))
        origin = {"Origin": f"{parts.scheme}://{parts.netloc}"}
        data = {**form.fields, **fields}
        return self._page(self.client.post(address, data=data, headers=origin))

    def add(self, *products: str) -> None:
        for name in products:
            page = self.open(f"/products/{name}")
            assert self.send(page, page.form).heading == "Your cart"

    def order(self, *products: str, how: str = "link", **address: str) -> Page:
        """Order, which leads to the notice if one is needed."""
        self.add(*products)
        page = self.open("/checkout")
        return self.send(page, page.form, how=how, **{**ADDRESS, **address})

    def identify(self, page: Page, outcome: str = "verified") -> Page:
        """Choose the simulated identity provider's result."""
        return self.send(page, page.form, outcome=outcome)

    def initial(self, page: Page) -> Page:
        """Initial every line and agree; gives the last page of the service."""
        review = self.send(page, page.form, **dict.fromkeys(page.form.texts, "JD"))
        return self.send(review, review.form, **dict.fromkeys(review.form.boxes, "yes"))

    def come_back(self, page: Page) -> Page:
        """Follow the link from the service to the shop."""
        (back,) = {url for url in page.links.values() if url.startswith(self.shop)}
        return self.open(back)

    def _page(self, response: httpx2.Response) -> Page:
        if str(response.url).startswith(self.shop):
            self.seen.append(response.text)
        return Page(response)
