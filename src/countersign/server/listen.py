"""The address that the server listens on."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from functools import partial
from typing import Final

from countersign.base.errors import AddressInUse
from countersign.server.manager import handed_over

BACKLOG: Final = 1024
_SILENT_SECONDS_MAX: Final = 1
"""How long a new connection may be silent before a server accepts it."""
_UNREAD_MILLISECONDS_MAX: Final = 30_000
"""How long a client may leave a response unread or unacknowledged."""


def opener(host: str, port: int) -> Callable[[], socket.socket]:
    """Opens listening sockets: at this address, unless the service manager has one.

    A socket of the service manager stays open between two servers: connections wait in it.

    Raises:
        AddressInUse: the host and port are taken.
    """
    given = handed_over()
    if given is not None:
        _set_options(given)
        # All its duplicates share the mode: a later one must not make workers wait in accept().
        given.settimeout(0)
        return given.dup
    refuse_taken(host, port)
    return partial(_listen, host, port)


def _listen(host: str, port: int) -> socket.socket:
    """Listen with other sockets of this server: the kernel shares connections out among them."""
    listening = _bound(host, port, shared=True)
    _set_options(listening)
    listening.listen(BACKLOG)
    return listening


def _set_options(listening: socket.socket) -> None:
    """Set what accepted connections inherit, and when they are accepted (tcp(7), Linux)."""
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # It then ends one whose window stays closed, or whose data stays unacknowledged, for that
        # long.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNREAD_MILLISECONDS_MAX)
    if hasattr(socket, "TCP_DEFER_ACCEPT"):
        # A server that stops closes idle new connections. With this option a connection without
        # data waits in the socket for the next server, if the socket stays open.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, _SILENT_SECONDS_MAX)


def refuse_taken(host: str, port: int) -> None:
    """Check beforehand: otherwise the server would silently share the port with another one."""
    _bound(host, port).close()


def _bound(host: str, port: int, *, shared: bool = False) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        why = "is already in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error}"
        raise AddressInUse(
            f"{host} port {port} {why}. Set COUNTERSIGN_PORT (or the metrics port) to another "
            "number."
        ) from error
    return bound
