"""Metrics: plain counters on the hot path, rendered when Prometheus collects them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from countersign.checkout.room import Checkout
from countersign.db.database import Database
from countersign.instant import from_ns
from countersign.log.room import LogRoom
from countersign.webhooks.room import DeliveryActivity

_CONNECTIONS_MAX: Final = 32
"""At a time; beyond them, connections are closed without a response."""
_SECONDS_MAX: Final = 5.0


class Metrics(Collector):
    """Counts responses by operation and status, and reads the batchers' counters."""

    def __init__(
        self,
        database: Database,
        log: LogRoom,
        webhooks: DeliveryActivity,
        checkout: Checkout,
    ) -> None:
        self._responses: Counter[tuple[str, int]] = Counter()
        self._database = database
        self._seal_log = log.seal
        self._anchor = log.anchor
        self._webhooks = webhooks
        self._checkout = checkout
        self.loops_ended: Counter[str] = Counter()
        """How often each loop of the server has ended and was begun again."""

    def count(self, operation: str, status: int) -> None:
        """Count one response."""
        self._responses[operation, status] += 1

    def collect(self) -> Iterator[Metric]:
        """The current values."""
        responses = CounterMetricFamily(
            "countersign_http_answers",
            "Responses by operation and status.",
            labels=("operation", "status"),
        )
        for (operation, status), number in dict(self._responses).items():
            responses.add_metric((operation or "none", str(status)), number)
        yield responses
        lane = ("lane",)
        batches = CounterMetricFamily("countersign_database_batches", "Transactions.", labels=lane)
        calls = CounterMetricFamily(
            "countersign_database_calls", "Calls in the batches.", labels=lane
        )
        waiting = GaugeMetricFamily(
            "countersign_database_waiting", "Calls waiting for a batch.", labels=lane
        )
        for name, (run, done, pending) in self._database.batches().items():
            batches.add_metric((name,), run)
            calls.add_metric((name,), done)
            waiting.add_metric((name,), pending)
        oldest = GaugeMetricFamily(
            "countersign_oldest_wait_seconds",
            "For how long the oldest call or batch of a lane has waited for the database.",
            labels=lane,
        )
        for name, seconds in self._database.oldest().items():
            oldest.add_metric((name,), seconds)
        yield from (batches, calls, waiting, oldest)
        ended = CounterMetricFamily(
            "countersign_loops_ended", "Loops that ended and were restarted.", labels=("loop",)
        )
        for name, number in dict(self.loops_ended).items():
            ended.add_metric((name,), number)
        yield ended
        yield from self._logs()
        yield from self._deliveries()
        yield from self._verified()
        yield from self._pages()

    def _logs(self) -> Iterator[GaugeMetricFamily]:
        mode = ("mode",)
        entries = GaugeMetricFamily("countersign_log_entries", "Entries in the log.", labels=mode)
        queued = GaugeMetricFamily(
            "countersign_log_waiting", "Records that wait to be sealed.", labels=mode
        )
        suspended = GaugeMetricFamily(
            "countersign_log_suspended", "1 while sealing is suspended.", labels=mode
        )
        for name, (size, waiting) in dict(self._seal_log.gauges).items():
            entries.add_metric((name.value,), size)
            queued.add_metric((name.value,), waiting)
            suspended.add_metric((name.value,), int(name in self._seal_log.suspended))
        yield from (entries, queued, suspended)
        labels = ("kind", "name")
        covered = GaugeMetricFamily(
            "countersign_anchor_entries",
            "Entries of the live log that a witness or time-stamp authority has seen.",
            labels=labels,
        )
        success = GaugeMetricFamily(
            "countersign_anchor_success_seconds",
            "When that was, in Unix time; 0: never.",
            labels=labels,
        )
        for last in self._anchor.gauges:
            covered.add_metric((last.kind, last.name), last.size or 0)
            success.add_metric((last.kind, last.name), last.at.timestamp() if last.at else 0)
        yield from (covered, success)

    def _deliveries(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        attempts = CounterMetricFamily(
            "countersign_webhook_attempts", "Messages sent, by outcome.", labels=("outcome",)
        )
        for outcome, number in dict(self._webhooks.attempts).items():
            attempts.add_metric((outcome.value,), number)
        waiting = GaugeMetricFamily(
            "countersign_webhook_endpoints_waiting", "Endpoints with something to send."
        )
        waiting.add_metric((), self._webhooks.endpoints_waiting)
        yield from (attempts, waiting)

    def _verified(self) -> Iterator[Metric]:
        watch, provider = self._checkout.buyers.watch, ("provider",)
        verdicts = CounterMetricFamily(
            "countersign_verifications",
            "Live verifications by provider, status or `error`, and reasons or error code.",
            labels=("provider", "status", "reason"),
        )
        for labels, number in dict(watch.verdicts).items():
            verdicts.add_metric(labels, number)
        asked = SummaryMetricFamily(
            "countersign_provider_seconds",
            "Time until an identity provider's response, with all retries.",
            labels=provider,
        )
        for name, (number, seconds) in dict(watch.seconds).items():
            asked.add_metric((name,), number, seconds)
        unknown = CounterMetricFamily(
            "countersign_provider_unknown_fields",
            "Fields of identity providers' responses that this version does not know.",
            labels=provider,
        )
        for name, number in dict(watch.unknown_fields).items():
            unknown.add_metric((name,), number)
        refused = CounterMetricFamily(
            "countersign_provider_webhooks_refused",
            "Messages of identity providers that were not authentic.",
            labels=provider,
        )
        for name, number in dict(watch.refused_messages).items():
            refused.add_metric((name,), number)
        number, since = watch.pending
        now = from_ns(self._checkout.access.clock.time_ns())
        pending = GaugeMetricFamily(
            "countersign_verifications_pending",
            "Sessions that the provider has not decided yet.",
            number,
        )
        oldest = GaugeMetricFamily(
            "countersign_verifications_pending_oldest_seconds",
            "Age of the oldest undecided session.",
            0.0 if since is None else max(0.0, (now - since).total_seconds()),
        )
        yield from (verdicts, asked, unknown, refused, pending, oldest)

    def _pages(self) -> Iterator[Metric]:
        started = CounterMetricFamily(
            "countersign_identity_checks_started",
            "Checks that this service started, by provider, and `started` or the error code.",
            labels=("provider", "outcome"),
        )
        for labels, number in dict(self._checkout.buyers.watch.started).items():
            started.add_metric(labels, number)
        passes = CounterMetricFamily(
            "countersign_remembered_passes",
            "Buyers who passed without a new identity check, by what they were remembered by.",
            labels=("kind",),
        )
        for kind, number in dict(self._checkout.remembered.passes).items():
            passes.add_metric((kind,), number)
        streams = GaugeMetricFamily(
            "countersign_event_streams",
            "Pages that wait for news now.",
            self._checkout.updates.open,
        )
        yield from (started, passes, streams)


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
