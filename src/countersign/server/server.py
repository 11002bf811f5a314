"""Serving the application on the event loop of this process, until a signal says stop."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import resource
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeAlias

from granian._granian import SocketHolder
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server
from prometheus_client.registry import Collector

from countersign.base.db.engine import is_embedded
from countersign.base.db.writes import TRY_SECONDS
from countersign.base.errors import CountersignError
from countersign.base.loops import forever, restarted
from countersign.core.buyers import expiry, poll_sessions
from countersign.core.checkout import expiry as checkout_expiry
from countersign.core.log.blind_runs import keep_merged
from countersign.core.notices.publish import refuse_changed
from countersign.core.privacy import retention
from countersign.core.webhooks.deliver import DeliverWebhooks
from countersign.hosted.pages import following
from countersign.hosted.pages.send_mails import SendMails
from countersign.identity.registry import refuse_unusable
from countersign.operate.bootstrap import Deployment
from countersign.operate.housekeeping import keep_house
from countersign.server.app import App
from countersign.server.extension import Extension, installed_extension
from countersign.server.listen import BACKLOG, opener, refuse_taken
from countersign.server.manager import ALIVE, beat_seconds, notify
from countersign.server.metrics import serve_metrics
from countersign.server.stopping import stopper
from countersign.server.workers import Worker
from countersign.staff.people import alerts

_CONNECTIONS_MAX: Final = 10_000
"""Beyond them, connections wait to be accepted. Idle connections without a header are closed."""
_OWN_FILES: Final = 64
"""File descriptors for everything but connections, with reserve."""
_HEADER_MILLISECONDS_MAX: Final = 10_000
_HEADER_BYTES_MAX: Final = 32 * 1024
"""For a request line and its headers, before authentication; one more read may exceed it."""
_METRICS_SECONDS: Final = 0.25
"""Maximum age of the other workers' counts in the metrics."""
_SHOWN_SECONDS: Final = 1.0
"""How long after a request the other workers can show it."""

_Loop: TypeAlias = Callable[[], Awaitable[object]]


