"""What does batches: each has one connection to itself, and finds another if that breaks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import structlog
from sqlalchemy import URL, Connection, RootTransaction, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from countersign.db.batching import BatchAct, GivenUp, Outcomes, QueuedCall, Running, is_apart
from countersign.db.bulk import allow_late, do_late, late_statements
from countersign.db.engine import (
    BUSY_TIMEOUT_SECONDS,
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
    without_busy_timeout,
)
from countersign.db.pooler import is_through_pooler
from countersign.errors import (
    CountersignError,
    DatabasePermissionDenied,
    EvidenceDamaged,
    IdempotencyInProgress,
    InternalError,
    OutcomeUnknown,
    Overloaded,
    StorageUnavailable,
)
from countersign.loops import log_failure
from countersign.patience import RETRY_SECONDS
from countersign.seldom import Seldom

_UNTESTED_SECONDS: Final = 1.0
"""How long a connection may have been idle, and is used without a question whether it is there."""

_REPAIR: Final = (
    "Stop the server, keep its files, check the disk, and restore a backup: docs/backup.md."
)
_NO_STANDBY: Final = "The database waits for its standby."
_LONG_COMMIT_SECONDS: Final = 1.0
"""No commit waits so long for a standby that responds."""
# It assigns a transaction id and writes: only then does a commit wait for the standby.
_COVERING: Final = ("SELECT pg_logical_emit_message(true, 'countersign', '')", ())
_WAITING_COMMIT: Final = text(
    "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()"
    " AND wait_event = 'SyncRep'"
    " AND state_change < clock_timestamp() - make_interval(secs => :seconds))"
)


_seldom: Final = Seldom(time.monotonic)
_log: Final = structlog.get_logger("countersign.storage")


class HoldingWorker:
    """Has a connection of its own, from when it is first needed."""

    is_stale = False
    """Whether another connection is to be used from now on."""

    def __init__(self, url: URL, purpose: Purpose) -> None:
        self.engine = open_engine(url, purpose)
        self.cut = ConnectionBreaker(self.engine)
        self._connection: Connection | None = None

    def close(self) -> None:
        """Let go of the connection; the pool tests it before it gives it out again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def end(self) -> None:
        """Let go of all that is held; nothing is asked for afterwards."""
        self.close()
        self.engine.dispose()
        self.cut.close()

    def _connect(self) -> Connection:
        self._connection = connection = self.engine.connect()
        self.is_stale = False
        return connection

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


class ReadingWorker(HoldingWorker):
    """Look-ups, one batch after the other."""

    writes = False

    def __init__(self, url: URL) -> None:
        super().__init__(url, Purpose.READ)
        self._in_transactions = is_through_pooler(url)

    def __call__(self, running: Running) -> Outcomes:
        """The outcomes; each query sees what was committed before it."""
        if self.is_stale:
            self._discard_all()
        is_new = self._connection is None
        try:
            if self._in_transactions:
                return self._in_transaction(running.calls)
            return _run(self._connection or self._connect(), running.calls)
        except Exception as error:  # noqa: BLE001 - every caller gets its answer
            if isinstance(translate(error), StorageUnavailable):
                self._discard_all()
                if not (is_new or running.is_abandoned):
                    return self(running)
            self._discard()
            return _apart(running.calls, error, self._alone)

    def _in_transaction(self, calls: Sequence[QueuedCall]) -> Outcomes:
        """With its limits, and at its end the session goes back to the pooler."""
        connection = self._connection or self._connect()
        outcomes: list[object] = [None] * len(calls)
        for apart in (False, True):
            places = [place for place, call in enumerate(calls) if is_apart(call) is apart]
            if not places:
                continue
            with connection.begin():
                found = _run(connection, [calls[place] for place in places])
            for place, outcome in zip(places, found, strict=True):
                outcomes[place] = outcome
        return outcomes

    def _alone(self, call: QueuedCall) -> object:
        try:
            if self._in_transactions:
                return self._in_transaction([call])[0]
            return _run(self._connection or self._connect(), [call])[0]
        except Exception as error:  # noqa: BLE001 - the caller gets its answer
            self._discard()
            return _refusal(error)


