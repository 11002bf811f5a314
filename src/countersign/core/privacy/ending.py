"""The end of evidence: an account may set one, and whole orders that are past it are erased.

An order's acknowledgment, clearances and reports of fulfilment are deleted in one transaction.
Their entries in the log stay, so that the log and evidence held by others still verify.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, delete, exists, func, insert, select, update

from countersign.base.db.statements import chunks, lock_on_server
from countersign.base.db.tables import (
    account_origins,
    api_keys,
    disclosures,
    ended_records,
    personal_columns,
    records,
    webhook_endpoints,
)
from countersign.base.errors import InvalidArgument
from countersign.base.values import (
    ACKNOWLEDGMENT,
    CLEARANCE,
    FULFILMENT,
    OVERRIDE,
    Mode,
    earliest_id,
    from_ns,
    is_id,
    to_ms,
)
from countersign.core.access.account import (
    Account,
    all_accounts,
    change_account,
    find_account,
    lock_account,
    read_account,
)
from countersign.core.access.audit import AuditAction, write_audit
from countersign.core.access.reach import DEPLOYMENT, AccountReach
from countersign.core.buyers.providers import drop_provider, remove_settings
from countersign.core.checkout.expiry import end_all, still_open
from countersign.core.log import tree_sql
from countersign.core.orders.sql import delete_acts, orders_of
from countersign.core.privacy import erase_sql as sql
from countersign.core.privacy.erase import carry_out, erased_entries, make_erasure
from countersign.core.privacy.held import find_held
from countersign.core.privacy.holds import take_turn
from countersign.core.privacy.model import Erasable, ErasureReason, RecordErasure, years_after
from countersign.core.privacy.room import Privacy
from countersign.core.webhooks.endpoints import end_endpoint, find_endpoints

YEARS_MAX: Final = 100
_PAGE: Final = 200
_TOGETHER: Final = 50
"""Orders that end in one transaction."""
_ENDING: Final = (ACKNOWLEDGMENT, CLEARANCE, FULFILMENT, OVERRIDE)
"""A check can belong to more orders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndingOrder:
    """An order whose evidence has reached its end; a hold with this id still keeps it."""

    key: str
    """Its first acknowledgment, else its first clearance."""
    account_id: str
    records: tuple[Erasable, ...]
    ended_at: datetime
    """When the last period of its records ended."""
    disclosed: bool
    """Whether personal data is left, which is erased with it."""
    hold: str | None = None


async def set_evidence_end(privacy: Privacy, id_or_name: str, years: int | None) -> Account:
    """Let the evidence of an account end after so many years; None: never.

    Raises UnknownAccount, or InvalidArgument if a notice asks for more years.
    """
    access = privacy.access
    account = await find_account(access, id_or_name)

    def put(connection: Connection) -> Account | InvalidArgument:
        longest = max(sql.find_retention_years(connection).values(), default=1)
        if years is not None and not longest <= years <= YEARS_MAX:
            return InvalidArgument(
                f"The evidence must be kept for {longest} to {YEARS_MAX} years: a notice may ask "
                "for that many."
            )
        action, details = AuditAction.EVIDENCE_END_SET, {"years": years}
        return change_account(connection, access, account, action, details, evidence_years=years)

    return await access.database.write(put)


async def list_ending(privacy: Privacy) -> AsyncIterator[EndingOrder]:
    """The orders whose evidence has reached its end, on hold or not; by account, oldest first."""
    now = from_ns(privacy.access.clock.time_ns())
    scan = privacy.access.database.scan
    for account in await scan(all_accounts):
        for mode in Mode:
            for kind in (ACKNOWLEDGMENT, CLEARANCE):
                after: str | None = ""
                while after is not None and account.evidence_years is not None:
                    found, after = await scan(
                        _page, account, now, mode=mode, kind=kind, after=after
                    )
                    ids = [record.record_id for order in found for record in order.records]
                    reach = AccountReach(account.id, mode)
                    held = await scan(find_held, privacy.access.secret, ids, reach)
                    for order in found:
                        holds = [held[r.record_id][0] for r in order.records if r.record_id in held]
                        yield replace(order, hold=holds[0]) if holds else order


