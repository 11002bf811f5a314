"""What the services need from outside, as Protocols: time, randomness and the stores.

Each store has two implementations to satisfy, SQLite and PostgreSQL, held to one contract suite.
Every method that writes returns only when the write is durable.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol, TypeAlias, TypeVar

from countersign.access.account import Account
from countersign.access.audit_entry import AuditEntry
from countersign.access.idempotency_entry import IdempotencyEntry
from countersign.access.key import ApiKey
from countersign.acknowledgments.model import (
    AcknowledgmentQuery,
    NewAcknowledgment,
    StoredAcknowledgment,
)
from countersign.evidence.note import Signer
from countersign.evidence.tiles import TileId
from countersign.evidence.trust import Policy
from countersign.log.integrity import NoticeRow, RecordRow
from countersign.log.model import Anchor, Guarded, Log, LogKey, Queue, StoredCheckpoint
from countersign.log.record import DisclosuresRow, NewRecord, Sealed
from countersign.mode import Mode
from countersign.notices.model import NoticeEvent, PublishedVersion
from countersign.vault.data_key import WrappedKey

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


class AuditStore(Protocol):
    """Where it is kept what operators did."""

    async def add(self, entry: AuditEntry) -> None:
        """Write an act that changes nothing else."""
        ...

    async def find(self, subject: str | None) -> Sequence[AuditEntry]:
        """The acts on one subject or on all, oldest first."""
        ...


class IdempotencyStore(Protocol):
    """Where kept answers are looked up; they are written with the act they belong to."""

    async def get(self, account_id: str, mode: Mode, slot: bytes) -> IdempotencyEntry | None:
        """The kept answer for this slot, whether or not it has expired."""
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
