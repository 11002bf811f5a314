"""A visit of `/buyer`: who it is, by a passkey used minutes ago or by the cookie of the browser."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hmac import compare_digest
from typing import Final
from urllib.parse import parse_qs

from countersign.base.errors import InvalidRequest
from countersign.base.values import Mode, from_ms, from_ns, to_ms
from countersign.core.gate.route import Call, Header
from countersign.hosted.pages.remembered_cookies import (
    REMEMBERED,
    cookie,
    cookie_header,
)
from countersign.hosted.remembered import sql
from countersign.hosted.remembered.cookies import by_cookie
from countersign.hosted.remembered.model import Kind, KnownBy
from countersign.hosted.self_service.room import SelfService
from countersign.hosted.toolkit.forms import FIELDS_MAX
from countersign.hosted.toolkit.screens import preferred
from countersign.hosted.toolkit.words import LOCALES
from countersign_evidence.disclosure import b64url

SIGNED_IN: Final = timedelta(minutes=15)
FRESH: Final = timedelta(minutes=5)
"""How long after signing in a buyer may erase everything: it cannot be undone."""
_COOKIE: Final = "buyer"
"""One for both modes, as that of the live one."""
_VISIT_BYTES: Final = 16
_MS_DIGITS_MAX: Final = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class BuyerVisit:
    """A request of a browser, and whom it is from."""

    room: SelfService
    call: Call
    now: datetime
    locale: str
    token: str
    """Of this browser, for a while: forms and challenges belong to it."""
    known: KnownBy | None
    """The sign-in of the buyer; None: no one is signed in."""
    signed_in_at: datetime | None = None
    """When a passkey was used, if that is minutes ago."""
    form: Mapping[str, str]

    @property
    def is_stale(self) -> bool:
        """Whether the passkey was used too long ago to erase everything."""
        return self.signed_in_at is not None and self.now >= self.signed_in_at + FRESH

    @property
    def csrf(self) -> str:
        return self._code("form")

    def challenge(self, asked_at: datetime) -> bytes:
        """The challenge for a passkey, bound to this browser and time."""
        return self._made(f"challenge {to_ms(asked_at)}")

    def header(self, known: KnownBy | None = None) -> Header:
        """The cookie of this visit, which says who is signed in by a passkey."""
        value = self.token
        if known is not None:
            ms = to_ms(self.now)
            value += f".{known.id}.{ms}.{self._code(f'who {known.id} {ms}')}"
        return cookie_header(self.room.checkout, _COOKIE, Mode.LIVE, value, SIGNED_IN)

    def renewed(self) -> BuyerVisit:
        """The same visit with a new token: an earlier one signs no one in."""
        entropy = self.room.checkout.access.entropy(_VISIT_BYTES)
        return replace(self, token=b64url(entropy))

    def says(self, what: str) -> str:
        """A message for the next page, which only this service can set in this browser."""
        return f"{what}.{self._code(f'says {what}')}"

    @property
    def said(self) -> str:
        """The message for this page; "" unless `says` made it."""
        sent = self.form.get("says", "")
        what = sent.partition(".")[0]
        return what if compare_digest(self.says(what).encode(), sent.encode()) else ""

    def is_form(self, sent: str) -> bool:
        return compare_digest(self.csrf.encode(), sent.encode())

    def has_signed_in(self, id_: str, ms: str, sent: str) -> bool:
        """Whether the cookie says truly that this one signed in a while ago."""
        return (
            ms.isdecimal()
            and len(ms) <= _MS_DIGITS_MAX
            and compare_digest(self._code(f"who {id_} {ms}").encode(), sent.encode())
            and self.now < from_ms(int(ms)) + SIGNED_IN
        )

    def _code(self, use: str) -> str:
        return b64url(self._made(use))

    def _made(self, use: str) -> bytes:
        secret = self.room.checkout.access.secret
        return secret.page_code(f"buyer {use}", self.token, b"")


async def visit_of(room: SelfService, call: Call) -> BuyerVisit:
    """The visit of a browser."""
    access = room.checkout.access
    try:
        query = parse_qs(call.query_string.decode("latin-1"), max_num_fields=FIELDS_MAX)
    except ValueError:
        raise InvalidRequest("The query string is not well formed.") from None
    form = {name: values[0] for name, values in query.items()}
    token, *who = cookie(room.checkout, call, _COOKIE, Mode.LIVE).split(".")
    if len(token) != len(b64url(bytes(_VISIT_BYTES))) or not token.isascii():
        token, who = b64url(access.entropy(_VISIT_BYTES)), []
    visit = BuyerVisit(
        room=room,
        call=call,
        now=from_ns(access.clock.time_ns()),
        locale=_locale(call, form),
        token=token,
        known=None,
        form=form,
    )
    known = await _signed_in(visit, who)
    if known is not None:
        return replace(visit, known=known, signed_in_at=from_ms(int(who[1])))
    return replace(visit, known=await _remembered(visit))


async def _signed_in(visit: BuyerVisit, who: list[str]) -> KnownBy | None:
    if len(who) != 3 or not visit.has_signed_in(*who):
        return None
    since = from_ms(int(who[1]))
    database = visit.room.checkout.access.database
    return await database.read(sql.signed_in, who[0], since, visit.now)


async def _remembered(visit: BuyerVisit) -> KnownBy | None:
    checkout = visit.room.checkout
    for mode in (Mode.LIVE, Mode.TEST):
        value = cookie(checkout, visit.call, REMEMBERED, mode)
        if value and (known := await by_cookie(checkout.remembered, mode, value)):
            return known
    return None


def is_partial(known: KnownBy, kept: list[KnownBy]) -> bool:
    """Whether this buyer has to sign in by passkey to see more than this browser's cookie."""
    return known.kind is Kind.COOKIE and any(one.kind is Kind.PASSKEY for one in kept)


def _locale(call: Call, form: Mapping[str, str]) -> str:
    wanted = form.get("lang", "")
    if wanted in LOCALES:
        return wanted
    return preferred(call.headers.get(b"accept-language", b""))
