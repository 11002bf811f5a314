"""Three nodes that the tests of a module share, and the figures of each failure."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

import pytest

from tests.drills.load import Load
from tests.ha.service import Service, longest_gap

Say: TypeAlias = Callable[[Load], float]


@pytest.fixture
def say(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Say:
    """Give what prints figures past pytest, and returns the longest gap."""

    def printed(load: Load) -> float:
        gap = longest_gap(load)
        ends = Counter(f"{tried.status} {tried.code}".strip() for tried in load.tried)
        slowest = max(tried.seconds for tried in load.tried)
        with capsys.disabled():
            name = request.node.name
            said = f"longest gap {gap:.1f} s, slowest call {slowest:.1f} s, {dict(ends)}"
            # The standard output of a worker is not shown.
            sys.stderr.write(f"\n{name}: {said}\n")
        return gap

    return printed


@pytest.fixture
def whole(shared: Service) -> Service:
    """Give the module's nodes whole, with callers of a new account, and a monitor that watches."""
    shared.nodes.until_whole()
    shared.begin_anew()
    return shared
