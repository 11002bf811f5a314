"""Workers run batches: each has a dedicated connection, and opens another if that breaks.

The one that writes to the embedded database is in `database.py`.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import structlog
from msgspec import Struct, field
from sqlalchemy import URL, Connection, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from countersign.base.db.engine import (
    WHERE,
    ConnectionBreaker,
    Purpose,
    denial,
    is_damage,
    is_deadlock,
    is_unknown_end,
    open_engine,
    translate,
    warnings_of,
)
from countersign.base.db.pooler import is_through_pooler
from countersign.base.db.statements import allow_deferred, deferred_statements, run_deferred
from countersign.base.db.writes import NO_STANDBY
from countersign.base.deadline import RETRY_SECONDS, TimeLeft
from countersign.base.errors import (
    CountersignError,
    DatabasePermissionDenied,
    EvidenceDamaged,
    IdempotencyInProgress,
    InternalError,
    OutcomeUnknown,
    StorageUnavailable,
)
from countersign.base.generics import R, T
from countersign.base.loops import Throttle

BatchAct: TypeAlias = Callable[[Connection, Sequence[T]], Sequence[R | CountersignError]]
"""Does something for many items in one transaction: one outcome per item, in the same order.

An outcome that is a CountersignError refuses that item alone. An act that raises has had no effect
for any item.
"""

_isolated: Final = set[BatchAct[Any, Any]]()


def isolated(act: BatchAct[T, R]) -> BatchAct[T, R]:
    """Behind a pooler, run it after the reads, in a separate transaction.

    For a query that locks rows: reads must not extend the lock.
    """
    _isolated.add(act)
    return act


Make: TypeAlias = Callable[[Sequence[T]], Sequence[R]]
"""Prepares items for their act on the event loop, before the transaction begins."""

QueuedCall: TypeAlias = "tuple[BatchAct[Any, Any], Any, asyncio.Future[Any], float, TimeLeft]"
"""An act, its item, the future of the caller, when it was called, and how long that may take."""
Outcomes: TypeAlias = Sequence[object]
"""One per call: its result, or the exception that it ended with."""


class GivenUp(CountersignError):
    """The callers of a batch already have another response: it must not commit."""


class Running(Struct, eq=False):
    """A batch that is being worked on."""

    calls: Sequence[QueuedCall]
    since: float = field(default_factory=time.monotonic)
    is_abandoned: bool = False
    """Whether no caller waits for it any more."""
    is_said: bool = False
    """Whether the log has a line about its slowness."""
    outcomes: Outcomes = ()
    """Results of the statements that ran on the event loop (embedded database only)."""
    failure: Exception | None = None
    """The error of those statements."""
    is_given_up: bool = False
    is_ending: bool = False
    """Whether the commit has begun: until it ends, its effect is unknown."""
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
        """Prevent the commit; False if it has begun."""
        with self._gate:
            self.is_given_up = self.is_given_up or not self.is_ending
            return self.is_given_up


_UNTESTED_SECONDS: Final = 1.0
"""A connection that was idle for longer is tested before use."""

_REPAIR: Final = (
    "Stop the server, keep its files, check the disk, and restore a backup: docs/backup.md."
)
_LONG_COMMIT_SECONDS: Final = 1.0
"""A standby that responds confirms a commit sooner."""
# It assigns a transaction id and writes: only then does a commit wait for the standby.
_COVERING: Final = ("SELECT pg_logical_emit_message(true, 'countersign', '')", ())
_WAITING_COMMIT: Final = text(
    "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()"
    " AND wait_event = 'SyncRep'"
    " AND state_change < clock_timestamp() - make_interval(secs => :seconds))"
)


_throttle: Final = Throttle(time.monotonic)
_log: Final = structlog.get_logger("countersign.storage")


class BatchWorker:
    """Runs batches of reads on a dedicated connection; subclasses write."""

    writes = False
    is_stale = False
    """Whether another connection is to be used from now on."""

    def __init__(self, url: URL) -> None:
        self.engine = open_engine(url, Purpose.WRITE if self.writes else Purpose.READ)
        self.cut = ConnectionBreaker(self.engine)
        self._connection: Connection | None = None
        """Opened when it is first needed."""
        self._in_transactions = is_through_pooler(url)

    def __call__(self, running: Running) -> Outcomes:
        """The outcomes; if one call fails, each is run alone.

        Each query sees all earlier commits.
        """
        if self.is_stale:
            self._discard_all()
        was_held = self._connection is not None
        if self.writes:
            self._close_idle()
        try:
            if self._connection is None:
                self._connection = self._open()
                self.is_stale = False
            return self._do(self._connection, running, running.calls)
        except GivenUp as error:
            # The connection is as it should be, and may have been hard to get.
            if self._connection is not None:
                allow_deferred(self._connection)  # nothing is left of what was put off
            return [error] * len(running.calls)
        except Exception as error:  # noqa: BLE001 - every caller gets its answer
            if isinstance(translate(error), StorageUnavailable | OutcomeUnknown):
                self._discard_all()
                if was_held and not (running.is_ending or running.is_abandoned):
                    return self(running)  # none of it can have been committed
            return self._recover(running, error)

    def _close_idle(self) -> None:
        """A worker that writes closes a connection that was idle: see there."""

    def close(self) -> None:
        """Let go of the connection; the pool tests it before it gives it out again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def end(self) -> None:
        """Release all resources; the worker is not used afterwards."""
        self.close()
        self.engine.dispose()
        self.cut.close()

    def _open(self) -> Connection:
        connection = self.engine.connect()
        if self.writes:
            allow_deferred(connection)
        return connection

    def _do(
        self, connection: Connection, running: Running, calls: Sequence[QueuedCall]
    ) -> Outcomes:
        """Do the calls of each act together, and put the outcomes in the order of the calls."""
        if self._in_transactions and not connection.in_transaction():
            return self._in_transaction(connection, running, calls)
        places: dict[BatchAct[Any, Any], list[int]] = {}
        for place, (act, *_) in enumerate(calls):
            places.setdefault(act, []).append(place)
        if len(places) == 1:
            only = calls[0][0](connection, [item for _, item, *_ in calls])
            if len(only) != len(calls):
                raise ValueError("an act gives one outcome for each item")
            return only
        outcomes: list[object] = [None] * len(calls)
        for act, own in places.items():
            run_deferred(connection)
            made = act(connection, [calls[place][1] for place in own])
            for place, outcome in zip(own, made, strict=True):
                outcomes[place] = outcome
        return outcomes

    def _in_transaction(
        self, connection: Connection, running: Running, calls: Sequence[QueuedCall]
    ) -> Outcomes:
        """Run the calls in a transaction with limits, then return the session to the pooler."""
        outcomes: list[object] = [None] * len(calls)
        for is_isolated in (False, True):
            places = [
                place for place, call in enumerate(calls) if (call[0] in _isolated) is is_isolated
            ]
            if not places:
                continue
            with connection.begin():
                found = self._do(connection, running, [calls[place] for place in places])
            for place, outcome in zip(places, found, strict=True):
                outcomes[place] = outcome
        return outcomes

    def _recover(self, running: Running, error: Exception) -> Outcomes:
        """The outcomes after a batch failed and was rolled back.

        A fault of the database refuses every call. Otherwise one call spoils the batch, or another
        server has just written the same row or locked the same rows in another order: each call
        gets a separate transaction, which sees that row and locks little.
        """
        self._discard()
        calls = running.calls
        if running.is_given_up:
            return [GivenUp()] * len(calls)
        own = isinstance(error, IntegrityError | CountersignError) or is_deadlock(error)
        if isinstance(error, OutcomeUnknown) or not own:
            refusal = _refusal(error)
            own = isinstance(refusal, InternalError | EvidenceDamaged | DatabasePermissionDenied)
            if len(calls) == 1 or not own:
                return [refusal] * len(calls)
        return [self._alone(running, call) for call in calls]

    def _alone(self, running: Running, call: QueuedCall) -> object:
        if call[2].done():
            return None  # its caller has got another answer
        try:
            with self._open() as connection:
                return self._do(connection, running, [call])[0]
        except Exception as error:  # noqa: BLE001 - the caller gets its answer
            self._discard()
            return _refusal(error)

    def _discard(self) -> None:
        """Roll back by leaving the connection: whatever state it is in, the next one is clean."""
        if self._connection is not None:
            self._connection.invalidate()
        self.close()

    def _discard_all(self) -> None:
        self.is_stale = False
        self._discard()
        # All connections may lead to a server that is gone, or is a standby now.
        self.engine.dispose()


