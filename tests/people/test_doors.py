"""Forms for people who are not signed in: small, and no stranger takes another's place."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import urlencode

import pytest

from countersign.base.http.body import BODY_BYTES_MAX, DOOR_BYTES_MAX
from countersign.core.access.role import Role
from countersign.core.gate.route import Call, Reply
from tests.checkout.test_strangers import Unread, slowly
from tests.people.crew import Console, in_console
from tests.remembered.device import ORIGIN
from tests.support.in_process import call_of, whole

pytestmark = pytest.mark.one_engine
DOORS = ["/console/sign-in", "/console/link", "/console/provider/return", "/buyer/sign-in"]
PLACES = BODY_BYTES_MAX * 64 // DOOR_BYTES_MAX
FORM = b"application/x-www-form-urlencoded"


def form_of(path: str, address: str = "203.0.113.1", cookie: str = "") -> Call:
    """A form of a browser behind the proxy."""
    sent = [(b"origin", ORIGIN.encode()), (b"content-type", FORM), (b"cookie", cookie.encode())]
    sent += [(b"sec-fetch-site", b"same-origin"), (b"x-forwarded-for", address.encode())]
    return call_of("POST", path, sent)


async def besieged(
    console: Console, path: str, number: int, work: Callable[[], Awaitable[None]]
) -> list[Reply]:
    """Responses to many slow bodies at a sign-in route, whose last byte is sent after this work."""
    let, handle = asyncio.Event(), console.app.handle
    slow = [
        asyncio.ensure_future(handle(form_of(path), slowly(DOOR_BYTES_MAX - 1, let)))
        for _ in range(number)
    ]
    for _ in range(200):
        await asyncio.sleep(0)
    await work()
    let.set()
    return list(await asyncio.gather(*slow))


@pytest.mark.parametrize("path", DOORS)
def test_slow_strangers_do_not_block_sign_in_from_other_addresses(
    tmp_path: Path, path: str
) -> None:
    """Each address has three places at a door, as the configured proxies tell it."""

    async def work(console: Console) -> None:
        async def others() -> None:
            reply = await console.app.handle(form_of(path, "203.0.113.2"), whole(b"a=1"))
            assert reply.status < 500, reply.body
            own = await console.app.handle(form_of(path), whole(b"a=1"))
            assert own.status == 503, own.body

        replies = await besieged(console, path, 50, others)
        assert [reply.status for reply in replies].count(503) == 47

    in_console(tmp_path, work, TRUSTED_PROXIES="127.0.0.1")


def test_without_a_known_proxy_no_stranger_blocks_signed_in_people(tmp_path: Path) -> None:
    """All strangers have places in common then; a session has its own."""

    async def work(console: Console) -> None:
        ada = await console.person("Ada", Role.OWNER)

        async def others() -> None:
            code = console.host.form_code(ada.session)
            form = urlencode({"code": code, "name": "x" * DOOR_BYTES_MAX * 2}).encode()
            call = form_of("/console/all/accounts/-/new", cookie=f"csc-session={ada.session}")
            assert (await console.app.handle(call, whole(form))).status == 303
            assert (await console.app.handle(form_of(DOORS[0]), whole(b"a=1"))).status == 503

        replies = await besieged(console, DOORS[0], PLACES + 5, others)
        assert [reply.status for reply in replies].count(503) == 5

    in_console(tmp_path, work)


def test_a_door_takes_little(tmp_path: Path) -> None:
    """A passkey's response has a quarter of it."""

    async def work(console: Console) -> None:
        for path in DOORS:
            reply = await console.app.handle(form_of(path), whole(b"a" * (DOOR_BYTES_MAX + 1)))
            assert reply.status == 413, path

    in_console(tmp_path, work)


def test_no_other_body_of_a_stranger_is_read(tmp_path: Path) -> None:
    """Without a valid session, the form redirects to the sign-in page."""

    async def work(console: Console) -> None:
        paths = ["/console", "/console/all/accounts/-/new", "/console/passkey", "/buyer"]
        for path in paths:
            for cookie in ("", "csc-session=csign_ps_x"):
                reply = await console.app.handle(form_of(path, cookie=cookie), Unread())
                assert reply.status == 303, (path, reply.body)

    in_console(tmp_path, work)
