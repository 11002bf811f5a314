"""Serving the application: one process, one event loop, until a signal says stop."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import resource
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from granian._granian import ListenerSpec
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server

from countersign.bootstrap import Deployment
from countersign.buyers import expiry, poll_sessions
from countersign.errors import AddressInUse, CountersignError
from countersign.loops import restarted
from countersign.notices.publish import refuse_changed
from countersign.operations.housekeeping import keep_house
from countersign.server.app import App
from countersign.server.extension import installed_extension
from countersign.server.metrics import serve_metrics
from countersign.webhooks.deliver import DeliverWebhooks

_BACKLOG: Final = 1024
_CONNECTIONS_MAX: Final = 10_000
"""Beyond them, connections wait to be accepted. Idle ones are closed when no header comes."""
_HEADER_MILLISECONDS_MAX: Final = 10_000
_HEADER_BYTES_MAX: Final = 128 * 1024
_UNREAD_MILLISECONDS_MAX: Final = 30_000
"""How long a client may leave what was sent to it unread or unacknowledged."""
_GRACE_SECONDS: Final = 10.0
"""How long active requests may take after a stop was requested."""
_COLLECTOR_THRESHOLDS: Final = (20_000, 20, 50)
_SWITCH_INTERVAL_SECONDS: Final = 0.0005


async def serve(deployment: Deployment, ready: Callable[[], None] | None = None) -> None:
    """Serve until SIGINT or SIGTERM; requests under way have ten seconds to finish.

    Args:
        deployment: what to serve.
        ready: called once, when the server is about to accept connections.

    Raises:
        AddressInUse: the host and port are taken, or those of the metrics.
        NoticeFileChanged: the file of a published notice version holds other words now.
    """
    settings = deployment.settings
    await refuse_changed(deployment.notices)
    refuse_taken(settings.host, settings.port)
    # The storage threads hold the interpreter for microseconds at a time; with the default of
    # 5 ms the event loop would wait for them far longer than their work takes.
    sys.setswitchinterval(_SWITCH_INTERVAL_SECONDS)
    extension = installed_extension(deployment)
    app = App(deployment, None if extension is None else extension.around)
    _calm_the_collector()
    if settings.metrics_port is not None:
        refuse_taken(settings.metrics_host, settings.metrics_port)
        await serve_metrics(app.metrics, settings.metrics_host, settings.metrics_port)
    server = _Server(
        app,
        address=settings.host,
        port=settings.port,
        interface=Interfaces.ASGINL,
        http=HTTPModes.http1,
        websockets=False,
        backlog=_BACKLOG,
        backpressure=_CONNECTIONS_MAX,
        http1_settings=HTTP1Settings(
            header_read_timeout=_HEADER_MILLISECONDS_MAX, max_buffer_size=_HEADER_BYTES_MAX
        ),
        log_enabled=False,
    )
    loop = asyncio.get_running_loop()
    _allow_many_connections()
    serving = asyncio.create_task(server.serve())

    def stop() -> None:
        loop.call_soon(server.signal_handler_interrupt)
        loop.call_later(_GRACE_SECONDS, abandon)

    def abandon() -> None:
        # The callbacks of the server find their work cancelled, as intended.
        loop.set_exception_handler(lambda *_: None)
        serving.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    loops: dict[str, Callable[[], Awaitable[object]]] = {
        "housekeeping": partial(keep_house, deployment.operations),
        "sealing": deployment.log.seal.run,
        "settling": partial(poll_sessions.run, deployment.buyers),
        "anchoring": deployment.log.anchor.run,
        "expiry": partial(expiry.run, deployment.buyers),
        "webhooks": DeliverWebhooks(deployment.webhooks).run,
    }
    if extension is not None:
        loops[extension.name] = extension.run
    background = [
        asyncio.create_task(restarted(name, run, app.metrics.loops_ended))
        for name, run in loops.items()
    ]
    try:
        if ready is not None:
            loop.call_soon(ready)
        with suppress(asyncio.CancelledError):
            await serving
    finally:
        for task in background:
            task.cancel()
        await asyncio.wait(background)
        # What was acknowledged last is sealed before the process ends, where that is possible.
        with suppress(CountersignError):
            await deployment.log.seal.settle()


class _Server(Server):
    """Granian, whose own options leave a client that never reads connected indefinitely."""

    _shd: Any
    _sfd: Any

    def _init_shared_socket(self) -> None:
        """Open the listening socket; accepted connections inherit its TCP_USER_TIMEOUT (tcp(7)).

        Linux then ends a connection whose window stays closed, or whose data stays unacknowledged,
        for that long.
        """
        self._shd = ListenerSpec(self.bind_addr, self.bind_port, self.backlog).build()
        self._sfd = self._shd.get_fd()
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            with socket.socket(fileno=os.dup(self._sfd)) as listening:
                listening.setsockopt(
                    socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNREAD_MILLISECONDS_MAX
                )


def _allow_many_connections() -> None:
    """Each takes a file descriptor: use as many as the operator allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * _CONNECTIONS_MAX if hard == resource.RLIM_INFINITY else hard
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, 2 * _CONNECTIONS_MAX), hard))


def _calm_the_collector() -> None:
    """Exempt what is loaded by now from collections: it stays until the process ends.

    A full collection stops the event loop; answering requests leaves almost no cycles behind.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECTOR_THRESHOLDS)


def refuse_taken(host: str, port: int) -> None:
    """Find out beforehand: the server itself would share the port with another one in silence.

    Raises:
        AddressInUse: something listens there already.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            why = (
                "is already in use"
                if error.errno == errno.EADDRINUSE
                else f"cannot be used: {error}"
            )
            msg = (
                f"{host} port {port} {why}. Set COUNTERSIGN_PORT (or the metrics port) to "
                "another number."
            )
            raise AddressInUse(msg) from error
