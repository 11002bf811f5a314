"""A log gets a new key: both sign for a while, and every proof verifies under the new policy."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest

from countersign.base.config import load_settings
from countersign.base.values import Clock, Mode
from countersign.core.log import logs_sql
from countersign.core.notices.notice_file import parse_notice_file
from countersign.core.notices.publish import publish
from countersign.operate.bootstrap import open_deployment
from countersign_evidence.errors import EvidenceError
from countersign_evidence.key_history import KeyRange, check_history
from countersign_evidence.note import ED25519, MLDSA_COSIGNATURE, parse_note
from countersign_evidence.offline import verify
from countersign_evidence.proof import parse_proof
from countersign_evidence.verification import verify_file
from tests.cli.notice_files import write_notice
from tests.sealing.acts import check, get, policy_of
from tests.sealing.inside import ShiftedClock, opened
from tests.sealing.live import acknowledge_live, open_for_live
from tests.support.acts import done
from tests.support.service import Deployment, running_server

pytestmark = pytest.mark.both_engines


def signatures(proof: bytes) -> int:
    return len(parse_note(parse_proof(proof).checkpoint).signatures)


def test_a_running_server_takes_up_the_new_key(own: Deployment, tmp_path: Path) -> None:
    """Older proofs stay valid; during the overlap readers with only the old key can check, too."""
    key, live = open_for_live(own, tmp_path)
    old_policy = policy_of(own, "live")
    with running_server(live) as server, server.client(key) as client:
        before = get(client, acknowledge_live(client), "proof")
        own.run("log", "rotate-key", "--yes")
        after = get(client, acknowledge_live(client), "proof")
        own.run("log", "rotate-key", "--overlap", "1s", "--yes")
        said = server.log.read_text()
    assert "log_keys_changed" in said
    assert "sealing_suspended" not in said, "a planned change is no alarm"
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


def test_the_history_of_the_keys_is_served_signed_by_old_and_new(own: Deployment) -> None:
    """Trust in the first key leads to the others; the bytes are the same until the keys change."""
    (first,) = policy_of(own, "live").logs
    with running_server(own) as server, server.client() as client:
        alone = client.get("/v1/log/live/1/keys")
        own.run("log", "rotate-key", "--yes")
        both = client.get("/v1/log/live/1/keys")
        assert client.get("/v1/log/live/1/keys").content == both.content
        assert client.get("/v1/log/live/2/keys").status_code == 404
    assert check_history(alone.content, [first]).ranges == (KeyRange(0, None, first),)
    history = check_history(both.content, [first])
    assert [found.key for found in history.ranges] == [*policy_of(own, "live").logs]
    old, new = history.ranges
    assert (old.start, old.end, new.end) == (0, None, None)
    assert history.counts(old.key, new.start)
    assert not history.counts(new.key, new.start - 1)
    assert len(parse_note(both.content).signatures) == 2
    assert own.read("log", "keys")["history"].encode() == both.content


def test_a_log_may_sign_by_ml_dsa_too(own: Deployment, tmp_path: Path) -> None:
    """Each line verifies alone; with the setting gone, the next rotation ends it."""
    both = replace(own, settings={**own.settings, "LOG_ML_DSA": "true"})
    both.run("log", "rotate-key", "--yes")
    key, live = open_for_live(both, tmp_path)
    with running_server(live) as server, server.client(key) as client:
        proof = get(client, acknowledge_live(client), "proof")
        made_file = get(client, acknowledge_live(client), "dossier")
    policy = policy_of(live, "live")
    assert [log.kind for log in policy.logs] == [ED25519, ED25519, MLDSA_COSIGNATURE]
    assert signatures(proof) == 3
    for log in policy.logs:
        alone = replace(policy, logs=(log,))
        assert verify_file(proof, alone).ok
        assert verify_file(made_file, alone).ok
        read = verify.read_policy(f"log {log.vkey}\nquorum none\n".encode())
        assert verify.verify_bytes(made_file, read).ok
    assert check(live)["findings"] == []
    own.run("log", "rotate-key", "--yes")
    kinds = [log.kind for log in policy_of(own, "live").logs]
    assert kinds == [ED25519, ED25519, MLDSA_COSIGNATURE, ED25519]


class Later:
    """A clock that is eight days ahead: any overlap of the usual length is over."""

    monotonic = staticmethod(time.monotonic)

    def time_ns(self) -> int:
        """The time then."""
        return time.time_ns() + 8 * 24 * 3600 * 1_000_000_000


def test_after_the_overlap_only_the_new_key_signs(embedded: Deployment, tmp_path: Path) -> None:
    """Older checkpoints stay valid; readers with only the old key cannot check new ones."""
    old_policy = policy_of(embedded, "live")
    embedded.run("log", "rotate-key", "--overlap", "7d", "--yes")

    async def newest(notice: bytes, clock: Clock | None = None) -> bytes:
        settings = load_settings(embedded.environment)
        async with open_deployment(settings, clock=clock) as opened:
            await done(publish, opened.notices, parse_notice_file(notice), "")
            await opened.log.seal.settle()
            log = (await opened.log.seal.current(refresh=True))[Mode.LIVE]
            latest = await opened.database.read(logs_sql.latest, log.id)
            assert latest is not None
            return latest.note

    notices = [
        write_notice(tmp_path / "notice.toml", notice_id=name).read_bytes()
        for name in ("one", "another")
    ]
    during = asyncio.run(newest(notices[0]))
    after = asyncio.run(newest(notices[1], Later()))
    policy = policy_of(embedded, "live")
    assert [len(parse_note(note).signatures) for note in (during, after)] == [2, 1]
    for note in (during, after):
        policy.check_signature(note)
    old_policy.check_signature(during)
    with pytest.raises(EvidenceError):
        old_policy.check_signature(after)
    assert check(embedded)["findings"] == []


def test_servers_with_different_clocks_agree_about_a_retired_key(
    embedded: Deployment, tmp_path: Path
) -> None:
    """Its range ends when no server signs with it any more: a published range stays true."""
    embedded.run("log", "rotate-key", "--overlap", "1s", "--yes")
    notice = write_notice(tmp_path / "notice.toml", notice_id="late").read_bytes()

    async def ranges(seconds: float, *, seals: bool = False) -> list[tuple[int, int | None]]:
        async with opened(embedded, ShiftedClock(seconds)) as service:
            if seals:
                await done(publish, service.notices, parse_notice_file(notice), "")
                await service.log.seal.settle()
            log = (await service.log.seal.current(refresh=True))[Mode.LIVE]
            return [(start, end) for start, end, _ in await service.log.policy.ranges(log)]

    early = asyncio.run(ranges(10))
    assert [end for _, end in early] == [None, None]
    late = asyncio.run(ranges(30, seals=True))
    assert late == early
    after = asyncio.run(ranges(200))
    assert after == asyncio.run(ranges(200.6))
    (start, end), new = after
    assert (start, new) == (0, early[1])
    assert end is not None
    assert end >= new[0]
