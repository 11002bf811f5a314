"""Killed at any step of starting an identity check or asking about it: nothing is half written."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from countersign.base.values import Mode
from tests.http.backstage import Operator, another_deployment
from tests.support import privacy
from tests.support.engines import ENGINES, engine_server
from tests.support.providers import playing
from tests.support.service import Deployment
from tests.verification.live import configure
from tests.verification.starting import ZIP, a_reference, walk_to

pytestmark = [pytest.mark.crash, pytest.mark.both_engines, pytest.mark.long]

TABLES = (
    *("started_checks", "pending_sessions", "shred_keys", "buyers", "verifications", "events"),
    *("verification_evidence", "provider_sessions", "records"),
)


@pytest.fixture(params=ENGINES)
def own(request: pytest.FixtureRequest, tmp_path: Path) -> Deployment:
    """Give a deployment of its own."""
    return another_deployment(tmp_path / "data", engine_server(request))


class Victims:
    """Acts in processes that die at a point."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def act(self, point: int, **order: object) -> dict[str, Any] | None:
        """The act's result; None if the process died before."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order | {"point": point}) + "\n")
        self._process.stdin.flush()
        said: dict[str, Any] | None = json.loads(self._process.stdout.readline())
        return said

    def until_done(self, operator: Operator, **order: object) -> tuple[dict[str, Any], list[Any]]:
        """Die at each point in turn; returns the final result and the intermediate states."""
        seen = []
        for point in count(1):
            said = self.act(point, **order)
            seen.append(contents(operator))
            if said is not None:
                assert point > 5, "statements and commits"
                return said, seen
        raise AssertionError("unreachable")


@contextmanager
def victims(deployment: Deployment) -> Iterator[Victims]:
    """Run the process that forks them."""
    log = deployment.data_dir.parent / "victims.log"
    privacy.watch_log(log)
    with (
        log.open("w") as sink,
        subprocess.Popen(
            [sys.executable, "-m", "tests.verification.start_victim"],
            env=deployment.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sink,
            text=True,
        ) as process,
    ):
        yield Victims(process)


def contents(operator: Operator) -> dict[str, int]:
    """How many rows each of these tables has, at one moment: a commit may be on its way."""
    counts = [f"(SELECT count(*) FROM {table}) AS {table}" for table in TABLES]  # noqa: S608 - our own names
    [row] = operator.rows(f"SELECT {', '.join(counts)}")
    return dict(row)


@pytest.mark.timeout(300)
def test_killed_before_any_step_a_check_is_whole_or_not_there(own: Deployment) -> None:
    """Each step in turn; a retry leads to the same session and buyer."""
    began = time.time()
    with (
        Operator(own) as operator,
        playing("stripe", clock=lambda: began) as played,
        victims(own) as process,
    ):
        account_id = operator.account()
        configure(operator, account_id, played)
        who = {"account_id": account_id, "mode": Mode.LIVE.value, "zip": ZIP}
        order = {**who, "reference": a_reference()}
        nothing = contents(operator)
        made, seen = process.until_done(operator, act="start", **order)
        begun = seen[-1]
        assert begun["started_checks"] == begun["pending_sessions"] == 1
        assert begun["shred_keys"] == nothing["shred_keys"] + 1
        assert all(one in (nothing, begun) for one in seen)
        assert len({json.dumps(one) for one in seen}) == 2

        walk_to(made["url"], "verified")
        asked = {**order, "session_id": made["session_id"]}
        check, seen = process.until_done(operator, act="ask", **asked)
        assert check["status"] == "verified"
        done = seen[-1]
        assert (done["buyers"], done["verifications"], done["pending_sessions"]) == (1, 1, 0)
        assert all(one in (begun, done) for one in seen)
        [row] = operator.rows("SELECT * FROM started_checks")
        assert (row["status"], row["cbid"], row["revision"]) == ("verified", check["cbid"], 1)
        assert process.act(10**9, act="ask", **asked) == check
        assert contents(operator) == done
