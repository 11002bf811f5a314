"""Posting webhooks: only to checked addresses, bounded in time and size, never redirected.

This speaks HTTP/1.1 with h11. A general client takes a millisecond
of the event loop for a request, four times as long, and would resolve the name itself.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import h11

from countersign.core.webhooks.address_guard import AddressGuard, AddressRefused
from countersign.core.webhooks.model import Outcome, SendResult, TargetAddress

CONNECT_SECONDS_MAX: Final = 5.0
RESPONSE_BYTES_MAX: Final = 64 * 1024
RESPONSE_BYTES_KEPT: Final = 1024
IDLE_SECONDS_MAX: Final = 4.0
"""How long a connection is kept for the next message; many servers close theirs after five."""
IDLE_MAX: Final = 32
"""Connections kept per endpoint address."""
HEADER_BYTES_MAX: Final = 16 * 1024
_INTERIM_MAX: Final = 4
"""Responses such as 100 and 103 before the real one."""
_EVENTS_MAX: Final = 256
"""Limit of parsing steps for a response: a response of tiny chunks costs much more than its
bytes."""
_READ_BYTES: Final = 16 * 1024
_SECONDS: Final = re.compile(r"[0-9]{1,9}\Z")


@dataclass(eq=False, repr=False)
class WebhookSender:
    """Posts messages, never to an address that the guard refuses."""

    guard: AddressGuard
    timeout_seconds: float
    tls: ssl.SSLContext | None = None
    """How certificates are checked; None: the system's authorities, read at the first use."""
    _idle: dict[tuple[str, str, int], deque[_Connection]] = field(default_factory=dict)

    async def post(
        self, target: TargetAddress, headers: Mapping[str, str], body: bytes, account_id: str
    ) -> SendResult:
        """Post a message of an account; whatever happens is an outcome."""
        try:
            async with asyncio.timeout(self.timeout_seconds):
                return await self._post(target, headers, body, account_id)
        except TimeoutError:
            return SendResult(Outcome.TIMED_OUT)
        except AddressRefused:
            return SendResult(Outcome.ADDRESS_REFUSED)
        except (OSError, EOFError, h11.ProtocolError, ValueError):
            # ValueError: certificates and names that the library cannot make sense of.
            return SendResult(Outcome.UNREACHABLE)

    async def close(self) -> None:
        kept = [connection for idle in self._idle.values() for connection in idle]
        self._idle.clear()
        for connection in kept:
            connection.close()
        await asyncio.gather(*(connection.closed() for connection in kept))

    async def _post(
        self, target: TargetAddress, headers: Mapping[str, str], body: bytes, account_id: str
    ) -> SendResult:
        request = [("Host", target.authority), ("User-Agent", "Countersign-Webhooks")]
        request += [*headers.items(), ("Content-Length", str(len(body)))]
        connection = self._kept(target)
        if connection is not None:
            # The server may have closed it at this moment; then it has not read the message.
            with suppress(OSError, EOFError, h11.ProtocolError):
                return await self._exchange(connection, target, request, body)
        connection = await self._connect(target, account_id)
        return await self._exchange(connection, target, request, body)

    async def _exchange(
        self,
        connection: _Connection,
        target: TargetAddress,
        request: list[tuple[str, str]],
        body: bytes,
    ) -> SendResult:
        reusable = False
        try:
            sent, reusable = await connection.post(target.path, request, body)
        finally:
            if not reusable:
                connection.close()
        self._keep(target, connection)
        return sent

    def _kept(self, target: TargetAddress) -> _Connection | None:
        idle = self._idle.get(target[:3])
        oldest = asyncio.get_running_loop().time() - IDLE_SECONDS_MAX
        while idle:
            connection = idle.pop()
            if connection.usable and connection.used_at > oldest:
                return connection
            connection.close()
        return None

    def _keep(self, target: TargetAddress, connection: _Connection) -> None:
        loop = asyncio.get_running_loop()
        connection.used_at = loop.time()
        if not connection.usable:
            connection.close()
            return
        address = target[:3]
        if address not in self._idle:
            self._idle[address] = deque()
            loop.call_later(IDLE_SECONDS_MAX, self._close_old, loop, address)
        idle = self._idle[address]
        idle.append(connection)
        if len(idle) > IDLE_MAX:
            idle.popleft().close()

    def _close_old(self, loop: asyncio.AbstractEventLoop, address: tuple[str, str, int]) -> None:
        """Close connections that were idle too long: the address may never get another message."""
        idle = self._idle.get(address, deque())
        while idle and idle[0].used_at <= loop.time() - IDLE_SECONDS_MAX:
            idle.popleft().close()
        if idle:
            loop.call_at(idle[0].used_at + IDLE_SECONDS_MAX, self._close_old, loop, address)
        else:
            self._idle.pop(address, None)

    async def _connect(self, target: TargetAddress, account_id: str) -> _Connection:
        addresses = await self.guard.addresses(target.host, target.port, account_id)
        secure = target.scheme == "https"
        if secure and self.tls is None:
            self.tls = ssl.create_default_context()
        last: OSError | None = None
        for address in addresses:
            try:
                async with asyncio.timeout(CONNECT_SECONDS_MAX):
                    reader, writer = await asyncio.open_connection(
                        address,
                        target.port,
                        ssl=self.tls if secure else None,
                        # The certificate is for the name, whatever the address.
                        server_hostname=target.host if secure else None,
                        limit=_READ_BYTES,
                    )
            except OSError as error:  # TimeoutError is one of them
                last = error
            else:
                return _Connection(reader, writer)
        raise last or OSError


