"""What is the person's own: the sessions, each of which can be ended, and the time zone."""

from __future__ import annotations

from countersign.server.console_host import ROOT, SESSION, PageReply
from countersign_console.times import zones
from countersign_console.view import KEPT_SECONDS, ZONE, lead
from countersign_console.visit import NOT_FOUND, Refused, Visit

_PATH = "/v1/me/sessions"
_ALERTS = "/v1/me/alerts"


async def answer(visit: Visit) -> PageReply:
    """`sessions`: the page, or one of its forms."""
    if "zone" in visit.request.form:
        chosen = visit.form["zone"]
        kept = (chosen, KEPT_SECONDS) if chosen in zones() else ("", 0)
        return lead(f"{ROOT}/sessions?said=zone", visit.host.cookie(ZONE, *kept))
    if visit.request.method == "POST":
        return await (_alerts(visit) if "alerts" in visit.form else _end(visit))
    found, is_proved = await visit.all_of(_PATH), None
    may_ask = visit.person.may("", "deployment:read")
    if may_ask:
        is_proved = (await visit.call("GET", _ALERTS))["is_proved"]
    return visit.show(
        "sessions.html",
        visit.words["page_sessions"],
        sessions=found,
        may_ask=may_ask,
        is_proved=is_proved,
        zones=zones(),
    )


async def _alerts(visit: Visit) -> PageReply:
    """Ask for alerts at an address, prove it, or end them."""
    # `code` is the form's own, against forgery.
    named, sent = {"email": "email", "code_sent": "code"}, visit.request.form
    body = {name: visit.form[field] for field, name in named.items() if field in sent}
    await visit.call("POST", _ALERTS, body=body)
    return lead(f"{ROOT}/sessions?said=alerts_changed")


async def _end(visit: Visit) -> PageReply:
    """End the session named in the form, or all of them, including this one."""
    one, said = visit.form.get("session", ""), "session_ended"
    try:
        await visit.call("POST", f"{_PATH}/{one}/end" if one else f"{_PATH}/end", body={})
    except Refused as refused:
        if refused.status != NOT_FOUND:
            raise
        said = "session_unknown"
    if await visit.host.who(visit.session) is None:
        return lead(f"{ROOT}/sign-in?said=signed_out", visit.host.cookie(SESSION, "", 0))
    return lead(f"{ROOT}/sessions?said={said}")
