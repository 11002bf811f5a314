"""Which addresses a webhook may be sent to, so that nobody can make us call what is inside.

The name is resolved once, all its addresses are judged, and the connection goes to one of those
very addresses: what the name leads to a moment later does not matter (OWASP API7, SSRF).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, TypeAlias

Resolver: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""The IP addresses of a host name, as text; OSError where it has none."""

_RELAYS: Final = IPv4Network("192.88.99.0/24")
"""6to4 relays (RFC 7526)."""
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
_NOT_PUBLIC: Final = (
    # Teredo and 6to4, in which any IPv4 address can be hidden.
    IPv6Network("2001::/32"),
    IPv6Network("2002::/16"),
    # For documentation (RFC 9637); older versions of `ipaddress` do not know it.
    IPv6Network("3fff::/20"),
)


class AddressRefused(Exception):
    """The name leads to an address that is not of the public internet."""


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether the address is of the public internet (IANA special-purpose registries).

    For IPv6 only what is assigned as global unicast counts. That leaves out what merely wraps an
    IPv4 address: mapped (::ffff:0:0/96), compatible (::/96) and NAT64 (64:ff9b::/96).
    """
    if isinstance(address, IPv4Address):
        return address.is_global and not address.is_multicast and address not in _RELAYS
    return (
        address in _GLOBAL_UNICAST
        and address.is_global
        and not any(address in network for network in _NOT_PUBLIC)
    )


class AddressGuard:
    """Resolves names, and refuses those that lead inside."""

    def __init__(self, *, private: bool, resolve: Resolver | None = None) -> None:
        """`private`: allow every address, for development."""
        self._private = private
        self._resolve = resolve or _resolve

    async def addresses(self, host: str, port: int) -> Sequence[str]:
        """The addresses to connect to, in order of preference.

        One that is not public spoils them all: no honest name has such a mixture.

        Raises:
            AddressRefused: one of them is not of the public internet.
            OSError: the name has none.
        """
        found = await self._resolve(host, port)
        if not found:
            msg = "the name has no address"
            raise OSError(msg)
        if not self._private:
            for text in found:
                if not is_public(_parsed(text)):
                    raise AddressRefused(host)
        return found


def _parsed(text: str) -> IPv4Address | IPv6Address:
    try:
        # A zone (`fe80::1%eth0`) marks an address that is never public; it is kept, and judged.
        return ip_address(text)
    except ValueError as error:
        raise AddressRefused(text) from error


async def _resolve(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))
