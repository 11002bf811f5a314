"""Where an acknowledgment came from: IP address and browser, each with its source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.http import wire
from tests.http.backstage import Operator, Vendor, another_deployment
from tests.http.calls import acknowledge, acknowledged, message, read_back, refusal
from tests.http.conftest import LIVE_NOTICE
from tests.support.service import running_server

pytestmark = pytest.mark.one_engine

LINES = ["A", "B", "C", "D"]
PEER = "127.0.0.1"
LONG = 5000


@pytest.fixture(scope="module")
def forwarded_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    """Give a client of a server that reads the `Forwarded` header (RFC 7239)."""
    deployment = another_deployment(
        tmp_path_factory.mktemp("forwarded") / "data",
        CLIENT_IP_HEADER="Forwarded",
        TRUSTED_PROXIES="10.0.0.0/8,2001:db8:ffff::/48",
    )
    with (
        running_server(deployment) as server,
        Operator(deployment) as operator,
        operator.vendor(server) as vendor,
    ):
        yield vendor.test


def address(client: httpx2.Client, header: str, value: str, **fields: object) -> tuple[str, str]:
    """The stored address and its source, for a request with this header."""
    return _address(acknowledged(client, headers={header: value}, **fields))


def _address(stored: dict[str, Any]) -> tuple[str, str]:
    assert stored["peer_ip"] == (None if stored["ip_source"] == "body" else PEER)
    return stored["ip"], stored["ip_source"]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
        ("2001:0db8::0001:0000", "2001:db8::1:0"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("::FFFF:CB00:7107", "203.0.113.7"),
        ("::", "::"),
        ("10.0.0.1", "10.0.0.1"),
    ],
)
def test_an_address_in_the_body_is_kept_normalised(
    client: httpx2.Client, given: str, kept: str
) -> None:
    assert _address(acknowledged(client, ip=given)) == (kept, "body")


@pytest.mark.parametrize(
    "given",
    [
        "",
        " 203.0.113.7",
        "203.0.113.7\n",
        "203.0.113",
        "203.0.113.256",
        "203.0.113.07",
        "203.0.113.7:80",
        "203.0.113.0/24",
        "[2001:db8::1]",
        "fe80::1%eth0",
        "2001:db8::1::2",
        "localhost",
        "unknown",
        "٢٠٣.0.113.7",
        "3405803783",
    ],
)
def test_an_invalid_address_in_the_body_is_refused(client: httpx2.Client, given: str) -> None:
    answer = acknowledge(client, initials_per_line=LINES, ip=given)
    assert refusal(answer) == (400, "invalid_request")
    assert "$.ip" in message(answer)


def test_the_body_wins_over_the_header(client: httpx2.Client) -> None:
    found = address(client, "X-Forwarded-For", "198.51.100.1", ip="203.0.113.7")
    assert found == ("203.0.113.7", "body")


@pytest.mark.parametrize(
    ("header", "kept"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("203.0.113.7, 198.51.100.1, 198.51.100.2", "203.0.113.7"),
        ("203.0.113.7  ,198.51.100.1", "203.0.113.7"),
        ("203.0.113.7:4711", "203.0.113.7"),
        ("2001:DB8::0001", "2001:db8::1"),
        ("[2001:db8::1]:4711", "2001:db8::1"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("10.0.0.1", "10.0.0.1"),
    ],
)
def test_without_an_address_in_the_body_the_left_most_one_of_the_header_is_taken(
    client: httpx2.Client, header: str, kept: str
) -> None:
    assert address(client, "X-Forwarded-For", header) == (kept, "header")


@pytest.mark.parametrize(
    ("header", "kept"),
    [
        ("203.0.113.7, 10.1.2.3", "203.0.113.7"),
        ("10.9.9.9, 203.0.113.7, 10.1.2.3", "10.9.9.9"),
        ("203.0.113.7, 2001:db8:ffff::1, 10.1.2.3:80", "203.0.113.7"),
    ],
)
def test_trusted_proxies_are_removed_from_the_right(
    configured_vendor: Vendor, header: str, kept: str
) -> None:
    client = configured_vendor.test
    found = address(client, "X-Forwarded-For", header, notice_id=LIVE_NOTICE)
    assert found == (kept, "header")


@pytest.mark.parametrize("header", ["10.1.2.3", "10.1.2.3, 2001:db8:ffff::1, 10.0.0.1"])
def test_a_header_of_trusted_proxies_alone_says_nothing_about_the_buyer(
    configured_vendor: Vendor, header: str
) -> None:
    client = configured_vendor.test
    found = address(client, "X-Forwarded-For", header, notice_id=LIVE_NOTICE)
    assert found == (PEER, "connection")


def test_a_header_over_several_lines_is_one_list(client: httpx2.Client) -> None:
    stored = _over_the_wire(
        client, (b"X-Forwarded-For", b"203.0.113.7"), (b"X-Forwarded-For", b"198.51.100.1")
    )
    assert _address(stored) == ("203.0.113.7", "header")


@pytest.mark.parametrize(
    ("header", "kept"),
    [
        ("unknown, 203.0.113.7", "203.0.113.7"),
        (", ,203.0.113.7", "203.0.113.7"),
        ("_hidden, [broken, 203.0.113.7", "203.0.113.7"),
        ("203.0.113.7" + ", 198.51.100.1" * (LONG // 3), "203.0.113.7"),
    ],
)
def test_broken_parts_of_a_header_are_passed_over(
    client: httpx2.Client, header: str, kept: str
) -> None:
    assert address(client, "X-Forwarded-For", header) == (kept, "header")


@pytest.mark.parametrize("header", ["", "unknown", ",,,", "203.0.113", "x" * LONG, "%00", "[", ":"])
def test_without_a_usable_header_the_address_is_that_of_the_connection(
    client: httpx2.Client, header: str
) -> None:
    assert address(client, "X-Forwarded-For", header) == (PEER, "connection")


def test_without_any_header_the_address_is_that_of_the_connection(client: httpx2.Client) -> None:
    assert _address(acknowledged(client)) == (PEER, "connection")


def test_non_text_bytes_in_a_header_do_not_fail_an_acknowledgment(
    client: httpx2.Client,
) -> None:
    stored = _over_the_wire(client, (b"X-Forwarded-For", b"\xff\xfe\x80"))
    assert _address(stored) == (PEER, "connection")


@pytest.mark.parametrize("header", ["X-Real-IP", "Forwarded", "CF-Connecting-IP", "Via"])
def test_headers_that_are_not_configured_are_not_read(client: httpx2.Client, header: str) -> None:
    value = "for=203.0.113.7" if header == "Forwarded" else "203.0.113.7"
    assert address(client, header, value) == (PEER, "connection")


@pytest.mark.parametrize(
    ("header", "kept"),
    [
        ("for=203.0.113.7", "203.0.113.7"),
        ("for=203.0.113.7;proto=https;by=198.51.100.1", "203.0.113.7"),
        ("proto=https;For=203.0.113.7, for=198.51.100.1", "203.0.113.7"),
        ('for="203.0.113.7:4711"', "203.0.113.7"),
        ('for="[2001:DB8::0001]:4711";proto=http', "2001:db8::1"),
        ("for=_hidden, for=203.0.113.7", "203.0.113.7"),
        ("for=203.0.113.7, for=10.0.0.1", "203.0.113.7"),
        ('for=203.0.113.7, for="[2001:db8:ffff::7]"', "203.0.113.7"),
    ],
)
def test_the_forwarded_header_is_read_where_it_is_configured(
    forwarded_client: httpx2.Client, header: str, kept: str
) -> None:
    assert address(forwarded_client, "Forwarded", header) == (kept, "header")


@pytest.mark.parametrize(
    "header",
    ["for=unknown", "for=_secret", "by=203.0.113.7", "for=", "for=10.0.0.1", "203.0.113.7"],
)
def test_a_forwarded_header_without_an_address_says_nothing(
    forwarded_client: httpx2.Client, header: str
) -> None:
    assert address(forwarded_client, "Forwarded", header) == (PEER, "connection")


def test_another_header_is_not_read_once_forwarded_is_configured(
    forwarded_client: httpx2.Client,
) -> None:
    assert address(forwarded_client, "X-Forwarded-For", "203.0.113.7") == (PEER, "connection")


def test_a_user_agent_in_the_body_is_kept_as_it_is(client: httpx2.Client) -> None:
    longest = " Mozilla/5.0 (木) " + "x" * 1007
    assert len(longest) == 1024
    stored = acknowledged(client, user_agent=longest, headers={"User-Agent": "server/1"})
    assert _agent(stored) == (longest, "body", False)


def test_without_a_user_agent_in_the_body_the_header_is_taken(client: httpx2.Client) -> None:
    stored = acknowledged(client, headers={"User-Agent": "Shop/7 (checkout)"})
    assert _agent(stored) == ("Shop/7 (checkout)", "header", False)


def test_an_over_long_user_agent_header_is_cut_and_marked(client: httpx2.Client) -> None:
    stored = acknowledged(client, headers={"User-Agent": "a" * 1024 + "b" * LONG})
    assert _agent(stored) == ("a" * 1024, "header", True)


def test_a_user_agent_header_of_exactly_the_longest_length_is_not_marked(
    client: httpx2.Client,
) -> None:
    stored = acknowledged(client, headers={"User-Agent": "a" * 1024})
    assert _agent(stored) == ("a" * 1024, "header", False)


def test_a_user_agent_header_that_is_not_utf_8_is_kept_byte_for_byte(client: httpx2.Client) -> None:
    stored = _over_the_wire(client, (b"User-Agent", b"caf\xe9 \xff"))
    assert _agent(stored) == ("caf\u00e9 \u00ff", "header", False)


def test_a_user_agent_header_in_utf_8_is_read_as_such(client: httpx2.Client) -> None:
    stored = _over_the_wire(client, (b"User-Agent", "café 木".encode()))
    assert _agent(stored) == ("café 木", "header", False)


def test_without_a_user_agent_anywhere_there_is_none(client: httpx2.Client) -> None:
    assert _agent(_over_the_wire(client)) == (None, None, False)


def _agent(stored: dict[str, Any]) -> tuple[str | None, str | None, bool]:
    return stored["user_agent"], stored["user_agent_source"], stored["user_agent_truncated"]


def _over_the_wire(client: httpx2.Client, *headers: tuple[bytes, bytes]) -> dict[str, Any]:
    """Acknowledge with exactly these headers, and read the acknowledgment back."""
    needed = (
        (b"Authorization", client.headers["Authorization"].encode()),
        (b"Content-Type", b"application/json"),
    )
    answer = wire.request(
        str(client.base_url),
        b"/v1/notices/ab1263/acknowledge",
        method=b"POST",
        headers=(*needed, *headers),
        body=b'{"initials_per_line":["A","B","C","D"]}',
    )
    assert answer.status == 200, answer.body
    return read_back(client, httpx2.Response(200, content=answer.body).json()["ack_id"])
