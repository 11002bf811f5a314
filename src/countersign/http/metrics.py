"""Metrics: plain counters on the hot path, told to Prometheus when it asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from threading import Thread
from typing import Any

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from countersign.services.deliver_webhooks import DeliverWebhooks
from countersign.services.seal_log import SealLog


class Metrics(Collector):
    """Counts answers by operation and status, and reads the batchers' counters."""

    def __init__(
        self,
        batches: Callable[[], Mapping[str, tuple[int, int, int]]],
        seal_log: SealLog,
        webhooks: DeliverWebhooks,
    ) -> None:
        self._answers: Counter[tuple[str, int]] = Counter()
        self._batches = batches
        self._seal_log = seal_log
        self._webhooks = webhooks
        self.loops_ended: Counter[str] = Counter()
        """How often each loop of the server has ended and was begun again."""

    def count(self, operation: str, status: int) -> None:
        """Count one answer."""
        self._answers[operation, status] += 1

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """The current values (called from the thread that serves /metrics)."""
        answers = CounterMetricFamily(
            "countersign_http_answers",
            "Answers by operation and status.",
            labels=("operation", "status"),
        )
        for (operation, status), number in dict(self._answers).items():
            answers.add_metric((operation or "none", str(status)), number)
        yield answers
        lane = ("lane",)
        batches = CounterMetricFamily("countersign_database_batches", "Transactions.", labels=lane)
        calls = CounterMetricFamily("countersign_database_calls", "Calls in them.", labels=lane)
        waiting = GaugeMetricFamily(
            "countersign_database_waiting", "Calls waiting for a batch.", labels=lane
        )
        for name, (run, done, pending) in self._batches().items():
            batches.add_metric((name,), run)
            calls.add_metric((name,), done)
            waiting.add_metric((name,), pending)
        yield from (batches, calls, waiting)
        ended = CounterMetricFamily(
            "countersign_loops_ended", "Loops that ended and were restarted.", labels=("loop",)
        )
        for name, number in dict(self.loops_ended).items():
            ended.add_metric((name,), number)
        yield ended
        yield from self._logs()
        yield from self._deliveries()

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

    def _deliveries(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        attempts = CounterMetricFamily(
            "countersign_webhook_attempts", "Messages sent, by outcome.", labels=("outcome",)
        )
        for outcome, number in dict(self._webhooks.attempts).items():
            attempts.add_metric((outcome.value,), number)
        waiting = GaugeMetricFamily(
            "countersign_webhook_endpoints_waiting", "Endpoints with something to send."
        )
        waiting.add_metric((), self._webhooks.waiting)
        yield from (attempts, waiting)


def serve_metrics(metrics: Metrics, host: str, port: int) -> tuple[Any, Thread]:
    """Serve /metrics on a port of its own; gives the server and its thread.

    Raises:
        OSError: the port is taken.
    """
    registry = CollectorRegistry()
    registry.register(metrics)
    server, thread = start_http_server(port, host, registry)
    return server, thread
