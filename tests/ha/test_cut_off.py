"""High availability: the primary is cut off from the other nodes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import pytest

from tests.drills.load import of_status
from tests.ha.conftest import Say
from tests.ha.network import cut_off, join
from tests.ha.nodes import wait
from tests.ha.service import calls_at, service, until

pytestmark = [
    pytest.mark.ha,
    pytest.mark.cuts,
    pytest.mark.first_try,
    pytest.mark.timeout(400),
]

CUT_SECONDS_MAX: Final = 60.0
"""Clients connected to an isolated node must first detect that before they ask others."""


@pytest.mark.parametrize("hosts", [False, True], ids=["haproxy", "hosts"])
def test_a_primary_is_cut_off(tmp_path: Path, say: Say, hosts: bool) -> None:
    """Callers reach it, and the other nodes do not: it refuses writes, and follows when healed."""
    with service(tmp_path, hosts=hosts, apart=True) as broken:
        primary = broken.nodes.each[0]
        with broken.load() as load, calls_at(broken, primary) as inside:
            until(load)
            until(inside)
            cut_off(primary)
            begun = time.monotonic()
            until(load)
            wait(lambda: primary.asked_inside("/primary") == 503, "its Patroni's word")
            ended = time.monotonic()
            join(primary)
            broken.nodes.until_whole()
            assert broken.nodes.primary is not primary
            until(load)
            until(inside)
        gap = say(load)
        broken.judge()
        assert [one for one in of_status(inside.tried, 200) if begun + 5 < one.at < ended] == []
        assert "running pg_rewind" in (primary.root / "patroni.log").read_text()
        assert gap <= CUT_SECONDS_MAX
