"""Allowed addresses for webhooks: never internal ones (OWASP API7, SSRF).

The name is resolved once, all its addresses are checked, and the connection goes to one of these
addresses: a different answer a moment later has no effect.

A look-up at a name server that drops packets takes up to twenty seconds and cannot be stopped. So
each runs in a separate thread, not in the event loop's pool, which others need, and an account has
a few at a time: names that hang delay no other account.
"""

from __future__ import annotations

import asyncio
import socket
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from threading import Thread
from typing import Final, TypeAlias

from msgspec import Struct, field

from countersign.base.host import Network, ip_or_none

LOOKUPS_MAX: Final = 8
"""Look-ups of one account at a time."""
REMEMBERED_SECONDS: Final = 5.0
"""How long the result of a look-up is used again, including a failure."""
Resolver: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""The IP addresses of a host name, as text; OSError where it has none."""
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
_NOT_PUBLIC: Final[tuple[Network, ...]] = (
    # Protocol assignments (RFC 6890): older versions of `ipaddress` take most of them as public,
    # among them the metadata service of a cloud, 192.0.0.192.
    IPv4Network("192.0.0.0/24"),
    # Registered as public, but inside Azure it is the platform's own service on every host.
    IPv4Network("168.63.129.16/32"),
    # 6to4 relays (RFC 7526).
    IPv4Network("192.88.99.0/24"),
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
    is_unicast = not address.is_multicast if address.version == 4 else address in _GLOBAL_UNICAST
    is_known = any(address in network for network in _NOT_PUBLIC)
    return is_unicast and address.is_global and not is_known


class AddressGuard(Struct, eq=False, kw_only=True):
    """Resolves names, and refuses those with an internal address."""

    private: bool
    """Allow every address, for development."""
    resolve: Resolver | None = None
    """None: as this machine resolves names."""
    remembered_seconds: float = REMEMBERED_SECONDS
    _lookups: dict[tuple[str, str], asyncio.Future[Sequence[str]]] = {}
    _places: defaultdict[str, asyncio.Semaphore] = field(
        default_factory=lambda: defaultdict(lambda: asyncio.Semaphore(LOOKUPS_MAX))
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
        if not self.private:
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
                lookup = asyncio.ensure_future((self.resolve or _resolve)(host, port))
                self._lookups[key] = lookup
                lookup.add_done_callback(lambda done: self._looked_up(key, done))
        # A caller may give up; the look-up continues, and keeps its place until it ends.
        return await asyncio.shield(self._lookups[key])

    def _looked_up(self, key: tuple[str, str], lookup: asyncio.Future[Sequence[str]]) -> None:
        self._places[key[0]].release()
        if not lookup.cancelled():
            lookup.exception()  # retrieved, whether or not a caller still waits
        lookup.get_loop().call_later(self.remembered_seconds, self._lookups.pop, key)


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