async def serve(
    deployment: Deployment,
    ready: Callable[[str, int], None] | None = None,
    worker: Worker | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM: drain, then let requests under way finish, for ten seconds.

    While it drains, `/readyz` says so and every response ends its connection; a second signal ends
    that. See docs/decisions/operations.md.

    Args:
        deployment: what to serve.
        ready: called once with host and port, when the server is about to accept connections.
        worker: which of several processes this is; None: this process is the only one.
    """
    settings = deployment.settings
    open_socket = opener(settings.host, settings.port) if worker is None else worker.open_socket
    if worker is None or worker.begins_server:
        await refuse_changed(deployment.notices)
        refuse_unusable()
    # The storage threads hold the interpreter for microseconds at a time; with the default of
    # 5 ms the event loop would wait for them far longer than their work takes.
    sys.setswitchinterval(0.0005)
    extension = installed_extension(deployment)
    app = _app(
        deployment,
        None if extension is None else extension.around,
        None if worker is None else worker.shared.arrivals,
        None if worker is None else worker.shared.visits,
    )
    _calm_the_collector()
    loops = _loops(deployment, extension, worker)
    if worker is not None:
        app.requests.share(worker.shared.requests, worker.number - 1)
    loops["requests"] = partial(forever, "requests", app.requests.flush, _SHOWN_SECONDS)
    if worker is None or worker.in_background:
        loops["promises"] = app.watch.run
        alert = partial(alerts.tell, deployment.people, app.watch.late)
        loops["alerts"] = partial(forever, "alerts", alert, 60.0)
    if settings.metrics_port is not None:
        loops |= await _serve_metrics(app, settings.metrics_host, settings.metrics_port, worker)
    listening = open_socket()
    host, port, *_ = listening.getsockname()  # the service manager's may be another one
    server = _Server(
        app,
        address=settings.host,
        port=settings.port,
        interface=Interfaces.ASGINL,
        http=HTTPModes.http1,
        websockets=False,
        backlog=BACKLOG,
        backpressure=_connections_max(),
        http1_settings=HTTP1Settings(
            header_read_timeout=_HEADER_MILLISECONDS_MAX, max_buffer_size=_HEADER_BYTES_MAX
        ),
        log_enabled=False,
    )
    server.listening = listening
    # It is not ready before its first write: usually that is done when the first caller comes.
    with suppress(TimeoutError):
        async with asyncio.timeout(TRY_SECONDS):
            await deployment.database.try_writing()
    loop = asyncio.get_running_loop()
    serving = asyncio.create_task(server.serve())
    stop = stopper(
        deployment.operations.draining,
        settings.drain_seconds,
        app.streams,
        server.signal_handler_interrupt,
        serving,
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    background = [
        asyncio.create_task(restarted(name, run, app.metrics.loops_ended))
        for name, run in loops.items()
    ]
    if worker is not None:
        worker.tick(loop)
    else:
        faulthandler.enable()  # the service manager's watchdog ends a frozen process by SIGABRT
    try:
        if ready is not None:
            loop.call_soon(ready, host, port)
        with suppress(asyncio.CancelledError):
            await serving
    finally:
        for task in background:
            task.cancel()
        await asyncio.wait(background)
        # The last acknowledgments are sealed before the process ends, if possible.
        with suppress(CountersignError):
            await deployment.log.seal.settle()


async def _beat() -> None:
    notify(ALIVE)


def _loops(
    deployment: Deployment, extension: Extension | None, worker: Worker | None
) -> dict[str, _Loop]:
    """The work in the background of this process, by name."""
    # A server must know the state of the logs, and any process may seal waiting entries.
    everywhere: dict[str, _Loop] = {
        "sealing": deployment.log.seal.run,
        "clock": deployment.log.clock_guard.run,
        "writing": partial(forever, "writing", deployment.database.try_writing, TRY_SECONDS),
    }
    if worker is None and (seconds := beat_seconds()) is not None:
        everywhere["watchdog"] = partial(forever, "watchdog", _beat, seconds)
    if is_embedded(deployment.database.url):
        everywhere["reserve"] = deployment.operations.reserve.run
        everywhere["log_copy"] = deployment.database.copy_log
    if worker is not None and not worker.in_background:
        return everywhere
    added = {} if extension is None else {extension.name: extension.run}
    if is_embedded(deployment.database.url):
        added["merging"] = partial(keep_merged, deployment.database)
        added["retention"] = partial(retention.run, deployment.privacy)
    checkout = deployment.checkout
    if checkout.mails is not None:
        added["copy_mails"] = SendMails(checkout, checkout.mails).run
    return (
        everywhere
        | added
        | {
            "watching": deployment.operations.vital_signs.run,
            "housekeeping": partial(keep_house, deployment.operations),
            "settling": partial(poll_sessions.run, deployment.buyers),
            "anchoring": deployment.log.anchor.run,
            "expiry": partial(expiry.run, deployment.buyers),
            "checkout_expiry": partial(checkout_expiry.run, deployment.checkout),
            "checkout_following": partial(following.run, deployment.checkout),
            "webhooks": DeliverWebhooks(deployment.webhooks).run,
        }
    )


async def _serve_metrics(app: App, host: str, port: int, worker: Worker | None) -> dict[str, _Loop]:
    """Serve the metrics of this process or of all workers; returns the background loop for them."""
    metrics: Collector = app.metrics
    loops: dict[str, _Loop] = {}
    if worker is not None:
        if worker.forks > 1:
            app.metrics.loops_ended["worker"] += 1
        metrics = summed = worker.summed(app.metrics)
        loops["metrics"] = partial(forever, "metrics", summed.publish, _METRICS_SECONDS)
    if worker is None or worker.in_background:
        refuse_taken(host, port)
        await serve_metrics(metrics, host, port)
    return loops


class _Server(Server):
    """Granian, whose own options leave a client that never reads connected indefinitely."""

    listening: socket.socket
    _shd: Any
    _sfd: Any

    def _init_shared_socket(self) -> None:
        """Take the listening socket."""
        fileno = self.listening.detach()
        self._shd = SocketHolder(fileno, uds=False, backlog=BACKLOG)  # type: ignore[call-arg]
        self._sfd = self._shd.get_fd()


def _connections_max() -> int:
    """Each connection takes a file descriptor: use all that the operator allows, except a reserve.

    These remain for the database, the checkpoints and outgoing requests.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * _CONNECTIONS_MAX if hard == resource.RLIM_INFINITY else hard
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = min(wanted, 2 * _CONNECTIONS_MAX)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    allowed = _CONNECTIONS_MAX if soft == resource.RLIM_INFINITY else soft - _OWN_FILES
    return max(min(allowed, _CONNECTIONS_MAX), 16)


def _app(deployment: Deployment, *args: Any) -> App:  # noqa: ANN401 - those of `App`
    url = deployment.settings.traces_url
    if url is None:
        return App(deployment, *args)
    from countersign.server.tracing import TracedApp, open_traces  # noqa: PLC0415 - an extra

    return TracedApp(open_traces(url), deployment, *args)


def _calm_the_collector() -> None:
    """Exempt all objects loaded so far from collections: they live until the process ends.

    A full collection stops the event loop; answering requests leaves almost no cycles behind.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
