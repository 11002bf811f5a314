"""Delivering webhooks: made from events, and attempted by a published schedule until its end.

Several servers share the work: one that claims a delivery has it for the length of a lease.
Nothing here is in the transaction of another act, so that a slow receiver delays only itself.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Final

import structlog
from msgspec.structs import replace

from countersign.base.errors import CountersignError, RateLimited
from countersign.base.loops import Backoff, forever, log_failure
from countersign.base.values import from_ns
from countersign.core.events.model import EventType, RecordedEvent
from countersign.core.events.routes import event_view, message_of
from countersign.core.events.sql import repair_order
from countersign.core.gate.route import encode
from countersign.core.webhooks import deliveries
from countersign.core.webhooks.endpoints import disable_endpoint
from countersign.core.webhooks.model import (
    ClaimedDelivery,
    DeliveryStatus,
    Disabled,
    Endpoint,
    Outcome,
    SendResult,
    SigningKey,
    TargetAddress,
    parse_target,
    sign,
    wait_before,
    wants_pause,
)
from countersign.core.webhooks.room import Webhooks
from countersign.core.webhooks.schemas import WebhookAttempt

CONCURRENT: Final = 12
CONCURRENT_MAX: Final = 64
"""Attempts at a time for one endpoint in one process: more, the longer a response takes.

A receiver that responds at once would otherwise leave little of the event loop for requests.
"""
FIRST_CLAIM: Final = 32
FAN_OUT: Final = 500
CATCH_UP_SECONDS: Final = 0.05
"""The pause after FAN_OUT events, for all endpoints together in one process.

