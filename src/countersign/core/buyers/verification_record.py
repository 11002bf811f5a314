"""The record of a verification, with what each says: of a live, a simulated or a known buyer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from countersign.base.values import VERIFICATION, Mode, Reason, from_ns, timed_id
from countersign.core.access.clocks import AccountClock
from countersign.core.access.room import Access
from countersign.core.buyers.model import BuyerStatus
from countersign.core.log.append_record import account_fact
from countersign.core.log.record import NewRecord, RecordType
from countersign.core.parties import Bound
from countersign.core.vault.vault import DataKey
from countersign_evidence.canonical import Json


@dataclass(frozen=True, slots=True, repr=False)
class VerificationAct:
    """For which account a buyer is verified, and when."""

    account_id: str
    mode: Mode
    clock: AccountClock
    """The account's, by which a sandbox goes."""
    time_ns: int
    """Real time, which the record has."""
    data_key: DataKey
    """The account's of this time."""

    @property
    def at(self) -> datetime:
        """Real time."""
        return from_ns(self.time_ns)

    @property
    def now(self) -> datetime:
        """What the account's clock shows."""
        return self.clock.at(self.at)


def verification_id(access: Access, time_ns: int) -> str:
    """A new identifier of a verification, and of its record."""
    return timed_id(VERIFICATION, time_ns, access.entropy(8))


def verification_record(  # noqa: PLR0917 - what every one says
    access: Access,
    act: VerificationAct,
    cbid: str,
    record_id: str,
    provider: str,
    session_id: str | None,
    result: tuple[BuyerStatus, Sequence[Reason]],
    personal: Sequence[tuple[str, Any]],
    members: dict[str, Json],
    bound: Bound,
) -> NewRecord:
    """The record; `personal` and `members` are what only some say. `session_id` is the provider's.

    `bound` are the records of the parties in force in the transaction that writes it.
    """
    status, reasons = result
    return account_fact(
        act.data_key,
        access.entropy,
        RecordType.VERIFICATION,
        record_id=record_id,
        account_id=act.account_id,
        mode=act.mode,
        time_ns=act.time_ns,
        members={
            "provider": provider,
            "simulated": act.mode is Mode.TEST,
            **members,
            **act.clock.member(act.at),
            **bound.members(),
        },
        personal=(
            ("cbid", cbid),
            ("provider_identity_session_id", session_id),
            ("result", {"status": status.value, "reasons": [reason.value for reason in reasons]}),
            *personal,
        ),
        cbid_index=access.secret.blind_index(act.account_id, "cbid", cbid),
    )
