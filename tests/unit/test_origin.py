"""Where an acknowledgment came from: addresses, forwarding headers, user agents."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.base.host import Network
from countersign.core.acknowledgments.model import (
    USER_AGENT_LENGTH_MAX,
    Origin,
    Source,
    forwarding_elements,
    normalised_ip,
    resolve_browser,
    resolve_origin,
)
from tests.support.every import every

PROXIES = (ip_network("10.0.0.0/8"), ip_network("2001:db8:ffff::/48"))
IPV4 = st.one_of(
    st.ip_addresses(v=4).map(str), st.sampled_from(["10.0.0.1", "10.255.0.9", "203.0.113.7"])
)
IPV6 = st.one_of(
    st.ip_addresses(v=6).map(str), st.sampled_from(["2001:db8:ffff::1", "2001:DB8::7"])
)
JUNK = st.sampled_from(["", "unknown", "_hidden", "999.1.1.1", "1.2.3", "fe80::1%eth0", "a b"])


def resolve(
    *,
    body_ip: str | None = None,
    body_user_agent: str | None = None,
    addresses: Sequence[str] = (),
    user_agent: str | None = None,
    peer: str | None = None,
    trusted: Sequence[Network] = (),
) -> Origin:
    """Resolve with only the test's own values."""
    return resolve_origin(
        body_ip=body_ip,
        body_user_agent=body_user_agent,
        forwarded_addresses=addresses,
        user_agent=user_agent,
        peer=peer,
        trusted_proxies=trusted,
    )


def plain_address(element: str) -> str | None:
    """An element as an address: `1.2.3.4`, `1.2.3.4:80`, `2001:db8::1`, `[2001:db8::1]:80`."""
    bracketed = re.fullmatch(r"\s*\[([^]]*)\].*", element)
    with_port = re.fullmatch(r"\s*([^:]*):[^:]*", element)
    found = bracketed or with_port
    try:
        return normalised_ip(found[1] if found else element.strip())
    except ValueError:
        return None


def claimed_by_the_words_of_the_rule(header: str, trusted: Sequence[Network]) -> str | None:
    """After removing trusted proxies from the right, the left-most address."""
    elements = [plain_address(element) for element in header.split(",")]
    while elements:
        last = elements[-1]
        if last is None or not any(ip_address(last) in network for network in trusted):
            break
        del elements[-1]
    return next((address for address in elements if address is not None), None)


@st.composite
def written_addresses(draw: st.DrawFn) -> str:
    """An address as found in forwarding headers: bare, with a port, in brackets, with spaces."""
    text = draw(st.one_of(IPV4, IPV6, JUNK))
    port = draw(st.sampled_from(["", ":443"]))
    if ":" in text and "%" not in text:
        text = draw(st.sampled_from([text, f"[{text}]", f"[{text}]{port}"]))
    elif "." in text:
        text += port
    return draw(st.sampled_from(["", " "])) + text + draw(st.sampled_from(["", " "]))


@given(st.lists(written_addresses(), min_size=1, max_size=6).map(",".join))
def test_the_claimed_address_is_the_left_most_beyond_the_trusted_proxies(header: str) -> None:
    """Whatever the header holds, the rule of the design decides; nothing fails on it."""
    found = resolve(
        addresses=forwarding_elements("x-forwarded-for", header),
        trusted=PROXIES,
    )
    expected = claimed_by_the_words_of_the_rule(header, PROXIES)
    assert found.ip == expected
    assert found.ip_source == (None if expected is None else Source.HEADER)


@given(st.text(max_size=200), st.text(max_size=200))
def test_no_header_can_make_it_fail(value: str, agent: str) -> None:
    """A broken header is passed over: it never costs an acknowledgment."""
    for name in ("x-forwarded-for", "forwarded"):
        elements = forwarding_elements(name, value)
        found = resolve(addresses=elements, user_agent=agent, peer="192.0.2.1")
        assert found.ip is not None
        assert ip_address(found.ip) in ip_network(found.ip)


