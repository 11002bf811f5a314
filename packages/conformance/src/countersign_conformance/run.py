"""A conformance run: step by step, until all checks have a result, or it ends before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from typing import Final

from countersign.base.errors import CountersignError, InvalidArgument
from countersign.base.snapshot import STALENESS_SECONDS
from countersign.base.values import Clock, Entropy, earliest_id, from_ns, timed_id, to_ms
from countersign_conformance.catalogue import CATALOGUE
from countersign_conformance.history import History
from countersign_conformance.model import (
    DURATION_MAX,
    FULFIL,
    HOLD_MAX,
    LEASE,
    OBSERVATION,
    OBSERVATIONS_MAX,
    RUN,
    STEPS,
    Finding,
    Observation,
    Report,
    Run,
    Step,
    Verdict,
)
from countersign_conformance.probes import PROBING_SECONDS, ProbeWebhooks
from countersign_conformance.store import RunStore
from countersign_conformance.watch import WatchVendors

_POLL_SECONDS: Final = 0.25
_PROLONG_SECONDS: Final = 3.0
_QUIET: Final = timedelta(seconds=2)
"""An order without requests for this long is over."""
_LATE: Final = timedelta(seconds=10)
_REACTION: Final = timedelta(seconds=5)
"""Upper limit of the time to watch for reactions to a webhook."""

Say = Callable[[str], None]


class RunConformance:
    """Checks an integration while it runs."""

    def __init__(
        self,
        store: RunStore,
        watch: WatchVendors,
        probe: ProbeWebhooks,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self._store = store
        self._watch = watch
        self._probe = probe
        self._clock = clock
        self._entropy = entropy

    async def __call__(
        self,
        account_id: str,
        *,
        duration: timedelta,
        step_limit: timedelta,
        hold: timedelta,
        linger: timedelta,
        stop: asyncio.Event,
        say: Say,
    ) -> Report:
        """The report of a run.

        Args:
            account_id: whose integration.
            duration: after this long it ends.
            step_limit: after this long a step that brought nothing gives way to the next.
            hold: for how long to withhold a response.
            linger: how long to watch that nothing forbidden follows.
            stop: ends the run early when it is set.
            say: gets sentences for people during the run.

        Raises:
            InvalidArgument: a time is too long, or a run is under way for this account.
        """
        if not timedelta(0) < duration <= DURATION_MAX or not timedelta(0) < hold <= HOLD_MAX:
            msg = (
                f"A run can take at most {DURATION_MAX // timedelta(hours=1)} hours, and can "
                f"withhold a response for at most {HOLD_MAX // timedelta(minutes=1)} minutes."
            )
            raise InvalidArgument(msg)
        run = self._new(account_id, duration, hold)
        if not await self._store.begin(run):
            msg = (
                "A run is already active for this account. A run whose command was killed ends "
                f"after {LEASE // timedelta(seconds=1)} seconds."
            )
            raise InvalidArgument(msg)
        conduct = _Conduct(run, self._store, self._watch, stop, linger)
        alive = asyncio.create_task(conduct.keep_alive(say))
        try:
            async with asyncio.timeout(duration.total_seconds()):
                await self._go_through(conduct, step_limit, say)
        except TimeoutError:
            say("The time for the run is over.")
        finally:
            alive.cancel()
            await asyncio.wait((alive,))
            with suppress(CountersignError):  # then the lease ends it
                await self._store.prolong(run.id, conduct.now(), conduct.now())
        return await conduct.report()

    async def _go_through(self, conduct: _Conduct, step_limit: timedelta, say: Say) -> None:
        # From now on every server knows of the run.
        await asyncio.sleep(STALENESS_SECONDS)
        for number, step in enumerate(STEPS, 1):
            if conduct.stop.is_set():
                break
            await conduct.arm(step)
            say(f"{number}/{len(STEPS)} {step.ask}")
            finding = await conduct.see(step, step_limit)
            verdict = finding.verdict.value if finding.due is None else "so far"
            say(f"    {verdict}: {finding.seen}")
            if number == 1:
                # After an order, so that the vendor's normal behaviour is known.
                await self._send_messages(conduct, say)
        await conduct.arm(None)
        await conduct.linger_on(say)

    async def _send_messages(self, conduct: _Conduct, say: Say) -> None:
        if conduct.stop.is_set():
            return
        reaction = min(conduct.linger, _REACTION)
        seconds = PROBING_SECONDS + 2 * reaction.total_seconds()
        say(
            "Sending valid and invalid messages to the account's webhook endpoints of test "
            f"mode, {seconds:.0f} s for each endpoint. Wait before you place the next order."
        )
        probes = self._probe(conduct.run.account_id, conduct.note, reaction=reaction)
        if not await conduct.unless_stopped(probes):
            say("No endpoint is enabled, so no message was sent.")

    def _new(self, account_id: str, duration: timedelta, hold: timedelta) -> Run:
        time_ns = self._clock.time_ns()
        now = from_ns(time_ns)
        return Run(
            id=timed_id(RUN, time_ns, self._entropy(8)),
            account_id=account_id,
            started_at=now,
            ends_at=now + duration,
            active_until=min(now + duration, now + LEASE),
            hold=hold,
        )


class _Conduct:
    """A run that is under way, in the process of the command."""

    def __init__(
        self,
        run: Run,
        store: RunStore,
        watch: WatchVendors,
        stop: asyncio.Event,
        linger: timedelta,
    ) -> None:
        self.run = run
        self.stop = stop
        self.linger = linger
        self._store = store
        self._watch = watch
        self._known: dict[str, Observation] = {}
        self._before = 0
        self.now = watch.now

    async def keep_alive(self, say: Say) -> None:
        """Show the servers that the command is running; without that they end the run."""
        alive = True
        while alive:
            await asyncio.sleep(_PROLONG_SECONDS)
            now = self.now()
            with suppress(CountersignError):  # the next time may go better
                alive = await self._store.prolong(
                    self.run.id, min(self.run.ends_at, now + LEASE), now
                )
        say("The command could not reach the database for too long: the run is over.")
        self.stop.set()

    async def unless_stopped(self, probes: Coroutine[None, None, int]) -> int:
        """Send the probes, unless the run is stopped meanwhile."""
        sending, stopped = asyncio.ensure_future(probes), asyncio.ensure_future(self.stop.wait())
        try:
            await asyncio.wait((sending, stopped), return_when=asyncio.FIRST_COMPLETED)
            return sending.result() if sending.done() else 1
        finally:
            stopped.cancel()
            sending.cancel()
            await asyncio.wait((sending, stopped))

    async def note(self, observation: Observation) -> None:
        await self._watch.note(self.run, observation)

    async def arm(self, step: Step | None) -> None:
        """Have the step's provocation met by the next request on whichever server.

        Later observations belong to the step.
        """
        await self._look()
        self._before = len(self._known)
        await self._store.arm(self.run.id, step.provocation if step else None, self.now())
        await asyncio.sleep(STALENESS_SECONDS)

    async def see(self, step: Step, limit: timedelta) -> Finding:
        """Wait until the step has a result and its order is over; returns the result."""
        began = self.now()
        while True:
            await self._look()
            finding = self._evaluate(step.check)
            news = self._seen()[self._before :]
            is_settled = finding.verdict is not Verdict.NOT_SEEN or finding.due is not None
            if is_settled and news and self._is_over(news):
                return finding
            if self.stop.is_set() or self.now() - began >= limit:
                return finding
            await self._pause()

    async def linger_on(self, say: Say) -> None:
        """Watch until each finding that only time can confirm is confirmed, or refuted."""
        announced = False
        while not self.stop.is_set():
            await self._look()
            due = [due for check, _ in CATALOGUE if (due := self._evaluate(check.id).due)]
            if not due:
                return
            if not announced:
                seconds = (max(due) - self.now()).total_seconds()
                say(f"Watching for {seconds:.0f} s more. Continue as usual.")
                announced = True
            await self._pause()

    async def report(self) -> Report:
        """The result of the run."""
        await self._look(everything=True)
        return Report(
            run=self.run,
            ended_at=self.now(),
            observed=len(self._known),
            complete=len(self._known) < OBSERVATIONS_MAX,
            findings=tuple((check, self._evaluate(check.id)) for check, _ in CATALOGUE),
        )

    async def _pause(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_POLL_SECONDS):
                await self.stop.wait()

    def _evaluate(self, check_id: str) -> Finding:
        evaluate = next(evaluate for check, evaluate in CATALOGUE if check.id == check_id)
        return evaluate(History(self._seen(), self.now(), self.linger))

    def _is_over(self, news: list[Observation]) -> bool:
        last = news[-1]
        return (last.operation == FULFIL and last.done) or self.now() - last.at >= _QUIET

    def _seen(self) -> list[Observation]:
        return [self._known[id_] for id_ in sorted(self._known)]

    async def _look(self, *, everything: bool = False) -> None:
        # Servers write concurrently: a late observation may be of an earlier event.
        since = self.run.started_at if everything else self.now()
        since_id = earliest_id(OBSERVATION, to_ms(since - _LATE))
        self._known |= await self._store.observed(self.run.id, since_id)
        if len(self._known) >= OBSERVATIONS_MAX:
            self.stop.set()
