"""Another server of one PostgreSQL database: its own directory of published heads is empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from countersign_evidence.verification import verify_file
from tests.sealing.acts import acknowledge, get, policy_of
from tests.sealing.witness import wait_for
from tests.support.service import Deployment, running_server


@pytest.mark.postgres
def test_a_new_server_adopts_the_head_of_the_database_and_says_so(
    tmp_path: Path, postgres_url: str
) -> None:
    """Once: then it has a head of its own, and without one it would guard nothing."""
    first = Deployment(data_dir=tmp_path / "first", settings={"DATABASE_URL": postgres_url})
    first.run("init")
    key = first.key(first.account("vendor"))
    with running_server(first) as server, server.client(key) as client:
        get(client, acknowledge(client), "proof")
    keys = {
        "SECRET_KEY_FILE": str(first.data_dir / "secret.key"),
        "KEY_ENCRYPTION_KEY": f"file:{first.data_dir / 'key-encryption.key'}",
    }
    second = Deployment(
        data_dir=tmp_path / "second", settings={"DATABASE_URL": postgres_url} | keys
    )
    heads = [second.data_dir / "heads" / f"{mode}.checkpoint" for mode in ("test", "live")]
    for told in (True, False):
        with running_server(second) as server, server.client(key) as client:
            proof = get(client, acknowledge(client), "proof")
            assert verify_file(proof, policy_of(second)).ok
            wait_for(lambda: all(head.is_file() for head in heads))
            assert ("checkpoint_adopted" in server.log.read_text()) == told
    assert first.read("log", "check")["findings"] == []
