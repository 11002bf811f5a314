"""Staff who ask for it are told by mail what is late, at an address that they proved."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select

from countersign.base.db.tables import people
from countersign.base.values import Mode, from_ns
from countersign.core.access.reach import reach_of
from countersign.core.access.role import Role
from countersign.staff.people import roles
from countersign.staff.people.alerts import tell
from tests.people.crew import Console, Person, in_console
from tests.support.acts import done
from tests.support.mail_server import MailServer, mail_server

pytestmark = pytest.mark.one_engine

ALERTS = "/v1/me/alerts"
ADDRESS = "ada@mail.example"


def settings(mails: MailServer) -> dict[str, str]:
    return {"SMTP_URL": f"smtp://127.0.0.1:{mails.port}", "SMTP_SENDER": "alerts@shop.example"}


async def change(console: Console, person: Person, **body: str) -> Any:  # noqa: ANN401 - an answer
    return await console.ask(person.session, ALERTS, "POST", body=body)


def code_in(mails: MailServer, number: int) -> str:
    return next(word for word in mails.mails[number].text.split() if len(word) == 22)


async def proved(console: Console, mails: MailServer, name: str = "Ada") -> Person:
    """A person of the staff who gets alerts."""
    person = await console.person(name, Role.COMPLIANCE)
    assert (await change(console, person, email=ADDRESS)).data == {"is_proved": False}
    assert (await change(console, person, code=code_in(mails, -1))).data == {"is_proved": True}
    return person


def now(console: Console) -> datetime:
    return from_ns(console.clock.time_ns())


async def told(console: Console, *late: tuple[datetime, str]) -> None:
    def found() -> Sequence[tuple[datetime, str]]:
        return late

    await tell(console.deployment.people, found)


def test_what_became_late_is_told_and_each_day_what_still_is(tmp_path: Path) -> None:
    """At the proved address alone, and on the first day nothing that was late before."""

    async def work(console: Console, mails: MailServer) -> None:
        before = now(console) - timedelta(hours=1), "nobody makes a backup"
        await proved(console, mails)
        await told(console, before)
        assert len(mails.mails) == 1  # the code
        console.clock.seconds += 60
        late = now(console), "a buyer waits"
        console.clock.seconds += 60
        await told(console, before, late)
        await told(console, before, late)
        [_, mail] = mails.mails
        assert mail.recipients == [ADDRESS]
        assert "a buyer waits" in mail.text
        assert "backup" not in mail.text
        console.clock.seconds += 86400
        await told(console, before)
        assert "backup" in mails.mails[-1].text
        assert len(mails.mails) == 3

    with mail_server() as mails:
        in_console(tmp_path, lambda console: work(console, mails), **settings(mails))


def test_an_address_gets_no_alert_before_its_code_was_entered(tmp_path: Path) -> None:
    """A wrong code, or that of another person, proves nothing."""

    async def work(console: Console, mails: MailServer) -> None:
        ada, bob = [await console.person(one, Role.COMPLIANCE) for one in ("Ada", "Bob")]
        for one in (ada, bob):
            await change(console, one, email=ADDRESS)
        codes = [code_in(mails, number) for number in range(2)]
        for wrong in ("x" * 22, codes[1], ""):
            assert not (await change(console, ada, code=wrong)).ok
        console.clock.seconds += 60
        await told(console, (now(console), "a buyer waits"))
        assert len(mails.mails) == 2
        console.clock.seconds += 86400
        assert not (await change(console, ada, code=codes[0])).ok

    with mail_server() as mails:
        in_console(tmp_path, lambda console: work(console, mails), **settings(mails))


def test_codes_are_for_staff_and_few(tmp_path: Path) -> None:
    """So no one floods a mailbox."""

    async def work(console: Console, mails: MailServer) -> None:
        member = await console.person("Cora", Role.OWNER, await console.account("vendor"))
        assert not (await change(console, member, email=ADDRESS)).ok
        ada = await console.person("Ada", Role.OWNER)
        assert (await change(console, ada, email=ADDRESS)).ok
        assert (await change(console, ada)).data == {"is_proved": None}
        for wrong in (ADDRESS, "no address"):
            assert not (await change(console, ada, email=wrong)).ok
        console.clock.seconds += 600
        assert (await change(console, ada, email=ADDRESS)).ok
        assert len(mails.mails) == 2

    with mail_server() as mails:
        in_console(tmp_path, lambda console: work(console, mails), **settings(mails))


def test_a_mail_that_was_not_taken_is_sent_again(tmp_path: Path) -> None:
    """What is owed is asked about again."""

    async def work(console: Console, mails: MailServer) -> None:
        await proved(console, mails)
        console.clock.seconds += 60
        late = now(console), "a buyer waits"
        console.clock.seconds += 60
        mails.to_sender = "451 later"
        await told(console, late)
        mails.to_sender = "250 OK"
        await told(console, late)
        assert len(mails.mails) == 2

    with mail_server() as mails:
        in_console(tmp_path, lambda console: work(console, mails), **settings(mails))


def test_an_address_is_kept_sealed_and_goes_with_the_role(tmp_path: Path) -> None:
    def addresses(connection: Connection) -> list[bytes | None]:
        return list(connection.execute(select(people.c.address)).scalars())

    async def work(console: Console, mails: MailServer) -> None:
        await console.person("Olga", Role.OWNER)
        ada = await proved(console, mails)
        database = console.deployment.database
        [kept] = filter(None, await database.scan(addresses))
        assert ADDRESS.encode() not in kept
        await done(roles.remove, console.deployment.people, ada.id, reach_of("", Mode.LIVE))
        assert not any(await database.scan(addresses))

    with mail_server() as mails:
        in_console(tmp_path, lambda console: work(console, mails), **settings(mails))
