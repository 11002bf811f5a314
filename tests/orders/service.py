"""The service in this process, asked as over HTTP; its clock stands until a test moves it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from countersign.base.values import Mode
from countersign.core.access.account import find_account, register
from countersign.core.access.key import PEOPLE_SCOPES, Scope
from countersign.core.access.keys import create_key
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.acknowledgments.model import Origin
from countersign.core.checkout import expiry, store
from countersign.core.checkout.model import Session, seen_by
from countersign.core.notices import publish as publishing
from countersign.core.notices.notice_file import parse_notice_file
from countersign.core.privacy.erase import erase_planned, plan_erasure
from countersign.core.privacy.model import ErasureReason
from countersign.core.privacy.requests import carry_out_waiting
from countersign.core.privacy.retention import list_due
from countersign.hosted.pages import buyer, identity
from countersign.server.app import App
from countersign_evidence.process import Surface
from countersign_simulators.base import Session as ProviderSession
from tests.clearances.desk import NO_ONE
from tests.http.backstage import notice_file
from tests.orders.plain import Party
from tests.support.acts import done
from tests.support.in_process import call_of, encoded, whole
from tests.verification.inside import Insider, Stage
from tests.verification.test_settling import playing_another

SHOP: Final = "https://shop.example"
NOTICE: Final = "law"
INITIALS: Final = ["JD"] * 2
LINKS_KEPT: Final = timedelta(days=30)
_OBLIGED: Final = '[[obligations]]\ntype = "adult_signature"\n'


class Service:
    """One deployment with one notice, which is kept for a year and requires a signature."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        stage.restart(CONSOLE="true", RATE_LIMIT="off")
        self.app, notices = App(stage.opened), stage.opened.notices
        text = notice_file(NOTICE, "1", lines=len(INITIALS), applies_to=_OBLIGED)
        text = text.replace('language = "en"', 'language = "en"\nretention_years = 1')
        content = parse_notice_file(text.encode())
        stage.do(done(publishing.publish, notices, content, ""))
        said: dict[str, Any] = {"by": "A. Reader", "against": SHOP}
        stage.do(done(publishing.review, notices, content.id, content.version, **said))
        stage.do(notices.registry.notices(fresh=True))
        self.playing = stage.insider().playing

    def parties(self) -> tuple[list[Insider], list[Party]]:
        """Two new vendors, each with keys of both modes."""
        access, made = self.stage.opened.access, list[Party]()
        vendors = [self.stage.insider(self.playing) for _ in range(2)]
        for one in vendors:
            account = self.stage.do(find_account(access, one.account_id))
            self.stage.do(done(register, access, account.id, SHOP))
            for mode in Mode:
                scopes = frozenset(Scope) - PEOPLE_SCOPES
                key = self.stage.do(done(create_key, access, account.id, mode, scopes))
                made.append(Party(account.id, mode.value, key.token))
        return vendors, made

    def ask(self, party: Party, method: str, path: str, body: object = None) -> tuple[int, bytes]:
        """The status and the body of the response."""
        sent = b"" if body is None else json.dumps(body).encode()
        given = {"authorization": f"Bearer {party.token}", "content-type": "application/json"}
        given["content-length"] = str(len(sent))
        reply = self.stage.do(self.app.handle(call_of(method, path, encoded(given)), whole(sent)))
        return reply.status, bytes(reply.body)

    def tick(self, by: timedelta = timedelta(seconds=1)) -> None:
        self.stage.clock.now += by

    def post(self, party: Party, path: str, body: Mapping[str, Any], *may_be: str) -> Any:  # noqa: ANN401
        """The answer, a moment later; None for a refusal that may be."""
        self.tick()
        sent = {name: value for name, value in body.items() if value is not None}
        status, answer = self.ask(party, "POST", path, sent)
        said = json.loads(answer)
        if status != 200 and said["error"]["code"] in may_be:
            return None
        assert status == 200, (path, sent, said)
        return said

    def get(self, party: Party, path: str) -> Any:  # noqa: ANN401
        status, answer = self.ask(party, "GET", path)
        assert status == 200, (path, answer)
        return json.loads(answer)

    def search(self, party: Party, text: str) -> Any:  # noqa: ANN401
        status, answer = self.ask(party, "POST", "/v1/search", {"query": text})
        assert status == 200, answer
        return json.loads(answer)

    # --- at the provider ----------------------------------------------------------------------

    def _session(self, person: int) -> ProviderSession:
        return replace(self.playing.part("verified", 2 * person), subject_reference=None)

    def verify(self, vendor: Insider, person: int) -> str:
        """Check a person at the provider; gives the cbid."""
        return vendor.verify(self._session(person)).cbid

    def withdraw(self, vendor: Insider, person: int) -> None:
        """The provider declines the session that it had approved, and the vendor asks again."""
        session = self._session(person)
        with playing_another(vendor, session, vendor.part("canceled")):
            vendor.verify(session)

    def newest_check(self, party: Party) -> tuple[str, str] | None:
        """The identifier and the status of an account's newest check."""
        query = "SELECT id, status FROM verifications WHERE account_id = :of AND mode = :mode"
        rows = self.stage.rows(f"{query} ORDER BY id", of=party.account_id, mode=party.mode)
        return (rows[-1]["id"], rows[-1]["status"]) if rows else None

    # --- in browsers --------------------------------------------------------------------------

    async def _seen(self, link: str, browser: str) -> Session:
        found = await store.find_by_id(self.stage.opened.checkout, link)
        assert found is not None
        return seen_by(found, browser)

    def agree(self, link: str, typed_in: int, agreed_in: int, *, cookie: bool) -> Session:
        """Type initials in one browser, and agree in one, which may have the first one's cookie."""
        room, browsers = self.stage.opened.checkout, [_origin(f"Browser/{n}") for n in range(2)]

        async def work() -> Session:
            session = await self._seen(link, f"browser-{typed_in}")
            notice = await buyer.notice_of(room, session)
            session = await buyer.show(room, session, notice, Surface.PAGE, None, "en")
            client = browsers[typed_in].client
            session = await buyer.initial(room, session, notice.digest, INITIALS, client)
            session = await buyer.review(room, session, "en")
            if typed_in != agreed_in and not cookie:
                session = await self._seen(link, f"browser-{agreed_in}")
            return await buyer.accept(room, session, browsers[agreed_in])

        return self.stage.do(work())

    def identify(self, link: str, outcome: str) -> str | None:
        """Play the identity check of a link of the sandbox; gives the cbid."""

        async def work() -> Session:
            session = await self._seen(link, "")
            return await identity.play(self.stage.opened.checkout, session, outcome)

        return self.stage.do(work()).subject

    # --- on the machine -----------------------------------------------------------------------

    def erase(self, subject: str, *, naming: bool = False) -> set[str]:
        """As `countersign erase`; gives what holds keep."""
        privacy = self.stage.opened.privacy
        planned = plan_erasure(privacy, subject, DEPLOYMENT, with_acknowledgments=naming)
        plan = self.stage.do(planned)
        return {*self.stage.do(erase_planned(privacy, plan, ErasureReason.REQUEST))}

    def carry_out_waiting(self) -> None:
        self.stage.do(carry_out_waiting(self.stage.opened.privacy, DEPLOYMENT))

    def retain(self) -> set[str]:
        """As `countersign retention run`; gives what was due, and on no hold."""
        privacy = self.stage.opened.privacy

        async def due() -> list[str]:
            return [one.record_id async for one in list_due(privacy, DEPLOYMENT) if not one.hold]

        self.carry_out_waiting()
        found = self.stage.do(due())
        for id_ in found:
            plan = self.stage.do(plan_erasure(privacy, id_, DEPLOYMENT))
            self.stage.do(erase_planned(privacy, plan, ErasureReason.RETENTION))
        return {*found}

    def housekeep(self) -> None:
        """As the server's loops do with links."""
        room = self.stage.opened.checkout
        self.stage.do(expiry.sweep(room))
        database, now = room.access.database, self.stage.clock.now
        self.stage.do(database.write(store.delete_ended, now, 1000))


def _origin(agent: str) -> Origin:
    return msgspec.structs.replace(NO_ONE, user_agent=agent)


def read_time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
