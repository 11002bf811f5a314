"""One attempt to send a message, and examples, which are sent only once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import msgspec

from countersign.errors import RateLimited
from countersign.events.model import EventType, EventView, RecordedEvent
from countersign.instant import from_ns
from countersign.webhooks.endpoints import Entry, keep_response
from countersign.webhooks.model import (
    DeliveryAttempt,
    Endpoint,
    Outcome,
    SendResult,
    TargetAddress,
    parse_target,
)
from countersign.webhooks.room import Webhooks
from countersign.webhooks.schemas import render_attempt
from countersign.webhooks.signature import SigningKey, sign

EXAMPLES_PER_ENDPOINT: Final = 1
EXAMPLES_PER_ACCOUNT: Final = 4
"""Examples being sent at a time in one process."""

_encode: Final = msgspec.json.Encoder().encode


def target_of(webhooks: Webhooks, endpoint: Endpoint) -> TargetAddress | None:
    """Where to send to; None if the URL is from when private addresses were allowed."""
    try:
        return parse_target(endpoint.url, private=webhooks.private)
    except ValueError:
        return None


async def attempt_delivery(
    webhooks: Webhooks,
    target: TargetAddress | None,
    keys: Sequence[SigningKey],
    view: EventView,
    number: int,
) -> tuple[DeliveryAttempt, SendResult]:
    """Sign and send the message of an event; `number` is that of the attempt, from 1."""
    clock = webhooks.access.clock
    time_ns, started = clock.time_ns(), clock.monotonic()
    body = _encode(view.message)
    headers = {"Content-Type": "application/json"}
    headers |= sign(keys, view.id, time_ns // 1_000_000_000, body)
    sent = SendResult(Outcome.ADDRESS_REFUSED)
    if target is not None:
        sent = await webhooks.sender.post(target, headers, body, view.event.account_id)
    took_ms = round((clock.monotonic() - started) * 1000)
    return DeliveryAttempt(number, from_ns(time_ns), took_ms, sent.outcome, sent.status), sent


async def send_example(
    webhooks: Webhooks, endpoint: Endpoint, type_: EventType, entry: Entry = None
) -> DeliveryAttempt:
    """Send a signed example immediately; it is neither stored nor repeated.

    Raises:
        RateLimited: too many for this endpoint or account are being sent.
    """
    examples, names = webhooks.activity.examples, (endpoint.id, endpoint.account_id)
    limits = (EXAMPLES_PER_ENDPOINT, EXAMPLES_PER_ACCOUNT)
    if any(examples[name] >= limit for name, limit in zip(names, limits, strict=True)):
        msg = "Other examples are still being sent; wait for their results."
        raise RateLimited(msg, retry_after=math.ceil(webhooks.timeout_seconds))
    examples.update(names)
    try:
        now = webhooks.now
        event = RecordedEvent.example(endpoint.account_id, endpoint.mode, type_, now)
        keys = await webhooks.secrets.signing_keys(endpoint, now)
        view = webhooks.events.ids.view(event)
        attempt, _ = await attempt_delivery(webhooks, target_of(webhooks, endpoint), keys, view, 1)
    finally:
        examples.subtract(names)
        for name in names:
            if not examples[name]:
                del examples[name]
    if entry is not None:
        await webhooks.access.database.write(keep_response, entry, render_attempt(attempt))
    return attempt
