"""A log gets a new key: both sign for a while, and every proof verifies under the new policy."""

from __future__ import annotations

from pathlib import Path

from countersign.evidence.note import parse_note
from countersign.evidence.proof import parse_proof
from countersign.evidence.verification import verify_file
from tests.sealing.acts import check, get, policy_of
from tests.sealing.live import acknowledge_live, open_for_live
from tests.support.service import Deployment, running_server


def signatures(proof: bytes) -> int:
    return len(parse_note(parse_proof(proof).checkpoint).signatures)


def test_a_running_server_takes_up_the_new_key(own: Deployment, tmp_path: Path) -> None:
    """Older proofs stay valid; during the overlap whoever knows only the old key can check too."""
    key, live = open_for_live(own, tmp_path)
    old_policy = policy_of(own, "live")
    with running_server(live) as server, server.client(key) as client:
        before = get(client, acknowledge_live(client), "proof")
        own.run("log", "rotate-key", "--yes")
        after = get(client, acknowledge_live(client), "proof")
        own.run("log", "rotate-key", "--overlap", "1s", "--yes")
    policy = policy_of(own, "live")
    assert (signatures(before), signatures(after)) == (1, 2)
    assert len(policy.logs) == 3
    for proof in (before, after):
        assert verify_file(proof, policy).ok
        assert verify_file(proof, old_policy).ok
    assert check(own)["findings"] == []


def test_the_key_of_a_test_log_never_changes(own: Deployment) -> None:
    """It is published; rotating concerns the live log alone."""
    before = policy_of(own)
    own.run("log", "rotate-key", "--yes")
    assert policy_of(own) == before
