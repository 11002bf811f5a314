"""Concurrent clients that acknowledge and verify until the server is killed under them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from random import Random

from tests.crash.wire import Connection, Lost

CLIENTS = 24


@dataclass(slots=True, kw_only=True)
class Request:
    """A client's request under one Idempotency-Key, and every response that reached a client."""

    path: str
    key: str
    body: bytes
    answers: list[bytes] = field(default_factory=list)

    @property
    def acknowledges(self) -> bool:
        """Whether it is an acknowledgment; otherwise it is a verification."""
        return self.path.endswith("/acknowledge")

    @property
    def sent(self) -> dict[str, object]:
        """The intended body."""
        meant: dict[str, object] = json.loads(self.body)
        return meant


@dataclass(kw_only=True)
class Load:
    """The requests of one round."""

    name: str
    random: Random
    notice_id: str
    lines: int
    requests: list[Request] = field(default_factory=list)
    _still: int = 0
    _enough: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, port: int, api_key: str, kill: Callable[[], None]) -> None:
        """Keep all clients busy, and kill the server after a random number of answers."""
        self._still = self.random.randint(1, 300)
        moment = self.random.uniform(0.0, 0.005)
        async with asyncio.TaskGroup() as clients:
            for _ in range(CLIENTS):
                clients.create_task(self._client(port, api_key))
            async with asyncio.timeout(60):
                await self._enough.wait()
            await asyncio.sleep(moment)
            kill()

    async def _client(self, port: int, api_key: str) -> None:
        try:
            with closing(await Connection.open(port, api_key)) as connection:
                while True:
                    await self._send(connection)
        except Lost:
            return

    async def _send(self, connection: Connection) -> None:
        again = bool(self.requests) and self.random.random() < 0.1
        # Some vendors send a request again before its answer has come.
        request = self.random.choice(self.requests[-CLIENTS:]) if again else self._new()
        answer = await connection.post(request.path, request.body, request.key)
        self._still -= 1
        if self._still == 0:
            self._enough.set()
        if answer.status == 200:
            request.answers.append(answer.body)
        else:
            assert answer.status == 409, answer.body
            assert b"idempotency_in_progress" in answer.body

    def _new(self) -> Request:
        number = len(self.requests)
        if self.random.random() < 0.7:
            body: dict[str, object] = {
                "initials_per_line": [f"{self.name}{n}" for n in range(self.lines)],
                "session_id": f"session {self.name} {number}",
            }
            path = f"/v1/notices/{self.notice_id}/acknowledge"
        else:
            # A fifth of the buyers is verified by several requests.
            shared = self.random.random() < 0.2
            session = self.random.randint(1, 5) if shared else f"own {number}"
            body = {
                "provider_identity_session_id": f"{self.name} {session}",
                "shipping_zip": "94110",
                "test_mode": True,
            }
            path = "/v1/buyers/verify"
        request = Request(
            path=path, key=f"key-{self.name}-{number}", body=json.dumps(body).encode()
        )
        self.requests.append(request)
        return request
