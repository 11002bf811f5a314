"""The identity step of the hosted page."""

from __future__ import annotations

from typing import Final

from countersign.checkout.screens import NOTHING, PRIVATE
from countersign.checkout.visits import Visit
from countersign.errors import InvalidRequest
from countersign.http.reply import Header, Reply

_EVENTS: Final[Header] = (b"content-type", b"text/event-stream")
_UNBUFFERED: Final[Header] = (b"x-accel-buffering", b"no")
"""For nginx, which otherwise collects a response before it passes it on."""
_REVISION_DIGITS_MAX: Final = 9


async def updates(visit: Visit) -> Reply:
    """The events of the session, for a page that shows it at the revision in the query."""
    headers = (_EVENTS, *PRIVATE, NOTHING, _UNBUFFERED)
    shown = visit.form.get("revision", "")
    if not (shown.isascii() and shown.isdigit() and len(shown) <= _REVISION_DIGITS_MAX):
        raise InvalidRequest("Expected the revision that the page shows.")
    if visit.call.method == "HEAD":
        return Reply(b"", headers)
    pieces = visit.room.updates.after(visit.session.id, int(shown))
    return Reply(await anext(pieces), headers, 200, pieces)
