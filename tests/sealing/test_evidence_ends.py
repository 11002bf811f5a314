"""An account sets when its evidence ends: records go, the log and others' evidence stay."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from countersign.base.values import Mode
from tests.sealing.acts import acknowledge, check, get
from tests.sealing.inside import ShiftedClock, acknowledge_inside, opened
from tests.support.service import Deployment, running_server

pytestmark = [pytest.mark.both_engines, pytest.mark.long]

EIGHT_YEARS = 8 * 366 * 86_400.0


def acknowledged_eight_years_ago(own: Deployment, account: str, cbid: str | None = None) -> str:
    """The ack_id of an acknowledgment made then, by the service's clock."""

    async def act() -> str:
        async with opened(own, ShiftedClock(-EIGHT_YEARS)) as deployment:
            return (await acknowledge_inside(deployment, account, "ab1263", Mode.TEST, cbid))[1]

    return asyncio.run(act())


def test_ended_orders_are_deleted_and_all_others_verify(own: Deployment, tmp_path: Path) -> None:
    """The proof that the vendor holds, the log, and the neighbours' records."""
    account, other = own.account("vendor"), own.account("other vendor")
    old, theirs = (acknowledged_eight_years_ago(own, one) for one in (account, other))
    with (
        running_server(own) as server,
        server.client(own.key(account)) as client,
        server.client(own.key(other)) as stranger,
    ):
        young, proof = acknowledge(client), tmp_path / "old.proof"
        proof.write_bytes(get(client, old, "proof"))
        assert own.read("retention", "end", "--yes") == {"due": [], "ended": []}
        refused = own.run("accounts", "evidence-end", account, "--years", "6", check=False)
        assert (refused.returncode, "7 to 100 years" in refused.stderr) == (1, True)
        set_ = own.read("accounts", "evidence-end", account, "--years", "7")
        assert set_ == {"account_id": account, "evidence_years": 7}
        listed = own.read("retention", "end", "--dry-run")
        assert [(due["id"], due["records"], due["hold_id"]) for due in listed["due"]] == [
            (old, [old], None)
        ]
        assert listed["ended"] == []
        assert client.get(f"/v1/acknowledgments/{old}").status_code == 200
        assert own.read("retention", "end", "--yes")["ended"] == [old]
        for what in ("", "/proof", "/certificate", "/dossier"):
            answer = client.get(f"/v1/acknowledgments/{old}{what}")
            assert answer.status_code == 404, what
            assert "has ended, and its record was deleted" in answer.text
        answer = stranger.get(f"/v1/acknowledgments/{old}")
        assert (answer.status_code, "ended" in answer.text) == (404, False)
        page = client.get("/v1/acknowledgments").json()["data"]
        assert [one["ack_id"] for one in page] == [young]
        assert client.get("/v1/acknowledgments?session_id=s").json()["data"] == []
        assert stranger.get(f"/v1/acknowledgments/{theirs}").status_code == 200
        later = acknowledge(client)
        get(client, later, "proof")
        policy = tmp_path / "policy"
        policy.write_text(own.run("log", "policy", "--mode", "test").stdout)
        own.run("verify", str(proof), "--policy", str(policy))
    assert check(own)["findings"] == []
    assert own.read("retention", "end", "--yes") == {"due": [], "ended": []}
    actions = [(one["action"], one["details"]) for one in own.read("audit", account)]
    assert ("evidence_end_set", {"years": 7}) in actions
    assert ("evidence_ended", {"records": 1}) in actions
    if "DATABASE_URL" not in own.settings:
        restored = restore(own, tmp_path)
        assert check(restored)["findings"] == []


def test_a_hold_keeps_evidence_that_has_reached_its_end(own: Deployment) -> None:
    """The list names it, and held data is deleted after the hold; unsealed data, later."""
    account = own.account("vendor")
    old = acknowledged_eight_years_ago(own, account)
    own.run("accounts", "evidence-end", account, "--years", "7")
    assert own.read("retention", "end", "--yes") == {"due": [], "ended": []}
    # First: the server erases at once whose period of retention has ended.
    hold = own.run("holds", "place", old, "--reason", "case 7").stdout.strip()
    with running_server(own) as server, server.client(own.key(account)) as client:
        get(client, old, "proof")
    answer = own.read("retention", "end", "--yes")
    assert [(due["id"], due["hold_id"]) for due in answer["due"]] == [(old, hold)]
    assert answer["ended"] == []
    own.run("holds", "release", hold)
    own.run("accounts", "evidence-end", account, "--never")
    assert own.run("accounts", "evidence-end", account).stdout.strip() == "never"
    assert own.read("retention", "end", "--yes") == {"due": [], "ended": []}
    own.run("accounts", "evidence-end", account, "--years", "8")
    assert own.read("retention", "end", "--yes")["ended"] == [old]


def restore(own: Deployment, place: Path) -> Deployment:
    """A deployment made from a backup."""
    own.run("backup", str(place / "backup"))
    elsewhere = place / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    for name in ("secret.key", "key-encryption.key"):
        (elsewhere / name).write_bytes((own.data_dir / name).read_bytes())
        (elsewhere / name).chmod(0o600)
    restored = Deployment(data_dir=elsewhere, settings=own.settings)
    restored.run("restore", str(place / "backup"), "--yes")
    restored.run("init")
    return restored
