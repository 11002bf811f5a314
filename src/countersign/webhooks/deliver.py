"""Delivering webhooks: made from events, attempted by a published schedule, to an end.

Several servers share the work: whoever claims a delivery has it for the length of a lease. Nothing
here is in the transaction of an act, so that a slow receiver slows nobody but itself.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Final

import msgspec
import structlog

from countersign.errors import CountersignError, RateLimited
from countersign.events.model import Event, EventType
from countersign.events.read_events import EventView, ReadEvents
from countersign.instant import from_ns
from countersign.loops import forever, log_failure
from countersign.ports import Clock, DeliveryStore, Entropy, WebhookSender
from countersign.webhooks.backoff import Pace
from countersign.webhooks.model import (
    Attempt,
    Claimed,
    DeliveryStatus,
    Disabled,
    Finished,
    Outcome,
    Sent,
    Target,
    WebhookEndpoint,
    parse_target,
    wait_before,
    wants_rest,
)
from countersign.webhooks.secrets import WebhookSecrets
from countersign.webhooks.signature import SigningKey, sign

CONCURRENT: Final = 12
CONCURRENT_MAX: Final = 64
"""Attempts at a time, for one endpoint in one process: more, the longer it takes to answer.

A receiver that answers at once would otherwise leave little of the event loop for requests.
"""
EXAMPLES_PER_ENDPOINT: Final = 1
EXAMPLES_PER_ACCOUNT: Final = 4
"""Examples under way at a time in one process."""
FIRST_CLAIM: Final = 32
FAN_OUT: Final = 500
CATCH_UP_SECONDS: Final = 0.05
"""The pause after so many events as FAN_OUT, of all endpoints together in one process.

So a million events that are gone over again leave the database to others meanwhile.
"""
CLAIM_MAX: Final = 256
IDLE_SECONDS: Final = 0.5
_TURN_SECONDS: Final = 5.0
"""How long one reading of an endpoint's settings is good for."""
_MARGIN_SECONDS: Final = 5.0
_STOP_SECONDS_MAX: Final = 5.0
_GONE: Final = 410
_ENTROPY_BYTES: Final = 4

_encode: Final = msgspec.json.Encoder().encode
_log: Final = structlog.get_logger("countersign.webhooks")


