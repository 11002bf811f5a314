"""Posting webhooks: only to checked addresses, bounded in time and size, never redirected.

This speaks HTTP/1.1 with h11. A general client takes a millisecond
of the event loop for a request, four times as long, and would resolve the name itself.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import timedelta
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from threading import Thread
from typing import Final, TypeAlias

import h11

from countersign.base.host import ip_or_none
from countersign.core.webhooks.model import Outcome, SendResult, TargetAddress

# Which addresses a webhook may be sent to: never to those inside (OWASP API7, SSRF).
#
# The name is resolved once, all its addresses are checked, and the connection goes to one of these
# addresses: a different answer a moment later has no effect.
#
# A look-up at a name server that drops packets takes up to twenty seconds and cannot be stopped. So
# each runs in a separate thread, not in the event loop's pool, which others need, and an account
# has a few at a time: names that hang delay no other account.

LOOKUPS_MAX: Final = 8
"""Look-ups of one account at a time."""
REMEMBERED_SECONDS: Final = 5.0
"""How long the result of a look-up is used again, including a failure."""

Resolver: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""The IP addresses of a host name, as text; OSError where it has none."""

_RELAYS: Final = IPv4Network("192.88.99.0/24")
"""6to4 relays (RFC 7526)."""
_NOT_PUBLIC_4: Final = (
    # Protocol assignments (RFC 6890): older versions of `ipaddress` take most of them as public,
    # among them the metadata service of a cloud, 192.0.0.192.
    IPv4Network("192.0.0.0/24"),
    # Registered as public, but inside Azure it is the platform's own service on every host.
    IPv4Network("168.63.129.16/32"),
    _RELAYS,
)
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
_NOT_PUBLIC: Final = (
    # Teredo and 6to4, which can hide any IPv4 address.
    IPv6Network("2001::/32"),
    IPv6Network("2002::/16"),
    # For documentation (RFC 9637); older versions of `ipaddress` do not know it.
    IPv6Network("3fff::/20"),
)


