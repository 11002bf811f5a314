"""Made-up people for the simulated Veriff and Didit, and what their age is reckoned from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

_ZONE: Final = ZoneInfo("America/Los_Angeles")


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A made-up person, in the spelling of a document."""

    first: str
    last: str
    born: str
    number: str
    street: str
    city: str
    state: str
    postcode: str
    country: str

    @property
    def personal(self) -> tuple[str, ...]:
        """Every personal string of them."""
        return (self.first, self.last, self.born, self.number, self.street)


def today(now: float) -> date:
    """The day in California at a Unix time."""
    return datetime.fromtimestamp(now, UTC).astimezone(_ZONE).date()


def turned(years: int, day: date) -> str:
    """The birth date of somebody who is of this age on that day, if only just."""
    # Where there was no such day, the one before it.
    day = day.replace(day=28) if (day.month, day.day) == (2, 29) else day
    return day.replace(year=day.year - years).isoformat()


def turns_tomorrow(years: int, day: date) -> str:
    """The birth date of somebody who reaches this age on the day after."""
    next_day = day + timedelta(days=1)
    if (next_day.month, next_day.day) == (2, 29):
        return date(next_day.year - years, 3, 1).isoformat()
    return next_day.replace(year=next_day.year - years).isoformat()


def merged(plain: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """`plain` with the members of `other`, also inside; `...` leaves a member out."""
    result = dict(plain)
    for name, value in other.items():
        within = result.get(name)
        if value is ...:
            result.pop(name, None)
        elif isinstance(value, Mapping) and isinstance(within, Mapping):
            result[name] = merged(within, value)
        else:
            result[name] = value
    return result
