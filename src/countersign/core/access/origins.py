"""Origins of an account: the pages that checkout sessions of live keys may embed or return to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from sqlalchemy import Connection, delete, insert, select

from countersign.base.db.tables import account_origins
from countersign.base.errors import InvalidArgument
from countersign.core.access.account import lock_account
from countersign.core.access.audit import AuditAction, write_audit
from countersign.core.access.room import Access

URL_LENGTH_MAX: Final = 2048
_PORT_MAX: Final = 65535
_PORTS: Final = {"http": 80, "https": 443}
_HOST_LENGTH_MAX: Final = 253
_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_ADDRESS: Final = re.compile(
    rf"(https?)://((?:{_LABEL}\.)*{_LABEL}|\[[0-9a-f:]+\])(?::([0-9]{{1,5}}))?([/?#].*)?",
    re.ASCII | re.IGNORECASE,
)
_UNSAFE: Final = re.compile(r"""[^!-~]|[\\"<>^`{|}]""")
_NUMERIC: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""The last label of a host that browsers read as an IPv4 address, or refuse."""
_EXPECTED: Final = "an origin is scheme, host and port, such as https://shop.example"


def origin_of(url: str) -> str | None:
    """Scheme, host and port of an address, as browsers write an origin (RFC 6454 §6.2).

    None if it is no http or https address, has user info, or characters that addresses cannot
    have: what one reader takes for the host another might not.
    """
    found = _parse(url)
    return None if found is None else found[0]


def parse_origin(text: str) -> str | None:
    """An origin that was given as such: nothing may follow the port. None if it is not one."""
    found = _parse(text)
    return found[0] if found is not None and found[1] in {"", "/"} else None


def _parse(url: str) -> tuple[str, str] | None:
    """The origin of an address, and what follows the port."""
    match = None if len(url) > URL_LENGTH_MAX or _UNSAFE.search(url) else _ADDRESS.fullmatch(url)
    if match is None:
        return None
    scheme, host, port, rest = match.group(1).lower(), match.group(2).lower(), match[3], match[4]
    number = _PORTS[scheme] if port is None else int(port)
    if not 0 < number <= _PORT_MAX or not _is_written_as_browsers_do(host):
        return None
    shown = "" if number == _PORTS[scheme] else f":{number}"
    return f"{scheme}://{host}{shown}", rest or ""


def _is_written_as_browsers_do(host: str) -> bool:
    """They write each IP address in one way, whatever was typed."""
    try:
        if host.startswith("["):
            return f"[{IPv6Address(host[1:-1])}]" == host
        if _NUMERIC.fullmatch(host.rpartition(".")[2]):
            return str(IPv4Address(host)) == host
    except ValueError:
        return False
    return len(host) <= _HOST_LENGTH_MAX


def register(connection: Connection, access: Access, account_id: str, text: str) -> str:
    """Register an origin; returns it as browsers write it. A no-op if it is registered."""
    origin, account_id = _checked(text), lock_account(connection, account_id).id
    if origin not in origins_of(connection, account_id):
        audit = access.audit.entry(AuditAction.ORIGIN_ADDED, account_id, origin=origin)
        row = {"account_id": account_id, "origin": origin, "added_at": audit.at}
        connection.execute(insert(account_origins), row)
        write_audit(connection, audit)
    return origin


def unregister(connection: Connection, access: Access, account_id: str, text: str) -> str:
    """Take an origin away; sessions that exist keep it."""
    origin, account_id = _checked(text), lock_account(connection, account_id).id
    own = account_origins.c.account_id == account_id, account_origins.c.origin == origin
    if not connection.execute(delete(account_origins).where(*own)).rowcount:
        raise InvalidArgument(f"The origin {origin} is not registered for this account.")
    audit = access.audit.entry(AuditAction.ORIGIN_REMOVED, account_id, origin=origin)
    write_audit(connection, audit)
    return origin


def origins_of(connection: Connection, account_id: str) -> Sequence[str]:
    """The registered origins of an account, in their order."""
    own = account_origins.c.account_id == account_id
    found = select(account_origins.c.origin).where(own).order_by(account_origins.c.origin)
    return connection.execute(found).scalars().all()


def _checked(text: str) -> str:
    origin = parse_origin(text)
    if origin is None:
        raise InvalidArgument(f"{text!r} is not an origin: {_EXPECTED}.")
    return origin
