"""examples/quickstart.py walks the whole flow, and says clearly when something is off."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.docs.conftest import MadeServer
from tests.docs.markdown import ROOT
from tests.support.service import PREFIX, Server, free_port


def _walk(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    return subprocess.run(
        # -I and -S: only the standard library can be imported.
        [sys.executable, "-I", "-S", str(ROOT / "examples" / "quickstart.py"), *arguments],
        env=inherited | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_walk_succeeds_on_both_engines(server: Server, account: str) -> None:
    """It needs the standard library alone, and takes address and key from variables."""
    key = server.deployment.key(account)
    done = _walk(COUNTERSIGN_BASE_URL=server.url, COUNTERSIGN_API_KEY=key)
    assert (done.returncode, done.stderr) == (0, "")
    assert "All responses were as expected." in done.stdout


def test_every_exchange_is_printed(made_server: MadeServer) -> None:
    """Request line, body, status and answer of each; the key is not printed."""
    done = _walk("--base-url", made_server.url, "--key", made_server.key)
    for shown in (
        "GET /v1/notices/ab1263",
        "POST /v1/buyers/verify",
        '"shipping_zip": "94105"',
        "POST /v1/notices/ab1263/acknowledge",
        "→ 200 (Idempotent-Replayed: true)",
        "→ 422",
        '"code": "initials_count_mismatch"',
        "GET /v1/acknowledgments/ack_",
    ):
        assert shown in done.stdout, shown
    assert made_server.key not in done.stdout + done.stderr


def test_a_refused_key_is_named(made_server: MadeServer) -> None:
    """The message has the code of the refusal."""
    done = _walk("--base-url", made_server.url, "--key", made_server.key[:-1])
    assert done.returncode == 1
    assert "invalid_api_key" in done.stderr


def test_a_missing_server_is_named() -> None:
    """The message asks whether it is running."""
    done = _walk("--base-url", f"http://127.0.0.1:{free_port()}", "--key", "csign_sk_test_x")
    assert done.returncode == 1
    assert "Is the server running?" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_key_is_asked_for() -> None:
    """Nothing is sent without one."""
    done = _walk()
    assert (done.returncode, done.stdout) == (1, "")
    assert "COUNTERSIGN_API_KEY" in done.stderr


@pytest.fixture
def impostor(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run a server that answers everything with the same body; gives its address."""
    body: bytes = request.param

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the signature
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()
        thread.join()


@pytest.mark.parametrize(
    "impostor", [b"<html>", b'"text"', b"{}", b'{"bullets": []}'], indirect=True
)
def test_an_answer_of_another_form_is_reported_plainly(impostor: str) -> None:
    """Whatever answers at that address, the walk ends with a message and status 1."""
    done = _walk("--base-url", impostor, "--key", "csign_sk_test_x")
    assert done.returncode == 1
    assert "Not as expected" in done.stderr
    assert "Traceback" not in done.stderr
