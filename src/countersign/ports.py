"""What the services need from outside, as Protocols: time, randomness and the stores.

Each store has two implementations to satisfy, SQLite and PostgreSQL, held to one contract suite.
Every method that writes returns only when the write is durable.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol, TypeAlias

from countersign.domain.account import Account
from countersign.domain.acknowledgment import (
    AcknowledgmentQuery,
    NewAcknowledgment,
    StoredAcknowledgment,
)
from countersign.domain.buyer import Attempt, Buyer
from countersign.domain.idempotency import IdempotencyEntry
from countersign.domain.key import ApiKey
from countersign.domain.mode import Mode
from countersign.domain.notice import NoticeEvent, PublishedVersion
from countersign.domain.verification import NewVerification

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

    async def publish(self, body: bytes, digest: str, published: NoticeEvent) -> None:
        """Write a version and its `published` event.

        Raises:
            NoticeVersionConflict: this version is published already.
        """
        ...

    async def add_event(self, event: NoticeEvent) -> None:
        """Append a lifecycle event.

        Raises:
            UnknownNotice: there is no such version.
        """
        ...


class HousekeepingStore(Protocol):
    """Where rows that have served their time are deleted."""

    async def delete_expired(self, now: datetime, zips_before: datetime, limit: int) -> int:
        """Delete kept answers that expired by `now` and ZIP attempts made by `zips_before`.

        At most `limit` rows of each kind; gives the larger of the two numbers.
        """
        ...
