"""Remembered buyers: passkeys and cookies by which a buyer is known again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Any, Final, NamedTuple

import structlog
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, Row, delete, insert, or_, select, update

from countersign.base.db import statements
from countersign.base.db.statements import of_row
from countersign.base.db.tables import remembered, remembered_uses, verifications
from countersign.base.errors import CheckoutSessionClosed
from countersign.base.passkeys import (
    RelyingParty,
    asserted,
    checked,
    credential_id,
    registered,
)
from countersign.base.values import Mode, from_ns, timed_id
from countersign.core.access.reach import AccountReach
from countersign.core.buyers.identity_check import IdentityCheck
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.room import Buyers
from countersign.core.buyers.rules import zip5
from countersign.core.buyers.session_evidence import (
    VerificationAct,
    verification_id,
    write_verification,
)
from countersign.core.buyers.sql import StatusQuery, buyers_by_cbid
from countersign.core.buyers.started import REMEMBERED as PROVIDER
from countersign.core.buyers.started import judge, judge_known
from countersign_evidence.disclosure import b64url
from countersign_evidence.process import Binding

COOKIE_KEPT: Final = timedelta(days=90)
PASSKEY_KEPT: Final = timedelta(days=400)
"""How long a passkey is kept that is not used."""
USES_KEPT: Final = timedelta(days=365)
"""How long a buyer can see past uses."""
KEPT_MAX: Final = 10
"""Maximum passkeys and cookies of one buyer: one more replaces the least recently used."""


class KnownBy(Struct, frozen=True, kw_only=True):
    """A passkey or a cookie of a buyer."""

    id: str
    mode: Mode
    cbid: str
    kind: Binding
    """`PASSKEY` or `COOKIE`."""
    created_at: datetime
    last_used_at: datetime
    expires_at: datetime


class NotKnown(StrEnum):
    """Why a browser's passkey or cookie does not identify a buyer; only that browser learns it."""

    UNKNOWN = "unknown"
    """Never known here, or removed, erased or expired since."""
    REFUSED = "refused"
    """Wrong challenge: signed for another page, in another way, or earlier."""
    COPIED = "copied"
    """The passkey has a copy, so it was removed."""


class Use(Struct, frozen=True, kw_only=True):
    """One use of a remembered verification, with the buyer's consent."""

    account_id: str
    kind: Binding
    verified: bool
    """Whether the account was informed that the buyer is verified; otherwise it learned nothing."""
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """Passkeys and cookies of buyers, and their uses."""

    buyers: Buyers
    party: RelyingParty | None
    """None: no passkeys are possible at this deployment's address, only cookies."""
    passes: Counter[str] = field(default_factory=Counter)
    """The number of buyers who passed here, by passkey or cookie: for the metrics."""


def lookup_of(room: Remembered, kind: Binding, value: str) -> bytes:
    """The keyed hash by which the value of a cookie, or the id of a passkey, is found."""
    index = room.buyers.access.secret.blind_index
    return index("remembered", "passkey" if kind is Binding.PASSKEY else "cookie", value)


def new_row(
    room: Remembered, mode: Mode, cbid: str, kind: Binding, value: str
) -> dict[str, object]:
    """A new row for a passkey or cookie."""
    kept = PASSKEY_KEPT if kind is Binding.PASSKEY else COOKIE_KEPT
    time_ns = room.buyers.access.clock.time_ns()
    now = from_ns(time_ns)
    return {
        "id": timed_id("rem", time_ns, room.buyers.access.entropy(8)),
        "mode": mode,
        "cbid": cbid,
        "kind": kind,
        "lookup": lookup_of(room, kind, value),
        "sign_count": 0,
        "created_at": now,
        "last_used_at": now,
        "expires_at": now + kept,
    }


_c: Final = remembered.c


def find(
    connection: Connection, mode: Mode | None, kind: Binding, lookup: bytes, now: datetime
) -> Row[*tuple[Any, ...]] | None:
    """The row of a passkey or cookie, in `mode` if given; None: unknown, or expired."""
    found = select(remembered).where(_c.lookup == lookup, _c.kind == kind, _c.expires_at > now)
    if mode is not None:
        found = found.where(_c.mode == mode)
    return connection.execute(found).one_or_none()


def signed_in(connection: Connection, id_: str, since: datetime, now: datetime) -> KnownBy | None:
    """The passkey that was used to sign in, unless it expired or its owner has signed out since."""
    stays = or_(_c.signed_out_at.is_(None), _c.signed_out_at < since)
    found = select(remembered).where(_c.id == id_, _c.expires_at > now, stays)
    return statements.row(connection, found, KnownBy)


def sign_out(connection: Connection, id_: str, now: datetime) -> None:
    """End the sign-ins with this passkey in every browser."""
    connection.execute(update(remembered).where(_c.id == id_).values(signed_out_at=now))


