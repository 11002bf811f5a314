"""What each account asks of its clearances: set by the operator."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from sqlalchemy import Connection, delete, insert

from countersign.access.account import find_account
from countersign.access.audit import AuditAction, AuditEntry, write_audit
from countersign.clearances.facts_sql import rules_of
from countersign.clearances.model import ClearanceRules
from countersign.clearances.room import Clearances
from countersign.db.tables import clearance_settings
from countersign.errors import InvalidArgument

_SECOND: Final = timedelta(seconds=1)


async def set_rules(room: Clearances, id_or_name: str, rules: ClearanceRules) -> str:
    """Set what an account asks, from the next clearance on; returns the account's id.

    Raises:
        UnknownAccount: there is no such account.
        InvalidArgument: an age is out of bounds.
    """
    mistake = rules.mistake()
    if mistake is not None:
        raise InvalidArgument(mistake)
    account = await find_account(room.access, id_or_name)
    audit = room.audit.entry(
        AuditAction.CLEARANCE_SETTINGS_CHANGED,
        account.id,
        acknowledgment_max_age_seconds=rules.acknowledgment_max_age // _SECOND,
        lifetime_seconds=rules.lifetime // _SECOND,
        product_class_required=rules.product_class_required,
    )
    await room.database.write(_put, account.id, rules, audit)
    return account.id


async def get_rules(room: Clearances, id_or_name: str) -> tuple[str, ClearanceRules]:
    """The account's id, and what it asks: the defaults if nothing was set.

    Raises:
        UnknownAccount: there is no such account.
    """
    account = await find_account(room.access, id_or_name)
    rules = await room.database.read(rules_of, [account.id])
    return account.id, rules.get(account.id, ClearanceRules())


def _put(connection: Connection, account_id: str, rules: ClearanceRules, audit: AuditEntry) -> None:
    of_account = clearance_settings.c.account_id == account_id
    connection.execute(delete(clearance_settings).where(of_account))
    connection.execute(
        insert(clearance_settings),
        {
            "account_id": account_id,
            "acknowledgment_max_age": rules.acknowledgment_max_age // _SECOND,
            "lifetime": rules.lifetime // _SECOND,
            "product_class_required": rules.product_class_required,
            "changed_at": audit.at,
        },
    )
    write_audit(connection, audit)
