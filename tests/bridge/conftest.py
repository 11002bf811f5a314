"""The bridge of the examples, between a service and a platform that is judged."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from countersign_client import Countersign
from tests.bridge.mocks import SECRET, TOKEN, BigCommerce, Magento, Shop, Shopify, open_shop
from tests.cli.serving import Process, running, wait_for
from tests.clients.conftest import SCOPES, Place, running_place
from tests.docs.markdown import ROOT
from tests.storefront.shopper import Shopper
from tests.support.mail_server import MailServer, mail_server
from tests.support.service import free_port

EXAMPLE: Final = ROOT / "examples" / "bridge"
DAY: Final = 24 * 60 * 60
CLASSES: Final = {"HG-1": "accessory", "BL-1": "barrel"}


@dataclass
class Between:
    """A bridge in this process, with a clock of its own, and what it mailed."""

    shop: Shop
    client: Countersign
    folder: Path
    mails: list[tuple[str, str, str]] = field(default_factory=list)
    now: float = 0
    bridge: Any = None

    def open(self, **changed: Any) -> None:  # noqa: ANN401 - arguments of the bridge
        """Start it, or start it again with the same database."""
        self.close()
        module = import_module("bridge")
        platform = module.PLATFORMS[self.shop.name](self.shop.url, TOKEN, SECRET)
        given = {"client": self.client, "lives_at_billing": False, "days": 7} | changed
        self.bridge = module.Bridge(
            platform,
            given.pop("client"),
            lambda *mail: self.mails.append(mail),
            classes=CLASSES,
            database=self.folder / "bridge.db",
            url="http://bridge.example",
            now=lambda: self.now,
            **given,
        )

    def close(self) -> None:
        if self.bridge is not None:
            self.bridge.shop.client.close()
            self.bridge.rows.close()

    def place(self) -> None:
        """The platform says that the order was placed; the bridge does what is due."""
        assert self.bridge.placed(*self.shop.message()) == 204
        self.bridge.advance()

    @property
    def link(self) -> str | None:
        """Where the link of the last mail leads."""
        found: str | None = self.bridge.link(self.mails[-1][2].rpartition("/")[2])
        return found

    def finish(self) -> None:
        """Do all that the buyer is asked, over the link of the last mail."""
        shopper = Shopper("http://bridge.example")
        with shopper.client:
            shopper.initial(shopper.identify(shopper.open(str(self.link))))


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with running_place(tmp_path_factory.mktemp("bridge") / "data", None) as place:
        yield place


@pytest.fixture
def account(place: Place) -> str:
    return place.operator.account()


@pytest.fixture
def key(place: Place, account: str) -> str:
    """A key of that account."""
    return place.operator.key(account, scopes=SCOPES).token


@pytest.fixture
def service(place: Place, key: str) -> dict[str, str]:
    """The settings of the service for a process."""
    return {"COUNTERSIGN_BASE_URL": place.server.url, "COUNTERSIGN_API_KEY": key}


@pytest.fixture
def client(place: Place, key: str) -> Iterator[Countersign]:
    with Countersign(api_key=key, base_url=place.server.url) as client:
        yield client


@pytest.fixture(scope="module")
def shops(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[type[Shop], Shop]]:
    """Each platform, started once."""
    folder = tmp_path_factory.mktemp("platforms")
    with (
        open_shop(BigCommerce, folder) as bigcommerce,
        open_shop(Magento, folder) as magento,
        open_shop(Shopify, folder) as shopify,
    ):
        yield {type(one): one for one in (bigcommerce, magento, shopify)}


@pytest.fixture(params=[BigCommerce, Magento, Shopify], ids=lambda kind: kind.name)
def between(
    request: pytest.FixtureRequest,
    shops: dict[type[Shop], Shop],
    client: Countersign,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Between]:
    """A bridge for each platform, with a new order there."""
    monkeypatch.syspath_prepend(EXAMPLE)
    shop = shops[request.param]
    shop.begin()
    between = Between(shop, client, tmp_path)
    between.open()
    yield between
    between.close()


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
        """What the bridge has noted of the order."""
        return self.noted("state")

    def noted(self, column: str) -> str:
        rows = sqlite3.connect(self.folder / "bridge.db")
        statement = f"SELECT {column} FROM orders WHERE id = ?"  # noqa: S608 - our own names
        try:
            return str(rows.execute(statement, (self.shop.order,)).fetchone()[0] or "")
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
