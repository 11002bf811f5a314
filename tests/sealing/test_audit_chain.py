"""The audit is a chain, and the log holds its heads."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from sqlalchemy import Connection, text

from countersign.base.values import Mode, parse_rfc3339
from countersign.core.access.account import create_account, find_account
from countersign.core.access.audit import AuditAction
from countersign.core.access.keys import create_key
from countersign.core.log.audit_chain import check_audit, entry_of, seal_audit
from countersign.core.log.check import LogFinding, check_logs
from countersign.operate.bootstrap import Deployment
from countersign.operate.housekeeping import keep_house
from countersign_evidence.audit import FIRST, entry_digest
from countersign_evidence.offline import verify
from tests.http.backstage import another_deployment
from tests.people.crew import Console, in_console
from tests.sealing.inside import ShiftedClock, acknowledge_inside, opened
from tests.support.acts import done
from tests.support.engines import ENGINES
from tests.support.postgres import PostgresServer

T = TypeVar("T")
VECTORS = Path(__file__).parents[2] / "spec" / "vectors" / "audit" / "chain.json"


@pytest.fixture(params=ENGINES)
def server(request: pytest.FixtureRequest) -> PostgresServer | None:
    if request.param == "sqlite":
        return None
    found: PostgresServer = request.getfixturevalue("postgres_server")
    return found


def inside(
    folder: Path,
    server: PostgresServer | None,
    work: Callable[[Deployment, ShiftedClock], Awaitable[T]],
) -> T:
    async def run() -> T:
        clock = ShiftedClock()
        async with opened(another_deployment(folder / "audit", server), clock) as deployment:
            return await work(deployment, clock)

    return asyncio.run(run())


async def findings(deployment: Deployment) -> list[str]:
    return [finding async for finding, _ in check_audit(deployment.log)]


async def heads(deployment: Deployment) -> list[str]:
    def read(connection: Connection) -> list[str]:
        rows = connection.execute(
            text("SELECT body FROM deployment_records WHERE type = 'audit_head' ORDER BY id")
        )
        return [json.loads(row.body)["head"] for row in rows]

    return await deployment.database.read(read)


def test_the_digests_match_the_specification() -> None:
    """Anyone with entries and salts computes the same."""
    before = FIRST
    rows: list[dict[str, Any]] = json.loads(VECTORS.read_text(encoding="utf-8"))["entries"]
    for row in rows:
        entry: Any = SimpleNamespace(**row["entry"] | {"at": parse_rfc3339(row["entry"]["at"])})
        before = entry_digest(bytes.fromhex(row["salt"]), before, entry_of(entry))
        assert before.hex() == row["digest"]


@pytest.mark.both_engines
def test_the_head_is_sealed_once_an_hour_if_it_moved(
    tmp_path: Path, server: PostgresServer | None
) -> None:
    """And it contains only a digest; several servers at the same moment seal it once."""

    async def work(deployment: Deployment, clock: ShiftedClock) -> list[bool]:
        await create_account(deployment.access, "first")
        sealed = await asyncio.gather(*(seal_audit(deployment.log) for _ in range(3)))
        assert sum(head is not None for head in sealed) == 1
        found = []
        for seconds, act in ((60, True), (3600, False), (3600, False), (3600, True)):
            clock.seconds += seconds
            if act:
                await create_account(deployment.access, f"at {clock.seconds}")
            found.append(await seal_audit(deployment.log) is not None)
        assert len(set(await heads(deployment))) == 1 + sum(found)
        assert await findings(deployment) == []
        assert [f async for f in check_logs(deployment.log) if isinstance(f, LogFinding)] == []
        return found

    assert inside(tmp_path, server, work) == [False, True, False, True]


@pytest.mark.one_engine
def test_a_server_seals_it(tmp_path: Path) -> None:
    """In the background, from the first turn on."""

    async def work(deployment: Deployment, _clock: ShiftedClock) -> list[str]:
        await create_account(deployment.access, "first")
        house = asyncio.create_task(keep_house(deployment.operations))
        found: list[str] = []
        for _ in range(200):
            found = await heads(deployment)
            if found:
                break
            await asyncio.sleep(0.05)
        house.cancel()
        return found

    assert len(inside(tmp_path, None, work)) == 1


TAMPERED = {
    "changed": "UPDATE audit_log SET actor = 'nobody' WHERE action = 'account_renamed'",
    "taken away": "DELETE FROM audit_log WHERE action = 'account_renamed'",
    "cut off": "DELETE FROM audit_chain WHERE position = (SELECT max(position) FROM audit_chain)",
    "left out": "DELETE FROM audit_chain WHERE position = 1",
    "forgotten": "DELETE FROM audit_chain",
}


@pytest.mark.one_engine
@pytest.mark.parametrize("how", TAMPERED)
def test_a_tampered_entry_is_found(how: str, tmp_path: Path) -> None:
    """By an attacker with every right in the database, but without the log's key."""

    async def work(deployment: Deployment, _clock: ShiftedClock) -> list[str]:
        await create_account(deployment.access, "first")
        for _ in range(2):
            await deployment.access.audit.note(AuditAction.ACCOUNT_RENAMED, "x")
        await seal_audit(deployment.log)
        assert await findings(deployment) == []

        def tamper(connection: Connection) -> None:
            for table in ("audit_log", "audit_chain"):
                for trigger in ("update", "delete"):
                    connection.execute(text(f"DROP TRIGGER {table}_no_{trigger}"))
            connection.execute(text(TAMPERED[how]))

        await deployment.database.write(tamper)
        return await findings(deployment)

    assert inside(tmp_path, None, work) != []


