"""What the services need from outside, as Protocols: time, randomness and the stores.

Each store has two implementations to satisfy, SQLite and PostgreSQL, held to one contract suite.
Every method that writes returns only when the write is durable.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from countersign.access.audit import AuditEntry
from countersign.acknowledgments.model import (
    AcknowledgmentQuery,
    NewAcknowledgment,
    StoredAcknowledgment,
)
from countersign.clock import Clock as Clock  # noqa: PLC0414 - still imported from here
from countersign.clock import Entropy as Entropy  # noqa: PLC0414 - as above
from countersign.log.record import NewRecord
from countersign.mode import Mode
from countersign.notices.model import NoticeEvent, PublishedVersion

T = TypeVar("T")


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
