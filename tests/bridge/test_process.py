"""examples/bridge as a process: killed in the middle, woken by webhooks, judged by the kit."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from countersign_client import Countersign
from tests.bridge.conftest import EXAMPLE
from tests.bridge.mocks import SECRET, TOKEN, BigCommerce, Magento, Shop, Shopify
from tests.cli.serving import Process, running, wait_for, wait_until
from tests.storefront.shopper import Shopper
from tests.support.mail_server import MailServer, mail_server
from tests.support.service import free_port

pytestmark = [pytest.mark.npm, pytest.mark.one_engine]


@dataclass(frozen=True, kw_only=True)
class Started:
    """The settings of a bridge, and where its mails and its database are."""

    shop: Shop
    folder: Path
    url: str
    environment: dict[str, str]
    mails: MailServer

    @contextmanager
    def running(self) -> Iterator[Process]:
        log, command = self.folder / "log", [sys.executable, str(EXAMPLE / "bridge.py")]
        with running(command, self.environment, log, self.folder) as process:
            wait_for(process, log, "The bridge listens")
            yield process

    def state(self) -> str:
        rows = sqlite3.connect(self.folder / "bridge.db")
        try:
            return str(rows.execute("SELECT state FROM orders").fetchone()[0])
        finally:
            rows.close()

    def post(self, secret: str = SECRET) -> int:
        headers, body = self.shop.message(secret)
        return httpx2.post(f"{self.url}/placed", content=body, headers=headers).status_code


@pytest.fixture(params=[BigCommerce, Magento, Shopify], ids=lambda kind: kind.name)
def started(
    request: pytest.FixtureRequest,
    shops: dict[type[Shop], Shop],
    service: dict[str, str],
    client: Countersign,
    tmp_path: Path,
) -> Iterator[Started]:
    shop = shops[request.param]
    shop.begin()
    url = f"http://127.0.0.1:{free_port()}"
    endpoint = client.webhook_endpoints.create(url=f"{url}/countersign")
    with mail_server() as mails:
        environment = service | {
            "BRIDGE_WEBHOOK_SECRET": endpoint.secret,
            "BRIDGE_PLATFORM": shop.name,
            "BRIDGE_SHOP_URL": shop.url,
            "BRIDGE_SHOP_TOKEN": TOKEN,
            "BRIDGE_SHOP_SECRET": SECRET,
            "BRIDGE_CLASSES": "HG-1=accessory",
            "BRIDGE_URL": url,
            "BRIDGE_PORT": url.rpartition(":")[2],
            "BRIDGE_SMTP": f"127.0.0.1:{mails.port}",
            "BRIDGE_FROM": "shop@example.com",
        }
        yield Started(
            shop=shop,
            folder=tmp_path,
            url=url,
            environment=os.environ | environment,
            mails=mails,
        )
    client.webhook_endpoints.delete(endpoint.endpoint_id)


@pytest.mark.crash
def test_a_bridge_that_was_killed_resumes(started: Started) -> None:
    """Killed when the order was held, and when it was released: each is done once, and noted."""
    shop, shopper = started.shop, Shopper(started.url)
    with held_up(shop), started.running() as process:
        assert started.post() == 204
        assert shop.held_up.wait(30)
        process.kill()
        process.wait()
    assert (started.state(), shop.acts, started.mails.mails) == ("placed", ["held"], [])
    with held_up(shop), started.running() as process, shopper.client:
        # It asks by itself about what it left.
        wait_until(lambda: bool(started.mails.mails), "the mail")
        link = started.mails.mails[0].text.split()[-1]
        shopper.initial(shopper.identify(shopper.open(link)))
        # The service's webhook wakes it.
        assert shop.held_up.wait(30)
        process.kill()
        process.wait()
    assert (started.state(), shop.acts) == ("waiting", ["held", "released"])
    with started.running():
        wait_until(lambda: started.state() == "released", "the note")
        assert httpx2.get(link).status_code == 410
    assert (shop.acts, len(started.mails.mails)) == (["held", "released"], 1)


@contextmanager
def held_up(shop: Shop) -> Iterator[None]:
    """Let the platform's next act wait for its answer."""
    shop.held_up.clear()
    shop.hold_up = threading.Event()
    try:
        yield
    finally:
        shop.hold_up.set()
        shop.hold_up = None


def test_messages_of_strangers_wake_nobody(started: Started) -> None:
    with started.running():
        assert started.post("another secret") == 401
        assert httpx2.post(f"{started.url}/countersign", content=b"{}").status_code == 400
        assert httpx2.post(f"{started.url}/elsewhere", content=b"{}").status_code == 404
        assert httpx2.get(f"{started.url}/notice/cs_unknown").status_code == 410
    assert started.shop.acts == []
