"""Each account's rules for clearances, set by the operator."""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert

from countersign.base.db.tables import clearance_settings
from countersign.base.errors import InvalidArgument
from countersign.core.access.account import find_account
from countersign.core.access.audit import AuditAction, write_audit
from countersign.core.clearances.facts_sql import rules_of
from countersign.core.clearances.model import ClearanceRules
from countersign.core.clearances.room import Clearances


async def set_rules(room: Clearances, id_or_name: str, rules: ClearanceRules) -> str:
    """Set an account's rules from the next clearance on; returns the account's id."""
    mistake = rules.mistake()
    if mistake is not None:
        raise InvalidArgument(mistake)
    account = await find_account(room.access, id_or_name)
    audit = room.access.audit.entry(
        AuditAction.CLEARANCE_SETTINGS_CHANGED,
        account.id,
        product_class_required=rules.product_class_required,
        **rules.seconds(),
    )
    seconds = {name.removesuffix("_seconds"): value for name, value in rules.seconds().items()}
    row: dict[str, object] = {
        "account_id": account.id,
        "product_class_required": rules.product_class_required,
    }
    row |= {**seconds, "changed_at": audit.at}

    def put(connection: Connection) -> None:
        of_account = clearance_settings.c.account_id == account.id
        connection.execute(delete(clearance_settings).where(of_account))
        connection.execute(insert(clearance_settings), row)
        write_audit(connection, audit)

    await room.access.database.write(put)
    return account.id


async def get_rules(room: Clearances, id_or_name: str) -> tuple[str, ClearanceRules]:
    """The account's id and rules; the defaults if none were set."""
    account = await find_account(room.access, id_or_name)
    rules = await room.access.database.read(rules_of, [account.id])
    return account.id, rules.get(account.id, ClearanceRules())
