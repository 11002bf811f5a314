"""The doors: a link that lets a person in, signing in with a passkey, using it again, and out.

The way over a provider of OpenID Connect begins on the same pages: see `provider`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

from countersign.server.console_host import ROOT, SESSION, Host, PageReply, PageRequest
from countersign_console.menu import Place, Signed
from countersign_console.view import WORDS, lead, render
from countersign_console.visit import NOT_FOUND, Refused, Visit, problem_of, way_back

LINK: Final = "link"
"""The cookie that keeps the token of a link while the browser is at the provider."""
_STATE: Final = "state"
_SIGNED_OUT: Final = "signed_out"
_LINK_PAGE: Final = "link"
_DOORS: Final = frozenset({"sign-in", "link"})
_STATE_SECONDS: Final = 600
_OPENED: Final = "opened"
"""The parameter of the page of a link whose token is in the cookie."""
_PASSKEY_REFUSED: Final = "passkey_refused"
_LINK_REFUSED: Final = "link_refused"
_IN_NUMBERS: Final = "127.0.0.1"
_BY_NAME: Final = "http://localhost"
"""The same machine: browsers allow passkeys there, and not at an address in numbers."""


def is_door(path: str) -> bool:
    """Whether the page is for people who are not signed in."""
    return path in _DOORS


async def who(host: Host, session: str) -> Signed | None:
    """The person with this session, and the accounts that the person may see."""
    found = await host.who(session)
    if found is None:
        return None
    roles = {place.account_id or "": str(place.role) for place in found.places}
    accounts = {p.account_id: p.account_name or "" for p in found.places if p.account_id}
    if "" in roles:
        listed = await host.call("GET", "/v1/accounts", session=session, query={"limit": "100"})
        if listed.ok:
            accounts |= {one["account_id"]: one["name"] for one in listed.data["data"]}
    return Signed(
        id=found.id,
        name=found.name,
        roles=roles,
        scopes={where: host.scopes(role, staff=not where) for where, role in roles.items()},
        acts={
            where: host.scopes(role, staff=not where, acts=True) for where, role in roles.items()
        },
        accounts=dict(sorted(accounts.items(), key=lambda item: item[1].casefold())),
        is_fresh=found.is_fresh,
    )


async def name_of(visit: Visit, account_id: str) -> str | None:
    """The name of an account that the person may see; None: there is none.

    Of many accounts the menu has only the first.
    """
    known = visit.person.accounts.get(account_id)
    if known is not None or "" not in visit.person.roles:
        return known
    try:
        found = await visit.of(Place()).call("GET", f"/v1/accounts/{account_id}")
    except Refused as refused:
        if refused.status == NOT_FOUND:
            return None
        raise
    return str(found["name"])


async def answer(host: Host, request: PageRequest, locale: str) -> PageReply:
    """A sign-in route: the page, or the result of its form."""
    in_numbers = request.headers.get("host", "").startswith(_IN_NUMBERS)
    if request.method == "GET" and in_numbers and host.url.startswith(_BY_NAME):
        return lead(host.url + way_back(request.path, **request.query))
    door = Door(host=host, request=request, locale=locale)
    if request.path == _LINK_PAGE:
        return await (door.use_link() if request.method == "POST" else door.link())
    return await (door.sign_in() if request.method == "POST" else door.ask())


async def sign_out(host: Host, session: str) -> PageReply:
    """End the session here and on the server, even if the API refuses calls of the person."""
    await host.sign_out(session)
    return lead(f"{ROOT}/sign-in?said={_SIGNED_OUT}", host.cookie(SESSION, "", 0))


async def freshen(visit: Visit) -> PageReply:
    """Use the passkey again, before something that cannot be undone; then back."""
    back = visit.form.get("back", visit.request.query.get("back", ""))
    if visit.request.method == "POST":
        state = visit.request.cookies.get(visit.host.cookie_name(_STATE), "")
        if await visit.host.freshen(visit.session, state, visit.form.get("credential", "")):
            return lead(way_back(back, said="passkey"))
        return lead(way_back("passkey", back=back, problem=_PASSKEY_REFUSED))
    asked = visit.host.passkey_options(visit.session)
    if asked is None and not visit.host.provider:
        return visit.failed(409, visit.words["passkey_address"])
    options, state = asked or (None, "")
    page = visit.show(
        "passkey.html",
        visit.words["passkey_title"],
        status=_status(visit.request),
        script="passkey.js",
        options=json.dumps(options) if options else "",
        back=back,
        provider=visit.host.provider,
    )
    return _with(page, visit.host.cookie(_STATE, state, _STATE_SECONDS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    host: Host
    request: PageRequest
    locale: str

    @property
    def words(self) -> Mapping[str, str]:
        return WORDS[self.locale]

    def cookie(self, name: str) -> str:
        """The cookie with this name; "" without one."""
        return self.request.cookies.get(self.host.cookie_name(name), "")

    def show(
        self,
        template: str,
        title: str,
        status: int = 200,
        script: str = "passkey.js",
        **values: object,
    ) -> PageReply:
        """A page for someone who is not signed in."""
        said = self.request.query.get("said", "")
        asked = {n: text for n, text in self.request.query.items() if n in {"back", _OPENED}}
        context: dict[str, Any] = {
            "title": self.words[title],
            "heading": self.words[title],
            "person": None,
            "place": None,
            "menu": (),
            "base": ROOT,
            "path": f"{ROOT}/{self.request.path}",
            "said": self.words.get(f"said_{said}", "") if said else "",
            "languages": f"{ROOT}/{self.request.path}?{urlencode({**asked, 'lang': ''})}",
            "problem": problem_of(self.request, self.words),
            "provider": self.host.provider,
            "is_out": said == _SIGNED_OUT,
            **values,
        }
        return render(template, self.locale, status, script, **context)

    async def ask(self) -> PageReply:
        """The page on which a person signs in, and goes on to where the person was going."""
        asked, back = self.host.passkey_options(), self.request.query.get("back", "")
        if asked is None and self.host.provider:
            return self.show("sign_in.html", "sign_in", options="", back=back)
        if asked is None:
            problem = self.words["passkey_address"]
            return self.show("sign_in.html", "sign_in", 409, options="", back=back, problem=problem)
        options, state = asked
        page = self.show(
            "sign_in.html", "sign_in", _status(self.request), options=json.dumps(options), back=back
        )
        return _with(page, self.host.cookie(_STATE, state, _STATE_SECONDS))

    async def sign_in(self) -> PageReply:
        """By the passkey: a new session, whatever the browser had before."""
        form, state = self.request.form, self.cookie(_STATE)
        signed = await self.host.sign_in(state, form.get("credential", ""))
        if signed is None:
            again = {"back": form.get("back", ""), "problem": _PASSKEY_REFUSED}
            return lead(way_back("sign-in", **again))
        return self.let_in(signed.token, form.get("back", ""))

    async def link(self) -> PageReply:
        """The page of a link: it has no token, which is after the #, or then in a cookie."""
        problem = problem_of(self.request, self.words)
        if _OPENED not in self.request.query:
            status = _status(self.request)
            return self.show("link.html", "link_title", status, says=None, options="", link="")
        link = self.cookie(LINK)
        says = await self.host.link_says(link)
        if says is None or (says.options is None and not self.host.provider):
            return lead(way_back(_LINK_PAGE, problem=_LINK_REFUSED))
        return self.show(
            "link.html",
            "link_title",
            says=says,
            until=says.expires_at.isoformat(),
            options=json.dumps(says.options) if says.options else "",
            link=link,
            problem=problem,
        )

    async def use_link(self) -> PageReply:
        """First show the purpose of the link, then sign in with a new passkey."""
        link, problem = self.request.form.get("link", ""), {}
        if credential := self.request.form.get("credential", ""):
            signed = await self.host.use_link(link, credential)
            if signed is not None:
                return self.let_in(signed.token)
            problem = {"problem": _PASSKEY_REFUSED}
        if await self.host.link_says(link) is None:
            return lead(way_back(_LINK_PAGE, problem=_LINK_REFUSED))
        kept = self.host.cookie(LINK, link, _STATE_SECONDS)
        return lead(way_back(_LINK_PAGE, **{_OPENED: "1"}, **problem), kept)

    def let_in(self, token: str, back: str = "", *used: str) -> PageReply:
        """To where the person was going, with the session; these cookies are used up."""
        gone = (self.host.cookie(name, "", 0) for name in (_STATE, LINK, *used))
        return lead(way_back(back), self.host.cookie(SESSION, token), *gone)


def _status(request: PageRequest) -> int:
    return 403 if "problem" in request.query else 200


def _with(page: PageReply, *headers: tuple[str, str]) -> PageReply:
    return replace(page, headers=[*page.headers, *headers])
