"""Events: changes of an account's objects, with their identifiers only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Final, NamedTuple

from countersign.base.values import EVENT, LENGTH, Mode, Reason, base32, base32_value, is_id, to_ms

KEPT: Final = timedelta(days=90)
"""How long events can be read."""
_LOW_62_BITS: Final = (1 << 62) - 1
_FIXED: Final = (7 << 76) | (2 << 62)
"""Version and variant of a UUIDv7 (RFC 9562 §5.7)."""


class EventType(StrEnum):
    """What happened."""

    BUYER_VERIFIED = "buyer.verified"
    BUYER_REQUIRES_INPUT = "buyer.requires_input"
    BUYER_FAILED = "buyer.failed"
    BUYER_EXPIRING = "buyer.expiring"
    BUYER_EXPIRED = "buyer.expired"
    BUYER_REVOKED = "buyer.revoked"
    ACKNOWLEDGMENT_CREATED = "acknowledgment.created"
    ACKNOWLEDGMENT_SEALED = "acknowledgment.sealed"
    ACKNOWLEDGMENT_ERASED = "acknowledgment.erased"
    CLEARANCE_CREATED = "clearance.created"
    CLEARANCE_CLOSED = "clearance.closed"
    CHECKOUT_SESSION_COMPLETED = "checkout_session.completed"
    CHECKOUT_SESSION_DECLINED = "checkout_session.declined"
    CHECKOUT_SESSION_BLOCKED = "checkout_session.blocked"
    CHECKOUT_SESSION_EXPIRED = "checkout_session.expired"
    CHECKOUT_SESSION_CANCELLED = "checkout_session.cancelled"
    NOTICE_PUBLISHED = "notice.published"


_IDENTIFIER: Final = {
    "buyer": "cbid",
    "acknowledgment": "ack_id",
    "clearance": "clearance_id",
    "checkout_session": "checkout_session_id",
    "notice": "notice_id",
}
"""By the first word of the type, the name of the object's identifier in `data`."""


_EXAMPLE_REASONS: Final = {
    EventType.BUYER_REQUIRES_INPUT: (Reason.IDENTITY_REQUIRES_INPUT,),
    EventType.BUYER_FAILED: (Reason.IDENTITY_FAILED,),
    EventType.CHECKOUT_SESSION_BLOCKED: (Reason.VERIFICATION_MISCONFIGURED,),
}


class NewEvent(NamedTuple):
    """An event to write in the transaction of its act."""

    account_id: str
    mode: Mode
    type: EventType
    object_id: str
    at: datetime
    version: str | None = None
    """For a notice: the version."""
    triggered: bool = False
    """Whether a test key triggered it, without a real act."""
    reasons: tuple[Reason, ...] = ()
    """Of a buyer, only for the account that made the attempt: why it is not verified. For a
    session: why its buyer cannot continue."""


class Position(NamedTuple):
    """Position of an event in the order of readers.

    `tx` is the writing transaction's number on PostgreSQL, 0 on the embedded database.
    """

    tx: int
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedEvent:
    """A stored event."""

    position: Position
    account_id: str
    mode: Mode
    type: EventType
    object_id: str
    """Empty: a buyer, who was erased since."""
    version: str | None
    created_at: datetime
    """To the millisecond."""
    triggered: bool = False
    """See `NewEvent`, as for the reasons."""
    reasons: tuple[Reason, ...] = ()

    @classmethod
    def example(cls, account_id: str, mode: Mode, type_: EventType, at: datetime) -> RecordedEvent:
        """An event that never happened, about an object that does not exist."""
        kind = _IDENTIFIER[type_.partition(".")[0]]
        of_notice = kind == "notice_id"
        return cls(
            position=Position(0, 0),
            account_id=account_id,
            mode=mode,
            type=type_,
            object_id="example" if of_notice else f"{kind.removesuffix('_id')}_example",
            version="2026-01-01" if of_notice else None,
            created_at=at,
            reasons=_EXAMPLE_REASONS.get(type_, ()),
        )

    @property
    def data(self) -> dict[str, str | list[Reason] | None]:
        """The identifiers of its object, and codes of reasons; nothing personal.

        The identifier of an erased buyer is None.
        """
        data: dict[str, str | list[Reason] | None] = {
            _IDENTIFIER[self.type.partition(".")[0]]: self.object_id or None
        }
        if self.version is not None:
            data["notice_version"] = self.version
        if self.reasons:
            data["reasons"] = list(self.reasons)
        return data


class EventIds:
    """Turns the number of an event into its identifier and back.

    An identifier is an ordinary UUIDv7, so that rows need no column for it: it has the time of the
    event, and its number under a mask, since the number of events is confidential.
    """

    def __init__(self, key: bytes) -> None:
        """`key` is secret, and the same in every process of the deployment."""
        self._keyed = sha256(key)

    def of(self, event: RecordedEvent) -> str:
        return self.compose(event.position.seq, to_ms(event.created_at))

    def compose(self, seq: int, unix_ms: int) -> str:
        value = (unix_ms << 80) | _FIXED | (seq ^ self._mask(unix_ms))
        return f"{EVENT}_{base32(value)}"

    def parse(self, event_id: str) -> tuple[int, int] | None:
        """Number and Unix milliseconds, to compare with the row; None: not the id of an event."""
        if not is_id(EVENT, event_id):
            return None
        value = base32_value(event_id[-LENGTH:])
        unix_ms = value >> 80
        return (value & _LOW_62_BITS) ^ self._mask(unix_ms), unix_ms

    def _mask(self, unix_ms: int) -> int:
        # The input has one length, and at most half of the digest becomes known: no HMAC needed.
        digest = self._keyed.copy()
        digest.update(unix_ms.to_bytes(8, "big"))
        return int.from_bytes(digest.digest()[:8], "big") & _LOW_62_BITS
