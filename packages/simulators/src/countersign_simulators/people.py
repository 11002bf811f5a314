"""Invented persons with documents, and dates that depend on the day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from countersign_simulators.base import timestamp

_ZONE: Final = ZoneInfo("America/Los_Angeles")
"""Where birthdays begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody who does not exist, as a document describes them."""

    first: str
    last: str
    born: str | None
    """ISO 8601."""
    number: str
    """Of the document."""
    street: str
    city: str
    state: str | None = "CA"
    postcode: str
    country: str = "US"
    kind: str = "driving_license"
    """The type of the document, in the provider's words."""
    expires: date | None = None
    """Four years from today if None."""
    phone: str = ""
    id_number: str = ""
    mail_domain: str = "buyer.example"
    """A domain that no one can have (RFC 2606)."""

    @property
    def email(self) -> str:
        return f"{self.first}.{self.last}@{self.mail_domain}".lower()

    def texts(self, *names: str) -> tuple[str, ...]:
        """The values of these members, without empty ones."""
        return tuple(value for name in names if (value := getattr(self, name)))

    def words(self) -> dict[str, object]:
        """Every member by its name, for the tables; the last day of the document in ISO 8601."""
        expires = None if self.expires is None else self.expires.isoformat()
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return own | {"email": self.email, "expires": expires}


def day(now: float, *, days: int = 0, years: int = 0) -> date:
    """The day in California, this many days and years from a Unix time; always an existing day."""
    today = datetime.fromtimestamp(now, _ZONE).date() + timedelta(days=days)
    return today.replace(year=today.year + years, day=min(today.day, 28)) if years else today


def birthday(now: float, years: int, *, days_later: int = 0) -> str:
    """The date of birth of a person who reaches this age in this many days.

    29 February becomes 28 February in a year without it or, for a birthday to come, 1 March, so
    that the person is old enough, or is not yet.
    """
    of_age = day(now, days=days_later)
    try:
        return of_age.replace(year=of_age.year - years).isoformat()
    except ValueError:
        return date(of_age.year - years, *((3, 1) if days_later > 0 else (2, 28))).isoformat()


def days_of(now: float) -> Mapping[str, object]:
    """The days that depend on today, by the words of the tables; `now` is in Unix seconds."""
    return {
        "is_18": birthday(now, 18),
        "is_18_tomorrow": birthday(now, 18, days_later=1),
        "is_17": birthday(now, 17),
        "is_16": birthday(now, 16),
        "is_16_soon": birthday(now, 16, days_later=100),
        "yesterday": day(now, days=-1).isoformat(),
        "a_day_ago": timestamp(now - 86400),
        "over_a_year_ago": day(now, years=-1) - timedelta(days=1),
    }
