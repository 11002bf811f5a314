"""What the services need from outside, as Protocols: time, randomness and the stores.

Each store has two implementations to satisfy, SQLite and PostgreSQL, held to one contract suite.
Every method that writes returns only when the write is durable.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol, TypeAlias, TypeVar

from countersign.access.audit import AuditEntry
from countersign.access.idempotency import IdempotencyEntry
from countersign.access.sandbox_state import FaultPlan, NewMove, SandboxState
from countersign.access.test_clock import TestClock
from countersign.acknowledgments.model import (
    AcknowledgmentQuery,
    NewAcknowledgment,
    StoredAcknowledgment,
)
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
from countersign.events.model import Event, EventQuery, NewEvent
from countersign.log.record import KeylessRecord, NewRecord
from countersign.mode import Mode
from countersign.notices.model import NoticeEvent, PublishedVersion
from countersign.privacy.model import Erasable, ErasableBuyer, Hold, OldEvidence, RecordErasure
from countersign.webhooks.model import (
    Claimed,
    Delivery,
    DeliveryQuery,
    Disabled,
    EndpointChanges,
    Finished,
    Sent,
    Target,
    Waiting,
    WebhookEndpoint,
    WebhookSecret,
)

T = TypeVar("T")


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


class AcknowledgmentStore(Protocol):
    """Where acknowledgments are kept."""

    async def add(self, act: T, make: Callable[[Sequence[T]], Sequence[NewAcknowledgment]]) -> None:
        """Write the record, its disclosures and the kept answer: all of them, or none.

        `make` gives, in their order, what to write for acts that are stored together.
        """
        ...

    async def get(self, account_id: str, mode: Mode, ack_id: str) -> StoredAcknowledgment | None:
        """One acknowledgment of this account and mode."""
        ...

    async def find(self, query: AcknowledgmentQuery) -> Sequence[StoredAcknowledgment]:
        """Newest first, at most `query.limit`."""
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


CbidIndex: TypeAlias = Callable[[str, str], bytes]
"""The blind index of a buyer identifier, by account: `index(account_id, cbid)`."""


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

    async def was_erased(self, cbid: str, cbid_index: CbidIndex) -> bool:
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


class NoticeStore(Protocol):
    """Where published notice versions and their lifecycle are kept."""

    async def revision(self) -> int:
        """A number that grows with every lifecycle event."""
        ...

    async def versions(self) -> Sequence[PublishedVersion]:
        """Every published version with its events, oldest first."""
        ...

    async def publish(
        self, body: bytes, digest: str, published: NoticeEvent, records: Sequence[NewRecord]
    ) -> None:
        """Write a version, its `published` event and the records of it.

        Raises:
            NoticeVersionConflict: this version is published already.
        """
        ...

    async def add_event(
        self, event: NoticeEvent, records: Sequence[NewRecord], audit: AuditEntry | None = None
    ) -> None:
        """Append a lifecycle event and the records of it.

        Raises:
            UnknownNotice: there is no such version.
        """
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


class RestoredStore(Protocol):
    """Where a restored database tells what was erased since its backup."""

    async def keyless(self, after_id: str, limit: int) -> Sequence[KeylessRecord]:
        """Records after this one whose shred key was destroyed since the backup, in order.

        None in a database that was not restored, or whose erasures are written down.
        """
        ...

    async def erased_buyers(self, cbid_index: CbidIndex) -> Sequence[str]:
        """Buyers that are there, and were erased since the backup.

        None in a database that was not restored, or where they are erased anew.
        """
        ...

    async def done(self, *, buyers_too: bool) -> None:
        """Every one of the records has its erasure, and if so every buyer."""
        ...


class ErasureStore(Protocol):
    """Where disclosures are destroyed, and holds are kept."""

    async def record(self, record_id: str) -> Erasable | None:
        """One record, of whichever account and mode."""
        ...

    async def of_buyer(self, cbid: str) -> ErasableBuyer | None:
        """A buyer, its identifiers and its verifications; None if there is no such buyer."""
        ...

    async def naming(self, cbid_indexes: Sequence[bytes]) -> Sequence[Erasable]:
        """The acknowledgments and clearances under these blind indexes of a buyer identifier."""
        ...

    async def of_orders(self, ack_ids: Sequence[str]) -> Sequence[Erasable]:
        """The clearances asked for with these acknowledgments, and what was reported of them."""
        ...

    async def older(self, before: datetime, after_id: str, limit: int) -> Sequence[Erasable]:
        """Acknowledgments accepted before this time that still have disclosures, oldest first."""
        ...

    async def old_evidence(
        self, verified_before: datetime, other_before: datetime, after_id: str, limit: int
    ) -> Sequence[OldEvidence]:
        """Verifications from before then that still have evidence, oldest first.

        Args:
            verified_before: for those that verified the buyer.
            other_before: for all others.
            after_id: begin after this one.
            limit: at most so many.
        """
        ...

    async def held(
        self, record_ids: Sequence[str], cbid_index: CbidIndex
    ) -> Mapping[str, tuple[str, str]]:
        """Of those of these records that a hold keeps: the hold's id, and what it is on."""
        ...

    async def erase(
        self,
        parts: Sequence[RecordErasure],
        cbid: str | None,
        cbid_index: CbidIndex,
        audit: AuditEntry | None = None,
    ) -> None:
        """Destroy the disclosures of these records, and what is known of the buyer, for good.

        All of it is done, or nothing.

        Raises:
            OnHold: a legal hold keeps the buyer or one of the records.
        """
        ...

    async def place_hold(self, hold: Hold, audit: AuditEntry) -> None:
        """Place a legal hold.

        Raises:
            UnknownSubject: there is nothing with this identifier.
        """
        ...

    async def release_hold(self, hold_id: str, at: datetime, audit: AuditEntry) -> None:
        """Release a hold; an earlier release is kept."""
        ...

    async def holds(self) -> Sequence[Hold]:
        """Every hold, oldest first."""
        ...


