"""The first logs of a deployment, however many commands begin them at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from countersign_evidence.verification import verify_file
from tests.sealing.acts import acknowledge, check, get, policy_of
from tests.support.service import Deployment, running_server


@pytest.mark.postgres
def test_one_of_several_concurrent_inits_begins_the_logs(tmp_path: Path, postgres_url: str) -> None:
    """Each on a host of its own, with one place for the keys: they all seal into one log."""
    keys = tmp_path / "keys"
    hosts = [
        Deployment(
            data_dir=tmp_path / f"host{number}",
            settings={
                "DATABASE_URL": postgres_url,
                "SECRET_KEY_FILE": str(keys / "secret.key"),
                "KEY_ENCRYPTION_KEY": f"file:{keys / 'kek'}",
                "LOG_HEAD_DIR": str(tmp_path / "heads"),
            },
        )
        for number in range(3)
    ]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda host: host.run("init"), hosts))
    key = hosts[0].key(hosts[0].account("vendor"))
    with (
        running_server(hosts[0]) as one,
        running_server(hosts[1]) as two,
        one.client(key) as first,
        two.client(key) as second,
    ):
        made = [acknowledge(client) for client in (first, second) * 3]
        proofs = [get(second, ack_id, "proof") for ack_id in made]
    policy = policy_of(hosts[2])
    assert all(verify_file(proof, policy).ok for proof in proofs)
    assert len(policy.logs) == 1
    assert check(hosts[2])["findings"] == []
