"""`/buyer`: what is remembered of a buyer, its uses, and how to remove it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hmac import compare_digest
from typing import Any, Final

from msgspec.structs import asdict
from sqlalchemy import Connection

from countersign.base.errors import OriginNotAllowed
from countersign.base.http.body import DOOR_BYTES_MAX
from countersign.base.passkeys import TIMEOUT_MS, assertion_options
from countersign.base.values import Mode, from_ms, from_ns, to_ms
from countersign.core.access.audit import AuditAction, AuditEntry, write_audit
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.buyers.sql import buyers_by_cbid
from countersign.core.checkout.brand import brand_of
from countersign.core.gate.route import Call, Header, Reply, Route, grouped
from countersign.core.privacy.export import all_about, packed
from countersign.core.privacy.person_sql import identifiers_of
from countersign.core.privacy.requests import request_erasure
from countersign.core.privacy.room import Privacy
from countersign.hosted import remembered
from countersign.hosted.pages.cookies import (
    REMEMBERED,
    cookie,
    cookie_header,
    refuse_foreign,
    removed_cookies,
)
from countersign.hosted.pages.page import saved_file
from countersign.hosted.pages.remembered_page import asked_ms
from countersign.hosted.pages.room import HostedPages
from countersign.hosted.pages.visits import chosen_locale
from countersign.hosted.remembered import KnownBy, NotKnown, Use, assert_passkey, by_cookie
from countersign.hosted.toolkit.screens import (
    lead,
    preferred,
    read_door,
    read_form,
    read_query,
    screen,
    words_of,
)
from countersign_evidence.disclosure import b64url
from countersign_evidence.process import Binding


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfService:
    """A buyer's own access to stored data, without a vendor."""

    checkout: HostedPages
    privacy: Privacy


SIGNED_IN: Final = timedelta(minutes=15)
FRESH: Final = timedelta(minutes=5)
"""How long after signing in a buyer may erase everything, which cannot be undone, or export it."""
_EXPORTS_MAX: Final = 3
"""Of one buyer, a day."""
_COOKIE: Final = "buyer"
"""One cookie for both modes, with the attributes of live mode."""
_VISIT_BYTES: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class BuyerVisit:
    """A request of a browser, and the buyer who sends it."""

    room: SelfService
    call: Call
    now: datetime
    locale: str
    token: str
    """Identifies this browser for a while: forms and challenges are bound to it."""
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
    def is_proved(self) -> bool:
        """Whether a passkey was used just now, or a new identity check left the cookie."""
        since = self.signed_in_at or (self.known.created_at if self.known else None)
        return since is not None and self.now < since + FRESH

    @property
    def csrf(self) -> str:
        return self._code("form")

    def challenge(self, asked_at: datetime) -> bytes:
        """The challenge for a passkey, bound to this browser and time."""
        return self._made(f"challenge {to_ms(asked_at)}")

    def header(self, known: KnownBy | None = None) -> Header:
        """The cookie of this visit, which contains the sign-in by passkey."""
        value = self.token
        if known is not None:
            ms = to_ms(self.now)
            value += f".{known.id}.{ms}.{self._code(f'who {known.id} {ms}')}"
        return cookie_header(self.room.checkout, _COOKIE, Mode.LIVE, value, SIGNED_IN)

    def renewed(self) -> BuyerVisit:
        """The same visit with a new token, so that the earlier one signs no one in."""
        return replace(self, token=b64url(self.room.checkout.access.entropy(_VISIT_BYTES)))

    def says(self, what: str) -> str:
        """A message for the next page, which only this service can set in this browser."""
        return f"{what}.{self._code(f'says {what}')}"

    @property
    def said(self) -> str:
        """The message for this page; "" unless `says` made it."""
        what, _, sent = self.form.get("says", "").partition(".")
        return what if self.is_code(f"says {what}", sent) else ""

    def is_code(self, use: str, sent: str) -> bool:
        """Whether only this service can have made it, for this use in this browser."""
        return compare_digest(self._code(use).encode(), sent.encode())

    def _code(self, use: str) -> str:
        return b64url(self._made(use))

    def _made(self, use: str) -> bytes:
        secret = self.room.checkout.access.secret
        return secret.page_code(f"buyer {use}", self.token, b"")


