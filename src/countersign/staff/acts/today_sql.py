"""Counts for an account and a mode: each figure reads a range of an index, up to a bound.

Counting a bucket stops at `MOST`, which bounds the time for busy accounts. The number of statements
is always the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct, json
from sqlalchemy import Connection, TextClause, func, select, text

from countersign.base.db.tables import (
    EVENT_OF_DAY,
    accounts,
    checkout_sessions,
    webhook_deliveries,
    webhook_endpoints,
)
from countersign.base.values import ACKNOWLEDGMENT, CLEARANCE, earliest_id, to_ms
from countersign.core.access.key import Principal
from countersign.core.buyers.review import count_waiting
from countersign.core.events.model import EventType

MOST: Final = 10_000
REFUSALS_MOST: Final = 1_000
"""The newest refusals, whose reasons are read in their records."""
EVENTS: Final = {
    EventType.CHECKOUT_SESSION_COMPLETED: "sessions_completed",
    EventType.CHECKOUT_SESSION_DECLINED: "sessions_declined",
    EventType.CHECKOUT_SESSION_EXPIRED: "sessions_expired",
    EventType.BUYER_VERIFIED: "buyers_verified",
    EventType.BUYER_FAILED: "buyers_failed",
}
"""The events that are counted: type → name of the figure."""
_OWN: Final = "account_id = :account AND mode = :mode"


def _per_bucket(source: str, of: str = "", figure: str = "k.figure", most: int = MOST) -> str:
    """A query for the number of rows of the source in each bucket, by kind if there are several."""
    return (
        f"{of} SELECT s.number, {figure}, (SELECT count(*) FROM"  # noqa: S608 - our own names
        f" (SELECT 1 FROM {source} LIMIT {most}) AS counted) FROM spans AS s"
        + (" CROSS JOIN kinds AS k" if of else "")
    )


_KINDS_OF_RECORDS: Final = (
    ", kinds (figure, type, prefix) AS (VALUES"
    f" ('acknowledgments', 'acknowledgment', '{ACKNOWLEDGMENT}_'),"
    f" ('decided', 'clearance', '{CLEARANCE}_'))"
)
_KINDS_OF_EVENTS: Final = ", kinds (figure, type) AS (VALUES {})".format(
    ", ".join(f"('{figure}', '{type_.value}')" for type_, figure in EVENTS.items())
)
# Identifiers sort by the time of creation. Twice as many are counted, since as many of the
# decisions may be refusals.
_RECORDS: Final = _per_bucket(
    f"records WHERE {_OWN} AND type = k.type AND id >= k.prefix || s.begins"
    " AND id < k.prefix || s.ends",
    _KINDS_OF_RECORDS,
    most=2 * MOST,
)
_EVENTS: Final = _per_bucket(
    f"events WHERE {_OWN} AND type = k.type AND at >= s.begins AND at < s.ends AND {EVENT_OF_DAY}"
    " AND NOT triggered",
    _KINDS_OF_EVENTS,
)
_REFUSED: Final = _per_bucket(
    f"clearances WHERE {_OWN} AND kid IS NULL AND at >= s.begins AND at < s.ends",
    figure="'refused'",
)
_REASONS: Final = text(
    "SELECT c.at, r.body FROM (SELECT id, at FROM clearances"  # noqa: S608 - our own names
    f" WHERE {_OWN} AND kid IS NULL AND at >= :since ORDER BY at DESC LIMIT {REFUSALS_MOST}) AS c"
    " JOIN records AS r ON r.id = c.id"
)


class _Refusal(Struct):
    reasons: tuple[str, ...] = ()


_read_refusal: Final = json.Decoder(_Refusal).decode


class Bucket(NamedTuple):
    """A half-open interval: `ends` is not part of it."""

    begins: datetime
    ends: datetime


RefusedOrder: TypeAlias = tuple[int, Sequence[str]]
"""A decision against an order: its time in Unix milliseconds, and the reasons."""


def count(
    connection: Connection, who: Principal, buckets: Sequence[Bucket]
) -> list[dict[str, int | None]]:
    """The figures of each bucket: name → number.

    `MOST` stands for that many or more, None for an unknown number.
    """
    times = [(to_ms(one.begins), to_ms(one.ends)) for one in buckets]
    ids = [tuple(earliest_id("", ms)[1:] for ms in one) for one in times]
    found = [dict[str, int]() for _ in buckets]
    for statement, bounds, type_ in (
        (_RECORDS, ids, "VARCHAR(40)"),
        (_EVENTS, times, "BIGINT"),
        (_REFUSED, times, "BIGINT"),
    ):
        own = {"account": who.account_id, "mode": who.mode.value}
        for number, figure, how_often in connection.execute(*_over(statement, bounds, type_, own)):
            found[number][figure] = how_often
    return [_figures(**one) for one in found]


def _figures(*, decided: int, refused: int, **others: int) -> dict[str, int | None]:
    cleared = None if refused == MOST else min(decided - refused, MOST)
    bounded = {name: min(number, MOST) for name, number in others.items()}
    return {"cleared": cleared, "refused": refused, **bounded}


def refusals(connection: Connection, who: Principal, since: datetime) -> list[RefusedOrder]:
    """The newest decisions against orders since then, at most `REFUSALS_MOST`."""
    own = {"account": who.account_id, "mode": who.mode.value, "since": to_ms(since)}
    rows = connection.execute(_REASONS, own)
    return [(at, _read_refusal(bytes(body)).reasons) for at, body in rows]


def created_at(connection: Connection, who: Principal) -> datetime:
    """When the account was created: there are no figures before."""
    of_account = select(accounts.c.created_at).where(accounts.c.id == who.account_id)
    created: datetime = connection.execute(of_account).scalar_one()
    return created


def now(connection: Connection, who: Principal, at: datetime) -> dict[str, int]:
    """The figures at this time by name; `MOST` stands for that many or more."""
    s, e, d = checkout_sessions.c, webhook_endpoints.c, webhook_deliveries.c
    own = {"account_id": who.account_id, "mode": who.mode}
    open_ = select(s.mode).filter_by(**own).where(s.expiry_due_at.is_not(None))
    of_endpoints = select(e.id, e.disabled_at).filter_by(**own).where(e.deleted_at.is_(None))
    endpoints = connection.execute(of_endpoints).all()
    # A delivery with more than one attempt and a due time in the future is being retried.
    repeated = select(d.endpoint_id).where(
        d.endpoint_id.in_([one.id for one in endpoints]), d.due_at > at, d.attempts > 1
    )
    return {
        "open_checkout_sessions": _bounded(connection, open_),
        "buyers_waiting": count_waiting(connection, who.reach, who.mode, MOST),
        "deliveries_repeated": _bounded(connection, repeated),
        "endpoints_disabled": sum(one.disabled_at is not None for one in endpoints),
    }


def _bounded(connection: Connection, found: Any) -> int:  # noqa: ANN401 - of any columns
    number = select(func.count()).select_from(found.limit(MOST).subquery())
    return connection.execute(number).scalar_one()


def _over(
    statement: str, bounds: Sequence[tuple[object, ...]], type_: str, own: Mapping[str, object]
) -> tuple[TextClause, Mapping[str, object]]:
    """The statement over buckets with these bounds, and all its values."""
    begins = {f"b{number}": one for number, (one, _) in enumerate(bounds)}
    ends = {f"e{number}": one for number, (_, one) in enumerate(bounds)}
    rows = ", ".join(
        f"({number}, CAST(:{begin} AS {type_}), CAST(:{end} AS {type_}))"
        for number, (begin, end) in enumerate(zip(begins, ends, strict=True))
    )
    whole = f"WITH spans (number, begins, ends) AS (VALUES {rows}){statement}"
    return text(whole), {**own, **begins, **ends}