def add(connection: Connection, row: dict[str, object]) -> bool:
    """Insert a passkey or a cookie; the caller has locked the buyer.

    False: its digest exists already, or the buyer was erased.
    """
    cbid = str(row["cbid"])
    if cbid not in buyers_by_cbid(connection, [cbid], to_change=True):
        return False
    same = select(_c.id).where(_c.lookup == row["lookup"])
    if connection.execute(same).first() is not None:
        return False
    own = _c.cbid == cbid
    newest = select(_c.id).where(own).order_by(_c.last_used_at.desc(), _c.id.desc())
    kept = [*connection.execute(newest.limit(KEPT_MAX - 1)).scalars()]
    connection.execute(delete(remembered).where(own, _c.id.not_in(kept)))
    connection.execute(insert(remembered), row)
    return True


def touch(connection: Connection, id_: str, now: datetime) -> None:
    """Note a use of a passkey or reusable cookie."""
    connection.execute(update(remembered).where(_c.id == id_).values(last_used_at=now))


def remove(connection: Connection, cbids: Sequence[str], id_: str) -> None:
    """Delete a passkey or cookie of these buyers."""
    connection.execute(delete(remembered).where(_c.cbid.in_(cbids), _c.id == id_))


def remove_by(connection: Connection, lookup: bytes) -> None:
    """Delete the passkey or cookie with this lookup."""
    connection.execute(delete(remembered).where(_c.lookup == lookup))


def all_of(connection: Connection, cbids: Sequence[str], now: datetime) -> list[KnownBy]:
    """The passkeys and cookies of these buyers, newest first."""
    own = select(remembered).where(_c.cbid.in_(cbids), _c.expires_at > now)
    return statements.rows(connection, own.order_by(_c.id.desc()), KnownBy)


def uses_of(connection: Connection, cbids: Sequence[str], limit: int) -> list[Use]:
    """Uses of these buyers' verification, newest first."""
    u = remembered_uses.c
    columns = select(u.account_id, u.kind, u.verified, u.at)
    columns = columns.where(u.cbid.in_(cbids), u.kind != _EXPORT)
    return statements.rows(connection, columns.order_by(u.id.desc()).limit(limit), Use)


def note_export(connection: Connection, known: KnownBy, id_: str, at: datetime) -> None:
    """Note that the buyer exported everything: it stays when the passkey or cookie is removed."""
    row = {"id": id_, "mode": known.mode.value, "cbid": known.cbid, "account_id": "", "at": at}
    connection.execute(insert(remembered_uses), row | {"kind": _EXPORT, "verified": False})


def exports_of(connection: Connection, cbids: Sequence[str]) -> Sequence[datetime]:
    """When someone exported everything with a passkey or cookie of the buyer."""
    u = remembered_uses.c
    exports = select(u.at).where(u.cbid.in_(cbids), u.kind == _EXPORT).order_by(u.at)
    return connection.execute(exports).scalars().all()


_EXPORT: Final = "export"
_LENGTH_MAX: Final = 64


async def remember_cookie(room: Remembered, mode: Mode, cbid: str) -> str:
    """Remember this buyer by a new cookie, and give its value; durable when this returns.

    "" if the buyer was erased.
    """
    access = room.buyers.access
    value = b64url(access.entropy(32))
    row = new_row(room, mode, cbid, Binding.COOKIE, value)
    return value if await access.database.write(add, row) else ""


async def by_cookie(room: Remembered, mode: Mode, value: str) -> KnownBy | None:
    """The buyer remembered by this cookie in this mode."""
    if not 0 < len(value) <= _LENGTH_MAX:
        return None
    access = room.buyers.access
    now = from_ns(access.clock.time_ns())
    row = await access.database.read(
        find, mode, Binding.COOKIE, lookup_of(room, Binding.COOKIE, value), now
    )
    return None if row is None else of_row(row, KnownBy)


async def use_cookie(room: Remembered, mode: Mode, value: str) -> KnownBy | None:
    """The buyer remembered by this cookie; its use is durable when this returns."""
    known = await by_cookie(room, mode, value)
    if known is not None:
        access = room.buyers.access
        await access.database.write(touch, known.id, from_ns(access.clock.time_ns()))
    return known


async def forget_cookie(room: Remembered, value: str) -> None:
    """Forget this cookie; no-op if it is unknown."""
    if 0 < len(value) <= _LENGTH_MAX:
        await room.buyers.access.database.write(remove_by, lookup_of(room, Binding.COOKIE, value))


_log: Final = structlog.get_logger("countersign.remembered")


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
    row = new_row(room, mode, cbid, Binding.PASSKEY, b64url(made.credential_id))
    row |= {"public_key": made.public_key, "sign_count": made.sign_count}
    row |= {"user_handle": handle_of(room, mode, cbid)}
    return await room.buyers.access.database.write(add, row)


