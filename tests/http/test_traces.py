"""Traces of a real server at a real OTLP receiver, without secrets or personal data."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from countersign_simulators.registry import SIMULATORS
from tests.checkout.buyer import wanted
from tests.support.providers import playing
from tests.support.service import Deployment, running_server

pytestmark = [pytest.mark.long, pytest.mark.one_engine]
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Receiver:
    """Stores received traces."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                zipped = self.headers.get("content-encoding") == "gzip"
                receiver.sent.append(gzip.decompress(body) if zipped else body)
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def spans(self) -> list[Any]:
        requests = [ExportTraceServiceRequest.FromString(body) for body in self.sent]
        return [
            span
            for request in requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Run a receiver of traces."""
    made = Receiver()
    threading.Thread(target=made.server.serve_forever, daemon=True).start()
    yield made
    made.server.shutdown()
    made.server.server_close()


def values(span: Any) -> dict[str, Any]:  # noqa: ANN401 - made by protobuf
    found = {}
    for item in span.attributes:
        found[item.key] = getattr(item.value, item.value.WhichOneof("value"))
    return found


def test_a_trace_goes_on_through_the_service_and_names_nothing_that_was_sent(
    receiver: Receiver, tmp_path: Path
) -> None:
    made = Deployment(data_dir=tmp_path / "data", settings={"TRACES_URL": receiver.url})
    made.run("init")
    account = made.account("vendor")
    key, live = made.key(account), made.key(account, "live")
    with playing("stripe") as provider:
        credentials = tmp_path / "stripe.json"
        credentials.write_text(json.dumps(dict(provider.simulator.credentials)))
        credentials.chmod(0o600)
        made.run(
            *("accounts", "verification", "set", account, "--provider", "stripe"),
            *("--credentials-file", str(credentials), "--dangerous-base-url", provider.url),
        )
        person = provider.part("verified").session_id
        with running_server(made) as server:
            with server.client(key, traceparent=f"00-{TRACE}-{PARENT}-01") as client:
                assert client.get("/v1/notices").status_code == 200
                session = client.post("/v1/checkout_sessions", json=wanted()).json()
                assert client.get("/v1/nowhere").status_code == 404
            with server.client() as browser:
                assert browser.get(f"/c/{session['client_token']}").status_code == 200
            with server.client(live) as client:
                verified = client.post(
                    "/v1/buyers/verify",
                    json={"provider_identity_session_id": person, "shipping_zip": "94111"},
                )
                assert verified.status_code == 200, verified.text
    spans = receiver.spans()
    by_name = {span.name: span for span in spans}
    assert {"GET /v1/notices", "POST /v1/checkout_sessions", "GET"} <= set(by_name)
    notices = by_name["GET /v1/notices"]
    assert (notices.trace_id.hex(), notices.parent_span_id.hex()) == (TRACE, PARENT)
    assert values(notices)["http.response.status_code"] == 200
    assert values(by_name["POST /v1/checkout_sessions"])["countersign.database_seconds"] > 0
    verify = by_name["POST /v1/buyers/verify"]
    asked = by_name[f"GET {provider.url.removeprefix('http://')}"]
    assert (asked.trace_id, asked.parent_span_id) == (verify.trace_id, verify.span_id)
    everything = b"".join(receiver.sent)
    for secret in (key, live, session["client_token"], person, verified.json()["cbid"], "94111"):
        assert secret.encode() not in everything


def test_a_trace_contains_none_of_a_providers_nonsense(receiver: Receiver, tmp_path: Path) -> None:
    """The library's error repeats the received bytes; a span has only their kind."""
    made = Deployment(data_dir=tmp_path / "data", settings={"TRACES_URL": receiver.url})
    made.run("init")
    account = made.account("vendor")
    live = made.key(account, "live")
    with socket.create_server(("127.0.0.1", 0)) as odd:
        threading.Thread(target=answer_oddly, args=(odd,), daemon=True).start()
        credentials = tmp_path / "stripe.json"
        credentials.write_text(json.dumps(dict(SIMULATORS["stripe"](time.time).credentials)))
        credentials.chmod(0o600)
        made.run(
            *("accounts", "verification", "set", account, "--provider", "stripe"),
            *("--credentials-file", str(credentials)),
            *("--dangerous-base-url", f"http://127.0.0.1:{odd.getsockname()[1]}"),
        )
        with running_server(made) as server, server.client(live) as client:
            body = {"provider_identity_session_id": "vs_1abcdefghijk", "shipping_zip": "94111"}
            assert client.post("/v1/buyers/verify", json=body).status_code == 503
    (verify,) = [span for span in receiver.spans() if span.name == "POST /v1/buyers/verify"]
    assert verify.status.code == verify.status.STATUS_CODE_ERROR
    everything = b"".join(receiver.sent)
    assert b"ProtocolError" in everything
    assert b"Jane" not in everything
    assert b"vs_1abc" not in everything


def answer_oddly(listening: socket.socket) -> None:
    """Answer each request with an invalid header."""
    with suppress(OSError):
        while True:
            with listening.accept()[0] as connection:
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nX-Person Jane Doe vs_1abcdefghijk\r\n\r\n")


def test_an_unreachable_receiver_changes_no_answer(tmp_path: Path) -> None:
    made = Deployment(data_dir=tmp_path / "data", settings={"TRACES_URL": "http://127.0.0.1:9"})
    made.run("init")
    with running_server(made) as server, server.client(made.key(made.account("vendor"))) as client:
        assert client.get("/v1/notices").status_code == 200
