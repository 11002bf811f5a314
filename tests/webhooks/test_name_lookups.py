"""Names whose servers do not answer delay only their own account."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from countersign.core.webhooks.address_guard import LOOKUPS_MAX, AddressGuard
from countersign.core.webhooks.model import Outcome, TargetAddress
from countersign.core.webhooks.sender import WebhookSender
from tests.webhooks.receiver import running_receiver, until

HOSTILE, INNOCENT = "acct_hostile", "acct_innocent"
HANGING = 64
"""More than any pool of threads that a process has by default."""


def test_hanging_lookups_take_no_thread_that_others_need(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop's pool, which identity providers use, stays free; so do others' webhooks."""
    resolve, hung = socket.getaddrinfo, threading.Semaphore(0)
    asked: list[str] = []

    def hang(host: str, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - as the real one
        asked.append(host)
        if host.endswith(".slow.test"):
            hung.acquire()
            raise socket.gaierror
        return resolve(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", hang)

    async def scenario() -> None:
        sender = WebhookSender(AddressGuard(private=True), timeout_seconds=3600)
        async with running_receiver() as good:
            dead = [
                asyncio.ensure_future(
                    sender.post(
                        TargetAddress("http", f"x{n}.slow.test", 80, "/"), {}, b"{}", HOSTILE
                    )
                )
                for n in range(HANGING)
            ]
            await until(lambda: len(asked) >= LOOKUPS_MAX)
            loop = asyncio.get_running_loop()
            assert await loop.getaddrinfo("localhost", 80), "as an identity provider's client does"
            target = TargetAddress("http", "localhost", good.port, "/")
            sent = await sender.post(target, {}, b"{}", INNOCENT)
            assert sent.outcome is Outcome.DELIVERED
            assert sum(host.endswith(".slow.test") for host in asked) == LOOKUPS_MAX
            hung.release(HANGING)
            outcomes = {sent.outcome for sent in await asyncio.gather(*dead)}
            assert outcomes == {Outcome.UNREACHABLE}
        await sender.close()

    asyncio.run(scenario())


def test_an_abandoned_lookup_keeps_its_place_until_it_ends() -> None:
    """Giving up does not end it, so repeated calls do not add running lookups."""
    under_way: list[str] = []
    go_on = asyncio.Event()

    async def resolve(host: str, _port: int) -> Sequence[str]:
        under_way.append(host)
        await go_on.wait()
        return ["127.0.0.1"]

    async def scenario() -> None:
        guard = AddressGuard(private=True, resolve=resolve)
        for turn in range(3):
            asking = [
                asyncio.ensure_future(guard.addresses(f"{turn}-{n}.test", 80, HOSTILE))
                for n in range(HANGING)
            ]
            await until(lambda: len(under_way) == LOOKUPS_MAX)
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
        assert len(under_way) == LOOKUPS_MAX
        go_on.set()
        assert await guard.addresses("later.test", 80, HOSTILE) == ["127.0.0.1"]

    asyncio.run(scenario())


@pytest.mark.parametrize("found", [True, False])
def test_a_name_is_looked_up_once_at_a_time_and_remembered_for_a_while(found: bool) -> None:
    """A failure, too; one account does not get another account's result."""
    asked: Counter[str] = Counter()

    async def resolve(host: str, _port: int) -> Sequence[str]:
        asked[host] += 1
        await asyncio.sleep(0)
        if not found:
            raise socket.gaierror
        return ["127.0.0.1"]

    async def scenario() -> None:
        guard = AddressGuard(private=True, resolve=resolve, remembered_seconds=3600)

        async def ask(account_id: str) -> bool:
            try:
                return bool(await guard.addresses("hook.test", 80, account_id))
            except OSError:
                return False

        assert set(await asyncio.gather(*(ask(HOSTILE) for _ in range(HANGING)))) == {found}
        assert await ask(HOSTILE) is found
        assert asked["hook.test"] == 1
        assert await ask(INNOCENT) is found
        assert asked["hook.test"] == 2

    asyncio.run(scenario())
