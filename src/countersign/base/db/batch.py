"""A batch: calls that become one transaction or one query, and what has become of it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from msgspec import Struct, field
from sqlalchemy import Connection

from countersign.base.deadline import TimeLeft
from countersign.base.errors import CountersignError

T = TypeVar("T")
R = TypeVar("R")

BatchAct: TypeAlias = Callable[[Connection, Sequence[T]], Sequence[R | CountersignError]]
"""Does something for many items in one transaction: one outcome per item, in the same order.

An outcome that is a CountersignError refuses that item alone. An act that raises has done nothing
for any of them.
"""

_isolated: Final = set[BatchAct[Any, Any]]()


def isolated(act: BatchAct[T, R]) -> BatchAct[T, R]:
    """Behind a pooler, run it after the reads, in a separate transaction.

    For a query that locks rows: reads must not extend the lock.
    """
    _isolated.add(act)
    return act


def is_isolated(call: QueuedCall) -> bool:
    """Whether the act of this call is isolated."""
    return call[0] in _isolated


Make: TypeAlias = Callable[[Sequence[T]], Sequence[R]]
"""Makes items ready for their act on the event loop, before there is a transaction for them."""

QueuedCall: TypeAlias = "tuple[BatchAct[Any, Any], Any, asyncio.Future[Any], float, TimeLeft]"
"""An act, its item, the future of the caller, when it was called, and how long that may take."""
Outcomes: TypeAlias = Sequence[object]
"""One per call: its result, or the exception that it ended with."""


class GivenUp(CountersignError):
    """The callers of a batch have another answer: nothing of it may be committed."""


class Running(Struct, eq=False):
    """A batch that is being worked on."""

    calls: Sequence[QueuedCall]
    since: float = field(default_factory=time.monotonic)
    is_abandoned: bool = False
    """Whether no one waits for its end any more."""
    is_said: bool = False
    """Whether the log says that it takes long."""
    outcomes: Outcomes = ()
    """On the embedded database, of the statements that were done on the event loop."""
    failure: Exception | None = None
    """Likewise: what they failed of."""
    is_given_up: bool = False
    is_ending: bool = False
    """Whether a commit was begun, so that its effect is not known before the end."""
    _gate: threading.Lock = field(default_factory=threading.Lock)

    def end(self) -> None:
        """Call this before a commit is begun.

        Raises GivenUp if the callers have been answered.
        """
        with self._gate:
            if self.is_given_up:
                raise GivenUp
            self.is_ending = True

    def give_up(self) -> bool:
        """Let nothing of it be committed any more; False if that has begun."""
        with self._gate:
            self.is_given_up = self.is_given_up or not self.is_ending
            return self.is_given_up
