"""What test keys do to their own sandbox by hand: put buyers in a state, and trigger events.

One function an act, each for an account and never for its live mode: the HTTP operations, the
commands and whatever else provokes a vendor's integration call these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Final

from countersign.access.idempotency import IdempotencyEntry
from countersign.access.sandbox_state import NO_BUYER, NewMove, moved, reasons_for
from countersign.access.secrets import DeploymentSecret
from countersign.access.test_clock import TestClock
from countersign.access.test_clocks import TestClocks
from countersign.buyers.model import Buyer, BuyerStatus, Standing, status_at
from countersign.errors import InvalidRequest, NotFound
from countersign.events.model import Event, EventIds, EventType, EventView, NewEvent
from countersign.evidence.canonical import Json
from countersign.ids import (
    ACKNOWLEDGMENT,
    CLEARANCE,
    SANDBOX_BUYER,
    VERIFICATION,
    base32,
    is_id,
    timed_id,
)
from countersign.instant import from_ns
from countersign.log.append_record import Recorder
from countersign.log.record import NewRecord, RecordType
from countersign.mode import Mode
from countersign.ports import Clock, Entropy, SandboxStore
from countersign.reason import Reason

_PROVIDER: Final = "sandbox"
_PREFIXES: Final = {
    "buyer": SANDBOX_BUYER,
    "acknowledgment": ACKNOWLEDGMENT,
    "clearance": CLEARANCE,
}
"""Of the identifiers of objects, by the first word of an event's type."""
_NOTICE_ID_MAX: Final = 64


class MoveBuyer:
    """Puts a sandbox buyer in any state."""

    def __init__(
        self,
        *,
        store: SandboxStore,
        clocks: TestClocks,
        recorder: Recorder,
        secret: DeploymentSecret,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self._store = store
        self._clocks = clocks
        self._recorder = recorder
        self._secret = secret
        self._clock = clock
        self._entropy = entropy

    async def __call__(
        self,
        account_id: str,
        cbid: str,
        status: BuyerStatus,
        reasons: tuple[Reason, ...] = (),
        remember: Callable[[Standing], IdempotencyEntry] | None = None,
    ) -> Standing:
        """The buyer's standing in its new state; the event of that state is written with it.

        Raises:
            NotFound: the account has no such sandbox buyer.
            InvalidRequest: there are reasons, and none belong to this state.
        """
        reasons = reasons_for(status, reasons)
        if not is_id(SANDBOX_BUYER, cbid):
            raise NotFound(NO_BUYER)
        clock = await self._clocks.of(account_id, Mode.TEST)
        time_ns = self._clock.time_ns()
        now = clock.at(from_ns(time_ns))
        told = partial(_standing, now=now)
        result: dict[str, Json] = {
            "status": status.value,
            "reasons": [reason.value for reason in reasons],
        }
        move = NewMove(
            account_id=account_id,
            cbid=cbid,
            provider=_PROVIDER,
            decide=lambda buyer: moved(buyer, status, reasons, now),
            record=await self._record(account_id, cbid, result, clock, time_ns),
            judged_at=now,
            remember=None if remember is None else lambda buyer: remember(told(buyer)),
        )
        return told(await self._store.move_buyer(move))

    async def _record(
        self,
        account_id: str,
        cbid: str,
        result: Mapping[str, Json],
        clock: TestClock,
        time_ns: int,
    ) -> NewRecord:
        members: dict[str, Json] = {
            "provider": _PROVIDER,
            "simulated": True,
            "test_helper": True,
            **clock.member(from_ns(time_ns)),
        }
        return await self._recorder.of_account(
            RecordType.VERIFICATION,
            record_id=timed_id(VERIFICATION, time_ns, self._entropy(8)),
            account_id=account_id,
            mode=Mode.TEST,
            members=members,
            personal=(
                ("cbid", cbid),
                ("provider_identity_session_id", None),
                ("result", result),
            ),
            cbid_index=self._secret.blind_index(account_id, "cbid", cbid),
        )


class TriggerEvent:
    """Writes events that tell of nothing that happened, and say so."""

    def __init__(
        self, *, store: SandboxStore, ids: EventIds, clock: Clock, entropy: Entropy
    ) -> None:
        self._store = store
        self._view = ids.view
        self._clock = clock
        self._entropy = entropy

    async def __call__(
        self,
        account_id: str,
        type_: EventType,
        object_id: str | None = None,
        remember: Callable[[EventView], IdempotencyEntry] | None = None,
    ) -> EventView:
        """The event; it is listed and delivered like any other.

        Without `object_id` it is about an object that there is not.

        Raises:
            InvalidRequest: `object_id` cannot be one of an object that such an event is about.
        """
        time_ns = self._clock.time_ns()
        view = self._view
        event = await self._store.trigger(
            self._event(account_id, type_, object_id, time_ns),
            None if remember is None else lambda event: remember(view(event)),
        )
        return view(event)

    def _event(
        self, account_id: str, type_: EventType, object_id: str | None, time_ns: int
    ) -> NewEvent:
        now = from_ns(time_ns)
        example = Event.example(account_id, Mode.TEST, type_, now)
        prefix = _PREFIXES.get(type_.partition(".")[0])
        if prefix is None:
            if object_id is not None and not 0 < len(object_id) <= _NOTICE_ID_MAX:
                raise InvalidRequest(_NO_OBJECT.format("the id of a notice"))
            object_id = object_id or example.object_id
        elif object_id is None:
            object_id = f"{prefix}_{base32(int.from_bytes(self._entropy(16), 'big'))}"
            if prefix != SANDBOX_BUYER:  # that one is random
                object_id = timed_id(prefix, time_ns, self._entropy(8))
        elif not is_id(prefix, object_id):
            raise InvalidRequest(_NO_OBJECT.format(f"an identifier that begins with {prefix}_"))
        return NewEvent(
            account_id, Mode.TEST, type_, object_id, now, example.version, triggered=True
        )


_NO_OBJECT: Final = "Expected {} for this type of event - at `$.object_id`."


def _standing(buyer: Buyer, now: datetime) -> Standing:
    return Standing(
        status=status_at(buyer, now),
        verified_at=buyer.verified_at,
        expires_at=buyer.expires_at,
        reasons=buyer.reasons,
    )
