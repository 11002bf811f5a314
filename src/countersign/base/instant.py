"""Times of the service: in UTC inside, and outside as in its evidence."""

from datetime import UTC, datetime, timedelta
from typing import Final

from countersign_evidence.instant import from_ns, parse_rfc3339, rfc3339, rfc3339_ms

__all__ = [
    "from_ms",
    "from_ns",
    "parse_rfc3339",
    "rfc3339",
    "rfc3339_ms",
    "to_ms",
    "to_the_second",
]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


def from_ms(unix_ms: int) -> datetime:
    """An instant from Unix time in milliseconds."""
    return _EPOCH + unix_ms * _MILLISECOND


def to_ms(instant: datetime) -> int:
    """Unix time in milliseconds.

    Raises TypeError if the datetime has no time zone.
    """
    return (instant - _EPOCH) // _MILLISECOND


def to_the_second(instant: datetime | None) -> datetime | None:
    """The time without its fraction, which is how the API shows it; None stays None."""
    return None if instant is None else instant.replace(microsecond=0)
