"""`countersign audit`: what operators do leaves a trace, for the data of any account."""

from __future__ import annotations

import asyncio
import getpass
import json
import re

from click.testing import CliRunner

from countersign.base.values import Mode
from countersign_evidence.root import main
from tests.cli.conftest import Bench
from tests.sealing.inside import acknowledge_inside, opened

NOTICE = "ab1263"


def test_every_act_of_an_operator_is_listed_with_its_actor(initialised: Bench) -> None:
    """In order, and without personal data."""
    before = len(initialised.read("audit"))
    account = initialised.account("vendor")

    async def acknowledged() -> str:
        async with opened(initialised) as deployment:
            return (await acknowledge_inside(deployment, account, NOTICE, Mode.TEST))[1]

    ack_id = asyncio.run(acknowledged())
    key = initialised.read("keys", "create", "--account", account, "--mode", "test")["key_id"]
    initialised.run("keys", "rotate", key)
    initialised.run("keys", "revoke", key, "--yes")
    initialised.run("acknowledgments", "export", "--account", "vendor", "--mode", "test")
    initialised.run("dossier", ack_id, "--output", str(initialised.data_dir / "b"))
    hold = initialised.run("holds", "place", ack_id, "--reason", "case 7").stdout.strip()
    initialised.refused("erase", ack_id, "--yes")
    for _ in range(2):
        initialised.run("holds", "release", hold)
    initialised.run("erase", ack_id, "--yes")
    version = initialised.read("notices", "list")[0]["version"]
    initialised.run("notices", "withdraw", NOTICE, "--version", version, "--enjoined", "--yes")
    initialised.run("log", "rotate-key", "--yes")
    initialised.run("vault", "rotate", "--yes")
    answer = initialised.read("audit")[before:]
    assert [(entry["action"], entry["subject"]) for entry in answer] == [
        ("account_created", account),
        ("key_created", account),
        ("key_rotated", account),
        ("key_revoked", account),
        ("acknowledgments_exported", account),
        ("dossier_written", ack_id),
        ("hold_placed", ack_id),
        ("hold_released", ack_id),
        ("erased", ack_id),
        ("notice_enjoined", NOTICE),
        ("log_key_rotated", "log"),
        ("vault_rotated", "vault"),
    ]
    assert {entry["actor"] for entry in answer} == {getpass.getuser()}
    # Not in the letters of a signature.
    assert re.search(r"\bJD\b", json.dumps(answer)) is None
    assert initialised.read("audit", ack_id) == [e for e in answer if e["subject"] == ack_id]
    assert initialised.read("buyers", "audit", account) == initialised.read("audit", account)
    assert hold in initialised.run("audit", ack_id).stdout


def test_an_export_is_checked_without_the_operator(initialised: Bench) -> None:
    """By the policy that was published before; an entry taken out of it is noticed."""
    initialised.account("vendor")
    policy, folder = initialised.data_dir / "published.txt", initialised.data_dir / "audit"
    policy.write_text(initialised.run("log", "policy").stdout, encoding="utf-8")
    said = initialised.read("audit", "export", "--with-chain", str(folder))
    assert said["heads"] >= 1
    assert said["entries"] == len(initialised.read("audit"))
    checked = ["check-audit", str(folder), "--policy", str(policy), "--json"]
    found = CliRunner().invoke(main, checked)
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["sealed"] == said["entries"]
    lines = (folder / "chain.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "chain.jsonl").write_bytes(b"".join(lines[1:]))
    assert CliRunner().invoke(main, checked).exit_code == 1
    for wrong in (["audit", "export"], ["audit", "--with-chain", str(folder)]):
        assert "--with-chain DIR" in initialised.refused(*wrong).replace("\n", " ")
