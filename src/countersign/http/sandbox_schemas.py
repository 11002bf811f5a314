"""Bodies of requests and answers of the test helpers."""

from typing import Annotated, Final

from msgspec import Meta, Struct

from countersign.domain.buyer import BuyerStatus
from countersign.domain.event import EventType
from countersign.domain.reason import Reason
from countersign.domain.sandbox import CALLS_MAX, DELAY_MAX, Fault
from countersign.domain.test_clock import AHEAD_MAX
from countersign.http.schemas import Opaque, Reference, Request, Timestamp

_AHEAD_SECONDS_MAX: Final = int(AHEAD_MAX.total_seconds())


class ClockAdvance(Request, frozen=True, kw_only=True):
    """How to advance a test clock: one of the two."""

    seconds: (
        Annotated[
            int,
            Meta(ge=0, le=_AHEAD_SECONDS_MAX, description="How far; it never goes back."),
        ]
        | None
    ) = None
    to: (
        Annotated[
            Timestamp,
            Meta(description="Until it shows this time, which it does not show already."),
        ]
        | None
    ) = None


class BuyerMove(Request, frozen=True, kw_only=True):
    """The state that a sandbox buyer is put in."""

    cbid: Annotated[Reference, Meta(description="A buyer of this account's sandbox.")]
    status: BuyerStatus
    reasons: (
        Annotated[
            list[Reason],
            Meta(
                description="Of `failed` and `requires_input`. Left out: the usual one.",
                min_length=1,
                max_length=len(Reason),
            ),
        ]
        | None
    ) = None


class EventTrigger(Request, frozen=True, kw_only=True):
    """Which event to write."""

    type: EventType
    object_id: (
        Annotated[
            Opaque,
            Meta(
                description="What it is about: a `cbid`, `ack_id`, `clearance_id` or `notice_id`. "
                "Left out: an object that there is not.",
                min_length=1,
            ),
        ]
        | None
    ) = None


class FaultRequest(Request, frozen=True, kw_only=True):
    """What the next verifications meet."""

    fault: Fault
    calls: (
        Annotated[
            int, Meta(ge=1, le=CALLS_MAX, description="How many. Left out: all, until cleared.")
        ]
        | None
    ) = None
    delay_seconds: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=int(DELAY_MAX.total_seconds()),
                description="How long each takes to answer. Left out: 0.",
            ),
        ]
        | None
    ) = None


# --- answers ------------------------------------------------------------------------------------


class TestClock(Struct, frozen=True, kw_only=True):
    """The test clock of an account."""

    now: Annotated[Timestamp, Meta(description="What it shows: the sandbox is judged by it.")]
    real_time: Timestamp
    ahead_seconds: Annotated[
        int, Meta(description="How far it is ahead; 0: the sandbox goes by real time.")
    ]


class PlannedFault(Struct, frozen=True, kw_only=True):
    """What verifications in the sandbox meet; all null: what their sessions say."""

    fault: Fault | None
    calls: Annotated[int | None, Meta(description="How many are left. null: no end is set.")]
    delay_seconds: int | None
