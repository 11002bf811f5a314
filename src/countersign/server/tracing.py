"""OpenTelemetry traces, an extra: a span for each request, and one for each request to a provider.

A span names the operation, never its data: paths of hosted pages and queries hold secrets of the
buyer or the vendor. The names are those of the semantic conventions for HTTP.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from countersign import __version__
from countersign.base.deadline import DEADLINE
from countersign.base.errors import InvalidArgument, Refusal
from countersign.base.http.body import Incoming
from countersign.base.spans import BEGIN
from countersign.core.gate.route import Call, Reply
from countersign.server.app import App

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def open_traces(url: str) -> TracerProvider:
    """Sends spans in batches to the OTLP/HTTP receiver at this base URL, from a thread of its own.

    Raises InvalidArgument if the extra is not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415 - an extra
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError:
        raise InvalidArgument(
            "COUNTERSIGN_TRACES_URL is set, and the extra that traces is not installed: "
            "pip install 'countersign-service[traces]'"
        ) from None
    # OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME of the environment add to it, or change it.
    resource = Resource.create({"service.version": __version__})
    if str(resource.attributes["service.name"]).startswith("unknown_service"):
        resource = resource.merge(Resource({"service.name": "countersign"}))
    provider = TracerProvider(resource=resource)
    # Its failures are no lines of our log, and delay no end of the server.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL + 1)
    exporter = OTLPSpanExporter(endpoint=f"{url.rstrip('/')}/v1/traces", timeout=1)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


class TracedApp(App):
    """The application, with a span around each request."""

    def __init__(self, traces: TracerProvider, *args: Any) -> None:  # noqa: ANN401 - see `App`
        super().__init__(*args)
        from opentelemetry.trace import SpanKind, Status, StatusCode  # noqa: PLC0415 - an extra
        from opentelemetry.trace.propagation import tracecontext  # noqa: PLC0415

        self._propagator = tracecontext.TraceContextTextMapPropagator()
        tracer = traces.get_tracer("countersign", __version__)
        self._begin = partial(
            tracer.start_as_current_span, record_exception=False, set_status_on_exception=False
        )
        self._server, self._client = SpanKind.SERVER, SpanKind.CLIENT
        self._failed = Status(StatusCode.ERROR)

    async def handle(self, call: Call, incoming: Incoming) -> Reply:
        """The complete response to a request; its span ends with it."""
        sent = {
            name.decode(): call.headers[name].decode("latin-1")
            for name in (b"traceparent", b"tracestate")
            if name in call.headers
        }
        parent = self._propagator.extract(sent)
        # Any other is a word of the caller's own.
        method = call.method if call.method in _METHODS else "_OTHER"
        with self._begin(method, context=parent, kind=self._server) as span:
            BEGIN.set(self._outgoing)
            reply = await super().handle(call, incoming)
            route = ""
            with suppress(Refusal):
                route = self._router.match(call.method, call.path)[0].address.partition(" ")[2]
                span.update_name(f"{method} {route}")
            deadline = DEADLINE.get()
            waited = 0.0 if deadline is None else self._deadline_seconds - deadline.left
            span.set_attributes(
                {
                    "http.request.method": method,
                    "http.route": route,
                    "http.response.status_code": reply.status,
                    "countersign.request_id": dict(reply.headers)[b"x-request-id"].decode(),
                    "countersign.database_seconds": round(waited, 6),
                }
            )
            if reply.status >= 500:
                span.set_attribute("error.type", str(reply.status))
                span.set_status(self._failed)
            return reply

    @contextmanager
    def _outgoing(self, name: str) -> Iterator[None]:
        with self._begin(name, kind=self._client) as span:
            try:
                yield
            except Exception as error:
                # Its type alone: the text may contain personal data.
                span.set_attribute("error.type", type(error).__name__)
                span.set_status(self._failed)
                raise
