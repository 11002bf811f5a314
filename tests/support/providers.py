"""Simulated identity providers that are served, and that can be put into any mood.

They run in a thread of their own, so that their callers may block.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from ssl import SSLContext

from countersign_simulators.base import Reply, Request, Session, Simulator, Webhook
from countersign_simulators.registry import SIMULATORS
from countersign_simulators.server import Served, serve

UNANSWERED = frozenset({"slow"})
"""Parts that take longer than anybody waits."""

Mood = Callable[[Request, Reply], Reply]


@dataclass
class Moody:
    """A simulator whose answers a test can change on their way."""

    simulator: Simulator
    mood: Mood | None = None
    is_silent: bool = False
    """Whether its messages are lost on their way."""
    lost: list[Webhook] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def name(self) -> str:
        return self.simulator.name

    @property
    def sessions(self) -> Sequence[Session]:
        return self.simulator.sessions

    @property
    def credentials(self) -> Mapping[str, object]:
        return self.simulator.credentials

    @property
    def test_credentials(self) -> Mapping[str, object]:
        return self.simulator.test_credentials

    def answer(self, request: Request) -> Reply:
        reply = self.simulator.answer(request)
        return reply if self.mood is None else self.mood(request, reply)

    def webhook(self, session_id: str) -> Webhook:
        with self.lock:
            return self.simulator.webhook(session_id)

    def take_messages(self) -> Sequence[Webhook]:
        taken = self.simulator.take_messages()
        if self.is_silent:
            self.lost += taken
            return ()
        return taken


@dataclass(frozen=True)
class Playing:
    """A simulator that is being served."""

    simulator: Moody
    served: Served

    @property
    def name(self) -> str:
        """The provider's."""
        return self.simulator.name

    @property
    def url(self) -> str:
        """The base URL."""
        return self.served.url

    def part(self, plays: str, number: int = 0) -> Session:
        """The session that plays this; of `verified` there are several."""
        return [s for s in self.simulator.sessions if s.scenario == plays][number]

    def asked(self, session: Session) -> int:
        """How many requests have named this session, in the path or in the body."""
        word = session.session_id
        return sum(word in r.path or word.encode() in r.body for r in self.served.requests)

    @contextmanager
    def mood(self, mood: Mood) -> Iterator[None]:
        """Answer in another way inside this block."""
        self.simulator.mood = mood
        try:
            yield
        finally:
            self.simulator.mood = None


@contextmanager
def playing(
    name: str,
    *,
    clock: Callable[[], float] = time.time,
    port: int = 0,
    ssl: SSLContext | None = None,
    webhook_url: str | None = None,
) -> Iterator[Playing]:
    """Serve a simulated provider until the block ends."""
    simulator = Moody(SIMULATORS[name](clock))
    begun = threading.Event()
    found: list[Served] = []
    loops: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def work() -> None:
        end = asyncio.Event()
        async with serve(simulator, port=port, ssl=ssl, webhook_url=webhook_url) as served:
            loops.append((asyncio.get_running_loop(), end))
            found.append(served)
            begun.set()
            await end.wait()

    thread = threading.Thread(target=asyncio.run, args=(work(),), daemon=True)
    thread.start()
    assert begun.wait(10), f"the simulated {name} did not start"
    try:
        yield Playing(simulator, found[0])
    finally:
        loop, end = loops[0]
        loop.call_soon_threadsafe(end.set)
        thread.join(10)
