"""A verification: one provider session judged once, and what it made of the buyer."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from countersign.domain.buyer import Attempt, Buyer
from countersign.domain.idempotency import IdempotencyEntry
from countersign.domain.mode import Mode
from countersign.domain.record import NewRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class NewVerification:
    """What one call of *verify* writes, in one transaction.

    `subject_index` and `zip_index` are keyed hashes: of the provider session (who is asked about)
    and of the ZIP code; both None where the call gave none.
    """

    record: NewRecord
    """What is written down of it, if it changes the buyer; its identifier is the verification's."""
    account_id: str
    mode: Mode
    provider: str
    cbid: str
    attempt: Attempt
    simulated: bool
    subject_index: bytes | None
    zip_index: bytes | None
    at: datetime
    decide: Callable[[Buyer | None], Buyer]
    """The buyer after this verification, from the buyer as stored; pure, run inside the write."""
    remember: Callable[[Buyer], IdempotencyEntry] | None
