"""How far a request travels: a reader follows each call of a function, and the interpreter pays."""

from __future__ import annotations

import json
import os

import pytest

from tests.support import forked

pytestmark = [pytest.mark.long, pytest.mark.one_engine, pytest.mark.later]  # it measures

MOST = {"acknowledge": 124, "status": 30, "notice": 15, "accept": 601}
"""Of functions of our own, for one request alone: an acknowledgment with an Idempotency-Key, the
status of a buyer, a notice, and the end of a checkout on the hosted page. With three objects of
each kind, people are known from keys; the end of a checkout also reads adopted initials, the copy
by e-mail, and the browser of each reading."""
SLACK = 1.05
"""Two changes that add a call each need not edit the same number."""


def test_no_request_makes_more_calls_than_before() -> None:
    """A count of calls, not time: growth is detected before it is felt."""
    done = forked.run("bench.calls", "--json", environment=os.environ, seconds=300)
    assert done.returncode == 0, done.stderr
    found = {journey["operation"]: journey for journey in json.loads(done.stdout)}
    over = {
        name: (found[name]["calls"], found[name]["most"])
        for name, most in MOST.items()
        if found[name]["calls"] > most * SLACK
    }
    assert over == {}
