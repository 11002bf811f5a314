"""Webhook endpoints, deliveries, and when an attempt is made again."""

from __future__ import annotations

import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from ipaddress import IPv6Address
from typing import Final, NamedTuple, TypeAlias

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countersign.base.host import PORT_MAX, ip_or_none
from countersign.base.values import Mode
from countersign.core.access.reach import AccountReach
from countersign.core.events.model import EventType, RecordedEvent

# Standard Webhooks 1.0.0: signing a message.
#
# See https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md .
# The signature covers `id.timestamp.body`. A header may carry several signatures, which is how
# secrets are rotated: `v1` is HMAC-SHA256 under a shared secret, `v1a` is Ed25519.

ID_HEADER: Final = "webhook-id"
TIMESTAMP_HEADER: Final = "webhook-timestamp"
SIGNATURE_HEADER: Final = "webhook-signature"
SECRET_BYTES: Final = 32
SEED_BYTES: Final = 32
_SECRET_BYTES_RANGE: Final = range(24, 65)
_SECRET: Final = "whsec_"  # noqa: S105 - a mark, not a password
_PUBLIC: Final = "whpk_"
_TIMESTAMP: Final = re.compile(r"(?:0|[1-9][0-9]{0,11})\Z")
_ID: Final = re.compile(r"[!-\-/-~]{1,256}\Z")
"""Visible ASCII without the full stop, which separates it from the timestamp."""


class SharedSecret:
    """A shared secret, `whsec_…`: signs `v1`."""

    version: Final = "v1"

    def __init__(self, secret: bytes) -> None:
        """`secret` is 24 to 64 random bytes; ValueError otherwise."""
        if len(secret) not in _SECRET_BYTES_RANGE:
            raise ValueError("a webhook secret has 24 to 64 bytes")
        self._secret = secret

    def __repr__(self) -> str:
        return "SharedSecret(…)"

    @classmethod
    def from_text(cls, text: str) -> SharedSecret:
        """Read `whsec_…`; ValueError where it is something else."""
        if not text.startswith(_SECRET):
            raise ValueError(f"expected a text that begins with {_SECRET}")
        return cls(b64decode(text.removeprefix(_SECRET), validate=True))

    @property
    def text(self) -> str:
        """`whsec_` and base64, for the receiver's configuration."""
        return _SECRET + b64encode(self._secret).decode("ascii")

    def signature(self, message: bytes) -> bytes:
        return hmac.digest(self._secret, message, sha256)


class PrivateKey:
    """A private key: signs `v1a`."""

    version: Final = "v1a"

    def __init__(self, seed: bytes) -> None:
        """`seed` is the 32 bytes of an Ed25519 private key (RFC 8032); ValueError otherwise."""
        self._key = Ed25519PrivateKey.from_private_bytes(seed)

    def __repr__(self) -> str:
        return "PrivateKey(…)"

    @property
    def public_key(self) -> str:
        """`whpk_` and base64, for the receiver's configuration."""
        return _PUBLIC + b64encode(self._key.public_key().public_bytes_raw()).decode("ascii")

    def signature(self, message: bytes) -> bytes:
        return self._key.sign(message)


SigningKey: TypeAlias = SharedSecret | PrivateKey


def sign(
    keys: Sequence[SigningKey], message_id: str, unix_seconds: int, body: bytes
) -> dict[str, str]:
    """The three headers of a message, with a signature by each of the keys.

    Raises:
        ValueError: the id is not visible ASCII without a full stop, or the time is negative.
    """
    timestamp = str(unix_seconds)
    if _ID.match(message_id) is None or _TIMESTAMP.match(timestamp) is None:
        raise ValueError("not an id and a time that can be signed")
    message = b".".join((message_id.encode(), timestamp.encode(), body))
    signatures = (f"{k.version},{b64encode(k.signature(message)).decode()}" for k in keys)
    return {
        ID_HEADER: message_id,
        TIMESTAMP_HEADER: timestamp,
        SIGNATURE_HEADER: " ".join(signatures),
    }


ENDPOINTS_MAX: Final = 16
"""Per account and mode."""
URL_LENGTH_MAX: Final = 2000
DESCRIPTION_LENGTH_MAX: Final = 200
OVERLAP: Final = timedelta(hours=24)
"""How long an old secret signs together with its successor by default."""
OVERLAP_MAX: Final = timedelta(days=7)
SECRETS_MAX: Final = 4
"""How many secrets sign at a time: with more rotations the oldest ends earlier."""
LOG_KEPT: Final = timedelta(days=30)
"""How long finished deliveries are kept."""
RESPONSES_KEPT: Final = timedelta(days=7)
"""From the start of the delivery."""
AGE_MAX: Final = timedelta(days=4)
"""No delivery is attempted for longer than this, however few attempts there were."""
RECOVERY_WAIT: Final = timedelta(seconds=60)
"""How long after the last recovery of an endpoint the next may begin, at the earliest."""
RECOVERIES_MAX: Final = 4
"""For an account and mode in that time, including deleted endpoints."""
RETRY_AFTER_MAX: Final = timedelta(hours=24)
JITTER: Final = 0.2
"""A wait is up to this part longer than the schedule says."""

SCHEDULE: Final = (
    timedelta(0),
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=14),
    timedelta(hours=20),
    timedelta(hours=24),
)
"""The pause before each attempt; there is none after the last."""