@given(st.one_of(IPV4, IPV6))
def test_an_address_is_kept_in_one_form(text: str) -> None:
    """Normalising is idempotent, and names the same address to the operating system."""
    normal = normalised_ip(text)
    assert normalised_ip(normal) == normal
    family = socket.AF_INET6 if ":" in normal else socket.AF_INET
    mapped = text if ":" in normal or ":" not in text else normal
    assert socket.inet_pton(family, normal) == socket.inet_pton(family, mapped)


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("::FFFF:CB00:7107", "203.0.113.7"),
        ("::1", "::1"),
        ("255.255.255.255", "255.255.255.255"),
    ],
)
def test_addresses_are_normalised(written: str, kept: str) -> None:
    """An IPv4 address is IPv4 also when it was carried inside IPv6."""
    assert normalised_ip(written) == kept


@every(
    "text",
    [
        "", " ", "203.0.113", "203.0.113.256", "203.0.113.07", "::1%eth0", "fe80::1%1", "[::1]",
        "203.0.113.7:80", " 203.0.113.7", "203.0.113.7\n", "٢٠٣.0.113.7", "localhost", "1",
        "0x7f.1", "203.0.113.0/24", ":::",
    ],
)  # fmt: skip
def test_an_invalid_address_is_refused(text: str) -> None:
    """In the body only a bare address counts: no port, no zone, no network, no other digits."""
    with pytest.raises(ValueError, match=r".*"):
        normalised_ip(text)


def test_the_address_of_the_body_wins_over_all_others() -> None:
    """What did not lead to the address is of the vendor's server, and is not stored."""
    found = resolve(
        body_ip="203.0.113.7",
        addresses=["198.51.100.1"],
        peer="192.0.2.1",
    )
    assert (found.ip, found.ip_source) == ("203.0.113.7", Source.BODY)
    assert found.forwarded is None
    assert found.peer_ip is None


def test_without_a_usable_header_the_address_is_that_of_the_connection() -> None:
    """The header led to nothing, and is not stored."""
    found = resolve(addresses=["unknown", "_x"], peer="192.0.2.1")
    assert (found.ip, found.ip_source) == ("192.0.2.1", Source.CONNECTION)
    assert found.forwarded is None


def test_if_all_are_trusted_proxies_the_address_is_that_of_the_connection() -> None:
    """A request from inside the deployment has no client in its header."""
    found = resolve(
        addresses=["10.0.0.1", "10.0.0.2"],
        peer="10.0.0.3",
        trusted=PROXIES,
    )
    assert (found.ip, found.ip_source) == ("10.0.0.3", Source.CONNECTION)


def test_a_trusted_proxy_on_the_left_is_the_callers_assertion() -> None:
    """Proxies are removed from the right only."""
    found = resolve(
        addresses=["10.9.9.9", "203.0.113.7"],
        trusted=PROXIES,
    )
    assert found.ip == "10.9.9.9"


def test_without_anything_the_facts_are_missing() -> None:
    """A missing fact is None, not an empty string."""
    found = resolve()
    assert found == Origin(
        ip=None,
        ip_source=None,
        peer_ip=None,
        forwarded=None,
        forwarded_truncated=False,
        user_agent=None,
        user_agent_source=None,
        user_agent_truncated=False,
    )


def test_the_elements_up_to_the_address_are_kept() -> None:
    """The hops after it are the vendor's own."""
    hops = ["unknown", "203.0.113.7:80", "192.0.2.9", "10.0.0.1"]
    found = resolve(addresses=hops, peer="192.0.2.1", trusted=PROXIES)
    assert (found.ip, found.forwarded) == ("203.0.113.7", "unknown, 203.0.113.7:80")
    assert not found.forwarded_truncated


@given(st.lists(st.tuples(st.one_of(IPV4, IPV6), st.booleans()), min_size=1, max_size=5))
def test_forwarded_is_read_by_rfc_7239(hops: list[tuple[str, bool]]) -> None:
    """The `for` parameters in order; IPv6 in quotes and brackets; other parameters are passed."""
    written = [
        f'by=203.0.113.60;For="[{ip}]:4711";proto=http' if ":" in ip else f"for={ip};by=_p"
        for ip, _ in hops
    ]
    found = resolve(addresses=forwarding_elements("forwarded", ", ".join(written)), trusted=())
    assert found.ip == normalised_ip(hops[0][0])


def test_forwarded_without_a_for_parameter_says_nothing() -> None:
    """`by` is the proxy, not the client."""
    assert forwarding_elements("forwarded", "by=203.0.113.7; proto=https, host=a") == []