class WritingWorker(HoldingWorker):
    """Transactions on PostgreSQL, in one thread."""

    writes = True
    _used_at = 0.0
    _doubted: float | None = None
    """For how many seconds a commit has waited at least that may wait still."""

    def __init__(self, url: URL, *, answers: bool) -> None:
        """With `answers`, what is read in a transaction lasts once that has ended."""
        super().__init__(url, Purpose.WRITE)
        self._answers = answers

    def __call__(self, running: Running) -> Outcomes:
        """The outcomes, after the commit; after a failure each call gets its own transaction."""
        if self.is_stale:
            self._discard_all()
        was_held = self._connection is not None
        try:
            return self._transact(running)
        except GivenUp as error:  # the connection itself is as it should be
            if self._connection is not None:
                allow_late(self._connection)  # and nothing is left of what was put off
            return [error] * len(running.calls)
        except Exception as error:  # noqa: BLE001 - every caller gets its answer
            is_away = isinstance(translate(error), StorageUnavailable | OutcomeUnknown)
            if is_away:
                self._discard_all()
                if running.is_ending:
                    self._doubt(running)
                elif was_held and not running.is_abandoned:
                    return self(running)  # nothing of it can have been committed
            self._discard()
            return self._apart(running, error)

    def _transact(self, running: Running) -> Outcomes:
        if self._connection is not None and time.monotonic() - self._used_at > _UNTESTED_SECONDS:
            self.close()
        if self._connection is None:
            allow_late(self._connect())
        assert self._connection is not None  # noqa: S101 - it has just been made
        if self._doubted is not None:
            if self._is_waiting(self._connection, self._doubted):
                waits = StorageUnavailable(_NO_STANDBY, retry_after=RETRY_SECONDS)
                return [waits] * len(running.calls)
            self._doubted = None
        outcomes = self._committed(self._connection, running, running.calls)
        self._used_at = time.monotonic()
        return outcomes

    def _doubt(self, running: Running) -> None:
        """From now on look first whether commits get to their end."""
        waited = time.monotonic() - running.since
        self._doubted = waited / 2 if running.is_abandoned else _LONG_COMMIT_SECONDS

    def _is_waiting(self, connection: Connection, seconds: float) -> bool:
        """Whether a new commit would wait like one of before, which no one can break off.

        Its session stays on the server, and there is room for a limited number of them.
        """
        with connection.begin():
            return bool(connection.execute(_WAITING_COMMIT, {"seconds": seconds}).scalar_one())

    def _committed(
        self, connection: Connection, running: Running, calls: Sequence[QueuedCall]
    ) -> Outcomes:
        """Do these in a transaction, whose commit is certain.

        Raises OutcomeUnknown if it is not.
        """
        try:
            with connection.begin():
                outcomes = _run(connection, calls)
                warnings = warnings_of(connection)
                warnings.clear()
                running.end()
                late = late_statements(connection)
                if late is not None and self._answers:
                    late.statements.append(_COVERING)
                do_late(connection, commit=True)
        except DBAPIError as error:
            if running.is_ending and is_unknown_end(error):
                raise OutcomeUnknown(retry_after=RETRY_SECONDS) from error
            raise
        if warnings:
            _log.error("commit_uncertain", states=[*warnings])
            raise OutcomeUnknown(retry_after=RETRY_SECONDS)
        return outcomes

    def _apart(self, running: Running, error: Exception) -> Outcomes:
        if running.is_given_up:
            return [GivenUp()] * len(running.calls)
        return _apart(running.calls, error, partial(self._alone, running))

    def _alone(self, running: Running, call: QueuedCall) -> object:
        if call[2].done():
            return None  # its caller has got another answer
        try:
            with self.engine.connect() as connection:
                allow_late(connection)
                return self._committed(connection, running, [call])[0]
        except Exception as error:  # noqa: BLE001 - the caller gets its answer
            if isinstance(error, OutcomeUnknown):
                self._doubt(running)
            return _refusal(error)


