"""Acknowledgments: append-only, each bound to the exact words that were shown."""

import re
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple

import msgspec

from countersign.base.host import Network
from countersign.base.values import Mode
from countersign_evidence.process import PROCESS
from countersign_evidence.record import REFERENCE_FIELD

# The origin of an acknowledgment: IP address and user agent, with the source of each.
#
# On calls with a secret key the caller is the vendor's server, so a forwarding header is that
# caller's assertion. It is kept whole, next to the address taken from it and the address of the
# connection. A buyer's browser is not believed: a forwarding header counts only as far as this
# deployment's own proxies wrote it.

USER_AGENT_LENGTH_MAX: Final = 1024
HEADER_LENGTH_MAX: Final = 1024

_BYTE: Final = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_DOTTED_QUAD: Final = re.compile(rf"{_BYTE}\.{_BYTE}\.{_BYTE}\.{_BYTE}\Z")


class Source(StrEnum):
    """Where a fact was taken from."""

    BODY = "body"
    HEADER = "header"
    CONNECTION = "connection"


class Client(NamedTuple):
    """The address and the program that a request came from; None means a missing fact."""

    ip: str | None
    user_agent: str | None


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """IP address and user agent of an acknowledgment; None means a missing fact."""

    ip: str | None
    ip_source: Source | None
    peer_ip: str | None
    forwarded: str | None
    """The elements of the forwarding header that led to the address; of a browser's, all of it."""
    forwarded_truncated: bool
    user_agent: str | None
    user_agent_source: Source | None
    user_agent_truncated: bool

    @property
    def client(self) -> Client:
        """Whom requests are told apart by."""
        return Client(self.ip, self.user_agent)


def normalised_ip(text: str) -> str:
    """The address in its canonical text form; an IPv4-mapped IPv6 address becomes IPv4.

    Raises ValueError if the text is not an IP address (a zone index is not part of one).
    """
    if _DOTTED_QUAD.match(text):
        return text  # canonical already, and the commonest
    address = ip_address(text)
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            raise ValueError(f"{text!r} has a zone index")
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
    return str(address)


def resolve_origin(
    *,
    user_agent: str | None,
    peer: str | None,
    body_ip: str | None = None,
    body_user_agent: str | None = None,
    forwarded_addresses: Sequence[str] = (),
    trusted_proxies: Sequence[Network] = (),
) -> Origin:
    """Decide the address and the user agent, each with its source.

    `body_ip` is normalised already; `forwarded_addresses` are the elements of the forwarding
    header, left (client) to right (nearest), without this deployment's proxies; `peer` is the
    address of the connection. What did not lead to the address is not kept: it is of others.
    """
    peer_ip = _address(peer) if peer is not None and body_ip is None else None
    claimed, led = (body_ip, None) if body_ip else _left_most(forwarded_addresses, trusted_proxies)
    source = Source.BODY if body_ip else Source.HEADER if claimed else None
    if claimed is None and peer_ip is not None:
        claimed, source = peer_ip, Source.CONNECTION
    agent = body_user_agent if body_user_agent is not None else user_agent
    from_header = body_user_agent is None and agent is not None
    return Origin(
        ip=claimed,
        ip_source=source,
        peer_ip=peer_ip,
        forwarded=led,
        forwarded_truncated=False,
        user_agent=agent[:USER_AGENT_LENGTH_MAX] if agent is not None else None,
        user_agent_source=None if agent is None else Source.HEADER if from_header else Source.BODY,
        user_agent_truncated=agent is not None and len(agent) > USER_AGENT_LENGTH_MAX,
    )


def resolve_browser(
    headers: Sequence[tuple[bytes, bytes]],
    *,
    peer: str | None,
    header: str,
    trusted_proxies: Sequence[Network],
) -> Origin:
    """The origin of a request from a buyer's browser, by its headers.

    Behind a trusted proxy, the address is the right-most one in the forwarding header (named
    `header`) that is not a trusted proxy's; otherwise it is the connection's. A header that the
    address was not taken from is not kept.
    """
    forwarded = forwarding_header(headers, header)
    agent = next((header_text(value) for name, value in headers if name == b"user-agent"), None)
    found = resolve_origin(user_agent=agent, peer=peer)
    hop = found.peer_ip
    for element in reversed(forwarded.split(",") if forwarded else ()):
        if hop is None or not _is_trusted(hop, trusted_proxies):
            break
        # The hop before that proxy: one address, or unknown.
        addresses = forwarding_elements(header, element)
        hop = _address(addresses[0]) if len(addresses) == 1 else None
    if hop is None or hop == found.peer_ip or not forwarded or _is_trusted(hop, trusted_proxies):
        return found
    return msgspec.structs.replace(
        found,
        ip=hop,
        ip_source=Source.HEADER,
        forwarded=forwarded[-HEADER_LENGTH_MAX:],
        forwarded_truncated=len(forwarded) > HEADER_LENGTH_MAX,
    )


