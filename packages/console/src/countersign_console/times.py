"""Times as the pages show them: in UTC, exact, in words that a reader needs no key for."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from markupsafe import Markup

_MONTHS: Final = {
    "en": ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
    "es": ["ene", "feb", "mar", "abr", "may", "jun", "jul", "ago", "sept", "oct", "nov", "dic"],
}


def moment(value: str | None, locale: str) -> Markup:
    """An instant of the API (RFC 3339, UTC) as `27 Nov 2026, 21:31:00 UTC`; none: a dash."""
    if not value:
        return Markup("&ndash;")
    at = datetime.fromisoformat(value)
    text = f"{at.day} {_MONTHS[locale][at.month - 1]} {at.year}, {at:%H:%M:%S} UTC"
    return Markup('<time datetime="{}">{}</time>').format(value, text)


def day(value: str | None, locale: str) -> Markup:
    """The day of an instant, or a day, of the API."""
    if not value:
        return Markup("&ndash;")
    at = datetime.fromisoformat(value)
    text = f"{at.day} {_MONTHS[locale][at.month - 1]} {at.year}"
    return Markup('<time datetime="{}">{}</time>').format(value, text)
