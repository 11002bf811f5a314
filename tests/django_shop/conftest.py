"""A Django project in this process, its web server, and a Countersign for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import pytest

from tests.django_shop.project import SECRET, configure, use_database

configure()

from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.db import connections  # noqa: E402
from django.test.utils import override_settings  # noqa: E402

from countersign_client import Countersign  # noqa: E402 - models need the set-up
from countersign_django import orders, signals  # noqa: E402
from countersign_django.conf import client as app_client  # noqa: E402
from countersign_django.models import State  # noqa: E402
from tests.clients.conftest import SCOPES, allow_overrides, running_place  # noqa: E402
from tests.django_shop.models import Order  # noqa: E402
from tests.storefront.shopper import Shopper  # noqa: E402
from tests.support.service import Server  # noqa: E402


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Requests are not logged."""


@dataclass(frozen=True, kw_only=True)
class Shop:
    """The project, its web server, the service, and a client with every scope."""

    url: str
    server: Server
    client: Countersign
    key: str
    secret: str

    def order(
        self,
        *classes: str,
        zip_code: str = "94105",
        cbid: str = "",
        origin: str = "",
        number: str = "",
    ) -> Order:
        """An order that waits for its buyer."""
        order = Order.objects.create(number=number)
        needed = orders.needs(
            classes or ["accessory"], state="CA", zip_code=zip_code, residence_state="CA"
        )
        assert needed is not None
        back = f"{self.url}/back/{order.pk}/"
        orders.begin(order, needed, return_url=back, cbid=cbid, origin=origin)
        return order

    def buy(self, order: Order, outcome: str = "verified") -> Shopper:
        """Do all that the page asks for; the buyer does not come back."""
        shopper = Shopper(self.url)
        with shopper.client:
            page = shopper.open(order.notice_url)
            if not order.cbid and "Identity check" in page.text:
                page = shopper.identify(page, outcome)
            shopper.initial(page)
        return shopper

    def bought(self, **known: Any) -> Order:  # noqa: ANN401 - those of an order
        order = self.order(**known)
        self.buy(order)
        orders.refresh(order)
        return order


@pytest.fixture(scope="package")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Run the service and the project's web server while the tests of this folder run."""
    folder = tmp_path_factory.mktemp("django")
    use_database(str(folder / "shop.sqlite"))
    with (
        running_place(folder / "data", None) as place,
        make_server("127.0.0.1", 0, get_wsgi_application(), WSGIServer, Quiet) as web,
    ):
        url = f"http://127.0.0.1:{web.server_port}"
        account = place.operator.account()
        allow_overrides(place, account)
        key = place.operator.key(account, scopes=SCOPES).token
        conf = {"BASE_URL": place.server.url, "API_KEY": key, "WEBHOOK_SECRET": SECRET}
        thread = threading.Thread(target=web.serve_forever)
        thread.start()
        with (
            override_settings(COUNTERSIGN=conf),
            Countersign(api_key=key, base_url=place.server.url) as client,
        ):
            made = client.webhook_endpoints.create(url=f"{url}/countersign/webhook/")
            with override_settings(COUNTERSIGN=conf | {"WEBHOOK_SECRET": made.secret}):
                yield Shop(url=url, server=place.server, client=client, key=key, secret=made.secret)
                app_client().close()
        web.shutdown()
        thread.join()
    connections["default"].close()


@pytest.fixture
def shop(running: Shop) -> Iterator[Shop]:
    """Give the shop, whose payments follow the state of an order."""

    def pay(order: Order, before: State, **_: object) -> None:
        assert order.gateway_works, "the gateway fails"
        if order.state in {State.CLEARED, State.OVERRIDDEN}:
            order.captured += 1
        elif order.state not in {State.NONE, State.OPEN}:
            order.voided += 1
        order.save(update_fields=["captured", "voided"])

    signals.order_changed.connect(pay)
    yield running
    signals.order_changed.disconnect(pay)
