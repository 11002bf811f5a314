"""The room of buyers: what its acts work with."""

from __future__ import annotations

from dataclasses import dataclass

from countersign.buyers.admin import OperateBuyers
from countersign.buyers.expire import ExpireBuyers
from countersign.buyers.poll_sessions import SettleSessions
from countersign.buyers.sandbox_faults import SandboxFaults
from countersign.buyers.settings import ManageVerification
from countersign.buyers.verify import BuyerStatusQuery, VerifyBuyer
from countersign.log.room import LogRoom


@dataclass(frozen=True, slots=True, kw_only=True)
class Buyers:
    """Buyers, their verifications, and how accounts verify."""

    log: LogRoom
    verify: VerifyBuyer
    status: BuyerStatusQuery
    settings: ManageVerification
    poll: SettleSessions
    admin: OperateBuyers
    expire: ExpireBuyers
    faults: SandboxFaults