async def end_evidence(
    privacy: Privacy, orders: Sequence[EndingOrder], report: Callable[[int], None] = lambda _: None
) -> list[str]:
    """End the evidence of these orders, and write that down; returns the records that went.

    Orders put on hold since, or of an account that changed its setting, are kept. `report` is
    called with the number of orders examined.
    """
    gone: list[str] = []
    for start in range(0, len(orders), _TOGETHER):
        some = orders[start : start + _TOGETHER]
        erasures = {order.key: await _erasures(privacy, order) for order in some if order.disclosed}
        for account_id in dict.fromkeys(order.account_id for order in some):
            keys = [order.key for order in some if order.account_id == account_id]
            gone += await privacy.access.database.write(_end, privacy, account_id, keys, erasures)
        report(start + len(some))
    return gone


async def _erasures(privacy: Privacy, order: EndingOrder) -> list[RecordErasure]:
    """One for each record, in random order: as in `erase_planned`."""
    left = [record for record in order.records if record.erased_at is None]
    return [
        await make_erasure(privacy, r.account_id, r.mode, [r.record_id], ErasureReason.RETENTION)
        for r in sorted(left, key=lambda _: privacy.access.entropy(8))
    ]


def _page(
    connection: Connection, account: Account, now: datetime, *, mode: Mode, kind: str, after: str
) -> tuple[list[EndingOrder], str | None]:
    """The orders in the next records of a type whose evidence period has ended."""
    assert account.evidence_years is not None  # noqa: S101 - only such accounts are asked for
    # Equality to the millisecond counts as ended.
    before = earliest_id(kind, to_ms(years_after(now, -account.evidence_years)) + 1)
    r = records.c
    own = (r.account_id == account.id, r.mode == mode)
    page = select(r.id).where(*own, r.id > max(after, earliest_id(kind, 0)), r.id < before)
    ids = connection.execute(page.order_by(r.id).limit(_PAGE)).scalars().all()
    return reached(connection, account, ids, now), ids[-1] if len(ids) == _PAGE else None


def reached(
    connection: Connection, account: Account, keys: Sequence[str], now: datetime
) -> list[EndingOrder]:
    """The orders with these keys whose evidence period has ended.

    A key of a record that is only part of an order is skipped, and so is an order that waits for
    its log entry.
    """
    if account.evidence_years is None:
        return []
    orders: dict[str, set[str]] = {}
    for order in orders_of(connection, DEPLOYMENT, keys):
        own = {one for one in order.members if any(is_id(kind, one) for kind in _ENDING)}
        orders[min(own)] = own
    orders = {key: ids for key, ids in orders.items() if key in {*keys}}
    members = sorted({id_ for ids in orders.values() for id_ in ids})
    known: dict[str, Erasable] = {}
    disclosed = set[str]()
    for chunk in chunks(members):
        found = sql.find_records(connection, DEPLOYMENT, records.c.id.in_(chunk))
        known |= {record.record_id: record for record in found}
        left = select(disclosures.c.record_id).where(disclosures.c.record_id.in_(chunk))
        disclosed |= set(connection.execute(left).scalars())
    in_log = tree_sql.sealed(connection, members)
    notices, made = sql.find_retention_years(connection), list[EndingOrder]()
    for key, ids in sorted(orders.items()):
        if not ids <= in_log.keys():
            continue  # the proof of its existence is not written yet
        stored = tuple(known[id_] for id_ in sorted(ids) if id_ in known)
        ends = [years_after(record.at, account.evidence_years) for record in stored]
        ends += [end for record in stored if (end := sql.kept_until(record, notices)) is not None]
        if ends and max(ends) <= now:
            ending = EndingOrder(
                key=key,
                account_id=account.id,
                records=stored,
                ended_at=max(ends),
                disclosed=not disclosed.isdisjoint(ids),
            )
            made.append(ending)
    return made


