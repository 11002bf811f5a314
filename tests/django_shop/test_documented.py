"""docs/django.md: the project that it shows sells, as it stands there."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.checkout.surfer import Page
from tests.cli.serving import running as running_process
from tests.cli.serving import wait_for, wait_until
from tests.django_shop.conftest import Shop
from tests.docs.markdown import ROOT, read
from tests.storefront.shopper import Shopper
from tests.support.service import free_port

pytestmark = [pytest.mark.long, pytest.mark.later]  # it makes a project, as the page writes it
PAGE = read(ROOT / "docs" / "django.md")
STAFF = {"username": "staff", "password": "p"}


@dataclass(frozen=True, kw_only=True)
class Project:
    """The project of the page, served."""

    url: str
    database: Path

    def check_out(self, shopper: Shopper) -> Page:
        """Send the form of its checkout, which leads to the service."""
        page = shopper.open("/checkout/")
        return shopper.send(page, page.form)

    def orders(self) -> list[sqlite3.Row]:
        with closing(sqlite3.connect(self.database)) as connection:
            connection.row_factory = sqlite3.Row
            return connection.execute("SELECT * FROM shop_order ORDER BY id").fetchall()


@pytest.fixture(scope="module")
def project(running: Shop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """Make the project of the page, and serve it."""
    folder, port = tmp_path_factory.mktemp("project"), free_port()
    url = f"http://localhost:{port}"
    endpoint = running.client.webhook_endpoints.create(url=f"{url}/countersign/webhook/")
    environment = os.environ | {
        "COUNTERSIGN_BASE_URL": running.server.url,
        "COUNTERSIGN_API_KEY": running.key,
        "SHOP_WEBHOOK_SECRET": endpoint.secret,
        "DJANGO_SUPERUSER_PASSWORD": "p",
        "PYTHONUNBUFFERED": "1",
    }

    def do(*command: str) -> None:
        subprocess.run([sys.executable, *command], cwd=folder, env=environment, check=True)

    do("-m", "django", "startproject", "shop", ".")
    for block in PAGE.blocks:
        if block.language == "python" and (named := re.match(r"# (shop/\w+\.py)\n", block.text)):
            file = folder / named[1]
            before = file.read_text() if file.name == "settings.py" else ""
            # Fields in the staff's forms that a test lacks.
            after = "MIDDLEWARE.remove('django.middleware.csrf.CsrfViewMiddleware')\n"
            file.write_text(before + block.text + (after if before else ""))
    do("manage.py", "makemigrations", "--verbosity=0", "shop")
    do("manage.py", "migrate", "--verbosity=0")
    do("manage.py", "createsuperuser", "--noinput", "--username=staff", "--email=s@example.com")
    log = folder / "log"
    command = [sys.executable, "manage.py", "runserver", "--noreload", str(port)]
    with running_process(command, environment, log, folder) as process:
        wait_for(process, log, "Quit the server")
        yield Project(url=url, database=folder / "db.sqlite3")
    running.client.webhook_endpoints.delete(endpoint.endpoint_id)


def test_the_documented_shop_sells(project: Project) -> None:
    """From the form of its checkout to the parcel; the dispatch page is for staff."""
    shopper = Shopper(project.url)
    with shopper.client as browser:
        done = shopper.initial(shopper.identify(project.check_out(shopper)))
        assert shopper.come_back(done).heading == "Thank you"
        parcel = f"{project.url}/dispatch/{project.orders()[-1]['id']}/"
        assert "login" in str(browser.post(parcel, data={"tracking_number": "1Z999"}).url)
        token = {"csrfmiddlewaretoken": browser.cookies["csrftoken"]}
        browser.post(f"{project.url}/admin/login/", data=STAFF | token)
        assert browser.post(parcel, data={"tracking_number": "1Z999"}).text == "Shipped"
    assert project.orders()[-1]["status"] == "shipped"


def test_the_documented_shop_shows_an_order_to_its_buyer_alone(project: Project) -> None:
    """Its page leads to a link of the buyer's; and nothing leaves that is not paid."""
    shopper, other = Shopper(project.url), Shopper(project.url)
    with shopper.client, other.client as browser:
        project.check_out(shopper)
        project.check_out(other)
        mine = project.orders()[-1]["id"]
        assert browser.get(f"{project.url}/orders/{mine - 1}/").status_code == 404
        assert browser.get(f"{project.url}/orders/{mine}/").status_code == 200
        browser.get(f"{project.url}/admin/login/")
        token = {"csrfmiddlewaretoken": browser.cookies["csrftoken"]}
        browser.post(f"{project.url}/admin/login/", data=STAFF | token)
        parcel = f"{project.url}/dispatch/{mine}/"
        assert browser.post(parcel, data={"tracking_number": "1Z999"}).status_code == 409


def test_the_documented_shop_shows_a_wrong_address_to_its_buyer(project: Project) -> None:
    shopper = Shopper(project.url)
    with shopper.client as browser:
        address = {"state": "California", "zip": "94105"}
        response = browser.post(f"{project.url}/checkout/", data=address)
    assert (response.status_code, response.text[:15]) == (422, "Please look at ")


def test_the_documented_shop_is_paid_without_the_buyer(project: Project) -> None:
    """A webhook is enough."""
    shopper = Shopper(project.url)
    with shopper.client:
        shopper.initial(shopper.identify(project.check_out(shopper)))
    wait_until(lambda: project.orders()[-1]["status"] == "paid", "the webhook")
