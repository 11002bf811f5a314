"""Finds the page of a request: sessions, codes of forms, errors.

Addresses below /console are `sign-in`, `link`, `provider`, `sessions`, and
`{account}/{mode}/{page}`, with `/{parameter}` and `/{action}` where there are some; `all` stands
for account and mode on pages of the whole service, and `-` for the parameter of an act without an
item. No address contains a personal value.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from countersign.server.console_host import ROOT, SESSION, Host, PageReply, PageRequest
from countersign_console import provider, sessions, sign_in
from countersign_console.menu import DEPLOYMENT, Place
from countersign_console.pages import PAGES, SCOPES
from countersign_console.view import WORDS, keep_locale, lead, locale_of
from countersign_console.visit import Refused, Visit

_MODES: Final = frozenset({"test", "live"})
_NO_ITEM: Final = "-"
_OWN: Final = {"passkey": sign_in.freshen, "sessions": sessions.answer}
"""Pages about the person alone."""
_SIGN_IN_AGAIN: Final = 401


def open_console(host: Host) -> Console:
    """The factory that the entry point names."""
    return Console(host)


class Console:
    """Every page of the console."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def __call__(self, request: PageRequest) -> PageReply:
        """The response to a request below /console."""
        return keep_locale(self._host, request, await self._answer(request))

    async def _answer(self, request: PageRequest) -> PageReply:
        locale = locale_of(self._host, request)
        if sign_in.is_door(request.path):
            return await sign_in.answer(self._host, request, locale)
        if provider.is_provider(self._host, request.path):
            return await provider.answer(self._host, request, locale)
        session = request.cookies.get(self._host.cookie_name(SESSION), "")
        person = await sign_in.who(self._host, session) if session else None
        if person is None:
            return lead(f"{ROOT}/sign-in")
        visit = Visit(
            host=self._host,
            request=request,
            session=session,
            person=person,
            locale=locale,
            pages=SCOPES,
            place=Place(),
        )
        if request.method == "POST" and not self._host.is_form(
            session, request.form.get("code", "")
        ):
            return visit.failed(403, WORDS[locale]["old_form"])
        return await self._page(visit)

    async def _page(self, visit: Visit) -> PageReply:
        match visit.request.path.split("/"):
            case ["sign-out"] if visit.request.method == "POST":
                return await sign_in.sign_out(visit)
            case [own] if own in _OWN:
                return await _OWN[own](visit)
            case [""]:
                return visit.first()
            case [place, page, *rest] if place == DEPLOYMENT and len(rest) <= 2:
                return await self._at(visit, page, rest)
            case [account, mode, page, *rest] if mode in _MODES and len(rest) <= 2:
                name = await sign_in.name_of(visit, account)
                if name is not None:
                    here = Place(account_id=account, name=name, mode=mode)
                    return await self._at(visit.of(here), page, rest)
        return visit.failed(404, visit.words["no_such_page"])

    async def _at(self, visit: Visit, name: str, rest: list[str]) -> PageReply:
        page = PAGES.get((visit.place.is_deployment, name))
        parameter, action = (*rest, "", "")[:2]
        if page is None:
            return visit.failed(404, visit.words["no_such_page"])
        own = replace(visit, parameter="" if parameter == _NO_ITEM else parameter)
        try:
            if visit.request.method == "POST":
                return await page.do(own, action)
            return await (page.show_item(own) if own.parameter else page.show(own))
        except Refused as refused:
            if refused.status == _SIGN_IN_AGAIN:
                return lead(f"{ROOT}/sign-in")
            return own.failed(refused.status, refused.message)