def forwarding_header(headers: Sequence[tuple[bytes, bytes]], name: str) -> str | None:
    """The forwarding header of this name, its lines as one; None if there is none."""
    lines = [value.decode("latin-1") for key, value in headers if key == name.encode()]
    return ", ".join(lines) if lines else None


def header_text(value: bytes) -> str:
    """A header as text: UTF-8 where it is, else byte for byte (RFC 9110 §5.5 obs-text)."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


def readable_part(header: str) -> str:
    """The whole elements of a forwarding header within HEADER_LENGTH_MAX; the rest is ignored."""
    if len(header) <= HEADER_LENGTH_MAX:
        return header
    return header[:HEADER_LENGTH_MAX].rpartition(",")[0]


def forwarding_elements(header: str, value: str) -> list[str]:
    """The addresses of a forwarding header, left to right.

    `Forwarded` is parsed by RFC 7239 (the `for` parameters); every other header, such as
    `X-Forwarded-For`, as a comma-separated list.
    """
    elements = [element.strip() for element in value.split(",")]
    if header != "forwarded":
        return [element.strip('"') for element in elements]
    found = []
    for element in elements:
        for pair in element.split(";"):
            name, _, text = pair.strip().partition("=")
            if name.strip().lower() == "for":
                found.append(text.strip().strip('"'))
    return found


def _left_most(
    elements: Sequence[str], trusted: Sequence[Network]
) -> tuple[str, str] | tuple[None, None]:
    """The address that is left-most beyond the trusted proxies, and the elements up to it."""
    remaining = list(elements)
    while remaining and _is_trusted(remaining[-1], trusted):
        remaining.pop()
    for number, element in enumerate(remaining, 1):
        if (address := _address(element)) is not None:
            return address, ", ".join(elements[:number])
    return None, None


def _is_trusted(element: str, trusted: Sequence[Network]) -> bool:
    text = _address(element)
    if text is None:
        return False
    address = ip_address(text)
    return any(address in network for network in trusted)


@lru_cache(maxsize=1024)
def _address(element: str) -> str | None:
    """An element without port and brackets, normalised; None if it is not an address."""
    text = element.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        return normalised_ip(text)
    except ValueError:
        return None


INITIALS_LENGTH_MAX: Final = 32
"""Characters (Unicode code points) in the initials of one line."""
HOSTED_CREDENTIAL: Final = "checkout_session"
"""The credential named in the record of a hosted acknowledgment."""
NO_FIELD: Final = "none"
"""Stands for an empty list of field names."""


class Capture(StrEnum):
    """How the initials were captured, which determines what the record can prove.

    With `vendor_api` the vendor asserts what the buyer did; with `hosted` a client that had the
    session's token sent the initials directly to this service.
    """

    VENDOR_API = "vendor_api"
    HOSTED = "hosted"


class VersionSource(StrEnum):
    """Whether the caller named the version that was shown, or the version in force was assumed."""

    ASSERTED = "asserted"
    ASSUMED = "assumed"


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """A caller's submission for one notice."""

    initials_per_line: Sequence[str]
    session_id: str | None
    cbid: str | None
    notice_version: str | None
    origin: Origin
    order_reference: str | None = None
    initials_from: Sequence[Client] = ()
    """By line, whose request had the initials; empty if all came with this submission."""


AS_SUBMITTED: Final = tuple(
    name
    for name in Submission.__struct_fields__
    if name not in {"notice_version", "origin", REFERENCE_FIELD, "initials_from"}
)
"""The personal members; each is a separate disclosure and can be erased.

The order's reference is one more, but only if there is one.
"""
PERSONAL_FIELDS: Final = (*AS_SUBMITTED, "ip", "user_agent")
"""The names of the disclosures of an acknowledgment's record, in the order they are kept in."""
ALL_FIELDS: Final = (*PERSONAL_FIELDS, PROCESS, REFERENCE_FIELD)
"""Including fields of some records only: of hosted ones, and of orders with a reference."""


class StoredAcknowledgment(NamedTuple):
    """An acknowledgment as the database has it.

    `payload` and `shred_key` are None once its disclosures are erased; `origin` and `leaf_index`,
    its place in the log, while its entry is pending.
    """

    ack_id: str
    account_id: str
    mode: Mode
    record: bytes
    payload: bytes | None
    shred_key: bytes | None
    leaf_index: int | None
    origin: str | None
    clearance_id: str | None
    """The newest clearance that was granted with it."""
    accepted_at: datetime
    erased_at: datetime | None


class RecordView(msgspec.Struct, frozen=True, kw_only=True):
    """The members of a record that are read back."""

    notice_id: str
    notice_version: str
    notice_digest: str
    notice_version_source: VersionSource
    capture: Capture
    test_clock: datetime | msgspec.UnsetType = msgspec.UNSET
    """The time on the account's test clock, if it was ahead."""
