"""Idempotency: one effect for each key; the first 2xx response is kept for a day and repeated."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import timedelta
from hmac import compare_digest
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct
from sqlalchemy import Connection, delete, select, text

from countersign.base.db.statements import BulkInsert, DriverStatement, SelectAmong, statements_of
from countersign.base.db.tables import ABOUT_OTHERS, idempotency_keys
from countersign.base.errors import (
    CountersignError,
    IdempotencyInProgress,
    IdempotencyKeyReused,
    OutcomeUnknown,
    Retryable,
    SecretNotRepeated,
)
from countersign.base.generics import T
from countersign.base.values import ACKNOWLEDGMENT, Clock, Entropy, from_ms, is_id, made_at_ms
from countersign.core.access.key import Principal
from countersign.core.access.reach import Reach
from countersign.core.access.secrets import DeploymentSecret

LIFETIME: Final = timedelta(hours=24)
KEY_LENGTH_MAX: Final = 255
_NEAR: Final = timedelta(minutes=1)
"""An acknowledgment is refused if it takes longer."""
_LIFETIME_MS: Final = LIFETIME // timedelta(milliseconds=1)
# Erasing one of the first also erases the ones that follow.
_ERASABLE: Final = tuple(
    (prefixes, re.compile(rb"(?:%b)_[0-7][0-9a-hjkmnp-tv-z]{25}" % names))
    for prefixes, names in (
        ((b"chk_", b"vfs_"), b"chk|vfs"),
        ((b"clr_", b"clr_"), b"clr"),
        ((b"cbid_", b"cbid_"), b"cbid_test|cbid"),
    )
)
_YOUNG_MS: Final = 60_000
"""A younger response may not be durable on other servers yet, see `Database.covered`."""
NS_PER_DAY: Final = 86_400 * 10**9
NONCE_BYTES: Final = 12
_SQL: Final = statements_of(__package__)
_select: Final = SelectAmong(_SQL["kept_responses"])
_select_on_sqlite: Final = SelectAmong(_SQL["kept_responses_on_sqlite"])
_DELETE: Final = DriverStatement(_SQL["delete_kept"])


class IdempotencyEntry(NamedTuple):
    """A kept response, as its row.

    `slot` is the keyed hash of account, mode, method, path, key and, if one asks, person;
    `fingerprint` that of the request body; `response` the encrypted bytes of the response's body.
    Times are Unix milliseconds. `about`: the buyer, clearance or session with whose erasure it
    goes; "": several. An acknowledgment states its own.
    """

    slot: bytes
    account_id: str
    mode: str
    fingerprint: bytes
    response: bytes
    created_at: int
    expires_at: int
    about: str | None = None


INSERT_ANSWERS: Final = BulkInsert(idempotency_keys, *IdempotencyEntry._fields)
"""Of responses whose slots the same transaction has seen free."""
Remember: TypeAlias = Callable[[T], IdempotencyEntry] | None
"""Makes the stored response for the request's Idempotency-Key, if there is one."""


def keep_answer(connection: Connection, remember: Remember[T], result: T) -> None:
    """Keep the response to one request, if it has an Idempotency-Key."""
    if remember is not None:
        keep_answers(connection, [remember(result)])


def keeping(act: Callable[[Connection], T], remember: Remember[Any]) -> Callable[[Connection], T]:
    """The act, which also stores the response made of its result; None stores nothing."""

    def run(connection: Connection) -> T:
        result = act(connection)
        if result is not None and not isinstance(result, CountersignError):
            keep_answer(connection, remember, result)
        return result

    return run


def keep_answers(connection: Connection, entries: Sequence[IdempotencyEntry]) -> None:
    """Keep these responses, in the transaction of their act; expired ones are replaced.

    Raises IdempotencyInProgress if one is kept already: another process has done its act. On
    PostgreSQL the insert may also find that.
    """
    if entries:
        kept = kept_entries(connection, [entry.slot for entry in entries])
        if any(k and k.expires_at > e.created_at for k, e in zip(kept, entries, strict=True)):
            raise IdempotencyInProgress
        delete_entries(connection, kept)
        INSERT_ANSWERS(connection, entries)


def replace_answer(connection: Connection, entry: IdempotencyEntry) -> None:
    """Replace the response that the act stored in its transaction."""
    delete_entries(connection, kept_entries(connection, [entry.slot]))
    INSERT_ANSWERS(connection, [entry])


