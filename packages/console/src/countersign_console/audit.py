"""The audit: filters that appear in no address, further pages, and CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from json import dumps
from typing import Any, Final

from countersign.server.console_host import PageReply
from countersign_console.acts import Field, Page
from countersign_console.visit import Refused, Visit

_PATH: Final = "/v1/audit"
_FIELDS: Final = (
    Field(name="subject"),
    Field(name="actor"),
    Field(name="action"),
    Field(name="begin", kind="day"),
    Field(name="end", kind="day"),
)
_COLUMNS: Final = ("audit_id", "at", "actor", "action", "subject", "details")
_ROWS_MAX: Final = 10_000
"""For more entries the form requires a time, so that no file is incomplete."""
_FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r")
"""Characters that start a formula in a spreadsheet (OWASP, CSV injection)."""


class Audit(Page):
    """`audit`. The subject may be a buyer, so a filter is sent as a form."""

    looks = frozenset({"find", "csv"})

    async def show(self, visit: Visit) -> PageReply:
        """Audit entries, newest first; or the filtered ones as a file."""
        form = visit.form if visit.kept.action in self.looks else {}
        if visit.kept.action == "csv":
            return await self._file(visit)
        found = await visit.page_of(_PATH, after=form.get("after", ""), **_query(form))
        actors = sorted({one["actor"] for one in found["data"]})
        return visit.show(
            "audit.html",
            visit.words["page_audit"],
            fields=_FIELDS,
            rows=found["data"],
            names=await visit.host.names([one for one in actors if one.startswith("per_")]),
            more=found["next_cursor"],
        )

    @staticmethod
    async def _file(visit: Visit) -> PageReply:
        rows = await visit.all_of(_PATH, _query(visit.form), _ROWS_MAX)
        if len(rows) >= _ROWS_MAX:
            raise Refused(422, "too_many", visit.words["audit_too_many"])
        return table("audit.csv", _COLUMNS, rows)


def _query(form: Mapping[str, str]) -> dict[str, str]:
    return {one.name: str(one.read(form) or "") for one in _FIELDS}


def table(name: str, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> PageReply:
    """A file of CSV (RFC 4180), safe to open in a spreadsheet, with a line of names first."""
    target = StringIO()
    writer = csv.writer(target, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(row[column]) for column in columns])
    return PageReply(
        body=target.getvalue().encode(),
        headers=[
            ("content-type", "text/csv; charset=utf-8"),
            ("content-disposition", f'attachment; filename="{name}"'),
            ("cache-control", "no-store"),
        ],
    )


def _cell(value: object) -> str:
    if value is None:
        return ""
    is_text = isinstance(value, str)
    text = str(value) if is_text else dumps(value, ensure_ascii=False, sort_keys=True)
    return f"'{text}" if text.startswith(_FORMULAS) else text
