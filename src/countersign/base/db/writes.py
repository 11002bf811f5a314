"""Whether writes succeed: what the processes of a server note, and what follows from it.

Readiness, the metrics and the refusals of callers all read it here.
"""

from __future__ import annotations

from mmap import mmap
from typing import Final

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

REFUSED: Final = (StorageUnavailable, OutcomeUnknown, Overloaded, Blocked, DatabasePermissionDenied)
"""A write refused by one of these did not get through; the database has answered any other."""

DONE: Final = 0
"""The cell of when a write was last durable; 0: never."""
SINCE: Final = 1
"""When the first try after that began; 0: there is none."""
FAILED: Final = 2
"""When a try last did not get through."""
CAUSE: Final = 3
"""Why: the place of the cause among all."""


class Writes:
    """The last writes of this process and all that it forks, by the machine's monotonic clock.

    Each cell is stored whole, without a lock or a call: every batch does it. A store that another
    one overtakes is made up for by the next write, which is at most `try_writing` away.
    """

    def __init__(self) -> None:
        self.cells = memoryview(mmap(-1, 4 * 8)).cast("d")
        """In seconds."""

    def fail(self, failure: CountersignError, now: float) -> None:
        """Note that a try ended with this."""
        words = Blocked().message if isinstance(failure, Overloaded) else failure.message
        cause = _WORDS.index(words) if words in _WORDS else len(_WORDS) - 1
        self.cells[FAILED], self.cells[CAUSE] = now, cause

    def refusal(self, now: float) -> Blocked | StorageUnavailable | None:
        """Why nobody can write, by the newest cause; None: writes succeed, or none is tried.

        Nobody can if no write has succeeded for `PATIENCE_SECONDS`, or ever, while some were tried.
        """
        done, since, failed, cause = self.cells
        if not since or (done and now - max(done, since) < PATIENCE_SECONDS):
            return None
        known = _CAUSES[int(cause) if failed > done else 0]
        return type(known)(known.message, retry_after=RETRY_SECONDS)
