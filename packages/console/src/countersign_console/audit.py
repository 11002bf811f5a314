"""The audit: filters that appear in no address, further pages, and CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from json import dumps
from typing import Any, Final

from countersign.server.console_host import PageReply
from countersign_console.lists import Field
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """`audit`. The subject may be a buyer, so a filter is sent as a form."""

    async def show(self, visit: Visit, problem: str = "", status: int = 200) -> PageReply:
        """Audit entries, newest first."""
        form = visit.form
        try:
            query = _query(form)
            found = await visit.page_of(_PATH, after=form.get("after", ""), **query)
        except Refused as refused:
            problem, status, found = refused.message, refused.status, _NOTHING
        actors = sorted({one["actor"] for one in found["data"]})
        return visit.show(
            "audit.html",
            visit.words["page_audit"],
            status=status,
            problem=problem,
            fields=_FIELDS,
            rows=found["data"],
            names=await visit.host.names([one for one in actors if one.startswith("per_")]),
            more=found["next_cursor"],
            form=form,
        )

    async def show_item(self, visit: Visit) -> PageReply:
        """There are no items."""
        return await self.show(visit)

    async def do(self, visit: Visit, action: str) -> PageReply:
        """Show the filtered entries, or return them as a file."""
        if action != "csv":
            return await self.show(visit)
        try:
            rows = await visit.all_of(_PATH, _query(visit.form), _ROWS_MAX)
        except Refused as refused:
            return await self.show(visit, refused.message, refused.status)
        if len(rows) >= _ROWS_MAX:
            return await self.show(visit, visit.words["audit_too_many"], 422)
        return PageReply(
            body=_csv(rows).encode(),
            headers=[
                ("content-type", "text/csv; charset=utf-8"),
                ("content-disposition", 'attachment; filename="audit.csv"'),
                ("cache-control", "no-store"),
            ],
        )


_NOTHING: Final[Mapping[str, Any]] = {"data": (), "next_cursor": None}


def _query(form: Mapping[str, str]) -> dict[str, str]:
    return {one.name: str(one.read(form) or "") for one in _FIELDS}


def _csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """Lines of CSV (RFC 4180), safe to open in a spreadsheet, with a line of names first."""
    target = StringIO()
    writer = csv.writer(target, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow(_COLUMNS)
    for row in rows:
        shown = {**row, "details": dumps(row["details"], ensure_ascii=False, sort_keys=True)}
        writer.writerow(_safe([str(shown[name]) for name in _COLUMNS]))
    return target.getvalue()


def _safe(fields: Sequence[str]) -> list[str]:
    return [f"'{text}" if text.startswith(_FORMULAS) else text for text in fields]