def delete_entries(connection: Connection, kept: Iterable[IdempotencyEntry | None]) -> None:
    """Delete these stored responses, which frees their slots."""
    _DELETE.for_each(connection, [(one.expires_at, one.slot) for one in kept if one is not None])


def kept_entries(connection: Connection, slots: Sequence[bytes]) -> list[IdempotencyEntry | None]:
    """The stored response of each slot, expired or not; also an act for `read_batched`."""
    if connection.dialect.name == "sqlite":
        found = _select_on_sqlite(connection, [slot[:8] for slot in slots])
    else:
        found = _select(connection, slots)
    entries = {row[0]: IdempotencyEntry(*row) for row in found}
    return [entries.get(slot) for slot in slots]


def slot_taken(entry: IdempotencyEntry) -> IdempotencyInProgress:
    """The refusal of an item that was done before, once its transaction has read this.

    It lasts as all that the transaction has read.
    """
    refusal = IdempotencyInProgress()
    refusal.kept = entry
    return refusal


class KeyedRequest(Struct, eq=False):
    """A request with a key: the slot of its response, and the keyed hash of its body."""

    idempotency: Idempotency
    slot: bytes
    fingerprint: bytes
    principal: Principal
    bearer: bytes = b""
    """For a response with a secret: the caller and the scopes. It is stored in front of the
    response, and only the same bearer gets the response again.
    """
    was_free: bool = False
    """Whether an act, whose transaction may have been undone, saw no response in the slot."""

    def __call__(
        self, answer: bytes, nonce: bytes = b"", about: str | None = None
    ) -> IdempotencyEntry:
        """The row that keeps this body; it is written with the act.

        `nonce` is NONCE_BYTES random bytes, if drawn already; for `about` see there.
        """
        own, who = self.idempotency, self.principal
        time_ns = own.clock.time_ns()
        now, day = time_ns // 1_000_000, time_ns // NS_PER_DAY
        nonce = nonce or own.entropy(NONCE_BYTES)
        return IdempotencyEntry(
            self.slot,
            who.account_id,
            who.mode.value,
            self.fingerprint,
            own.secret.seal_answer(self.bearer + answer, self.slot, day, nonce),
            now,
            now + _LIFETIME_MS,
            about or _about(answer),
        )


def taken(
    connection: Connection, requests: Sequence[KeyedRequest | None]
) -> Sequence[CountersignError | None]:
    """For each request, the error if its slot has a response already, and the act must skip it.

    Expired responses are deleted, which frees their slots.
    """
    outcomes: list[CountersignError | None] = [None] * len(requests)
    given = [(place, keep) for place, keep in enumerate(requests) if keep is not None]
    found = kept_entries(connection, [keep.slot for _, keep in given]) if given else []
    expired = []
    for (place, keep), entry in zip(given, found, strict=True):
        if entry is not None and entry.expires_at > keep.idempotency.now():
            # Its own insert was in conflict: another server did it at the same time.
            outcomes[place] = IdempotencyInProgress() if keep.was_free else slot_taken(entry)
        else:
            keep.was_free = True
            expired.append(entry)
    if any(expired):
        delete_entries(connection, expired)
    return outcomes


