"""Forbidden targets of webhooks: internal addresses are never connected to."""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import ssl
from collections.abc import Sequence
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from countersign.core.webhooks.address_guard import AddressGuard, AddressRefused, is_public
from countersign.core.webhooks.model import Outcome, TargetAddress, parse_target
from countersign.core.webhooks.sender import WebhookSender
from tests.webhooks.receiver import Answer, running_receiver

ACCOUNT = "acct_of_this_test"
INSIDE = [
    "127.0.0.1", "127.8.8.8", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255",
    "192.168.1.1", "169.254.169.254", "169.254.0.1", "100.64.0.1", "100.127.255.255", "192.0.0.1",
    "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1",
    "240.0.0.1", "255.255.255.255", "192.88.99.1",
    # Clouds: metadata of Oracle, and the platform's own service of Azure.
    "192.0.0.8", "192.0.0.192", "192.0.0.255", "168.63.129.16",
    "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:169.254.169.254",
    "::ffff:0:8.8.8.8", "64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::1", "100::1",
    "2001::1", "2001:db8::1", "2002:7f00:1::", "2002:808:808::1", "3fff::1", "5f00::1", "fc00::1",
    "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "4000::1",
]  # fmt: skip
OUTSIDE = [
    "192.0.1.1",
    "168.63.129.17",
    "8.8.8.8",
    "1.1.1.1",
    "203.0.112.1",
    "2606:4700:4700::1111",
    "2a00:1450:4001::1",
]


@pytest.mark.parametrize("text", INSIDE)
def test_a_non_public_address_is_refused(text: str) -> None:
    """Every special-purpose block, and whatever can hide an IPv4 address."""
    assert not is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", OUTSIDE)
def test_a_public_address_is_not(text: str) -> None:
    """The guard lets somebody through."""
    assert is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize(
    "found", [["10.0.0.1"], ["8.8.8.8", "10.0.0.1"], ["::1", "8.8.8.8"], ["nonsense"]]
)
def test_one_internal_address_spoils_the_name(found: list[str]) -> None:
    """A name with both kinds of addresses is a trap."""

    async def resolve(_host: str, _port: int) -> Sequence[str]:
        return found

    guard = AddressGuard(private=False, resolve=resolve)
    with pytest.raises(AddressRefused):
        asyncio.run(guard.addresses("hook.example.com", 443, ACCOUNT))


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "127.1", "2130706433", "0x7f000001", "::1", "0"]
)
def test_every_spelling_of_this_machine_is_refused_by_the_real_resolver(host: str) -> None:
    """The resolved address is judged, not the name."""

    async def scenario() -> None:
        async with running_receiver() as receiver:
            sender = WebhookSender(AddressGuard(private=False), timeout_seconds=5)
            target = TargetAddress("https", host, receiver.port, "/")
            sent = await sender.post(target, {}, b"{}", ACCOUNT)
            assert sent.outcome in {Outcome.ADDRESS_REFUSED, Outcome.UNREACHABLE}
            assert receiver.connections == 0

    asyncio.run(scenario())


