"""Accept an invitation, sign in or re-authenticate at an OpenID Connect provider.

Nothing is stored meanwhile. The browser keeps a *flow*: its start, random bytes and its purpose.
`state`, `nonce` and the code verifier are keyed hashes of the flow and of its link or session, so a
response counts only in the browser that began the flow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hmac import compare_digest
from typing import Final, NamedTuple

import structlog
from sqlalchemy import Connection, insert, select, update

from countersign.base.db.tables import person_sessions, person_subjects
from countersign.base.values import digits, from_ms, from_ns, to_ms
from countersign.core.access.account import lock_grants
from countersign.core.access.audit import AuditAction
from countersign.core.access.sessions import FRESH, session_at
from countersign.staff.people import sql
from countersign.staff.people.model import (
    CLOCKS_APART,
    LinkRow,
    Named,
    ProviderFailed,
    ProviderRefusal,
    ProviderUse,
    SignedIn,
)
from countersign.staff.people.room import People
from countersign.staff.people.sign_in import Begun, begin_session, find_link
from countersign_evidence.disclosure import b64url

FLOW_LASTS: Final = timedelta(minutes=10)
_FLOW_LENGTH_MAX: Final = 64
_b: Final = person_subjects.c
_log: Final = structlog.get_logger("countersign.people")


class _Flow(NamedTuple):
    """A flow that is read, with the link or the session that it is for."""

    text: str
    began_at: datetime
    use: ProviderUse
    bound: bytes
    link: LinkRow | None

    def value(self, room: People, name: str) -> str:
        return b64url(room.access.secret.page_code(f"provider {name}", self.text, self.bound))


_ASKED: Final = {ProviderUse.AGAIN: {"prompt": "login", "max_age": "0"}}


async def sign_out(room: People) -> str | ProviderRefusal | None:
    """Where the browser signs out of the provider; or why not. None: there is no provider."""
    try:
        return await room.provider.sign_out() if room.provider else None
    except ProviderFailed as failed:
        return _noted(failed)


async def begin(
    room: People, use: str, *, session: str = "", link: str = "", is_other: bool = False
) -> tuple[str, str] | ProviderRefusal:
    """The redirect for the browser, and the flow that it keeps; or the reason for a refusal.

    `is_other`: the provider lets the person choose another account.
    """
    began = to_ms(from_ns(room.access.clock.time_ns()))
    text = f"{began}.{b64url(room.access.entropy(16))}.{use}"
    flow = await _read(room, text, session, link)
    if isinstance(flow, ProviderRefusal):
        return flow
    if room.provider is None:
        return ProviderRefusal.UNAVAILABLE
    try:
        address = await room.provider.address(
            state=flow.value(room, "state"),
            nonce=flow.value(room, "nonce"),
            verifier=flow.value(room, "verifier"),
            **_ASKED.get(flow.use, {"prompt": "select_account"} if is_other else {}),
        )
    except ProviderFailed as failed:
        return _noted(failed)
    return address, text


async def finish(
    room: People,
    text: str,
    response: Mapping[str, str],
    *,
    session: str = "",
    link: str = "",
    address: str = "",
) -> SignedIn | ProviderRefusal | None:
    """Complete a flow, with the parameters that the browser brought back.

    A new session; None: the earlier session is fresh now; or the reason for a refusal. A flow asks
    the provider once. `address` is the browser's IP address, if known.
    """
    flow = await _read(room, text, session, link)
    if isinstance(flow, ProviderRefusal):
        return flow
    state = flow.value(room, "state")
    if room.provider is None or not compare_digest(
        state.encode(), response.get("state", "").encode()
    ):
        return ProviderRefusal.REFUSED
    refusal = room.provider.count(text, address)
    if refusal is not None:
        return refusal
    try:
        who = await room.provider.subject(
            response, nonce=flow.value(room, "nonce"), verifier=flow.value(room, "verifier")
        )
    except ProviderFailed as failed:
        return _noted(failed)
    lookup = room.access.secret.blind_index("person", "subject", f"{who.issuer}\n{who.subject}")
    now = from_ns(room.access.clock.time_ns())
    back = _Return(room=room, flow=flow, who=who, lookup=lookup, now=now)
    return await room.access.database.write(back)


def _noted(failed: ProviderFailed) -> ProviderRefusal:
    _log.warning("provider_failed", step=failed.step, kind=failed.kind)
    return failed.why


async def _read(room: People, text: str, session: str, link: str) -> _Flow | ProviderRefusal:
    began, use = digits(text.partition(".")[0], _FLOW_LENGTH_MAX), text.rpartition(".")[2]
    if began is None or len(text) > _FLOW_LENGTH_MAX or use not in set(ProviderUse):
        return ProviderRefusal.REFUSED
    now = to_ms(from_ns(room.access.clock.time_ns()))
    if not 0 <= now - began <= FLOW_LASTS // timedelta(milliseconds=1):
        return ProviderRefusal.REFUSED
    found, bound = None, b""
    if use == ProviderUse.LINK:
        found = await find_link(room, link)
        if found is None:
            return ProviderRefusal.LINK
        bound = found.digest
    elif use == ProviderUse.AGAIN:
        bound = room.access.sessions.digest(session.encode()) or b""
    return _Flow(text, from_ms(began), ProviderUse(use), bound, found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Return:
    """The person who returned from the provider."""

    room: People
    flow: _Flow
    who: Named
    lookup: bytes
    now: datetime

    def __call__(self, connection: Connection) -> SignedIn | ProviderRefusal | None:
        """Complete the flow."""
        link = self.flow.link
        if link is not None:
            # Serialises two people who connect the same provider account.
            lock_grants(connection)
        query = select(_b.person_id).where(_b.lookup == self.lookup)
        person_id = connection.execute(query).scalar_one_or_none()
        if link is not None:
            is_taken = person_id not in {None, link.person_id}
            return ProviderRefusal.TAKEN if is_taken else self._come_in(connection, link)
        if person_id is None or not sql.places_of(connection, person_id):
            return ProviderRefusal.UNKNOWN
        if self.flow.use is ProviderUse.AGAIN:
            return self._freshen(connection, person_id)
        if not self._use(connection, person_id):
            return ProviderRefusal.UNKNOWN
        return self._begin(connection, person_id, AuditAction.PERSON_SIGNED_IN)

    def _come_in(self, connection: Connection, link: LinkRow) -> SignedIn | ProviderRefusal:
        if not sql.take_link(connection, link, self.now):
            return ProviderRefusal.LINK
        sql.lock_out(connection, link.person_id)
        times = dict.fromkeys(("created_at", "last_used_at"), self.now)
        row = {"person_id": link.person_id, "lookup": self.lookup, **times}
        connection.execute(insert(person_subjects), row)
        return self._begin(connection, link.person_id, AuditAction.PERSON_CAME_IN)

    def _freshen(self, connection: Connection, person_id: str) -> ProviderRefusal | None:
        own = session_at(connection, self.flow.bound, self.now)
        if own is None or own.person_id != person_id:
            return ProviderRefusal.UNKNOWN
        if self.who.at is None or self.who.at < self.flow.began_at - CLOCKS_APART:
            return ProviderRefusal.NOT_NOW
        if not self._use(connection, person_id):
            return ProviderRefusal.UNKNOWN
        one = update(person_sessions).where(person_sessions.c.id == own.id)
        connection.execute(one.values(passkey_at=self.now, last_used_at=self.now))
        return None

    def _use(self, connection: Connection, person_id: str) -> bool:
        """Note a use; False: the person was removed meanwhile, or uses another way in."""
        own = update(person_subjects).where(_b.person_id == person_id, _b.lookup == self.lookup)
        return connection.execute(own.values(last_used_at=self.now)).rowcount == 1

    def _begin(self, connection: Connection, person_id: str, action: AuditAction) -> SignedIn:
        """A session as fresh as the provider's `auth_time`; without one, not fresh."""
        at = self.now - FRESH if self.who.at is None else min(self.now, self.who.at)
        begun = Begun(person_id=person_id, action=action, at=self.now, authenticated_at=at)
        return begin_session(connection, self.room, begun, provider=self.who.issuer)