class EmbeddedWorker(HoldingWorker):
    """Transactions on the embedded database, in two steps: a thread waits for the disk alone."""

    _transaction: RootTransaction | None = None
    _failure: Exception | None = None

    def __init__(self, url: URL) -> None:
        super().__init__(url, Purpose.WRITE)
        self.on_commit: Callable[[], None] = lambda: None
        self.on_rollback: Callable[[], None] = lambda: None
        """Called after each transaction, in the thread that ends it, before anyone is answered."""

    def _discard(self) -> None:
        super()._discard()
        self.on_rollback()

    def prepare(self, calls: Sequence[QueuedCall]) -> Outcomes | None:
        """Begin, and do the calls; `commit` deals with a failure.

        None if another process is writing: try again later.
        """
        self._failure = None
        try:
            if self._connection is None:
                self._connection = without_busy_timeout(self.engine.connect())
                allow_late(self._connection)
            self._transaction = self._connection.begin()
            return _run(self._connection, calls)
        except Exception as error:  # noqa: BLE001 - every caller gets its answer
            is_locked = not isinstance(error, CountersignError) and isinstance(
                translate(error), Overloaded
            )
            if self._connection is not None and is_locked:
                self._connection.rollback()
                allow_late(self._connection)  # and nothing is left of what was put off
                return None
            self._discard()
            self._failure = error
            return []

    def commit(self, calls: Sequence[QueuedCall], outcomes: Outcomes) -> Outcomes:
        """Commit, in a thread; after a failure, give each call a transaction of its own."""
        if self._failure is None and self._transaction is not None:
            try:
                do_late(self._transaction.connection)
                self._transaction.commit()
            except Exception as error:  # noqa: BLE001 - every caller gets its answer
                self._discard()
                self._failure = _end_of(error)
                if isinstance(translate(error), InternalError):
                    # Done apart, they say which of them are in trouble.
                    return [self._alone(call) for call in calls]
            else:
                self._note_commit()
                return outcomes
        assert self._failure is not None  # noqa: S101 - prepare() began, or failed
        return _apart(calls, self._failure, self._alone)

    def _alone(self, call: QueuedCall) -> object:
        if call[2].done():
            return None  # its caller has got another answer
        try:
            with self.engine.connect() as connection:
                allow_late(connection)
                transaction, outcome = connection.begin(), _run(connection, [call])[0]
                do_late(connection)
                try:
                    transaction.commit()
                except DBAPIError as error:
                    self.on_rollback()
                    return _refusal(_end_of(error))
                self._note_commit()
                return outcome
        except Exception as error:  # noqa: BLE001 - the caller gets its answer
            self.on_rollback()
            return _refusal(error)

    def _note_commit(self) -> None:
        try:
            self.on_commit()
        except Exception as error:  # noqa: BLE001 - what was done lasts, and is not done again
            log_failure("unexpected_error", error)

    def give_up(self, calls: Sequence[QueuedCall]) -> Outcomes:
        """Another process holds the write lock and does not let go."""
        return [Overloaded(retry_after=int(BUSY_TIMEOUT_SECONDS))] * len(calls)


def _apart(
    calls: Sequence[QueuedCall], error: Exception, alone: Callable[[QueuedCall], object]
) -> Outcomes:
    """What to answer after a batch failed and was rolled back.

    A fault of the database is everybody's. Otherwise one call spoils the batch, or another server
    has just written the same row or locked the same rows in another order: each gets a transaction
    of its own, which sees that row and locks little.
    """
    shared = isinstance(error, OutcomeUnknown)
    if shared or not (isinstance(error, IntegrityError | CountersignError) or is_deadlock(error)):
        refusal = _refusal(error)
        own = isinstance(refusal, InternalError | EvidenceDamaged | DatabasePermissionDenied)
        if len(calls) == 1 or not own:
            return [refusal] * len(calls)
    return [alone(call) for call in calls]


def _run(connection: Connection, calls: Sequence[QueuedCall]) -> Outcomes:
    """Do the calls of each act together, and put the outcomes in the order of the calls."""
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
        do_late(connection)
        for place, outcome in zip(own, act(connection, [calls[p][1] for p in own]), strict=True):
            outcomes[place] = outcome
    return outcomes


def _end_of(error: Exception) -> Exception:
    """What a commit on the embedded database came to that ended with this error."""
    if not is_unknown_end(error):
        return error
    unknown = OutcomeUnknown(retry_after=RETRY_SECONDS)
    _log_error(error, unknown)
    return unknown


def _refusal(error: Exception) -> CountersignError:
    refusal = translate(error)
    # A conflict of two requests is the answer to one of them, and no trouble of the database.
    if refusal is not error and not isinstance(refusal, IdempotencyInProgress):
        _log_error(error, refusal)
    return refusal


def say_damage(state: str) -> None:
    """For the log: the database is damaged, as this names it."""
    _log.error("database_damaged", state=state, what_to_do=_REPAIR)


def _log_error(error: Exception, refusal: CountersignError) -> None:
    # The driver's message can hold values of rows: only its kind is logged.
    origin = getattr(error, "orig", None)
    kind, state = type(error).__name__, getattr(origin, "sqlstate", None)
    state = state or getattr(origin, "sqlite_errorname", None)
    unsaid = _seldom(kind, state, refusal.code)
    if unsaid is None:
        return
    damage = {"what_to_do": _REPAIR} if is_damage(refusal) else {}
    _log.error(
        "database_damaged" if damage else "database_error",
        kind=kind,
        # On the embedded database, what is read on the event loop has none.
        lane=getattr(WHERE, "lane", "read"),
        host=getattr(WHERE, "host", None),
        cause=type(origin).__name__ if origin is not None else None,
        state=state,
        denied=denial(error) if isinstance(error, DBAPIError) else None,
        answered=refusal.code,
        unsaid=unsaid,
        **damage,
    )
