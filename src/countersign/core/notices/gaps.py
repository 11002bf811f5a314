"""A gap of a notice is closed by its missing words, not by deleting its name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from countersign.base.errors import InvalidArgument, NoticeIncomplete
from countersign.core.notices.model import NoticeContent, NoticeEvent

GAP_CLOSED: Final = "gap_closed"
"""The detail of an event that says why there is no gap although no line was added."""


def closing(reason: str | None) -> dict[str, str]:
    """The details of an event with this reason; none without one."""
    if reason is None:
        return {}
    if not reason.strip() or not reason.isprintable():
        raise InvalidArgument("Say on one line why nothing is missing (gap-closed).")
    return {GAP_CLOSED: reason.strip()}


def refuse_dropped_gap(
    content: NoticeContent, others: Iterable[NoticeContent], events: Iterable[NoticeEvent] = ()
) -> None:
    """Refuse a complete version with no line beyond those of an incomplete one of its notice.

    An event of the version that says why is enough. Raises NoticeIncomplete.
    """
    if content.text_gaps or any(GAP_CLOSED in event.details for event in events):
        return
    for other in others:
        if other.text_gaps and _lines(content) <= _lines(other):
            gaps = "\n".join(f"  incomplete: {gap}" for gap in other.text_gaps)
            raise NoticeIncomplete(
                f"The lines of {content.id} version {content.version} are those of version "
                f"{other.version}, which lacks text:\n{gaps}\nAdd the missing lines, in a version "
                "of its own. If nothing is missing, say why (gap-closed)."
            )


def _lines(content: NoticeContent) -> set[str]:
    """The words of each line, however they are spaced."""
    return {" ".join(bullet.text.split()).casefold() for bullet in content.bullets}
