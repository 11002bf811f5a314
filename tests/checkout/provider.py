"""A shop whose test keys go to the simulated test mode of a provider, and its buyers there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx2

from countersign.base.values import Mode
from countersign.core.buyers import settings
from countersign.hosted.toolkit.screens import WORDS
from tests.checkout.buyer import Shop
from tests.checkout.surfer import Page, Surfer
from tests.http.backstage import Operator
from tests.support.providers import Playing, playing

ZIP = "94110"
"""The default input of the simulated pages."""
EN = WORDS["en"]


@dataclass(frozen=True)
class Counter:
    """A shop, and the provider that its buyers go to."""

    shop: Shop
    operator: Operator
    provider: Playing

    def buyer(self, **changes: object) -> Surfer:
        """A new session that begins with the identity, and a browser with its link."""
        wanted = {"collect": ["identity", "acknowledgment"], "shipping_zip": ZIP} | changes
        surfer = Surfer(self.shop.server, self.shop.buyer(**wanted))
        return self.shop.opened.enter_context(surfer)

    def use(self, provider: Playing) -> None:
        """Give the account this provider for its test keys."""
        credentials = json.dumps(provider.simulator.credentials).encode()
        account = self.shop.vendor.account_id
        self.operator.act(
            lambda opened: settings.add(
                opened.buyers, account, Mode.TEST, provider.name, credentials, provider.url
            )
        )

    def status(self, surfer: Surfer) -> str:
        return str(self.shop.read(surfer.buyer)["status"])


@contextmanager
def counter(
    shop: Shop, operator: Operator, name: str = "stripe", *, hears: bool = False
) -> Iterator[Counter]:
    """Let the test keys of a shop use this provider's simulator; the shop may hear its messages."""
    webhooks = f"{shop.server.url}/v1/provider_webhooks/{name}/{shop.vendor.account_id}"
    with playing(name, webhook_url=webhooks if hears else None) as provider:
        made = Counter(shop, operator, provider)
        made.use(provider)
        yield made


def begin(surfer: Surfer, page: Page | None = None) -> str:
    """Start a check, or begin again; gives the address of the provider's page."""
    page = page or surfer.open()
    forms = [form for form in page.forms if form.action.endswith("/start")]
    again = [form for form in forms if "again" in form.fields]
    return address(surfer.send([*again, *forms][0]))


def go_on(surfer: Surfer, page: Page) -> str:
    """Continue the current check at a provider whose URLs open the page once."""
    return address(send(surfer, page, "start"))


def address(page: Page) -> str:
    """The page's link to the provider."""
    before = EN["identity_continue"].removesuffix("{provider}")
    found = [link for words, link in page.links.items() if words.startswith(before)]
    assert len(found) == 1, page.text
    return found[0]


def finish(url: str, outcome: str, zip_: str = ZIP, who: str = "another") -> str | None:
    """Go through the provider's pages to this outcome; gives where they lead the buyer."""
    with httpx2.Client(trust_env=False, verify=False) as client:
        for form in ({}, {"who": who}, {"zip": zip_}, {}):
            assert client.post(url, data=form).status_code == 303
        return client.post(url, data={"outcome": outcome}).headers.get("location")


def choose(url: str, outcome: str, zip_: str = ZIP) -> str | None:
    """The same from the provider's first page, in one step."""
    with httpx2.Client(trust_env=False, verify=False) as client:
        response = client.post(url, data={"zip": zip_, "outcome": outcome})
        assert response.status_code < 400, response.text
        return response.headers.get("location")


def come_back(surfer: Surfer, location: str | None) -> Page:
    """Follow where the provider leads, at the address of the test's server."""
    assert location is not None
    parts = urlsplit(location)
    assert parts.path.startswith(f"{surfer.root}/return/")
    return surfer.open(f"{parts.path}?{parts.query}")


def check(surfer: Surfer, outcome: str, page: Page | None = None) -> Page:
    """A whole check with this outcome; where the provider leads nowhere, the buyer goes back."""
    return arrive(surfer, finish(begin(surfer, page), outcome))


def arrive(surfer: Surfer, location: str | None) -> Page:
    """Return by redirect, or go back and press "done", unless the provider's message came first."""
    if location is not None:
        return come_back(surfer, location)
    page = surfer.open(surfer.root)
    forms = [form for form in page.forms if form.action.endswith("/check")]
    return surfer.send(forms[0]) if forms else page


def send(surfer: Surfer, page: Page, what: str) -> Page:
    """Press the button of this form."""
    return surfer.send(next(one for one in page.forms if one.action.endswith(f"/{what}")))
