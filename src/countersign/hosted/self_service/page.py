"""`/buyer`: what is remembered of a buyer, who asked about it, and the way to remove it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from msgspec.structs import asdict
from sqlalchemy import Connection

from countersign.base.errors import OriginNotAllowed
from countersign.base.http.body import DOOR_BYTES_MAX
from countersign.base.passkeys import TIMEOUT_MS, assertion_options
from countersign.base.values import Mode, from_ms, to_ms
from countersign.core.checkout.brand import brand_of
from countersign.core.gate.route import Call, Reply, Route, grouped
from countersign.core.privacy.person_sql import identifiers_of
from countersign.core.privacy.requests import request_erasure
from countersign.hosted.pages.cookies import refuse_foreign
from countersign.hosted.pages.remembered_cookies import PASSKEY, REMEMBERED, cookie_header
from countersign.hosted.remembered import sql
from countersign.hosted.remembered.model import COOKIE_KEPT, KnownBy, NotKnown, Use
from countersign.hosted.remembered.passkeys import assert_passkey
from countersign.hosted.self_service.room import SelfService
from countersign.hosted.self_service.visits import BuyerVisit, is_partial, visit_of
from countersign.hosted.toolkit.forms import read_door, read_form
from countersign.hosted.toolkit.screens import lead, screen, words_of
from countersign.hosted.toolkit.words import LOCALES

_USES_SHOWN: Final = 200
_SCRIPTS: Final = ("remembered.js",)
_MS_DIGITS_MAX: Final = 14
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
    match visit.form.get("act"):
        case "sign_out":
            return await _sign_out(visit)
        case "remove":
            return await _remove(visit, known)
        case "erase":
            return await _erase(visit, known)
        case _:
            return _lead(visit)


def _with(visit: BuyerVisit, form: Mapping[str, str]) -> BuyerVisit:
    """The visit with the form that it sends, from the browser that the page was served to."""
    if not visit.is_form(form.get("csrf", "")):
        raise OriginNotAllowed
    locale = form["lang"] if form.get("lang") in LOCALES else visit.locale
    return replace(visit, form=form, locale=locale)


async def _page(visit: BuyerVisit) -> Reply:
    room, known, party = visit.room.checkout, visit.known, visit.room.checkout.remembered.party
    kept, uses = list[KnownBy](), list[dict[str, Any]]()
    if known is not None:
        kept, uses = await room.access.database.read(_all_of, known.cbid, visit.now)
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
        scripts=_SCRIPTS,
        here="/buyer",
        csrf=visit.csrf,
        asked=to_ms(visit.now),
        options=options,
        known=known,
        partial=partial,
        kept=kept,
        uses=uses,
        unsure=visit.said == _UNSURE,
        stale=visit.is_stale,
        signed_in=visit.signed_in_at is not None,
        test_mode=known is not None and known.mode is Mode.TEST,
        says=words_of(visit.locale).get(f"remembered_says_{visit.said}"),
    )


def _all_of(
    connection: Connection, cbid: str, now: datetime
) -> tuple[list[KnownBy], list[dict[str, Any]]]:
    cbids = identifiers_of(connection, cbid)
    uses: Sequence[Use] = sql.uses_of(connection, cbids, _USES_SHOWN)
    names = {id_: brand_of(connection, id_).name for id_ in {use.account_id for use in uses}}
    shown = [{**asdict(use), "vendor": names[use.account_id]} for use in uses]
    return sql.all_of(connection, cbids, now), shown


async def _sign_in(visit: BuyerVisit) -> Reply:
    """By a passkey, over a challenge that was made for this browser minutes ago."""
    asked = visit.form.get("asked", "")
    if not (asked.isascii() and asked.isdecimal() and len(asked) <= _MS_DIGITS_MAX):
        return _lead(visit, "refused")
    asked_at = from_ms(int(asked))
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


async def _sign_out(visit: BuyerVisit) -> Reply:
    """Sign out here, and on the server: a copy of the cookie is worth nothing any more."""
    if visit.known is not None and visit.signed_in_at is not None:
        database = visit.room.checkout.access.database
        # This server's clock may be behind that of the server that signed the buyer in.
        ended = max(visit.now, visit.signed_in_at)
        await database.write(sql.sign_out, visit.known.id, ended)
    return _lead(visit, "signed_out", visit.header())


async def _remove(visit: BuyerVisit, known: KnownBy) -> Reply:
    """Remove one of what the buyer is remembered by."""
    database = visit.room.checkout.access.database
    kept, _ = await database.read(_all_of, known.cbid, visit.now)
    wanted = visit.form.get("id", "")
    if wanted != known.id and is_partial(known, kept):
        return _lead(visit)
    await database.write(_remove_one, known.cbid, wanted)
    gone = [one for one in kept if one.id == wanted]
    headers = [header for one in gone for header in _without(visit, one)]
    return _lead(visit, "removed" if gone else "", *headers)


def _remove_one(connection: Connection, cbid: str, id_: str) -> None:
    sql.remove(connection, identifiers_of(connection, cbid), id_)


async def _erase(visit: BuyerVisit, known: KnownBy) -> Reply:
    """Erase all data of the buyer, if the buyer ticked "I am sure"."""
    room = visit.room
    kept, _ = await room.checkout.access.database.read(_all_of, known.cbid, visit.now)
    if is_partial(known, kept) or visit.is_stale:
        return _lead(visit)
    if visit.form.get("sure") != "yes":
        return _lead(visit, _UNSURE)
    came_of_it = await request_erasure(room.privacy, known.cbid)
    return _lead(visit, came_of_it.value, visit.header(), *_without(visit, known))


def _without(visit: BuyerVisit, known: KnownBy) -> list[tuple[bytes, bytes]]:
    """The headers by which this browser loses its cookies of this mode."""
    room = visit.room.checkout
    return [
        cookie_header(room, name, known.mode, "", COOKIE_KEPT) for name in (REMEMBERED, PASSKEY)
    ]


def _lead(visit: BuyerVisit, says: str = "", *headers: tuple[bytes, bytes]) -> Reply:
    query = f"?lang={visit.locale}" + (f"&says={visit.says(says)}" if says else "")
    return lead(f"/buyer{query}", *headers)


ROUTES: Final[tuple[Route[Any], ...]] = grouped(
    "",
    SelfService,
    Route(address="GET /buyer", handler=get_page),
    Route(address="POST /buyer", handler=post_form, raw_body_max=DOOR_BYTES_MAX),
    Route(address="POST /buyer/sign-in", handler=sign_in, raw_body_max=DOOR_BYTES_MAX),
)
