"""What the services need from outside, as Protocols: time, randomness and the stores.

Each store has two implementations to satisfy, SQLite and PostgreSQL, held to one contract suite.
Every method that writes returns only when the write is durable.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol, TypeAlias, TypeVar

from countersign.access.account import Account
from countersign.access.audit_entry import AuditEntry
from countersign.access.idempotency_entry import IdempotencyEntry
from countersign.access.key import ApiKey
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
from countersign.events.model import Event, EventQuery, NewEvent
from countersign.evidence.note import Signer
from countersign.evidence.tiles import TileId
from countersign.evidence.trust import Policy
from countersign.log.integrity import NoticeRow, RecordRow
from countersign.log.model import Anchor, Guarded, Log, LogKey, Queue, StoredCheckpoint
from countersign.log.record import DisclosuresRow, KeylessRecord, NewRecord, Sealed
from countersign.mode import Mode
from countersign.privacy.model import Erasable, ErasableBuyer, Hold, OldEvidence, RecordErasure
from countersign.vault.data_key import WrappedKey
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

Entropy: TypeAlias = Callable[[int], bytes]
"""Gives that many random bytes, as `os.urandom` does."""


class Clock(Protocol):
    """Time from outside, so that tests are exact."""

    def time_ns(self) -> int:
        """Unix time in nanoseconds."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back, for measuring how old something is."""
        ...


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


class AuditStore(Protocol):
    """Where it is kept what operators did."""

    async def add(self, entry: AuditEntry) -> None:
        """Write an act that changes nothing else."""
        ...

    async def find(self, subject: str | None) -> Sequence[AuditEntry]:
        """The acts on one subject or on all, oldest first."""
        ...


class AccountStore(Protocol):
    """Where accounts are kept."""

    async def add(self, account: Account, audit: AuditEntry | None = None) -> None:
        """Write a new account.

        Raises:
            AccountExists: the name is taken.
        """
        ...

    async def get(self, id_or_name: str) -> Account | None:
        """The account with this id or name."""
        ...

    async def list(self) -> Sequence[Account]:
        """All accounts, oldest first."""
        ...


class KeyStore(Protocol):
    """Where API keys are kept, as keyed hashes."""

    async def add(self, key: ApiKey, digest: bytes, audit: AuditEntry | None = None) -> None:
        """Write a new key."""
        ...

    async def by_digest(self, digest: bytes) -> ApiKey | None:
        """The key with this keyed hash."""
        ...

    async def get(self, key_id: str) -> ApiKey | None:
        """The key with this id."""
        ...

    async def list(self, account_id: str | None) -> Sequence[ApiKey]:
        """The keys of one account or of all, oldest first."""
        ...

    async def rotate(
        self,
        successor: ApiKey,
        digest: bytes,
        old_expires_at: datetime,
        audit: AuditEntry | None = None,
    ) -> None:
        """Write the successor of `successor.replaces` and let that one expire, in one transaction.

        An earlier expiry of the old key is kept.

        Raises:
            KeyNotUsable: the old key is revoked or expired.
        """
        ...

    async def revoke(self, key_id: str, at: datetime, audit: AuditEntry | None = None) -> None:
        """Mark a key revoked; an earlier revocation is kept."""
        ...

    async def touch(self, key_id: str, at: datetime) -> None:
        """Note when a key was last used."""
        ...


