"""The way over a provider of OpenID Connect: there, and back by one page with one button.

A browser that comes from another site sends no `SameSite=Strict` cookie. So the provider redirects
to a page whose form, sent from here, has them; a script presses its button.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, unquote

from countersign.server.console_host import ROOT, SESSION, Host, PageReply, PageRequest
from countersign_console.sign_in import LINK, Door
from countersign_console.view import lead
from countersign_console.visit import way_back

_THERE: Final = "provider"
_BACK: Final = "provider/return"
_FLOW: Final = "provider"
_FLOW_SECONDS: Final = 600
_PAGE_LENGTH_MAX: Final = 300
_PARAMETERS: Final = ("code", "state", "iss", "error")
_UNAVAILABLE: Final = "unavailable"
_OTHERS: Final = {"unknown": "in", "taken": "link"}
"""For which refusals another account of the provider helps, and what it is for."""
_OUT, _NO_OUT = "out", "no_out"
"""Signing out of the provider, and that it has no page for that."""
_REFUSALS: Final = frozenset(
    {_UNAVAILABLE, "declined", "refused", "invalid", "link", "unknown", "taken", "not_now", _NO_OUT}
)


def is_provider(host: Host, path: str) -> bool:
    """Whether the page belongs to the sign-in at the provider, and there is a provider."""
    return bool(host.provider) and path in {_THERE, _BACK}


async def answer(host: Host, request: PageRequest, locale: str) -> PageReply:
    """Redirect to the provider, or handle its response."""
    door = Door(host=host, request=request, locale=locale)
    if request.path == _THERE:
        return await _go(door)
    if request.method == "POST":
        return await _finish(door)
    if (why := request.query.get("refused", "")) in _REFUSALS:
        status = 503 if why in {_UNAVAILABLE, _NO_OUT} else 403
        problem = door.words[f"provider_{why}"]
        other = _OTHERS.get(why)
        return door.show(
            "provider.html", "sign_in", status, came=None, problem=problem, other=other
        )
    came = {name: request.query.get(name, "") for name in _PARAMETERS}
    return door.show("provider.html", "sign_in", script="provider.js", came=came)


async def _go(door: Door) -> PageReply:
    query = door.request.query
    if query.get("for") == _OUT:
        there = await door.host.sign_out_of_provider()
        return _refused(_NO_OUT) if there in {None, _UNAVAILABLE} else lead(str(there))
    began = await door.host.go_to_provider(
        query.get("for", "in"),
        session=door.cookie(SESSION),
        link=door.cookie(LINK),
        is_other="other" in query,
    )
    if isinstance(began, str):
        return _refused(began)
    address, flow = began
    page = quote(query.get("back", "")[:_PAGE_LENGTH_MAX], safe="")
    return lead(address, door.host.cookie(_FLOW, f"{flow}~{page}", _FLOW_SECONDS))


async def _finish(door: Door) -> PageReply:
    flow, _, page = door.cookie(_FLOW).partition("~")
    done = await door.host.back_from_provider(
        flow,
        door.request.form,
        session=door.cookie(SESSION),
        link=door.cookie(LINK),
        address=door.request.address,
    )
    if isinstance(done, str):
        return _refused(done)
    if done is None:
        gone = door.host.cookie(_FLOW, "", 0)
        return lead(way_back(unquote(page), said="provider"), gone)
    return door.let_in(done.token, unquote(page), _FLOW)


def _refused(why: str) -> PageReply:
    return lead(f"{ROOT}/{_BACK}?refused={why}")
