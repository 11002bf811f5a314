"""`make demo`: the service and the shop, started and ended together."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.serving import Process, running, wait_for, wait_until
from tests.storefront.shopper import ROOT, Shopper
from tests.support.service import PREFIX, free_port

pytestmark = pytest.mark.long


@contextmanager
def demo(directory: Path, port: int, shop_port: int) -> Iterator[tuple[Process, Path]]:
    """Run the demonstration in this directory."""
    # Settings of another deployment, which must not lead it there.
    other = {"DATA_DIR": str(directory / "other"), "PUBLIC_URL": "https://x.example"}
    settings = {PREFIX + name: value for name, value in (other | {"PORT": str(port)}).items()}
    environment = os.environ | settings | {"SHOP_PORT": str(shop_port)}
    log = directory / "log"
    command = [sys.executable, str(ROOT / "examples" / "demo.py")]
    with running(command, environment, log, directory) as process:
        yield process, log


def taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.later
@pytest.mark.timeout(300)  # nine processes, one after the other
def test_the_demonstration_sells_and_ends_and_can_be_started_again(tmp_path: Path) -> None:
    """The second start has another key, and the data of the first."""
    port, shop_port = free_port(), free_port()
    for ending in (signal.SIGINT, signal.SIGTERM):
        with demo(tmp_path, port, shop_port) as (process, log):
            said = wait_for(process, log, "The shop is open")
            assert f"http://localhost:{shop_port}" in said
            assert "csign_sk" not in said
            # A person is invited once, by a link that a server never sees.
            links = said.count(f"http://localhost:{port}/console/link#csign_pl_")
            assert links == (2 if ending is signal.SIGINT else 0)
            _buy(f"http://localhost:{shop_port}")
            process.send_signal(ending)
            assert process.wait() == 0
            assert not taken(port)
            assert not taken(shop_port)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "var"]


def _buy(shop: str) -> None:
    """Buy without coming back to the shop: a webhook says that the order is complete."""
    shopper = Shopper(shop)
    with shopper.client:
        assert shopper.open("/products/parcel").heading == "Parcel with an invented notice"
        identity = shopper.order("handguard")
        assert "Ridgeline Workshop" in identity.text
        shopper.initial(shopper.identify(identity))
        wait_until(lambda: "It is empty" in shopper.open("/cart").text, "the webhook")


@pytest.mark.later
def test_a_taken_port_is_named_and_nothing_stays(tmp_path: Path) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", 0)) as other:
        shop_port = other.getsockname()[1]
        with demo(tmp_path, port, shop_port) as (process, log):
            assert process.wait() == 1
            assert f"cannot use port {shop_port}" in log.read_text()
            assert not taken(port)
