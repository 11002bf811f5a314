"""The form of the last page that sends the buyer the copy's link by e-mail."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from countersign.base.errors import NotFound
from countersign.base.values import COPY_MAIL, from_ns, timed_id
from countersign.core.checkout.model import Session, Status
from countersign.core.gate.route import Reply
from countersign.core.vault.vault import DEPLOYMENT, NONCE_BYTES
from countersign.hosted.pages import mails
from countersign.hosted.pages.mails import CopyMails, MailAnswer, NewMail
from countersign.hosted.pages.room import HostedPages
from countersign.hosted.pages.send_mails import place_of
from countersign.hosted.pages.visits import Visit
from countersign.hosted.toolkit.screens import lead

ADDRESS_LENGTH_MAX: Final = 254
"""RFC 5321 §4.5.3.1.3, without the angle brackets; also as it is sent, in ASCII."""
_LOCAL: Final = re.compile(
    r"(?=.{1,64}\Z)(?!.*=\?)[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*", re.ASCII
)
"""A dot-atom (RFC 5322 §3.2.3) in ASCII: no quotes, spaces, comments or lines.

No encoded word (RFC 2047) either: mail libraries decode it, and the mail goes to another address.
"""
_DOMAIN: Final = re.compile(r"(?=.{1,253}\Z)(?:[a-z0-9-]{1,63}\.)+(?=[^.]*[a-z])[a-z0-9-]{2,63}")
"""At least two labels, the last not a number, so that no IP address matches."""


def mail_address(text: str) -> str | None:
    """The address in ASCII for a mail server; None if it is not valid."""
    local, _, domain = text.strip(" \t\r\n").rpartition("@")
    if len(text) > 2 * ADDRESS_LENGTH_MAX or _LOCAL.fullmatch(local) is None:
        return None
    named = _in_ascii(domain)
    if _DOMAIN.fullmatch(named) is None or len(local) + len(named) >= ADDRESS_LENGTH_MAX:
        return None
    return f"{local}@{named}"


def _in_ascii(domain: str) -> str:
    """The domain as DNS looks it up; "" if it is not valid."""
    import idna  # noqa: PLC0415 - its tables are large, and few processes need them

    try:
        # Not Python's own codec: by the rules of 2003, `ß` would lead to another domain.
        return idna.encode(domain, uts46=True).decode("ascii")
    except idna.IDNAError:
        return ""


def counted_as(address: str) -> str:
    """A key shared by the addresses that usually reach one mailbox.

    Case, dots in the local part and what follows a plus are left out.
    """
    local, _, domain = address.lower().rpartition("@")
    box = local.partition("+")[0].replace(".", "")
    return f"{box or local}@{domain}"


MAIL: Final = "mail"
"""The form's address, and its parameter in an address of the page."""
_WRONG: Final = "wrong"


async def offer(visit: Visit) -> Mapping[str, Any]:
    """The values for a page with the buyer's copy; none without a mail server."""
    room = visit.room
    if room.mails is None:
        return {"mail": None}
    said = visit.form.get(MAIL, "")
    number = await room.access.database.read(mails.count, visit.session.id)
    shown = {
        # An outcome claimed in the address is shown only if it can be true.
        "queued": said == MailAnswer.QUEUED and number > 0,
        "busy": said == MailAnswer.BUSY,
        "wrong": said == _WRONG,
        "more": number < mails.PER_SESSION,
        "length_max": ADDRESS_LENGTH_MAX,
    }
    return {"mail": shown}


async def ask(visit: Visit) -> Reply:
    """Take the address, and put the mail into the queue."""
    room, session = visit.room, visit.session
    if room.mails is None:
        raise NotFound
    if session.status is not Status.COMPLETED or not session.has_copy_at(visit.now):
        return visit.go_on()
    address = mail_address(visit.form.get("email", ""))
    if address is None:
        return _back(visit, _WRONG)
    answer = await request_mail(room, room.mails, session, address, visit.locale)
    if answer is None:
        return visit.go_on()
    room.mails.wake.set()
    return _back(visit, answer)


def _back(visit: Visit, said: str) -> Reply:
    """To the same part of the page, or to the field that is wrong."""
    part = "email" if said == _WRONG else MAIL
    return lead(f"{visit.address(**{MAIL: said})}#{part}")


async def request_mail(
    room: HostedPages, own: CopyMails, session: Session, address: str, locale: str
) -> MailAnswer | None:
    """Put a mail to this address into the queue; None: the session's copy no longer exists."""
    time_ns, entropy = room.access.clock.time_ns(), room.access.entropy
    if session.shred_key is None:
        return None
    key = await room.vault.data_key(session.account_id, time_ns)
    id_ = timed_id(COPY_MAIL, time_ns, entropy(8))
    sealed = key.seal(
        shred_key=session.shred_key,
        nonce=entropy(NONCE_BYTES),
        plaintext=address.encode(),
        **place_of(session.account_id, id_),
    )
    index = room.access.secret.blind_index(DEPLOYMENT, "copy_address", counted_as(address))
    new = NewMail(
        id=id_,
        account_id=session.account_id,
        mode=session.mode,
        checkout_session_id=session.id,
        created_at=from_ns(time_ns),
        locale=locale,
        address=sealed,
        address_index=index,
    )
    return await room.access.database.write(mails.accept, new, own.daily_limit)