async def assert_passkey(
    room: Remembered,
    mode: Mode | None,
    challenge: bytes,
    response: str,
    asked_at: datetime | None = None,
) -> KnownBy | NotKnown:
    """The buyer whose passkey signed this challenge, in `mode` if given.

    A counter that did not grow shows that the passkey has a copy (§6.1.1): it is removed.
    `asked_at` is for challenges that can be used twice: a passkey used since then is refused.
    """
    party, access = room.party, room.buyers.access
    named = credential_id(response)
    if party is None or named is None:
        return NotKnown.REFUSED
    now = from_ns(access.clock.time_ns())
    row = await access.database.read(
        find, mode, Binding.PASSKEY, lookup_of(room, Binding.PASSKEY, named), now
    )
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
        remove_by(connection, row.lookup)
        _log.warning("passkey_copied", id=row.id)
        return NotKnown.COPIED
    # It may have been used or removed since it was read.
    same = update(remembered).where(
        _c.id == row.id, _c.last_used_at == row.last_used_at, _c.sign_count == row.sign_count
    )
    changed = {"sign_count": count, "last_used_at": now, "expires_at": now + PASSKEY_KEPT}
    is_first = connection.execute(same.values(changed)).rowcount == 1
    return of_row(row, KnownBy) if is_first else NotKnown.REFUSED


def handle_of(room: Remembered, mode: Mode, cbid: str) -> bytes:
    """The user handle of a buyer's passkeys: a keyed hash."""
    return room.buyers.access.secret.blind_index(f"remembered {mode.value}", "user_handle", cbid)


# Informing an account about a remembered buyer who has agreed to it, and writing that down.
#
# The record is written in the transaction that applies the response, so information and record
# never differ.


class Informing(NamedTuple):
    """Information for an account; nothing is written before `write`."""

    check: IdentityCheck
    """Only the status `verified` is sent to the account; the buyer sees the others, too."""
    write: Callable[[Connection], None]
    """Writes the record and the use, in the transaction of the act that rests on them.

    Raises CheckoutSessionClosed if the buyer was erased, revoked or joined to another one, or is
    for another reason no longer verified; the transaction is to be rolled back."""


async def inform(room: Remembered, account_id: str, known: KnownBy, zip_: str | None) -> Informing:
    """Whether this buyer is verified for this account now.

    If so, the result makes a record, which the check names as its `verification`.
    """
    access, mode = room.buyers.access, known.mode
    check = await judge_known(room.buyers, AccountReach(account_id, mode), known.cbid, zip_)
    cbid = check.cbid or known.cbid
    clock = await access.test_clocks.of(account_id, mode)
    time_ns = access.clock.time_ns()
    at = from_ns(time_ns)
    write_record = None
    if check.verified:
        key = await room.buyers.vault.data_key(account_id, time_ns)
        record_id = verification_id(access, time_ns)
        write_record = partial(
            write_verification,
            room=room.buyers,
            act=VerificationAct(account_id, mode, clock, time_ns, key),
            cbid=cbid,
            provider=PROVIDER,
            result=(BuyerStatus.VERIFIED, ()),
            record_id=record_id,
            personal=() if mode is Mode.TEST else (("evidence_sha256", None),),
            members={"binding": known.kind.value},
        )
        check = replace(check, verification=record_id)
    use = {
        "id": timed_id("use", time_ns, access.entropy(8)),
        "mode": mode,
        "cbid": known.cbid,
        "account_id": account_id,
        "kind": known.kind,
        "verified": write_record is not None,
        "at": at,
    }

    def write(connection: Connection) -> None:
        buyer = buyers_by_cbid(connection, [cbid], to_change=True).get(cbid)
        if buyer is None:
            raise CheckoutSessionClosed("The buyer was erased.")
        connection.execute(insert(remembered_uses), use)
        if write_record is None:
            return
        query = StatusQuery(account_id, mode, cbid)
        now = judge(connection, room.buyers, query, None, at, clock.at(at))
        still = isinstance(now, IdentityCheck) and now.status is BuyerStatus.VERIFIED
        if not still or buyer.same_as is not None:
            raise CheckoutSessionClosed("The buyer is not verified for this account now.")
        subject, index = None, access.secret.blind_index
        if mode is Mode.TEST:
            # In the sandbox the guesses of a session count: see `buyers.sandbox`.
            first = select(verifications.c.subject_index).where(verifications.c.cbid == cbid)
            subject = connection.execute(first.order_by(verifications.c.id).limit(1)).scalar()
        write_record(
            connection,
            subject_index=subject or index(account_id, "buyer", cbid),
            zip_index=None if zip_ is None else index(account_id, "zip", zip5(zip_)),
        )

    return Informing(check, write)
