"""An order: its acts, and its state after them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from countersign.base.values import ACKNOWLEDGMENT, LENGTH, Mode, base32, base32_value, is_id

ORDER: Final = "ord"
_KEY_BYTES: Final = 16


class OrderState(StrEnum):
    """Where an order stands."""

    OPEN = "open"
    WAITING_FOR_BUYER = "waiting_for_buyer"
    WAITING_FOR_DECISION = "waiting_for_decision"
    ACKNOWLEDGED = "acknowledged"
    CLEARED = "cleared"
    REFUSED = "refused"
    OVERRIDDEN = "overridden"
    """Refused, and manually overridden; a later refusal does not undo that."""
    SHIPPED = "shipped"
    DELIVERED = "delivered"
    CLOSED = "closed"
    """Its link ended, and nothing was initialed."""


_S: Final = OrderState
_ASKING: Final = frozenset({_S.OPEN, _S.WAITING_FOR_BUYER, _S.WAITING_FOR_DECISION})
WAITING: Final = frozenset({_S.WAITING_FOR_BUYER, _S.WAITING_FOR_DECISION})
_UNDECIDED: Final = _ASKING | {_S.CLOSED, _S.REFUSED}
_UNSHIPPED: Final = _UNDECIDED | {_S.ACKNOWLEDGED, _S.CLEARED, _S.OVERRIDDEN}
_REPLACED: Final[Mapping[OrderState, frozenset[OrderState]]] = {
    **dict.fromkeys(_ASKING, _UNDECIDED | {_S.ACKNOWLEDGED}),
    _S.CLOSED: _ASKING,
    _S.ACKNOWLEDGED: _UNDECIDED,
    _S.CLEARED: _UNSHIPPED,
    _S.REFUSED: _UNSHIPPED - {_S.OVERRIDDEN},
    _S.OVERRIDDEN: _UNSHIPPED,
    _S.SHIPPED: _UNSHIPPED,
    _S.DELIVERED: _UNSHIPPED | {_S.SHIPPED},
}
"""Replaced states, by new state."""
AFTER_DUE: Final[Mapping[OrderState, OrderState]] = {
    **dict.fromkeys(_ASKING, _S.CLOSED),
    _S.CLEARED: _S.ACKNOWLEDGED,
}
"""The states after a deadline: a link expires, a clearance loses its validity."""


def replaces(new: OrderState | None, before: OrderState) -> bool:
    """Whether a new state replaces the one before."""
    return new is not None and before in _REPLACED[new]


class OrderAct(NamedTuple):
    """An act on an order, in the order of time."""

    account_id: str
    mode: Mode
    at: int
    """In Unix milliseconds, as `due_at`."""
    key: bytes
    member_id: str
    """The session, check or record that it wrote."""
    notice_id: str | None = None
    state: OrderState | None = None
    """The resulting state; None: unchanged."""
    due_at: int | None = None

    def state_at(self, now: int) -> OrderState:
        """The resulting state at this time."""
        state = self.state or OrderState.OPEN
        is_over = self.due_at is not None and self.due_at <= now
        return AFTER_DUE.get(state, state) if is_over else state


class JoinedOrder(NamedTuple):
    """One order."""

    acts: tuple[OrderAct, ...]
    """Of one account, mode and key, oldest first."""

    @property
    def id(self) -> str:
        """It never changes, and survives an erasure."""
        return order_id(self.first.key)

    @property
    def first(self) -> OrderAct:
        """The act that opened it."""
        return self.acts[0]

    def decisive(self, now: int) -> OrderAct:
        """The act behind its state at this time.

        A link that ended without initials counts only alone.
        """
        changes = [act for act in self.acts if act.state]
        links = {act.member_id: act.state_at(now) for act in changes}
        found = None
        for act in changes:
            is_over = links[act.member_id] in {OrderState.CLOSED, OrderState.OPEN}
            if not is_over and (found is None or replaces(act.state, found.state_at(act.at))):
                found = act
        return found or (changes or self.acts)[-1]

    @property
    def notice_id(self) -> str | None:
        """The notice that was acknowledged."""
        return next((act.notice_id for act in self.acts if act.notice_id), None)

    @property
    def members(self) -> frozenset[str]:
        """The identifiers of all that belongs to it: sessions, checks and records."""
        return frozenset(act.member_id for act in self.acts)

    @property
    def acknowledgments(self) -> list[str]:
        """The acknowledgments, oldest first."""
        return sorted(one for one in self.members if is_id(ACKNOWLEDGMENT, one))


def order_id(key: bytes) -> str:
    """The identifier of the order with this key."""
    text = key.decode() if len(key) == LENGTH else base32(int.from_bytes(key, "big"))
    return f"{ORDER}_{text}"


def key_of_member(member_id: str) -> bytes:
    """The key of an order without session and reference: the identifier of its first act."""
    return member_id[-LENGTH:].encode()


def keys_of_id(id_: str) -> tuple[bytes, bytes]:
    """Both possible keys behind this identifier."""
    text = id_.removeprefix(f"{ORDER}_")
    return base32_value(text).to_bytes(_KEY_BYTES, "big"), text.encode()