class _Connection:
    """One kept-alive connection, for one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._protocol = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEADER_BYTES_MAX)
        self.used_at = 0.0

    @property
    def usable(self) -> bool:
        """Whether neither side has closed it."""
        return not (self._writer.is_closing() or self._reader.at_eof())

    def close(self) -> None:
        self._writer.close()

    async def closed(self) -> None:
        with suppress(OSError):
            await self._writer.wait_closed()

    async def post(
        self, path: str, headers: list[tuple[str, str]], body: bytes
    ) -> tuple[SendResult, bool]:
        """The result, and whether the connection can be used again."""
        protocol = self._protocol
        request = h11.Request(method="POST", target=path, headers=headers)
        parts = [protocol.send(event) for event in (request, h11.Data(data=body))]
        parts.append(protocol.send(h11.EndOfMessage()))
        self._writer.write(b"".join(part for part in parts if part))
        await self._writer.drain()
        response, beginning = await self._response()
        reusable = protocol.our_state is h11.DONE and protocol.their_state is h11.DONE
        if reusable:
            protocol.start_next_cycle()
        return _sent(response, beginning), reusable

    async def _response(self) -> tuple[h11.Response, bytes]:
        """The response and the beginning of its body, which has ended or is longer than needed.

        All bytes that arrive are counted, whatever they are part of. EOFError: the other side
        closed the connection; ValueError: there is no response in as much as is read.
        """
        protocol = self._protocol
        response: h11.Response | None = None
        beginning = b""
        received = interim = 0
        for _ in range(_EVENTS_MAX):
            event = protocol.next_event()
            if event is h11.NEED_DATA:
                data = await self._reader.read(_READ_BYTES)
                if not data and response is None:
                    raise EOFError
                received += len(data)
                protocol.receive_data(data)
                # Reading does not pause while there are bytes, and other tasks have work to do.
                await asyncio.sleep(0)
            elif isinstance(event, h11.Response):
                response = event
            elif isinstance(event, h11.Data):
                beginning += event.data[: RESPONSE_BYTES_KEPT - len(beginning)]
            elif isinstance(event, h11.ConnectionClosed):
                raise EOFError
            elif isinstance(event, h11.EndOfMessage) and response is not None:
                return response, beginning
            interim += isinstance(event, h11.InformationalResponse)
            if received > HEADER_BYTES_MAX + RESPONSE_BYTES_MAX or interim > _INTERIM_MAX:
                break
        if response is None:
            raise ValueError("no response within the limits")
        return response, beginning


def _sent(response: h11.Response, beginning: bytes) -> SendResult:
    status = response.status_code
    delivered = 200 <= status < 300
    named = None
    for name, value in response.headers:
        if name == b"retry-after" and _SECONDS.match(text := value.decode("latin-1").strip()):
            named = timedelta(seconds=int(text))
    if delivered:
        return SendResult(Outcome.DELIVERED, status)
    return SendResult(Outcome.REFUSED, status, named, beginning)