class WritingWorker(BatchWorker):
    """Transactions on PostgreSQL, in one thread."""

    writes = True
    _used_at = 0.0
    _doubted: float | None = None
    """The least time in seconds that a commit, possibly still hanging, has waited."""

    def __init__(self, url: URL, *, answers: bool) -> None:
        """With `answers`, data read in a transaction is durable once the transaction has ended."""
        super().__init__(url)
        self._answers = answers

    def _close_idle(self) -> None:
        if time.monotonic() - self._used_at > _UNTESTED_SECONDS:
            self.close()

    def _do(
        self, connection: Connection, running: Running, calls: Sequence[QueuedCall]
    ) -> Outcomes:
        """Do these in a transaction, whose commit is certain.

        Raises OutcomeUnknown if it is not.
        """
        if self._doubted is not None:
            if self._is_waiting(connection, self._doubted):
                waits = StorageUnavailable(NO_STANDBY, retry_after=RETRY_SECONDS)
                return [waits] * len(calls)
            self._doubted = None
        try:
            with connection.begin():
                outcomes = super()._do(connection, running, calls)
                warnings = warnings_of(connection)
                warnings.clear()
                running.end()
                if self._answers:
                    deferred_statements(connection).statements.append(_COVERING)
                run_deferred(connection, commit=True)
        except DBAPIError as error:
            if running.is_ending and is_unknown_end(error):
                self._doubt(running)
                raise OutcomeUnknown(retry_after=RETRY_SECONDS) from error
            raise
        if warnings:
            _log.error("commit_uncertain", states=[*warnings])
            self._doubt(running)
            raise OutcomeUnknown(retry_after=RETRY_SECONDS)
        self._used_at = time.monotonic()
        return outcomes

    def _doubt(self, running: Running) -> None:
        """From now on check first whether commits hang."""
        waited = time.monotonic() - running.since
        self._doubted = waited / 2 if running.is_abandoned else _LONG_COMMIT_SECONDS

    def _is_waiting(self, connection: Connection, seconds: float) -> bool:
        """Whether a new commit would hang as an earlier one does, which cannot be cancelled.

        A hanging commit keeps its session on the server, and sessions are limited.
        """
        with connection.begin():
            return bool(connection.execute(_WAITING_COMMIT, {"seconds": seconds}).scalar_one())


