"""Idempotency: one effect for each key; the first 2xx response is kept for a day and repeated."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from hmac import compare_digest
from typing import Final

from sqlalchemy import Connection, bindparam, delete, insert, select

from countersign.access.key import Principal
from countersign.access.secrets import DeploymentSecret
from countersign.clock import Clock, Entropy
from countersign.db.tables import idempotency_keys
from countersign.errors import IdempotencyInProgress, IdempotencyKeyReused
from countersign.instant import from_ns
from countersign.mode import Mode

LIFETIME: Final = timedelta(hours=24)
KEY_LENGTH_MAX: Final = 255
_NS_PER_DAY: Final = 86_400 * 10**9
_NONCE_BYTES: Final = 12
_INSERT: Final = insert(idempotency_keys)
_SELECT: Final = select(idempotency_keys).where(
    idempotency_keys.c.slot.in_(bindparam("slots", expanding=True))
)
_DELETE_EXPIRED: Final = delete(idempotency_keys).where(
    idempotency_keys.c.slot == bindparam("old_slot"),
    idempotency_keys.c.expires_at <= bindparam("now"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyEntry:
    """A kept response.

    `slot` is the keyed hash of account, mode, method, path and key; `fingerprint` that of the
    request body; `response` the encrypted bytes of the response's body.
    """

    slot: bytes
    account_id: str
    mode: Mode
    fingerprint: bytes
    response: bytes
    created_at: datetime
    expires_at: datetime


def keep_answers(connection: Connection, entries: Sequence[IdempotencyEntry]) -> None:
    """Keep these responses, in the transaction of their act; expired ones are replaced."""
    if entries:
        expired = [{"old_slot": e.slot, "now": e.created_at} for e in entries]
        connection.execute(_DELETE_EXPIRED, expired)
        connection.execute(_INSERT, [asdict(entry) for entry in entries])


def kept_entries(connection: Connection, slots: Sequence[bytes]) -> list[IdempotencyEntry | None]:
    """An act for `read_batched`: what is kept in each of these slots, expired or not."""
    rows = connection.execute(_SELECT, {"slots": list(set(slots))}).mappings()
    found = {r["slot"]: IdempotencyEntry(**{**r, "mode": Mode(r["mode"])}) for r in rows}
    return [found.get(slot) for slot in slots]


@dataclass(frozen=True, slots=True)
class Slot:
    """Where the response to one key is kept, and the keyed hash of the request's body."""

    place: bytes
    fingerprint: bytes
    principal: Principal


class Idempotency:
    """Keeps responses, and knows which requests are still running in this process.

    Between processes the database decides: the second of two concurrent acts finds the slot
    taken, and its transaction is undone.
    """

    def __init__(
        self,
        find: Callable[[bytes], Awaitable[IdempotencyEntry | None]],
        secret: DeploymentSecret,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        """`find` looks up what is kept in a slot."""
        self._find = find
        self._secret = secret
        self._clock = clock
        self._entropy = entropy
        self._running: dict[bytes, bytes] = {}

    def slot(self, principal: Principal, method: str, path: str, key: str, body: bytes) -> Slot:
        """The slot of a request."""
        place = self._secret.idempotency_slot(
            principal.account_id, principal.mode, method, path, key
        )
        return Slot(place, self._secret.fingerprint(body), principal)

    @contextmanager
    def running(self, slot: Slot) -> Iterator[None]:
        """Holds the slot while the request runs.

        Raises:
            IdempotencyKeyReused: another body is running under this key.
            IdempotencyInProgress: the same request is running.
        """
        other = self._running.get(slot.place)
        if other is not None:
            if not compare_digest(other, slot.fingerprint):
                raise IdempotencyKeyReused
            raise IdempotencyInProgress
        self._running[slot.place] = slot.fingerprint
        try:
            yield
        finally:
            del self._running[slot.place]

    async def kept(self, slot: Slot) -> bytes | None:
        """The body of the first 2xx response, if there was one within 24 hours.

        Raises:
            IdempotencyKeyReused: it was the response to a different body.
        """
        principal = slot.principal
        entry = await self._find(slot.place)
        if entry is None or entry.expires_at <= from_ns(self._clock.time_ns()):
            return None
        if (entry.account_id, entry.mode) != (principal.account_id, principal.mode):
            return None
        if not compare_digest(entry.fingerprint, slot.fingerprint):
            raise IdempotencyKeyReused
        return self._secret.open_answer(entry.response, slot.place)

    def entry(self, slot: Slot, answer: bytes) -> IdempotencyEntry:
        """What is written, with the act, to keep this response."""
        time_ns = self._clock.time_ns()
        now = from_ns(time_ns)
        return IdempotencyEntry(
            slot=slot.place,
            account_id=slot.principal.account_id,
            mode=slot.principal.mode,
            fingerprint=slot.fingerprint,
            response=self._secret.seal_answer(
                answer, slot.place, time_ns // _NS_PER_DAY, self._entropy(_NONCE_BYTES)
            ),
            created_at=now,
            expires_at=now + LIFETIME,
        )
