"""A form of the console that is sent twice does its act once, and shows the same both times."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

import httpx2
import pytest

from countersign.core.access.role import Role
from countersign.server.console_host import ROOT
from tests.console.visitor import KEPT
from tests.http.backstage import Vendor, make_client
from tests.staff.conftest import Desk, Person
from tests.staff.test_orders import buy

pytestmark = pytest.mark.both_engines
_CODE: Final = re.compile(r'name="code" value="([^"]+)"')
_SECRET: Final = re.compile(r"<code[^>]*>((?:csign|whsec)_[^<]+)</code>")


class Browser:
    """The pages of an account, for a person who is signed in."""

    def __init__(self, client: httpx2.Client, account: str, mode: str = "test") -> None:
        self._client, self._root = client, f"{ROOT}/{account}/{mode}"

    def codes(self, page: str) -> list[str]:
        """The codes of a page's forms, in order; the first is for signing out."""
        return _CODE.findall(self.page(page))

    def page(self, page: str) -> str:
        shown = self._client.get(f"{self._root}/{page}")
        assert shown.status_code == 200, shown.text
        return shown.text

    def twice(self, page: str, action: str, **fields: str) -> list[httpx2.Response]:
        """Send the last form of this page twice at once, and once more."""
        form = {"code": self.codes(page)[-1], **fields}

        def send() -> httpx2.Response:
            return self.send(f"{page}/{action}", form)

        with ThreadPoolExecutor(2) as threads:
            sent = [threads.submit(send) for _ in range(2)]
            return [*(one.result() for one in sent), send()]

    def send(self, to: str, form: Mapping[str, str]) -> httpx2.Response:
        reply = self._client.post(f"{self._root}/{to}", data=dict(form))
        while KEPT.search(led := reply.headers.get("location", "")):
            reply = self._client.get(led)
        return reply


@contextmanager
def browser(desk: Desk, person: Person, account: str, mode: str = "test") -> Iterator[Browser]:
    token = person.client.headers["authorization"].removeprefix("Bearer ")
    headers = {"origin": desk.server.url, "cookie": f"csc-session={token}"}
    with make_client(desk.server, "", **headers) as client:
        del client.headers["authorization"]
        yield Browser(client, account, mode)


def test_each_form_has_its_own_key(desk: Desk, shop: Vendor) -> None:
    """Even on one page; a key that the server did not make is refused."""
    with (
        desk.person(Role.COMPLIANCE, shop.account_id, "test") as person,
        browser(desk, person, shop.account_id) as pages,
    ):
        codes = [code for _ in range(2) for code in pages.codes("holds/-/place_hold")]
        assert len({code.partition(".")[0] for code in codes}) == len(codes) == 4
        mixed = f"{'x' * 22}.{codes[0].partition('.')[2]}"
        assert pages.send("matters/-/open_matter", {"code": mixed, "name": "A"}).status_code == 403


def test_a_form_sent_twice_acts_once(desk: Desk, shop: Vendor) -> None:
    """Holds, matters, releases and an erasure: the same page each time, one entry of the audit."""
    order, other = buy(shop, 1), buy(shop, 2)
    with (
        desk.person(Role.COMPLIANCE, shop.account_id, "test") as person,
        browser(desk, person, shop.account_id) as pages,
    ):
        place = {"subject": order.ack_id, "reason": "case 1"}
        sent = pages.twice("holds/-", "place_hold", **place)
        assert {one.status_code for one in sent} == {200}
        (hold,) = person.get("/v1/holds")["data"]
        sent = pages.twice(f"holds/{hold['hold_id']}", "release_hold", sure="1")
        assert {one.status_code for one in sent} == {200}
        pages.twice("matters/-", "open_matter", name="Case 1")
        (matter,) = person.get("/v1/matters")["data"]
        sent = pages.twice(f"matters/{matter['matter_id']}", "release_matter", sure="1")
        assert {one.status_code for one in sent} == {200}
        erase = {"subject": other.cbid, "with_acknowledgments": "1", "sure": "1"}
        erase["why"] = "request"
        sent = pages.twice("erasures/-", "erase", **erase)
        assert {one.status_code for one in sent} == {200}
        facts = {one.text.partition("<main")[2] for one in sent}
        assert len(facts) == 1
        with desk.person(Role.AUDITOR) as auditor:
            noted = auditor.get(f"/v1/audit?actor={person.id}&limit=100")["data"]
        done = sorted(one["action"] for one in noted)
        assert done == ["erased", "hold_placed", "hold_released", "matter_closed", "matter_opened"]


def test_a_secret_is_shown_again_to_the_form_that_made_it(desk: Desk, shop: Vendor) -> None:
    """A key and an endpoint's secret: a reload shows the same one, and no second is made."""
    with (
        desk.person(Role.DEVELOPER, shop.account_id, "test", member=True) as person,
        browser(desk, person, shop.account_id) as pages,
    ):
        before = len(person.get("/v1/keys")["data"])
        sent = pages.twice("keys/-", "create_key", key_reason="to set up the shop")
        assert len({_SECRET.findall(one.text)[-1] for one in sent}) == 1
        assert len(person.get("/v1/keys")["data"]) == before + 1
        sent = pages.twice("webhooks/-", "add_endpoint", url="https://shop.example/hooks")
        assert len({_SECRET.findall(one.text)[-1] for one in sent}) == 1
        (endpoint,) = person.get("/v1/webhook_endpoints")["data"]
        gone = pages.twice(f"webhooks/{endpoint['endpoint_id']}", "delete_endpoint", sure="1")
        assert {one.status_code for one in gone} == {303}


def test_a_form_changed_after_sending_is_reported(desk: Desk, shop: Vendor) -> None:
    """As a browser shows it again from its history: the second act is not lost silently."""
    with (
        desk.person(Role.COMPLIANCE, shop.account_id, "test") as person,
        browser(desk, person, shop.account_id) as pages,
    ):
        code = pages.codes("matters")[-1]
        first, second = (
            pages.send("matters/-/open_matter", {"code": code, "name": name})
            for name in ("Case 1", "Case 2")
        )
        assert (first.status_code, second.status_code) == (200, 422)
        assert "already sent with other values" in second.text
        assert [one["name"] for one in person.get("/v1/matters")["data"]] == ["Case 1"]
