"""`countersign conformance` as a command: with a server, until it ends, is stopped or killed."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.cli.serving import Process, running_module, wait_for
from tests.conformance.conftest import connect, new_shop
from tests.conformance.shop import Manners, doing_business, receiving
from tests.http.backstage import Operator, make_client
from tests.http.calls import acknowledge
from tests.sandbox.calls import ok
from tests.support.service import Deployment, Server

pytestmark = [pytest.mark.long, pytest.mark.one_engine]

GONE = "SELECT 1 AS there FROM conformance_runs WHERE account_id = :account AND active_until > :now"


@contextmanager
def started(
    deployment: Deployment, log: Path, account_id: str, *more: str
) -> Iterator[tuple[Process, Callable[[str], str]]]:
    """Start the command; gives it, and how to wait until it says something."""
    words = ["countersign", "conformance", "--account", account_id, *more]
    with running_module(words, deployment.environment, log) as process:
        yield process, partial(wait_for, process, log)


@pytest.mark.parametrize("manners", [Manners(), Manners(sends_version=False)])
def test_the_report_is_json_and_the_exit_status_is_the_verdict(
    operator: Operator, server: Server, deployment: Deployment, manners: Manners
) -> None:
    """One line on standard output; prompts go to standard error."""
    account_id, shop = new_shop(operator, server, manners)
    with ExitStack() as stack:
        connect(operator, account_id, shop, stack.enter_context(receiving(shop)))
        stack.enter_context(doing_business(shop))
        options = ("--for", "50s", "--step", "10s", "--hold", "3s", "--linger", "2s", "--json")
        done = deployment.run("conformance", "--account", account_id, *options, check=False)
    report = json.loads(done.stdout)
    assert len(done.stdout.splitlines()) == 1
    failed = [check["id"] for check in report["checks"] if check["verdict"] == "failed"]
    assert failed == ([] if manners.sends_version else ["version_sent"])
    assert report["passed"] is manners.sends_version
    assert done.returncode == (0 if manners.sends_version else 1)
    assert (report["account_id"], report["livemode"]) == (account_id, False)
    assert all("/docs/" in check["page"] for check in report["checks"])
    assert report["checks"][0]["page"].startswith("http://")
    assert report["counts"] == {
        "passed": len(report["checks"]) - len(failed),
        "failed": len(failed),
        "not_seen": 0,
    }
    for step in range(1, 6):
        assert f"{step}/5 Place" in done.stderr


def test_unseen_checks_are_shown_as_not_seen_and_do_not_pass(
    operator: Operator, server: Server, deployment: Deployment
) -> None:
    """A run without traffic has proved nothing, and its status says so."""
    account_id = operator.account()
    options = ("--for", "3s", "--step", "1s")
    done = deployment.run("conformance", "--account", account_id, *options, check=False)
    assert done.returncode == 1
    assert "0 passed, 0 failed, 11 not seen" in done.stdout
    assert done.stdout.count("What to do: ") == 11
    assert "No endpoint is enabled" in done.stderr
    assert "http://127.0.0.1:8080/docs/integrate#retries" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopping_it_ends_the_run_and_still_gives_the_report(
    operator: Operator, deployment: Deployment, tmp_path: Path, number: signal.Signals
) -> None:
    """And another run can begin at once."""
    account_id = operator.account()
    log = tmp_path / "log"
    options = ("--for", "60s", "--step", "60s")
    with started(deployment, log, account_id, *options) as (process, wait_until_said):
        wait_until_said("1/5")
        process.send_signal(number)
        assert process.wait(20) == 1
        assert "11 not seen" in log.read_text()
    again = deployment.run("conformance", "--account", account_id, "--for", "1s", check=False)
    assert "11 not seen" in again.stdout


def test_an_order_placed_at_the_first_prompt_belongs_to_the_first_step(
    operator: Operator, server: Server, deployment: Deployment, tmp_path: Path
) -> None:
    """Nothing is sent before it, without waiting; the messages follow, announced."""
    account_id, shop = new_shop(operator, server, Manners())
    options = ("--for", "60s", "--linger", "1s")
    with started(deployment, tmp_path / "log", account_id, *options) as (_, wait_until_said):
        wait_until_said("1/5")
        with shop.client() as api:
            shop.order(api)
        wait_until_said("passed: 1 order cleared, 1 reported as shipped")
        wait_until_said("s for each endpoint. Wait before you place the next order.")


@pytest.mark.crash
def test_a_killed_command_leaves_no_provocation_behind(
    operator: Operator, server: Server, deployment: Deployment, tmp_path: Path
) -> None:
    """Its provocation ends by itself, long before the run would have."""
    account_id = operator.account()
    options = ("--for", "10m", "--step", "1s")
    log = tmp_path / "log"
    with started(deployment, log, account_id, *options) as (process, wait_until_said):
        wait_until_said("2/5")
        process.kill()
        process.wait()
    armed = operator.rows("SELECT armed FROM conformance_runs WHERE account_id = :a", a=account_id)
    assert [row["armed"] for row in armed] == ["acknowledgment_refused"]
    refused = deployment.run("conformance", "--account", account_id, "--for", "1s", check=False)
    assert refused.returncode == 1
    assert "already active" in refused.stderr
    while operator.rows(GONE, account=account_id, now=int(time.time() * 1000)):
        time.sleep(0.2)
    with make_client(server, operator.key(account_id).token) as client:
        ok(acknowledge(client))


@pytest.mark.parametrize(
    "options", [("--for", "5h"), ("--hold", "3m"), ("--for", "soon"), ("--step", "-1s")]
)
def test_missing_or_too_long_times_are_refused(
    operator: Operator, deployment: Deployment, options: tuple[str, str]
) -> None:
    """Before anything begins."""
    account_id = operator.account()
    done = deployment.run("conformance", "--account", account_id, *options, check=False)
    assert done.returncode in {1, 2}
    assert done.stdout == ""
    assert not operator.rows("SELECT 1 FROM conformance_runs WHERE account_id = :a", a=account_id)


def test_an_account_that_does_not_exist_is_refused(deployment: Deployment) -> None:
    """With the code that all commands use for it."""
    done = deployment.run("conformance", "--account", "nobody", "--json", check=False)
    assert done.returncode == 1
    assert json.loads(done.stderr)["error"]["code"] == "account_not_found"
