"""Idempotency: one effect per key, and the first response again, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hmac import compare_digest
from typing import Final

from countersign.access.idempotency_entry import LIFETIME, IdempotencyEntry
from countersign.access.idempotency_sql import entries
from countersign.access.key import Principal
from countersign.access.secrets import DeploymentSecret
from countersign.db.database import Database
from countersign.errors import IdempotencyInProgress, IdempotencyKeyReused
from countersign.instant import from_ns
from countersign.mode import Mode
from countersign.ports import Clock, Entropy

_NS_PER_DAY: Final = 86_400 * 10**9
_NONCE_BYTES: Final = 12


@dataclass(frozen=True, slots=True)
class Slot:
    """Where the response to one key is kept: account, mode, method, path and key, and the body."""

    place: bytes
    fingerprint: bytes
    owner: tuple[str, Mode]


class Idempotency:
    """Keeps responses, and notices what is still running in this process.

    Between processes the database decides: the second of two concurrent acts finds the slot
    taken, and its transaction is undone.
    """

    def __init__(
        self, database: Database, secret: DeploymentSecret, clock: Clock, entropy: Entropy
    ) -> None:
        self._database = database
        self._secret = secret
        self._clock = clock
        self._entropy = entropy
        self._running: dict[bytes, bytes] = {}

    def slot(self, principal: Principal, method: str, path: str, key: str, body: bytes) -> Slot:
        """The slot of a request."""
        place = self._secret.idempotency_slot(
            principal.account_id, principal.mode, method, path, key
        )
        owner = principal.account_id, principal.mode
        return Slot(place, self._secret.fingerprint(body), owner)

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
        entry = await self._database.read_batched(entries, slot.place)
        if entry is None or (entry.account_id, entry.mode) != slot.owner:
            return None
        if entry.expires_at <= from_ns(self._clock.time_ns()):
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
            account_id=slot.owner[0],
            mode=slot.owner[1],
            fingerprint=slot.fingerprint,
            response=self._secret.seal_answer(
                answer, slot.place, time_ns // _NS_PER_DAY, self._entropy(_NONCE_BYTES)
            ),
            created_at=now,
            expires_at=now + LIFETIME,
        )