class LogStore(Protocol):
    """Where the logs are kept: heads, keys, entries, tiles, checkpoints and anchors."""

    async def logs(self) -> Sequence[Log]:
        """Every log, the newest epoch of a mode last."""
        ...

    async def keys(self, log_id: int) -> Sequence[LogKey]:
        """The keys of a log, oldest first."""
        ...

    async def begin(
        self, log: Log, key: LogKey, first: NewRecord | None, note: bytes | None
    ) -> bool:
        """Write a new log with its key, and its first entry; False if it is there already.

        `note` is the signed checkpoint of the empty log. Sealing is no longer suspended then.
        """
        ...

    async def guard(self, mode: Mode, kept: bytes | None) -> Guarded:
        """Whether the newest log of a mode goes with the checkpoint that is kept outside."""
        ...

    async def resume(self, mode: Mode, decision: NewRecord) -> None:
        """Forget why sealing was suspended by a restore, and write down who decided what."""
        ...

    async def add_key(self, key: LogKey, retires: datetime, rotation: NewRecord) -> None:
        """Add a key to a log; those before it retire at `retires` at the latest."""
        ...

    async def write(self, record: NewRecord) -> None:
        """Write a record that goes with no other change."""
        ...

    async def seal_queued(self, mode: Mode) -> int:
        """Seal what is queued in this mode; gives how many records got an entry."""
        ...

    async def queues(self) -> Sequence[Queue]:
        """How much waits for sealing, for each mode in which something does."""
        ...

    async def sealed(self, record_ids: Sequence[str]) -> Mapping[str, tuple[int, Sealed]]:
        """Of each of these records that a log holds: the id of the log, and where it stands."""
        ...

    async def latest(self, log_id: int) -> StoredCheckpoint | None:
        """The newest checkpoint of a log."""
        ...

    async def covering(
        self, log_id: int, index: int, kinds: frozenset[str], quorum: Policy | None
    ) -> StoredCheckpoint | None:
        """The oldest checkpoint that covers this entry, and that others vouch for.

        It has an anchor of each of these kinds, and its cosignatures meet the quorum, if one is
        given.
        """
        ...

    async def cosigned(
        self, log_id: int, quorum: Policy, *, recent: bool = False
    ) -> StoredCheckpoint | None:
        """The newest checkpoint of a log whose cosignatures meet the quorum.

        `recent`: look only at the newest anchors; where none of them does, there can be millions.
        """
        ...

    async def checkpoint(self, log_id: int, size: int) -> StoredCheckpoint | None:
        """The checkpoint of exactly this size."""
        ...

    async def size_before(self, log_id: int, moment: datetime) -> int:
        """The size of the last checkpoint that was made before a moment; 0 where there is none."""
        ...

    async def anchors(self, log_id: int, size: int) -> Sequence[Anchor]:
        """What others say of the checkpoint of this size."""
        ...

    async def add_anchor(self, anchor: Anchor) -> None:
        """Keep what someone says of a checkpoint."""
        ...

    async def tiles(self, log_id: int, wanted: Sequence[TileId]) -> Sequence[bytes]:
        """The hashes of these tiles, each of the width asked for; shorter where there are fewer."""
        ...

    async def inclusion(self, log_id: int, index: int, size: int) -> Sequence[bytes]:
        """The hashes that lead from an entry to the root of the tree of this size (RFC 6962)."""
        ...

    async def consistency(self, log_id: int, old: int, new: int) -> Sequence[bytes]:
        """The hashes that show the tree of size `old` to be the beginning of that of `new`."""
        ...

    async def digests(self, log_id: int, start: int, end: int) -> Sequence[bytes]:
        """The digests of the records of the entries from `start` to before `end`."""
        ...

    async def entries(self, log_id: int, start: int, end: int) -> Sequence[tuple[str, bytes]]:
        """Record id and digest of each of these entries."""
        ...

    async def checkpoints(self, log_id: int, after: int, limit: int) -> Sequence[StoredCheckpoint]:
        """The checkpoints of a log that are larger than this size, the smallest first."""
        ...

    async def stored_tile(self, log_id: int, level: int, index: int) -> tuple[bytes, bytes] | None:
        """A complete tile as it is stored: its hashes, and the root that is stored beside them."""
        ...

    async def surplus(self, log_id: int, size: int) -> Sequence[str]:
        """Entries and complete tiles that a log of this size does not have, some of them."""
        ...

    async def record_bodies(self, record_ids: Sequence[str]) -> Mapping[str, bytes]:
        """The exact bytes of these records, of whatever type; those that there are."""
        ...


class LogSequencer(Protocol):
    """What seals, as the services see it."""

    suspended: dict[Mode, str]
    """Why the records of a mode are not sealed at the moment."""
    unknown_keys: set[Mode]
    """The modes whose log has signing keys that were not learned."""

    def suspend(self, mode: Mode, reason: str) -> None:
        """Note why the records of a mode are not sealed."""
        ...

    def learn(self, log_id: int, keys_revision: int, signers: Sequence[Signer]) -> None:
        """Take the keys that sign for a log, as of this revision of them."""
        ...

    def check_again(self, mode: Mode) -> None:
        """Compare with the last published checkpoint before anything more is sealed."""
        ...


