"""Several witnesses, a quorum of them, and whatever a witness may answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from sqlalchemy import Connection

from countersign.base.errors import AnchoringFailed
from countersign.base.values import Mode
from countersign.core.acknowledgments import evidence_routes
from countersign.core.dossiers.dossier import DossierQuery, dossier
from countersign.core.gate.route import Call
from countersign.core.log import logs_sql
from countersign.core.log.anchor import ASK_SECONDS
from countersign.core.log.model import TIMESTAMP, WITNESS, Anchor, StoredCheckpoint
from countersign.core.log.operate import begin_epoch
from countersign.core.log.routes import get_resource
from countersign.operate.bootstrap import Deployment as Opened
from countersign_evidence.note import Verifier
from countersign_evidence.policy import Policy, parse_policy
from countersign_evidence.verification import verify_file
from tests.cli.notice_files import write_notice
from tests.sealing.acts import acknowledge, get, policy_of
from tests.sealing.inside import ShiftedClock, acknowledge_inside, opened
from tests.sealing.witness import Witness, served
from tests.support.quorum import checked
from tests.support.service import Deployment, running_server

pytestmark = pytest.mark.long

NOTICE = "storage-law"
FAR = 2**62


class Place:
    """A deployment that asks two witnesses, and needs both."""

    def __init__(self, deployment: Deployment, folder: Path) -> None:
        self.deployment = deployment
        self.account = deployment.account("vendor")
        self.file = folder / "witnesses.policy"
        self.one, self.two = (Witness(self.keys, f"{name}.example") for name in ("one", "two"))
        deployment.run("notices", "publish", str(write_notice(folder / "notice.toml")))

    def keys(self) -> list[Verifier]:
        return list(policy_of(self.deployment, "live").logs)

    def within(
        self,
        act: Callable[[Opened], Awaitable[None]],
        clock: ShiftedClock | None = None,
        **more: str,
    ) -> None:
        """Do this with the deployment opened in this process."""
        self.clock = clock or ShiftedClock()

        async def done() -> None:
            settings = {"WITNESS_POLICY_FILE": str(self.file)} | more
            async with opened(self.deployment, self.clock, **settings) as found:
                await act(found)

        asyncio.run(done())

    async def acknowledged(
        self, service: Opened, *, proved: bool = False
    ) -> Callable[[], Awaitable[bytes]]:
        """Acknowledge when witnesses may be asked again; returns a request for the dossier.

        `proved`: for the proof alone.
        """
        self.clock.seconds += ASK_SECONDS
        made = await acknowledge_inside(service, self.account, NOTICE, Mode.LIVE)
        await service.log.seal.settle()
        if proved:
            return lambda: evidence_routes.proof(service.acknowledgments, *made)
        return lambda: dossier(service.acknowledgments, *made, DossierQuery())


async def newest(service: Opened) -> StoredCheckpoint:
    found = await service.database.read(
        logs_sql.latest, (await service.log.seal.current())[Mode.LIVE].id
    )
    assert found
    return found


async def anchored(service: Opened, kind: str, name: str, body: bytes) -> None:
    """Store an anchor of the newest checkpoint."""
    over = await newest(service)
    await service.database.write(
        logs_sql.add_anchor,
        Anchor(
            log_id=over.log_id,
            size=over.size,
            kind=kind,
            name=name,
            at=over.at,
            body=body,
            digest=sha256(body).hexdigest(),
        ),
    )


@pytest.fixture
def place(embedded: Deployment, tmp_path: Path) -> Iterator[Place]:
    """Give a deployment with two witnesses; the policy file has no newline at its end."""
    made = Place(embedded, tmp_path)
    with served(made.one) as first, served(made.two) as second:
        made.file.write_text(
            f"witness one {made.one.verifier.vkey} {first}\n"
            f"witness two {made.two.verifier.vkey} {second}\n"
            "group both all one two\nquorum both"
        )
        yield made


def test_the_proof_is_over_the_first_checkpoint_that_meets_the_quorum(place: Place) -> None:
    """Not over the first cosigned one; until there is one, the present one is used."""

    async def act(service: Opened) -> None:
        made_file = await place.acknowledged(service)
        place.two.away = True
        await service.log.anchor.anchor()
        early = verify_file(await made_file())
        assert (early.ok, early.name) == (False, "quorum")
        assert "cosigned by: one" in early.message
        await place.acknowledged(service)
        await service.log.anchor.anchor()
        place.two.away = False
        await place.acknowledged(service)
        await service.log.anchor.anchor()
        late = await made_file()
        verdict = verify_file(late)
        assert verdict.ok, verdict.line()
        assert [cosigned["name"] for cosigned in verdict.facts["cosigned"]] == ["one", "two"]
        await place.acknowledged(service)
        await service.log.anchor.anchor()
        assert await made_file() == late, "the oldest that does stays the one"

    place.within(act)


async def public(service: Opened, path: str = "live/1/checkpoint") -> bytes:
    """Public resources below `/v1/log/`."""
    call = Call(
        method="GET", path=f"/v1/log/{path}", parameter=path, query_string=b"", headers={},
        raw_headers=[], peer=None,
    )  # fmt: skip
    return (await get_resource(service.log, call)).body


def test_the_public_checkpoint_satisfies_the_public_policy(place: Place) -> None:
    """The newest one that meets the quorum is served, with its cosignatures."""

    async def act(service: Opened) -> None:
        policy = parse_policy(await service.log.policy.text(Mode.LIVE))
        await place.acknowledged(service)
        early = policy.check_signature(await public(service))
        assert early.cosigned == {}, "no witness has cosigned yet"
        await service.log.anchor.anchor()
        first = checked(policy, await public(service))
        assert len(first.cosigned) == 2
        await place.acknowledged(service)
        assert checked(policy, await public(service)) == first, "no later one meets the quorum"
        place.two.away = True
        await service.log.anchor.anchor()
        assert checked(policy, await public(service)) == first
        place.two.away = False
        await place.acknowledged(service)
        await service.log.anchor.anchor()
        assert checked(policy, await public(service)).checkpoint.size > first.checkpoint.size

    place.within(act)


def test_without_a_checkpoint_that_meets_the_quorum_all_are_searched_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example after a change of witnesses: anyone may request the checkpoint often."""
    monkeypatch.setattr("countersign.core.log.logs_sql._RECENT_ANCHORS", 1)
    looked: list[bool] = []
    look = logs_sql._newest_that_meets

    def counted(
        connection: Connection, log_id: int, quorum: Policy, recent: bool
    ) -> StoredCheckpoint | None:
        looked.append(recent)
        return look(connection, log_id, quorum, recent)

    monkeypatch.setattr(logs_sql, "_newest_that_meets", counted)

    async def act(service: Opened) -> None:
        policy = parse_policy(await service.log.policy.text(Mode.LIVE))
        await place.acknowledged(service)
        strangers = [public(service) for _ in range(50)]
        assert len(set(await asyncio.gather(*strangers))) == 1
        assert len(looked) < 10, "and many who ask at once get one answer"
        for _ in range(5):
            await public(service)
        assert looked.count(False) == looked.index(True)
        await service.log.anchor.anchor()
        first = checked(policy, await public(service))
        place.two.away = True
        for _ in range(3):
            await place.acknowledged(service)
            await service.log.anchor.anchor()
            assert checked(policy, await public(service)) == first, "it is not forgotten"

    place.within(act)