def test_changing_a_name_between_check_and_connect_is_useless() -> None:
    """Resolved once, connected to that very address: the second answer is never asked for."""

    async def scenario() -> None:
        async with running_receiver() as inside, running_receiver(host="127.0.0.2") as judged:
            asked: list[str] = []

            async def resolve(host: str, _port: int) -> Sequence[str]:
                asked.append(host)
                return ["127.0.0.2"] if len(asked) == 1 else ["127.0.0.1"]

            # The judged one plays the public address: this machine has no other.
            guard = AddressGuard(private=True, resolve=resolve)
            sender = WebhookSender(guard, timeout_seconds=5)
            target = TargetAddress("http", "rebinding.example.com", judged.port, "/")
            assert (await sender.post(target, {}, b"{}", ACCOUNT)).outcome is Outcome.DELIVERED
            assert asked == ["rebinding.example.com"]
            assert inside.connections == 0
            assert len(judged.received) == 1
            expected = f"rebinding.example.com:{judged.port}"
            assert judged.received[0].headers["host"] == expected
            await sender.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "address",
    ["169.254.169.254", "10.0.0.1", "127.0.0.1", "0.0.0.0", "::ffff:169.254.169.254", "fe80::1"],  # noqa: S104 - refused
)
def test_a_name_that_now_resolves_to_the_inside_is_refused_at_the_next_connection(
    address: str,
) -> None:
    """It was public when the endpoint was made; that does not help."""

    async def scenario() -> None:
        async def resolve(_host: str, _port: int) -> Sequence[str]:
            return [address]

        guard = AddressGuard(private=False, resolve=resolve)
        sender = WebhookSender(guard, timeout_seconds=5)
        sent = await sender.post(
            TargetAddress("https", "hook.example.com", 443, "/"), {}, b"{}", ACCOUNT
        )
        assert sent.outcome is Outcome.ADDRESS_REFUSED

    asyncio.run(scenario())


@pytest.mark.parametrize("second", ["169.254.169.254", "10.0.0.1", "127.0.0.1"])
def test_a_name_that_changes_right_after_the_check_is_not_asked_again(
    second: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection goes to the checked address: the test inspects the connect call itself."""
    connected: list[str] = []

    async def connect(host: str, _port: int, **_: object) -> None:
        connected.append(host)
        raise OSError

    async def scenario() -> None:
        asked: list[str] = []

        async def resolve(host: str, _port: int) -> Sequence[str]:
            asked.append(host)
            return ["203.0.112.1"] if len(asked) == 1 else [second]

        guard = AddressGuard(private=False, resolve=resolve, remembered_seconds=0)
        sender = WebhookSender(guard, timeout_seconds=5)
        target = TargetAddress("https", "hook.example.com", 443, "/")
        monkeypatch.setattr(asyncio, "open_connection", connect)
        assert (await sender.post(target, {}, b"{}", ACCOUNT)).outcome is Outcome.UNREACHABLE
        await asyncio.sleep(0)  # it is forgotten in the next turn of the loop
        assert (await sender.post(target, {}, b"{}", ACCOUNT)).outcome is Outcome.ADDRESS_REFUSED
        assert connected == ["203.0.112.1"], "an address, and never the second one"

    asyncio.run(scenario())


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_the_inside_is_a_failure_and_never_followed(status: int) -> None:
    """Not even the connection is made; nor to another path of the same receiver."""

    async def scenario() -> None:
        async with running_receiver() as receiver, running_receiver(host="127.0.0.2") as inside:
            for location in (inside.url, "/elsewhere", "http://169.254.169.254/latest/"):
                receiver.answers(Answer(status=status, headers=(("Location", location),)))
                sender = WebhookSender(AddressGuard(private=True), timeout_seconds=5)
                sent = await sender.post(
                    parse_target(receiver.url, private=True), {}, b"{}", ACCOUNT
                )
                assert (sent.outcome, sent.status) == (Outcome.REFUSED, status)
                await sender.close()
            assert inside.connections == 0
            assert [received.target for received in receiver.received] == ["/hook"] * 3

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/", "ftp://example.com/", "https://", "https:///x", "https://user@h/",
        "https://user:pw@example.com/", "https://example.com#x", "https://example.com\\@inside/",
        "https://exa mple.com/", "https://example.com/\n", "https://example.com:0/",
        "https://example.com:99999/", "https://[::1", "https://[1.2.3.4]/", "https://[::1%25lo]/",
        "https://exämple.com/", "//example.com", "https://-x.com/", "https://" + "a" * 2000,
        "https://example.com:80:80/", "",
    ],
)  # fmt: skip
def test_an_address_other_than_plain_https_is_refused(url: str) -> None:
    """Two programs must not be able to read two hosts out of it."""
    with pytest.raises(ValueError, match="a URL"):
        parse_target(url, private=False)


def test_the_last_port_is_valid() -> None:
    assert parse_target("https://example.com:65535/", private=False).port == 65535
    with pytest.raises(ValueError, match="65535"):
        parse_target("https://example.com:65536/", private=False)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://Example.com", ("https", "example.com", 443, "/")),
        ("https://example.com:8443/a/b?c=d", ("https", "example.com", 8443, "/a/b?c=d")),
        ("https://example.com?c=d", ("https", "example.com", 443, "/?c=d")),
        ("https://[2606:4700::1]:444/", ("https", "2606:4700::1", 444, "/")),
    ],
)
def test_a_plain_address_is_read(url: str, expected: tuple[str, str, int, str]) -> None:
    """Host, port and path are those of the connection and the request."""
    assert parse_target(url, private=False) == expected


def certificate_for(name: str, folder: Path) -> ssl.SSLContext:
    """Make a server's context with a certificate of its own; it is its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate = folder / "certificate.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private = folder / "key.pem"
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, private)
    return context


