"""Metrics: plain counters on the hot path, rendered when Prometheus collects them."""

from __future__ import annotations

import asyncio
import tomllib
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from countersign import __version__
from countersign.core.webhooks.room import DeliveryActivity
from countersign.hosted.pages.room import HostedPages
from countersign.operate.doctor.promises import PROMISES, PromiseWatch
from countersign.operate.room import Operations

_CONNECTIONS_MAX: Final = 32
"""At a time; beyond them, connections are closed without a response."""
_DECLARED: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
"""The meaning of each metric, and its labels."""
_EDGES: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, float("inf"))
"""Bucket edges of the histograms, in seconds. After ten seconds every request that waits has its
response."""


def _family(kind: Callable[..., Any], name: str, of: Mapping[Any, float] | None = None) -> Any:  # noqa: ANN401 - of that kind
    """A metric with its values by labels: text for a single label, else a tuple."""
    declared = _DECLARED[name]
    family = kind(f"countersign_{name}", declared["meaning"], labels=declared.get("labels", ()))
    for what, value in dict(of or {}).items():
        family.add_metric((what,) if isinstance(what, str) else what, value)
    return family


_counter: Final = partial(_family, CounterMetricFamily)
_gauge: Final = partial(_family, GaugeMetricFamily)


class Metrics(Collector):
    """Counts responses by operation and status, and reads the batchers' counters."""

    def __init__(
        self,
        operations: Operations,
        webhooks: DeliveryActivity,
        checkout: HostedPages,
        leases: Mapping[str, int],
        watch: PromiseWatch,
    ) -> None:
        self._responses: Counter[tuple[str, int]] = Counter()
        self._taken = defaultdict[str, list[float]](lambda: [0] * (len(_EDGES) + 1))
        """For each operation: how many responses took up to each edge, and their total seconds."""
        self._database = operations.database
        self._vital_signs = operations.vital_signs
        self._seal_log = operations.notices.log.seal
        self._process = ProcessCollector(registry=None)
        self._webhooks = webhooks
        self._checkout = checkout
        self._leases = leases
        self._watch = watch
        self.loops_ended: Counter[str] = Counter()
        """How often each loop of the server was restarted."""

    def count(self, operation: str, status: int, seconds: float) -> None:
        """Count one response, and how long it took."""
        self._responses[operation, status] += 1
        taken = self._taken[operation]
        taken[bisect_left(_EDGES, seconds)] += 1
        taken[-1] += seconds

    def collect(self) -> Iterator[Metric]:
        """The current values."""
        found = dict(self._responses).items()
        yield _counter(
            "http_answers", {(what or "none", str(code)): n for (what, code), n in found}
        )
        histogram = _family(HistogramMetricFamily, "operation_seconds")
        for what, (*numbers, seconds) in dict(self._taken).items():
            buckets = zip(map(floatToGoString, _EDGES), accumulate(numbers), strict=True)
            histogram.add_metric((what or "none",), [*buckets], seconds)
        yield histogram
        lanes, oldest = self._database.batches(), self._database.oldest()
        runs, done, waiting = ({n: one[i] for n, one in lanes.items()} for i in range(3))
        yield _counter("database_batches", runs)
        yield _counter("database_calls", done)
        yield _gauge("database_waiting", waiting)
        yield _gauge("oldest_wait_seconds", oldest)
        yield _gauge("database_trouble", {(): int(self._database.trouble is not None)})
        yield _counter("rate_limit_leases", self._leases)
        yield _counter("loops_ended", self.loops_ended)
        yield _gauge("promise_age_seconds", self._watch.ages())
        limits = {(name, "ticket"): one.ticket for name, one in PROMISES.items()}
        limits |= {(name, "page"): one.page for name, one in PROMISES.items() if one.page}
        yield _gauge("promise_limit_seconds", limits)
        signs, engine = self._vital_signs, self._database.url.get_backend_name()
        number, share = ({name: one[i] for name, one in signs.free.items()} for i in range(2))
        yield _gauge("disk_free_bytes", number)
        yield _gauge("disk_free_ratio", share)
        ahead = {} if signs.clock_ahead is None else {(): signs.clock_ahead}
        yield _gauge("clock_ahead_seconds", ahead)
        yield _gauge("build_info", {(__version__, engine): 1})
        yield from self._process.collect()
        logs, suspended = dict(self._seal_log.gauges), self._seal_log.suspended
        yield _gauge("log_entries", {mode.value: size for mode, (size, _) in logs.items()})
        now = self._checkout.access.clock.time_ns() / 10**9
        ages = {m.value: now - at.timestamp() for m, at in self._seal_log.heads_at.items()}
        yield _gauge("head_age_seconds", ages)
        yield _gauge("log_suspended", {mode.value: int(mode in suspended) for mode in logs})
        yield _counter("webhook_attempts", self._webhooks.attempts)
        watch = self._checkout.buyers.watch
        yield _counter("verifications", watch.verdicts)
        asked = _family(SummaryMetricFamily, "provider_seconds")
        for name, spent in dict(watch.seconds).items():
            asked.add_metric((name,), *spent)
        yield asked
        yield _counter("provider_unknown_fields", watch.unknown_fields)
        yield _counter("provider_webhooks_refused", watch.refused_messages)
        yield _counter("identity_checks_started", watch.started)
        yield _counter("remembered_passes", self._checkout.remembered.passes)
        mails = self._checkout.mails
        yield _counter("copy_mail_attempts", mails.attempts if mails else None)
        yield _gauge("event_streams", {(): self._checkout.updates.open})


async def serve_metrics(
    metrics: Collector, host: str, port: int, *, seconds_max: float = 5.0
) -> asyncio.Server:
    """Serve /metrics on a separate address, on this event loop.

    Args:
        metrics: what to serve.
        host: the address to listen on.
        port: the port there; 0: any.
        seconds_max: deadline of a connection, from its beginning to the end of the response.

    Raises:
        OSError: the address is taken.
    """
    registry = CollectorRegistry()
    registry.register(metrics)
    open_connections = 0

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_connections
        open_connections += 1
        try:
            if open_connections <= _CONNECTIONS_MAX:
                async with asyncio.timeout(seconds_max):
                    request = await reader.readuntil(b"\r\n\r\n")
                    writer.write(_response(request, registry))
                    await writer.drain()
        except (TimeoutError, OSError, EOFError, asyncio.LimitOverrunError):
            pass  # the client has disconnected, or sends no request
        finally:
            open_connections -= 1
            writer.close()

    return await asyncio.start_server(respond, host, port)


def _response(request: bytes, registry: CollectorRegistry) -> bytes:
    method, _, rest = request.partition(b" ")
    found = rest.partition(b" ")[0].partition(b"?")[0] == b"/metrics"
    if found and method in {b"GET", b"HEAD"}:
        status, kind, body = b"200 OK", CONTENT_TYPE_PLAIN_0_0_4.encode(), generate_latest(registry)
    else:
        status, kind, body = b"404 Not Found", b"text/plain", b"Only GET /metrics is here.\n"
    head = (
        b"HTTP/1.1 " + status,
        b"Content-Type: " + kind,
        b"Content-Length: %d" % len(body),
        b"Connection: close",
    )
    return b"\r\n".join(head) + b"\r\n\r\n" + (b"" if method == b"HEAD" else body)