async def visit_of(room: SelfService, call: Call) -> BuyerVisit:
    """The visit of a browser."""
    access = room.checkout.access
    form = read_query(call)
    token, *who = cookie(room.checkout, call, _COOKIE, Mode.LIVE).split(".")
    if len(token) != len(b64url(bytes(_VISIT_BYTES))) or not token.isascii():
        token, who = b64url(access.entropy(_VISIT_BYTES)), []
    visit = BuyerVisit(
        room=room,
        call=call,
        now=from_ns(access.clock.time_ns()),
        locale=chosen_locale(preferred(call.headers.get(b"accept-language", b"")), form),
        token=token,
        known=None,
        form=form,
    )
    known = await _signed_in(visit, who)
    if known is not None:
        return replace(visit, known=known, signed_in_at=from_ms(int(who[1])))
    return replace(visit, known=await _remembered(visit))


async def _signed_in(visit: BuyerVisit, who: list[str]) -> KnownBy | None:
    """The buyer who signed in a while ago, by a cookie with a code of this service."""
    if len(who) != 3 or not visit.is_code(f"who {who[0]} {who[1]}", who[2]):
        return None
    since = from_ms(int(who[1]))
    if visit.now >= since + SIGNED_IN:
        return None
    database = visit.room.checkout.access.database
    return await database.read(remembered.signed_in, who[0], since, visit.now)


async def _remembered(visit: BuyerVisit) -> KnownBy | None:
    checkout = visit.room.checkout
    for mode in (Mode.LIVE, Mode.TEST):
        value = cookie(checkout, visit.call, REMEMBERED, mode)
        if value and (known := await by_cookie(checkout.remembered, mode, value)):
            return known
    return None


def is_partial(known: KnownBy, kept: list[KnownBy]) -> bool:
    """Whether this buyer has to sign in by passkey to see more than this browser's cookie."""
    return known.kind is Binding.COOKIE and any(one.kind is Binding.PASSKEY for one in kept)


_UNSURE: Final = "unsure"


async def get_page(room: SelfService, call: Call) -> Reply:
    """The visitor's data, or the sign-in form."""
    return await _page(await visit_of(room, call))


async def sign_in(room: SelfService, call: Call) -> Reply:
    """The form by which a buyer signs in."""
    refuse_foreign(room.checkout, call)
    visit = await visit_of(room, call)
    return await _sign_in(_with(visit, await read_door(room.checkout, call)))


async def post_form(room: SelfService, call: Call) -> Reply:
    """The form of a signed-in buyer; forms of others are not read."""
    refuse_foreign(room.checkout, call)
    visit = await visit_of(room, call)
    known = visit.known
    if known is None:
        return _lead(visit)
    visit = _with(visit, await read_form(call, DOOR_BYTES_MAX, (known.id,)))
    act = _ACTS.get(visit.form.get("act", ""))
    return _lead(visit) if act is None else await act(visit, known)


def _with(visit: BuyerVisit, form: Mapping[str, str]) -> BuyerVisit:
    """The visit with the form that it sends, from the browser that the page was served to."""
    if not visit.is_code("form", form.get("csrf", "")):
        raise OriginNotAllowed
    return replace(visit, form=form, locale=chosen_locale(visit.locale, form))


async def _page(visit: BuyerVisit) -> Reply:
    room, known, party = visit.room.checkout, visit.known, visit.room.checkout.remembered.party
    kept, uses = list[KnownBy](), list[dict[str, Any]]()
    exports: Sequence[datetime] = ()
    if known is not None:
        kept, uses, exports = await room.access.database.read(_all_of, known.cbid, visit.now)
    partial = known is not None and is_partial(known, kept)
    if known is not None and partial:
        kept, uses = [one for one in kept if one.id == known.id], []
    options = None
    if party is not None and (known is None or partial or visit.is_stale):
        options = json.dumps(assertion_options(party, visit.challenge(visit.now)))
    return screen(
        "remembered_buyer.html",
        visit.locale,
        None,
        headers=() if visit.signed_in_at else (visit.header(),),
        scripts=("remembered.js",),
        here="/buyer",
        csrf=visit.csrf,
        asked=to_ms(visit.now),
        options=options,
        known=known,
        partial=partial,
        kept=kept,
        uses=uses,
        exports=exports,
        unsure=visit.said == _UNSURE,
        stale=visit.is_stale,
        proved=visit.is_proved,
        signed_in=visit.signed_in_at is not None,
        test_mode=known is not None and known.mode is Mode.TEST,
        says=words_of(visit.locale).get(f"remembered_says_{visit.said}"),
    )


def _all_of(
    connection: Connection, cbid: str, now: datetime
) -> tuple[list[KnownBy], list[dict[str, Any]], Sequence[datetime]]:
    cbids = identifiers_of(connection, cbid)
    uses: Sequence[Use] = remembered.uses_of(connection, cbids, 200)
    names = {id_: brand_of(connection, id_).name for id_ in {use.account_id for use in uses}}
    shown = [{**asdict(use), "vendor": names[use.account_id]} for use in uses]
    exports = remembered.exports_of(connection, cbids)
    return remembered.all_of(connection, cbids, now), shown, exports


