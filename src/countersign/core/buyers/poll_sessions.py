"""Poll undecided sessions: ask the provider again, at its webhook or by the clock.

A webhook is only a hint: it is authenticated and acted on once, and its content is not trusted.
The schedule ends: after that, an undecided session is given up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec
import structlog

from countersign.base.errors import (
    CountersignError,
    NotFound,
    ProviderSessionNotBound,
    ProviderSessionNotFound,
    ProviderUnavailable,
    WebhookRefused,
)
from countersign.base.loops import forever, log_failure
from countersign.base.values import ACCOUNT, Mode, from_ns, is_id
from countersign.core.buyers import sessions_sql
from countersign.core.buyers.evaluate_session import look_again
from countersign.core.buyers.providers import Integration
from countersign.core.buyers.room import Buyers
from countersign.core.buyers.session_evidence import (
    SessionRequest,
    evidence_place,
    pending_place,
    session_index,
    to_follow,
)
from countersign.core.buyers.sessions_sql import PendingSession
from countersign.identity.model import WebhookHint

PERIOD_SECONDS: Final = 2.0
"""How often to look whether a session is due."""
POLLS: Final = tuple(
    timedelta(seconds=seconds) for seconds in (15, 30, 60, 120, 300, 900, 1800, 3600, 10800)
)
"""The waits before the first polls; every later one has the last."""
GONE_AFTER: Final = 5
"""Polls, the first included, before a missing session is given up."""
FOLLOWED_FOR: Final = timedelta(days=14)
_AT_ONCE: Final = 8
"""Sessions of one account polled at the same time."""
_PAGE: Final = 64

_log: Final = structlog.get_logger("countersign.verification")
_decode: Final = msgspec.json.Decoder(SessionRequest).decode


async def webhook_integrations(
    room: Buyers, provider: str, account_id: str
) -> tuple[Integration, ...]:
    """The set-ups of the account that a message may be for; known before its body is read.

    Live ones first. Raises NotFound if the account does not verify with this provider.
    """
    # Anybody may send anything here: a malformed identifier must not reach the database.
    if not is_id(ACCOUNT, account_id):
        raise NotFound
    found = [
        integration
        for mode in (Mode.LIVE, Mode.TEST)
        for integration in await room.providers.all_of(account_id, mode)
        if integration.settings.provider == provider
    ]
    if not found:
        raise NotFound
    return tuple(found)


async def take_webhook(
    room: Buyers, integrations: Sequence[Integration], headers: Mapping[str, str], body: bytes
) -> None:
    """Take a provider's message for an account; the session that it names is polled soon.

    Each integration tries its own secrets.

    Raises:
        WebhookRefused: the message is authentic for none.
        ProviderUnavailable: whether it is authentic cannot be decided now.
    """
    refusals = []
    for integration in integrations:
        try:
            hint = await integration.provider.read_webhook(headers, body)
        except (WebhookRefused, ProviderUnavailable) as error:
            refusals.append(error)
        else:
            if hint is not None:
                await _take_hint(room, integration, hint)
    if len(refusals) < len(integrations):
        return
    settings = integrations[0].settings
    # While one message may still prove authentic, the provider must send it again.
    undecided = [error for error in refusals if isinstance(error, ProviderUnavailable)]
    if not undecided:
        # The secret may be wrong.
        account_id, provider, code = settings.account_id, settings.provider, WebhookRefused.code
        room.watch.refused_messages[provider] += 1
        room.watch.say("provider_webhook_refused", account_id, provider, code)
    raise (undecided or refusals)[0]


async def _take_hint(room: Buyers, integration: Integration, hint: WebhookHint) -> None:
    account_id, mode = integration.settings.account_id, integration.mode
    scope = account_id if mode is Mode.LIVE else integration.namespace
    index = session_index(room, integration, hint.session_id)
    new = await room.access.database.write(
        sessions_sql.hurry,
        account_id,
        mode,
        index,
        room.access.secret.blind_index(scope, "provider_message", hint.event_key),
        from_ns(room.access.clock.time_ns()),
        await _ask_again(room, integration, index),
    )
    if new:
        room.hurried.set()


async def _ask_again(room: Buyers, integration: Integration, index: bytes) -> PendingSession | None:
    """What to ask about a session that has verified somebody; None: it has verified no one."""
    account_id = integration.settings.account_id
    basis = await room.access.database.read(sessions_sql.grounds, integration.reach, index)
    if basis is None:
        return None
    verification_id, cbid, evidence, shred_key = basis
    place = evidence_place(account_id, verification_id)
    content = await room.vault.open(evidence, shred_key=shred_key, **place)
    time_ns = room.access.clock.time_ns()
    key = await room.vault.data_key(account_id, time_ns)
    request = msgspec.convert(msgspec.json.decode(content)["request"], SessionRequest)
    return to_follow(room, key, integration, request, index, cbid, time_ns)


async def run(room: Buyers) -> None:
    """Poll due sessions until cancelled; a slow account does not delay other accounts."""
    async with asyncio.TaskGroup() as group:
        await forever("settling", partial(_begin, room, group), PERIOD_SECONDS, room.hurried)


async def _begin(room: Buyers, group: asyncio.TaskGroup) -> list[asyncio.Task[int]]:
    """Begin to poll for each account that has sessions due and is not being polled yet."""
    begun = []
    while True:
        now = from_ns(room.access.clock.time_ns())
        due = await room.access.database.scan(sessions_sql.due, now, _PAGE, tuple(room.polling))
        of_account: dict[str, list[PendingSession]] = {}
        for pending in due:
            of_account.setdefault(pending.account_id, []).append(pending)
        for account_id, sessions in of_account.items():
            room.polling.add(account_id)
            begun.append(group.create_task(_poll_account(room, account_id, sessions)))
        if len(due) < _PAGE:
            return begun


async def _poll_account(room: Buyers, account_id: str, due: Sequence[PendingSession]) -> int:
    """Poll these sessions of one account, a few at once; returns how many were polled."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def one(pending: PendingSession) -> bool:
        async with places:
            return await _poll(room, pending)

    try:
        return sum(await asyncio.gather(*(one(pending) for pending in due)))
    finally:
        room.polling.discard(account_id)


