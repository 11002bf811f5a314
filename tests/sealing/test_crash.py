"""Killed between any two steps of sealing: one consistent chain, and nothing is missing."""

from __future__ import annotations

from itertools import count

import pytest

from tests.sealing.acts import check
from tests.support import forked
from tests.support.service import Deployment, running_server

pytestmark = [pytest.mark.crash, pytest.mark.both_engines, pytest.mark.long]


def run_victim(deployment: Deployment, point: int, account: str) -> list[str]:
    """Its output before it was killed or ended."""
    done = forked.run(
        "tests.sealing.victim", str(point), account, environment=deployment.environment
    )
    assert done.returncode in {0, -9}, done.stderr
    return done.stdout.split("\n")[:-1]


@pytest.mark.timeout(600)
def test_killed_before_any_step_the_log_is_one_chain_and_lacks_nothing(own: Deployment) -> None:
    """Each step in turn; the next process continues where the last one stopped."""
    account = own.account("vendor")
    answered: list[str] = []
    for point in count(1):
        said = run_victim(own, point, account)
        if said[-1:] and said[-1].startswith("points"):
            break  # it got to its end: there is no further point
        answered += said
    assert point > 20, "statements, commits and head files"
    key = own.key(account)
    with running_server(own) as server, server.client(key) as client:
        found = check(own)
        assert found["findings"] == []
        places = set()
        for ack_id in answered:
            answer = client.get(
                f"/v1/acknowledgments/{ack_id}/proof", headers={"Prefer": "wait=10"}
            )
            assert answer.status_code == 200, answer.text
            evidence = client.get(f"/v1/acknowledgments/{ack_id}").json()["evidence"]
            places.add((evidence["log"], evidence["index"]))
    assert len(places) == len(answered) > 5, "no index is used twice"
    assert all(state["suspended"] is None for state in own.read("log", "status"))
