"""A service manager, as far as a server sees one: systemd's sockets, notices and watchdog.

See sd_notify(3), sd_watchdog_enabled(3) and sd_listen_fds(3).
"""

from __future__ import annotations

import select
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

_SECONDS_MAX: Final = 30.0
_BECOME: Final = """
import ctypes, os, sys
socket, *command = sys.argv[1:]
# PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN: prctl(2), as MemoryDenyWriteExecute=yes of our units. What
# kernels before 6.3 do not know is left out.
ctypes.CDLL(None).prctl(65, 1, 0, 0, 0)
if socket:
    os.dup2(int(socket), 3)
    os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.environ["WATCHDOG_PID"] = str(os.getpid())
os.execvp(command[0], command)
"""


class Manager:
    """It holds a listening socket, if asked to, and receives its processes' notices."""

    def __init__(self, place: Path, listening: socket.socket | None = None) -> None:
        """`place` is a separate directory for its socket and the output of the processes."""
        self._listening = listening
        self.log = place / "log"
        self._address = place / "notify"
        self._heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._heard.bind(str(self._address))
        self._running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running:
            process.kill()
            process.wait(10)
        self._heard.close()
        if self._listening is not None:
            self._listening.close()

    def start(
        self,
        environment: Mapping[str, str],
        command: Sequence[str] = (sys.executable, "-m", "countersign", "serve"),
        watchdog_seconds: float = 0,
    ) -> subprocess.Popen[bytes]:
        """Start this as the main process of a unit."""
        own = {"NOTIFY_SOCKET": str(self._address)}
        if watchdog_seconds:
            own["WATCHDOG_USEC"] = str(int(watchdog_seconds * 1e6))
        given = "" if self._listening is None else str(self._listening.fileno())
        with self.log.open("ab") as sink:
            process = subprocess.Popen(
                [sys.executable, "-c", _BECOME, given, *command],
                env={**environment, **own},
                pass_fds=[self._listening.fileno()] if self._listening else [],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
            )
        self._running.append(process)
        return process

    def hear(self, seconds: float) -> str | None:
        """The next notice; None if no notice comes in this time."""
        if not select.select([self._heard], [], [], seconds)[0]:
            return None
        return self._heard.recv(4096).decode()

    def await_notice(self, wanted: str, process: subprocess.Popen[Any]) -> list[str]:
        """All notices up to this one; fails if it does not come."""
        said: list[str] = []
        deadline = time.monotonic() + _SECONDS_MAX
        while wanted not in said:
            heard = self.hear(0.2)
            if heard is not None:
                said.append(heard)
            elif process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"no {wanted}: {self.log.read_text()}")
        return said


def hold_socket(port: int) -> socket.socket:
    """Listen as the manager does for a socket unit."""
    return socket.create_server(("127.0.0.1", port), backlog=1024)
