"""Cookies of a browser for all sessions of a mode.

All are for this host alone, out of reach of scripts, and not sent with what other sites embed.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from countersign.base.values import Mode
from countersign.core.gate.route import Call, Header
from countersign.hosted.pages.cookies import cookie_of, is_secure, values_of
from countersign.hosted.pages.room import HostedPages

REMEMBERED: Final = "remembered"
"""Has the value by which the buyer is known again."""
PASSKEY: Final = "passkey"
"""Says that a passkey was kept in this browser, and of whom it does not say."""


def cookie(room: HostedPages, call: Call, name: str, mode: Mode) -> str:
    """The value that the browser sends; "" if it sends none, or several."""
    found = values_of(call, _name(room, name, mode))
    return found[0] if len(found) == 1 else ""


def cookie_header(room: HostedPages, name: str, mode: Mode, value: str, kept: timedelta) -> Header:
    """The header that sets a cookie; without a value it removes it."""
    seconds = int(kept.total_seconds()) if value else 0
    return cookie_of(room, _name(room, name, mode), value, seconds)


def _name(room: HostedPages, name: str, mode: Mode) -> str:
    host = "__Host-" if is_secure(room) else ""
    return f"{host}cs-{name}{'-test' if mode is Mode.TEST else ''}"
