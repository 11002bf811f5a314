"""`csign` gives a vendor events, checkout sessions and evidence at a terminal."""

from __future__ import annotations

import io
import json
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import TypeAlias

import httpx2
import pytest
from click.testing import CliRunner, Result

from countersign_client import Countersign, cli, command, errors
from countersign_client.cli import csign
from countersign_client.listening import follow
from countersign_client.testing import Answers, Refusal
from tests.clients.conftest import Place

Run: TypeAlias = Callable[..., Result]


@pytest.fixture
def vendor(place: Place) -> Iterator[Countersign]:
    """Give a client of a new account; its key and address are what `run` uses."""
    key, _ = place.vendor()
    with Countersign(api_key=key, base_url=place.server.url) as client:
        yield client


@pytest.fixture
def run(vendor: Countersign, place: Place) -> Run:
    """Give what runs `csign` with the vendor's key."""
    key = vendor.notices._sender._exchange._api_key

    def run(*arguments: str) -> Result:
        variables = {"COUNTERSIGN_API_KEY": key, "COUNTERSIGN_BASE_URL": place.server.url}
        return CliRunner().invoke(csign, arguments, env=variables, catch_exceptions=False)

    return run


def acknowledge(vendor: Countersign) -> str:
    return vendor.notices.acknowledge("ab1263", initials_per_line=["JD"] * 4).ack_id


def test_a_link_is_created_and_read(run: Run) -> None:
    """The link alone is on standard output; the session is found, shown and cancelled."""
    made = run(
        "checkout-sessions",
        "create",
        "--return-url",
        "https://shop.example/",
        "--identity",
        "--zip",
        "94105",
        "--locale",
        "es",
    )
    assert made.stdout.count("\n") == 1
    assert "/c/cst_test_" in made.stdout
    (listed,) = run("checkout-sessions", "list", "--json").stdout.splitlines()
    session = json.loads(listed)
    assert session["collect"] == ["identity", "acknowledgment"]
    assert session["session_id"].startswith("cs_")
    name = session["checkout_session_id"]
    assert run("checkout-sessions", "show", name).stdout == f"{name}  open\n"
    assert (
        json.loads(run("checkout-sessions", "cancel", name, "--json").stdout)["status"]
        == "cancelled"
    )


def test_evidence_is_saved(run: Run, vendor: Countersign, tmp_path: Path) -> None:
    """Under the requested name, or on standard output."""
    ack_id = acknowledge(vendor)
    for what, begins in (
        ("dossier", b"PK"),
        ("proof", b"c2sp.org/tlog-proof@v1"),
        ("certificate", b"%PDF"),
    ):
        path = tmp_path / what
        saved = json.loads(run(what, ack_id, "--output", str(path), "--json").stdout)
        assert path.read_bytes().startswith(begins)
        assert saved == {"file": str(path), "bytes": path.stat().st_size}
    failed = run("proof", ack_id, "--output", str(tmp_path / "none" / "x"), "--json")
    assert (failed.exit_code, failed.stdout) == (1, "")
    assert json.loads(failed.stderr)["error"]["code"] == "file_not_written"
    swapped = run("certificate", "clr_01km9x4zq2e6t9m0r5c7v3w8xa", "--json")
    assert json.loads(swapped.stderr)["error"]["code"] == "invalid_argument"
    dossier = run("dossier", ack_id, "-o", "-").stdout_bytes
    assert zipfile.ZipFile(io.BytesIO(dossier)).testzip() is None


def test_events_are_printed(run: Run, vendor: Countersign) -> None:
    """One on each line, for people or for programs."""
    ack_id = acknowledge(vendor)
    shown = run("events", "list", "--type", "acknowledgment.created").stdout
    assert shown.endswith(f"  ack_id={ack_id}\n")
    (printed,) = run(
        "events", "list", "--type", "acknowledgment.created", "--json"
    ).stdout.splitlines()
    event = json.loads(printed)
    assert event["data"] == {"ack_id": ack_id}
    assert json.loads(run("events", "show", event["id"], "--json").stdout) == event


def test_a_refusal_ends_with_status_1(run: Run) -> None:
    """A sentence for people, the code for programs, nothing on standard output."""
    done = run("events", "show", "evt_unknown")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: not_found: ")
    printed = json.loads(run("events", "show", "evt_unknown", "--json").stderr)
    assert printed["error"]["code"] == "not_found"
    assert run("events", "show", "..").exit_code == 1


@contextmanager
def receiver() -> Iterator[tuple[str, list[tuple[dict[str, str], bytes]]]]:
    """Run a receiver of webhooks; gives its address and what came."""
    came: list[tuple[dict[str, str], bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            came.append((headers, self.rfile.read(int(headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = Thread(target=httpd.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{httpd.server_port}/", came
        finally:
            httpd.shutdown()
            thread.join()


def test_events_are_forwarded_as_webhooks(
    run: Run, vendor: Countersign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is signed, posted once, and verified by the client like a delivery of the server."""
    ack_id = acknowledge(vendor)

    def stop(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "follow", partial(follow, sleep=stop))
    with receiver() as (url, came):
        done = run(
            "listen",
            "--forward-to",
            url,
            "--since",
            "2026-01-01T00:00:00Z",
            "--type",
            "acknowledgment.created",
        )
    assert "acknowledgment.created" in done.stdout
    assert done.stdout.endswith("→  204\n")
    secret = done.stderr.split("Verify with: ")[1].split()[0]
    ((headers, body),) = came
    event = vendor.webhooks.unwrap(body, headers, secret=secret)
    assert event.data == {"ack_id": ack_id}
    assert json.loads(body)["timestamp"] == json.loads(body)["created_at"]


def test_listen_waits_as_long_as_the_server_says() -> None:
    """At most a minute; anything else would add to its load."""
    limits = [
        Refusal(status=429, code="rate_limited", headers={"Retry-After": s}) for s in ("50", "9000")
    ]
    answers = Answers({"GET /v1/events": [*limits, Refusal(status=403, code="forbidden")]})
    http, waits = httpx2.Client(transport=answers.transport), list[float]()
    client = Countersign(api_key="k", base_url="https://x.example", http_client=http)
    with pytest.raises(errors.Forbidden):
        list(follow(client, say=str, sleep=waits.append))
    assert waits == [50, 60]


def test_without_its_extra_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The client itself needs no click."""
    monkeypatch.delitem(sys.modules, "countersign_client.cli")
    monkeypatch.setitem(sys.modules, "click", None)
    with pytest.raises(SystemExit, match=r"countersign-client\[cli\]"):
        command.main()
