"""The words of the pages whose pictures are in docs/images, without JavaScript.

`make screenshots` writes them next to the pictures. A test compares them with the present ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx2

from countersign.core.dossiers.pdf import dossier_pdf
from countersign_evidence.dossier import evidence_of, read_container
from countersign_evidence.verification import dossier_of
from tests.certificate.reader import pages_of
from tests.checkout.surfer import Form, Page
from tests.cli.serving import wait_until
from tests.evidence.dossier_vectors import DOSSIERS
from tests.http.backstage import another_deployment
from tests.storefront.shopper import ROOT, Shopper, Storefront, running_shop
from tests.support.providers import Playing, playing
from tests.support.service import running_server

IMAGES: Final = ROOT / "docs" / "images"
WORDS: Final = IMAGES / "words.json"
CERTIFICATE: Final = DOSSIERS / "good" / "order.zip"
"""The dossier whose first page is the picture of the README."""
SHOP_NAME: Final = "Ridgeline Workshop"
COLOR: Final = "#2f5d46"
_CHANGING: Final = re.compile(
    r"\b[a-z]+_[0-9a-z]{26}\b|\b[0-9a-f]{64}\b|\b\d{4}-\d\d-\d\d\b|\b\d\d?:\d\d(:\d\d(\.\d+)?)?\b"
    r"|\b(127\.0\.0\.1|localhost)(:\d+)?\b"
)
"""Parts that differ each time, and are no words."""


class Reader(Shopper):
    """A buyer who notes the words of each page."""

    def __init__(self, shop: str) -> None:
        super().__init__(shop)
        self.said: dict[str, list[str]] = {}

    def take(self, name: str, page: Page) -> Page:
        self.said[name] = words_of(page.words)
        return page

    def begin(self, page: Page, name: str, **fields: str) -> Page:
        """Send the form whose address ends so."""
        return self.send(page, form_of(page, name), **fields)

    def press(self, page: Page, words: str) -> Page:
        """Follow the link that begins so."""
        return self.follow(page, next(link for link in page.links if link.startswith(words)))


def words_of(parts: list[str]) -> list[str]:
    """The texts of a page, each once, without what changes each time and names of states."""
    flat = (" ".join(_CHANGING.sub("…", part).split()) for part in parts)
    return list(dict.fromkeys(part for part in flat if len(part) > len("CA")))


def form_of(page: Page, name: str) -> Form:
    return next(form for form in page.forms if form.action.endswith(name))


def buy(reader: Reader) -> None:
    """Go through a purchase, with every mistake."""
    take = reader.take
    take("shop", reader.open("/"))
    reader.add("handguard")
    take("shop-checkout", reader.open("/checkout"))
    page = take("identity", reader.order())
    take("identity-failed", reader.identify(page, "zip_mismatch"))
    page = take("notice", reader.identify(page))
    take("notice-spanish", reader.press(page, "Español"))
    take("notice-errors", reader.send(page, page.form))
    review = take("review", reader.send(page, page.form, **dict.fromkeys(page.form.texts, "JD")))
    done = take("done", reader.send(review, review.form, **dict.fromkeys(review.form.boxes, "yes")))
    take("copy", reader.press(done, "Your copy"))
    take("shop-released", reader.come_back(done))


def fail(reader: Reader, vendor: httpx2.Client) -> None:
    """Go through everything that ends without one."""
    take = reader.take
    refused = reader.initial(reader.order("handguard", zip="94107"))
    take("shop-not-cleared", reader.come_back(refused))
    page = take("decline", reader.press(reader.order(), "Decline"))
    take("declined", reader.send(page, page.form))
    page = take("shop-component", reader.order(how="here"))
    page = take("shop-open", reader.press(page, "My order"))
    link = page.links["Read the notice"]
    reader.identify(reader.open(link))
    reader.begin(page, "cancel")
    take("cancelled", reader.open(link))
    page = reader.order()
    vendor.post("/v1/test/clock/advance", json={"seconds": 3600}).raise_for_status()
    take("expired", reader.open(str(page.response.url)))
    take("unknown", reader.open(f"{vendor.base_url}/c/chk_00000000000000000000000000"))


def be_checked(reader: Reader, provider: str) -> None:
    """Go through the states of an identity check at a provider."""
    take = reader.take
    page = take("identity-provider", reader.order("handguard"))
    here = str(page.response.url)

    def begin(page: Page) -> Page:
        return reader.press(reader.begin(page, "start", provider=provider), "Continue")

    def found(there: Page, outcome: str, words: str) -> Page:
        reader.send(there, there.form, outcome=outcome)
        wait_until(lambda: words in reader.open(here).text, words)
        return reader.open(here)

    there = begin(page)
    take("identity-waiting", reader.open(here))
    page = take("identity-not-passed", found(there, "underage", "Try again"))
    take("identity-deciding", found(begin(page), "later", "still deciding"))


@contextmanager
def running_service(
    directory: Path, provider: Playing | None = None
) -> Iterator[tuple[Storefront, httpx2.Client]]:
    """Run a service, and the shop of an account with a brand; test keys use the provider."""
    deployment = another_deployment(directory / "data")
    account = deployment.account(SHOP_NAME)
    deployment.run("accounts", "brand", account, "--color", COLOR)
    key = deployment.key(account)
    if provider is not None:
        file = directory / "credentials.json"
        file.write_text(json.dumps(provider.simulator.credentials))
        file.chmod(0o600)
        what = ("accounts", "verification", "add", account, "--test-keys")
        who = ("--provider", provider.name, "--dangerous-base-url", provider.url)
        deployment.run(*what, *who, "--credentials-file", str(file))
    with (
        running_server(deployment) as server,
        running_shop(server.url, key, directory) as shop,
        server.client(key) as vendor,
    ):
        yield shop, vendor


def certificate(path: Path) -> bytes:
    """The PDF of a dossier."""
    data = path.read_bytes()
    return dossier_pdf(dossier_of(data), evidence_of(read_container(data)))


def words_now(directory: Path) -> dict[str, list[str]]:
    """The words of each picture's page, as they are today."""
    with running_service(directory) as (shop, vendor):
        reader = Reader(shop.url)
        with reader.client:
            buy(reader)
            fail(reader, vendor)
    page = pages_of(certificate(CERTIFICATE))[0]
    said = {"certificate": words_of(re.split(r"(?<=[.:;]) ", page)), **reader.said}
    checks = directory / "checks"
    checks.mkdir()
    with playing("stripe") as provider, running_service(checks, provider) as (shop, _):
        reader = Reader(shop.url)
        with reader.client:
            be_checked(reader, provider.name)
    return said | reader.said
