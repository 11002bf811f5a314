"""How providers are reached: through a forward proxy, by a private authority, so many at once."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from countersign.identity.transport import Outbound, ProviderHttp, ProviderRequest, TransportFailure
from countersign_simulators.base import Reply
from countersign_simulators.server import serve
from tests.http.backstage import another_deployment
from tests.identity.asking import FixedClock
from tests.identity.test_transport import Scripted

GET = ProviderRequest(path="/")


@dataclass
class Proxy:
    """A forward proxy that knows one method, CONNECT, and requires a password."""

    url: str = ""
    asked: list[str] = field(default_factory=list)
    password: str = "user:secret"

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.asked.append(head.split("\r\n", 1)[0])
        basic = b64encode(self.password.encode()).decode()
        if f"Basic {basic}" not in head:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            writer.close()
            return
        host, _, port = head.split()[1].rpartition(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def proxying() -> AsyncIterator[Proxy]:
    proxy = Proxy()
    server = await asyncio.start_server(proxy.take, "127.0.0.1", 0)
    async with server:
        proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield proxy


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a private authority's certificate, which serves 127.0.0.1 itself; and its key."""
    file = tmp_path_factory.mktemp("authority") / "ca.pem"
    subprocess.run(
        (
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(file.with_suffix(".key")), "-out", str(file)),
        ),
        check=True,
        capture_output=True,
    )
    return file


def served_by(authority: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(authority, authority.with_suffix(".key"))
    return context


@pytest.mark.openssl
def test_a_provider_is_reached_through_the_proxy_and_by_the_private_authority(
    authority: Path,
) -> None:
    """The proxy carries encrypted requests to the provider's own address."""

    async def work() -> None:
        scripted = Scripted(Reply(status=200, body=b"{}"))
        async with serve(scripted, ssl=served_by(authority)) as at, proxying() as proxy:
            url = proxy.url.replace("//", f"//{proxy.password}@")
            reach = Outbound(proxy_url=url, ca_file=authority)
            assert "secret" not in repr(reach)
            http = ProviderHttp(at.url, FixedClock(), outbound=reach)
            assert (await http.send(GET)).status == 200
            await http.close()
            assert proxy.asked == [f"CONNECT {at.url.removeprefix('https://')} HTTP/1.1"]

    asyncio.run(work())


@pytest.mark.openssl
def test_an_unconfigured_authority_is_not_trusted(authority: Path) -> None:
    """A setting trusts it for identity providers; the environment never does."""

    async def work() -> None:
        scripted = Scripted(Reply(status=200, body=b"{}"))
        async with serve(scripted, ssl=served_by(authority)) as at:
            http = ProviderHttp(at.url, FixedClock())
            http.attempts = 1
            with pytest.raises(TransportFailure):
                await http.send(GET)
            await http.close()
            assert scripted.asked == 0

    asyncio.run(work())


@pytest.mark.openssl
def test_a_proxy_that_refuses_is_named_as_the_trouble(authority: Path) -> None:
    """Not the provider, nor its credentials."""

    async def work() -> None:
        scripted = Scripted(Reply(status=200, body=b"{}"))
        async with serve(scripted, ssl=served_by(authority)) as at, proxying() as proxy:
            reach = Outbound(proxy_url=proxy.url, ca_file=authority)
            http = ProviderHttp(at.url, FixedClock(), outbound=reach)
            http.attempts = 1
            with pytest.raises(TransportFailure) as failed:
                await http.send(GET)
            await http.close()
            assert failed.value.reason == "ProxyError"
            assert scripted.asked == 0

    asyncio.run(work())


def test_a_simulator_on_this_machine_is_reached_without_the_proxy() -> None:
    """Plain HTTP goes nowhere but to loopback."""

    async def work() -> None:
        scripted = Scripted(Reply(status=200, body=b"{}"))
        async with serve(scripted) as at, proxying() as proxy:
            http = ProviderHttp(at.url, FixedClock(), outbound=Outbound(proxy_url=proxy.url))
            assert (await http.send(GET)).status == 200
            await http.close()
            assert proxy.asked == []

    asyncio.run(work())


@pytest.mark.parametrize("content", [None, b"", b"no certificate"])
def test_a_file_without_certificates_is_refused_at_the_start(
    tmp_path: Path, content: bytes | None
) -> None:
    """Otherwise the first buyer would find out."""
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_bytes(content)
    made = another_deployment(tmp_path / "data")
    made = replace(made, settings={**made.settings, "PROVIDER_CA_FILE": str(file)})
    done = made.run("accounts", "list", check=False)
    assert done.returncode == 1
    assert "COUNTERSIGN_PROVIDER_CA_FILE" in done.stderr
    assert str(file) in done.stderr


@pytest.mark.parametrize("places", [1, 3])
def test_the_deployment_says_how_many_requests_run_at_once(places: int) -> None:
    """A provider's limit is not ours to guess."""

    async def work() -> None:
        scripted = Scripted(Reply(status=200, body=b"{}", delay=60.0))
        async with serve(scripted) as at:
            http = ProviderHttp(at.url, FixedClock(), outbound=Outbound(concurrency=places))
            http.attempts = 1
            sending = [asyncio.create_task(http.send(GET)) for _ in range(places + 2)]
            while scripted.asked < places:  # noqa: ASYNC110 - the other side counts
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            assert scripted.asked == places
            for task in sending:
                task.cancel()
            await asyncio.gather(*sending, return_exceptions=True)
            await http.close()

    asyncio.run(work())
