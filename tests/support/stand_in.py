"""A `countersign` for shells that starts in a hundredth of the time: a fork, see `forked`.

A script on the shell's path passes its arguments, environment, directory and standard streams to
this process, which runs the command in a fork. Servers are started normally.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Final

from tests.support import forked
from tests.support.command import PROCESSES

_SCRIPT: Final = """\
#!{python} -IS
import json, os, socket, sys
if not sys.argv[1:] or {processes} & set(sys.argv):
    os.execv({real}, [{real}, *sys.argv[1:]])
order = {{
    "arguments": sys.argv[1:], "environment": dict(os.environ), "directory": os.getcwd()
}}
with socket.socket(socket.AF_UNIX) as at:
    at.connect({place})
    socket.send_fds(at, [b"!"], [0, 1, 2])
    at.sendall(json.dumps(order).encode())
    at.shutdown(socket.SHUT_WR)
    status = at.recv(4)
sys.exit(int.from_bytes(status, "big") if status else 70)
"""


@contextmanager
def stand_in() -> Iterator[Path]:
    """Give a directory for the beginning of PATH, with a `countersign` in it."""
    with TemporaryDirectory() as name, socket.socket(socket.AF_UNIX) as listening:
        folder = Path(name)
        script, place = folder / "countersign", folder / "socket"
        listening.bind(str(place))
        listening.listen()
        script.write_text(
            _SCRIPT.format(
                python=sys.executable,
                processes=set(PROCESSES),
                real=repr(str(Path(sys.prefix) / "bin" / "countersign")),
                place=repr(str(place)),
            )
        )
        script.chmod(0o755)
        serving = Thread(target=_serve, args=(listening,))
        serving.start()
        try:
            yield folder
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            serving.join()


def _serve(listening: socket.socket) -> None:
    while True:
        try:
            asking, _ = listening.accept()
        except OSError:  # it was shut down
            return
        Thread(target=_run, args=(asking,)).start()


def _run(asking: socket.socket) -> None:
    with asking:
        _, streams, _, _ = socket.recv_fds(asking, 1, 3)
        order = json.loads(b"".join(iter(lambda: asking.recv(65536), b"")))
        with ExitStack() as stack:
            stdin, stdout, stderr = (
                stack.enter_context(os.fdopen(number, mode, buffering=0))
                for number, mode in zip(streams, ("rb", "wb", "wb"), strict=True)
            )
            process = forked.start(
                ["countersign", *order["arguments"]],
                order["environment"],
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                directory=Path(order["directory"]),
            )
        asking.sendall(struct.pack("!i", process.wait() & 0xFF))
