"""Drills: dependencies of the service: a key, providers and receivers. Acts never wait."""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from countersign_simulators.base import Session
from tests.cli.serving import wait_until
from tests.drills.site import Site, site
from tests.support.moved_clock import VARIABLE, MovedClock
from tests.support.providers import Playing, playing
from tests.support.service import free_port

pytestmark = [pytest.mark.drill, pytest.mark.timeout(300)]


class Vendor:
    """Verifies real buyers by a simulated provider, next to the callers."""

    def __init__(self, broken: Site, played: Playing) -> None:
        self._broken = broken
        self._played = played
        made = broken.deployment
        self.account = made.account("with a provider")
        self._key = made.key(self.account, "live")
        self._file = broken.folder / "credentials.json"
        self._file.write_text(json.dumps(dict(played.simulator.credentials)), encoding="utf-8")
        made.run(
            "accounts", "verification", "set", self.account, "--provider", played.name,
            "--credentials-file", str(self._file), "--dangerous-base-url", played.url, "--yes",
        )  # fmt: skip

    def verify(self, session: Session) -> httpx2.Response:
        """Verify the buyer of a session."""
        return self._client("POST", "/v1/buyers/verify", json=self._body(session))

    def status(self, cbid: str) -> str:
        """The vendor's view of a buyer."""
        found: str = self._client("GET", f"/v1/buyers/{cbid}/status").json()["status"]
        return found

    def _body(self, session: Session) -> dict[str, object]:
        body: dict[str, object] = {
            "provider_identity_session_id": session.session_id,
            "shipping_zip": session.shipping_zip,
        }
        if session.subject_reference is not None:
            body["subject_reference"] = session.subject_reference
        return body

    def _client(self, method: str, path: str, **more: Any) -> httpx2.Response:  # noqa: ANN401
        headers = {"Authorization": f"Bearer {self._key}"}
        with httpx2.Client(
            base_url=self._broken.url, headers=headers, timeout=30.0, verify=False
        ) as client:
            return client.request(method, path, **more)


def certificate(folder: Path, days: int) -> ssl.SSLContext:
    """A server's context whose certificate ends in this many days; it is its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"provider {days}")])
    ends = dt.datetime.now(dt.UTC) + dt.timedelta(days=days)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(ends - dt.timedelta(days=90))
        .not_valid_after(ends)
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private, public = folder / f"{days}.key", folder / f"{days}.pem"
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    public.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(public, private)
    return context


def test_a_certificate_has_expired(tmp_path: Path) -> None:
    """The provider's: its checks are refused, and the doctor names it, also before it ends."""
    port, contexts = free_port(), {days: certificate(tmp_path, days) for days in (3, -1)}
    trusted = tmp_path / "trusted.pem"
    trusted.write_text("".join((tmp_path / f"{days}.pem").read_text() for days in contexts))
    with site(tmp_path, PROVIDER_CA_FILE=str(trusted)) as broken:
        with broken.load() as load:
            with playing("stripe", port=port, ssl=contexts[3]) as played:
                vendor = Vendor(broken, played)
                first, second = played.part("verified", 0), played.part("verified", 1)
                assert vendor.verify(first).json()["status"] == "verified"
                severity, words = broken.doctor()["providers"]
                assert severity == "warning"
                assert "Have it renewed" in words
            with playing("stripe", port=port, ssl=contexts[-1]):
                refused = vendor.verify(second)
                assert refused.status_code == 503, refused.text
                assert "Retry-After" in refused.headers
                severity, words = broken.doctor()["providers"]
                assert severity == "warning"
                assert "expired" in words
                load.until(50, 200)
                load.until_ready(200)
            with playing("stripe", port=port, ssl=contexts[3]):
                wait_until(lambda: vendor.verify(second).status_code == 200, "verified")
            load.until(50, 200)
        broken.judge()


def test_a_provider_is_down_for_a_day(tmp_path: Path) -> None:
    """A buyer whose check was undecided is settled by itself when the provider is back."""
    port, clock = free_port(), MovedClock(tmp_path / "clock")
    with site(tmp_path, environment={VARIABLE: str(clock.file)}) as broken:
        with broken.load() as load:
            with playing("stripe", port=port) as played:
                vendor = Vendor(broken, played)
                undecided, unseen = played.part("pending"), played.part("verified")
                answer = vendor.verify(undecided).json()
                assert answer["status"] == "pending"
            for _ in range(22):  # answers are kept for 24 hours, to compare them afterwards
                clock.ahead(timedelta(hours=1))
                load.until(10, 200)
            assert vendor.verify(unseen).status_code == 503
            assert "cannot be reached" in broken.doctor()["providers"][1]
            load.until_ready(200, "ok")
            with playing("stripe", port=port) as back:
                asked = len(back.served.requests)
                clock.ahead(timedelta(hours=1))
                wait_until(lambda: len(back.served.requests) > asked, "asked again")
                wait_until(lambda: vendor.verify(unseen).status_code == 200, "verified")
                assert vendor.status(answer["cbid"]) == "pending"
            load.until(50, 200)
        broken.judge()


@contextmanager
def silent_receiver() -> Iterator[tuple[str, list[socket.socket]]]:
    """The URL of a receiver that takes every connection and never says a word."""
    taken: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    taken.append(listening.accept()[0])

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/hook", taken
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            for connection in taken:
                connection.close()


def test_a_receiver_never_answers(tmp_path: Path) -> None:
    """Only its own messages are delayed, and the doctor names the waiting ones."""
    clock = MovedClock(tmp_path / "clock")
    with site(
        tmp_path,
        environment={VARIABLE: str(clock.file)},
        WEBHOOK_ALLOW_PRIVATE="true",
        WEBHOOK_TIMEOUT_SECONDS="3",
    ) as broken:
        with broken.load() as load, silent_receiver() as (url, taken):
            with broken.client() as client:
                made = client.post("/v1/webhook_endpoints", json={"url": url})
                assert made.status_code == 200, made.text
            wait_until(lambda: len(taken) > 3, "connected")
            load.until(300, 200)
            for _ in range(6):
                clock.ahead(timedelta(hours=1))
                load.until(20, 200)
            load.until_ready(200, "ok")
        broken.judge()


def test_the_key_command_fails(tmp_path: Path) -> None:
    """Acts that need no other key continue; a start without it is refused with a message."""
    program, broke = tmp_path / "fetch-key", tmp_path / "broken"
    key = tmp_path / "data" / "key-encryption.key"
    program.write_text(f"#!/bin/sh\ntest ! -e {broke} && exec cat {key}\necho no >&2; exit 3\n")
    program.chmod(0o700)
    key.parent.mkdir(mode=0o700)
    key.write_text("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVoyMzQ1Njc=\n")
    key.chmod(0o600)
    with site(tmp_path, KEY_ENCRYPTION_KEY=f"command:{program}") as broken:
        with broken.load() as load:
            load.until(100, 200)
            broke.touch()
            load.until(200, 200)
            load.until_ready(200, "ok")
            severity, words = broken.doctor()["keys"]
            assert severity == "broken"
            assert str(program) in words
            broken.kill()
            broken.launch()
            assert broken.ended() != 0
            assert "Traceback" not in broken.log.read_text()
            broke.unlink()
            broken.start()
            load.until(100, 200)
            load.until_ready(200, "ok")
        broken.judge()