async def _sign_in(visit: BuyerVisit) -> Reply:
    """Sign in with a passkey, over a challenge made for this browser minutes ago."""
    asked_at = from_ms(asked_ms(visit.form))
    if not 0 <= (visit.now - asked_at).total_seconds() * 1000 <= TIMEOUT_MS:
        return _lead(visit, "refused")
    known = await assert_passkey(
        visit.room.checkout.remembered,
        None,
        visit.challenge(asked_at),
        visit.form.get("credential", ""),
        asked_at,
    )
    if isinstance(known, NotKnown):
        return _lead(visit, known.value)
    return _lead(visit, "", visit.renewed().header(known))


async def _sign_out(visit: BuyerVisit, known: KnownBy) -> Reply:
    """Sign out here, and on the server: a copy of the cookie is worth nothing any more."""
    if visit.signed_in_at is not None:
        database = visit.room.checkout.access.database
        # This server's clock may be behind that of the server that signed the buyer in.
        ended = max(visit.now, visit.signed_in_at)
        await database.write(remembered.sign_out, known.id, ended)
    return _lead(visit, "signed_out", visit.header())


async def _remove(visit: BuyerVisit, known: KnownBy) -> Reply:
    """Delete a passkey or cookie of the buyer."""
    database = visit.room.checkout.access.database
    kept, *_ = await database.read(_all_of, known.cbid, visit.now)
    wanted = visit.form.get("id", "")
    if wanted != known.id and is_partial(known, kept):
        return _lead(visit)
    await database.write(lambda c: remembered.remove(c, identifiers_of(c, known.cbid), wanted))
    gone = [one for one in kept if one.id == wanted]
    headers = [h for one in gone for h in removed_cookies(visit.room.checkout, one.mode)]
    return _lead(visit, "removed" if gone else "", *headers)


async def _erase(visit: BuyerVisit, known: KnownBy) -> Reply:
    """Erase all data of the buyer, if the buyer ticked "I am sure"."""
    room = visit.room
    kept, *_ = await room.checkout.access.database.read(_all_of, known.cbid, visit.now)
    if is_partial(known, kept) or visit.is_stale:
        return _lead(visit)
    if visit.form.get("sure") != "yes":
        return _lead(visit, _UNSURE)
    came_of_it = await request_erasure(room.privacy, known.cbid)
    gone = removed_cookies(room.checkout, known.mode)
    return _lead(visit, came_of_it.value, visit.header(), *gone)


async def _export(visit: BuyerVisit, known: KnownBy) -> Reply:
    """All that is stored about the buyer, in a file; the audit has it by the passkey or cookie."""
    access = visit.room.checkout.access
    if not visit.is_proved:
        return _lead(visit)
    entry = access.audit.entry(AuditAction.SUBJECT_EXPORTED, known.id, by="buyer")
    if not await access.database.write(_note_export, known, entry):
        return _lead(visit, "enough")
    found = await all_about(visit.room.privacy, known.cbid, DEPLOYMENT)
    return saved_file(await packed(found, visit.locale), b"application/zip", "countersign.zip")


def _note_export(connection: Connection, known: KnownBy, entry: AuditEntry) -> bool:
    """Note an export, unless the buyer had those of a day."""
    buyers_by_cbid(connection, [known.cbid], to_change=True)  # one at a time
    had = remembered.exports_of(connection, identifiers_of(connection, known.cbid))
    if len([at for at in had if at > entry.at - timedelta(days=1)]) >= _EXPORTS_MAX:
        return False
    remembered.note_export(connection, known, entry.id, entry.at)
    write_audit(connection, entry)
    return True


def _lead(visit: BuyerVisit, says: str = "", *headers: tuple[bytes, bytes]) -> Reply:
    query = f"?lang={visit.locale}" + (f"&says={visit.says(says)}" if says else "")
    return lead(f"/buyer{query}", *headers)


_ACTS: Final = {"sign_out": _sign_out, "remove": _remove, "erase": _erase, "export": _export}
"""The acts of a signed-in buyer, as forms name them."""

ROUTES: Final[tuple[Route[Any], ...]] = grouped(
    "",
    SelfService,
    Route(address="GET /buyer", handler=get_page),
    Route(address="POST /buyer", handler=post_form, raw_body_max=DOOR_BYTES_MAX),
    Route(address="POST /buyer/sign-in", handler=sign_in, raw_body_max=DOOR_BYTES_MAX),
)
