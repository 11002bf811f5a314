"""Sessions whose buyers are checked at simulated providers, in a deployment of this process."""

from __future__ import annotations

import itertools
import json
from collections.abc import Awaitable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import httpx2
from sqlalchemy import Connection, select

from countersign.base.db.tables import events
from countersign.base.values import Mode
from countersign.core.access.account import register
from countersign.core.access.key import Principal
from countersign.core.buyers import settings as verification_settings
from countersign.core.checkout import sessions, store
from countersign.core.checkout.model import Collected, Session
from countersign.core.checkout.room import Checkout
from countersign.core.checkout.schemas import CheckoutSessionRequest
from countersign.core.gate.act import Writing
from countersign.core.notices import publish as publishing
from countersign.core.notices.notice_file import parse_notice_file
from countersign.hosted.pages import buyer, following, identity
from countersign.hosted.pages.room import HostedPages
from countersign_evidence.process import Surface
from tests.clearances.desk import NO_ONE
from tests.http.backstage import notice_file
from tests.support.acts import done
from tests.support.providers import Playing, playing
from tests.verification.inside import Insider, Stage

T = TypeVar("T")
ZIP = "94110"
SHOP = "https://shop.example"
NOTICE = "checks"
_numbers = itertools.count(1)


async def created(room: Checkout, who: Principal, asked: CheckoutSessionRequest) -> Session:
    """A new checkout session."""
    write = Writing(room.access.database)
    made = await sessions.create_checkout_session(room, who, asked, write)
    return await store.find(room, who.reach, made.checkout_session_id)


@dataclass(frozen=True)
class Checks:
    """An account whose buyers are checked at two providers."""

    stage: Stage
    insider: Insider
    providers: Sequence[Playing]

    @property
    def room(self) -> HostedPages:
        return self.stage.opened.checkout

    @property
    def who(self) -> Principal:
        return self.insider.principal

    def do(self, work: Awaitable[T]) -> T:
        return self.stage.do(work)

    def create(self, *collect: Collected) -> Session:
        asked = CheckoutSessionRequest(
            return_url=f"{SHOP}/back",
            session_id=f"cart-{next(_numbers)}",
            order_reference="1001",
            notice_id=NOTICE,
            collect=list(collect),
            shipping_zip=ZIP,
        )
        return self.do(created(self.room, self.who, asked))

    def read(self, session_id: str) -> Session:
        who = self.who
        return self.do(store.find(self.room, who.reach, session_id))

    def begun(self) -> Session:
        """A session of the identity alone, at the page of the first provider."""
        return self.begin(self.create(Collected.IDENTITY))

    def begin(
        self,
        session: Session,
        provider: str | None = None,
        *,
        browser: str = "",
        again: bool = False,
    ) -> Session:
        begun = identity.begin(self.room, session, provider, browser=browser, again=again)
        return self.do(begun)

    def follow(self, session: Session) -> Session:
        return self.do(identity.follow(self.room, session))

    def acknowledge(self, session: Session) -> Session:
        """The buyer initials every line on the page, and agrees."""

        async def work() -> Session:
            room = self.room
            notice = await buyer.notice_of(room, session)
            initials = ["AB"] * len(notice.content.bullets)
            shown = await buyer.show(room, session, notice, Surface.PAGE, None, "en")
            typed = await buyer.initial(room, shown, notice.digest, initials, NO_ONE.client)
            return await buyer.accept(room, await buyer.review(room, typed, "en"), NO_ONE)

        return self.do(work())

    def sweep(self) -> int:
        """Run the loop once."""
        return self.do(following.sweep(self.room))

    def submit(self, session: Session, outcome: str, zip_: str = ZIP) -> None:
        """The buyer goes through the provider's page of the newest check."""
        check = session.asked.check
        assert check is not None
        submit(check.url, outcome, zip_)

    def events(self, session_id: str) -> list[str]:
        def found(connection: Connection) -> list[str]:
            own = select(events.c.type).where(events.c.object_id == session_id)
            return [*connection.execute(own.order_by(events.c.seq)).scalars()]

        return self.do(self.stage.opened.database.read(found))


def submit(url: str, outcome: str, zip_: str = ZIP) -> None:
    """Submit the form of a simulated provider's page with this outcome."""
    done = httpx2.post(url, data={"zip": zip_, "outcome": outcome}, verify=False)
    assert done.status_code < 400, done.text


def publish(stage: Stage) -> None:
    """Have a notice that live sessions can show."""
    notices = stage.opened.notices
    content = parse_notice_file(notice_file(NOTICE, "1", lines=2).encode())
    stage.do(done(publishing.publish, notices, content, ""))
    against = "https://law.example/text"
    stage.do(done(publishing.review, notices, NOTICE, "1", by="A. Reader", against=against))
    stage.clock.now += timedelta(seconds=2)


def checks_at(stage: Stage, stack: ExitStack, mode: Mode = Mode.LIVE) -> Checks:
    """Make an account with the simulated Stripe and Persona, for live keys or for test keys."""
    seconds = stage.provider_seconds
    found = [stack.enter_context(playing(name, clock=seconds)) for name in ("stripe", "persona")]
    insider = stage.insider(found[0])
    for one in found if mode is Mode.TEST else found[1:]:
        stage.do(
            verification_settings.add(
                stage.opened.buyers,
                insider.account_id,
                mode,
                one.name,
                json.dumps(one.simulator.credentials).encode(),
                one.url,
            )
        )
    stage.do(done(register, stage.opened.access, insider.account_id, SHOP))
    publish(stage)
    return Checks(stage, insider, found)
