"""Bind a browser to a checkout session: cookie, code in each form, and own origin."""

from __future__ import annotations

from datetime import datetime, timedelta
from hmac import compare_digest
from typing import Final
from urllib.parse import urlsplit

from countersign.base.errors import OriginNotAllowed
from countersign.base.values import CHECKOUT_SESSION, Mode, is_id
from countersign.core.checkout.model import LIFETIME_MAX, Session
from countersign.core.gate.route import Call, Header
from countersign.hosted.pages.room import HostedPages
from countersign_evidence.disclosure import b64url

COPY: Final = "copy"
_COOKIE: Final = "cookie"
OWN_SITES: Final = frozenset({b"same-origin", b"none"})
"""`Sec-Fetch-Site` of a request from our own pages, or from no page."""


def code(room: HostedPages, session: Session, use: str) -> str:
    """A code that only a holder of the session's token, or of a value made from it, can send."""
    return b64url(room.access.secret.page_code(use, session.id, session.token_digest))


def is_code(room: HostedPages, session: Session, use: str, sent: str) -> bool:
    """Whether this is that code, compared in constant time."""
    return compare_digest(code(room, session, use).encode(), sent.encode())


def copy_address(room: HostedPages, session: Session) -> str:
    """The address of the buyer's own copy: it opens nothing else, and needs no cookie."""
    return f"{room.public_url}/c/{session.id}/copy/{code(room, session, COPY)}"


def return_code(room: HostedPages, session_id: str, attempt: int) -> str:
    """A code that is only in the return address of this check."""
    return b64url(room.access.secret.page_code(f"return {attempt}", session_id, b""))


def set_cookie(room: HostedPages, session: Session, now: datetime, browser: str) -> Header:
    """The header that gives a browser its cookie, for the session and a while to look back at it.

    During a decision that takes days, the buyer opens the link again to get a new cookie. The copy
    has its own link, so that the next user of a shared device finds nothing.
    """
    value = f"{browser}.{code(room, session, f'{_COOKIE} {browser}')}"
    end = min(session.expires_at, now + LIFETIME_MAX) + timedelta(hours=1)
    return cookie_of(room, _name(room, session.id), value, int((end - now).total_seconds()))


def browser_of(room: HostedPages, session: Session, call: Call) -> str:
    """The id of this browser among those with the link of the session; "" without its cookie."""
    for value in values_of(call, _name(room, session.id)):
        browser, _, sent = value.partition(".")
        if is_code(room, session, f"{_COOKIE} {browser}", sent):
            return browser
    return ""


def new_browser(room: HostedPages) -> str:
    """The id of a browser that has no cookie of the session yet."""
    return b64url(room.access.entropy(16))


def form_code(room: HostedPages, session: Session, browser: str) -> str:
    """The code in forms served to this browser."""
    return code(room, session, f"form {browser}")


def cookie_of(room: HostedPages, name: str, value: str, seconds: int) -> Header:
    """The header that sets a cookie for this host alone, out of reach of scripts."""
    secure = "; Secure" if _is_secure(room) else ""
    text = f"{name}={value}; Max-Age={seconds}; Path=/; HttpOnly; SameSite=Lax{secure}"
    return (b"set-cookie", text.encode())


def values_of(call: Call, name: str) -> list[str]:
    """The values of the cookies with this name that the browser sends."""
    # A cookie without a value counts too: if a name is repeated, no value is trusted.
    return [
        value.strip()
        for header, line in call.raw_headers
        if header == b"cookie"
        for pair in line.decode("latin-1").split(";")
        for own, equals, value in [pair.partition("=")]
        if (own.lstrip() if equals else own.strip()) == name
    ]


def refuse_foreign(room: HostedPages, call: Call) -> None:
    """Refuse a form that another site sends.

    A browser sends `Origin: null` with a form of ours, since our pages ask for no referrer.

    Raises:
        OriginNotAllowed: it is of another site.
    """
    public = urlsplit(room.public_url)
    host = call.headers.get(b"host", b"").decode("latin-1")
    own = {"null", f"{public.scheme}://{public.netloc}", f"{public.scheme}://{host}"}
    origin = call.headers.get(b"origin", b"null").decode("latin-1")
    if origin not in own or call.headers.get(b"sec-fetch-site", b"none") not in OWN_SITES:
        raise OriginNotAllowed


def lacks_cookie(room: HostedPages, session_id: str, call: Call) -> bool:
    """Whether this is a session's id, without any cookie of that session, whatever it is."""
    return is_id(CHECKOUT_SESSION, session_id) and not values_of(call, _name(room, session_id))


def _name(room: HostedPages, of: str) -> str:
    """The name of the cookie of a session, or of one for all sessions of a mode."""
    return f"{'__Host-' if _is_secure(room) else ''}cs-{of}"


def _is_secure(room: HostedPages) -> bool:
    """Whether browsers reach this service by https alone."""
    return room.public_url.startswith("https:")


# Cookies of a browser for all sessions of a mode.
#
# All are for this host alone, out of reach of scripts, and not sent from embedded pages.

REMEMBERED: Final = "remembered"
"""Its value identifies the buyer."""
PASSKEY: Final = "passkey"
"""Says that this browser has a passkey, without saying whose."""


def cookie(room: HostedPages, call: Call, name: str, mode: Mode) -> str:
    """The value that the browser sends; "" if it sends none, or several."""
    found = values_of(call, _name_in_mode(room, name, mode))
    return found[0] if len(found) == 1 else ""


def cookie_header(room: HostedPages, name: str, mode: Mode, value: str, kept: timedelta) -> Header:
    """The header that sets a cookie; without a value it removes it."""
    seconds = int(kept.total_seconds()) if value else 0
    return cookie_of(room, _name_in_mode(room, name, mode), value, seconds)


def removed_cookies(room: HostedPages, mode: Mode) -> list[Header]:
    """The headers that remove what this browser is remembered by in this mode."""
    return [cookie_header(room, name, mode, "", timedelta(0)) for name in (REMEMBERED, PASSKEY)]


def _name_in_mode(room: HostedPages, name: str, mode: Mode) -> str:
    return _name(room, f"{name}{'-test' if mode is Mode.TEST else ''}")
