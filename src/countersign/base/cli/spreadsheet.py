"""Tables as CSV, which people open in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

_FORMULA: Final = (
    *("=", "+", "-", "@", "\t", "\r", "\n", "|", "%"),
    *("\uff1d", "\uff0b", "\uff0d", "\uff20"),
)
"""Characters with which a spreadsheet begins a formula (OWASP, CSV injection).

The last four are the full-width forms of the first: with some languages they count as these.
"""


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
