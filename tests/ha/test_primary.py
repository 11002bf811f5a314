"""High availability: the primary is lost, and another node leads."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Final

import pytest

from tests.ha.conftest import Say
from tests.ha.service import Service, service, until

pytestmark = [
    pytest.mark.ha,
    pytest.mark.first_try,
    pytest.mark.long,
    pytest.mark.timeout(400),
]

PRIMARY_SECONDS_MAX: Final = 40.0
"""The longest time without accepted acts after the loss of a primary: its lease of 20 s, an
election, and the delays of a machine on which all three nodes, callers and servers share two
cores."""


@pytest.fixture(scope="module", params=[False, True], ids=["haproxy", "hosts"])
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """Give three nodes for each way to the database: both failures leave them whole."""
    with service(tmp_path_factory.mktemp("ha"), hosts=request.param) as made:
        yield made


def test_a_primary_is_killed(whole: Service, say: Say) -> None:
    """With its Patroni, as if the machine had lost its power. It follows when it is back."""
    with whole.load() as load:
        until(load)
        primary = whole.nodes.primary
        assert primary is not None
        primary.send(signal.SIGKILL)
        until(load)
        assert whole.nodes.primary is not primary
        primary.start("patroni")
        whole.nodes.until_whole()
        until(load)
    gap = say(load)
    whole.judge()
    assert gap <= PRIMARY_SECONDS_MAX


def test_a_primary_is_stopped(whole: Service, say: Say) -> None:
    """A paused machine: it takes connections and says nothing. It follows when it goes on."""
    with whole.load() as load:
        until(load)
        primary = whole.nodes.primary
        assert primary is not None
        primary.send(signal.SIGSTOP)
        until(load)
        primary.send(signal.SIGCONT)
        whole.nodes.until_whole()
        assert whole.nodes.primary is not primary
        until(load)
    gap = say(load)
    whole.judge()
    assert gap <= PRIMARY_SECONDS_MAX
