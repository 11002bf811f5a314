"""Killed between any two steps of a rotation: the old keys or the new ones, and one chain."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pytest

from tests.sealing.acts import check, policy_of
from tests.sealing.live import acknowledge_live, open_for_live
from tests.sealing.test_approvals import Person, rotated
from tests.support import forked
from tests.support.service import Deployment, running_server

pytestmark = [pytest.mark.crash, pytest.mark.both_engines, pytest.mark.long]


def run_victim(deployment: Deployment, point: int, *arguments: str) -> Sequence[str]:
    """Its output until it was killed, or ended."""
    done = forked.run(
        "tests.sealing.rotation_victim", str(point), *arguments,
        environment=deployment.environment,
    )  # fmt: skip
    assert done.returncode in {0, -9}, done.stderr
    return done.stdout.split("\n")[:-1]


def goes_on(deployment: Deployment, folder: Path) -> None:
    """The log is sound, and a server seals in it."""
    key, _ = open_for_live(deployment, folder)
    with running_server(deployment) as server, server.client(key) as client:
        ack_id = acknowledge_live(client)
        answer = client.get(f"/v1/acknowledgments/{ack_id}/proof", headers={"Prefer": "wait=10"})
        assert answer.status_code == 200, answer.text
    assert check(deployment)["findings"] == []


@pytest.mark.timeout(600)
def test_killed_before_any_step_a_rotation_happened_or_did_not(
    own: Deployment, tmp_path: Path
) -> None:
    """An announced one has happened; each leaves a policy of whole keys."""
    announced = 0
    for point in count(1):
        before = len(policy_of(own, "live").logs)
        said = run_victim(own, point)
        announced = int("rotated" in said)
        assert len(policy_of(own, "live").logs) - before in {announced, 1}
        if said[-1:] and said[-1].startswith("points"):
            break
    assert point > 10
    goes_on(own, tmp_path)


@pytest.mark.timeout(600)
def test_killed_before_any_step_the_last_approval_counted_or_did_not(
    own: Deployment, tmp_path: Path
) -> None:
    """Given again, it does the rest: the change happens once."""
    ann, bo = Person(own, tmp_path, "ann"), Person(own, tmp_path, "bo")
    own.run("log", "set-approvers", "--threshold", "2", ann.vkey, bo.vkey, "--yes")
    proposal = rotated(own)
    ann.approves(proposal)
    signed = str(bo.signs(proposal))
    for point in count(1):
        run_victim(own, point, signed)
        if len(policy_of(own, "live").logs) == 2:
            break  # from here on the approval is refused, since the keys have changed
        assert own.read("log", "approvers")["proposal"]["approved_by"] == [ann.vkey]
    assert point > 3
    done = own.run("log", "approve", signed, check=False)
    assert "The keys of the log have changed" in done.stderr
    goes_on(own, tmp_path)