class AnchorAnswer(Protocol):
    """The answer of a witness or an authority."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    @property
    def media_type(self) -> str:
        """The media type, in small letters and without parameters."""
        ...

    @property
    def body(self) -> bytes:
        """The body."""
        ...


class AnchorPost(Protocol):
    """Posts to a witness or an authority."""

    async def __call__(self, url: str, media_type: str, body: bytes, /) -> AnchorAnswer:
        """Post a body.

        Raises:
            AnchoringFailed: there was no answer that could be read.
        """
        ...


class HeadStore(Protocol):
    """Where the last published checkpoint of each mode is kept, outside the database."""

    def check(self) -> None:
        """Find out whether a checkpoint could be kept.

        Raises:
            HeadUnavailable: it could not.
        """
        ...

    def read(self, mode: Mode) -> bytes | None:
        """The signed note; None if none was published from here yet.

        Raises:
            HeadUnavailable: it cannot be read.
        """
        ...

    def advance(self, mode: Mode, note: bytes, over: bytes | None) -> bool:
        """Keep this checkpoint in the place of `over`; False if another one is kept by now.

        Raises:
            HeadUnavailable: it cannot be kept; the checkpoint must not leave then.
        """
        ...

    def replace(self, mode: Mode, note: bytes) -> None:
        """Keep this checkpoint, whatever was kept before.

        Raises:
            HeadUnavailable: it cannot be kept.
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


class KeyEncryptionFile(Protocol):
    """The file that key-encryption keys are kept in, the one that wraps first."""

    def alone(self) -> AbstractContextManager[None]:
        """For the length of the block, no other process changes the file in this way.

        Raises:
            KeyRotationFailed: another one does.
        """
        ...

    def read(self) -> Mapping[bytes, bytes]:
        """The keys by their ids, in order."""
        ...

    def replace(self, keys: Sequence[bytes]) -> None:
        """Replace the content: at each moment the old one is there, or the new one, whole.

        Raises:
            KeyRotationFailed: it cannot be written.
        """
        ...


class DataKeyStore(Protocol):
    """Where wrapped data keys are kept."""

    async def for_month(self, scope: str, month: int) -> WrappedKey | None:
        """The key of a scope for a month."""
        ...

    async def get(self, key_id: str) -> WrappedKey | None:
        """The key with this id."""
        ...

    async def add(self, key: WrappedKey) -> WrappedKey:
        """Write a key; gives the one that is stored for its scope and month then."""
        ...

    async def not_wrapped_with(self, key_encryption_id: bytes, limit: int) -> Sequence[WrappedKey]:
        """Keys that are wrapped with another key-encryption key than this."""
        ...

    async def replace(self, key: WrappedKey, wrapped: bytes) -> None:
        """Store the key wrapped anew, unless another process has done so."""
        ...

    async def counts(self) -> Mapping[bytes, int]:
        """How many keys are wrapped with each key-encryption key."""
        ...


class IntegrityStore(Protocol):
    """Whole tables, to be compared with each other."""

    async def records(self, after_id: str, limit: int) -> Sequence[RecordRow]:
        """Records of accounts after this one, in order."""
        ...

    async def own_records(self, after_id: str, limit: int) -> Sequence[RecordRow]:
        """Records of the deployment itself after this one, in order."""
        ...

    async def notices(self) -> Sequence[NoticeRow]:
        """Every published version of a notice."""
        ...

    async def erased(self, record_ids: Sequence[str]) -> frozenset[str]:
        """Those of these records that the database knows to be erased."""
        ...

    async def disclosed(self, record_ids: Sequence[str]) -> Sequence[DisclosuresRow]:
        """The disclosures of those of these records that have any."""
        ...

    async def untold_erasures(self, limit: int) -> Sequence[str]:
        """Records that count as erased although no erasure is on record."""
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
