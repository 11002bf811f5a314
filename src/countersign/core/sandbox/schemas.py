"""Bodies of the test helpers, with examples."""

from typing import Annotated

from msgspec import Meta, Struct

from countersign.base.http.schemas import Opaque, Reference, Request, Timestamp
from countersign.base.values import Reason
from countersign.core.access.clocks import AHEAD_MAX
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.sandbox import CALLS_MAX, DELAY_SECONDS_MAX, Fault
from countersign.core.events.model import EventType

_Seconds = Annotated[
    int,
    Meta(
        ge=0,
        le=int(AHEAD_MAX.total_seconds()),
        description="How far to advance. The clock cannot go back.",
    ),
]
_Time = Annotated[
    Timestamp,
    Meta(description="The time to advance to; must be later than the clock's present time."),
]
_Reasons = Annotated[
    list[Reason],
    Meta(
        description="Reasons for `failed` or `requires_input`. Left out: the usual one.",
        min_length=1,
        max_length=len(Reason),
    ),
]
_Object = Annotated[
    Opaque,
    Meta(
        description="The object of the event: a `cbid`, `ack_id`, `clearance_id`, "
        "`checkout_session_id` or `notice_id`. Left out: a made-up id.",
        min_length=1,
    ),
]
_Calls = Annotated[
    int,
    Meta(
        ge=1,
        le=CALLS_MAX,
        description="The number of calls. Left out: all calls, until cleared.",
    ),
]
_Delay = Annotated[
    int,
    Meta(
        ge=0,
        le=DELAY_SECONDS_MAX,
        description=f"The response time of each call, at most {DELAY_SECONDS_MAX} seconds. "
        "Left out: 0.",
    ),
]


class ClockAdvance(Request, frozen=True, kw_only=True):
    """How to advance a test clock: one of the two."""

    seconds: _Seconds | None = None
    to: _Time | None = None


class BuyerMove(Request, frozen=True, kw_only=True):
    """The new status of a sandbox buyer."""

    cbid: Reference
    """A buyer in this account's sandbox."""
    status: BuyerStatus
    reasons: _Reasons | None = None


class EventTrigger(Request, frozen=True, kw_only=True):
    """The event to write."""

    type: EventType
    object_id: _Object | None = None


class FaultRequest(Request, frozen=True, kw_only=True):
    """The fault that the next verifications get."""

    fault: Fault
    calls: _Calls | None = None
    delay_seconds: _Delay | None = None


class TestClock(Struct, frozen=True, kw_only=True):
    """The test clock of an account."""

    now: Timestamp
    """The time that the clock shows and that the sandbox uses."""
    real_time: Timestamp
    ahead_seconds: Annotated[int, Meta(examples=[0])]
    """How far the clock is ahead; 0: the sandbox uses real time."""
