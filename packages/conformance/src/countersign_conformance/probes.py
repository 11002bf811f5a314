"""Valid and invalid messages to the webhook endpoints of a vendor, to observe the responses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import msgspec

from countersign.base.db.tables import webhook_endpoints
from countersign.base.values import Mode, from_ns
from countersign.core.access.reach import AccountReach
from countersign.core.events.model import EventType, RecordedEvent
from countersign.core.events.routes import Event, event_view, message_of
from countersign.core.webhooks.deliver import target_of
from countersign.core.webhooks.endpoints import find_endpoints
from countersign.core.webhooks.model import (
    SECRET_BYTES,
    SEED_BYTES,
    SIGNATURE_HEADER,
    Endpoint,
    Outcome,
    PrivateKey,
    SendResult,
    SharedSecret,
    SigningKey,
    sign,
)
from countersign.core.webhooks.room import Webhooks
from countersign_conformance.model import WEBHOOK, Observation, Probe
from countersign_conformance.webhook_checks import SENT

_AGE_SECONDS: Final = 3600
PROBING_SECONDS: Final = 1.0
"""How long the vendor's normal behaviour is observed."""
_MILLISECOND: Final = timedelta(milliseconds=1)

_encode: Final = msgspec.json.Encoder().encode

Note = Callable[[Observation], Awaitable[None]]


class ProbeWebhooks:
    """Sends the messages; they are no events, so no server delivers or lists them."""

    def __init__(self, webhooks: Webhooks) -> None:
        self._webhooks = webhooks
        self._clock = webhooks.access.clock
        self._entropy = webhooks.access.entropy

    async def __call__(self, account_id: str, note: Note, *, reaction: timedelta) -> int:
        """Send all probes to each enabled test endpoint of an account; gives how many there are.

        `note` gets each message before it is sent, and again with its response. `reaction`: how
        long to watch the vendor after a message that it may act on.
        """
        own = AccountReach(account_id, Mode.TEST).rows(webhook_endpoints)
        found = await self._webhooks.access.database.scan(find_endpoints, own)
        enabled = [endpoint for endpoint in found if endpoint.disabled_at is None]
        try:
            for endpoint in enabled:
                await self._probe(endpoint, note, reaction)
        finally:
            await self._webhooks.sender.close()
        return len(enabled)

    async def _probe(self, endpoint: Endpoint, note: Note, reaction: timedelta) -> None:
        keys = await self._webhooks.secrets.signing_keys(endpoint, self._now())
        type_ = next(type_ for type_ in EventType if endpoint.wants(type_))
        # Normal behaviour is not a reaction to a message.
        await asyncio.sleep(PROBING_SECONDS)
        began = self._now()
        genuine = self._example(endpoint, type_, began)
        for number, probe in enumerate(Probe):
            # Each has its own id, except the second copy of the same event.
            at = began + number * _MILLISECOND
            event = genuine if probe is Probe.AGAIN else self._example(endpoint, type_, at)
            headers, body = self._message(probe, keys, event)
            await note(_observation(self._now(), probe, endpoint, None))
            sent = await self._send(endpoint, headers, body)
            await note(_observation(self._now(), probe, endpoint, sent))
            if probe in {Probe.GENUINE, Probe.AGAIN}:
                await asyncio.sleep(reaction.total_seconds())

    def _message(
        self, probe: Probe, keys: Sequence[SigningKey], event: Event
    ) -> tuple[dict[str, str], bytes]:
        body = _encode(message_of(event))
        seconds = self._clock.time_ns() // 1_000_000_000
        if probe is Probe.FOREIGN_KEY:
            drawn = self._entropy(SECRET_BYTES + SEED_BYTES)
            keys = [SharedSecret(drawn[:SECRET_BYTES]), PrivateKey(drawn[SECRET_BYTES:])]
        if probe is Probe.OLD:
            seconds -= _AGE_SECONDS
        headers = {"Content-Type": "application/json"} | sign(keys, event.id, seconds, body)
        if probe is Probe.UNSIGNED:
            del headers[SIGNATURE_HEADER]
        if probe is Probe.ALTERED:
            body = _encode({**message_of(event), "livemode": True})
        return headers, body

    async def _send(self, endpoint: Endpoint, headers: dict[str, str], body: bytes) -> SendResult:
        target = target_of(self._webhooks, endpoint)
        if target is None:
            return SendResult(Outcome.ADDRESS_REFUSED)
        return await self._webhooks.sender.post(target, headers, body, endpoint.account_id)

    def _example(self, endpoint: Endpoint, type_: EventType, at: datetime) -> Event:
        example = RecordedEvent.example(endpoint.account_id, endpoint.mode, type_, at)
        return event_view(self._webhooks.events.ids, replace(example, triggered=True))

    def _now(self) -> datetime:
        return from_ns(self._clock.time_ns())


def _observation(
    at: datetime, probe: Probe, endpoint: Endpoint, sent: SendResult | None
) -> Observation:
    return Observation(
        operation=WEBHOOK,
        at=at,
        status=(sent.status or 0) if sent else 0,
        code=sent.outcome.value if sent else SENT,
        probe=probe,
        endpoint=endpoint.id,
    )
