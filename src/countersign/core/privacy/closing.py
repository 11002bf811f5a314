"""Closing an account: what ends at once, and what stays for evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, exists, func, select, update

from countersign.base.db.tables import (
    account_origins,
    api_keys,
    disclosures,
    records,
    webhook_endpoints,
)
from countersign.base.values import Mode, from_ns
from countersign.core.access.account import (
    Account,
    change_account,
    lock_account,
)
from countersign.core.access.audit import AuditAction
from countersign.core.buyers.providers import drop_provider, remove_settings
from countersign.core.checkout.expiry import end_all, still_open
from countersign.core.privacy.room import Privacy
from countersign.core.webhooks.endpoints import end_endpoint, find_endpoints


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """The effects of closing an account: ended and remaining objects."""

    keys: int
    """Keys that are not revoked."""
    webhook_endpoints: int
    origins: int
    checkout_sessions: int
    """Open checkout sessions: their buyers are in the middle of a checkout."""
    records: int
    """Remaining records of both modes, with their proofs."""
    records_with_personal_data: int
    """Those of them that still disclose it, until retention or an erasure ends that."""


def close(connection: Connection, privacy: Privacy, account_id: str) -> Account:
    """Close an account in one transaction; nothing opens it again.

    Its keys are revoked, webhook endpoints deleted, origins and credentials of identity providers
    removed, and open checkout sessions expire. Records, what they disclose, holds and the log
    stay: operators find and prove its evidence as before, and it ends by the same periods.

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


def plan_closing(connection: Connection, account_id: str) -> Closing:
    """Preview of closing an account: ended and remaining objects."""
    own = records.c.account_id == account_id
    endpoints = find_endpoints(connection, webhook_endpoints.c.account_id == account_id)

    def count(table: Any, *conditions: ColumnElement[bool]) -> int:  # noqa: ANN401 - a table
        query = select(func.count()).select_from(table).where(*conditions)
        return connection.execute(query).scalar_one()

    return Closing(
        keys=count(api_keys, *_works(account_id)),
        webhook_endpoints=len(endpoints),
        origins=count(account_origins, account_origins.c.account_id == account_id),
        checkout_sessions=len(still_open(connection, account_id)),
        records=count(records, own),
        records_with_personal_data=count(
            records, own, exists().where(disclosures.c.record_id == records.c.id)
        ),
    )


def _works(account_id: str) -> tuple[ColumnElement[bool], ...]:
    return api_keys.c.account_id == account_id, api_keys.c.revoked_at.is_(None)
