"""Networks, and hosts that no other machine can reach: loopback and wildcard addresses."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, TypeAlias

Network: TypeAlias = IPv4Network | IPv6Network

PORT_MAX: Final = 65535
NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""The last label of a host that browsers read as an IPv4 address, or refuse."""


def ip_or_none(text: str) -> IPv4Address | IPv6Address | None:
    """The text as an IP address, or None; a zone (`fe80::1%eth0`) is kept."""
    try:
        return ip_address(text)
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Whether a host, with or without a port, is this machine only."""
    name, address = _read(host)
    if address is None:
        return name == "localhost" or name.endswith(".localhost")
    return address.is_loopback


def is_wildcard(host: str) -> bool:
    """Whether a host, with or without a port, is `0.0.0.0` or `::`, which are only to listen on.

    Or another spelling of an IPv4 address, such as `0` or `127.1`: no name ends in a number.
    """
    name, address = _read(host)
    if address is None:
        return NUMBER.fullmatch(name.rpartition(".")[2]) is not None
    return address.is_unspecified


def _read(host: str) -> tuple[str, IPv4Address | IPv6Address | None]:
    if host.startswith("["):
        name = host[1:].partition("]")[0]
    else:
        name = host if host.count(":") > 1 else host.partition(":")[0]
    name = name.lower().rstrip(".")
    address = ip_or_none(name)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return name, mapped or address
