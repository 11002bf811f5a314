"""Export an account's acknowledgments for compliance staff: CSV or JSON lines."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from countersign.access.account import Account
from countersign.access.key import Principal
from countersign.acknowledgments.find import find_many
from countersign.acknowledgments.model import AcknowledgmentView, Search
from countersign.acknowledgments.room import Acknowledgments
from countersign.instant import rfc3339_ms
from countersign.mode import Mode

_PAGE: Final = 500
_FORMULA: Final = (
    *("=", "+", "-", "@", "\t", "\r", "\n", "|", "%"),
    *("\uff1d", "\uff0b", "\uff0d", "\uff20"),
)
"""What a spreadsheet takes for the beginning of a formula (OWASP, CSV injection).

The last four are the full-width forms of the first: with some languages they count as these.
"""


async def export(
    room: Acknowledgments,
    account: Account,
    mode: Mode,
    accepted_after: datetime | None,
    accepted_before: datetime | None,
) -> AsyncIterator[dict[str, Any]]:
    """Each acknowledgment in this range of times, newest first, as a row with the COLUMNS."""
    who = operator_of(account.id, mode)
    after: str | None = None
    while True:
        search = Search(
            accepted_after=accepted_after,
            accepted_before=accepted_before,
            after=after,
            limit=_PAGE,
        )
        page, after = await find_many(room, who, search)
        for view in page:
            yield {name: value(view) for name, value in _VALUES.items()}
        if after is None:
            return


def operator_of(account_id: str, mode: Mode) -> Principal:
    """The operator, reading what this account could read."""
    return Principal(
        key_id="operator",
        account_id=account_id,
        mode=mode,
        scopes=frozenset(),
        credential="operator",
    )


def csv_lines(rows: Iterable[Sequence[object]]) -> str:
    """Lines of CSV (RFC 4180), safe to open in a spreadsheet.

    A field that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    target = io.StringIO()
    writer = csv.writer(target, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    for row in rows:
        writer.writerow([_safe(value) for value in row])
    return target.getvalue()


def _safe(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return f"'{text}" if text.startswith(_FORMULA) else text


_VALUES: Final[Mapping[str, Callable[[AcknowledgmentView], object]]] = {
    "ack_id": lambda view: view.ack_id,
    "livemode": lambda view: view.mode is Mode.LIVE,
    "accepted_at": lambda view: rfc3339_ms(view.accepted_at),
    "notice_id": lambda view: view.record.notice_id,
    "notice_version": lambda view: view.record.notice_version,
    "notice_version_source": lambda view: view.record.notice_version_source.value,
    "notice_digest": lambda view: view.record.notice_digest,
    "initials_per_line": lambda view: view.field("initials_per_line"),
    "session_id": lambda view: view.field("session_id"),
    "cbid": lambda view: view.field("cbid"),
    "ip": lambda view: view.field("ip", "ip"),
    "ip_source": lambda view: view.field("ip", "source"),
    "peer_ip": lambda view: view.field("ip", "peer_ip"),
    "user_agent": lambda view: view.field("user_agent", "user_agent"),
    "user_agent_source": lambda view: view.field("user_agent", "source"),
    "capture": lambda view: view.record.capture.value,
    "evidence_status": lambda view: "pending" if view.sealed is None else "sealed",
    "evidence_log": lambda view: view.sealed and view.sealed.origin,
    "evidence_index": lambda view: None if view.sealed is None else view.sealed.index,
    "erased_at": lambda view: view.erased_at and rfc3339_ms(view.erased_at),
}
COLUMNS: Final = tuple(_VALUES)
