"""Finds the page of a request: sessions, codes of forms, errors.

Addresses below /console are `sign-in`, `link`, `provider`, `sessions`, and
`{account}/{mode}/{page}`, with `/{parameter}` and `/{action}` where there are some; `all` stands
for account and mode on pages of the whole service, and `-` for the parameter of an act without an
item. No address contains a personal value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from countersign.server.console_host import SESSION, Host, PageReply, PageRequest
from countersign_console import provider, sessions, sign_in
from countersign_console.acts import Page
from countersign_console.menu import DEPLOYMENT, Place, Signed
from countersign_console.pages import PAGES, SCOPES
from countersign_console.view import keep_locale, lead, locale_of
from countersign_console.visit import MODES, NO_ITEM, Refused, Visit, to_sign_in, way_back

_SIGN_OUT: Final = "sign-out"
_OWN: Final = {"passkey": sign_in.freshen, "sessions": sessions.answer}
"""Pages about the person alone."""
_SIGN_IN_AGAIN: Final = 401
_REST: Final = 2
"""Parts of an address after the page: a parameter and an action."""


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
        visit = _placed(
            Visit(
                host=self._host,
                request=request,
                session=session,
                person=person or Signed(id=await self._host.owner(session) or ""),
                locale=locale,
                pages=SCOPES,
                place=Place(),
            )
        )
        is_out = request.method == "POST" and request.path == _SIGN_OUT
        if is_out and (person is None or visit.is_own_form):
            return await sign_in.sign_out(self._host, session)
        if person is not None:
            try:
                return await self._page(visit)
            except Refused as refused:
                return _refused(visit.of(Place()), refused)
        back = visit.address
        if request.method == "POST":
            own = way_back(visit.form.get("back", request.path))
            back = visit.at(visit.here) if visit.page else own
            page = PAGES.get((visit.place.is_deployment, visit.page))
            if visit.person.id and page and visit.is_own_form:
                back = await _unsent(page, visit, visit.words["session_over"])
        return lead(to_sign_in(back))

    async def _page(self, visit: Visit) -> PageReply:
        path, is_sent = visit.request.path, visit.request.method == "POST"
        if path in {"", _SIGN_OUT, *_OWN}:
            return await self._own(visit, path, is_sent=is_sent)
        page = PAGES.get((visit.place.is_deployment, visit.page))
        if account := visit.place.account_id:
            name = await sign_in.name_of(visit, account)
            page = page if name is not None else None
            visit = visit.of(Place() if name is None else replace(visit.place, name=name))
        if is_sent:
            return lead(await _press(page, visit) if page else way_back(path))
        if page is None:
            return visit.failed(404, visit.words["no_such_page"])
        return await _show(page, await visit.with_kept())

    @staticmethod
    async def _own(visit: Visit, path: str, *, is_sent: bool) -> PageReply:
        if is_sent and not visit.is_own_form:
            return lead(way_back(path if path in _OWN else "sessions", problem="old_form"))
        if path in _OWN:
            return await _OWN[path](visit)
        return await visit.first()


def _placed(visit: Visit) -> Visit:
    """The visit at the place and page that its address names, if it names one."""
    match visit.request.path.split("/"):
        case [place, page, *rest] if place == DEPLOYMENT and len(rest) <= _REST:
            here = Place()
        case [account, mode, page, *rest] if mode in MODES and len(rest) <= _REST:
            here = Place(account_id=account, mode=mode)
        case _:
            return visit
    parameter, action = (*rest, "", "")[:_REST]
    item, known = "" if parameter == NO_ITEM else parameter, PAGES.get((here.is_deployment, page))
    act = known.act(action, of_item=bool(item)) if known else None
    is_act = act is not None and not act.hidden
    return replace(visit, place=here, page=page, parameter=item, action=action, is_act=is_act)


async def _press(page: Page, visit: Visit) -> str:
    """The redirect of a form, which is never answered with a page."""
    if not visit.is_own_form:
        return await _unsent(page, visit, visit.words["old_form"], 403)
    if visit.action in page.looks:
        return await visit.keep(visit.action)
    try:
        return await page.do(visit, visit.action)
    except Refused as refused:
        if refused.needs_passkey:
            return visit.passkey_first(await _unsent(page, visit))
        if refused.status == _SIGN_IN_AGAIN:
            return to_sign_in(await _unsent(page, visit, visit.words["session_over"]))
        return await _unsent(page, visit, refused.message, refused.status, refused.errors)


async def _unsent(
    page: Page,
    visit: Visit,
    problem: str = "",
    status: int = 200,
    errors: Mapping[str, str] | None = None,
) -> str:
    """The address of the form with what was typed, which is not sent again by itself."""
    action, act = visit.action, page.act(visit.action, of_item=bool(visit.parameter))
    asked = {"sure", *(one.name for one in act.fields)} if act and visit.is_act else set()
    is_known = asked.__contains__ if act is None or act.asks is None else bool
    wrong = {name: text for name, text in (errors or {}).items() if is_known(name)}
    problem = problem or " ".join((errors or {}).values())
    action = "" if action in page.looks else action
    return await visit.keep(action, problem=problem, status=status, errors=wrong)


async def _show(page: Page, visit: Visit) -> PageReply:
    act = page.act(visit.action, of_item=bool(visit.parameter)) if visit.is_act else None
    try:
        if act is not None:
            return await page.show_act(visit, act)
        return await (page.show_item(visit) if visit.parameter else page.show(visit))
    except Refused as refused:
        if refused.status == _SIGN_IN_AGAIN or not visit.kept.action:
            return _refused(visit, refused)
        found = replace(visit.kept, action="", problem=refused.message, status=refused.status)
        return await _show(page, replace(visit, kept=found))


def _refused(visit: Visit, refused: Refused) -> PageReply:
    """A refusal of the API as a page."""
    if refused.status == _SIGN_IN_AGAIN:
        return lead(to_sign_in(visit.address))
    return visit.failed(refused.status, refused.message)
