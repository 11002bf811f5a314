"""Callers who acknowledge without pause, whatever is broken, and one who polls readiness."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, Self

from tests.cli.serving import wait_until
from tests.crash.wire import Answer, Connection, Lost

CLIENTS: Final = 8
_REFUSED_PAUSE_SECONDS: Final = 0.25
"""After a call that was not done. Without it, refusals take the processor time that the recovery
needs, and each is sent again at the end."""
_LOOK_SECONDS: Final = 0.25
_GIVE_UP_SECONDS: Final = 60.0
"""Longer than any caller may wait, so that too long a wait is detected."""


@dataclass(slots=True, kw_only=True)
class Order:
    """A caller's request under one Idempotency-Key, and every 200 for it."""

    path: str
    key: str
    body: bytes
    answers: list[bytes] = field(default_factory=list)

    @property
    def ack_id(self) -> str:
        """The id of the acknowledgment; there must be a response."""
        found: str = json.loads(self.answers[0])["ack_id"]
        return found


@dataclass(slots=True, frozen=True)
class Tried:
    """One call: when it ended, how long it took, its status (0: no answer) and error code."""

    at: float
    seconds: float
    status: int
    code: str = ""


@dataclass(slots=True, frozen=True)
class Looked:
    """A response of `/readyz` and its time: status (0: none) and the state of sealing."""

    at: float
    status: int
    sealing: str = ""


class Load:
    """Runs in a thread of its own, as long as the block lasts."""

    def __init__(
        self,
        port: int,
        api_key: str,
        notice: Any,  # noqa: ANN401 - JSON
        name: str,
        pause_seconds: float,
    ) -> None:
        self._port = port
        self._api_key = api_key
        self._notice = notice
        self._name = name
        self._pause_seconds = pause_seconds
        self._random = Random(name)
        self._over = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self.orders: list[Order] = []
        self.tried: list[Tried] = []
        self.looked: list[Looked] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(2 * _GIVE_UP_SECONDS)
        assert not self._thread.is_alive()

    def until(self, number: int, *statuses: int) -> None:
        """Wait until so many more calls have ended like this."""
        begun = len(self.tried)

        def happened() -> bool:
            return sum(tried.status in statuses for tried in self.tried[begun:]) >= number

        wait_until(happened, f"{number} calls with {statuses}")

    def until_all(self, number: int, *statuses: int) -> None:
        """Wait until this many calls in a row have ended like this."""

        def happened() -> bool:
            return len(self.tried) >= number and {t.status for t in self.tried[-number:]} <= {
                *statuses
            }

        wait_until(happened, f"nothing but {statuses}")

    def until_ready(self, status: int, sealing: str | None = None) -> None:
        """Wait until `/readyz` says this."""

        def happened() -> bool:
            last = self.looked[-1] if self.looked else Looked(0, -1)
            return last.status == status and sealing in {None, last.sealing}

        wait_until(happened, f"readiness {status} {sealing}")

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(CLIENTS):
                group.create_task(self._call_on())
            group.create_task(self._look_on())

    async def _call_on(self) -> None:
        connection: Connection | None = None
        while not self._over.is_set():
            order, begun, pause = self._next(), time.monotonic(), _REFUSED_PAUSE_SECONDS
            try:
                connection = connection or await self._connect()
                answer = await self._waited(connection.post(order.path, order.body, order.key))
            except Lost:
                self._note(begun, 0)
                if connection is not None:
                    connection.close()
                connection = None
            else:
                self._heard(order, answer, begun)
                if answer.status == 200:
                    pause = self._pause_seconds
            await asyncio.sleep(pause)
        if connection is not None:
            connection.close()

    async def _connect(self) -> Connection:
        return await Connection.open(self._port, self._api_key)

    async def _waited(self, call: Any) -> Answer:  # noqa: ANN401 - a coroutine
        try:
            answer: Answer = await asyncio.wait_for(call, _GIVE_UP_SECONDS)
        except TimeoutError:
            raise Lost from None
        return answer

    def _heard(self, order: Order, answer: Answer, begun: float) -> None:
        if answer.status == 200:
            order.answers.append(answer.body)
            self._note(begun, 200)
            return
        error = json.loads(answer.body)["error"]
        self._note(begun, answer.status, error["code"])

    def _note(self, begun: float, status: int, code: str = "") -> None:
        now = time.monotonic()
        self.tried.append(Tried(now, now - begun, status, code))

    async def _look_on(self) -> None:
        while not self._over.is_set():
            status, sealing = 0, ""
            with suppress(Lost):
                with closing(await self._connect()) as connection:
                    answer = await self._waited(connection.get("/readyz"))
                status = answer.status
                sealing = json.loads(answer.body).get("checks", {}).get("sealing", "")
            self.looked.append(Looked(time.monotonic(), status, sealing))
            await asyncio.sleep(_LOOK_SECONDS)

    def _next(self) -> Order:
        # Some callers send a request again, with or without an answer.
        if self.orders and self._random.random() < 0.1:
            return self._random.choice(self.orders[-4 * CLIENTS :])
        number = len(self.orders)
        body = {
            "initials_per_line": [f"{self._name}{n}" for n in range(self._notice["lines"])],
            "session_id": f"session {self._name} {number}",
        }
        self.orders.append(
            Order(
                path=f"/v1/notices/{self._notice['notice_id']}/acknowledge",
                key=f"key-{self._name}-{number}",
                body=json.dumps(body).encode(),
            )
        )
        return self.orders[-1]


def of_status(tried: Iterable[Tried], status: int) -> list[Tried]:
    """The calls that ended like this."""
    return [one for one in tried if one.status == status]