async def _poll(room: Buyers, pending: PendingSession) -> bool:
    """Poll one session; never raises, so that one session does not stop the others."""
    now, claimed = from_ns(room.access.clock.time_ns()), False
    try:
        # The next poll is scheduled before the request, so that a crash repeats nothing.
        next_poll_at = now + POLLS[min(pending.polls + 1, len(POLLS) - 1)]
        claimed = await room.access.database.write(sessions_sql.claim, pending, next_poll_at)
        if claimed and not await _is_still_waiting(room, pending, now):
            await room.access.database.write(sessions_sql.drop, pending, now)
    except CountersignError as error:
        _log.warning("poll_failed", code=error.code, account=pending.account_id)
    except Exception as error:  # noqa: BLE001 - see above
        log_failure("poll_failed", error, account=pending.account_id)
    return claimed


async def _is_still_waiting(room: Buyers, pending: PendingSession, now: datetime) -> bool:
    """Ask about the session; False: it will never be decided, and must be dropped."""
    age = now - pending.created_at
    give_up = age > FOLLOWED_FOR
    try:
        if pending.shred_key is None:
            # As after restoring a backup.
            return False
        request = await room.vault.open(
            pending.request,
            shred_key=pending.shred_key,
            **pending_place(pending.account_id, pending.id),
        )
        asked = _decode(request)
        # The account may have several providers.
        for integration in await room.providers.all_of(pending.account_id, pending.mode):
            if session_index(room, integration, asked.session_id) == pending.session_index:
                break
        else:
            # It verifies no more, or at another provider.
            return False
        _, decision = await look_again(room, integration, asked, give_up=give_up, polled=pending.id)
    except ProviderSessionNotBound:
        # It is somebody else's session.
        return False
    except ProviderSessionNotFound:
        # It was there before. One such response may be a mistake; several are not.
        return pending.polls + 1 < GONE_AFTER
    except CountersignError as error:
        _log.warning("poll_failed", code=error.code, account=pending.account_id)
        return age <= 2 * FOLLOWED_FOR
    return decision.is_followed
