"""Settling undecided sessions: asked about again, at the provider's hint or by the clock.

A webhook is only ever a hint: it is authenticated, acted upon once, and what it says is not read.
The schedule ends: a session that is never decided is given up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec
import structlog

from countersign.access.secrets import DeploymentSecret
from countersign.buyers.evaluate_session import (
    FIRST_POLL,
    PENDING_TABLE,
    JudgeSession,
    SessionRequest,
)
from countersign.buyers.settings import ManageVerification, Ready
from countersign.buyers.verification import Pending
from countersign.buyers.watch_verifications import WatchVerifications
from countersign.errors import (
    CountersignError,
    NotFound,
    ProviderSessionNotBound,
    ProviderSessionNotFound,
    WebhookRefused,
)
from countersign.ids import is_id
from countersign.instant import from_ns
from countersign.loops import forever, log_failure
from countersign.mode import Mode
from countersign.ports import Clock, PendingSessionStore
from countersign.vault.vault import Vault

PERIOD_SECONDS: Final = 2.0
"""How often it is looked whether a session is due."""
POLLS: Final = (
    FIRST_POLL,
    timedelta(seconds=30),
    timedelta(minutes=1),
    timedelta(minutes=2),
    timedelta(minutes=5),
    timedelta(minutes=15),
    timedelta(minutes=30),
    timedelta(hours=1),
    timedelta(hours=3),
)
"""The waits before the first polls; every later one has the last."""
GONE_AFTER: Final = 5
"""Polls, the first included, before a session that is not found any more is given up."""
FOLLOWED_FOR: Final = timedelta(days=14)
_ACCOUNT_ID: Final = "acct"
_AT_ONCE: Final = 8
"""Sessions of one account that are asked about at the same time."""
_PAGE: Final = 64

_log: Final = structlog.get_logger("countersign.verification")
_decode: Final = msgspec.json.Decoder(SessionRequest).decode


class SettleSessions:
    """Follows sessions until they are decided."""

    def __init__(
        self,
        *,
        store: PendingSessionStore,
        manage: ManageVerification,
        judge: JudgeSession,
        vault: Vault,
        secret: DeploymentSecret,
        clock: Clock,
    ) -> None:
        self._store = store
        self._manage = manage
        self._judge = judge
        self._vault = vault
        self._secret = secret
        self._clock = clock
        self._hurried = asyncio.Event()
        self._asking: set[str] = set()

    @property
    def watch(self) -> WatchVerifications:
        """What came of verifications."""
        return self._judge.watch

    async def receiver(self, provider: str, account_id: str) -> Ready:
        """The set-up of the account that a message is for; known before its body is read.

        Raises:
            NotFound: the account does not verify with this provider.
        """
        # Anybody may send anything here: what is no identifier does not get as far as the database.
        ready = await self._manage.ready(account_id) if is_id(_ACCOUNT_ID, account_id) else None
        if ready is None or ready.settings.provider != provider:
            raise NotFound
        return ready

    async def hint(
        self, provider: str, account_id: str, headers: Mapping[str, str], body: bytes
    ) -> None:
        """Take a provider's message for an account; asks about the session it names soon.

        Raises:
            NotFound: the account does not verify with this provider.
            WebhookRefused: the message is not authentic.
        """
        ready = await self.receiver(provider, account_id)
        try:
            hint = await ready.provider.read_webhook(headers, body)
        except WebhookRefused:
            self.watch.refused_message(account_id, provider)
            raise
        if hint is None:
            return
        message_index = self._secret.blind_index(account_id, "provider_message", hint.event_key)
        new = await self._store.hurry(
            account_id,
            Mode.LIVE,
            self._judge.session_index(ready, hint.session_id),
            message_index,
            from_ns(self._clock.time_ns()),
        )
        if new:
            self._hurried.set()

    async def settle(self) -> int:
        """Ask about every session that is due; returns how many were asked about."""
        asked = 0
        async with asyncio.TaskGroup() as group:
            while begun := await self._begin(group):
                done = sum(await asyncio.gather(*begun))
                if not done:
                    break
                asked += done
        return asked

    async def run(self) -> None:
        """Settle what is due, until cancelled; a slow account keeps no other account waiting."""
        async with asyncio.TaskGroup() as group:
            look = partial(self._look, group)
            await forever("settling", look, PERIOD_SECONDS, self._hurried)

    async def _look(self, group: asyncio.TaskGroup) -> None:
        self.watch.pending = await self._store.waiting()
        await self._begin(group)

    async def _begin(self, group: asyncio.TaskGroup) -> list[asyncio.Task[int]]:
        """Begin to ask for each account that has sessions due, and for which nobody asks yet."""
        begun = []
        while True:
            now = from_ns(self._clock.time_ns())
            due = await self._store.due(now, _PAGE, tuple(self._asking))
            of_account: dict[str, list[Pending]] = {}
            for pending in due:
                of_account.setdefault(pending.account_id, []).append(pending)
            for account_id, sessions in of_account.items():
                self._asking.add(account_id)
                begun.append(group.create_task(self._ask_for(account_id, sessions)))
            if len(due) < _PAGE:
                return begun

    async def _ask_for(self, account_id: str, due: Sequence[Pending]) -> int:
        """Ask about these sessions of one account, a few at once; returns about how many."""
        places = asyncio.Semaphore(_AT_ONCE)

        async def one(pending: Pending) -> bool:
            async with places:
                return await self._poll(pending)

        try:
            return sum(await asyncio.gather(*(one(pending) for pending in due)))
        finally:
            self._asking.discard(account_id)

    async def _poll(self, pending: Pending) -> bool:
        """Ask about one session; never raises, so that one session keeps no other waiting."""
        try:
            return await self._claimed(pending, from_ns(self._clock.time_ns()))
        except CountersignError as error:
            _log.warning("poll_failed", code=error.code, account=pending.account_id)
        except Exception as error:  # noqa: BLE001 - see above
            log_failure("poll_failed", error, account=pending.account_id)
        return False

    async def _claimed(self, pending: Pending, now: datetime) -> bool:
        """The next time is fixed before the provider is asked, so that a crash repeats nothing."""
        if not await self._store.claim(pending, now + _wait(pending.polls + 1)):
            return False
        try:
            await self._ask(pending, now)
        except ProviderSessionNotBound:
            # It is another's: nothing will come of it.
            await self._store.drop(pending, now)
        except ProviderSessionNotFound:
            # It was there before. One such answer may be a mistake; many are not.
            if pending.polls + 1 >= GONE_AFTER:
                await self._store.drop(pending, now)
        except CountersignError as error:
            _log.warning("poll_failed", code=error.code, account=pending.account_id)
            if now - pending.created_at > 2 * FOLLOWED_FOR:
                await self._store.drop(pending, now)
        except Exception as error:  # noqa: BLE001 - one session must not keep the others waiting
            log_failure("poll_failed", error, account=pending.account_id)
        return True

    async def _ask(self, pending: Pending, now: datetime) -> None:
        ready = await self._manage.ready(pending.account_id)
        if ready is None:
            # The account verifies no more.
            await self._store.drop(pending, now)
            return
        request = await self._request(pending)
        if request is None:
            await self._store.drop(pending, now)
            return
        give_up = now - pending.created_at > FOLLOWED_FOR
        await self._judge(ready, request, give_up=give_up, polled=pending.id)

    async def _request(self, pending: Pending) -> SessionRequest | None:
        """What was asked; None if its key is gone, as after restoring a backup."""
        if pending.shred_key is None:
            return None
        opened = await self._vault.open(
            pending.request,
            shred_key=pending.shred_key,
            table=PENDING_TABLE,
            column="request",
            account=pending.account_id,
            row_id=pending.id,
        )
        return _decode(opened)


def _wait(polls: int) -> timedelta:
    """The wait before the poll after this many."""
    return POLLS[min(polls, len(POLLS) - 1)]
