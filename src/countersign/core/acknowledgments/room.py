"""The room of acknowledgments: what its acts work with."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import msgspec

from countersign.base.config import Settings
from countersign.base.errors import EvidencePending, Overloaded
from countersign.base.host import Network
from countersign.base.snapshot import KeyedLocks, SharedQuestion
from countersign.base.values import Mode
from countersign.core.log import logs_sql
from countersign.core.log.model import Log, StoredCheckpoint
from countersign.core.log.room import LogRoom
from countersign.core.notices.room import Notices
from countersign.core.parties import Bound

DOCUMENTS_WAITING_MAX: Final = 32
"""How many of one owner may wait while one of its documents is being made."""
_QUEUE_RETRY_SECONDS: Final = 5


class Certificates:
    """Makes documents in a separate thread, for each account in turn.

    No process is needed: the compiler releases the interpreter (measured with typst 0.15: a
    thread that counts meanwhile keeps 94 % of its pace).
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="countersign-certificate")
        self._locks = KeyedLocks(DOCUMENTS_WAITING_MAX, _QUEUE_RETRY_SECONDS)
        self._closed = False

    async def run(self, make: Callable[[], bytes], owner: Hashable) -> bytes:
        """Make a file; a call of another owner waits for at most one file of this owner.

        Raises:
            Overloaded: too many of this owner wait.
        """
        async with self._locks.turn(owner):
            if self._closed:
                raise Overloaded(retry_after=_QUEUE_RETRY_SECONDS)
            return await asyncio.get_running_loop().run_in_executor(self._thread, make)

    async def close(self) -> None:
        """Cancel waiting documents, and return when the current one is done."""
        self._closed = True
        await asyncio.to_thread(self._thread.shutdown, wait=True, cancel_futures=True)


_RETRY_SECONDS: Final = 2
_POLL_SECONDS: Final = 0.25
WAITING_MAX: Final = 100
"""How many requests of one account may wait at once; the others get an immediate response."""


class Checkpoints:
    """Finds the checkpoint of a proof; one question to the database serves all who wait."""

    def __init__(self, log: LogRoom) -> None:
        self._log = log
        self._waiting: Counter[str] = Counter()
        self._cosigned_soon = SharedQuestion(self._cosigned_sizes, _POLL_SECONDS)

    @contextmanager
    def patience(self, account: str, wait: float) -> Iterator[float]:
        """How many seconds a caller may wait: 0 if too many of its account already wait."""
        if wait <= 0 or self._waiting[account] >= WAITING_MAX:
            yield 0.0
            return
        self._waiting[account] += 1
        try:
            yield wait
        finally:
            self._waiting -= Counter([account])  # which drops counts of zero

    async def over(self, log: Log, index: int, deadline: float) -> StoredCheckpoint:
        """The oldest checkpoint over an entry that has the anchors required by the policy.

        So the proof of an acknowledgment stays the same, except when a better one becomes possible.
        If the quorum is not met at the deadline, the best checkpoint is used: an early proof is
        worth more than one that waits for a witness. EvidencePending if none covers the entry yet.
        """
        found, is_cosigned = await self._covering(log, index)
        if found is None:
            await self._log.seal.sign(log.mode)
            found, is_cosigned = await self._covering(log, index)
        if not is_cosigned and await self._is_cosigned(log, index, deadline):
            found, _ = await self._covering(log, index)
        if found is None:
            raise EvidencePending(retry_after=_RETRY_SECONDS)
        return found

    async def _is_cosigned(self, log: Log, index: int, deadline: float) -> bool:
        """Wait until a checkpoint over an entry meets the quorum, if the policy has one."""
        policy, seal = self._log.policy, self._log.seal
        while policy.quorum(log.mode) and asyncio.get_running_loop().time() < deadline:
            newest = (await seal.current()).get(log.mode, log)
            if newest.id != log.id:
                break  # no witness is asked to cosign a log of the past
            self._log.anchor.ask_witnesses()
            if (await self._cosigned_soon((log.mode, log.id)) or 0) > index:
                return True
        return False

    async def _cosigned_sizes(
        self, logs: Sequence[tuple[Mode, int]]
    ) -> Mapping[tuple[Mode, int], int]:
        """Of each log the size of the newest checkpoint that meets the quorum."""
        sizes: dict[tuple[Mode, int], int] = {}
        for mode, log_id in logs:
            quorum = self._log.policy.quorum(mode)
            newest = quorum and await self._log.seal.cosigned(log_id, quorum)
            if newest:
                sizes[mode, log_id] = newest.size
        return sizes

    async def _covering(self, log: Log, index: int) -> tuple[StoredCheckpoint | None, bool]:
        quorum = self._log.policy.quorum(log.mode)
        return await self._log.database.scan(logs_sql.covering, log.id, index, quorum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgments:
    """Acknowledgments: written, read back and proved."""

    notices: Notices
    log: LogRoom
    certificates: Certificates
    checkpoints: Checkpoints
    verify_url: str
    client_ip_header: str
    trusted_proxies: Sequence[Network]
    bullet_digests: dict[str, msgspec.Raw] = field(default_factory=dict)
    """The `bullets` member of records, by the digest of the notice version."""
    bound: dict[tuple[str, Mode], Bound] = field(default_factory=dict)
    """The descriptions bound by an account's last record; each transaction compares them with the
    database."""


def open_acknowledgments(settings: Settings, notices: Notices) -> Acknowledgments:
    """The room over that of notices; `certificates` is to be closed."""
    log = notices.log
    return Acknowledgments(
        notices=notices,
        log=log,
        certificates=Certificates(),
        checkpoints=Checkpoints(log),
        verify_url=f"{settings.public_url}/verify",
        client_ip_header=settings.client_ip_header,
        trusted_proxies=settings.trusted_proxies,
    )
