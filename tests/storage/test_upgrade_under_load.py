"""A database of the last build is upgraded while others write to it and vendors wait."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Self

import httpx2
import pytest
from sqlalchemy import URL, text
from sqlalchemy.exc import OperationalError

from countersign.base.db import schema
from countersign.base.db.engine import Purpose
from countersign.base.files import only_server
from tests.cli.serving import wait_until
from tests.storage.test_filled import ACCOUNT
from tests.storage.test_filled import filled as filled  # noqa: PLC0414 - a fixture
from tests.support import service
from tests.support.databases import on_sqlite
from tests.support.service import Deployment, free_port, running_server

pytestmark = [pytest.mark.both_engines, pytest.mark.long]

KEPT = (
    "INSERT INTO idempotency_keys"
    " (slot, account_id, mode, fingerprint, response, created_at, expires_at)"
    " VALUES (:slot, 'acct_x', 'test', :slot, :slot, :at, 9999999999999)"
)


class OldServer:
    """Keeps responses as a server of the last build does, one transaction after the other."""

    def __init__(self, url: URL) -> None:
        self.committed: list[bytes] = []
        self._url = url
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _write(self) -> None:
        while not self._ended.is_set():
            slot = os.urandom(32)
            try:
                with schema.connected(self._url, Purpose.WRITE) as connection, connection.begin():
                    values = {"slot": slot, "at": time.time_ns() // 1_000_000}
                    connection.execute(text(KEPT), values)
            except OperationalError:
                continue  # the database was locked for too long
            self.committed.append(slot)


class Vendor:
    """Retries each acknowledgment with its key until it has a response."""

    def __init__(self, port: int, key: str) -> None:
        self.taken: dict[str, str] = {}
        self.refused = 0
        self._url = f"http://127.0.0.1:{port}/v1/notices/ab1263/acknowledge"
        self._key = key
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._send)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Begin no more orders."""
        self._ended.set()
        self._thread.join()

    def _send(self) -> None:
        with httpx2.Client(verify=False) as client:
            while not self._ended.is_set():
                self.send(client, str(len(self.taken)))

    def send(self, client: httpx2.Client, name: str) -> str:
        """Send one; gives the identifier in the response, or nothing."""
        headers = {"Authorization": f"Bearer {self._key}", "Idempotency-Key": f"order-{name}"}
        try:
            sent = client.post(self._url, json={"initials_per_line": ["JD"] * 4}, headers=headers)
        except httpx2.TransportError:
            self.refused += 1
            return ""
        assert sent.status_code == httpx2.codes.OK, sent.text
        return self.taken.setdefault(name, str(sent.json()["ack_id"]))


def test_an_upgrade_under_load_loses_nothing(
    filled: Deployment, empty_url: URL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All commits before, during and after are there, and each order once."""
    port = free_port()
    monkeypatch.setattr(service, "free_port", lambda: port)
    with OldServer(empty_url) as old:
        wait_until(lambda: len(old.committed) >= 20, "the old server writes")
        filled.run("init")
        before = len(old.committed)
        wait_until(lambda: len(old.committed) > before, "what it writes still fits")
    key = filled.widest_key(ACCOUNT)
    with Vendor(port, key) as vendor:
        wait_until(lambda: vendor.refused > 3, "the vendor tries")
        with running_server(filled) as server:
            wait_until(lambda: len(vendor.taken) >= 20, "the vendor's orders are taken")
            vendor.end()
            with server.client(key) as client:
                found = client.get("/v1/acknowledgments", params={"limit": 100}).json()["data"]
                ids = [item["ack_id"] for item in found]
                assert {*vendor.taken.values()} <= {*ids}
                assert len(set(ids)) == len(ids)
                again = {name: vendor.send(client, name) for name in [*vendor.taken]}
                assert again == vendor.taken
    with schema.connected(empty_url, Purpose.READ) as connection:
        slots = connection.execute(text("SELECT slot FROM idempotency_keys")).scalars()
        assert {*old.committed} <= {bytes(slot) for slot in slots}
    assert filled.read("log", "check")["findings"] == []


@on_sqlite
def test_no_upgrade_under_a_running_server(filled: Deployment, empty_url: URL) -> None:
    """On the embedded database `init` detects the server, and says what to do."""
    with only_server(Path(empty_url.database or "").parent):
        done = filled.run("init", check=False)
    assert (done.returncode, "data_directory_locked" in done.stderr) == (1, True)
    filled.run("init")