def test_without_a_quorum_the_public_checkpoint_is_the_newest(place: Place) -> None:
    """With its cosignatures, if any."""
    lines = place.file.read_text().replace("quorum both", "quorum none")
    place.file.write_text(lines)

    async def act(service: Opened) -> None:
        policy = parse_policy(await service.log.policy.text(Mode.LIVE))
        await place.acknowledged(service)
        await service.log.anchor.anchor()
        cosigned = checked(policy, await public(service))
        assert len(cosigned.cosigned) == 2
        await place.acknowledged(service)
        newest = checked(policy, await public(service))
        assert newest.checkpoint.size > cosigned.checkpoint.size
        assert newest.cosigned == {}

    place.within(act)


def test_a_group_inside_a_group_counts_as_one_of_its_members(place: Place) -> None:
    """The database chooses by the same rule as the verifier."""
    vkey = Verifier("three.example", 4, bytes(31) + b"\x01").vkey
    lines = place.file.read_text().replace("group both all one two\nquorum both", "")
    lines += f"witness three {vkey}\ngroup any any one three\ngroup most 2 any two\nquorum most\n"
    place.file.write_text(lines)

    async def act(service: Opened) -> None:
        made_file = await place.acknowledged(service)
        place.one.away = True
        await service.log.anchor.anchor()
        assert verify_file(await made_file()).name == "quorum"
        await place.acknowledged(service)
        place.one.away = False
        await service.log.anchor.anchor()
        verdict = verify_file(await made_file())
        assert verdict.ok, verdict.line()

    place.within(act)


def test_a_client_that_waits_gets_a_proof_that_meets_the_quorum(place: Place) -> None:
    """`Prefer: wait` waits for the cosignatures too."""

    async def act(service: Opened) -> None:
        made = await acknowledge_inside(service, place.account, NOTICE, Mode.LIVE)
        waiting = asyncio.create_task(
            evidence_routes.proof(service.acknowledgments, *made, wait=30.0)
        )
        await service.log.anchor.anchor()
        policy = parse_policy(await service.log.policy.text(Mode.LIVE))
        assert verify_file(await waiting, policy).ok

    place.within(act)


def test_a_new_epoch_is_cosigned_although_it_is_smaller_than_the_old_log(place: Place) -> None:
    """A witness's view of one log says nothing about another."""

    async def act(service: Opened) -> None:
        for _ in range(5):
            await place.acknowledged(service)
        await service.log.anchor.anchor()
        await begin_epoch(service.log, Mode.LIVE, "a test", "elsewhere.example")
        await service.log.seal.current(refresh=True)
        made_file = await place.acknowledged(service)
        await service.log.anchor.anchor()
        verdict = verify_file(await made_file())
        assert verdict.ok, verdict.line()
        assert verdict.facts["log"].startswith("elsewhere.example/")

    place.within(act)


