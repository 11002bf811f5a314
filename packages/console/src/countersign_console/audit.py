"""The audit: filters that appear in no address, further pages, and CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from json import dumps
from typing import Any, Final

from countersign.server.console_host import AUDITED, PageReply
from countersign_console.acts import Field, Page
from countersign_console.visit import Refused, Visit

_PATH: Final = "/v1/audit"
_ACTOR: Final = "actor"
_FIELDS: Final = (
    Field(name=_ACTOR),
    Field(name="action", options=AUDITED),
    Field(name="subject"),
    Field(name="begin", kind="day"),
    Field(name="end", kind="day"),
)
_COLUMNS: Final = ("audit_id", "at", _ACTOR, "name", "action", "subject", "details")
_HEAD: Final = "head"
_OF_ORDERS: Final = ("ord_", "ack_", "chk_", "clr_", "ful_", "ver_", "rec_")
"""How identifiers of orders and of their parts begin."""
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
        rows = found["data"]
        people = await visit.host.people(visit.place.account_id)
        names = await _names(visit, rows)
        others = {form.get(_ACTOR, "")} | {one[_ACTOR] for one in rows}
        return visit.show(
            "audit.html",
            visit.words["page_audit"],
            fields=_FIELDS,
            rows=rows,
            names=names,
            actors=_by_name({**people, **names})
            | {one: one for one in sorted(others - {*people, *names, ""})},
            acts=_by_name({one: visit.words[f"audited_{one}"] for one in AUDITED}),
            orders=_orders(visit, rows),
            more=found["next_cursor"],
            is_filtered=any(_query(form).values()),
        )

    @staticmethod
    async def _file(visit: Visit) -> PageReply:
        rows = await visit.all_of(_PATH, _query(visit.form), _ROWS_MAX)
        if len(rows) >= _ROWS_MAX:
            raise Refused(422, "too_many", visit.words["audit_too_many"])
        names, (head, at) = await _names(visit, rows), await visit.host.audit_head()
        lines = [{**one, "name": names.get(one[_ACTOR])} for one in rows]
        last = dict.fromkeys(_COLUMNS) | {"audit_id": _HEAD, "at": at, "subject": head}
        return table("audit.csv", _COLUMNS, [*lines, last])


async def _names(visit: Visit, rows: Iterable[Mapping[str, Any]]) -> Mapping[str, str]:
    """The names of the people who acted; they may be of the staff."""
    return await visit.host.names(sorted({one[_ACTOR] for one in rows}))


def _by_name(names: Mapping[str, str]) -> dict[str, str]:
    return dict(sorted(names.items(), key=lambda one: one[1].casefold()))


def _orders(visit: Visit, rows: Iterable[Mapping[str, Any]]) -> Mapping[str, str]:
    """The addresses of the orders that entries of an account are about, by their subjects."""
    subjects = {one["subject"] for one in rows if one["subject"].startswith(_OF_ORDERS)}
    return {} if visit.place.is_deployment else {s: visit.at(f"orders/{s}") for s in subjects}


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
