"""High availability: parts of three nodes are killed or stopped; no 200 is lost or doubled."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import psycopg
import pytest

from tests.drills.load import of_status
from tests.ha.conftest import Say
from tests.ha.nodes import wait
from tests.ha.service import SERVERS, Service, service, until

pytestmark = [
    pytest.mark.ha,
    pytest.mark.first_try,
    pytest.mark.long,
    pytest.mark.timeout(400),
]

BRIEF_SECONDS_MAX = 12.0
"""Faults that need no new primary take less than a caller waits, and a second or two."""
ALONE_SECONDS = 60.0

_ACK_IDS = "SELECT id FROM records WHERE id LIKE 'ack\\_%'"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Three nodes for faults that leave no trace for the next test."""
    with service(tmp_path_factory.mktemp("ha"), hosts=False) as made:
        yield made


def test_servers_are_restarted_one_after_the_other(whole: Service, say: Say) -> None:
    """As for an upgrade: no caller is refused, and none loses its connection."""
    with whole.load() as load:
        until(load)
        for number in range(SERVERS):
            whole.restart(number)
            until(load)
    say(load)
    whole.judge()
    # A retry of another caller's running request is refused in any case.
    ends = {(tried.status, tried.code) for tried in load.tried}
    assert ends <= {(200, ""), (409, "idempotency_in_progress")}, ends


def test_a_worker_is_stopped(whole: Service, say: Say) -> None:
    """Its server ends it after ten seconds without a sign of life, and starts another."""
    with whole.load() as load:
        until(load)
        stopped = whole.workers_of(0)[0]
        os.kill(stopped, signal.SIGSTOP)
        wait(lambda: stopped not in whole.workers_of(0), "another worker")
        until(load)
    gap = say(load)
    whole.judge()
    assert gap <= BRIEF_SECONDS_MAX


def test_the_leader_of_etcd_is_killed(whole: Service, say: Say) -> None:
    """The primary stays: Patroni's lease outlives the election."""
    primary = whole.nodes.primary
    with whole.load() as load:
        until(load)
        lost = whole.nodes.etcd_leader()
        assert lost is not None
        lost.kill("etcd")
        wait(lambda: whole.nodes.etcd_leader() is not None, "another leader of etcd")
        until(load)
        lost.start("etcd")
        until(load)
    gap = say(load)
    whole.judge()
    assert whole.nodes.primary is primary
    assert gap <= BRIEF_SECONDS_MAX


def test_the_synchronous_standby_is_killed(whole: Service, say: Say) -> None:
    """The third node takes its place, and the primary stays."""
    primary, standby = whole.nodes.primary, whole.nodes.standby
    assert standby is not None
    with whole.load() as load:
        until(load)
        standby.send(signal.SIGKILL)
        until(load)
        standby.start("patroni")
        whole.nodes.until_whole()
        until(load)
    gap = say(load)
    whole.judge()
    assert whole.nodes.primary is primary
    assert gap <= BRIEF_SECONDS_MAX


def test_no_standby_is_left_for_a_minute(whole: Service, say: Say) -> None:
    """No 200 for data on one node alone; it continues when a standby is back."""
    primary = whole.nodes.primary
    others = [node for node in whole.nodes.each if node is not primary]
    with whole.load() as load:
        until(load)
        for node in others:
            node.send(signal.SIGKILL)
        alone = time.monotonic()
        wait(lambda: time.monotonic() > alone + ALONE_SECONDS, "a minute", 2 * ALONE_SECONDS)
        assert load.looked[-1].status == 503, "readiness"
        late = [tried for tried in of_status(load.tried, 200) if tried.at > alone + 5]
        for node in others:
            node.start("patroni")
        until(load)
        whole.nodes.until_whole()
    say(load)
    whole.judge()
    assert late == []


def test_commits_that_wait_are_cancelled(whole: Service, say: Say) -> None:
    """Data on one node alone can be visible there, but no caller got a response for it."""
    primary = whole.nodes.primary
    assert primary is not None
    others = [node for node in whole.nodes.each if node is not primary]
    with whole.load() as load:
        until(load)
        # If its Patroni had noted that no standby is left, none could take over by itself.
        os.kill(primary.running["patroni"].pid, signal.SIGSTOP)
        for node in others:
            node.send(signal.SIGKILL)
        with primary.administrator() as administrator:
            for end in ("cancel", "terminate"):
                _end_waiting(administrator, end, 10)
            seen = ids(administrator)
        primary.send(signal.SIGKILL)
        for node in others:
            node.start("patroni")
        until(load)
        assert whole.nodes.primary is not primary
        primary.start("patroni")
        whole.nodes.until_whole()
        until(load)
    say(load)
    whole.judge()
    leader = whole.nodes.primary
    assert leader is not None
    with leader.administrator() as administrator:
        assert seen - ids(administrator), "nothing stood in one node alone"


def ids(administrator: psycopg.Connection) -> set[str]:
    """The acknowledgments of all accounts."""
    return {row[0] for row in administrator.execute(_ACK_IDS)}


def _end_waiting(administrator: psycopg.Connection, end: str, number: int) -> None:
    """As an operator does who wonders about sessions that wait for a standby."""
    done = 0

    def ended() -> bool:
        nonlocal done
        found = f"SELECT pg_{end}_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"  # noqa: S608 - one of two words
        done += len(administrator.execute(found).fetchall())
        return done >= number

    wait(ended, f"{number} sessions that wait")


def test_everything_is_killed_and_started_again(whole: Service, say: Say) -> None:
    """Every PostgreSQL, Patroni and etcd at once: a power cut, and the machines come back."""
    with whole.load() as load:
        until(load)
        for node in whole.nodes.each:
            node.send(signal.SIGKILL)
            node.kill("etcd")
        for node in whole.nodes.each:
            node.start("etcd", "patroni")
        until(load)
        whole.nodes.until_whole()
        until(load)
    say(load)
    whole.judge()