def test_no_cosignature_is_requested_for_test_evidence(place: Place) -> None:
    """Witnesses see live checkpoints only; a test dossier verifies all the same."""
    with (
        running_server(place.deployment, WITNESS_POLICY_FILE=str(place.file)) as server,
        server.client(place.deployment.key(place.account)) as vendor,
        server.client() as no_one,
    ):
        made_file = get(vendor, acknowledge(vendor), "dossier")
        policy = no_one.get("/v1/log/policy?mode=test")
        live = no_one.get("/v1/log/policy?mode=live").content
        assert live == no_one.get("/v1/log/policy").content
        wrong = no_one.get("/v1/log/policy?mode=both")
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (400, "invalid_request")
    assert policy.text.endswith("\nquorum none\n")
    assert b"quorum both" in live
    assert verify_file(made_file).ok
    assert verify_file(made_file, parse_policy(policy.content)).ok
    refused = verify_file(made_file, parse_policy(live))
    assert (refused.name, "a test log" in refused.message) == ("signature", True)


def test_a_cosignature_with_an_impossible_date_is_not_kept(place: Place) -> None:
    """And a stored one does not prevent certificates and verdicts."""
    odd = Witness(place.keys, "one.example", lambda: FAR)
    policy = place.file.read_text().replace("group both all one two\nquorum both", "quorum one\n")

    async def act(service: Opened) -> None:
        made_file = await place.acknowledged(service)
        (asked,) = (w for w in parse_policy(policy.encode()).witnesses if w.name == "one")
        with served(odd) as url:
            log = (await service.log.seal.current())[Mode.LIVE]
            at_odds = service.log.anchor.cosign(log, await newest(service), asked._replace(url=url))
            with pytest.raises(AnchoringFailed, match="invalid time"):
                await at_odds
        text = (await newest(service)).note.partition(b"\n\n")[0] + b"\n"
        await anchored(service, WITNESS, asked.key_name, odd.cosign(text))
        (place.file.parent / "odd.zip").write_bytes(await made_file())

    place.within(act)
    place.file.write_text(policy)
    logs = place.deployment.run("log", "policy").stdout.partition("quorum")[0]
    given = place.file.with_name("given.policy")
    given.write_text(logs + policy)
    said = place.deployment.run(
        "verify", str(place.file.parent / "odd.zip"), "--policy", str(given)
    )
    assert "\n\nOK " in said.stdout
    assert f"cosigned by one at {FAR} (Unix time), which is not a valid date" in said.stderr


def test_a_checkpoint_with_a_time_stamp_is_preferred_unless_it_is_far_later(place: Place) -> None:
    """So a certificate names the stamp; a year later it would only blur the time."""
    clock = ShiftedClock()

    async def act(service: Opened) -> None:
        first = await place.acknowledged(service, proved=True)
        await service.log.anchor.anchor()
        cosigned = await newest(service)
        clock.seconds += 7 * 86_400
        second = await place.acknowledged(service, proved=True)
        await service.log.anchor.anchor()
        clock.seconds += 60
        await place.acknowledged(service)
        await service.log.anchor.anchor()
        await anchored(service, TIMESTAMP, "https://tsa.example", b"a stamp")
        stamped = await newest(service)
        for file, expected in ((first, cosigned), (second, stamped)):
            assert f"\n{expected.size}\n".encode() in await file()

    place.within(act, clock)


def test_a_failing_authority_is_asked_every_five_minutes(place: Place) -> None:
    """And not in every round."""
    asked: list[bytes] = []
    clock = ShiftedClock()

    def refuse(body: bytes) -> tuple[int, str, bytes]:
        asked.append(body)
        return 500, "text/plain", b""

    async def act(service: Opened) -> None:
        await place.acknowledged(service)
        numbers = []
        for seconds in (0, 10, 10, 290, 10):
            clock.seconds += seconds
            await service.log.anchor.anchor()
            numbers.append(len(asked))
        assert numbers == [1, 1, 1, 2, 2]

    with served(refuse) as url:
        place.within(act, clock, TIMESTAMP_URLS=url)


def test_a_round_that_ends_badly_is_followed_by_another(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No one watches the task that anchors, so nothing may end it."""
    monkeypatch.setattr("countersign.core.log.anchor.PERIOD_SECONDS", 0.0)
    rounds: list[str] = []

    async def act(service: Opened) -> None:
        enough = asyncio.Event()

        async def fails() -> None:
            rounds.append("failed")
            if len(rounds) > 1:
                enough.set()
            raise RuntimeError

        monkeypatch.setattr(service.log.anchor, "anchor", fails)
        running = asyncio.create_task(service.log.anchor.run())
        await enough.wait()
        running.cancel()

    place.within(act)
