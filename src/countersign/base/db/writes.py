"""Whether writes succeed: what the processes of a server note, and what follows from it.

Readiness, the metrics and the refusals of callers all read it here.
"""

from __future__ import annotations

from ctypes import Structure, c_double
from typing import ClassVar, Final

from countersign.base.db.engine import READ_ONLY, disk_full
from countersign.base.deadline import RETRY_SECONDS
from countersign.base.errors import (
    Blocked,
    CountersignError,
    DatabasePermissionDenied,
    OutcomeUnknown,
    Overloaded,
    StorageUnavailable,
)

PATIENCE_SECONDS: Final = 2.5
"""Our own commands hold locks for less, and within three seconds readiness tells the truth."""
TRY_SECONDS: Final = 1.0
"""If nobody has tried to write for so long, a server writes something that nobody needs."""
NO_STANDBY: Final = "The database waits for its standby."

_CAUSES: Final = (
    StorageUnavailable(),
    Blocked(),
    disk_full(),
    StorageUnavailable(READ_ONLY),
    StorageUnavailable(NO_STANDBY),
    StorageUnavailable("The database cannot be written."),
)
"""The number of a cause is shared. The first: nothing was heard; the last: any other."""
_WORDS: Final = tuple(cause.message for cause in _CAUSES)
LOCKED: Final = 1
FULL: Final = 2

FAILURES: Final = (
    StorageUnavailable,
    OutcomeUnknown,
    Overloaded,
    Blocked,
    DatabasePermissionDenied,
)
"""A write refused by one of these did not get through; the database has answered any other."""


class Writes(Structure):
    """The last writes of all processes of a server, by the machine's monotonic clock in seconds.

    Each field is stored whole and without a lock. A store that another one overtakes is made up for
    by the next write, which is at most `try_writing` away.
    """

    done: float
    """When one was last durable; 0: never."""
    since: float
    """When the first try after that began; 0: there is none."""
    failed: float
    """When a try last did not get through."""
    cause: float
    """Why: the place of the cause among all."""

    _fields_: ClassVar = [(name, c_double) for name in ("done", "since", "failed", "cause")]

    def fail(self, failure: CountersignError, now: float) -> None:
        """Note that a try ended with this."""
        words = Blocked().message if isinstance(failure, Overloaded) else failure.message
        self.cause = _WORDS.index(words) if words in _WORDS else len(_WORDS) - 1
        self.failed = now

    def refusal(self, now: float) -> Blocked | StorageUnavailable | None:
        """Why nobody can write, by the newest cause; None: writes succeed, or none is tried.

        Nobody can if no write has succeeded for `PATIENCE_SECONDS`, or ever, while some were tried.
        """
        is_early = self.done and now - max(self.done, self.since) < PATIENCE_SECONDS
        if is_early or not self.since:
            return None
        cause = _CAUSES[int(self.cause) if self.failed > self.done else 0]
        return type(cause)(cause.message, retry_after=RETRY_SECONDS)