class Idempotency(Struct, eq=False):
    """Keeps responses, and knows which requests are still running in this process.

    Between processes the database decides: the second of two concurrent acts finds the slot
    taken, and its transaction is undone.
    """

    find: Callable[[bytes], Awaitable[IdempotencyEntry | None]]
    """Looks up the entry of a slot."""
    covered: Callable[[], Awaitable[object]]
    """Returns once the entries found are durable."""
    secret: DeploymentSecret
    clock: Clock
    entropy: Entropy
    _running: dict[bytes, bytes] = {}

    def keyed(
        self,
        principal: Principal,
        method: str,
        path: str,
        key: str,
        body: bytes,
        *,
        is_secret: bool = False,
    ) -> KeyedRequest:
        """A request with its slot; a person's slot is separate, whatever key was sent.

        All keys of an account and mode share theirs: a retry after a rotation, or from another
        server with a key of its own, is the same request. Where the response `is_secret`, another
        key is refused, and the act is not done again.
        """
        slot = self.secret.idempotency_slot(
            *(principal.account_id, principal.mode, method, path, key),
            *((principal.person_id,) if principal.person else ()),
        )
        bearer = b""
        if is_secret:
            bearer = f"{' '.join((principal.actor, *sorted(principal.scopes)))}\n".encode()
        return KeyedRequest(self, slot, self.secret.fingerprint(body), principal, bearer)

    def begin(self, keep: KeyedRequest) -> None:
        """Hold the slot while the request runs, until `end`.

        Raises:
            IdempotencyKeyReused: another body is running under this key.
            IdempotencyInProgress: the same request is running.
        """
        other = self._running.get(keep.slot)
        if other is not None:
            if not compare_digest(other, keep.fingerprint):
                raise IdempotencyKeyReused
            raise IdempotencyInProgress
        self._running[keep.slot] = keep.fingerprint

    def end(self, keep: KeyedRequest) -> None:
        """The request has got its response."""
        del self._running[keep.slot]

    async def kept(self, keep: KeyedRequest) -> bytes | None:
        """The body of the first 2xx response, if there was one within 24 hours.

        Raises:
            IdempotencyKeyReused: it was the response to a different body.
            SecretNotRepeated: it has a secret, and was another's, or one's who could do more.
            OutcomeUnknown: it is not certain that it would survive the database server.
        """
        entry, now = await self.find(keep.slot), self.now()
        if entry is None or not _answers(entry, keep, now):
            return None
        if entry.created_at > now - _YOUNG_MS:
            await self.covered()
        return self._opened(entry, keep)

    async def kept_instead(self, keep: KeyedRequest, failure: Exception) -> bytes | None:
        """The same after a failed act, which another server may have done meanwhile.

        A request that was done once has its response, whatever speaks against doing it now.
        """
        if isinstance(failure, IdempotencyInProgress):
            entry = failure.kept
            if not isinstance(entry, IdempotencyEntry) or not _answers(entry, keep, self.now()):
                return None  # another server is doing it
            return self._opened(entry, keep)
        try:
            return await self.kept(keep)
        except Retryable:
            if isinstance(failure, OutcomeUnknown):
                return None  # only OutcomeUnknown says that the act may have been done
            raise

    def _opened(self, entry: IdempotencyEntry, keep: KeyedRequest) -> bytes:
        answer = self.secret.open_answer(entry.response, keep.slot)
        if not answer.startswith(keep.bearer):
            raise SecretNotRepeated
        return answer.removeprefix(keep.bearer)

    def now(self) -> int:
        """The time that responses expire by, in Unix milliseconds."""
        return self.clock.time_ns() // 1_000_000


def _answers(entry: IdempotencyEntry, keep: KeyedRequest, now: int) -> bool:
    """Whether it is the response to this request.

    Raises IdempotencyKeyReused if it was the response to a different body.
    """
    who = keep.principal
    if entry.expires_at <= now or (entry.account_id, entry.mode) != (who.account_id, who.mode):
        return False
    if not compare_digest(entry.fingerprint, keep.fingerprint):
        raise IdempotencyKeyReused
    return True


def forget_answers(
    connection: Connection, secret: DeploymentSecret, erased: Sequence[str], reach: Reach
) -> None:
    """Delete the kept responses that name any of these: a request sent again is judged again."""
    kept, own, others = idempotency_keys.c, reach.rows(idempotency_keys), text(ABOUT_OTHERS)
    connection.execute(delete(idempotency_keys).where(others, kept.about.in_(erased), own))
    for ack_id in [one for one in erased if is_id(ACKNOWLEDGMENT, one)]:
        expires = from_ms(made_at_ms(ack_id)) + LIFETIME
        then = kept.expires_at.between(expires - _NEAR, expires + _NEAR)
        connection.execute(delete(idempotency_keys).where(then, kept.about == ack_id, own))
    unread = select(kept.slot, kept.response).where(others, kept.about == "", own)
    for slot, response in connection.execute(unread).all():
        answer = secret.open_answer(response, slot)
        if any(one.encode() in answer for one in erased):
            delete_entries(connection, kept_entries(connection, [slot]))


def _about(answer: bytes) -> str | None:
    """The erasable object that the response names, unless its act states it."""
    for (one, other), named in _ERASABLE:
        if one in answer or other in answer:
            found = {id_.decode() for id_ in named.findall(answer)}
            if found:
                return found.pop() if len(found) == 1 else ""
    return None
