"""Size of a buyer's pages, and when a slow phone shows the first field for initials.

``python -m tests.browser.first_field [SOURCE]`` measures the service of this checkout, or of the
one in SOURCE, in a real Chromium: what each page weighs; and with 400 ms of delay, 400 kbit/s and a
quarter of the processor, the time from the beginning of the navigation until the first field is
there, next to the same text and fields as bare HTML from the same machine, in turns.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, Final

import httpx2
from playwright.sync_api import Browser, Page

from tests.browser.windows import PHONE
from tests.support.browsers import running_browser
from tests.support.service import free_port

ROUNDS: Final = 9
SLOW_3G: Final = {
    "offline": False,
    "latency": 400,
    "downloadThroughput": 400_000 / 8,
    "uploadThroughput": 400_000 / 8,
}
_SLOWER: Final = 4
_PHONE: Final[dict[str, Any]] = {**PHONE}
_FIRST: Final = """
(() => {
  const look = () => {
    if (document.querySelector("input[name=initials_1]")) window.firstField = performance.now();
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})()
"""
_FIELD: Final = "window.firstField !== undefined"


def main(source: Path) -> None:
    """Measure, and print."""
    with (
        TemporaryDirectory() as folder,
        _service(source, Path(folder)) as client,
        running_browser() as browser,
    ):
        for state, weight, sent in _weights(browser, client):
            sys.stdout.write(f"{state:<24}{weight:>7,} bytes, {sent:>6,} on the wire\n")
        _times(browser, client)


@contextmanager
def _service(source: Path, folder: Path) -> Iterator[httpx2.Client]:
    """Run a service of this source, and give a client with a test key."""
    port = free_port()
    paths = [str(source / "src"), str(source / "packages" / "evidence" / "src")]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COUNTERSIGN_")} | {
        "PYTHONPATH": os.pathsep.join(paths),
        "COUNTERSIGN_DATA_DIR": str(folder / "data"),
        "COUNTERSIGN_PORT": str(port),
        "COUNTERSIGN_PUBLIC_URL": f"http://localhost:{port}",
    }

    def run(*words: str) -> str:
        made = subprocess.run(
            [sys.executable, "-m", "countersign", *words],
            env=environment,
            cwd=folder,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        return made.stdout.strip()

    run("init")
    account = run("accounts", "create", "Ridgeline Workshop")
    key = run("keys", "create", "--account", account, "--mode", "test")
    command = [sys.executable, "-m", "countersign", "serve"]
    server = subprocess.Popen(command, env=environment, cwd=folder, stderr=subprocess.DEVNULL)
    headers = {"Authorization": f"Bearer {key}"}
    try:
        with httpx2.Client(base_url=f"http://localhost:{port}", headers=headers) as client:
            while True:
                try:
                    if client.get("/readyz").status_code == 200:
                        break
                except httpx2.TransportError:
                    time.sleep(0.1)
            yield client
    finally:
        server.terminate()
        server.wait()


def _link(client: httpx2.Client, *collect: str) -> str:
    body = {
        "session_id": "cs_first_field",
        "return_url": "https://shop.example/return",
        "notice_id": "ab1263",
        "collect": collect,
        "shipping_zip": "94105",
    }
    made = client.post("/v1/checkout_sessions", json=body).raise_for_status().json()
    return str(made["url"])


def _weights(browser: Browser, client: httpx2.Client) -> Iterator[tuple[str, int, int]]:
    """What the page of each state weighs, and on the wire: one purchase, with one mistake."""
    context = browser.new_context(**_PHONE)
    page = context.new_page()
    pages: list[Any] = []
    page.on("response", lambda one: pages.append(one) if _is_page(one) else None)

    def weight() -> tuple[int, int]:
        page.wait_for_load_state()
        return len(pages[-1].body()), pages[-1].request.sizes()["responseBodySize"]

    def send() -> None:
        with page.expect_navigation():
            page.locator("main form button").first.click()

    page.goto(_link(client, "identity", "acknowledgment"))
    yield "identity", *weight()
    send()
    yield "notice", *weight()
    send()
    yield "notice with errors", *weight()
    for field in page.locator("input[name^=initials_]").all():
        field.fill("AB")
    send()
    yield "review", *weight()
    for box in page.get_by_role("checkbox").all():
        box.check()
    with page.expect_navigation():
        page.locator("main form:has(input[type=checkbox]) button").click()
    yield "done", *weight()
    context.close()


def _is_page(response: Any) -> bool:  # noqa: ANN401 - Playwright's
    kind = response.headers.get("content-type", "")
    return kind.startswith("text/html") and not 300 <= response.status < 400


def _times(browser: Browser, client: httpx2.Client) -> None:
    notice = client.get("/v1/notices/ab1263").raise_for_status().json()
    with _bare(notice) as bare:
        times: dict[str, list[float]] = {"bare HTML": [], "page": [], "link, then page": []}
        for _ in range(ROUNDS):
            link = _link(client, "acknowledgment")
            times["link, then page"].append(_first_field(browser, link))
            times["page"].append(_first_field(browser, link, opened=True))
            times["bare HTML"].append(_first_field(browser, bare))
    least = median(times["bare HTML"])
    for name, found in times.items():
        middle = median(found)
        times_bare = f"{middle / least:.2f} times the bare HTML"
        sys.stdout.write(f"{name:<24}{middle:>7,.0f} ms, {times_bare}\n")


def _first_field(browser: Browser, url: str, *, opened: bool = False) -> float:
    """When the first field was there, in ms; `opened`: of a browser that has the link's cookie."""
    context = browser.new_context(**_PHONE)
    page = context.new_page()
    if opened:
        page.goto(url)
        url = page.url
        page.goto("about:blank")
    page.add_init_script(_FIRST)
    _slow_down(page)
    page.goto(url)
    page.wait_for_function(_FIELD)
    found = float(page.evaluate("window.firstField"))
    context.close()
    return found


def _slow_down(page: Page) -> None:
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.emulateNetworkConditions", SLOW_3G)
    session.send("Emulation.setCPUThrottlingRate", {"rate": _SLOWER})


@contextmanager
def _bare(notice: dict[str, Any]) -> Iterator[str]:
    """Serve the text of a notice with a field for each line, as bare HTML; gives its address."""
    lines = "".join(
        f"<li><label>{escape(text)}<input name=initials_{number}></label></li>"
        for number, text in enumerate(notice["bullets"], 1)
    )
    head = "<!doctype html><meta name=viewport content='width=device-width'>"
    start = f"<title>{escape(notice['title'])}</title><h1>{escape(notice['title'])}</h1>"
    text = (
        f"<p>{escape(notice['heading'])}</p><form><ol>{lines}</ol><button>Continue</button></form>"
    )
    body = (head + start + text).encode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://localhost:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve())
