"""Cookies of a browser for all sessions of a mode, and those that say what it did in a check.

All are for this host alone, out of reach of scripts, and not sent with what other sites embed.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from countersign.checkout.cookies import code, cookie_of, is_code, is_secure, values_of
from countersign.checkout.model import Session
from countersign.checkout.room import Checkout
from countersign.http.reply import Call, Header
from countersign.mode import Mode

REMEMBERED: Final = "remembered"
"""Has the value by which the buyer is known again."""
PASSKEY: Final = "passkey"
"""Says that a passkey was kept in this browser, and of whom it does not say."""
BEGAN: Final = "began"
"""Says that this browser has begun an identity check."""
RETURNED: Final = "returned"
"""Says that the provider led this browser back from it: another one has the link at most."""


def cookie(room: Checkout, call: Call, name: str, mode: Mode) -> str:
    """The value that the browser sends; "" if it sends none, or several."""
    return _sent(call, _name(room, name, mode))


def cookie_header(room: Checkout, name: str, mode: Mode, value: str, kept: timedelta) -> Header:
    """The header that sets a cookie; without a value it removes it."""
    return _header(room, _name(room, name, mode), value, kept if value else timedelta(0))


def mark_header(room: Checkout, session: Session, mark: str, attempt: int, now: datetime) -> Header:
    """The header that gives a browser BEGAN or RETURNED of this identity check."""
    kept = session.expires_at + timedelta(hours=1) - now
    name = _name(room, f"{session.id}-{mark}", session.mode)
    return _header(room, name, code(room, session, f"{mark} {attempt}"), kept)


def has_mark(room: Checkout, session: Session, mark: str, attempt: int, call: Call) -> bool:
    """Whether this browser has BEGAN or RETURNED of this identity check."""
    sent = _sent(call, _name(room, f"{session.id}-{mark}", session.mode))
    return is_code(room, session, f"{mark} {attempt}", sent)


def _sent(call: Call, name: str) -> str:
    found = values_of(call, name)
    return found[0] if len(found) == 1 else ""


def _header(room: Checkout, name: str, value: str, kept: timedelta) -> Header:
    return cookie_of(room, name, value, max(0, int(kept.total_seconds())))


def _name(room: Checkout, name: str, mode: Mode) -> str:
    host = "__Host-" if is_secure(room) else ""
    return f"{host}cs-{name}{'-test' if mode is Mode.TEST else ''}"