So a recovery over a million events leaves time on the database to others.
"""
CLAIM_MAX: Final = 256
IDLE_SECONDS: Final = 1.0
_TURN_SECONDS: Final = 5.0
"""How long the settings of an endpoint are used before they are read again."""
_MARGIN_SECONDS: Final = 5.0
_STOP_SECONDS_MAX: Final = 5.0
_ENTROPY_BYTES: Final = 4

EXAMPLES_PER_ENDPOINT: Final = 1
EXAMPLES_PER_ACCOUNT: Final = 4
"""Examples being sent at a time in one process."""

_log: Final = structlog.get_logger("countersign.webhooks")


def target_of(webhooks: Webhooks, endpoint: Endpoint) -> TargetAddress | None:
    """The target; None if the URL was stored while private addresses were allowed."""
    try:
        return parse_target(endpoint.url, private=webhooks.private)
    except ValueError:
        return None


async def attempt_delivery(
    webhooks: Webhooks,
    target: TargetAddress | None,
    keys: Sequence[SigningKey],
    event: RecordedEvent,
) -> tuple[WebhookAttempt, SendResult]:
    """Sign and send the message of an event; the time of the attempt is to the millisecond."""
    clock = webhooks.access.clock
    time_ns, started = clock.time_ns(), clock.monotonic()
    shown = event_view(webhooks.events.ids, event)
    body = encode(message_of(shown))
    headers = {"Content-Type": "application/json"}
    headers |= sign(keys, shown.id, time_ns // 1_000_000_000, body)
    sent = SendResult(Outcome.ADDRESS_REFUSED)
    if target is not None:
        sent = await webhooks.sender.post(target, headers, body, event.account_id)
    took_ms = round((clock.monotonic() - started) * 1000)
    attempt = WebhookAttempt(
        attempted_at=from_ns(time_ns),
        duration_ms=took_ms,
        outcome=sent.outcome,
        http_status=sent.status,
    )
    return attempt, sent


async def send_example(webhooks: Webhooks, endpoint: Endpoint, type_: EventType) -> WebhookAttempt:
    """Send a signed example immediately; it is neither stored nor repeated."""
    examples, names = webhooks.activity.examples, (endpoint.id, endpoint.account_id)
    limits = (EXAMPLES_PER_ENDPOINT, EXAMPLES_PER_ACCOUNT)
    if any(examples[name] >= limit for name, limit in zip(names, limits, strict=True)):
        raise RateLimited(
            "Other examples are still being sent; wait for their results.",
            retry_after=math.ceil(webhooks.timeout_seconds),
        )
    examples.update(names)
    try:
        now = webhooks.now
        event = RecordedEvent.example(endpoint.account_id, endpoint.mode, type_, now)
        keys = await webhooks.secrets.signing_keys(endpoint, now)
        attempt, _ = await attempt_delivery(webhooks, target_of(webhooks, endpoint), keys, event)
    finally:
        examples -= Counter(names)  # in place; zero counts are dropped
    return replace(attempt, attempted_at=attempt.attempted_at.replace(microsecond=0))


@dataclass(slots=True)
class _Batch:
    target: TargetAddress | None
    keys: Sequence[SigningKey]
    backoff: Backoff
    waiting: Iterator[ClaimedDelivery]
    last_start: float
    """Deliveries not begun by then are released: their lease would expire during the attempt."""
    gone: bool = False
    failure: CountersignError | None = None
    took_ms: list[int] = field(default_factory=list)


class DeliverWebhooks:
    """The deliveries of one process: runs as long as the server."""

    def __init__(self, webhooks: Webhooks) -> None:
        self._webhooks = webhooks
        self._database = webhooks.access.database
        self._clock = webhooks.access.clock
        # A batch that has not ended by then may belong to another process.
        self._lease = timedelta(seconds=2 * webhooks.timeout_seconds + _MARGIN_SECONDS)
        self._backoffs: dict[str, Backoff] = {}
        self._turns: dict[str, asyncio.Task[bool]] = {}
        self._catching_up = asyncio.Lock()
        self._turn_ended = asyncio.Event()
        self._repaired = self._stopping = False

    async def run(self) -> None:
        """Deliver until cancelled; attempts that have begun then end normally."""
        self._repaired = self._stopping = False
        try:
            await forever("webhooks", self._look, IDLE_SECONDS, self._turn_ended)
        finally:
            self._stopping = True
            if self._turns:
                await asyncio.wait(self._turns.values(), timeout=_STOP_SECONDS_MAX)
            for turn in self._turns.values():
                turn.cancel()
            await self._webhooks.sender.close()

    async def _look(self) -> None:
        if not self._repaired:
            await repair_order(self._webhooks.events)
            self._repaired = True
        await self.start_turns()

    async def start_turns(self) -> None:
        """Begin a turn for each endpoint with work, unless one is running in this process."""
        found = await self._database.scan(deliveries.find_work, self._webhooks.now)
        for endpoint, behind, due in found:
            backoff = self._backoffs.setdefault(endpoint.id, Backoff(self._clock.monotonic))
            if endpoint.id not in self._turns and (behind or (due and backoff.ready)):
                turn = asyncio.create_task(self._turn(endpoint, backoff))
                self._turns[endpoint.id] = turn
                turn.add_done_callback(partial(self._end_turn, endpoint.id))

    async def settle(self) -> None:
        """Work until nothing is due; for tests and tools."""
        while True:
            await self.start_turns()
            if not self._turns:
                return
            await asyncio.gather(*self._turns.values())

    def _end_turn(self, endpoint_id: str, turn: asyncio.Task[bool]) -> None:
        del self._turns[endpoint_id]
        if not turn.cancelled() and turn.result():
            self._turn_ended.set()

    async def _turn(self, endpoint: Endpoint, backoff: Backoff) -> bool:
        """Work for an endpoint for a while; whether there may be more to do immediately."""
        try:
            return await self._work(endpoint, backoff)
        except CountersignError as error:
            backoff.pause()
            _log.warning("webhook_endpoint_deferred", endpoint=endpoint.id, code=error.code)
        except Exception as error:  # noqa: BLE001 - other endpoints must not suffer
            backoff.pause()
            log_failure("webhook_failed", error, endpoint=endpoint.id)
        return False

    async def _work(self, endpoint: Endpoint, backoff: Backoff) -> bool:
        end = self._clock.monotonic() + _TURN_SECONDS
        size, concurrent = FIRST_CLAIM, CONCURRENT
        while self._clock.monotonic() < end and not self._stopping:
            now = self._webhooks.now
            processed = await self._database.write(deliveries.fan_out, endpoint.id, now, FAN_OUT)
            claimed: Sequence[ClaimedDelivery] = ()
            if backoff.ready:
                number = 1 if backoff.suspect else size
                claimed = await self._database.write(
                    deliveries.claim, endpoint.id, now, now + self._lease, number
                )
            if claimed:
                size = min(2 * size, CLAIM_MAX)
                took_ms = await self._deliver(endpoint, claimed, backoff, concurrent)
                if took_ms is None:
                    return False
                # Enough concurrent deliveries for about a thousand a second.
                concurrent = min(max(CONCURRENT, took_ms), CONCURRENT_MAX)
            elif processed < FAN_OUT:
                return False
            if processed == FAN_OUT:
                async with self._catching_up:
                    await asyncio.sleep(CATCH_UP_SECONDS)
        return True

    async def _deliver(
        self, endpoint: Endpoint, claimed: Sequence[ClaimedDelivery], backoff: Backoff, number: int
    ) -> int | None:
        """Attempt these, a limited number at a time; returns the average milliseconds of one.

        None: the endpoint gets no more messages.
        """
        webhooks = self._webhooks
        lease_seconds = self._lease.total_seconds()
        batch = _Batch(
            target=target_of(webhooks, endpoint),
            keys=await webhooks.secrets.signing_keys(endpoint, webhooks.now),
            backoff=backoff,
            waiting=iter(claimed),
            last_start=self._clock.monotonic() + lease_seconds - webhooks.timeout_seconds - 1,
        )
        async with asyncio.TaskGroup() as group:
            for _ in range(min(number, len(claimed))):
                group.create_task(self._work_through(batch))
        if batch.failure is not None:
            raise batch.failure
        if batch.gone:
            await self._database.write(disable_endpoint, endpoint, Disabled.GONE, webhooks.now)
            _log.warning("webhook_endpoint_gone", endpoint=endpoint.id)
            return None
        return sum(batch.took_ms) // max(len(batch.took_ms), 1)

    async def _work_through(self, batch: _Batch) -> None:
        for delivery in batch.waiting:
            if batch.failure is not None:
                return  # due again when the lease ends
            late = self._clock.monotonic() > batch.last_start
            try:
                if batch.gone or late or self._stopping or not batch.backoff.ready:
                    now = self._webhooks.now
                    finished = deliveries.FinishedDelivery(
                        delivery, None, DeliveryStatus.PENDING, now
                    )
                else:
                    finished = await self._attempt(batch, delivery)
                await self._database.write_batched(deliveries.finish, finished)
            except CountersignError as error:
                # Results of concurrent attempts are still written, if that becomes possible again.
                batch.failure = error

    async def _attempt(
        self, batch: _Batch, delivery: ClaimedDelivery
    ) -> deliveries.FinishedDelivery:
        webhooks = self._webhooks
        event = delivery.event
        attempt, sent = await attempt_delivery(webhooks, batch.target, batch.keys, event)
        batch.took_ms.append(attempt.duration_ms)
        batch.gone = batch.gone or sent.status == 410
        webhooks.activity.attempts[sent.outcome] += 1
        batch.backoff.record(pause=wants_pause(sent), retry_after=sent.retry_after)
        response = None
        if sent.body:
            response = await webhooks.responses.seal(
                sent.body,
                account=event.account_id,
                row_id=webhooks.events.ids.of(event),
                time_ns=webhooks.access.clock.time_ns(),
            )
        finished = partial(deliveries.FinishedDelivery, delivery, attempt, response=response)
        if sent.outcome is Outcome.DELIVERED:
            return finished(DeliveryStatus.SUCCEEDED, None)
        drawn = webhooks.access.entropy(_ENTROPY_BYTES)
        chance = int.from_bytes(drawn, "big") / (1 << 8 * _ENTROPY_BYTES)
        wait = wait_before(delivery.step, sent, chance)
        if wait is None:
            return finished(DeliveryStatus.FAILED, None)
        return finished(DeliveryStatus.PENDING, webhooks.now + wait)
