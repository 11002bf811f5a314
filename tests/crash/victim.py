"""A deployment whose server is killed repeatedly, and its promises."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from tests.crash.load import CLIENTS, Request
from tests.crash.wire import Connection
from tests.support import forked
from tests.support.service import START_SECONDS_MAX, Deployment, Server, free_port


def start(deployment: Deployment) -> Server:
    """Start a server, and wait until it listens.

    The rounds consist of little else, so only a connection is used to wait for it.
    """
    port = free_port()
    own = dict(deployment.settings) | {"PORT": str(port), "RATE_LIMIT": "off"}
    configured = Deployment(data_dir=deployment.data_dir, settings=own)
    log = deployment.data_dir.parent / "server.log"
    with log.open("wb") as sink:
        process = forked.start(
            ["countersign", "serve"], configured.environment, stdout=sink, stderr=sink
        )
    url = f"http://127.0.0.1:{port}"
    server = Server(deployment=configured, url=url, process=process, log=log)
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.02)
        else:
            return server
    server.kill()
    raise AssertionError(f"the server did not start: {log.read_text()}")


@dataclass(kw_only=True)
class Victim:
    """A deployment whose server is killed again and again."""

    deployment: Deployment
    api_key: str
    notice_id: str
    lines: int
    server: Server
    # By Idempotency-Key: the request and its permanent response.
    settled: dict[str, tuple[Request, bytes]] = field(default_factory=dict)

    @property
    def port(self) -> int:
        """Where the server listens."""
        return int(self.server.url.rpartition(":")[2])

    def restart(self) -> None:
        """Start another server on the same data."""
        self.server = start(self.deployment)

    async def for_each(
        self,
        requests: Sequence[Request],
        work: Callable[[Connection, Request], Awaitable[None]],
    ) -> None:
        """Run this for every request, over one connection per client."""

        async def client(own: Sequence[Request]) -> None:
            with closing(await Connection.open(self.port, self.api_key)) as connection:
                for request in own:
                    await work(connection, request)

        async with asyncio.TaskGroup() as clients:
            for n in range(CLIENTS):
                clients.create_task(client(requests[n::CLIENTS]))

    async def settle(self, connection: Connection, request: Request) -> None:
        """Send it again: the answer that was given once is the answer for good, and true."""
        answer = await connection.post(request.path, request.body, request.key)
        assert answer.status == 200, answer.body
        known = set(request.answers)
        if request.key in self.settled:
            known.add(self.settled[request.key][1])
        if known:
            assert answer.replayed
            assert known == {answer.body}
        again = await connection.post(request.path, request.body, request.key)
        assert again.replayed
        assert again.body == answer.body
        self.settled[request.key] = (request, answer.body)
        await self._compare(connection, request, json.loads(answer.body))

    async def _compare(
        self, connection: Connection, request: Request, answer: dict[str, object]
    ) -> None:
        """Read back the object named in the response."""
        if request.acknowledges:
            back = await connection.get(f"/v1/acknowledgments/{answer['ack_id']}")
            expected = {k: v for k, v in answer.items() if k != "receipt"} | request.sent
        else:
            back = await connection.get(f"/v1/buyers/{answer['cbid']}/status")
            expected = {name: answer[name] for name in ("cbid", "status", "expires_at")}
            assert answer["status"] == "verified"
        assert back.status == 200, back.body
        stored = json.loads(back.body)
        assert {name: stored[name] for name in expected} == expected
