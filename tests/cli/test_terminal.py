"""Output of commands: no text of a vendor or buyer can control a terminal."""

from __future__ import annotations

import contextlib
import io
import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from countersign.base.cli import log_to_standard_error
from countersign_evidence.cli.support import field_lines, json_text, printable
from tests.cli.conftest import Bench

TRICKS = "a\x1b[31m\x07\x9b2J\u202egpj.exe\x7f\u2028b"
TEXT = st.text(st.characters() | st.sampled_from(TRICKS))
JSON = st.recursive(
    TEXT | st.none() | st.integers(), lambda of: st.lists(of) | st.dictionaries(TEXT, of)
)


@given(TEXT)
def test_printed_text_has_only_visible_characters(text: str) -> None:
    """And lines, where they are ours."""
    assert printable(text, keep="").isprintable()
    assert printable(text).replace("\n", "").isprintable()
    assert text.isprintable() <= (printable(text) == text)


@given(JSON, st.sampled_from([None, 2]))
def test_printed_json_has_them_too_and_means_the_same(value: object, indent: int | None) -> None:
    """Programs get the stored text."""
    text = json_text(value, indent)
    assert text.replace("\n", "").isprintable()
    assert json.loads(text) == value


def test_no_command_prints_directly() -> None:
    """All output goes through the two functions above."""
    root = Path(__file__).parents[2]
    sources = [root / "src/countersign", root / "packages/evidence/src/countersign_evidence"]
    patterns = ("*command*.py", "commands/*.py", "cli/*.py")
    found = [module for s in sources for pattern in patterns for module in s.rglob(pattern)]
    assert len(found) > 20
    # CSV is escaped where its lines are made.
    csv = {"commands/acknowledgments.py", "commands/buyers.py"}
    allowed = {"support.py", "verify_command.py", *csv}
    for module in found:
        text = module.read_text()
        if not {module.name, f"{module.parent.name}/{module.name}"} & allowed:
            assert "print(" not in text.replace("console.print(", ""), module
            assert "click.echo(" not in text, module


@given(TEXT, st.dictionaries(st.text("abc", min_size=1), JSON))
def test_a_line_of_the_log_is_one_line_of_json(text: str, values: dict[str, object]) -> None:
    """With its time in UTC: no value can begin another line, or look like one."""
    sink = io.StringIO()
    with contextlib.redirect_stderr(sink):
        log_to_standard_error()
        structlog.get_logger("countersign.test").warning("event", text=text, values=values)
    (line,) = sink.getvalue().splitlines(keepends=True)
    assert line.endswith("}\n")
    read = json.loads(line)
    assert (read["event"], read["text"], read["values"]) == ("event", text, values)
    assert datetime.fromisoformat(read["timestamp"]).utcoffset() == timedelta()


def test_fields_are_named_in_words() -> None:
    """Not in Python's terms."""
    view = {"a": None, "b": [], "c": ["x", 1], "d": False, "e": [{"f": True, "g": ("y",)}]}
    assert field_lines(view).splitlines() == ["a: -", "b: -", "c: x, 1", "d: no", "e: f yes; g y"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("webhooks", "add", "--url", "ftp://a.example", "--account", "vendor", "--mode", "test"),
        ("test", "trigger", "vendor", "buyer.verified", "--object", "nothing"),
        ("test", "buyer", "set", "vendor", "cbid_test_1", "verified", "--reason", "zip_mismatch"),
    ],
)
def test_a_mistake_on_the_command_line_is_reported_without_json(
    initialised: Bench, arguments: tuple[str, ...]
) -> None:
    """Without a `$` path, which users could not look up."""
    initialised.account("vendor")
    assert "$" not in initialised.refused(*arguments)