_SLOW_DOWN: Final = frozenset({429, 502, 503, 504})
_URL: Final = re.compile(
    r"(?P<scheme>https?)://(?P<host>[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,252})|\[(?P<six>[0-9A-Fa-f:.]+)\])"
    r"(?::(?P<port>[1-9][0-9]{0,4}))?(?P<path>/[!-~]*|\?[!-~]*)?\Z",
    re.IGNORECASE | re.ASCII,
)
_FORM: Final = (
    "a URL like https://shop.example.com/events, without user, password, fragment and "
    "backslash: a host name in ASCII (xn-- for others) or an IP address without a zone, an "
    "optional port without leading zeros, and a path in printable ASCII"
)


class DeliveryStatus(StrEnum):
    """The status of a delivery."""

    PENDING = "pending"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    """All attempts of the schedule failed."""
    STOPPED = "stopped"
    """The endpoint was disabled or deleted before there was a success."""


class Outcome(StrEnum):
    """The result of one attempt."""

    DELIVERED = "delivered"
    """A complete 2xx response."""
    REFUSED = "refused"
    """Any other response; redirects are not followed."""
    TIMED_OUT = "timed_out"
    UNREACHABLE = "unreachable"
    """No connection, no TLS, or no HTTP response."""
    ADDRESS_REFUSED = "address_refused"
    """The name resolves to an address that is not of the public internet."""


class Disabled(StrEnum):
    """Why an endpoint is disabled."""

    REQUESTED = "requested"
    GONE = "gone"
    """It returned 410."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointSecret:
    """The signing keys of an endpoint: a shared secret and a private key, sealed by the vault."""

    id: str
    public_key: str
    """`whpk_…`."""
    sealed: bytes
    created_at: datetime
    expires_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A destination for an account's events of one mode."""

    id: str
    account_id: str
    mode: Mode
    url: str
    description: str
    event_types: frozenset[EventType] | None
    """None: all types, including those of later releases."""
    created_at: datetime
    disabled_at: datetime | None
    disabled_reason: Disabled | None
    secrets: tuple[EndpointSecret, ...]
    """The newest first."""

    @property
    def reach(self) -> AccountReach:
        return AccountReach(self.account_id, self.mode)

    def wants(self, type_: EventType) -> bool:
        return self.event_types is None or type_ in self.event_types


class SendResult(NamedTuple):
    """The result of sending one message."""

    outcome: Outcome
    status: int | None = None
    retry_after: timedelta | None = None
    body: bytes = b""
    """The beginning of a refusal."""


class ClaimedDelivery(NamedTuple):
    """A delivery that this process has to attempt before its lease is over."""

    endpoint_id: str
    event: RecordedEvent
    number: int
    """Of the attempt, from 1, resends counted."""
    step: int
    """The number of the attempt in the schedule, from 1."""


def wait_before(step: int, sent: SendResult, chance: float) -> timedelta | None:
    """How long to wait after attempt `step` (from 1) has failed; None: that was the last.

    `chance` is random, from 0 to 1, so that deliveries that failed together are not retried
    together.
    """
    if step >= len(SCHEDULE):
        return None
    wait = SCHEDULE[step] * (1 + JITTER * chance)
    return wait if sent.retry_after is None else max(wait, min(sent.retry_after, RETRY_AFTER_MAX))


def wants_pause(sent: SendResult) -> bool:
    """Whether to send less to the endpoint for a while: it is overloaded or absent."""
    return sent.status in _SLOW_DOWN or sent.outcome not in {Outcome.DELIVERED, Outcome.REFUSED}


class TargetAddress(NamedTuple):
    """The parts of an endpoint's address."""

    scheme: str
    host: str
    """A name or an IP address, without brackets."""
    port: int
    path: str
    """With the query; at least `/`."""

    @property
    def authority(self) -> str:
        """The value of the `Host` header (RFC 9110 §7.2)."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = 443 if self.scheme == "https" else 80
        return host if self.port == usual else f"{host}:{self.port}"


def parse_target(url: str, *, private: bool) -> TargetAddress:
    """The parts of an endpoint's address; `private`: plain HTTP is allowed, too.

    Raises:
        ValueError: its text says what is expected.
    """
    if len(url) > URL_LENGTH_MAX:
        raise ValueError(f"a URL of at most {URL_LENGTH_MAX} characters")
    found = _URL.match(url)
    if found is None or "#" in url or "\\" in url or _bad_six(found["six"]):
        raise ValueError(_FORM)
    scheme, host, path = found["scheme"].lower(), found["six"] or found["host"], found["path"] or ""
    port = int(found["port"] or (443 if scheme == "https" else 80))
    if scheme != "https" and not private:
        raise ValueError(
            "a URL that begins with https:// (for development, use `countersign webhooks "
            "listen`, or set COUNTERSIGN_WEBHOOK_ALLOW_PRIVATE=true for the server and for its "
            "commands)"
        )
    if port > PORT_MAX:
        raise ValueError("a URL with a port up to 65535")
    return TargetAddress(scheme, host.lower(), port, path if path.startswith("/") else "/" + path)


def _bad_six(text: str | None) -> bool:
    return text is not None and not isinstance(ip_or_none(text), IPv6Address)
