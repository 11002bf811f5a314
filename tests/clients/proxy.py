"""A proxy in front of a real server, with the faults of clients/behaviour.json.

The first two segments of a path name the runner and the case: `/sync/walk/v1/notices`. So each
runner meets the faults of a case from the first one on, and the proxy records its requests.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

TABLE: Final = Path(__file__).parents[2] / "clients" / "behaviour.json"
CASES: Final[dict[str, dict[str, Any]]] = {
    case["name"]: case for case in json.loads(TABLE.read_bytes())["cases"]
}
_HOP_BY_HOP: Final = {"host", "connection", "transfer-encoding", "content-length", "keep-alive"}


class Proxy:
    """A running proxy: what came, by runner and case."""

    def __init__(self, upstream: str) -> None:
        self.upstream: Final = str(urlsplit(upstream).netloc)
        self.url = ""
        self.attempts: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        self.messages: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)

    def base_url(self, runner: str, case: str) -> str:
        return f"{self.url}/{runner}/{case}"


@contextmanager
def running_proxy(upstream: str) -> Iterator[Proxy]:
    """Run a proxy in front of a server; it ends with the block."""
    proxy = Proxy(upstream)

    class Handler(_Handler):
        state = proxy

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    proxy.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    state: Proxy
    protocol_version = "HTTP/1.1"
    # Small responses in one packet: else each waits for an acknowledgment of TCP.
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _handle(self) -> None:
        _, runner, name, *rest = self.path.split("/")
        place, path = (runner, name), "/" + "/".join(rest)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if path == "/-received" and self.command == "POST":
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.state.messages[place].append({"headers": headers, "body": body.decode()})
            self._send(204, {}, b"")
        elif path == "/-received":
            self._send(200, {}, json.dumps(self.state.messages[place]).encode())
        elif path == "/-attempts":
            self._send(200, {}, json.dumps(self.state.attempts[place]).encode())
        else:
            self._pass_on(place, path, body)

    do_GET = do_POST = do_PATCH = do_DELETE = _handle  # noqa: N815 - the names of http.server

    def _pass_on(self, place: tuple[str, str], path: str, body: bytes) -> None:
        seen = self.state.attempts[place]
        faults = CASES[place[1]].get("faults", [])
        fault = faults[len(seen)] if len(seen) < len(faults) else None
        attempt: dict[str, Any] = {
            "target": f"{self.command} {path}",
            "key": self.headers.get("Idempotency-Key"),
            "body": hashlib.sha256(body).hexdigest(),
            "status": None,
        }
        seen.append(attempt)
        fault = fault or {}
        if "status" in fault:
            attempt["status"] = fault["status"]
            self._refuse(fault, self.state.base_url(*place))
            return
        where = fault.get("cut") or fault.get("silent")
        if where != "before":
            attempt["status"], headers, content = self._upstream(path, body)
            if where is None:
                self._send(attempt["status"], headers, content)
            elif where == "midway":
                self._send(200, headers, content, shown=len(content) // 2)
        if "silent" in fault:
            # Until the client has given up.
            with suppress(OSError):
                self.rfile.read(1)
        if where is not None:
            self.close_connection = True

    def _refuse(self, fault: Mapping[str, Any], here: str) -> None:
        headers = {
            name: value.replace("$elsewhere", f"{here}/elsewhere")
            for name, value in fault.get("headers", {}).items()
        }
        body = fault.get("body")
        if body is None:
            body = json.dumps({"error": {"code": fault["code"], "message": "By the proxy."}})
        self._send(fault["status"], headers, body.encode())

    def _upstream(self, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        sent = {n: v for n, v in self.headers.items() if n.lower() not in _HOP_BY_HOP}
        connection = http.client.HTTPConnection(self.state.upstream, timeout=30)
        try:
            connection.request(self.command, path, body or None, sent)
            answer = connection.getresponse()
            headers = {n: v for n, v in answer.getheaders() if n.lower() not in _HOP_BY_HOP}
            return answer.status, headers, answer.read()
        finally:
            connection.close()

    def _send(
        self, status: int, headers: Mapping[str, str], body: bytes, shown: int | None = None
    ) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status not in {204, 304}:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:shown])
        self.wfile.flush()
