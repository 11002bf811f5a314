"""Made-up people with documents for the simulated Stripe and Persona, and their birthdays."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

ZONE: Final = ZoneInfo("America/Los_Angeles")
"""Where birthdays begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody who does not exist, with a document."""

    first: str
    last: str
    line1: str
    city: str
    number: str
    born: date | None = date(1984, 2, 29)
    state: str | None = "CA"
    zip: str = "94110"
    country: str = "US"
    kind: str = "driving_license"
    expires: date | None = None
    """Four years from today if not given."""

    @property
    def email(self) -> str:
        """An address that nobody can have (RFC 2606)."""
        return f"{self.first}.{self.last}@buyer.example".lower()

    @property
    def personal(self) -> tuple[str, ...]:
        """Every personal string; the date of birth as ISO 8601 writes it."""
        born = () if self.born is None else (self.born.isoformat(),)
        return (self.first, self.last, self.line1, self.number, self.email, *born)


def born_years_ago(now: float, years: int, *, days_later: int = 0) -> date:
    """The date of birth of somebody who has this birthday so many days from today.

    A day that the year of birth did not have becomes the one before or, for a birthday to come,
    the one after, so that the person is old enough, or is not yet.
    """
    day = datetime.fromtimestamp(now, ZONE).date() + timedelta(days=days_later)
    try:
        return day.replace(year=day.year - years)
    except ValueError:
        return date(day.year - years, *((3, 1) if days_later > 0 else (2, 28)))


def years_from_now(now: float, years: int) -> date:
    """A day so many years from now; always one that exists."""
    day = datetime.fromtimestamp(now, ZONE).date()
    return day.replace(year=day.year + years, day=min(day.day, 28))
