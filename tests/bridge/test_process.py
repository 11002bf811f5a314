"""examples/bridge as a process: killed in the middle, and woken by webhooks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import pytest

from tests.bridge.conftest import Started
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
    with started.running():
        assert started.post("another secret") == 401
        assert httpx2.post(f"{started.url}/countersign", content=b"{}").status_code == 400
        assert httpx2.post(f"{started.url}/elsewhere", content=b"{}").status_code == 404
        assert httpx2.get(f"{started.url}/notice/cs_unknown").status_code == 410
    assert started.shop.acts == []
