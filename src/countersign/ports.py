"""What the services need from outside, as Protocols: time, randomness and the stores.

Each store has two implementations to satisfy, SQLite and PostgreSQL, held to one contract suite.
Every method that writes returns only when the write is durable.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol, TypeAlias

from countersign.domain.account import Account
from countersign.domain.acknowledgment import (
    AcknowledgmentQuery,
    NewAcknowledgment,
    StoredAcknowledgment,
)
from countersign.domain.buyer import Attempt, Buyer
from countersign.domain.data_key import WrappedKey
from countersign.domain.erasure import Erasable, Hold
from countersign.domain.idempotency import IdempotencyEntry
from countersign.domain.key import ApiKey
from countersign.domain.log import Anchor, Log, LogKey, Queue, StoredCheckpoint
from countersign.domain.mode import Mode
from countersign.domain.notice import NoticeEvent, PublishedVersion
from countersign.domain.record import DisclosuresRow, NewRecord, Sealed
from countersign.domain.verification import NewVerification
from countersign.evidence.note import Signer
from countersign.evidence.tiles import TileId

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


class AcknowledgmentStore(Protocol):
    """Where acknowledgments are kept."""

    async def add(self, new: NewAcknowledgment) -> None:
        """Write the record, its disclosures and the kept answer: all of them, or none."""
        ...

    async def get(self, account_id: str, mode: Mode, ack_id: str) -> StoredAcknowledgment | None:
        """One acknowledgment of this account and mode."""
        ...

    async def find(self, query: AcknowledgmentQuery) -> Sequence[StoredAcknowledgment]:
        """Newest first, at most `query.limit`."""
        ...


class BuyerStore(Protocol):
    """Where buyers and their verifications are kept."""

    async def get(self, mode: Mode, cbid: str) -> Buyer | None:
        """A buyer of this mode, whichever account verified it."""
        ...

    async def verify(self, new: NewVerification) -> Buyer:
        """Write a verification and the buyer that it makes.

        Raises:
            RateLimited: the account has tried too many ZIP codes for this subject today.
        """
        ...


class IdempotencyStore(Protocol):
    """Where kept answers are looked up; they are written with the act they belong to."""

    async def get(self, account_id: str, mode: Mode, slot: bytes) -> IdempotencyEntry | None:
        """The kept answer for this slot, whether or not it has expired."""
        ...


class AccountStore(Protocol):
    """Where accounts are kept."""

    async def add(self, account: Account) -> None:
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

    async def add(self, key: ApiKey, digest: bytes) -> None:
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

    async def rotate(self, successor: ApiKey, digest: bytes, old_expires_at: datetime) -> None:
        """Write the successor of `successor.replaces` and let that one expire, in one transaction.

        An earlier expiry of the old key is kept.
        """
        ...

    async def revoke(self, key_id: str, at: datetime) -> None:
        """Mark a key revoked; an earlier revocation is kept."""
        ...

    async def touch(self, key_id: str, at: datetime) -> None:
        """Note when a key was last used."""
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

    async def add_event(self, event: NoticeEvent, records: Sequence[NewRecord]) -> None:
        """Append a lifecycle event and the records of it.

        Raises:
            UnknownNotice: there is no such version.
        """
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

    async def resume(self, mode: Mode) -> None:
        """Forget why sealing was suspended by a restore."""
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

    async def sealed(self, record_id: str) -> tuple[int, Sealed] | None:
        """The id of the log that holds the record, and where it stands there."""
        ...

    async def latest(self, log_id: int) -> StoredCheckpoint | None:
        """The newest checkpoint of a log."""
        ...

    async def covering(self, log_id: int, index: int, kind: str | None) -> StoredCheckpoint | None:
        """The oldest checkpoint that covers this entry, and that has an anchor of this kind."""
        ...

    async def checkpoint(self, log_id: int, size: int) -> StoredCheckpoint | None:
        """The checkpoint of exactly this size."""
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

    async def stored_tile(self, log_id: int, level: int, index: int) -> bytes | None:
        """A complete tile as it is stored."""
        ...

    async def record_bodies(self, record_ids: Sequence[str]) -> Mapping[str, bytes]:
        """The exact bytes of these records, of whatever type; those that there are."""
        ...


class LogSequencer(Protocol):
    """What seals, as the services see it."""

    suspended: dict[Mode, str]
    """Why the records of a mode are not sealed at the moment."""
    unknown_keys: bool
    """Whether a log was met whose signing keys were not learned."""

    def learn(self, log_id: int, keys_revision: int, signers: Sequence[Signer]) -> None:
        """Take the keys that sign for a log, as of this revision of them."""
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

    def read(self, mode: Mode) -> bytes | None:
        """The signed note; None if none was published from here yet.

        Raises:
            HeadUnavailable: it cannot be read.
        """
        ...

    def advance(self, mode: Mode, note: bytes) -> None:
        """Keep this checkpoint as the last published one, unless a later one of its log is kept.

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

    def wrap(self, key: bytes, context: bytes) -> bytes:
        """Encrypt a key for this context."""
        ...

    def unwrap(self, wrapped: bytes, context: bytes) -> bytes:
        """Decrypt a key.

        Raises:
            WrongKeyEncryptionKey: none of the keys opens it.
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


class PlaintextStore(Protocol):
    """Where disclosures are found that a database from before the vault holds unencrypted."""

    async def some(self, limit: int) -> Sequence[DisclosuresRow]:
        """Rows that are not encrypted."""
        ...

    async def replace(self, rows: Sequence[DisclosuresRow]) -> None:
        """Store these rows sealed, each with its shred key."""
        ...


class ErasureStore(Protocol):
    """Where disclosures are destroyed, and holds are kept."""

    async def acknowledgment(self, ack_id: str) -> Erasable | None:
        """One acknowledgment, of whichever account and mode."""
        ...

    async def of_buyer(self, cbid: str) -> tuple[str, Mode, Sequence[Erasable]] | None:
        """A buyer's account, mode and verifications; None if there is no such buyer."""
        ...

    async def naming(self, cbid_indexes: Sequence[bytes]) -> Sequence[Erasable]:
        """The acknowledgments found under these blind indexes of a buyer identifier."""
        ...

    async def older(self, before: datetime, after_id: str, limit: int) -> Sequence[Erasable]:
        """Acknowledgments accepted before this time that still have disclosures, oldest first."""
        ...

    async def erase(
        self,
        record_ids: Sequence[str],
        subjects: Sequence[str],
        cbid: str | None,
        erasure: NewRecord,
    ) -> None:
        """Destroy the disclosures of these records, and what is known of the buyer, for good.

        Raises:
            OnHold: there is a legal hold on one of the subjects.
        """
        ...

    async def place_hold(self, hold: Hold) -> None:
        """Place a legal hold.

        Raises:
            UnknownSubject: there is nothing with this identifier.
        """
        ...

    async def release_hold(self, hold_id: str, at: datetime) -> None:
        """Release a hold; an earlier release is kept.

        Raises:
            UnknownSubject: there is no such hold.
        """
        ...

    async def holds(self) -> Sequence[Hold]:
        """Every hold, oldest first."""
        ...


class HousekeepingStore(Protocol):
    """Where rows that have served their time are deleted."""

    async def delete_expired(self, now: datetime, zips_before: datetime, limit: int) -> int:
        """Delete kept answers that expired by `now` and ZIP attempts made by `zips_before`.

        At most `limit` rows of each kind; gives the larger of the two numbers.
        """
        ...
