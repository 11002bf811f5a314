"""The clock is compared with others, and with itself, before anything is signed."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress

import pytest

from countersign.core.log import clock_guard
from countersign.core.log.clock_guard import HOLD_SECONDS, ClockGuard, times_of
from tests.unit.support import HandClock

HOURS = 3600 * 10**9


class World:
    """A machine's clock, and others' clocks."""

    def __init__(self, **ahead: float) -> None:
        """`ahead` are the other clocks by name: by how many seconds they are ahead of the truth."""
        self.clock = HandClock()
        self.ahead = ahead
        self.wrong_ns = 0
        self.asked = 0
        self.fails = False
        self.guard = ClockGuard(self.clock, self.times)

    async def times(self) -> Mapping[str, float]:
        self.asked += 1
        if self.fails:
            raise RuntimeError
        right = (self.clock.ns - self.wrong_ns) / 1e9
        return {name: right + seconds for name, seconds in self.ahead.items()}

    def jump(self, ns: int) -> None:
        self.clock.ns += ns
        self.wrong_ns += ns

    def look(self) -> str | None:
        """A second later."""
        self.clock.advance(1)
        asyncio.run(self.guard.look())
        return self.guard.why_not()


def test_a_clock_is_trusted_if_others_agree() -> None:
    """They are asked every few minutes, and no more often."""
    world = World(database=2.0, witness=-3.0)
    for _ in range(100):
        assert world.look() is None
    assert world.asked == 1
    world.clock.advance(300)
    assert world.look() is None
    assert world.asked == 2


@pytest.mark.parametrize(("by", "words"), [(2, "7200 seconds ahead of"), (-2, "seconds behind")])
def test_a_clock_contradicted_by_all_others_signs_nothing(by: int, words: str) -> None:
    """At once, until it is right again, however long that takes."""
    world = World(witness=0.0)
    assert world.look() is None
    for _ in range(2):
        world.jump(by * HOURS)
        assert words in str(world.guard.why_not())
        for _ in range(3 * int(HOLD_SECONDS)):
            assert words in str(world.look())
        world.ahead.clear()  # it does not respond any more
        world.clock.advance(60)
        assert words in str(world.look())
        world.ahead["witness"] = 0.0
        world.jump(-by * HOURS)
        assert world.guard.why_not() is None
        assert world.look() is None


def test_a_clock_is_compared_at_the_start() -> None:
    """Whatever it has shown before."""
    world = World(witness=0.0)
    world.jump(HOURS)
    assert "3600 seconds ahead" in str(world.look())


def test_one_other_clock_that_agrees_is_enough() -> None:
    """No single third party stops sealing by being wrong."""
    world = World(wrong=-5000.0, right=1.0)
    assert world.look() is None
    world.jump(HOURS)
    assert "that of right" in str(world.look())


def test_a_paused_machine_continues_when_others_agree() -> None:
    """Its monotonic clock stood still, and its time was set when it went on."""
    world = World(witness=0.0)
    assert world.look() is None
    world.clock.ns += HOURS  # and it is right
    assert world.guard.why_not() is not None
    world.clock.advance(10)
    assert world.look() is None


def test_an_unconfirmed_jump_of_the_clock_makes_sealing_wait() -> None:
    """For a minute; if it is set back within that, nothing was signed with the wrong time."""
    world = World()
    assert world.look() is None
    world.jump(HOURS)
    assert "jumped by 3600 seconds ahead" in str(world.look())
    world.jump(-HOURS)
    assert world.guard.why_not() is None
    assert world.look() is None
    world.jump(-HOURS)
    seconds = 0
    while world.look() is not None:
        seconds += 1
    assert HOLD_SECONDS <= seconds + 1 <= HOLD_SECONDS + 2


def test_a_clock_that_is_slewed_is_followed() -> None:
    """Little by little it may move far."""
    world = World()
    for _ in range(100):
        world.jump(10**9)
        assert world.look() is None


def test_asking_that_fails_is_not_repeated_at_each_look() -> None:
    """Others are not flooded by an error of ours; and jumps are noticed meanwhile."""
    world = World(witness=0.0)
    world.fails = True
    with pytest.raises(RuntimeError):
        world.look()
    assert world.look() is None
    world.jump(HOURS)
    assert "jumped by 3600 seconds ahead" in str(world.look())
    assert world.asked == 1
    world.fails = False
    world.clock.advance(10)
    assert "that of witness" in str(world.look())
    assert world.asked == 2


RIGHT = b"Date: Fri, 20 Nov 2026 21:31:00 GMT\r\n"
DRIPS = b"X-Drip: "


@pytest.mark.parametrize(
    "headers",
    [
        RIGHT + b"Age: " + b"9" * 400 + b"\r\n",
        RIGHT + b"Age: " + b"9" * 5000 + b"\r\n",
        b"Date: Fri, 20 Nov 99999 21:31:00 GMT\r\n",
        b"Date: Fri, 20 Nov 99999999999999999999 21:31:00 GMT\r\n",
        b"Date: Fri, 20 Nov 2026 21:31:00 +99999999999999\r\n",
        b"Date: \xff\r\n",
        RIGHT + DRIPS,
    ],
)
def test_one_third_party_cannot_spoil_the_times_of_others(
    headers: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor delay callers: a server asks before it begins."""
    monkeypatch.setattr(clock_guard, "_TIMEOUT_SECONDS", 0.5)

    answered = []

    def answering(said: bytes) -> Callable[[StreamReader, StreamWriter], Awaitable[None]]:
        async def answer(reader: StreamReader, writer: StreamWriter) -> None:
            answered.append(asyncio.current_task())
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + said)
            with suppress(ConnectionError):
                while said.endswith(DRIPS):
                    writer.write(b"x")
                    await writer.drain()
                    await asyncio.sleep(0.05)  # as slowly as such a party
            writer.write(b"\r\n")
            writer.close()

        return answer

    async def ask() -> Mapping[str, float]:
        names = {}
        async with AsyncExitStack() as stack, asyncio.timeout(10):
            for name, said in {"odd": headers, "right": RIGHT}.items():
                server = await asyncio.start_server(answering(said), "127.0.0.1")
                await stack.enter_async_context(server)
                names["http://{}:{}".format(*server.sockets[0].getsockname())] = name
            found = await times_of([*names])
            await asyncio.wait(filter(None, answered))
        return {names[url]: at for url, at in found.items()}

    assert asyncio.run(ask()) == {"right": 1795210260.0}