class DeliverWebhooks:
    """Works for as long as the server runs."""

    def __init__(
        self,
        *,
        store: DeliveryStore,
        events: ReadEvents,
        secrets: WebhookSecrets,
        sender: WebhookSender,
        timeout_seconds: float,
        private: bool,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        """`timeout_seconds` is how long the sender takes for a message at most."""
        self._store = store
        self._events = events
        self._secrets = secrets
        self._sender = sender
        self._timeout = timeout_seconds
        self._private = private
        self._clock = clock
        self._entropy = entropy
        # A batch that has not ended when this is over may be another process's by then.
        self._lease = timedelta(seconds=2 * timeout_seconds + _MARGIN_SECONDS)
        self._paces: dict[str, Pace] = {}
        self._turns: dict[str, asyncio.Task[bool]] = {}
        self._examples: Counter[str] = Counter()
        self._catching_up = asyncio.Lock()
        self._ended = asyncio.Event()
        self._begun = self._stopping = False
        self.attempts: Counter[Outcome] = Counter()
        """How many attempts this process has made, by what came of them."""
        self.waiting = 0
        """For how many endpoints there was something to do when it was looked last."""

    async def run(self) -> None:
        """Deliver until cancelled; what is under way then comes to its end."""
        self._begun = self._stopping = False
        try:
            await forever("webhooks", self._look, IDLE_SECONDS, self._ended)
        finally:
            self._stopping = True
            if self._turns:
                await asyncio.wait(self._turns.values(), timeout=_STOP_SECONDS_MAX)
            for turn in self._turns.values():
                turn.cancel()
            await self.close()

    async def _look(self) -> None:
        if not self._begun:
            await self._events.begin()
            self._begun = True
        await self.start_turns()

    async def close(self) -> None:
        """Close the connections to receivers."""
        await self._sender.close()

    async def start_turns(self) -> None:
        """Begin to work for each endpoint that waits, and for which nobody here works yet.

        Raises:
            CountersignError: the database could not be asked.
        """
        now = from_ns(self._clock.time_ns())
        found = await self._store.waiting(now)
        self.waiting = len(found)
        for endpoint, behind, due in found:
            pace = self._paces.setdefault(endpoint.id, Pace(self._clock.monotonic))
            if endpoint.id not in self._turns and (behind or (due and pace.ready)):
                turn = asyncio.create_task(self._turn(endpoint, pace))
                self._turns[endpoint.id] = turn
                turn.add_done_callback(partial(self._turn_ended, endpoint.id))

    async def settle(self) -> None:
        """Work until nothing is due any more; for tests and tools."""
        while True:
            await self.start_turns()
            if not self._turns:
                return
            await asyncio.gather(*self._turns.values())

    async def send_example(self, endpoint: WebhookEndpoint, type_: EventType) -> Attempt:
        """Send a signed example at once; nothing is written down, and nothing is repeated.

        Raises:
            RateLimited: too many for this endpoint or account are under way.
        """
        names = (endpoint.id, endpoint.account_id)
        under_way = [self._examples[name] for name in names]
        if under_way[0] >= EXAMPLES_PER_ENDPOINT or under_way[1] >= EXAMPLES_PER_ACCOUNT:
            msg = "Other examples are still being sent; wait for their results."
            raise RateLimited(msg, retry_after=math.ceil(self._timeout))
        self._examples.update(names)
        try:
            return await self._example(endpoint, type_)
        finally:
            self._examples.subtract(names)
            self._examples = +self._examples  # only what is above zero stays

    async def _example(self, endpoint: WebhookEndpoint, type_: EventType) -> Attempt:
        time_ns = self._clock.time_ns()
        event = Event.example(endpoint.account_id, endpoint.mode, type_, from_ns(time_ns))
        keys = await self._secrets.signing_keys(endpoint, from_ns(time_ns))
        view = self._events.view(event)
        attempt, _ = await self._attempt(self._target(endpoint), keys, view, 1)
        return attempt

    def _target(self, endpoint: WebhookEndpoint) -> Target | None:
        """Where to send to; None for what was made while private addresses were allowed."""
        try:
            return parse_target(endpoint.url, private=self._private)
        except ValueError:
            return None

    def _turn_ended(self, endpoint_id: str, turn: asyncio.Task[bool]) -> None:
        del self._turns[endpoint_id]
        if not turn.cancelled() and turn.result():
            self._ended.set()

    async def _turn(self, endpoint: WebhookEndpoint, pace: Pace) -> bool:
        """Work for an endpoint for a while; whether there may be more to do at once."""
        try:
            return await self._work(endpoint, pace)
        except CountersignError as error:
            pace.rest()
            _log.warning("webhook_postponed", endpoint=endpoint.id, code=error.code)
        except Exception as error:  # noqa: BLE001 - one endpoint's trouble is not another's
            pace.rest()
            log_failure("webhook_failed", error, endpoint=endpoint.id)
        return False

    async def _work(self, endpoint: WebhookEndpoint, pace: Pace) -> bool:
        target = self._target(endpoint)
        end = self._clock.monotonic() + _TURN_SECONDS
        size, concurrent = FIRST_CLAIM, CONCURRENT
        while self._clock.monotonic() < end and not self._stopping:
            now = from_ns(self._clock.time_ns())
            gone_through = await self._store.fan_out(endpoint, now, FAN_OUT)
            claimed: Sequence[Claimed] = ()
            if pace.ready:
                number = 1 if pace.tired else size
                claimed = await self._store.claim(endpoint, now, now + self._lease, number)
            if claimed:
                size = min(2 * size, CLAIM_MAX)
                took_ms = await self._deliver(endpoint, target, claimed, pace, concurrent)
                if took_ms is None:
                    return False
                # As many at a time as give about a thousand a second.
                concurrent = min(max(CONCURRENT, took_ms), CONCURRENT_MAX)
            elif gone_through < FAN_OUT:
                return False
            if gone_through == FAN_OUT:
                async with self._catching_up:
                    await asyncio.sleep(CATCH_UP_SECONDS)
        return True

    async def _deliver(
        self,
        endpoint: WebhookEndpoint,
        target: Target | None,
        claimed: Sequence[Claimed],
        pace: Pace,
        concurrent: int,
    ) -> int | None:
        """Attempt these, several at a time; gives how long one takes on average, in milliseconds.

        None: the endpoint is not to get any more.
        """
        keys = await self._secrets.signing_keys(endpoint, from_ns(self._clock.time_ns()))
        # Whatever is not begun by then is given back: its lease would end during the attempt.
        last_start = self._clock.monotonic() + self._lease.total_seconds() - self._timeout - 1
        waiting = iter(claimed)
        gone = False
        failure: CountersignError | None = None
        took: list[int] = []

        async def one_after_the_other() -> None:
            nonlocal gone, failure
            for delivery in waiting:
                if failure is not None:
                    return  # due again when the lease is over
                late = self._clock.monotonic() > last_start
                try:
                    if gone or late or self._stopping or not pace.ready:
                        await self._give_back(delivery)
                        continue
                    view = self._events.view(delivery.event)
                    attempt, sent = await self._attempt(target, keys, view, delivery.number)
                    took.append(attempt.duration_ms)
                    self.attempts[sent.outcome] += 1
                    pace.judge(rest=wants_rest(sent), retry_after=sent.retry_after)
                    await self._store.finish(self._finished(delivery, attempt, sent))
                except CountersignError as error:
                    # What others have sent meanwhile is written down, if that is possible again.
                    failure = error
                    return
                if sent.status == _GONE:
                    gone = True

        async with asyncio.TaskGroup() as group:
            for _ in range(min(concurrent, len(claimed))):
                group.create_task(one_after_the_other())
        if failure is not None:
            raise failure
        if gone:
            now = from_ns(self._clock.time_ns())
            await self._store.disable(endpoint, Disabled.GONE, now)
            _log.warning("webhook_endpoint_gone", endpoint=endpoint.id)
            return None
        return sum(took) // max(len(took), 1)

    async def _attempt(
        self, target: Target | None, keys: Sequence[SigningKey], view: EventView, number: int
    ) -> tuple[Attempt, Sent]:
        time_ns, started = self._clock.time_ns(), self._clock.monotonic()
        body = _encode(view.message)
        headers = {"Content-Type": "application/json"}
        headers |= sign(keys, view.id, time_ns // 1_000_000_000, body)
        sent = Sent(Outcome.ADDRESS_REFUSED)
        if target is not None:
            sent = await self._sender.post(target, headers, body, view.event.account_id)
        took = round((self._clock.monotonic() - started) * 1000)
        return Attempt(number, from_ns(time_ns), took, sent.outcome, sent.status), sent

    def _finished(self, claimed: Claimed, attempt: Attempt, sent: Sent) -> Finished:
        if sent.outcome is Outcome.DELIVERED:
            return Finished(claimed, attempt, DeliveryStatus.SUCCEEDED, None)
        chance = int.from_bytes(self._entropy(_ENTROPY_BYTES), "big") / (1 << 8 * _ENTROPY_BYTES)
        wait = wait_before(claimed.step, sent, chance)
        if wait is None:
            return Finished(claimed, attempt, DeliveryStatus.FAILED, None)
        due_at = from_ns(self._clock.time_ns()) + wait
        return Finished(claimed, attempt, DeliveryStatus.PENDING, due_at)

    async def _give_back(self, claimed: Claimed) -> None:
        now = from_ns(self._clock.time_ns())
        await self._store.finish(Finished(claimed, None, DeliveryStatus.PENDING, now))
