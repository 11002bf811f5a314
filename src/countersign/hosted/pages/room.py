"""The room of the hosted pages: checkout sessions, and what only a buyer's browser needs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from countersign.base.snapshot import KeyedLocks, SingleFlight
from countersign.core.checkout.room import Checkout
from countersign.hosted.pages.mails import CopyMails
from countersign.hosted.remembered import Remembered

if TYPE_CHECKING:
    from markupsafe import Markup


ADDRESS_LENGTH_MAX: Final = 1_200
"""A longer address makes too many modules for a phone's camera."""
KEPT_MAX: Final = 256


async def qr_code(looks: SingleFlight, url: str, name: str) -> Markup | None:
    """A code of this address, as an SVG element with this name; None: too long."""
    if len(url) > ADDRESS_LENGTH_MAX:
        return None
    return await looks.join((url, name), lambda: asyncio.to_thread(_made, url, name))


@lru_cache(maxsize=KEPT_MAX)
def _made(url: str, name: str) -> Markup:
    import segno  # noqa: PLC0415 - of no use to most pages
    from markupsafe import Markup  # noqa: PLC0415 - as above

    made = segno.make(url, error="l", micro=False)
    svg = made.svg_inline(scale=1, border=4, light="#fff", title=name, svgclass="qr", omitsize=True)
    return Markup(svg.replace("<svg ", '<svg role="img" ', 1))  # noqa: S704 - segno escapes it


COPIES_WAITING_MAX: Final = 2
"""Of one session, in one process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedPages(Checkout):
    """Checkout sessions, as buyers meet them in a browser."""

    remembered: Remembered
    mails: CopyMails | None = None
    """None: copies are not sent by e-mail."""
    copies: KeyedLocks = field(default_factory=lambda: KeyedLocks(COPIES_WAITING_MAX))
    """Certificates in the making, by session."""
    looks: SingleFlight = field(default_factory=SingleFlight)
    """Concurrent views of a session by one browser: each is recorded once. So is a QR code made."""
