"""What each account asks of its clearances: set by the operator."""

from __future__ import annotations

from datetime import timedelta

from countersign.access.account import find_account
from countersign.access.audit import Audit, AuditAction
from countersign.access.room import Access
from countersign.clearances.model import ClearanceRules
from countersign.errors import InvalidArgument
from countersign.ports import ClearanceSettingsStore


class ManageClearances:
    """The acts on an account's settings."""

    def __init__(self, store: ClearanceSettingsStore, access: Access, audit: Audit) -> None:
        self._store = store
        self._access = access
        self._audit = audit

    async def set(self, id_or_name: str, rules: ClearanceRules) -> str:
        """Set what an account asks, from the next clearance on; gives the account's id.

        Raises:
            UnknownAccount: there is no such account.
            InvalidArgument: an age is out of bounds.
        """
        mistake = rules.mistake()
        if mistake is not None:
            raise InvalidArgument(mistake)
        account = await find_account(self._access, id_or_name)
        second = timedelta(seconds=1)
        audit = self._audit.entry(
            AuditAction.CLEARANCE_SETTINGS_CHANGED,
            account.id,
            acknowledgment_max_age_seconds=rules.acknowledgment_max_age // second,
            lifetime_seconds=rules.lifetime // second,
            product_class_required=rules.product_class_required,
        )
        await self._store.put(account.id, rules, audit)
        return account.id

    async def show(self, id_or_name: str) -> tuple[str, ClearanceRules]:
        """The account's id, and what it asks: the defaults where it has said nothing.

        Raises:
            UnknownAccount: there is no such account.
        """
        account = await find_account(self._access, id_or_name)
        return account.id, await self._store.get(account.id) or ClearanceRules()
