"""What the services need from outside, as Protocols: time, randomness and the stores.

Each store has two implementations to satisfy, SQLite and PostgreSQL, held to one contract suite.
Every method that writes returns only when the write is durable.
"""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Protocol

from countersign.access.audit import AuditEntry
from countersign.access.idempotency import IdempotencyEntry
from countersign.access.sandbox_state import FaultPlan, NewMove, SandboxState
from countersign.access.test_clock import TestClock
from countersign.buyers.model import Attempt, Buyer
from countersign.buyers.rules import VerificationSettings
from countersign.buyers.verification import (
    AskedSession,
    Known,
    LiveVerification,
    NewVerification,
    Pending,
    Resolution,
    StoredEvidence,
)
from countersign.clock import Clock as Clock  # noqa: PLC0414 - still imported from here
from countersign.clock import Entropy as Entropy  # noqa: PLC0414 - as above
from countersign.events.model import Event, NewEvent
from countersign.mode import Mode


class Sandbox(Protocol):
    """A stand-in for an identity provider whose outcomes are fixed; it verifies nothing."""

    @property
    def name(self) -> str:
        """The provider's name in a verification."""
        ...

    def play(self, session_id: str | None, now: datetime) -> tuple[Attempt, ...]:
        """What this session comes to at its first call.

        Raises:
            ProviderSessionNotFound, ProviderUnavailable: as the session's part says.
        """
        ...

    def cbid(self, account_id: str, session_id: str | None, shipping_zip: str | None) -> str:
        """The buyer identifier, a function of the three."""
        ...


class BuyerStore(Protocol):
    """Where buyers and their simulated verifications are kept."""

    async def get(self, account_id: str, mode: Mode, cbid: str) -> Known | None:
        """A buyer of this mode, whichever account verified it, and the asking account's rules."""
        ...

    async def verify(self, new: NewVerification) -> Buyer:
        """Write a verification and the buyer that it makes.

        Raises:
            RateLimited: the account has tried too many ZIP codes for this subject today.
        """
        ...


class LiveVerificationStore(Protocol):
    """Where verifications by identity providers are kept."""

    async def resolve(self, mode: Mode, session: AskedSession) -> Resolution:
        """Whom a session is about: the buyer of its document, else that of the session."""
        ...

    async def judge(self, new: LiveVerification) -> Buyer | Resolution:
        """Write a verification and the buyer that it makes.

        Gives a Resolution, and writes nothing, if meanwhile the session is about somebody else
        than `new.cbid`.

        Raises:
            RateLimited: the account has tried too many ZIP codes for this buyer today.
        """
        ...


class PendingSessionStore(Protocol):
    """Where sessions are kept that a provider has not decided."""

    async def due(
        self, now: datetime, limit: int, but_of: Collection[str] = ()
    ) -> Sequence[Pending]:
        """The sessions to ask about by now, those that have waited longest first.

        Sessions of the accounts in `but_of` are left out.
        """
        ...

    async def waiting(self) -> tuple[int, datetime | None]:
        """How many sessions are followed, and since when the oldest one is."""
        ...

    async def claim(self, pending: Pending, next_poll_at: datetime) -> bool:
        """Take the next poll of a session; False if another process did, or it is decided."""
        ...

    async def hurry(
        self,
        account_id: str,
        mode: Mode,
        session_index: bytes,
        message_index: bytes,
        at: datetime,
    ) -> bool:
        """Ask about a session at once, because of a message; False if it was acted upon before."""
        ...

    async def drop(self, pending: Pending, at: datetime) -> None:
        """Follow a session no longer; a buyer who waits for nothing else has to verify anew."""
        ...


class VerificationSettingsStore(Protocol):
    """Where the settings of accounts for live verification are kept."""

    async def get(self, account_id: str) -> tuple[VerificationSettings, bytes] | None:
        """The settings of an account, and its sealed credentials; None if it has none."""
        ...

    async def put(
        self, settings: VerificationSettings, credentials: bytes, audit: AuditEntry
    ) -> None:
        """Write the settings of an account, and who changed them."""
        ...

    async def remove(self, account_id: str, audit: AuditEntry) -> bool:
        """Remove the settings of an account; False if it had none."""
        ...