@pytest.mark.one_engine
@pytest.mark.parametrize(("seconds", "is_remark"), [(0.5, True), (61, False)])
def test_an_entry_that_is_dated_back_is_named(
    seconds: float, is_remark: bool, tmp_path: Path
) -> None:
    """Up to what clocks may differ it can be honest: a remark. More is a finding."""

    async def work(deployment: Deployment, clock: ShiftedClock) -> list[tuple[str, bool]]:
        await create_account(deployment.access, "first")
        await seal_audit(deployment.log, now_too=True)
        clock.seconds -= seconds
        await deployment.access.audit.note(AuditAction.ACCOUNT_RENAMED, "x")
        await seal_audit(deployment.log, now_too=True)
        return [finding async for finding in check_audit(deployment.log)]

    ((message, found),) = inside(tmp_path, None, work)
    assert "s earlier than one before it" in message
    assert found is is_remark


@pytest.mark.one_engine
def test_a_reader_of_before_passes_over_a_sealed_head(tmp_path: Path) -> None:
    """A dossier from a log with one is accepted by a verifier that does not know the type."""
    source = Path(verify.__file__).read_text(encoding="utf-8")
    before = tmp_path / "verify.py"
    before.write_text(
        source.replace('    "audit_head": record_of("at", "head"),\n', ""), encoding="utf-8"
    )
    assert before.read_text(encoding="utf-8") != source

    async def work(console: Console) -> bytes:
        account = await find_account(console.deployment.access, await console.account("vendor"))
        key = (await done(create_key, console.deployment.access, account.id, Mode.LIVE)).token
        assert await seal_audit(console.deployment.log) is not None
        _, ack_id = await acknowledge_inside(console.deployment, account.id, "ab1263", Mode.LIVE)
        await console.account("another")
        assert await seal_audit(console.deployment.log, now_too=True) is not None
        await console.deployment.log.seal.settle()
        path = f"/v1/acknowledgments/{ack_id}/dossier"
        reply = await console.http("GET", path, {"Authorization": f"Bearer {key}"})
        assert reply.status == 200
        return reply.body

    dossier = tmp_path / "dossier.zip"
    dossier.write_bytes(in_console(tmp_path, work))
    ran = subprocess.run(
        [sys.executable, "-I", "-S", before, dossier], capture_output=True, timeout=60, check=False
    )
    assert b"consistent" in ran.stdout.lower(), ran.stdout + ran.stderr
    assert b"FAILED" not in ran.stdout
