"""Test clocks: by how much an account's sandbox is ahead of real time.

A test clock is an offset, not a time that stands still: whatever is asked after it was advanced by
d is judged as it would be d later. Docs: docs/testing.md; why so: docs/decisions/0020.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from countersign.errors import InvalidRequest
from countersign.instant import rfc3339_ms

AHEAD_MAX: Final = timedelta(days=3650)
"""How far ahead of real time a test clock can be."""


class AccountClock(Struct, frozen=True, kw_only=True):
    """How far the sandbox of an account is ahead; nothing: it goes by real time."""

    ahead: timedelta = timedelta(0)

    def at(self, now: datetime) -> datetime:
        """What this clock shows at a real time."""
        return now + self.ahead

    def shown(self, now: datetime) -> datetime | None:
        """What this clock shows at a real time; None where it is real time."""
        return now + self.ahead if self.ahead else None

    def text(self, now: datetime) -> str | None:
        """`test_clock` of a record, whose own time is always real; None where it is the same."""
        return rfc3339_ms(now + self.ahead) if self.ahead else None

    def member(self, now: datetime) -> dict[str, str]:
        """The member `test_clock` of a record, if it has one."""
        text = self.text(now)
        return {} if text is None else {"test_clock": text}

    def advanced(self, step: timedelta) -> AccountClock:
        """This clock, moved ahead.

        Raises:
            InvalidRequest: it would go back, or be further ahead than AHEAD_MAX.
        """
        if step < timedelta(0):
            msg = "A test clock cannot go back; reset it to return to real time."
            raise InvalidRequest(msg)
        ahead = self.ahead + step
        if ahead > AHEAD_MAX:
            msg = f"A test clock can be at most {AHEAD_MAX.days} days ahead of real time."
            raise InvalidRequest(msg)
        return AccountClock(ahead=ahead)

    def advanced_to(self, time: datetime, now: datetime) -> AccountClock:
        """This clock, moved ahead until it shows that time, to the end of its second.

        All times of the API are cut to the second: what they say happens then has happened.

        Raises:
            InvalidRequest: it shows a later time already, or that is too far ahead.
        """
        return self.advanced(time.replace(microsecond=999_000) - self.at(now))


REAL_TIME: Final = AccountClock()
