"""The events that say to a page that its session has changed: streams over a real server."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest

from countersign.base.values import Mode
from countersign.core.checkout.room import STREAMS_EACH_MAX, Updates
from countersign.operate.bootstrap import Deployment
from tests.checkout.buyer import Shop
from tests.checkout.surfer import Surfer, check_headers
from tests.cli.serving import running_module, wait_for
from tests.http.backstage import Operator, make_client
from tests.support.service import Server, free_port

pytestmark = pytest.mark.one_engine

Surf = Callable[..., Surfer]
CHANGED = b"event: changed\ndata:\n\n"
OPENED = b":\n\n"


@contextmanager
def listening(surfer: Surfer, revision: int = 99) -> Iterator[httpx2.Response]:
    """Open a stream of a session that a page shows at this revision."""
    address = f"{surfer.root}/updates?revision={revision}"
    with surfer.client.stream("GET", address) as response:
        yield response


def test_a_page_hears_of_a_change_that_it_does_not_show(surf: Surf, shop: Shop) -> None:
    surfer = surf()
    surfer.client.head(surfer.path)
    with listening(surfer, 0) as response:
        check_headers(response)
        assert response.headers["content-type"] == "text/event-stream"
        assert "content-length" not in response.headers
        pieces = response.iter_raw()
        assert next(pieces) == OPENED
        shop.client.post(f"/v1/checkout_sessions/{surfer.buyer.id}/cancel", json={})
        assert b"".join(pieces) == CHANGED
    with listening(surfer, 0) as late:
        assert late.read() == OPENED + CHANGED


def test_the_head_of_a_stream_ends_at_once(surf: Surf) -> None:
    surfer = surf()
    surfer.client.head(surfer.path)
    for _ in range(STREAMS_EACH_MAX + 1):
        response = surfer.client.head(f"{surfer.root}/updates?revision=0")
        assert (response.status_code, response.content) == (200, b"")


@pytest.mark.parametrize(
    "query", ["", "?revision=", "?revision=-1", "?revision=²", "?revision=1e9"]
)
def test_a_stream_needs_the_shown_revision(surf: Surf, query: str) -> None:
    surfer = surf()
    surfer.client.head(surfer.path)
    response = surfer.client.get(f"{surfer.root}/updates{query}")
    check_headers(response)
    assert response.status_code == 400


def test_there_is_no_stream_without_the_cookie(surf: Surf, shop: Shop) -> None:
    surfer, own = surf(), surf()
    own.client.head(own.path)
    with make_client(shop.server) as stranger:
        for client in (stranger, own.client):
            response = client.get(f"{surfer.root}/updates?revision=0")
            check_headers(response)
            assert response.status_code == 404


def test_a_session_has_a_few_streams_and_closed_ones_make_room(surf: Surf) -> None:
    surfer, other = surf(), surf()
    for one in (surfer, other):
        one.client.head(one.path)
    with ExitStack() as opened:
        for _ in range(STREAMS_EACH_MAX):
            assert opened.enter_context(listening(surfer)).status_code == 200
        with listening(surfer) as refused:
            check_headers(refused)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "30")
        with listening(other) as free:
            assert free.status_code == 200
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with listening(surfer) as response:
            if response.status_code == 200:
                return
    pytest.fail("the streams of a browser that has left are still counted")


Opened = list[AsyncGenerator[bytes, None]]


async def some(updates: Updates, account: str, mode: Mode, number: int) -> Opened:
    """Open streams, each of a session of its own."""
    opened = [updates.after(f"{account}_{mode}_{n}", 0, (account, mode), 16) for n in range(number)]
    for stream in opened:
        assert await anext(stream) == OPENED
    return opened


def left(updates: Updates, account: str, mode: Mode) -> list[str]:
    """The sessions of the streams that an account has."""
    return [stream.session_id for stream in updates._streams[account, mode]]


class Unchanged(Updates):
    """Sees no session change."""

    seconds = 0.001

    async def _look(self) -> None:
        looked, self._looked = self._looked, asyncio.Event()
        looked.set()


def test_the_newest_stream_of_an_account_ends_its_oldest_and_none_of_another(
    own: Operator,
) -> None:
    """An account has a quarter, and its test mode takes nothing from its live mode."""

    async def fill(opened: Deployment) -> None:
        updates = Unchanged(opened.database)
        streams = await some(updates, "acct_1", Mode.LIVE, 2)
        streams += await some(updates, "acct_2", Mode.TEST, 4)
        first, *others = await some(updates, "acct_2", Mode.LIVE, 6)
        assert left(updates, "acct_2", Mode.LIVE) == [f"acct_2_live_{n}" for n in range(2, 6)]
        assert len(left(updates, "acct_2", Mode.TEST)) == 4
        assert len(left(updates, "acct_1", Mode.LIVE)) == 2
        assert [piece async for piece in first] == []  # which the page answers by a reload
        for stream in (*streams, *others):
            await stream.aclose()
        assert updates.open == 0

    own.act(fill)


def test_a_displaced_stream_ends_when_all_others_have_left(own: Operator) -> None:
    """Nothing watches the session then: the stream would stay open for as long as its browser."""

    async def leave(opened: Deployment) -> None:
        updates = Unchanged(opened.database)
        updates.seconds = 100
        first, *others = await some(updates, "acct_1", Mode.LIVE, 4)
        ended = asyncio.ensure_future(all_of(first))
        await asyncio.sleep(0)
        others += await some(updates, "acct_1", Mode.LIVE, 1)
        for stream in others:
            await stream.aclose()
        assert {*await asyncio.wait_for(ended, 20)} <= {OPENED}

    own.act(leave)


async def all_of(stream: AsyncGenerator[bytes, None]) -> list[bytes]:
    return [piece async for piece in stream]


def test_if_all_streams_are_taken_the_fullest_account_makes_room(own: Operator) -> None:
    async def fill(opened: Deployment) -> None:
        updates = Unchanged(opened.database)
        streams = [s for n in range(4) for s in await some(updates, f"acct_{n}", Mode.LIVE, 4)]
        streams += await some(updates, "acct_late", Mode.LIVE, 1)
        counts = [len(left(updates, f"acct_{n}", Mode.LIVE)) for n in range(4)]
        assert (counts, len(left(updates, "acct_late", Mode.LIVE))) == ([3, 4, 4, 4], 1)
        for stream in streams:
            await stream.aclose()
        assert updates.open == 0

    own.act(fill)


def test_a_server_that_stops_ends_its_streams(own_shop: Shop) -> None:
    surfer = Surfer(own_shop.server, own_shop.buyer())
    surfer.client.head(surfer.path)
    with surfer, listening(surfer) as response:
        pieces = response.iter_raw()
        assert next(pieces) == OPENED
        begun = time.monotonic()
        assert own_shop.server.stop() == 0
        assert time.monotonic() - begun < 8
        assert b"".join(pieces) == b""


def test_another_asgi_server_streams_as_well(own: Operator, tmp_path: Path) -> None:
    port, log = free_port(), tmp_path / "log"
    command = ["tests.cli.uvicorn_server", str(port)]
    with running_module(command, own.deployment.environment, log) as process, ExitStack() as opened:
        wait_for(process, log, "Uvicorn running")
        url = f"http://127.0.0.1:{port}"
        server = Server(deployment=own.deployment, url=url, process=process, log=log)
        shop = Shop(opened.enter_context(own.vendor(server)), server, opened)
        surfer = opened.enter_context(Surfer(server, shop.buyer()))
        surfer.client.head(surfer.path)
        with listening(surfer, 0) as response:
            pieces = response.iter_raw()
            assert next(pieces) == OPENED
            shop.client.post(f"/v1/checkout_sessions/{surfer.buyer.id}/cancel", json={})
            assert b"".join(pieces) == CHANGED
        with listening(surfer):
            process.terminate()
            assert process.wait(20) in {0, -signal.SIGTERM}
