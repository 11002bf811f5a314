"""Outcomes of forms, sealed for their sender until the page of the redirect shows them."""

from __future__ import annotations

from typing import Final

from countersign.core.access.idempotency import (
    NONCE_BYTES,
    NS_PER_DAY,
    IdempotencyEntry,
    delete_entries,
    keep_answers,
    kept_entries,
)
from countersign.staff.people.room import People
from countersign_evidence.disclosure import b64url

LASTS_MS: Final = 600_000


async def keep(room: People, person_id: str, account_id: str, mode: str, content: bytes) -> str:
    """Keep an outcome for a person; returns its random name.

    It is kept like a response, so it goes with a buyer whom it names.
    """
    access, name = room.access, b64url(room.access.entropy(NONCE_BYTES))
    slot, time_ns = _slot(room, person_id, name), access.clock.time_ns()
    nonce, now = access.entropy(NONCE_BYTES), time_ns // 1_000_000
    sealed = access.secret.seal_answer(content, slot, time_ns // NS_PER_DAY, nonce)
    entry = IdempotencyEntry(slot, account_id, mode, b"", sealed, now, now + LASTS_MS, about="")
    await access.database.write(keep_answers, [entry])
    return name


async def find(room: People, person_id: str, name: str, *, is_last: bool = False) -> bytes | None:
    """The outcome of this name, if it is kept for this person still.

    `is_last` deletes it.
    """
    access, slot = room.access, _slot(room, person_id, name)
    (found,) = await access.database.read(kept_entries, [slot])
    if is_last:
        await access.database.write(delete_entries, [found])
    if found is None or found.expires_at <= access.clock.time_ns() // 1_000_000:
        return None
    return access.secret.open_answer(found.response, slot)


def _slot(room: People, person_id: str, name: str) -> bytes:
    return room.access.secret.idempotency_slot("console page", person_id, name)
