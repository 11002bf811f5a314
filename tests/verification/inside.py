"""A deployment in this process, whose clock stands still until the test moves it."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest
from sqlalchemy import Connection, text

from countersign.base.config import load_settings
from countersign.base.db.engine import Purpose, database_url, open_engine
from countersign.base.errors import ProviderUnavailable
from countersign.base.values import Mode, to_ms
from countersign.core.access.account import create_account
from countersign.core.access.key import VENDOR_SCOPES, Principal
from countersign.core.buyers import admin, poll_sessions
from countersign.core.buyers import routes as verifying
from countersign.core.buyers import settings as verification_settings
from countersign.core.buyers.model import BuyerStatusView
from countersign.core.buyers.room import Buyers
from countersign.core.buyers.rules import VerificationRules
from countersign.core.buyers.schemas import BuyerVerificationRequest, VerifyResult
from countersign.operate import bootstrap
from countersign_simulators.base import Session
from tests.support.acts import done
from tests.support.providers import Playing, playing
from tests.support.service import PREFIX, Deployment

T = TypeVar("T")
_numbers = itertools.count(1)


@dataclass
class MovingClock:
    """See `ports.Clock`."""

    now: datetime = field(default_factory=lambda: datetime.now(UTC) + timedelta(seconds=1))

    def time_ns(self) -> int:
        return to_ms(self.now) * 1_000_000

    def monotonic(self) -> float:
        return self.now.timestamp()


@dataclass(frozen=True)
class Insider:
    """An account that asks a provider."""

    stage: Stage
    principal: Principal
    playing: Playing

    @property
    def account_id(self) -> str:
        return self.principal.account_id

    def part(self, plays: str, number: int = 0) -> Session:
        """The session of the provider that plays this."""
        return self.playing.part(plays, number)

    def verify(
        self,
        session: Session,
        shipping_zip: str | None = None,
        *,
        subject_reference: str | None = None,
    ) -> VerifyResult:
        """Verify the buyer of a session."""
        request = BuyerVerificationRequest(
            provider_identity_session_id=session.session_id,
            shipping_zip=shipping_zip or session.shipping_zip,
            test_mode=False,
            subject_reference=subject_reference or session.subject_reference,
        )
        return self.stage.do(verifying.verify(self.stage.opened.buyers, self.principal, request))

    def unavailable(self, session: Session) -> int:
        """Verify the buyer of a session, which is unavailable now; returns the retry time."""
        with pytest.raises(ProviderUnavailable) as refused:
            self.verify(session)
        return refused.value.retry_after

    def standing(self, cbid: str) -> BuyerStatusView:
        """The account's present view of a buyer."""
        return self.stage.do(verifying.buyer_status(self.stage.opened.buyers, self.principal, cbid))

    def configure(
        self,
        credentials: Mapping[str, object] | None = None,
        **rules: Any,  # noqa: ANN401
    ) -> None:
        """Set how the account verifies."""
        held = credentials or self.playing.simulator.credentials
        self.stage.do(
            verification_settings.configure(
                self.stage.opened.buyers,
                self.account_id,
                self.playing.name,
                json.dumps(held).encode(),
                VerificationRules(**rules),
                base_url=self.playing.url,
            )
        )

    def hint(self, session: Session) -> None:
        """Have the provider send its message about a session."""
        self.hint_of(session.session_id)

    def hint_of(self, session_id: str) -> None:
        """The same about the session with this identifier."""
        message = self.playing.simulator.webhook(session_id)
        headers = {name.lower(): value for name, value in message.headers}
        room, name = self.stage.opened.buyers, self.playing.name
        found = self.stage.do(poll_sessions.webhook_integrations(room, name, self.account_id))
        self.stage.do(poll_sessions.take_webhook(room, found, headers, message.body))


async def poll_due(room: Buyers) -> int:
    """Poll every due session, as the service's loop does; returns their number."""
    polled = 0
    async with asyncio.TaskGroup() as group:
        while begun := await poll_sessions._begin(room, group):
            number = sum(await asyncio.gather(*begun))
            if not number:
                break
            polled += number
    return polled


class Stage:
    """A deployment that is open in this process."""

    def __init__(self, deployment: Deployment, stack: ExitStack) -> None:
        self._environment = deployment.environment
        self._settings = load_settings(self._environment)
        self._stack = stack
        self._runner = stack.enter_context(asyncio.Runner())
        self.clock = MovingClock()
        self.provider_seconds: Callable[[], float] = self.clock.monotonic
        """The providers' clock: sessions were always decided a little while before it."""
        self.engine = open_engine(
            database_url(self._settings.database_url, self._settings.data_dir), Purpose.WRITE
        )
        stack.callback(self.engine.dispose)
        self._open()

    def _open(self) -> None:
        self._context = bootstrap.open_deployment(self._settings, clock=self.clock)
        self.opened = self._runner.run(self._context.__aenter__())

    @property
    def environment(self) -> dict[str, str]:
        """For another process on the same data."""
        return self._environment

    def close(self) -> None:
        """End the services."""
        self._runner.run(self._context.__aexit__(None, None, None))

    def restart(self, **settings: str) -> None:
        """End the services, and begin new ones on the same data, with further settings."""
        self.close()
        own = {PREFIX + name: value for name, value in settings.items()}
        self._settings = load_settings(self._environment | own)
        self._open()

    def do(self, work: Awaitable[T]) -> T:
        """Do this to its end."""

        async def awaited() -> T:
            return await work

        return self._runner.run(awaited())

    def wait(self, step: timedelta) -> int:
        """Let time pass, and poll due sessions; returns their number."""
        self.clock.now += step
        return self.do(poll_due(self.opened.buyers))

    def _provider_time(self) -> float:
        return self.provider_seconds()

    def insider(self, provider: str | Playing = "stripe", **rules: Any) -> Insider:  # noqa: ANN401
        """Make an account that asks a provider."""
        if isinstance(provider, str):
            provider = self._stack.enter_context(playing(provider, clock=self._provider_time))
        account = self.do(create_account(self.opened.access, f"vendor {next(_numbers)}"))
        principal = Principal(
            key_id="key",
            account_id=account.id,
            mode=Mode.LIVE,
            scopes=VENDOR_SCOPES,
            credential="secret_key",
        )
        made = Insider(self, principal, provider)
        made.configure(**rules)
        return made

    def revoke(self, cbid: str) -> None:
        """Revoke a buyer, as `buyers revoke` does."""
        self.do(done(admin.revoke, self.opened.buyers, cbid, "a test"))

    def rows(self, query: str, **values: object) -> Sequence[Mapping[Any, Any]]:
        """Look into the database."""
        with self.engine.connect() as connection:
            return connection.execute(text(query), values).mappings().all()

    def execute(self, statement: str, **values: object) -> None:
        """Change the database behind the services' back."""
        with self.begin() as connection:
            connection.execute(text(statement), values)

    def begin(self) -> AbstractContextManager[Connection]:
        """A writing transaction behind the services' back."""
        return self.engine.begin()


@contextmanager
def staged(deployment: Deployment) -> Iterator[Stage]:
    """Open a deployment in this process until the block ends."""
    with ExitStack() as stack:
        stage = Stage(deployment, stack)
        stack.callback(stage.close)
        yield stage
