"""Passkeys of buyers."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import structlog
from sqlalchemy import Connection, Row

from countersign.base.db.statements import of_row
from countersign.base.passkeys import (
    RelyingParty,
    asserted,
    checked,
    creation_options,
    credential_id,
    registered,
)
from countersign.base.values import Mode, from_ns
from countersign.hosted.remembered import sql
from countersign.hosted.remembered.model import PASSKEY_KEPT, Kind, KnownBy, NotKnown
from countersign.hosted.remembered.room import Remembered, new_row
from countersign_evidence.disclosure import b64url

_log: Final = structlog.get_logger("countersign.remembered")


def registration_options(
    room: Remembered, party: RelyingParty, mode: Mode, cbid: str, *, challenge: bytes, name: str
) -> dict[str, Any]:
    """The options of `navigator.credentials.create`; the user handle is a keyed hash."""
    handle = _handle(room, mode, cbid)
    return creation_options(party, user_handle=handle, challenge=challenge, name=name)


async def register(
    room: Remembered, mode: Mode, cbid: str, challenge: bytes, response: str
) -> bool:
    """Keep the passkey that a browser has made for this challenge; durable when this returns.

    False: wrong challenge, already known, or the buyer was erased.
    """
    party = room.party
    if party is None:
        return False
    made = await checked(lambda: registered(party, challenge, response))
    if made is None:
        return False
    row = new_row(room, mode, cbid, Kind.PASSKEY, _lookup(room, made.credential_id))
    row |= {"public_key": made.public_key, "sign_count": made.sign_count}
    row |= {"user_handle": _handle(room, mode, cbid)}
    return await room.buyers.access.database.write(sql.add, row)


async def assert_passkey(
    room: Remembered,
    mode: Mode | None,
    challenge: bytes,
    response: str,
    asked_at: datetime | None = None,
) -> KnownBy | NotKnown:
    """The buyer whose passkey signed this challenge, in this mode if one is named.

    A counter that did not grow means that there is a copy of the passkey (§6.1.1): it is removed.
    `asked_at`, where the challenge itself can be used more than once: a passkey that was used since
    is refused.
    """
    party, access = room.party, room.buyers.access
    named = credential_id(response)
    if party is None or named is None:
        return NotKnown.REFUSED
    now = from_ns(access.clock.time_ns())
    row = await access.database.read(sql.find, mode, Kind.PASSKEY, _lookup(room, named), now)
    if row is None:
        return NotKnown.UNKNOWN
    if asked_at is not None and asked_at <= row.last_used_at:
        return NotKnown.REFUSED
    count = await checked(
        lambda: asserted(party, row.public_key, row.user_handle, challenge, response)
    )
    if count is None:
        return NotKnown.REFUSED
    return await access.database.write(_use, row, count, now)


def _use(
    connection: Connection, row: Row[*tuple[Any, ...]], count: int, now: datetime
) -> KnownBy | NotKnown:
    if (count or row.sign_count) and count <= row.sign_count:
        sql.remove_by(connection, row.lookup)
        _log.warning("passkey_copied", id=row.id)
        return NotKnown.COPIED
    changed = {"sign_count": count, "last_used_at": now, "expires_at": now + PASSKEY_KEPT}
    is_first = sql.use(connection, row.id, row, **changed)
    return of_row(row, KnownBy) if is_first else NotKnown.REFUSED


def _lookup(room: Remembered, named: str | bytes) -> bytes:
    text = named if isinstance(named, str) else b64url(named)
    return room.buyers.access.secret.blind_index("remembered", "passkey", text)


def _handle(room: Remembered, mode: Mode, cbid: str) -> bytes:
    return room.buyers.access.secret.blind_index(f"remembered {mode.value}", "user_handle", cbid)