class OperatedBuyerStore(Protocol):
    """What operators do with buyers."""

    async def get(self, cbid: str) -> Buyer | None:
        """A buyer of whichever mode and account; the one it goes on as, where it does."""
        ...

    async def revoke(self, cbid: str, audit: AuditEntry) -> Buyer:
        """Revoke a buyer and its documents; gives it as it is then.

        Raises:
            UnknownSubject: there is no such buyer.
        """
        ...

    async def reinstate(self, cbid: str, audit: AuditEntry) -> Buyer:
        """Undo a revocation; gives the buyer as it is then.

        Raises:
            UnknownSubject: there is no such buyer.
            InvalidArgument: it is not revoked.
        """
        ...

    async def evidence(self, cbid: str) -> Sequence[StoredEvidence]:
        """The evidence of a buyer's verifications, oldest first; without content where erased."""
        ...

    async def was_erased(self, name: str) -> bool:
        """Whether there was such a buyer, and it was erased."""
        ...


class SandboxStore(Protocol):
    """Where test clocks and planned faults are kept, and sandboxes are changed by hand."""

    async def state(self) -> SandboxState:
        """Every test clock that is ahead, and the accounts with a planned fault."""
        ...

    async def advance(
        self,
        account_id: str,
        move: Callable[[TestClock], TestClock],
        at: datetime,
        remember: Callable[[TestClock], IdempotencyEntry] | None,
    ) -> TestClock:
        """Move a clock ahead, and tell of the buyers that expire by it.

        Raises:
            InvalidRequest: as `move` says.
        """
        ...

    async def reset(self, account_id: str) -> None:
        """Bring a clock to real time."""
        ...

    async def overdue(self, now: datetime) -> bool:
        """Whether a buyer has expired by a test clock of whom nobody was told."""
        ...

    async def tell_overdue(self, now: datetime, limit: int) -> int:
        """Write `buyer.expired` for those that have expired by now; gives for how many."""
        ...

    async def planned(self, account_id: str) -> FaultPlan | None:
        """What verifications of an account meet."""
        ...

    async def plan(
        self,
        account_id: str,
        plan: FaultPlan,
        at: datetime,
        remember: Callable[[FaultPlan], IdempotencyEntry] | None,
    ) -> None:
        """Plan a fault, in place of one that was planned before."""
        ...

    async def take(self, account_id: str) -> FaultPlan | None:
        """The fault that this call meets; it counts as one of those that do."""
        ...

    async def clear(self, account_id: str) -> None:
        """Forget what was planned."""
        ...

    async def move_buyer(self, move: NewMove) -> Buyer:
        """Write a sandbox buyer in another state, with its record and its event.

        Raises:
            NotFound: the account has no such sandbox buyer.
        """
        ...

    async def trigger(
        self, event: NewEvent, remember: Callable[[Event], IdempotencyEntry] | None
    ) -> Event:
        """Write an event that tells of nothing that happened."""
        ...


class KeyEncryption(Protocol):
    """Wraps and unwraps data keys with a key-encryption key that is kept elsewhere."""

    @property
    def current_id(self) -> bytes:
        """The id of the key that wraps: the first bytes of whatever `wrap` gives, after a 0x01."""
        ...

    def read_again(self) -> None:
        """Read the keys anew from where they are kept.

        Raises:
            StorageUnavailable: they cannot be had at the moment.
        """
        ...

    def wrap(self, key: bytes, context: bytes) -> bytes:
        """Encrypt a key for this context.

        Raises:
            StorageUnavailable: the keys cannot be had at the moment.
        """
        ...

    def unwrap(self, wrapped: bytes, context: bytes) -> bytes:
        """Decrypt a key.

        Raises:
            WrongKeyEncryptionKey: none of the keys opens it.
            StorageUnavailable: the keys cannot be had at the moment.
        """
        ...


class ExpiryStore(Protocol):
    """Where it is noted of which expired buyers was told."""

    async def due(self, now: datetime) -> bool:
        """Whether a buyer has expired of which nobody was told."""
        ...

    async def tell(self, now: datetime, limit: int) -> int:
        """Write `buyer.expired` for those that have expired by now; gives for how many."""
        ...
