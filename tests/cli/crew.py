"""Servers of several workers, as tests see their processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx2

from tests.support.service import Server


def workers_of(server: Server) -> list[int]:
    """The process ids of the workers; at first in the order of their numbers."""
    return children_of(server.process.pid)


def children_of(pid: int) -> list[int]:
    """The process ids of the children of a process; at first in the order of their beginning."""
    return sorted(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def runs(pid: int) -> bool:
    """Whether the process is there, and has not ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except OSError:
        return False
    return state != "Z"


@contextmanager
def one_client_each(server: Server, key: str) -> Iterator[list[httpx2.Client]]:
    """A client of each worker, which stays connected to it."""
    workers = workers_of(server)
    port = int(server.url.rpartition(":")[2])
    found: dict[int, httpx2.Client] = {}
    with ExitStack() as stack:
        while len(found) < len(workers):
            client = stack.enter_context(server.client(key))
            answer = client.get("/healthz")
            own_port = answer.extensions["network_stream"].get_extra_info("client_addr")[1]
            socket = _socket_of(port, own_port)
            found.setdefault(next(pid for pid in workers if socket in _files(pid)), client)
        yield [found[pid] for pid in workers]


def _socket_of(port: int, other_port: int) -> str:
    """The server's end of a connection, as its process names it; see proc(5)."""
    wanted = f"0100007F:{port:04X}", f"0100007F:{other_port:04X}"
    for line in Path("/proc/net/tcp").read_text().splitlines():
        fields = line.split()
        if tuple(fields[1:3]) == wanted:
            return f"socket:[{fields[9]}]"
    raise LookupError(wanted)


def _files(pid: int) -> set[str]:
    found = set()
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            found.add(str(file.readlink()))
    return found
