"""Alerts by e-mail about overdue promises, for staff who subscribed with a confirmed address.

There is no queue: an overdue promise is the pending alert, until the mail server accepts the mail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from hmac import compare_digest
from typing import Final

from sqlalchemy import Connection, Update, and_, or_, select, update

from countersign.base.db.tables import people, person_grants
from countersign.base.errors import PeopleRefused
from countersign.base.values import from_ns
from countersign.core.vault.vault import DEPLOYMENT
from countersign.hosted.pages.mail_page import mail_address
from countersign.hosted.pages.mails import Attempt, MailClient, MailOutcome, composed
from countersign.staff.people.room import People
from countersign_evidence.disclosure import b64url

_DAY: Final = timedelta(days=1)
"""Lifetime of a code, and the interval of reminders about the same overdue promise."""
_p: Final = people.c
_grant: Final = select(person_grants.c.id).where(
    person_grants.c.person_id == _p.id, person_grants.c.account_id.is_(None)
)


def is_proved(connection: Connection, person_id: str) -> bool | None:
    """Whether the person's address is proved; None: there is none."""
    own = select(_p.address, _p.told_at).where(_p.id == person_id)
    address, told_at = connection.execute(own).one()
    return None if address is None else told_at is not None


async def ask(room: People, person_id: str, email: str) -> None:
    """Send a code to this address, in place of the one of before.

    Raises PeopleRefused: nothing can be sent there, or it was done a moment ago.
    """
    time_ns, address = room.access.clock.time_ns(), mail_address(email)
    if address is None or room.mails is None:
        raise PeopleRefused("This is no e-mail address, or this server sends no mail.")
    sealed = await room.addresses.seal(
        address.encode(), account=DEPLOYMENT, row_id=person_id, time_ns=time_ns
    )
    now = from_ns(time_ns)
    ready = or_(_p.code_sent_at.is_(None), _p.code_sent_at <= now - timedelta(minutes=10))
    own = update(people).where(_p.id == person_id, _grant.exists(), ready)
    values = {"address": sealed, "code_sent_at": now, "told_at": None}
    if not await room.access.database.write(_changed, own.values(values)):
        raise PeopleRefused("Alerts are for staff, who get one code in ten minutes.")
    place, code = f"{room.url}/console/sessions", _code(room, person_id, sealed)
    said = await _send(room, address, "Code for alerts", f"Enter this code at {place}:\n\n{code}")
    if said.outcome is not MailOutcome.SENT:
        raise PeopleRefused(f"The mail server did not take the code (at {said.step}).")


def prove(connection: Connection, room: People, person_id: str, code: str) -> None:
    """Begin alerts at the address whose code this is; raises PeopleRefused."""
    now = from_ns(room.access.clock.time_ns())
    own = and_(_p.id == person_id, _p.code_sent_at > now - _DAY)
    sealed = connection.execute(select(_p.address).where(own)).scalar()
    known = "" if sealed is None else _code(room, person_id, sealed)
    if not (known and compare_digest(known.encode(), code.strip().encode())):
        raise PeopleRefused("This is not the code of the last mail, or it is older than a day.")
    connection.execute(update(people).where(own).values(told_at=now))


async def tell(room: People, late: Callable[[], Sequence[tuple[datetime, str]]]) -> None:
    """Mail each subscriber the promises overdue since the last mail, and once a day all of them."""
    found, database = late(), room.access.database
    for person_id, sealed, told_at in await database.scan(_who_asked):
        now, own = from_ns(room.access.clock.time_ns()), _p.told_at == told_at
        is_old = now >= told_at + _DAY
        text = "\n\n".join(words for at, words in found if is_old or at > told_at)
        claim = update(people).where(_p.id == person_id, own).values(told_at=now)
        # Another server may send the same. After a crash here, the daily reminder has it.
        if not text or not await database.write(_changed, claim):
            continue
        address = await room.addresses.open(sealed, account=DEPLOYMENT, row_id=person_id)
        said = await _send(room, address.decode(), "Countersign needs a look", text)
        if said.outcome is MailOutcome.POSTPONED:
            again = update(people).where(_p.id == person_id, _p.told_at == now)
            await database.write(_changed, again.values(told_at=told_at))


def _who_asked(connection: Connection) -> list[tuple[str, bytes, datetime]]:
    asked = select(_p.id, _p.address, _p.told_at).where(_p.told_at.is_not(None), _grant.exists())
    return [(row.id, row.address, row.told_at) for row in connection.execute(asked)]


def _changed(connection: Connection, statement: Update, /) -> bool:
    return connection.execute(statement).rowcount == 1


def _code(room: People, person_id: str, sealed: bytes) -> str:
    return b64url(room.access.secret.page_code("alerts", person_id, sealed)[:16])


async def _send(room: People, address: str, subject: str, text: str) -> Attempt:
    if room.mails is None:
        return Attempt(MailOutcome.POSTPONED, step="COUNTERSIGN_SMTP_URL")
    text += f"\n\n{room.url}/console/all/state"
    message = composed(room.mails, address, subject, text, from_ns(room.access.clock.time_ns()))
    return await MailClient(room.mails).send(message, address)
