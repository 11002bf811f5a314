"""Created and kept checkpoints, against an oracle that examines all of them."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Connection, delete, insert, select

from countersign.base.config import load_settings
from countersign.base.db.tables import checkpoints, deployment, log_keys
from countersign.base.errors import EvidencePending
from countersign.base.values import Mode, from_ns, to_ms
from countersign.core.access.key import Principal
from countersign.core.acknowledgments.evidence_routes import proof
from countersign.core.log import logs_sql
from countersign.core.log.check import LogFinding, check_logs
from countersign.core.log.fork_guard import SUSPENDED, holds
from countersign.core.log.model import WITNESS, Anchor, Log
from countersign.core.log.operate import begin_epoch
from countersign.core.log.rotation import rotate_log_key
from countersign.operate.bootstrap import Deployment as Opened
from countersign.operate.bootstrap import open_deployment
from countersign.operate.housekeeping import thin_checkpoints
from countersign_evidence.note import Checkpoint, parse_note
from countersign_evidence.policy import parse_policy
from countersign_evidence.verification import verify_file
from tests.cli.notice_files import write_notice
from tests.sealing.inside import acknowledge_inside
from tests.support.depth import some
from tests.support.service import Deployment
from tests.unit.support import HandClock

pytestmark = pytest.mark.both_engines

NOTICE = "storage-law"
DAY_MS = 86_400_000
AROUND_MS = 120_000


class Walk:
    """A deployment at the hands of chance, and all that was ever seen of its checkpoints."""

    def __init__(self, account: str, seed: int) -> None:
        self.account = account
        self.chance = random.Random(seed)
        self.clock = HandClock(ns=time.time_ns() + 10**9)
        self.seen: dict[int, dict[int, tuple[int, bytes]]] = {}
        """For each log, by size: the time of each checkpoint, and its root."""
        self.gone: set[tuple[int, int]] = set()
        self.anchored: set[tuple[int, int]] = set()
        self.made: list[tuple[Principal, str]] = []
        self.looked: dict[int, int] = {}

    async def look(self, service: Opened) -> set[tuple[int, int]]:
        """Note the present checkpoints."""
        found = await service.database.read(lambda c: c.execute(select(checkpoints)).all())
        for row in found:
            self.seen.setdefault(row.log_id, {})[row.size] = to_ms(row.at), bytes(row.root)
        return {(row.log_id, row.size) for row in found}

    async def stays(self, service: Opened) -> set[tuple[int, int]]:
        """The checkpoints that must remain, of all that were ever made."""
        keys = await service.database.read(lambda c: c.execute(select(log_keys)).all())
        kept = set()
        for log_id, seen in self.seen.items():
            moments = [
                to_ms(moment)
                for key in keys
                if key.log_id == log_id
                for moment in (key.created_at, key.retires_at)
                if moment is not None
            ]
            newest = seen[max(seen)][0]
            sizes = sorted(seen)
            for size, after in zip(sizes, [*sizes[1:], None], strict=True):
                at = seen[size][0]
                until = None if after is None else seen[after][0]
                if (
                    until is None
                    or newest - at < DAY_MS
                    or (log_id, size) in self.anchored
                    or any(at - AROUND_MS <= moment <= until + AROUND_MS for moment in moments)
                ):
                    kept.add((log_id, size))
        return kept

    async def live(self, service: Opened) -> Log:
        return (await service.log.seal.current(refresh=True))[Mode.LIVE]

    async def acknowledge(self, service: Opened) -> None:
        self.clock.advance(self.chance.choice((0.0, 0.1, 0.4, 1.0, 3.0)))
        self.made.append(await acknowledge_inside(service, self.account, NOTICE, Mode.LIVE))

    async def seal(self, service: Opened) -> None:
        self.clock.advance(0.25)
        await service.log.seal._seal()

    async def wait(self, _: Opened) -> None:
        self.clock.advance(self.chance.uniform(60, 12 * 3600))

    async def prove(self, service: Opened) -> None:
        """Whatever was acknowledged, also just now."""
        if self.made:
            who, ack_id = self.chance.choice([self.made[-1], *self.made])
            with suppress(EvidencePending):  # on PostgreSQL, and then until the next look
                await proof(service.acknowledgments, who, ack_id)
            await service.log.seal._seal()
            policy = parse_policy(await service.log.policy.text(Mode.LIVE))
            assert verify_file(await proof(service.acknowledgments, who, ack_id), policy).ok

    async def anchor(self, service: Opened, *, late: bool = False) -> None:
        """A witness responds: for the newest checkpoint, or one of long ago."""
        log = await self.live(service)
        there = await self.look(service)
        seen = sorted(self.seen[log.id])
        size = self.chance.choice(seen) if late else seen[-1]
        at = from_ns(self.clock.time_ns())
        one = Anchor(log_id=log.id, size=size, kind=WITNESS, name="w", at=at, body=b"", digest="")
        if not late or (log.id, size) not in self.anchored:
            await service.database.write(logs_sql.add_anchor, one)
        if (log.id, size) in there:
            self.anchored.add((log.id, size))
        else:
            assert not await service.database.read(logs_sql.anchors_of, log.id, size)

    async def late_anchor(self, service: Opened) -> None:
        await self.anchor(service, late=True)

    async def rotate(self, service: Opened) -> None:
        overlap = timedelta(seconds=self.chance.choice((60, 3600)))
        await rotate_log_key(service.log, overlap)

    async def end(self, service: Opened) -> None:
        await begin_epoch(service.log, Mode.LIVE, "a new one")

    async def thin(self, service: Opened) -> None:
        """The required ones are left; no other could be deleted, and no information is lost."""
        policy = await service.log.policy.text(Mode.LIVE)
        before = await self.look(service)
        expected = await self.stays(service) & before
        deletable = await service.database.write(lambda c: which_go(c, before))
        assert before - deletable == expected
        deleted = await thin_checkpoints(service.database, self.looked)
        left = await self.look(service)
        assert left == expected
        assert deleted == len(before - left)
        self.gone |= before - left
        assert await service.log.policy.text(Mode.LIVE) == policy
        for log_id, size in self.chance.sample(sorted(self.gone), min(len(self.gone), 3)):
            root = self.seen[log_id][size][1]
            for known, right in ((root, True), (bytes(32), False)):
                published = Checkpoint("any", size, known)
                assert await service.database.read(holds, log_id, published) is right


def which_go(connection: Connection, all_: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """Which of these the database allows to delete, each tried alone and undone."""
    gone = set()
    for log_id, size in all_:
        attempt = connection.begin_nested()
        one = (checkpoints.c.log_id == log_id) & (checkpoints.c.size == size)
        try:
            connection.execute(delete(checkpoints).where(one))
            gone.add((log_id, size))
        except Exception as error:  # noqa: BLE001 - the engines have other ones
            assert "checkpoints is append-only" in str(error)  # noqa: PT017
        finally:
            attempt.rollback()
    return gone


def inside(own: Deployment, clock: HandClock, act: Callable[[Opened], Awaitable[None]]) -> None:
    async def done() -> None:
        settings = load_settings(own.environment)
        async with open_deployment(settings, clock=clock) as service:
            await act(service)

    asyncio.run(done())


@pytest.mark.parametrize("seed", some(range(3)))
def test_only_checkpoints_that_prove_nothing_more_are_deleted(
    own: Deployment, tmp_path: Path, seed: int
) -> None:
    """Random: acts, witnesses in time and late, other keys, new epochs, passing days."""
    own.run("notices", "publish", str(write_notice(tmp_path / "notice.toml")))
    walk = Walk(own.account("vendor"), seed)
    steps = [walk.acknowledge] * 8 + [walk.seal] * 5 + [walk.wait] * 4 + [walk.prove] * 3
    steps += [walk.thin] * 2 + [walk.anchor, walk.late_anchor, walk.rotate]

    async def act(service: Opened) -> None:
        for number in range(240):
            await (walk.end if number == 120 else walk.chance.choice(steps))(service)
            await walk.look(service)
        await walk.wait(service)
        walk.clock.advance(2 * 86400)
        await walk.acknowledge(service)
        await service.log.seal.settle()
        await walk.thin(service)
        assert len(walk.gone) > 5
        found = [step async for step in check_logs(service.log) if isinstance(step, LogFinding)]
        assert found == []
        policy = parse_policy(await service.log.policy.text(Mode.LIVE))
        for who, ack_id in walk.made:
            assert verify_file(await proof(service.acknowledgments, who, ack_id), policy).ok

    inside(own, walk.clock, act)


@pytest.mark.parametrize("suspended", [False, True])
def test_a_busy_log_has_one_checkpoint_a_second(
    own: Deployment, tmp_path: Path, suspended: bool
) -> None:
    """If no caller waits; the next one comes within the second even without further records.

    Even while the other mode's log is suspended, which is checked all the time.
    """
    own.run("notices", "publish", str(write_notice(tmp_path / "notice.toml")))
    walk = Walk(own.account("vendor"), 0)

    async def act(service: Opened) -> None:
        if suspended:
            reason = {"name": f"{SUSPENDED}:test", "value": b"a restore"}
            await service.database.write(lambda c: c.execute(insert(deployment), reason).rowcount)
        await service.log.seal.settle()
        walk.clock.advance(5)
        before = await walk.look(service)
        for _ in range(40):  # ten seconds, four a second
            walk.made.append(await acknowledge_inside(service, walk.account, NOTICE, Mode.LIVE))
            await walk.seal(service)
        made = await walk.look(service) - before
        assert 9 <= len(made) <= 11
        for _ in range(4):
            await walk.seal(service)
        await walk.look(service)
        log = await walk.live(service)
        assert log.size == max(walk.seen[log.id])

    inside(own, walk.clock, act)


def test_a_caller_waiting_for_a_proof_gets_its_checkpoint_at_once(
    own: Deployment, tmp_path: Path
) -> None:
    """However young the last one is."""
    own.run("notices", "publish", str(write_notice(tmp_path / "notice.toml")))
    walk = Walk(own.account("vendor"), 0)

    async def act(service: Opened) -> None:
        for _ in range(3):
            who, ack_id = await acknowledge_inside(service, walk.account, NOTICE, Mode.LIVE)
            with pytest.raises(EvidencePending) if on_postgres(service) else nullcontext():
                await proof(service.acknowledgments, who, ack_id)
            await service.log.seal._seal()
            assert await proof(service.acknowledgments, who, ack_id)

    inside(own, walk.clock, act)


def on_postgres(service: Opened) -> bool:
    return service.database.url.get_backend_name() == "postgresql"


@pytest.mark.parametrize("suspended", [False, True])
def test_an_epoch_ends_with_a_checkpoint_of_all_its_entries(
    own: Deployment, tmp_path: Path, suspended: bool
) -> None:
    """Including those of its last second, and if sealing is suspended."""
    own.run("notices", "publish", str(write_notice(tmp_path / "notice.toml")))
    walk = Walk(own.account("vendor"), 0)

    async def act(service: Opened) -> None:
        await service.log.seal.settle()
        for _ in range(3):
            walk.made.append(await acknowledge_inside(service, walk.account, NOTICE, Mode.LIVE))
        if suspended:
            reason = {"name": f"{SUSPENDED}:live", "value": b"a restore"}
            await service.database.write(lambda c: c.execute(insert(deployment), reason).rowcount)
        old = await walk.live(service)
        await begin_epoch(service.log, Mode.LIVE, "a new one")
        await walk.look(service)
        assert max(walk.seen[old.id]) == old.size
        await service.log.seal.settle()
        policy = parse_policy(await service.log.policy.text(Mode.LIVE))
        for who, ack_id in walk.made:
            assert verify_file(await proof(service.acknowledgments, who, ack_id), policy).ok

    inside(own, walk.clock, act)


def test_a_key_that_has_retired_signs_no_more_however_busy_the_log_is(
    own: Deployment, tmp_path: Path
) -> None:
    """Each look falls just after a checkpoint that an act has signed itself."""
    own.run("notices", "publish", str(write_notice(tmp_path / "notice.toml")))
    walk = Walk(own.account("vendor"), 0)

    async def act(service: Opened) -> None:
        await service.log.seal._seal()
        await rotate_log_key(service.log, timedelta(seconds=30))
        await service.log.seal.settle()
        for _ in range(100):
            walk.clock.advance(1)
            for _ in range(2):
                await acknowledge_inside(service, walk.account, NOTICE, Mode.LIVE)
            await service.log.seal._seal()
        log = await walk.live(service)
        newest = await service.database.read(logs_sql.latest, log.id)
        assert newest is not None
        assert len(parse_note(newest.note).signatures) == 1

    inside(own, walk.clock, act)


def test_entries_beyond_the_last_checkpoint_are_proved_without_further_entries(
    own: Deployment, tmp_path: Path
) -> None:
    """For example after moving a database whose server was killed in their second."""
    own.run("notices", "publish", str(write_notice(tmp_path / "notice.toml")))
    walk = Walk(own.account("vendor"), 0)

    async def act(service: Opened) -> None:
        for _ in range(2):
            walk.made.append(await acknowledge_inside(service, walk.account, NOTICE, Mode.LIVE))
            await service.log.seal.settle(sign=False)
        await walk.look(service)
        log = await walk.live(service)
        assert log.size > max(walk.seen[log.id])
        assert await proof(service.acknowledgments, *walk.made[-1])

    inside(own, walk.clock, act)
