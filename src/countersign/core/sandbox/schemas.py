"""Bodies of the test helpers, with examples."""

from typing import Annotated

from msgspec import Meta, Struct

from countersign.base.http.schemas import Reference, Request, Timestamp
from countersign.base.values import Reason
from countersign.core.access.clocks import AHEAD_MAX
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.sandbox import CALLS_MAX, DELAY_SECONDS_MAX, Fault
from countersign.core.events.model import EventType


class ClockAdvance(Request, frozen=True, kw_only=True):
    """How to advance a test clock: one of the two."""

    seconds: Annotated[int, Meta(ge=0, le=int(AHEAD_MAX.total_seconds()))] | None = None
    """How far to advance. The clock cannot go back."""
    to: Timestamp | None = None
    """The time to advance to; must be later than the clock's present time."""


class BuyerMove(Request, frozen=True, kw_only=True):
    """The new status of a sandbox buyer."""

    cbid: Reference
    """A buyer in this account's sandbox."""
    status: BuyerStatus
    reasons: Annotated[list[Reason], Meta(min_length=1, max_length=len(Reason))] | None = None
    """Reasons for `failed` or `requires_input`. Left out: the usual one."""


class EventTrigger(Request, frozen=True, kw_only=True):
    """The event to write."""

    type: EventType
    object_id: Reference | None = None
    """The object of the event: a `cbid`, `ack_id`, `clearance_id`, `checkout_session_id` or
    `notice_id`. Left out: a made-up id."""


class FaultRequest(Request, frozen=True, kw_only=True):
    """The fault that the next verifications get."""

    fault: Fault
    calls: Annotated[int, Meta(ge=1, le=CALLS_MAX)] | None = None
    """The number of calls. Left out: all calls, until cleared."""
    delay_seconds: Annotated[int, Meta(ge=0, le=DELAY_SECONDS_MAX)] | None = None
    """The response time of each call, at most 15 seconds. Left out: 0."""


class TestClock(Struct, frozen=True, kw_only=True):
    """The test clock of an account."""

    now: Timestamp
    """The time that the clock shows and that the sandbox uses."""
    real_time: Timestamp
    ahead_seconds: Annotated[int, Meta(examples=[0])]
    """How far the clock is ahead; 0: the sandbox uses real time."""
