"""Lines of the log, as several processes write them into one file."""

from __future__ import annotations

import io
import sys

import pytest
import structlog

from countersign.base.cli import log_to_standard_error


class Recorder(io.StringIO):
    """Notes each write."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[str] = []

    def write(self, text: str, /) -> int:
        self.writes.append(text)
        return len(text)


def test_a_line_is_one_write_with_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that is killed between two would leave a line for another to go on with."""
    sink = Recorder()
    monkeypatch.setattr(sys, "stderr", sink)
    log_to_standard_error()
    structlog.get_logger("x").error("something", number=1)
    (line,) = sink.writes
    assert line.endswith("}\n")
