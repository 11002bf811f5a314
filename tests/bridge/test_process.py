"""examples/bridge as a process: killed in the middle, and woken by webhooks."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import pytest

from tests.bridge.conftest import EXAMPLE, Started
from tests.bridge.mocks import Shop
from tests.cli.serving import wait_until
from tests.storefront.shopper import Shopper

pytestmark = [pytest.mark.npm, pytest.mark.one_engine]


@pytest.mark.crash
def test_a_bridge_that_was_killed_resumes(started: Started) -> None:
    """Killed when the order was held, and when it was released: each is done once, and noted."""
    shop, shopper = started.shop, Shopper(started.url)
    with held_up(shop), started.running() as process:
        assert started.post() == 204
        assert shop.held_up.wait(30)
        process.kill()
        process.wait()
    assert (started.state(), shop.acts, started.mails.mails) == ("held", ["held"], [])
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
    """They get a status that says so, and the operator a line."""
    with started.running():
        assert started.post("another secret") == 401
        headers, _ = started.shop.message()
        wrong = httpx2.post(f"{started.url}/placed", content=b"[]", headers=headers)
        # Shopify's signature covers the body.
        assert wrong.status_code == (401 if started.shop.name == "shopify" else 400)
        assert httpx2.post(f"{started.url}/countersign", content=b"{}").status_code == 400
        assert httpx2.post(f"{started.url}/elsewhere", content=b"{}").status_code == 404
        assert httpx2.get(f"{started.url}/notice/cs_unknown").status_code == 410
    assert started.shop.acts == []
    assert "401 at /placed" in (started.folder / "log").read_text()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BRIDGE_SHOP_SECRET", ""),
        ("BRIDGE_WEBHOOK_SECRET", "sec"),
        ("BRIDGE_PLATFORM", "Magento"),
        ("BRIDGE_CLASSES", "HG-1"),
        ("BRIDGE_SMTP", ""),
    ],
)
def test_a_wrong_setting_is_named_at_the_start(started: Started, name: str, value: str) -> None:
    """An empty secret above all: anybody could sign with it."""
    command = [sys.executable, str(EXAMPLE / "bridge.py")]
    environment = started.environment | {name: value}
    ended = subprocess.run(
        command, env=environment, cwd=started.folder, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"{name} is missing or wrong: expected ")
