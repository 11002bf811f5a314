"""Sockets from, and notifications to, a service manager such as systemd.

Without a library: sd_notify(3), sd_watchdog_enabled(3) and sd_listen_fds(3) are a few variables
and one datagram.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import Final

from countersign.base.errors import InvalidConfiguration

READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"
ALIVE: Final = "WATCHDOG=1"
_FIRST_SOCKET: Final = 3
_BEATS: Final = 3
"""Heartbeats per watchdog period of the manager."""


def notify(state: str) -> None:
    """Send this state to the manager, if there is one, without waiting for its receipt."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending, suppress(OSError):
        sending.settimeout(0.5)
        # A name that begins with @ is in no file system: unix(7).
        sending.sendto(state.encode(), "\0" + address[1:] if address[0] == "@" else address)


def beat_seconds() -> float | None:
    """The seconds between two signs of life that the manager wants; None: no heartbeats wanted."""
    period, pid = (os.environ.get(name, "") for name in ("WATCHDOG_USEC", "WATCHDOG_PID"))
    if not period.isdigit() or int(period) == 0 or pid not in {"", str(os.getpid())}:
        return None
    return int(period) / 1e6 / _BEATS


def handed_over() -> socket.socket | None:
    """The listening socket that the manager has opened for this process, once; None without one.

    Raises InvalidConfiguration unless it is one listening TCP socket.
    """
    given = {name: os.environ.pop(name, "") for name in ("LISTEN_PID", "LISTEN_FDS")}
    if given["LISTEN_PID"] != str(os.getpid()):
        return None
    with suppress(OSError):
        listening = socket.socket(fileno=_FIRST_SOCKET)
        listens = listening.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        internet = listening.family in {socket.AF_INET, socket.AF_INET6}
        if listens and internet and given["LISTEN_FDS"] == "1":
            os.set_inheritable(_FIRST_SOCKET, False)  # noqa: FBT003 - by position alone
            return listening
        listening.close()
    raise InvalidConfiguration(
        "The service manager has to hand over one listening TCP socket, or none."
    )
