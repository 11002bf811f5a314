"""Back works in every state, also after each error: no browser asks to send a form again."""

from __future__ import annotations

import re
import uuid
from typing import Final

import httpx2
import pytest
from playwright.sync_api import Page, expect

from countersign.hosted.toolkit.screens import WORDS
from countersign_simulators.base import Reply, Request
from tests.browser.checks import ZIP, Walk, provided
from tests.browser.test_page import Order, agree, go_on, heading, initial
from tests.browser.windows import Windows
from tests.http.backstage import Operator, notice_file
from tests.support.service import Server

pytestmark = [
    pytest.mark.browser,
    pytest.mark.npm,
    pytest.mark.parametrize("deployment", ["sqlite"], indirect=True),
]
EN: Final = WORDS["en"]
START: Final = re.compile(f"^({EN['identity_start']}|{EN['retry']})$")
"""Of an identity check: the first one, or the next."""
BOTH: Final = {"collect": ["identity", "acknowledgment"], "shipping_zip": ZIP}


@pytest.fixture
def order(client: httpx2.Client, server: Server) -> Order:
    return Order(client, server)


@pytest.fixture(params=[True, False], ids=["script", "no script"])
def page(request: pytest.FixtureRequest, windows: Windows) -> Page:
    return windows.open(java_script_enabled=request.param)


def go_back(page: Page, title: str) -> None:
    """Go back to a page with this title, and forward again to the previous one."""
    here = page.get_by_role("heading", level=1).inner_text()
    for step, words in ((page.go_back, title), (page.go_forward, here)):
        step()
        heading(page, words)
    page.go_back()
    heading(page, title)


def alert(page: Page, words: str) -> None:
    expect(page.get_by_role("alert")).to_contain_text(words)


def down(_: Request, __: Reply) -> Reply:
    return Reply(status=500, headers=(), body=b"")


def play(page: Page, outcome: str) -> None:
    page.get_by_label(EN[f"outcome_{outcome}"], exact=True).check()
    page.get_by_role("button", name=START).click()


def test_back_after_each_error_of_the_notice(page: Page, order: Order) -> None:
    page.goto(order.begin().url)
    page.locator("#initials-1").fill("AB")
    go_on(page)
    alert(page, EN["error_title"])
    expect(page.locator("#initials-1")).to_have_value("AB")
    go_back(page, EN["title"])
    page.go_forward()
    alert(page, EN["error_title"])
    initial(page)
    go_on(page)
    heading(page, EN["review_title"])
    page.get_by_role("button", name=EN["accept"]).click()
    alert(page, EN["agreement_missing"])
    go_back(page, EN["review_title"])
    go_back(page, EN["title"])
    expect(page.locator("#initials-4")).to_have_value("AB")
    page.goto(order.url)
    agree(page)
    heading(page, EN["done_title"])
    go_back(page, EN["done_title"])
    assert order.acknowledgment()["initials_per_line"] == ["AB"] * 4


def test_back_after_each_outcome_of_a_check(page: Page, order: Order) -> None:
    page.goto(order.begin(**BOTH).url)
    for outcome in ("underage", "provider_down", "zip_mismatch", "provider_down"):
        play(page, outcome)
        alert(page, "")
        go_back(page, EN["identity_title"])
        page.goto(order.url)
    play(page, "verified")
    heading(page, EN["title"])
    go_back(page, EN["title"])


@pytest.mark.parametrize("name", ["stripe", "plaid"])
def test_back_after_a_provider_that_is_down(
    name: str, windows: Windows, order: Order, operator: Operator, account: str
) -> None:
    with provided(operator, account, order.server, name) as provider:
        walk = Walk(windows, order, name, provider, operator, account)
        walk.begin()
        with provider.mood(down):
            walk.press("identity_start")
            alert(walk.page, walk.said("provider_down"))
        go_back(walk.page, EN["identity_title"])
        walk.leave()
        walk.page.goto(walk.here)
        with provider.mood(down):
            walk.press("identity_done")
            alert(walk.page, walk.said("provider_down"))
        go_back(walk.page, EN["identity_title"])


def test_back_after_the_text_was_replaced(page: Page, order: Order, operator: Operator) -> None:
    name = f"replaced-{uuid.uuid4().hex[:8]}"
    operator.publish(notice_file(name, "1"))
    page.goto(order.begin(notice_id=name).url)
    operator.publish(notice_file(name, "2", effective_from="2021-01-01"))
    for field in page.get_by_role("textbox").all():
        field.fill("AB")
    go_on(page)
    alert(page, EN["changed_notice"])
    expect(page.get_by_role("textbox").first).to_have_value("")
    go_back(page, EN["title"])


def test_back_after_the_notice_was_stopped(
    page: Page, windows: Windows, order: Order, operator: Operator
) -> None:
    windows.expect_trouble("409")
    name = f"stopped-{uuid.uuid4().hex[:8]}"
    operator.publish(notice_file(name, "1"))
    page.goto(order.begin(notice_id=name).url)
    operator.withdraw(name, "1")
    go_on(page)
    heading(page, EN["stopped_title"])
    go_back(page, EN["stopped_title"])
