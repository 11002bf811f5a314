"""Times as the pages show them: in UTC, exact, in words that a reader needs no key for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from markupsafe import Markup

_MONTHS: Final = {
    "en": ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
    "es": ["ene", "feb", "mar", "abr", "may", "jun", "jul", "ago", "sept", "oct", "nov", "dic"],
}

_UNITS: Final = {"day": 86_400, "hour": 3600, "minute": 60, "second": 1}
_THOUSANDS: Final = {"en": ",", "es": "\N{NO-BREAK SPACE}"}


def moment(value: str | None, locale: str) -> Markup:
    """An instant of the API (RFC 3339, UTC) as `27 Nov 2026, 21:31:00 UTC`; none: a dash."""
    if not value:
        return Markup("&ndash;")
    return Markup('<time datetime="{}">{}</time>').format(value, plain(value, locale))


def plain(value: str, locale: str) -> str:
    """The same as text alone."""
    at = datetime.fromisoformat(value)
    return f"{at.day} {_MONTHS[locale][at.month - 1]} {at.year}, {at:%H:%M:%S} UTC"


def day(value: str | None, locale: str) -> Markup:
    """The day of an instant, or a day, of the API."""
    if not value:
        return Markup("&ndash;")
    at = datetime.fromisoformat(value)
    text = f"{at.day} {_MONTHS[locale][at.month - 1]} {at.year}"
    return Markup('<time datetime="{}">{}</time>').format(value, text)


def short_day(at: datetime, locale: str) -> str:
    """A day as `27 Nov`."""
    return f"{at.day} {_MONTHS[locale][at.month - 1]}"


def age(value: str, now: str, words: Mapping[str, str]) -> Markup:
    """How long before `now` an instant was, in words; both of the API."""
    seconds = (datetime.fromisoformat(now) - datetime.fromisoformat(value)).total_seconds()
    for unit, length in _UNITS.items():
        number_ = int(seconds // length)
        if number_ >= 1:
            text = words[f"age_{unit}" if number_ == 1 else f"age_{unit}s"].format(number=number_)
            break
    else:
        text = words["age_now"]
    return Markup('<time datetime="{}">{}</time>').format(value, text)


def number(value: int, locale: str) -> str:
    """A whole number with its thousands apart."""
    return f"{value:,}".replace(",", _THOUSANDS[locale])
