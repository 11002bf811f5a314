"""The database as the acts see it: `write`, `read` and `scan`, each behind a batcher."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeAlias, TypeVar

import structlog
from sqlalchemy import URL, Connection, Engine, RootTransaction
from sqlalchemy.exc import DBAPIError, IntegrityError

from countersign.db.batching import (
    BatchAct,
    Batcher,
    CommitBatcher,
    LoopBatcher,
    Make,
    Outcomes,
    QueuedCall,
    ThreadBatcher,
)
from countersign.db.bulk import allow_late, do_late
from countersign.db.engine import (
    BUSY_TIMEOUT_SECONDS,
    Purpose,
    denial,
    is_deadlock,
    is_embedded,
    open_engine,
    translate,
    without_busy_timeout,
)
from countersign.db.turn import Turn
from countersign.errors import (
    CountersignError,
    DatabasePermissionDenied,
    IdempotencyInProgress,
    InternalError,
    Overloaded,
    StorageUnavailable,
)

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")

_Plain: TypeAlias = tuple[Callable[..., Any], Any, Any]

_EMPTYING_ATTEMPTS: Final = 10
_EMPTYING_PAUSE_SECONDS: Final = 0.2
_UNTESTED_SECONDS: Final = 1.0
"""How long a connection may have been idle, and is used without a question whether it is there."""

_log: Final = structlog.get_logger("countersign.storage")


class Database:
    """One database behind three batchers; which kind each is depends on the engine."""

    def __init__(self, url: URL, turn: Turn | None = None) -> None:
        """`turn` is shared with the other workers of a server, if there are any."""
        self.url = url
        self._writing = open_engine(url, Purpose.WRITE)
        self._reading = open_engine(url, Purpose.READ)
        asking, scanning = _Asking(self._reading), _Asking(self._reading)
        self._held: list[_Holder] = [asking, scanning]
        self._write: Batcher
        self._read: Batcher
        self._sequence: Batcher
        if is_embedded(url):
            transactor = _Embedded(self._writing)
            self._held.append(transactor)
            self._write = CommitBatcher(
                "countersign-commit", transactor, BUSY_TIMEOUT_SECONDS, turn or Turn()
            )
            self._sequence = self._write
            self._read = LoopBatcher(asking)
        else:
            writer, sealer = _Writer(self._writing), _Writer(self._writing)
            self._held += [writer, sealer]
            self._write = ThreadBatcher("countersign-write", writer)
            self._read = ThreadBatcher("countersign-read", asking)
            self._sequence = ThreadBatcher("countersign-seal", sealer)
        self._scan = ThreadBatcher("countersign-scan", scanning)
        self._batchers = {"write": self._write, "read": self._read, "scan": self._scan}
        if self._sequence is not self._write:
            self._batchers["seal"] = self._sequence

    async def __aenter__(self) -> Self:
        for batcher in self._batchers.values():
            batcher.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for batcher in self._batchers.values():
            await batcher.close()
        # With the last connection the embedded database puts its log into the database file.
        for holder in self._held:
            holder.close()
        self._writing.dispose()
        self._reading.dispose()

    async def write(
        self,
        act: Callable[Concatenate[Connection, P], R | CountersignError],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        """Run `act(connection, …)` in a transaction shared with others; durable on return.

        A CountersignError that the act returns refuses it, and keeps what it has written; one that
        it raises also rolls that back.
        """
        result: R = await self._write.call(_run_each, (act, args, kwargs))
        return result

    async def write_batched(
        self, act: BatchAct[Any, R], item: T, make: Make[T, Any] | None = None
    ) -> R:
        """The same for an act on many items at once; see `batching.BatchAct`.

        With `make`, items are made ready before there is a transaction for them.
        """
        return await self._write.call(act, item, make)

    async def read(
        self,
        act: Callable[Concatenate[Connection, P], R | CountersignError],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        """Look something up by its key, in the turn of other look-ups."""
        result: R = await self._read.call(_ask_each, (act, args, kwargs))
        return result

    async def read_batched(self, act: BatchAct[T, R], item: T) -> R:
        """Look something up by its key, in a query shared with others."""
        return await self._read.call(act, item)

    async def scan(
        self,
        act: Callable[Concatenate[Connection, P], R | CountersignError],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        """Ask for something that may take long, such as a list."""
        result: R = await self._scan.call(_ask_each, (act, args, kwargs))
        return result

    async def scan_batched(self, act: BatchAct[T, R], item: T) -> R:
        """Ask what may take long, once for all who ask the same."""
        return await self._scan.call(act, item)

    async def sequence(
        self,
        act: Callable[Concatenate[Connection, P], R | CountersignError],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        """Seal: on the embedded database a write like others, else a transaction apart."""
        result: R = await self._sequence.call(_run_each, (act, args, kwargs))
        return result

    async def empty_log(self) -> bool:
        """Empty the write-ahead log of the embedded database; False if that was not possible.

        Deleted rows are overwritten in the database file itself (secure_delete); copies of their
        pages can stand in the log until it is emptied, which another process that reads puts off.
        """
        return not is_embedded(self.url) or await asyncio.to_thread(self._empty_log)

    def _empty_log(self) -> bool:
        engine = open_engine(self.url, Purpose.WRITE)
        with closing(engine.raw_connection()) as connection:
            cursor = connection.cursor()
            # No one can write while it waits for readers: often and briefly, not once and long.
            cursor.execute("PRAGMA busy_timeout=100")
            busy = True
            for left in reversed(range(_EMPTYING_ATTEMPTS)):
                busy = bool(cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
                if not busy or not left:
                    break
                time.sleep(_EMPTYING_PAUSE_SECONDS)
        engine.dispose()
        return not busy

    def batches(self) -> dict[str, tuple[int, int, int]]:
        """By name: batches done, calls in them, and calls waiting now."""
        return {name: (b.batches, b.calls, b.pending) for name, b in self._batchers.items()}


class _Holder:
    """Has a connection of its own, from when it is first needed."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connection: Connection | None = None

    def close(self) -> None:
        """Let go of the connection; the pool tests it before it gives it out again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _discard(self) -> None:
        """Roll back by leaving the connection: whatever state it is in, the next one is clean."""
        if self._connection is not None:
            self._connection.invalidate()
        self.close()


class _Asking(_Holder):
    """Look-ups, one batch after the other."""

    def __call__(self, calls: Sequence[QueuedCall]) -> Outcomes:
        """The outcomes; each query sees what was committed before it."""
        is_new = self._connection is None
        try:
            if self._connection is None:
                self._connection = self._engine.connect()
            return _run(self._connection, calls)
        except Exception as error:  # noqa: BLE001 - every caller gets its answer
            self._discard()
            is_away = isinstance(translate(error), StorageUnavailable)
            if is_away:
                # All connections may lead to a server that is gone, or is a standby now.
                self._engine.dispose()
            if is_away and not is_new:
                return self(calls)
            return [_refusal(error)] * len(calls)


class _Writer(_Holder):
    """Transactions on PostgreSQL, in one thread."""

    _used_at = 0.0
    _is_ending = False

    def __call__(self, calls: Sequence[QueuedCall]) -> Outcomes:
        """The outcomes, after the commit; after a failure each call gets its own transaction."""
        was_held, self._is_ending = self._connection is not None, False
        try:
            return self._transact(calls)
        except Exception as error:  # noqa: BLE001 - every caller gets its answer
            self._discard()
            if isinstance(translate(error), StorageUnavailable):
                # Other connections may lead to a server that is gone, or is a standby now, too.
                self._engine.dispose()
                if was_held and not self._is_ending:  # nothing of it can have been committed
                    return self(calls)
            return _apart(self._engine, calls, error)

    def _transact(self, calls: Sequence[QueuedCall]) -> Outcomes:
        if self._connection is not None and time.monotonic() - self._used_at > _UNTESTED_SECONDS:
            self.close()
        if self._connection is None:
            self._connection = self._engine.connect()
            allow_late(self._connection)
        with self._connection.begin():
            outcomes = _run(self._connection, calls)
            self._is_ending = True
            do_late(self._connection, commit=True)
        self._used_at = time.monotonic()
        return outcomes


class _Embedded(_Holder):
    """Transactions on the embedded database. See `batching.Transactor`."""

    _transaction: RootTransaction | None = None
    _failure: Exception | None = None

    def prepare(self, calls: Sequence[QueuedCall]) -> Outcomes | None:
        """Begin, and do the calls; `commit` deals with a failure."""
        self._failure = None
        try:
            if self._connection is None:
                self._connection = without_busy_timeout(self._engine.connect())
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
        """Commit; after a failure, give each call a transaction of its own."""
        if self._failure is None and self._transaction is not None:
            try:
                do_late(self._transaction.connection)
                self._transaction.commit()
                return outcomes
            except Exception as error:  # noqa: BLE001 - every caller gets its answer
                self._discard()
                self._failure = error
                if isinstance(translate(error), InternalError):
                    # Done at once, its statements say which of them are in trouble.
                    return [_alone(self._engine, call) for call in calls]
        assert self._failure is not None  # noqa: S101 - prepare() began, or failed
        return _apart(self._engine, calls, self._failure)

    def give_up(self, calls: Sequence[QueuedCall]) -> Outcomes:
        """Another process holds the write lock and does not let go."""
        return [Overloaded(retry_after=int(BUSY_TIMEOUT_SECONDS))] * len(calls)


def _run_each(connection: Connection, calls: Sequence[_Plain]) -> list[Any]:
    return [act(connection, *args, **kwargs) for act, args, kwargs in calls]


def _ask_each(connection: Connection, calls: Sequence[_Plain]) -> list[Any]:
    """What has only read leaves nothing to undo: its error is its own."""
    outcomes: list[Any] = []
    for act, args, kwargs in calls:
        try:
            outcomes.append(act(connection, *args, **kwargs))
        except CountersignError as error:
            outcomes.append(error)
    return outcomes


def _apart(engine: Engine, calls: Sequence[QueuedCall], error: Exception) -> Outcomes:
    """What to answer after a batch failed and was rolled back.

    A fault of the database is everybody's. Otherwise one call spoils the batch, or another server
    has just written the same row or locked the same rows in another order: each gets a transaction
    of its own, which sees that row and locks little.
    """
    if not (isinstance(error, IntegrityError | CountersignError) or is_deadlock(error)):
        refusal = _refusal(error)
        if len(calls) == 1 or not isinstance(refusal, InternalError | DatabasePermissionDenied):
            return [refusal] * len(calls)
    return [_alone(engine, call) for call in calls]


def _alone(engine: Engine, call: QueuedCall) -> object:
    try:
        with engine.connect() as connection, connection.begin():
            return _run(connection, [call])[0]
    except Exception as error:  # noqa: BLE001 - the caller gets its answer
        return _refusal(error)


def _run(connection: Connection, calls: Sequence[QueuedCall]) -> Outcomes:
    """Do the calls of each act together, and put the outcomes in the order of the calls."""
    places: dict[BatchAct[Any, Any], list[int]] = {}
    for place, (act, *_) in enumerate(calls):
        places.setdefault(act, []).append(place)
    if len(places) == 1:
        only = calls[0][0](connection, [item for _, item, _ in calls])
        if len(only) != len(calls):
            raise ValueError("an act gives one outcome for each item")
        return only
    outcomes: list[object] = [None] * len(calls)
    for act, own in places.items():
        do_late(connection)
        for place, outcome in zip(own, act(connection, [calls[p][1] for p in own]), strict=True):
            outcomes[place] = outcome
    return outcomes


def _refusal(error: Exception) -> CountersignError:
    refusal = translate(error)
    # A conflict of two requests is the answer to one of them, and no trouble of the database.
    if refusal is not error and not isinstance(refusal, IdempotencyInProgress):
        # The driver's message can hold values of rows: only its kind is logged.
        origin = getattr(error, "orig", None)
        _log.error(
            "database_error",
            kind=type(error).__name__,
            cause=type(origin).__name__ if origin is not None else None,
            state=getattr(origin, "sqlstate", None) or getattr(origin, "sqlite_errorname", None),
            denied=denial(error) if isinstance(error, DBAPIError) else None,
            answered=refusal.code,
        )
    return refusal
