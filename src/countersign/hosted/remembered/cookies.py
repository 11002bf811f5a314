"""The cookie by which a browser is known again: random, and kept here as a digest."""

from __future__ import annotations

from typing import Final

from countersign.base.db.statements import of_row
from countersign.base.values import Mode, from_ns
from countersign.hosted.remembered import sql
from countersign.hosted.remembered.model import Kind, KnownBy
from countersign.hosted.remembered.room import Remembered, new_row
from countersign_evidence.disclosure import b64url

_BYTES: Final = 32
_LENGTH_MAX: Final = 64


async def remember_cookie(room: Remembered, mode: Mode, cbid: str) -> str:
    """Remember this buyer by a new cookie, and give its value; durable when this returns.

    "" if the buyer was erased.
    """
    access = room.buyers.access
    value = b64url(access.entropy(_BYTES))
    row = new_row(room, mode, cbid, Kind.COOKIE, _lookup(room, value))
    return value if await access.database.write(sql.add, row) else ""


async def by_cookie(room: Remembered, mode: Mode, value: str) -> KnownBy | None:
    """The buyer remembered by this cookie in this mode."""
    if not 0 < len(value) <= _LENGTH_MAX:
        return None
    access = room.buyers.access
    now = from_ns(access.clock.time_ns())
    row = await access.database.read(sql.find, mode, Kind.COOKIE, _lookup(room, value), now)
    return None if row is None else of_row(row, KnownBy)


async def use_cookie(room: Remembered, mode: Mode, value: str) -> KnownBy | None:
    """The buyer remembered by this cookie; its use is durable when this returns."""
    known = await by_cookie(room, mode, value)
    if known is not None:
        access = room.buyers.access
        await access.database.write(sql.touch, known.id, from_ns(access.clock.time_ns()))
    return known


async def forget_cookie(room: Remembered, value: str) -> None:
    """Forget this cookie; no-op if there is none."""
    if 0 < len(value) <= _LENGTH_MAX:
        await room.buyers.access.database.write(sql.remove_by, _lookup(room, value))


def _lookup(room: Remembered, value: str) -> bytes:
    return room.buyers.access.secret.blind_index("remembered", "cookie", value)
