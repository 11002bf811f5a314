"""Networks of their own for nodes: each has a cable to a switch, which can be pulled.

The switch is this machine's, so processes here reach each node by its address. Callers from
outside have another way in, which stays: a socket of each node's HAProxy.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.ha.nodes import Node

_PATH: Final = "/usr/bin:/bin:/usr/sbin:/sbin"


def missing() -> str | None:
    """The missing requirement for such networks; None: nothing."""
    if os.geteuid() != 0 or shutil.which("ip", path=_PATH) is None:
        return "no root, or no ip (iproute2)"
    probe = f"cs-{os.getpid()}"
    made = _tried("netns", "add", probe)
    _tried("netns", "delete", probe)
    return None if made else "networks of their own are not allowed here"


def _tried(*words: str) -> bool:
    done = subprocess.run(["ip", *words], env={"PATH": _PATH}, capture_output=True, check=False)
    return done.returncode == 0


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], env={"PATH": _PATH}, check=True)


@contextmanager
def joined(each: Sequence[Node], address: str) -> Iterator[None]:
    """Give each node a network of its own, and join them; this machine has this address there."""
    switch = f"cs{each[0].front_port}"
    _ip("link", "add", switch, "type", "bridge")
    try:
        _ip("address", "add", f"{address}/24", "dev", switch)
        _ip("link", "set", switch, "up")
        for node in each:
            node.space = f"{switch}-{node.name}"
            _ip("netns", "add", node.space)
            own = ("netns", "exec", node.space, "ip")
            cable = ("type", "veth", "peer", "name", "eth0", "netns", node.space)
            _ip("link", "add", node.space, *cable)
            _ip(*own, "address", "add", f"{node.address}/24", "dev", "eth0")
            _ip(*own, "link", "set", "eth0", "up")
            _ip(*own, "link", "set", "lo", "up")
            _ip("link", "set", node.space, "master", switch, "up")
        yield
    finally:
        for node in each:
            if node.space is not None:
                _tried("netns", "delete", node.space)
        _tried("link", "delete", switch)


def cut_off(node: Node) -> None:
    """Pull its cable: its packets are lost, and it receives nothing, without an error."""
    assert node.space is not None
    _ip("link", "set", node.space, "nomaster")


def join(node: Node) -> None:
    """Plug it in again."""
    assert node.space is not None
    _ip("link", "set", node.space, "master", node.space.split("-")[0])
