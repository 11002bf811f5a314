"""The policy that is handed out: the keys of the logs, and the witnesses of the operator."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from countersign.base.values import Mode
from countersign.core.acknowledgments import evidence_routes
from countersign.core.dossiers.dossier import DossierQuery, dossier
from countersign.core.log import logs_sql
from countersign.core.log.model import StoredCheckpoint
from countersign.core.log.rotation import rotate_log_key
from countersign.operate.bootstrap import Deployment as Opened
from countersign_evidence.note import COSIGNATURE, ED25519, Verifier
from countersign_evidence.policy import parse_policy
from countersign_evidence.verification import verify_file
from tests.cli.notice_files import write_notice
from tests.sealing.inside import ShiftedClock, acknowledge_inside, opened
from tests.sealing.witness import Witness, served
from tests.support.service import Deployment

NOTICE = "storage-law"


async def newest(service: Opened) -> StoredCheckpoint:
    await service.log.seal.settle()
    log = (await service.log.seal.current(refresh=True))[Mode.LIVE]
    found = await service.database.read(logs_sql.latest, log.id)
    assert found
    return found


def test_the_operators_comments_and_addresses_are_not_handed_out(
    embedded: Deployment, tmp_path: Path
) -> None:
    """Neither by the command nor by the server; the witness is asked all the same."""
    vkey = Verifier("one.example", COSIGNATURE, bytes(31) + b"\x01").vkey
    file = tmp_path / "witnesses.policy"
    file.write_text(
        f"# internal: token s3cr3t\n\n witness\tone  {vkey} https://u:s3cr3t@one.example/\n"
        "group all any one\n#\nquorum all"
    )
    answer = replace(embedded, settings={"WITNESS_POLICY_FILE": str(file)})
    handed_out = answer.run("log", "policy").stdout
    assert handed_out.endswith(f"\nwitness one {vkey}\ngroup all any one\nquorum all\n")
    assert "s3cr3t" not in handed_out
    assert "one.example/" not in handed_out


def test_a_witness_key_published_as_0x01_is_taken_as_0x04(
    embedded: Deployment, tmp_path: Path
) -> None:
    """It is asked, its cosignature counts, and the policy names its signing key."""
    account = embedded.account("vendor")
    embedded.run("notices", "publish", str(write_notice(tmp_path / "notice.toml")))
    file = tmp_path / "witnesses.policy"

    def keys() -> list[Verifier]:
        return list(parse_policy(embedded.run("log", "policy").stdout.encode()).logs)

    witness = Witness(keys)
    published = Verifier(witness.verifier.name, ED25519, witness.verifier.public_key)

    async def act() -> None:
        async with opened(embedded, WITNESS_POLICY_FILE=str(file)) as service:
            made = await acknowledge_inside(service, account, NOTICE, Mode.LIVE)
            await service.log.seal.settle()
            await service.log.anchor.anchor()
            policy = await service.log.policy.text(Mode.LIVE)
            assert f"witness w {witness.verifier.vkey}\n".encode() in policy
            verdict = verify_file(
                await evidence_routes.proof(service.acknowledgments, *made), parse_policy(policy)
            )
            assert verdict.ok, verdict.line()

    with served(witness) as url:
        file.write_text(f"witness w {published.vkey} {url}\nquorum w\n")
        asyncio.run(act())


def test_a_witness_with_an_unknown_kind_of_key_makes_no_policy_unreadable(
    embedded: Deployment, tmp_path: Path
) -> None:
    """It is handed out to readers that know the kind; here it does not count."""
    odd = Verifier("odd.example", 7, b"some key").vkey
    known = Verifier("one.example", COSIGNATURE, bytes(31) + b"\x01").vkey
    file = tmp_path / "witnesses.policy"
    file.write_text(
        f"witness odd {odd} http://127.0.0.1:9\nwitness one {known}\n"
        "group some any odd one\nquorum some\n"
    )
    answer = replace(embedded, settings={"WITNESS_POLICY_FILE": str(file)})
    assert f"witness odd {odd}\n" in answer.run("log", "policy").stdout


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("log {log}\nquorum none\n", "has log lines"),
        ("# first\nwitness one {log}x\nquorum none\n", "line 2"),
        ("witness one {log}\n", "quorum line"),
    ],
)
def test_a_witness_file_that_cannot_be_used_is_refused_with_its_reason(
    embedded: Deployment, tmp_path: Path, lines: str, why: str
) -> None:
    """The number of the line counts comments, too."""
    vkey = Verifier("one.example", ED25519, bytes(31) + b"\x01").vkey
    file = tmp_path / "witnesses.policy"
    file.write_text(lines.format(log=vkey))
    answer = replace(embedded, settings={"WITNESS_POLICY_FILE": str(file)})
    done = answer.run("log", "policy", check=False)
    assert done.returncode != 0
    assert "invalid_configuration" in done.stderr
    assert why in done.stderr


def test_each_key_of_a_log_names_the_sizes_for_which_it_counts(
    own: Deployment, tmp_path: Path
) -> None:
    """In comments, which other readers skip: each key signed the checkpoints of its sizes.

    The steps of the clock are longer than a server may go on signing with a retired key.
    """
    account = own.account("vendor")
    own.run("notices", "publish", str(write_notice(tmp_path / "notice.toml")))
    clock = ShiftedClock()

    async def act() -> None:
        made = []
        async with opened(own, clock) as service:
            for _rotation in range(3):
                for _ in range(4):
                    await acknowledge_inside(service, account, NOTICE, Mode.LIVE)
                    made.append(await newest(service))
                    clock.seconds += 100
                await rotate_log_key(service.log, timedelta(seconds=15))
                await service.log.seal.current(refresh=True)
            clock.seconds += 200
            await rotate_log_key(service.log, timedelta(days=1))
            text = (await service.log.policy.text(Mode.LIVE)).decode()
            assert text == (await service.log.policy.text(Mode.LIVE)).decode()
        found = re.findall(r"# sizes ([0-9]+) (?:to ([0-9]+)|on)\nlog (\S+)\n", text)
        assert [bool(end) for _, end, _ in found] == [True, True, True, False, False]
        assert len(parse_policy(text.encode()).logs) == len(found)
        assert found[0][0] == "0"
        by_key = [parse_policy(f"log {vkey}\nquorum none\n".encode()) for _, _, vkey in found]
        for checkpoint in made:
            counting = [
                policy
                for (start, end, _), policy in zip(found, by_key, strict=True)
                if int(start) <= checkpoint.size <= int(end or checkpoint.size)
            ]
            assert counting, checkpoint.size
            for policy in counting:
                policy.check_signature(checkpoint.note)

    asyncio.run(act())


def test_a_dossier_stays_the_same_when_the_log_gets_another_key(
    embedded: Deployment, tmp_path: Path
) -> None:
    """Its policy holds the keys that signed its checkpoint, and no others."""
    account = embedded.account("vendor")
    embedded.run("notices", "publish", str(write_notice(tmp_path / "notice.toml")))

    async def act() -> None:
        async with opened(embedded) as service:
            made = await acknowledge_inside(service, account, NOTICE, Mode.LIVE)
            await service.log.seal.settle()
            before = await dossier(service.acknowledgments, *made, DossierQuery())
            await rotate_log_key(service.log)
            assert await dossier(service.acknowledgments, *made, DossierQuery()) == before
            assert verify_file(before).ok
            assert verify_file(before, await service.log.policy.without_quorum(Mode.LIVE)).ok

    asyncio.run(act())
