"""A deployment at a name that browsers allow passkeys for, with shops and a buyer's browser."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from countersign.base.values import Mode
from countersign.core.access.account import register
from countersign.hosted.remembered import remember_cookie
from tests.checkout.buyer import SHOP
from tests.checkout.surfer import Form, Page, check_headers
from tests.http.backstage import Operator, another_deployment, make_client
from tests.remembered.device import ORIGIN, Passkey
from tests.support.acts import done
from tests.support.engines import ENGINES, Once, engine_server, kept
from tests.support.moved_clock import VARIABLE, MovedClock
from tests.support.postgres import PostgresServer
from tests.support.providers import Playing, playing
from tests.support.service import Server, running, start_server
from tests.verification.live import LiveVendor, live_vendor

Enter = Callable[..., Page]
READ = timedelta(milliseconds=1200)
"""How long a page is read before a press on it counts."""


def clock_of(server: Server) -> MovedClock:
    return MovedClock(server.deployment.data_dir.parent / "clock")


class Person:
    """A browser that goes to several shops, and keeps its cookies.

    Its owner reads a page before pressing anything on it.
    """

    def __init__(self, server: Server) -> None:
        self.client = make_client(server)
        self.clock = clock_of(server)

    def open(self, path: str, **headers: str) -> Page:
        """Open a page, and the next one if the first only says "Continue"."""
        page = self.arrive(path, **headers)
        first = [form for form in page.forms if form.action.endswith("/arrive")]
        return self.send(first[0]) if first else page

    def arrive(self, path: str, **headers: str) -> Page:
        """Open a page."""
        return self._page(self.client.get(path, headers=headers, follow_redirects=True))

    def send(self, form: Form, headers: Mapping[str, str] | None = None, **changes: str) -> Page:
        """Send a form, and follow the redirect, unless that is another site."""
        response = self.post(form, headers, **changes)
        target = response.headers.get("location", "")
        if response.status_code == 303 and target.startswith("/"):
            return self.open(target)
        return Page(response)

    def post(
        self, form: Form, headers: Mapping[str, str] | None = None, **changes: str
    ) -> httpx2.Response:
        self.clock.ahead(READ)
        return self.press(form, headers, **changes)

    def press(
        self, form: Form, headers: Mapping[str, str] | None = None, **changes: str
    ) -> httpx2.Response:
        """Send a form at once."""
        response = self.client.post(
            form.action, data=form.fields | changes, headers=dict(headers or {})
        )
        check_headers(response)
        return response

    def pressed(self, form: Form, **headers: str) -> Page:
        """Send a form at once, and follow its redirects."""
        return self.arrive(self.press(form, headers).headers["location"], **headers)

    def _page(self, response: httpx2.Response) -> Page:
        check_headers(response)
        return Page(response)


def form_of(page: Page, how: str, name: str = "how") -> Form:
    """The form of a choice."""
    return next(form for form in page.forms if form.fields.get(name) == how)


def options_of(page: Page) -> dict[str, Any]:
    """The options that the script of a page passes to the authenticator."""
    [text] = [have["data-passkey"] for _, have in page.elements if "data-passkey" in have]
    found: dict[str, Any] = json.loads(text)
    return found


@dataclass(frozen=True)
class Shop:
    """An account that makes sessions for identity checks."""

    vendor: Any
    mode: str = "test"

    def session(self, **changes: object) -> dict[str, Any]:
        body = {
            "return_url": f"{SHOP}/back?cart=7",
            "session_id": "cart-7",
            "collect": ["identity"],
            "shipping_zip": "94110",
        }
        made = self.client.post("/v1/checkout_sessions", json=body | changes)
        assert made.status_code == 200, made.text
        found: dict[str, Any] = made.json()
        return found

    def read(self, session: dict[str, Any]) -> dict[str, Any]:
        path = f"/v1/checkout_sessions/{session['checkout_session_id']}"
        found: dict[str, Any] = self.client.get(path).raise_for_status().json()
        return found

    @property
    def client(self) -> httpx2.Client:
        client: httpx2.Client = getattr(self.vendor, self.mode)
        return client


def link(session: dict[str, Any]) -> str:
    return f"/c/{session['client_token']}"


def verify_in(person: Person, session: dict[str, Any]) -> Page:
    """Do the identity check of the sandbox; gives the page after it."""
    page = person.open(link(session))
    form = next(f for f in page.forms if f.action.endswith("/identity"))
    return person.send(form, outcome="verified")


here = pytest.fixture(scope="package")(kept)


def kept_by_passkey(person: Person, shop: Shop, device: Passkey | None = None) -> Passkey:
    """A passkey that a buyer keeps at the end of an identity check."""
    device = device or Passkey()
    done = verify_in(person, shop.session())
    person.send(form_of(done, "passkey"), credential=device.create(options_of(done)))
    return device


def sign_in(person: Person, device: Passkey) -> Page:
    """`/buyer` after a sign-in with a passkey."""
    page = person.open("/buyer")
    return person.send(form_of(page, "sign_in", "act"), credential=device.sign(options_of(page)))


@contextmanager
def _operator(place: Path, engine: PostgresServer | None) -> Iterator[Operator]:
    with Operator(another_deployment(place / "data", engine, PUBLIC_URL=ORIGIN)) as operator:
        yield operator


@contextmanager
def _served(operator: Operator) -> Iterator[Server]:
    clock = operator.deployment.data_dir.parent / "clock"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(VARIABLE, str(clock))
        server = start_server(operator.deployment)
    with running(server):
        yield server


@pytest.fixture
def is_alone(request: pytest.FixtureRequest) -> bool:
    """Whether a test has a deployment of its own: one that looks into it, or has live buyers."""
    names = {*inspect.signature(request.function).parameters}
    return "operator" in names or "live_shop" in request.fixturenames


@pytest.fixture(params=ENGINES)
def operator(
    request: pytest.FixtureRequest,
    here: Once,
    is_alone: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Operator]:
    """Give the operator of a deployment, on each engine."""
    made = partial(_operator, tmp_path_factory.mktemp("remembered"), engine_server(request))
    if is_alone:
        with made() as operator:
            yield operator
    else:
        yield here(("operator", request.param), made)


@pytest.fixture
def server(operator: Operator, here: Once, is_alone: bool) -> Iterator[Server]:
    """Give a server with a clock that is moved."""
    if is_alone:
        with _served(operator) as server:
            yield server
    else:
        yield here(("server", operator.deployment.data_dir), partial(_served, operator))


@pytest.fixture
def shop(operator: Operator, server: Server) -> Iterator[Shop]:
    """Give a shop that uses its test key."""
    with operator.vendor(server) as vendor:
        yield Shop(vendor)


@pytest.fixture
def person(server: Server) -> Iterator[Person]:
    made = Person(server)
    yield made
    made.client.close()


@pytest.fixture
def another(server: Server) -> Iterator[Person]:
    """Give another browser."""
    made = Person(server)
    yield made
    made.client.close()


@pytest.fixture
def provider() -> Iterator[Playing]:
    with playing("stripe") as played:
        yield played


@pytest.fixture
def live_shop(
    operator: Operator, server: Server, provider: Playing
) -> Iterator[Callable[..., Shop]]:
    """Makes shops that verify live buyers, each with its own rules."""
    with ExitStack() as stack:

        def make(**rules: object) -> Shop:
            vendor = stack.enter_context(live_vendor(operator, server, provider, **rules))
            operator.act(lambda opened: done(register, opened.access, vendor.account_id, SHOP))
            return Shop(vendor, "live")

        yield make


def verified_at(vendor: LiveVendor, number: int = 0) -> tuple[str, str]:
    """A live buyer and the ZIP code that is proved."""
    session = vendor.part("verified", number)
    return vendor.verified(session), session.shipping_zip


def remembered(operator: Operator, person: Person, cbid: str, mode: Mode = Mode.LIVE) -> str:
    """Have this browser remember a buyer by a cookie, as the page does; gives its value."""
    value = operator.act(lambda opened: remember_cookie(opened.checkout.remembered, mode, cbid))
    name = "cs-remembered" + ("-test" if mode is Mode.TEST else "")
    person.client.cookies.set(name, value)
    return value
