"""A shop's page with the component in it, as strict as a page can be."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from tests.docs.generated import integrity

SCRIPT: Final = """\
window.events = [];
for (const name of ["ready", "acknowledged", "declined", "error"]) {
  addEventListener(`countersign-${name}`, (e) => window.events.push([name, e.detail]));
}
"""


class Shop:
    """Its one page is the checkout; the fields of its form are shown as text."""

    def __init__(self, port: int) -> None:
        self.origin = f"http://127.0.0.1:{port}"
        self.service = ""
        self.client_token = ""

    def page(self) -> str:
        return f"""\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Checkout</title>
<script src="/shop.js"></script>
<script type="module" src="{self.service}/component/v1/countersign-notice.js"
  integrity="{integrity()}" crossorigin></script>
<main>
<h1>Checkout</h1>
<form id="order" action="/order">
<countersign-notice name="ack_id" required client-token="{self.client_token}">
</countersign-notice>
<p><button id="pay">Pay</button></p>
</form>
</main>
</html>
"""

    def policy(self) -> str:
        return (
            f"default-src 'none'; script-src 'self' {self.service}; style-src 'none'; "
            f"base-uri 'none'; connect-src {self.service}; form-action 'self'; "
            "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
        )

    def answer(self, path: str) -> tuple[str, bytes]:
        """Media type and body of the file at this path."""
        if path == "/shop.js":
            return "text/javascript", SCRIPT.encode()
        if path.startswith("/order?"):
            return "text/plain", path.encode()
        return "text/html", self.page().encode() if path == "/" else b""


@contextmanager
def running_shop() -> Iterator[Shop]:
    """Serve a shop on the loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            media_type, body = shop.answer(self.path)
            self.send_response(200)
            self.send_header("Content-Type", f"{media_type}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Security-Policy", shop.policy())
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Requests are not logged."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        shop = Shop(server.server_address[1])
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield shop
        server.shutdown()
