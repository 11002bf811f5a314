"""Lines of CSV that a spreadsheet can open without running anything."""

import csv
import io

from countersign.base.cli import csv_lines
from tests.support.every import every


@every("first", [*"=+-@|%\t\r\n", *"\uff1d\uff0b\uff0d\uff20"])
def test_no_field_begins_like_a_formula(first: str) -> None:
    """Nor in the full-width forms of East Asian languages; the text itself stays whole."""
    hostile = f'{first}HYPERLINK("http://x")'
    (row,) = csv.reader(io.StringIO(csv_lines([[hostile, "plain", 1, None, True]]), newline=""))
    assert row == [f"'{hostile}", "plain", "1", "", "true"]


def test_a_list_is_text_and_begins_with_a_bracket() -> None:
    """Initials that are formulas stand inside it."""
    assert csv_lines([[["=1", "\uff1d2"]]]) == '"[""=1"",""\uff1d2""]"\r\n'
