"""People with one link can use up its places and requests, and no other vendor's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from countersign.base.http.body import Incoming, Receive
from countersign.base.setting_values import Rate
from countersign.core.gate.route import Call, Reply
from countersign.operate.bootstrap import Deployment
from countersign.server.app import App
from countersign.server.limits import RateLimiter, Visits
from tests.checkout.buyer import Shop
from tests.checkout.test_many_looks import asking, entered
from tests.http.backstage import Operator
from tests.support.service import Deployment as Made
from tests.support.service import running_server
from tests.unit.support import HandClock

pytestmark = pytest.mark.one_engine

FORM = {"content-type": "application/x-www-form-urlencoded"}
JSON = {"content-type": "application/json"}
CURRENT = "/v1/checkout_sessions/current"
SLOW = 450
SESSION_RATE = 60
"""Of a session in a minute, where a key may make ten requests."""


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[Operator]:
    """Give the operator of a deployment with a low rate."""
    made = Made(data_dir=tmp_path / "limited", settings={"RATE_LIMIT": "10/60"})
    made.run("init")
    with Operator(made) as operator:
        yield operator


@pytest.fixture
def limited_shop(limited: Operator) -> Iterator[Shop]:
    """A shop on that deployment, whose sessions are created on a server without limits."""
    with (
        running_server(limited.deployment, RATE_LIMIT="off") as started,
        limited.vendor(started) as vendor,
        ExitStack() as opened,
    ):
        yield Shop(vendor, started, opened)


def csrf_of(page: Reply) -> str:
    return page.body.decode().partition('name="csrf" value="')[2].partition('"')[0]


def call_of(path: str, headers: dict[str, str]) -> Call:
    """A POST of a browser."""
    sent = [(name.encode(), value.encode()) for name, value in headers.items()]
    return Call(
        method="POST",
        path=path,
        query_string=b"",
        headers=dict(sent),
        raw_headers=sent,
        peer="127.0.0.1",
    )


class Slow(Incoming):
    """A body that is not read further than it is asked for."""

    async def drain(self) -> None:
        """Drop the rest at once."""


def slowly(size: int, let: asyncio.Event) -> Slow:
    """A body whose last byte comes only on command."""
    sent = False

    async def receive() -> dict[str, Any]:
        nonlocal sent
        if not sent:
            sent = True
            return {"type": "http.request", "body": b"x" * size, "more_body": True}
        await let.wait()
        return {"type": "http.request", "body": b"", "more_body": False}

    return Slow(receive)


async def _none() -> dict[str, Any]:
    return {"type": "http.disconnect"}


class Unread(Incoming):
    """A body that must not be read."""

    receive: Receive = _none

    async def read(self, *_: Any) -> bytes:  # noqa: ANN401 - as what it replaces
        """Fail the test."""
        raise AssertionError


@pytest.mark.parametrize("way", ["initials", "component"])
def test_slow_bodies_on_one_link_do_not_affect_other_buyers(
    own: Operator, own_shop: Shop, way: str
) -> None:
    """Four hundred and fifty at once fill the places of their own session alone."""
    path, page, component = entered(own_shop)
    with own.vendor(own_shop.server) as vendor, ExitStack() as opened:
        other = Shop(vendor, own_shop.server, opened)
        innocent, cookie, token = entered(other)

    async def attack(opened: Deployment) -> tuple[list[int], Reply, Reply]:
        app, let = App(opened), asyncio.Event()
        await asking(app, path, page)
        address, headers = (f"{path}/initials", page | FORM)
        if way == "component":
            address, headers = f"{CURRENT}/events", component | JSON
        size = 8_000
        slow = [
            asyncio.create_task(app.handle(call_of(address, headers), slowly(size, let)))
            for _ in range(SLOW)
        ]
        refused, _ = await asyncio.wait(slow, return_when=asyncio.FIRST_COMPLETED)
        while len(refused) < SLOW - 4 * 65_536 // size:
            refused, _ = await asyncio.wait(slow, timeout=0.01)
        form = await asking(app, innocent, cookie)
        initials = {f"initials_{n}": "AB" for n in range(1, 5)}
        digest = form.body.decode().partition('name="notice_digest" value="')[2].partition('"')[0]
        sent = urlencode(initials | {"csrf": csrf_of(form), "notice_digest": digest}).encode()
        initialed = await asking(app, f"{innocent}/initials", cookie | FORM, sent)
        claimed = await asking(
            app, f"{CURRENT}/events", token | JSON, b'{"events": [{"line": 1, "event": "shown"}]}'
        )
        let.set()
        ended = await asyncio.gather(*slow)
        return [reply.status for reply in ended], initialed, claimed

    statuses, initialed, claimed = own.act(attack)
    assert (initialed.status, claimed.status) == (303, 200)
    assert statuses.count(503) >= SLOW - 4 * 65_536 // 8_000


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("{own}/no-such-form", 404),
        ("{own}/initials/more", 404),
        ("/c/cs_00000000000000000000000000/initials", 404),
        ("/c/anything/at/all", 404),
        (f"{CURRENT}/events", 401),
        (f"{CURRENT}/acknowledge", 401),
        (f"{CURRENT}/decline", 401),
    ],
)
def test_a_body_without_a_use_is_refused_before_it_is_read(
    own: Operator, own_shop: Shop, path: str, status: int
) -> None:
    """An unknown form or session, or a wrong token."""
    mine, page, _ = entered(own_shop)
    stranger = page | FORM if path.startswith("{own}") else FORM | {"authorization": "Bearer x"}

    async def post(opened: Deployment) -> Reply:
        return await App(opened).handle(call_of(path.format(own=mine), stranger), Unread())

    assert own.act(post).status == status


def test_a_form_is_small(own: Operator, own_shop: Shop) -> None:
    """A few fields need no 64 KiB, and a field for each line not much more."""
    path, page, _ = entered(own_shop)

    async def post(opened: Deployment) -> list[int]:
        app = App(opened)
        sent = [b"x" * (8_192 + 4 * 512 + more) for more in (0, 1)]
        return [(await asking(app, f"{path}/initials", page | FORM, body)).status for body in sent]

    assert own.act(post) == [400, 413]


@pytest.mark.parametrize("locale", ["en", "es"])
def test_a_link_is_opened_so_often_and_no_more(
    limited: Operator, limited_shop: Shop, locale: str
) -> None:
    """Then its page says so in the buyer's language, and the links of others go on."""
    path, page, component = entered(limited_shop, locale=locale)
    other, cookie, token = entered(limited_shop)

    async def look(opened: Deployment) -> tuple[list[Reply], list[Reply], list[Reply]]:
        app = App(opened)
        app._visits = Visits(Rate(10, 60), lambda _, rate: RateLimiter(rate, HandClock()))
        pages = [await asking(app, path, page) for _ in range(SESSION_RATE + 1)]
        component_too = await asking(app, CURRENT, component)
        others = [await asking(app, other, cookie), await asking(app, CURRENT, token)]
        return pages, [component_too], others

    pages, [component_too], others = limited.act(look)
    assert [reply.status for reply in pages] == [200] * SESSION_RATE + [429]
    assert [reply.status for reply in others] == [200, 200]
    headers = dict(pages[-1].headers)
    assert int(headers[b"retry-after"]) == 1
    assert headers[b"content-type"].startswith(b"text/html")
    said = {"en": "opened too often", "es": "se abrió demasiadas veces"}[locale]
    assert said in pages[-1].body.decode()
    assert f'lang="{locale}"' in pages[-1].body.decode()
    assert component_too.status == 429
    assert b'"rate_limited"' in component_too.body
    assert b"retry-after" in dict(component_too.headers)


def test_invalid_tokens_and_sessions_are_not_cached(limited: Operator, limited_shop: Shop) -> None:
    """A stranger who makes them up fills no memory, and uses up no buyer's quota."""
    path, page, component = entered(limited_shop)
    token = component["authorization"]
    made_up = [token[:-8] + f"{n:08d}" for n in range(20)]

    async def look(opened: Deployment) -> tuple[int, Reply]:
        app = App(opened)
        for one in made_up:
            await asking(app, CURRENT, {"authorization": one})
            await asking(app, f"/c/{one.removeprefix('Bearer ')}", {})
        for _ in range(SESSION_RATE + 1):
            await asking(app, path, {})  # without its cookie
        assert app._visits is not None
        return len(app._visits._sessions._arrivals._times), await asking(app, path, page)

    known, reply = limited.act(look)
    assert (known, reply.status) == (0, 200)
