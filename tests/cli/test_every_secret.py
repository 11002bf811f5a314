"""Each secret of a deployment is changed while vendors send acknowledgments."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

import httpx2
import pytest

from tests.cli.conftest import Bench
from tests.cli.serving import wait_until
from tests.support.service import Server, running_server

pytestmark = [pytest.mark.both_engines, pytest.mark.long]

ACKNOWLEDGE = "/v1/notices/ab1263/acknowledge"
GUIDE = Path(__file__).parents[2] / "docs" / "keys.md"


class Load:
    """A vendor that sends one acknowledgment after the other with its newest key."""

    def __init__(self, server: Server, key: str) -> None:
        self.key = key
        self.statuses: list[int] = []
        self._server = server
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._send)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _send(self) -> None:
        with self._server.client() as client:
            while not self._ended.is_set():
                headers = {"Authorization": f"Bearer {self.key}"}
                initials = {"initials_per_line": ["JD"] * 4}
                sent = client.post(ACKNOWLEDGE, json=initials, headers=headers)
                self.statuses.append(sent.status_code)

    def goes_on(self, after: str) -> None:
        """Wait for more of them; each was accepted."""
        number = len(self.statuses) + 5
        wait_until(lambda: len(self.statuses) >= number, after)
        assert set(self.statuses) == {httpx2.codes.OK}, after


def test_every_secret_is_changed_without_downtime(either: Bench, tmp_path: Path) -> None:
    """Each command of the guide's list, one after the other, while one server goes on."""
    either.run("init")
    account = either.account("vendor")
    key = either.widest_key(account)
    live = either.key(account, "live")
    credentials = tmp_path / "credentials.json"
    with running_server(either) as server, Load(server, key) as load, server.client(key) as client:
        new = {"url": "https://example.com/hook", "event_types": ["buyer.revoked"]}
        endpoint = client.post("/v1/webhook_endpoints", json=new).json()["endpoint_id"]
        load.goes_on("before")

        def change_credentials() -> None:
            for secret in ("rk_live_before_key", "rk_live_after_key"):
                given = {"api_key": secret}
                credentials.write_text(json.dumps(given))
                credentials.chmod(0o600)
                either.run(
                    *("accounts", "verification", "set", account, "--provider", "stripe"),
                    *("--credentials-file", str(credentials)),
                )

        def change_key() -> None:
            (old,) = (
                one["key_id"]
                for one in either.read("keys", "list", "--account", account)
                if not one["livemode"]
            )
            load.key = either.run("keys", "rotate", old, "--overlap", "1h").stdout.strip()
            load.goes_on("the new key")
            either.run("keys", "revoke", old, "--yes")

        def change_encryption() -> None:
            file = either.data_dir / "key-encryption.key"
            before = file.read_text()
            either.run("vault", "rotate", "--yes")
            assert before.strip() not in file.read_text()

        def change_webhook_secret() -> None:
            with server.client(load.key) as newest:
                path = f"/v1/webhook_endpoints/{endpoint}/rotate_secret"
                newest.post(path, json={}).raise_for_status()

        changes: dict[str, Callable[[], object]] = {
            "keys rotate": change_key,
            "vault rotate": change_encryption,
            "log rotate-key": lambda: either.run("log", "rotate-key", "--yes"),
            "clearances rotate-key": lambda: [
                either.run("clearances", "rotate-key", "--mode", mode, "--at-once", "--yes")
                for mode in ("test", "live")
            ],
            "webhooks rotate-secret": change_webhook_secret,
            "accounts verification set": change_credentials,
        }
        for name, change in changes.items():
            assert f"`countersign {name}`" in GUIDE.read_text(), name
            change()
            load.goes_on(name)
        with server.client(live) as other:
            assert other.get("/v1/acknowledgments").status_code == httpx2.codes.OK
    assert either.read("log", "check")["findings"] == []
    with running_server(either) as server, Load(server, load.key) as load:
        load.goes_on("a new server has all of them")