def _end(
    connection: Connection,
    privacy: Privacy,
    account_id: str,
    keys: Sequence[str],
    erasures: Mapping[str, Sequence[RecordErasure]],
) -> list[str]:
    """Erase and delete what of these orders may go now, whatever was planned.

    Both in one transaction: after the erasure nothing links a buyer to the order, so a hold placed
    in between would not keep it.
    """
    take_turn(connection)
    # A transaction that clears or fulfils an order locks its rows; without rows, only this lock
    # makes it wait.
    lock_on_server(connection, "LOCK TABLE acknowledgment_uses IN EXCLUSIVE MODE")
    account = read_account(connection, account_id)
    at = from_ns(privacy.access.clock.time_ns())
    orders = reached(connection, account, keys, at) if account else []
    ids = [record.record_id for order in orders for record in order.records]
    kept = find_held(connection, privacy.access.secret, ids, DEPLOYMENT).keys()
    going = [
        record
        for order in orders
        if kept.isdisjoint(r.record_id for r in order.records)
        and (not order.disclosed or _erase(connection, privacy, order, erasures))
        for record in order.records
    ]
    if not going:
        return []
    notes = [
        {"record_id": r.record_id, "account_id": r.account_id, "mode": r.mode, "at": at}
        for r in going
    ]
    connection.execute(insert(ended_records), notes)
    gone = [record.record_id for record in going]
    for chunk in chunks(gone):
        delete_acts(connection, chunk)
        for column in personal_columns("evidence"):
            connection.execute(delete(column.table).where(column.in_(chunk)))
    audit = privacy.access.audit.entry(AuditAction.EVIDENCE_ENDED, account_id, records=len(gone))
    write_audit(connection, audit)
    return gone


def _erase(
    connection: Connection,
    privacy: Privacy,
    order: EndingOrder,
    erasures: Mapping[str, Sequence[RecordErasure]],
) -> bool:
    """Erase an order's remaining data; False: not all of it was planned, or a hold keeps it."""
    left = {record.record_id for record in order.records if record.erased_at is None}
    parts = [p for p in erasures.get(order.key, ()) if not left.isdisjoint(p.record_ids)]
    if not parts or len(parts) != len(left):
        return False
    access, reason = privacy.access, ErasureReason.RETENTION
    number = {(order.account_id, order.records[0].mode): len(parts)}
    audit = erased_entries(privacy, order.key, number, reason)
    act = partial(carry_out, audit=audit, reason=reason, whole=False)
    return act(connection, access.secret, privacy.log.journal, parts, DEPLOYMENT) is None


def close(connection: Connection, privacy: Privacy, account_id: str) -> Account:
    """Close an account in one transaction; nothing opens it again.

    Its keys are revoked, webhook endpoints deleted, origins and credentials of identity providers
    removed, and open checkout sessions expire. Records, their disclosures, holds and the log stay:
    operators find and prove its evidence as before, and the same periods end it.

    Raises UnknownAccount, or AccountClosed if it is closed.
    """
    account = lock_account(connection, account_id)
    now, entry = from_ns(privacy.access.clock.time_ns()), privacy.access.audit.entry
    connection.execute(update(api_keys).where(*_works(account.id)).values(revoked_at=now))
    for endpoint in find_endpoints(connection, webhook_endpoints.c.account_id == account.id):
        end_endpoint(connection, endpoint.id, now)
    connection.execute(delete(account_origins).where(account_origins.c.account_id == account.id))
    end_all(connection, account.id, now)
    removed = entry(AuditAction.VERIFICATION_SETTINGS_REMOVED, account.id)
    remove_settings(connection, account.id, removed)
    drop_provider(connection, account.id, Mode.TEST)
    closed = AuditAction.ACCOUNT_CLOSED
    return change_account(connection, privacy.access, account, closed, closed_at=now)


def plan_closing(connection: Connection, account_id: str) -> Mapping[str, int]:
    """How many of each kind closing an account would end (sessions: open ones), and would leave."""
    own = records.c.account_id == account_id
    endpoints = find_endpoints(connection, webhook_endpoints.c.account_id == account_id)

    def count(table: Any, *conditions: ColumnElement[bool]) -> int:  # noqa: ANN401 - a table
        query = select(func.count()).select_from(table).where(*conditions)
        return connection.execute(query).scalar_one()

    return {
        "keys": count(api_keys, *_works(account_id)),
        "webhook_endpoints": len(endpoints),
        "origins": count(account_origins, account_origins.c.account_id == account_id),
        "checkout_sessions": len(still_open(connection, account_id)),
        "records": count(records, own),
        "records_with_personal_data": count(
            records, own, exists().where(disclosures.c.record_id == records.c.id)
        ),
    }


def _works(account_id: str) -> tuple[ColumnElement[bool], ...]:
    return api_keys.c.account_id == account_id, api_keys.c.revoked_at.is_(None)