def _refusal(error: Exception) -> CountersignError:
    refusal = translate(error)
    # A conflict of two requests is a normal response to one of them, not a fault of the database.
    if refusal is not error and not isinstance(refusal, IdempotencyInProgress):
        log_error(error, refusal)
    return refusal


def say_damage(state: str) -> None:
    """For the log: the database is damaged, as this names it."""
    _log.error("database_damaged", state=state, what_to_do=_REPAIR)


def log_error(error: Exception, refusal: CountersignError) -> None:
    """Log an error of the driver, and the refusal that its callers get."""
    # The driver's message can hold values of rows: only its kind is logged.
    origin = getattr(error, "orig", None)
    kind, state = type(error).__name__, getattr(origin, "sqlstate", None)
    state = state or getattr(origin, "sqlite_errorname", None)
    unsaid = _throttle(kind, state, refusal.code)
    if unsaid is None:
        return
    damage = {"what_to_do": _REPAIR} if is_damage(refusal) else {}
    _log.error(
        "database_damaged" if damage else "database_error",
        kind=kind,
        # On the embedded database, reads on the event loop have no lane.
        lane=getattr(WHERE, "lane", "read"),
        host=getattr(WHERE, "host", None),
        cause=type(origin).__name__ if origin is not None else None,
        state=state,
        denied=denial(error) if isinstance(error, DBAPIError) else None,
        answered=refusal.code,
        unsaid=unsaid,
        **damage,
    )
