"""High availability: another release, under the load of a shop that does all that a vendor does.

A clean checkout has no earlier release in it. So this one is the earlier one, and the next has one
migration more, which expands (docs/upgrade.md, "Servers of two releases side by side").
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import countersign
from tests.conformance.conftest import GOOD, connect
from tests.conformance.shop import Shop, doing_business, receiving
from tests.drills.site import WAIT_SECONDS_MAX
from tests.ha.nodes import wait
from tests.ha.service import SERVERS, Service, service, until
from tests.http.backstage import Operator

pytestmark = [pytest.mark.ha, pytest.mark.first_try, pytest.mark.timeout(400)]

_MIGRATION = """
from alembic import op

revision = "{revision}"
down_revision = "{before}"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE records ADD COLUMN of_the_next_release TEXT")
"""


def test_servers_of_two_releases_serve_side_by_side(tmp_path: Path) -> None:
    """The schema is upgraded under load, then each server: no caller and no shop is refused."""
    release = next_release(tmp_path)
    with service(tmp_path, hosts=False) as whole, Operator(whole.deployment) as operator:
        account = operator.account()
        shop = Shop(whole.url, operator.key(account).token, GOOD, patience=WAIT_SECONDS_MAX)
        with receiving(shop) as url:
            connect(operator, account, shop, url)
            with whole.load() as load, doing_business(shop):
                until(load)
                upgrade(whole, release)
                until_business(shop)
                whole.release = release
                for number in range(SERVERS):
                    whole.restart(number)
                    until(load)
                    until_business(shop)
        assert shop.errors == []
        with shop.client() as client:
            done = client.get("/v1/acknowledgments", params={"limit": 100}).json()["data"]
        assert len(done) == min(100, shop.orders)
        whole.judge()
        ends = {(tried.status, tried.code) for tried in load.tried}
        assert ends <= {(200, ""), (409, "idempotency_in_progress")}, ends


def next_release(folder: Path) -> Path:
    """A folder with this release and one migration more."""
    release = folder / "next"
    source = Path(countersign.__file__).parent
    copy = shutil.copytree(
        source, release / "countersign", ignore=shutil.ignore_patterns("__pycache__")
    )
    versions = copy / "base/db/migrations/versions"
    before = max(file.stem for file in versions.glob("[0-9]*_*.py"))
    revision = f"{int(before[:4]) + 1:04d}_next"
    made = _MIGRATION.format(revision=revision, before=before)
    (versions / f"{revision}.py").write_text(made)
    schema = copy / "base/db/schema.postgresql.json"
    parts = json.loads(schema.read_text())
    parts["records"]["column of_the_next_release"] = "text"
    schema.write_text(json.dumps(parts))
    return release


def upgrade(whole: Service, release: Path) -> None:
    """As its owner, by the commands of docs/upgrade.md."""
    grants = ("database", "grants", "--role", "countersign_app", "--apply")
    for words in (("init",), grants):
        subprocess.run(
            [sys.executable, "-m", "countersign", *words],
            env=whole.deployment.environment | {"PYTHONPATH": str(release)},
            cwd=whole.folder,
            check=True,
            capture_output=True,
        )


def until_business(shop: Shop) -> None:
    """Wait for more of its orders."""
    begun = shop.orders
    wait(lambda: shop.orders >= begun + 3 or bool(shop.errors), "orders of the shop")
