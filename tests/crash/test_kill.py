"""`kill -9` at any moment: acknowledged writes are there, and no half ones.

Each round loads a real server from many clients at once, kills it at a random (seeded) moment,
starts another one on the same data and compares every response with the stored data.
"""

import asyncio
import json
from collections.abc import Iterator
from random import Random

import pytest

from tests.crash.inspection import inspect
from tests.crash.load import Load, Request
from tests.crash.victim import Victim, start
from tests.support import postgres
from tests.support.depth import drawn
from tests.support.engines import ENGINES
from tests.support.service import Deployment

pytestmark = [pytest.mark.crash, pytest.mark.both_engines, pytest.mark.long]

ROUNDS = drawn(10)
EARLIER_ONES = 50


@pytest.fixture(scope="module", params=ENGINES)
def victim(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Victim]:
    """Give a deployment of its own, on an engine that waits for the disk."""
    if request.param == "sqlite":
        yield from _victim(tmp_path_factory, {})
        return
    with postgres.running_postgres(settings={}) as server:
        yield from _victim(tmp_path_factory, {"DATABASE_URL": postgres.fresh_database(server)})


def _victim(tmp_path_factory: pytest.TempPathFactory, settings: dict[str, str]) -> Iterator[Victim]:
    folder = tmp_path_factory.mktemp("crash")
    deployment = Deployment(data_dir=folder / "data", settings=settings)
    deployment.run("init")
    notice = deployment.read("notices", "list")[0]
    made = Victim(
        deployment=deployment,
        api_key=deployment.key(deployment.account("vendor")),
        notice_id=notice["notice_id"],
        lines=notice["lines"],
        server=start(deployment),
    )
    try:
        yield made
    finally:
        made.server.kill()


@pytest.mark.parametrize("number", range(ROUNDS))
def test_after_kill_9_every_answer_is_kept_and_nothing_is_half_written(
    victim: Victim, number: int
) -> None:
    random = Random(f"round {number}")
    load = Load(name=f"r{number}", random=random, notice_id=victim.notice_id, lines=victim.lines)
    asyncio.run(load.run(victim.port, victim.api_key, victim.server.process.kill))
    victim.server.process.wait()
    answered = [request for request in load.requests if request.answers]
    lost = [request for request in load.requests if not request.answers]
    assert answered
    assert lost, "the load had ended before the kill"

    victim.restart()
    found = inspect(victim.deployment)
    for request in answered:
        assert len(set(request.answers)) == 1
        stored = found.ack_ids if request.acknowledges else found.cbids
        assert identifier(request, request.answers[0]) in stored

    random.shuffle(load.requests)
    asyncio.run(victim.for_each(load.requests, victim.settle))
    earlier = random.sample(sorted(victim.settled), min(EARLIER_ONES, len(victim.settled)))
    asyncio.run(victim.for_each([victim.settled[key][0] for key in earlier], victim.settle))

    found = inspect(victim.deployment)
    everything = [(request, identifier(request, body)) for request, body in victim.settled.values()]
    assert found.kept_answers == len(everything)
    assert found.ack_ids == {id_ for request, id_ in everything if request.acknowledges}
    assert found.cbids == {id_ for request, id_ in everything if not request.acknowledges}


def identifier(request: Request, answer: bytes) -> str:
    """The identifier of the created object."""
    found: str = json.loads(answer)["ack_id" if request.acknowledges else "cbid"]
    return found
