"""Time-stamps are checked when they arrive, repeated for an idle log, and renewed in time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from countersign.base.errors import InvalidConfiguration
from countersign.base.values import Mode
from countersign.core.acknowledgments import evidence_routes
from countersign.core.dossiers.dossier import DossierQuery, dossier
from countersign.core.log import logs_sql
from countersign.core.log.model import TIMESTAMP, WITNESS, Anchor
from countersign.operate.bootstrap import Deployment as Opened
from countersign_evidence.dossier import read_container
from countersign_evidence.note import parse_note
from countersign_evidence.timestamp import is_about, read_timestamp
from countersign_evidence.timestamp_signer import timestamp_check
from countersign_evidence.verification import verify_file
from tests.cli.notice_files import write_notice
from tests.sealing.acts import policy_of
from tests.sealing.authority import make_authority, stamp, stamp_by_pyhanko
from tests.sealing.inside import ShiftedClock, acknowledge_inside, opened
from tests.sealing.witness import Witness, served
from tests.support.service import Deployment

pytestmark = [pytest.mark.both_engines, pytest.mark.openssl]
NOTICE = "storage-law"
DAY = 24 * 3600


class Place:
    """A deployment with a notice, and a clock that can be moved."""

    def __init__(self, deployment: Deployment, folder: Path) -> None:
        self.deployment = deployment
        self.account = deployment.account("vendor")
        self.clock = ShiftedClock()
        self.folder = folder
        deployment.run("notices", "publish", str(write_notice(folder / "notice.toml")))

    def within(self, act: Callable[[Opened], Awaitable[None]], **settings: str) -> None:
        """Do this with the deployment opened in this process."""

        async def done() -> None:
            async with opened(self.deployment, self.clock, **settings) as found:
                await act(found)

        asyncio.run(done())

    async def acknowledged(self, service: Opened) -> Callable[[], Awaitable[bytes]]:
        """Acknowledge; returns the request for its dossier."""
        made = await acknowledge_inside(service, self.account, NOTICE, Mode.LIVE)
        await service.log.seal.settle()
        return lambda: dossier(service.acknowledgments, *made, DossierQuery())

    def roots(self, authorities: Sequence[Path]) -> bytes:
        return b"".join((authority / "ca.pem").read_bytes() for authority in authorities)

    @contextmanager
    def stamped_by(
        self, *authorities: Path, trusted: Sequence[Path] | None = None
    ) -> Iterator[dict[str, str]]:
        """Serve these authorities; gives the settings to use them."""
        file = self.folder / "roots.pem"
        file.write_bytes(self.roots(authorities if trusted is None else trusted))

        def answering(authority: Path) -> Callable[[bytes], tuple[int, str, bytes]]:
            by = stamp_by_pyhanko if authority.name.startswith("lasting") else stamp
            return lambda query: (200, "application/timestamp-reply", by(authority, query))

        if len(authorities) == 1:
            with served(answering(authorities[0])) as url:
                yield {"TIMESTAMP_URLS": url, "TIMESTAMP_ROOTS_FILE": str(file)}
            return
        with served(answering(authorities[0])) as one, served(answering(authorities[1])) as two:
            yield {"TIMESTAMP_URLS": f"{one},{two}", "TIMESTAMP_ROOTS_FILE": str(file)}


@pytest.fixture
def place(own: Deployment, tmp_path: Path) -> Place:
    """Give a deployment on each engine."""
    return Place(own, tmp_path)


@pytest.fixture(scope="session")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give an authority of pyHanko's whose certificates end after four hundred days."""
    return make_authority(tmp_path_factory.mktemp("lasting"), 400, rsa=True)


async def anchors(service: Opened) -> Sequence[Anchor]:
    """Those of the newest live checkpoint."""
    log = (await service.log.seal.current(refresh=True))[Mode.LIVE]
    return await service.database.read(logs_sql.anchors_of, log.id, log.size)


def stamps_in(data: bytes) -> dict[str, bytes]:
    files = read_container(data)
    return {name: files[name] for name in files if name.startswith("timestamps/")}