class ExpiryStore(Protocol):
    """Where it is noted of which expired buyers was told."""

    async def due(self, now: datetime) -> bool:
        """Whether a buyer has expired of which nobody was told."""
        ...

    async def tell(self, now: datetime, limit: int) -> int:
        """Write `buyer.expired` for those that have expired by now; gives for how many."""
        ...


class EventStore(Protocol):
    """Where events are read; they are written with the act that they tell of."""

    async def get(self, account_id: str, mode: Mode, seq: int) -> Event | None:
        """The event with this number, if it is of this account and mode."""
        ...

    async def find(self, query: EventQuery) -> tuple[Sequence[Event], Event | None]:
        """Oldest first, at most `query.limit`; after what was given once, none appears before.

        Fewer than the limit may not be all: then the second is the event to go on after.
        """
        ...

    async def heal(self) -> bool:
        """Put right what a logical restore into another PostgreSQL cluster leaves behind."""
        ...


class WebhookEndpointStore(Protocol):
    """Where webhook endpoints and their secrets are kept."""

    async def add(self, endpoint: WebhookEndpoint, kept: IdempotencyEntry | None) -> None:
        """Write a new endpoint with its secret; its deliveries begin with what happens next.

        Raises:
            TooManyWebhookEndpoints: the account has as many as it may have.
        """
        ...

    async def get(self, account_id: str, mode: Mode, endpoint_id: str) -> WebhookEndpoint | None:
        """One endpoint of this account and mode."""
        ...

    async def by_id(self, endpoint_id: str) -> WebhookEndpoint | None:
        """One endpoint, of whichever account and mode."""
        ...

    async def list(self, account_id: str, mode: Mode | None) -> Sequence[WebhookEndpoint]:
        """The endpoints of an account, oldest first."""
        ...

    async def change(
        self,
        endpoint: WebhookEndpoint,
        changes: EndpointChanges,
        now: datetime,
        keep: Callable[[WebhookEndpoint], IdempotencyEntry | None],
    ) -> WebhookEndpoint:
        """Apply changes to an endpoint as it is stored, and give what it has become.

        Raises:
            NotFound: it was deleted.
        """
        ...

    async def delete(self, endpoint: WebhookEndpoint, now: datetime) -> None:
        """Forget an endpoint and its secrets; its deliveries stop.

        Raises:
            NotFound: it was deleted already.
        """
        ...

    async def rotate(
        self,
        endpoint: WebhookEndpoint,
        secret: WebhookSecret,
        old_expires_at: datetime,
        kept: IdempotencyEntry | None,
    ) -> None:
        """Write a new secret, and let the others expire at this time at the latest.

        Raises:
            NotFound: the endpoint was deleted.
        """
        ...

    async def recover(
        self,
        endpoint: WebhookEndpoint,
        since: datetime,
        now: datetime,
        kept: IdempotencyEntry | None,
    ) -> None:
        """Make deliveries again for what happened since this time and did not succeed.

        Raises:
            NotFound: the endpoint was deleted.
            WebhookEndpointDisabled: it was disabled.
            RateLimited: the last recovery is under way, or less than a minute ago.
        """
        ...

    async def keep(self, entry: IdempotencyEntry) -> None:
        """Keep an answer that goes with no other change."""
        ...


class DeliveryStore(Protocol):
    """Where webhook deliveries are made, claimed and written down."""

    async def waiting(self, now: datetime) -> Sequence[Waiting]:
        """The endpoints for which there is something to do."""
        ...

    async def fan_out(self, endpoint: WebhookEndpoint, now: datetime, limit: int) -> int:
        """Make deliveries of the next events; gives how many events were gone through."""
        ...

    async def claim(
        self, endpoint: WebhookEndpoint, now: datetime, lease_until: datetime, limit: int
    ) -> Sequence[Claimed]:
        """Take deliveries that are due, the oldest first; no other process gets them."""
        ...

    async def finish(self, finished: Finished) -> None:
        """Write down what came of a claimed delivery."""
        ...

    async def disable(self, endpoint: WebhookEndpoint, reason: Disabled, now: datetime) -> None:
        """Send nothing more to an endpoint, unless its address has changed since it was read."""
        ...

    async def find(self, query: DeliveryQuery) -> Sequence[Delivery]:
        """The deliveries to an endpoint, the newest events first."""
        ...

    async def resend(
        self,
        endpoint: WebhookEndpoint,
        event: Event,
        now: datetime,
        kept: IdempotencyEntry | None,
    ) -> None:
        """Begin the schedule of a delivery again, or make the delivery.

        Raises:
            NotFound: the endpoint was deleted.
            WebhookEndpointDisabled: it was disabled.
        """
        ...


class WebhookSender(Protocol):
    """Posts webhooks, never to where it must not."""

    async def post(
        self, target: Target, headers: Mapping[str, str], body: bytes, account_id: str
    ) -> Sent:
        """Post a message of an account; whatever happens is an outcome."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...