class AddressRefused(Exception):
    """The name resolves to an address that is not of the public internet."""


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether the address is of the public internet (IANA special-purpose registries).

    For IPv6 only addresses assigned as global unicast count. That excludes addresses that wrap an
    IPv4 address: mapped (::ffff:0:0/96), compatible (::/96) and NAT64 (64:ff9b::/96).
    """
    if isinstance(address, IPv4Address):
        return (
            address.is_global
            and not address.is_multicast
            and not any(address in network for network in _NOT_PUBLIC_4)
        )
    return (
        address in _GLOBAL_UNICAST
        and address.is_global
        and not any(address in network for network in _NOT_PUBLIC)
    )


class AddressGuard:
    """Resolves names, and refuses those with an internal address."""

    def __init__(
        self,
        *,
        private: bool,
        resolve: Resolver | None = None,
        remembered_seconds: float = REMEMBERED_SECONDS,
    ) -> None:
        """`private`: allow every address, for development."""
        self._private = private
        self._resolve = resolve or _resolve
        self._remembered_seconds = remembered_seconds
        self._lookups: dict[tuple[str, str], asyncio.Future[Sequence[str]]] = {}
        self._places: defaultdict[str, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(LOOKUPS_MAX)
        )

    async def addresses(self, host: str, port: int, account_id: str) -> Sequence[str]:
        """The addresses to connect to, in order of preference.

        One address that is not public is enough to refuse the name: honest names have no such
        mixture. `account_id`: the account that needs the address.

        Raises:
            AddressRefused: one of them is not public.
            OSError: the name has none.
        """
        found = await self._look_up(host, port, account_id)
        if not found:
            raise OSError("the name has no address")
        if not self._private:
            for text in found:
                address = ip_or_none(text)
                if address is None or not is_public(address):
                    raise AddressRefused(host)
        return found

    async def _look_up(self, host: str, port: int, account_id: str) -> Sequence[str]:
        """Look the name up, unless this account does so already or has just done so."""
        key = (account_id, host)
        if key not in self._lookups:
            places = self._places[account_id]
            await places.acquire()
            if key in self._lookups:  # begun while this waited
                places.release()
            else:
                lookup = asyncio.ensure_future(self._resolve(host, port))
                self._lookups[key] = lookup
                lookup.add_done_callback(lambda done: self._looked_up(key, done))
        # A caller may give up; the look-up continues, and keeps its place until it ends.
        return await asyncio.shield(self._lookups[key])

    def _looked_up(self, key: tuple[str, str], lookup: asyncio.Future[Sequence[str]]) -> None:
        self._places[key[0]].release()
        if not lookup.cancelled():
            lookup.exception()  # retrieved, whether or not a caller still waits
        lookup.get_loop().call_later(self._remembered_seconds, self._lookups.pop, key)


async def _resolve(host: str, port: int) -> Sequence[str]:
    looked_up: Future[Sequence[str]] = Future()
    name = "countersign-lookup"
    # A daemon: a look-up that hangs does not hold up the end of the process.
    Thread(target=_look_up, args=(host, port, looked_up), name=name, daemon=True).start()
    return await asyncio.wrap_future(looked_up)


def _look_up(host: str, port: int, looked_up: Future[Sequence[str]]) -> None:
    if not looked_up.set_running_or_notify_cancel():
        return
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except Exception as error:  # noqa: BLE001 - raised where it is waited for
        looked_up.set_exception(error)
    else:
        looked_up.set_result(list(dict.fromkeys(str(entry[4][0]) for entry in found)))


CONNECT_SECONDS_MAX: Final = 5.0
RESPONSE_BYTES_MAX: Final = 64 * 1024
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


class WebhookSender:
    """Posts messages, never to an address that the guard refuses."""

    def __init__(
        self,
        guard: AddressGuard,
        *,
        timeout_seconds: float,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`tls` is how certificates are checked; None: the system's authorities."""
        self._guard = guard
        self._timeout = timeout_seconds
        self._tls = tls
        self._idle: dict[tuple[str, str, int], deque[_Connection]] = {}

    async def post(
        self, target: TargetAddress, headers: Mapping[str, str], body: bytes, account_id: str
    ) -> SendResult:
        """Post a message of an account; whatever happens is an outcome."""
        try:
            async with asyncio.timeout(self._timeout):
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
        addresses = await self._guard.addresses(target.host, target.port, account_id)
        secure = target.scheme == "https"
        if secure and self._tls is None:
            self._tls = ssl.create_default_context()
        last: OSError | None = None
        for address in addresses:
            try:
                async with asyncio.timeout(CONNECT_SECONDS_MAX):
                    reader, writer = await asyncio.open_connection(
                        address,
                        target.port,
                        ssl=self._tls if secure else None,
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
        response = await self._response()
        reusable = protocol.our_state is h11.DONE and protocol.their_state is h11.DONE
        if reusable:
            protocol.start_next_cycle()
        return _sent(response), reusable

    async def _response(self) -> h11.Response:
        """The response, when its body has ended or is longer than needed.

        All bytes that arrive are counted, whatever they are part of. EOFError: the other side
        closed the connection; ValueError: there is no response in as much as is read.
        """
        protocol = self._protocol
        response: h11.Response | None = None
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
            elif isinstance(event, h11.InformationalResponse):
                interim += 1
            elif isinstance(event, h11.ConnectionClosed):
                raise EOFError
            elif isinstance(event, h11.EndOfMessage) and response is not None:
                return response
            if received > HEADER_BYTES_MAX + RESPONSE_BYTES_MAX or interim > _INTERIM_MAX:
                break
        if response is None:
            raise ValueError("no response within the limits")
        return response


def _sent(response: h11.Response) -> SendResult:
    status = response.status_code
    delivered = 200 <= status < 300
    named = None
    for name, value in response.headers:
        if name == b"retry-after" and _SECONDS.match(text := value.decode("latin-1").strip()):
            named = timedelta(seconds=int(text))
    outcome = Outcome.DELIVERED if delivered else Outcome.REFUSED
    return SendResult(outcome, status, None if delivered else named)
