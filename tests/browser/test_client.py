"""The TypeScript client in a shop's page, with the token of one checkout session."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest

from tests.browser.windows import Windows
from tests.support import node
from tests.support.service import Server

pytestmark = [
    pytest.mark.browser,
    pytest.mark.npm,
    pytest.mark.parametrize("deployment", ["sqlite"], indirect=True),
]

WALK = """async ([baseUrl, apiKey]) => {
  const { Countersign, CountersignError } = await import("/index.js");
  try {
    new Countersign({ apiKey: "csign_sk_test_x", baseUrl });
    return "an API key was taken";
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
  }
  const session = new Countersign({ apiKey, baseUrl }).currentCheckoutSession;
  const { notice } = await session.retrieve();
  await session.claimEvents({ events: [{ line: 1, event: "shown" }] });
  const { status, ack_id } = await session.acknowledge({
    initials_per_line: notice.bullets.map(() => "JD"),
    notice_version: notice.version,
    notice_digest: notice.digest,
    agreement: true,
    consent: true,
  });
  const late = await session.decline().catch((error) => error);
  const refused = late instanceof CountersignError && [late.code, late.request_id !== null];
  return [status, ack_id.slice(0, 4), refused];
}"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def page_of_a_shop(tmp_path: Path) -> Iterator[str]:
    """Serve the built client and an empty page; gives the origin."""
    built = node.build_client(tmp_path)
    (built / "index.html").write_text('<!doctype html><html lang="en"><title>Shop</title></html>')
    (built / "favicon.ico").write_bytes(b"")
    handler = partial(Quiet, directory=str(built))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()
        thread.join()


def test_a_buyers_browser_acknowledges_by_the_client(
    windows: Windows, server: Server, client: httpx2.Client, page_of_a_shop: str
) -> None:
    """From another origin, with the client token; an API key is refused there."""
    wanted = {"session_id": "cs", "notice_id": "ab1263", "origin": page_of_a_shop}
    wanted["return_url"] = f"{page_of_a_shop}/return"
    token = client.post("/v1/checkout_sessions", json=wanted).json()["client_token"]
    page = windows.open()
    windows.expect_trouble("409")
    page.goto(page_of_a_shop)
    found = page.evaluate(WALK, [server.url, token])
    assert found == ["completed", "ack_", ["checkout_session_closed", True]]
