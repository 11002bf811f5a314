"""What is seen first of an account: its last day by the hour, two weeks by the day, what waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

from msgspec import Meta, Struct
from sqlalchemy import Connection

from countersign.base.http.schemas import Timestamp, view
from countersign.base.values import from_ms, from_ns, to_ms
from countersign.core.access.key import Principal, Scope
from countersign.core.access.reach import AccountReach
from countersign.core.access.room import Access
from countersign.core.clearances.schemas import Code
from countersign.core.gate.act import Acts
from countersign.staff.acts import today_sql as sql
from countersign.staff.acts.accounts import AccountId

HOURS: Final = 24
DAYS: Final = 14

Figure = Annotated[
    int | None,
    Meta(
        description="Counted up to `most`, which stands for that many or more; null: it was not "
        "measured, as before there was the account.",
        examples=[12],
    ),
]
HowMany = Annotated[
    int,
    Meta(description="Counted up to `most`, which stands for that many or more.", examples=[0]),
]


class Figures(Struct, frozen=True, kw_only=True):
    """What happened in an hour or a day, of UTC."""

    begins_at: Timestamp
    acknowledgments: Figure
    cleared: Figure
    refused: Figure
    sessions_completed: Figure
    sessions_declined: Figure
    sessions_expired: Figure
    buyers_verified: Figure
    buyers_failed: Figure


class RefusedFor(Struct, frozen=True, kw_only=True):
    """How often orders were refused for this reason; a decision may have several."""

    reason: Annotated[Code, Meta(examples=["acknowledgment_too_old"])]
    last_hours: Annotated[int, Meta(examples=[1])]
    """In the time of `hours`."""
    last_days: Annotated[int, Meta(examples=[4])]
    """In the time of `days`."""


class Today(Struct, frozen=True, kw_only=True):
    """How an account does in one mode. Nothing in it is personal."""

    account_id: AccountId
    livemode: bool
    at: Timestamp
    """When this was counted."""
    most: Annotated[int, Meta(examples=[sql.MOST])]
    """A figure of so many stands for that many or more: nothing is counted further."""
    hours: Annotated[
        list[Figures],
        Meta(description=f"The last {HOURS} hours, oldest first; the last one goes on."),
    ]
    days: Annotated[
        list[Figures],
        Meta(description=f"The last {DAYS} days, oldest first; the last one goes on."),
    ]
    refusals: list[RefusedFor]
    """The most frequent first."""
    refusals_since: Annotated[
        Timestamp | None,
        Meta(
            description=f"Reasons are counted of the newest {sql.REFUSALS_MOST} refusals: since "
            "when, if `days` has more. null: of all of them."
        ),
    ]
    open_checkout_sessions: HowMany
    buyers_waiting: HowMany
    """In the review queue."""
    deliveries_repeated: HowMany
    """Of webhooks: an attempt has failed, another one is to come."""
    endpoints_disabled: Annotated[int, Meta(examples=[0])]
    """Of webhooks."""


TODAY: Final = Acts("Staff: today", Access, scope=Scope.SEARCH_READ, console=True)


@TODAY.act("GET /v1/today", "See how an account does", reach=AccountReach)
def get_today(connection: Connection, access: Access, who: Principal) -> Today:
    """How an account does: the last 24 hours, the last 14 days, and what waits.

    Hours and days are those of UTC, and of real time in the sandbox too. Of the whole deployment,
    `GET /v1/deployment` shows how it stands.
    """
    return today(connection, who, from_ns(access.clock.time_ns()))


def today(connection: Connection, who: Principal, at: datetime) -> Today:
    """The figures of an account and a mode at this time, by a fixed number of statements."""
    hours, days = lengths(at)
    created_at = sql.created_at(connection, who)
    shown = [
        Figures(begins_at=one.begins, **(found if one.ends > created_at else _UNKNOWN))
        for one, found in zip(
            [*hours, *days], sql.count(connection, who, [*hours, *days]), strict=True
        )
    ]
    refused = sql.refusals(connection, who, days[0].begins)
    is_all = len(refused) < sql.REFUSALS_MOST
    return view(
        Today,
        who,
        at=at,
        most=sql.MOST,
        hours=shown[:HOURS],
        days=shown[HOURS:],
        refusals=_by_reason(refused, to_ms(hours[0].begins)),
        refusals_since=None if is_all else from_ms(min(at_ms for at_ms, _ in refused)),
        **sql.now(connection, who, at),
    )


def lengths(at: datetime) -> tuple[list[sql.Bucket], list[sql.Bucket]]:
    """The hours and the days that are counted at this time, oldest first."""
    hour = at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    midnight = hour.replace(hour=0)
    return _last(HOURS, timedelta(hours=1), hour), _last(DAYS, timedelta(days=1), midnight)


def _last(number: int, length: timedelta, newest: datetime) -> list[sql.Bucket]:
    begins = [newest - length * back for back in reversed(range(number))]
    return [sql.Bucket(one, one + length) for one in begins]


def _by_reason(refused: Sequence[sql.RefusedOrder], since_ms: int) -> list[RefusedFor]:
    all_ = Counter(one for _, reasons in refused for one in reasons)
    late = Counter(one for at_ms, reasons in refused if at_ms >= since_ms for one in reasons)
    return [
        RefusedFor(reason=reason, last_hours=late[reason], last_days=number)
        for reason, number in sorted(all_.items(), key=lambda item: (-item[1], item[0]))
    ]


_UNKNOWN: Final = dict.fromkeys(
    ("acknowledgments", "cleared", "refused", *sql.EVENTS.values()), None
)

ROUTES: Final = TODAY.routes
