"""Times: aware datetimes in UTC inside, RFC 3339 outside."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND: Final = timedelta(milliseconds=1)
_RFC3339: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})\Z", re.ASCII
)


def from_ns(time_ns: int) -> datetime:
    """An instant from Unix time in nanoseconds, cut to the millisecond."""
    return EPOCH + time_ns // 1_000_000 * MILLISECOND


def rfc3339(instant: datetime) -> str:
    """`2026-11-20T21:31:00Z`: the form of every time in the API (cut to the second)."""
    utc = instant if instant.tzinfo is UTC else _in_utc(instant)
    return utc.isoformat(timespec="seconds")[:-6] + "Z"


def rfc3339_ms(instant: datetime) -> str:
    """`2026-11-20T21:31:00.123Z`: the form of a time in a record."""
    utc = instant if instant.tzinfo is UTC else _in_utc(instant)
    return utc.isoformat(timespec="milliseconds")[:-6] + "Z"


def _in_utc(instant: datetime) -> datetime:
    if instant.tzinfo is None:
        raise TypeError("a time without a zone")
    return instant.astimezone(UTC)


def parse_rfc3339(text: str) -> datetime:
    """Read an RFC 3339 time (a zone is required), to the microsecond.

    Raises ValueError if the text is not an RFC 3339 time.
    """
    match = _RFC3339.match(text)
    if match is None:
        raise ValueError(f"not an RFC 3339 time such as 2026-11-20T21:31:00Z: {text!r}")
    fraction = match[1] or ""
    plain = text.replace(fraction, fraction[:7], 1) if len(fraction) > len(".123456") else text
    try:
        return datetime.fromisoformat(plain.upper()).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"not a time that exists: {text!r}") from error