@pytest.mark.parametrize(
    ("host", "outcome"),
    [("hook.example.com", Outcome.DELIVERED), ("other.example.com", Outcome.UNREACHABLE)],
)
def test_the_certificate_is_for_the_name_although_the_address_is_connected_to(
    host: str, outcome: Outcome, tmp_path: Path
) -> None:
    """TLS gets the name (SNI), and a certificate for another one is refused."""

    async def scenario() -> None:
        asked: list[str | None] = []
        server_tls = certificate_for("hook.example.com", tmp_path)
        server_tls.sni_callback = lambda _socket, name, _context: asked.append(name)

        async def resolve(_host: str, _port: int) -> Sequence[str]:
            return ["127.0.0.1"]

        async with running_receiver(tls=server_tls) as receiver:
            sender = WebhookSender(
                AddressGuard(private=True, resolve=resolve),
                timeout_seconds=5,
                tls=ssl.create_default_context(cafile=str(tmp_path / "certificate.pem")),
            )
            sent = await sender.post(
                TargetAddress("https", host, receiver.port, "/"), {}, b"{}", ACCOUNT
            )
            assert sent.outcome is outcome
            assert asked == [host]
            await sender.close()

    asyncio.run(scenario())


def test_an_unknown_authority_is_refused(tmp_path: Path) -> None:
    """The system's authorities are what counts unless a test says otherwise."""

    async def scenario() -> None:
        async with running_receiver(tls=certificate_for("localhost", tmp_path)) as receiver:
            sender = WebhookSender(AddressGuard(private=True), timeout_seconds=5)
            sent = await sender.post(
                TargetAddress("https", "localhost", receiver.port, "/"), {}, b"{}", ACCOUNT
            )
            assert sent.outcome is Outcome.UNREACHABLE
            assert receiver.received == []

    asyncio.run(scenario())


def test_connections_are_reused_and_a_closed_one_is_replaced() -> None:
    """Keep-alive; a server that hangs up between two messages costs neither of them."""

    async def scenario() -> None:
        async with running_receiver() as receiver:
            sender = WebhookSender(AddressGuard(private=True), timeout_seconds=5)
            target = parse_target(receiver.url, private=True)
            for _ in range(3):
                assert (await sender.post(target, {}, b"{}", ACCOUNT)).outcome is Outcome.DELIVERED
            assert receiver.connections == 1
            receiver.answer = lambda _: Answer(status=204, cut=1000)  # whole, then closed
            assert (await sender.post(target, {}, b"{}", ACCOUNT)).outcome is Outcome.DELIVERED
            assert (await sender.post(target, {}, b"{}", ACCOUNT)).outcome is Outcome.DELIVERED
            assert len(receiver.received) == 5
            await sender.close()
            for _ in range(3):  # turns of the loop that drop closed connections
                await asyncio.sleep(0)

    asyncio.run(scenario())
