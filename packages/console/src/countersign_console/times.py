"""Times as the pages show them: exact, in words that a reader needs no key for.

They are in UTC; where the person chose a zone, in that zone with UTC beside it. What leaves the
console as evidence has UTC alone: it is made by `plain`, or by the API.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from jinja2 import pass_context
from jinja2.runtime import Context
from markupsafe import Markup

_MONTHS: Final = {
    "en": ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
    "es": ["ene", "feb", "mar", "abr", "may", "jun", "jul", "ago", "sept", "oct", "nov", "dic"],
}

_UNITS: Final = {"day": 86_400, "hour": 3600, "minute": 60, "second": 1}
_THOUSANDS: Final = {"en": ",", "es": "\N{NO-BREAK SPACE}"}


@cache
def zones() -> Sequence[str]:
    """The zones that a person can choose, by name."""
    return sorted(one for one in available_timezones() if "/" in one and one[:4] != "Etc/")


@pass_context
def moment(context: Context, value: str | None, locale: str) -> Markup:
    """An instant of the API (RFC 3339, UTC) as `27 Nov 2026, 21:31:00 UTC`; none: a dash.

    In the person's zone: `27 Nov 2026, 13:31:00 PST (21:31:00 UTC)`.
    """
    if not value:
        return Markup("&ndash;")
    if not (zone := context.get("zone")):
        return Markup('<time datetime="{}">{}</time>').format(value, plain(value, locale))
    utc = datetime.fromisoformat(value)
    at = utc.astimezone(ZoneInfo(zone))
    day_of = f"{short_day(utc, locale)}, " if at.date() != utc.date() else ""
    return Markup(
        '<time datetime="{}" data-zone>{}, {} <span class="quiet">({}{})</span></time>'
    ).format(value, _date(at, locale), f"{at:%H:%M:%S %Z}", day_of, f"{utc:%H:%M:%S} UTC")


def plain(value: str, locale: str) -> str:
    """An instant in UTC as text alone."""
    at = datetime.fromisoformat(value)
    return f"{_date(at, locale)}, {at:%H:%M:%S} UTC"


@pass_context
def day(context: Context, value: str | None, locale: str) -> Markup:
    """The day of an instant in the person's zone, or a day, of the API."""
    if not value:
        return Markup("&ndash;")
    at, zone = datetime.fromisoformat(value), context.get("zone")
    at = at.astimezone(ZoneInfo(zone)) if zone and at.tzinfo else at
    return Markup('<time datetime="{}">{}</time>').format(value, _date(at, locale))


def _date(at: datetime, locale: str) -> str:
    return f"{short_day(at, locale)} {at.year}"


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
