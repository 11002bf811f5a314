"""The state of the process: a test leaves it as it was, in whatever order the files run."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs

from countersign.base.cli import log_to_standard_error
from tests.support import process_state

pytestmark = pytest.mark.later  # it tests the tools of the tests
_LOG = structlog.get_logger(__name__)


def test_changes_of_a_test_are_undone() -> None:
    mask = os.umask(0o022)
    os.umask(mask)
    before = (dict(os.environ), Path.cwd(), structlog.get_config(), time.tzname)
    with process_state.kept():
        os.environ["TZ"] = "Pacific/Apia"
        time.tzset()
        os.umask(0o077)
        os.chdir("/")
        log_to_standard_error()
        assert structlog.get_config() != before[2]
    after = (dict(os.environ), Path.cwd(), structlog.get_config(), time.tzname)
    assert after == before
    assert os.umask(mask) == mask


def test_a_logger_that_a_command_has_used_is_still_captured() -> None:
    """As after any command in this process, whose configuration asks for caching."""
    with process_state.kept():
        log_to_standard_error()
        _LOG.warning("while a command runs")
    with capture_logs() as said:
        _LOG.warning("afterwards")
    assert [event["event"] for event in said] == ["afterwards"]


def test_randomness_depends_on_the_test_alone(request: pytest.FixtureRequest) -> None:
    """Earlier tests do not influence it."""
    assert random.random() == random.Random(request.node.nodeid).random()
