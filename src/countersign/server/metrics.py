"""Metrics: plain counters on the hot path, rendered when Prometheus collects them."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
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
from countersign.checkout.mails import MailActivity
from countersign.checkout.room import Checkout
from countersign.instant import from_ns
from countersign.operations.room import Operations
from countersign.webhooks.room import DeliveryActivity

_CONNECTIONS_MAX: Final = 32
"""At a time; beyond them, connections are closed without a response."""
_SECONDS_MAX: Final = 5.0
_LANE: Final = ("lane",)
_EDGES: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, float("inf"))
"""Of the histograms, in seconds. After ten seconds every request that waits has its response."""


def _family(
    kind: Callable[..., Any],
    name: str,
    meaning: str,
    labels: Sequence[str],
    of: Mapping[Any, float],
) -> Metric:
    """A metric with its values by labels: a text where there is one label, else all of them."""
    family: Metric = kind(f"countersign_{name}", meaning, labels=labels)
    for what, value in dict(of).items():
        family.add_metric((what,) if isinstance(what, str) else what, value)  # type: ignore[attr-defined]
    return family


_counter: Final = partial(_family, CounterMetricFamily)
_gauge: Final = partial(_family, GaugeMetricFamily)


class Metrics(Collector):
    """Counts responses by operation and status, and reads the batchers' counters."""

    def __init__(
        self,
        operations: Operations,
        webhooks: DeliveryActivity,
        checkout: Checkout,
        leases: Mapping[str, int],
    ) -> None:
        self._responses: Counter[tuple[str, int]] = Counter()
        self._taken = defaultdict[str, list[float]](lambda: [0] * (len(_EDGES) + 1))
        """Of each operation how many responses took up to each edge, and all seconds."""
        self._database = operations.database
        self._vital_signs = operations.vital_signs
        self._seal_log = operations.notices.log.seal
        self._anchor = operations.notices.log.anchor
        self._process = ProcessCollector(registry=None)
        self._webhooks = webhooks
        self._checkout = checkout
        self._leases = leases
        self.loops_ended: Counter[str] = Counter()
        """How often each loop of the server has ended and was begun again."""

    def count(self, operation: str, status: int, seconds: float) -> None:
        """Count one response, and how long it took."""
        self._responses[operation, status] += 1
        taken = self._taken[operation]
        taken[bisect_left(_EDGES, seconds)] += 1
        taken[-1] += seconds

    def collect(self) -> Iterator[Metric]:
        """The current values."""
        answered = dict(self._responses)
        yield _counter(
            "http_answers",
            "Responses by operation and status.",
            ("operation", "status"),
            {(what or "none", str(status)): n for (what, status), n in answered.items()},
        )
        meaning = "How long responses took, up to their first byte."
        name, labels = "countersign_operation_seconds", ("operation",)
        histogram = HistogramMetricFamily(name, meaning, labels=labels)
        for what, (*numbers, seconds) in dict(self._taken).items():
            buckets = zip(map(floatToGoString, _EDGES), accumulate(numbers), strict=True)
            histogram.add_metric((what or "none",), [*buckets], seconds)
        yield histogram
        lanes, oldest = self._database.batches(), self._database.oldest()
        runs, done, waiting = ({n: one[i] for n, one in lanes.items()} for i in range(3))
        yield _counter("database_batches", "Transactions.", _LANE, runs)
        yield _counter("database_calls", "Calls in the batches.", _LANE, done)
        yield _gauge("database_waiting", "Calls waiting for a batch.", _LANE, waiting)
        meaning = "For how long the oldest call or batch of a lane has waited for the database."
        yield _gauge("oldest_wait_seconds", meaning, _LANE, oldest)
        trouble = int(self._database.has_trouble)
        yield _gauge("database_trouble", "1 while calls fail, or wait too long.", (), {(): trouble})
        meaning = "Shares of rate limits that were asked of the database."
        yield _counter("rate_limit_leases", meaning, ("outcome",), self._leases)
        meaning = "Loops that ended and were restarted."
        yield _counter("loops_ended", meaning, ("loop",), self.loops_ended)
        yield from self._machine()
        yield from self._logs()
        yield from self._deliveries()
        yield from self._verified()
        yield from self._pages()

    def _machine(self) -> Iterator[Metric]:
        signs, place, engine = self._vital_signs, ("place",), self._database.url.get_backend_name()
        number, share = ({name: one[i] for name, one in signs.free.items()} for i in range(2))
        yield _gauge("disk_free_bytes", "What is free on the disk.", place, number)
        yield _gauge("disk_free_ratio", "The part of the disk that is free.", place, share)
        ahead = {} if signs.clock_ahead is None else {(): signs.clock_ahead}
        meaning = "By how much the server's clock is ahead of the database's."
        yield _gauge("clock_ahead_seconds", meaning, (), ahead)
        build = {(__version__, engine): 1}
        yield _gauge("build_info", "What runs.", ("version", "engine"), build)
        yield from self._process.collect()

    def _logs(self) -> Iterator[Metric]:
        found, suspended = dict(self._seal_log.gauges), self._seal_log.suspended
        mode, sizes = ("mode",), {mode.value: size for mode, (size, _) in found.items()}
        yield _gauge("log_entries", "Entries in the log.", mode, sizes)
        queued = {mode.value: number for mode, (_, number) in found.items()}
        yield _gauge("log_waiting", "Records that wait to be sealed.", mode, queued)
        now = self._checkout.access.clock.time_ns() / 10**9
        ages = {m.value: now - at.timestamp() for m, at in self._seal_log.heads_at.items()}
        yield _gauge("head_age_seconds", "Age of the newest checkpoint of a log.", mode, ages)
        waits = {mode.value: int(mode in suspended) for mode in found}
        yield _gauge("log_suspended", "1 while sealing is suspended.", mode, waits)
        labels, gauges = ("kind", "name"), self._anchor.gauges
        covered = {(last.kind, last.name): last.size or 0 for last in gauges}
        meaning = "Entries of the live log that a witness or time-stamp authority has seen."
        yield _gauge("anchor_entries", meaning, labels, covered)
        at = {(last.kind, last.name): last.at.timestamp() if last.at else 0 for last in gauges}
        meaning = "When that was, in Unix time; 0: never."
        yield _gauge("anchor_success_seconds", meaning, labels, at)

    def _deliveries(self) -> Iterator[Metric]:
        outcomes = {outcome.value: n for outcome, n in dict(self._webhooks.attempts).items()}
        yield _counter("webhook_attempts", "Messages sent, by outcome.", ("outcome",), outcomes)
        waiting, meaning = self._webhooks.endpoints_waiting, "Endpoints with something to send."
        yield _gauge("webhook_endpoints_waiting", meaning, (), {(): waiting})

    def _verified(self) -> Iterator[Metric]:
        watch, provider = self._checkout.buyers.watch, ("provider",)
        meaning = "Live verifications by provider, status or `error`, and reasons or error code."
        labels = ("provider", "status", "reason")
        yield _counter("verifications", meaning, labels, dict(watch.verdicts))
        meaning = "Time until an identity provider's response, with all retries."
        asked = SummaryMetricFamily("countersign_provider_seconds", meaning, labels=provider)
        for name, (number, seconds) in dict(watch.seconds).items():
            asked.add_metric((name,), number, seconds)
        yield asked
        meaning = "Fields of identity providers' responses that this version does not know."
        yield _counter("provider_unknown_fields", meaning, provider, dict(watch.unknown_fields))
        meaning = "Messages of identity providers that were not authentic."
        refused = dict(watch.refused_messages)
        yield _counter("provider_webhooks_refused", meaning, provider, refused)
        number, since = watch.pending
        meaning = "Sessions that the provider has not decided yet."
        yield _gauge("verifications_pending", meaning, (), {(): number})
        now = from_ns(self._checkout.access.clock.time_ns())
        age = 0.0 if since is None else max(0.0, (now - since).total_seconds())
        meaning = "Age of the oldest undecided session."
        yield _gauge("verifications_pending_oldest_seconds", meaning, (), {(): age})

    def _pages(self) -> Iterator[Metric]:
        meaning = "Checks that this service started, by provider, and `started` or the error code."
        started, labels = dict(self._checkout.buyers.watch.started), ("provider", "outcome")
        yield _counter("identity_checks_started", meaning, labels, started)
        meaning = "Buyers who passed without a new identity check, by what they were remembered by."
        passes = dict(self._checkout.remembered.passes)
        yield _counter("remembered_passes", meaning, ("kind",), passes)
        mails = self._checkout.mails
        mailed = mails.activity if mails else MailActivity()
        sent = {outcome.value: n for outcome, n in dict(mailed.attempts).items()}
        meaning = "Attempts to send a mail with the link of a copy, by outcome."
        yield _counter("copy_mail_attempts", meaning, ("outcome",), sent)
        meaning = "Mails with the link of a copy that wait."
        yield _gauge("copy_mails_waiting", meaning, (), {(): mailed.waiting})
        now, meaning = self._checkout.access.clock.time_ns() / 1e9, "Age of the oldest of them."
        age = max(0.0, now - mailed.oldest.timestamp()) if mailed.oldest else 0.0
        yield _gauge("copy_mails_oldest_seconds", meaning, (), {(): age})
        streams = self._checkout.updates.open
        yield _gauge("event_streams", "Pages that wait for news now.", (), {(): streams})


async def serve_metrics(
    metrics: Collector, host: str, port: int, *, seconds_max: float = _SECONDS_MAX
) -> asyncio.Server:
    """Serve /metrics on a separate address, on this event loop.

    Args:
        metrics: what to serve.
        host: the address to listen on.
        port: the port there; 0: any.
        seconds_max: what a connection may take, from its beginning to the end of the response.

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