def test_quotes_around_an_address_are_no_part_of_it() -> None:
    """In each forwarding header."""
    assert forwarding_elements("x-forwarded-for", '"203.0.113.7", 10.0.0.1') == [
        "203.0.113.7",
        "10.0.0.1",
    ]


@given(st.one_of(st.none(), st.text(max_size=1030)), st.one_of(st.none(), st.text(max_size=1030)))
def test_the_user_agent_is_that_of_the_body_or_else_of_the_header(
    body: str | None, header: str | None
) -> None:
    """An empty one in the body is an answer too; a long header is cut and marked."""
    found = resolve(body_user_agent=body, user_agent=header)
    given_ = body if body is not None else header
    assert found.user_agent == (None if given_ is None else given_[:USER_AGENT_LENGTH_MAX])
    source = Source.BODY if body is not None else Source.HEADER if header is not None else None
    assert found.user_agent_source == source
    assert found.user_agent_truncated == (given_ is not None and len(given_) > 1024)


def of_browser(
    *lines: str, peer: str | None = "10.0.0.3", header: str = "x-forwarded-for"
) -> Origin:
    """Resolve a browser's request, which came through the trusted PROXIES unless `peer` differs."""
    headers = [(header.encode(), line.encode()) for line in lines]
    return resolve_browser(headers, peer=peer, header=header, trusted_proxies=PROXIES)


@given(
    st.lists(written_addresses(), max_size=6).map(",".join),
    st.lists(st.sampled_from(["10.0.0.1", "10.0.0.2:80", "[2001:db8:ffff::1]"]), max_size=3),
    st.ip_addresses().map(str),
)
def test_the_address_of_a_browser_is_the_hop_that_the_proxies_saw(
    sent: str, proxies: list[str], buyer: str
) -> None:
    """Whatever the browser itself put into the header, however long it is."""
    if any(ip_address(buyer) in network for network in PROXIES):
        return
    seen = f"[{buyer}]:4711" if ":" in buyer else buyer
    for padding in ("", "203.0.113.9," * 200):
        found = of_browser(padding + ", ".join([sent, seen, *proxies]))
        assert (found.ip, found.ip_source) == (normalised_ip(buyer), Source.HEADER)
        assert found.forwarded is not None
        assert seen in found.forwarded


@given(st.lists(written_addresses(), max_size=6), st.text(max_size=200))
def test_a_browser_without_a_trusted_proxy_is_its_connection(sent: list[str], agent: str) -> None:
    """Its header is not believed, and not kept."""
    headers = [(b"x-forwarded-for", line.encode()) for line in sent]
    headers.append((b"user-agent", agent.encode()))
    for trusted in (PROXIES, ()):
        found = resolve_browser(
            headers, peer="203.0.113.7", header="x-forwarded-for", trusted_proxies=trusted
        )
        assert (found.ip, found.ip_source) == ("203.0.113.7", Source.CONNECTION)
        assert (found.forwarded, found.forwarded_truncated) == (None, False)
        assert found.user_agent == agent
        assert found.user_agent_source == Source.HEADER


@pytest.mark.parametrize(
    "line", ["", "unknown", "203.0.113.9, _hidden", "10.0.0.1, 10.0.0.2", "203.0.113.9, fe80::1%1"]
)
def test_a_browser_with_an_unknown_hop_has_the_address_of_its_connection(line: str) -> None:
    """A missing hop is not guessed from those further left."""
    found = of_browser(line)
    assert (found.ip, found.ip_source, found.forwarded) == ("10.0.0.3", Source.CONNECTION, None)


def test_the_hop_of_a_browser_in_several_lines_and_in_forwarded() -> None:
    """Lines are one header; an element of `Forwarded` that names no hop, or two, names none."""
    assert of_browser("198.51.100.1", "203.0.113.7, 10.0.0.1").ip == "203.0.113.7"
    for element, ip in (
        ('for="[2001:db8::7]:4711";proto=https', "2001:db8::7"),
        ("proto=https", "10.0.0.3"),
        ("for=203.0.113.7;for=203.0.113.8", "10.0.0.3"),
    ):
        assert of_browser(f'for="198.51.100.1, {element}', header="forwarded").ip == ip
    assert of_browser(peer=None).ip is None