def test_before_its_certificates_end_a_time_stamp_is_time_stamped_itself(
    place: Place, authority: Path, lasting: Path
) -> None:
    """By an authority whose certificates end later; readers see the renewal."""

    async def act(service: Opened) -> None:
        file = await place.acknowledged(service)
        for _ in range(4):
            await service.log.anchor.anchor()
            place.clock.seconds += 10
        (place.folder / "dossier.zip").write_bytes(await file())

    with place.stamped_by(authority, lasting) as settings:
        place.within(act, **settings)
    file = (place.folder / "dossier.zip").read_bytes()
    stamps = stamps_in(file)
    assert len(stamps) == 3, "one of each authority, and one renewal, not more"
    (renewal,) = (name for name in stamps if name.count(".") == 2)
    renewed = renewal.replace(".1.tsr", ".tsr")
    assert is_about(read_timestamp(stamps[renewal]), stamps[renewed])
    trusted = timestamp_check(place.roots([authority, lasting]))
    verdict = verify_file(file, policy_of(place.deployment, "live"), trusted)
    assert verdict.ok, verdict.line()
    said = [stamp.partition(", ")[2] for stamp in verdict.facts["timestamps"]]
    assert sorted(said) == [
        "for this checkpoint; signed by a trusted authority",
        "for this checkpoint; signed by a trusted authority",
        f"renewing {renewed}; signed by a trusted authority",
    ]


def test_a_time_stamp_of_another_authority_than_the_trusted_is_not_kept(
    place: Place, authority: Path, lasting: Path
) -> None:
    async def act(service: Opened) -> None:
        await place.acknowledged(service)
        await service.log.anchor.anchor()
        assert len(await anchors(service)) == 1

    with place.stamped_by(authority, lasting, trusted=[lasting]) as settings:
        place.within(act, **settings)


def test_an_idle_log_is_anchored_again_each_day_and_its_evidence_stays_the_same(
    place: Place, lasting: Path
) -> None:
    """The public checkpoint has the newest cosignature; a dossier keeps the first ones."""
    keys = list(policy_of(place.deployment, "live").logs)
    witness = Witness(lambda: keys, at=lambda: place.clock.time_ns() // 1_000_000_000)
    policy = place.folder / "witnesses.policy"

    async def act(service: Opened) -> None:
        file = await place.acknowledged(service)
        log = (await service.log.seal.current(refresh=True))[Mode.LIVE]
        dossiers, numbers, cosigned = [], [], []
        for seconds in (0, 60, DAY, 60, DAY):
            place.clock.seconds += seconds
            await service.log.anchor.anchor()
            found = await anchors(service)
            numbers.append([sum(a.kind == kind for a in found) for kind in (WITNESS, TIMESTAMP)])
            dossiers.append(await file())
            public = await service.log.seal.newest(log, service.log.policy.quorum(Mode.LIVE))
            (line,) = [s for s in parse_note(public).signatures if s.name == witness.verifier.name]
            cosigned.append(line.time)
        assert numbers == [[1, 1], [1, 1], [2, 2], [2, 2], [3, 3]]
        assert len(set(dossiers)) == 1
        assert [cosigned[2] - cosigned[0] >= DAY, cosigned[4] - cosigned[2] >= DAY] == [True, True]

    with served(witness) as url, place.stamped_by(lasting) as settings:
        policy.write_text(f"witness w {witness.verifier.vkey} {url}\nquorum w\n")
        place.within(act, **settings, WITNESS_POLICY_FILE=str(policy))


def test_a_caller_who_waits_for_a_quorum_makes_the_server_ask_the_witnesses_at_once(
    place: Place,
) -> None:
    """However many callers wait, each witness is asked at most once a second."""
    keys = list(policy_of(place.deployment, "live").logs)
    witness = Witness(lambda: keys)
    asked: list[bytes] = []
    policy = place.folder / "witnesses.policy"

    def answer(body: bytes) -> tuple[int, str, bytes]:
        asked.append(body)
        return witness(body)

    async def act(service: Opened) -> None:
        made = await acknowledge_inside(service, place.account, NOTICE, Mode.LIVE)
        await service.log.seal.settle()
        proofs = await asyncio.gather(
            *(evidence_routes.proof(service.acknowledgments, *made, wait=10.0) for _ in range(20))
        )
        assert all(witness.verifier.name.encode() in found for found in proofs)
        assert len(asked) <= 2

    with served(answer) as url:
        policy.write_text(f"witness w {witness.verifier.vkey} {url}\nquorum w\n")
        place.within(act, WITNESS_POLICY_FILE=str(policy))


def test_roots_that_cannot_be_read_are_a_mistake_of_the_settings(place: Place) -> None:
    async def act(_service: Opened) -> None:
        pytest.fail("it starts")

    for file, content in (("none", None), ("empty", b"nothing")):
        if content is not None:
            (place.folder / file).write_bytes(content)
        with pytest.raises(InvalidConfiguration, match="TIMESTAMP_ROOTS_FILE"):
            place.within(
                act,
                TIMESTAMP_URLS="https://tsa.example.com",
                TIMESTAMP_ROOTS_FILE=str(place.folder / file),
            )
