"""The component when the network, the page or the session is not as it should be."""

from __future__ import annotations

import re

import httpx2
import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.order import (
    CREATE,
    LINES,
    Order,
    ack_id,
    acknowledge,
    agree,
    enter,
    initial,
    title,
    to_review,
)
from tests.browser.windows import Windows, assert_accessible

pytestmark = [
    pytest.mark.browser,
    pytest.mark.npm,
    pytest.mark.long,
    pytest.mark.parametrize("deployment", ["sqlite"], indirect=True),
]


def lose_answers(page: Page, path: str, times: int) -> list[str]:
    """The service gets the next requests, but their answers never arrive."""
    lost: list[str] = []

    def lose(route: Route) -> None:
        if len(lost) < times and route.request.method == "POST":
            route.fetch()
            lost.append(route.request.url)
            route.abort("connectionreset")
        else:
            route.continue_()

    page.route(f"**/current/{path}", lose)
    return lost


def test_an_answer_that_is_lost_makes_no_second_acknowledgment(
    windows: Windows, order: Order
) -> None:
    """The same request is retried automatically, and finds the first result."""
    windows.expect_trouble("ERR_CONNECTION_RESET")
    page = enter(windows.open(), order.begin().shop)
    lost = lose_answers(page, "acknowledge", 1)
    shown = acknowledge(page)
    assert len(lost) == 1
    assert [one["ack_id"] for one in order.acknowledgments()] == [shown]


def test_a_network_that_stays_away_leaves_a_choice(windows: Windows, order: Order) -> None:
    """Typed text stays, and a retry finds the one acknowledgment."""
    windows.expect_trouble("ERR_CONNECTION_RESET")
    page = enter(windows.open(), order.begin().shop)
    lost = lose_answers(page, "acknowledge", 3)
    to_review(page)
    agree(page)
    page.get_by_role("button", name="Agree and send").click()
    expect(page.get_by_role("alert")).to_contain_text("No connection", timeout=10_000)
    expect(title(page)).to_be_focused()
    assert_accessible(page)
    assert len(lost) == 3
    assert page.evaluate("window.events[1]")[1]["code"] == "network_error"
    page.get_by_role("button", name="Try again").click()
    shown = ack_id(page)
    assert [one["ack_id"] for one in order.acknowledgments()] == [shown]


def test_a_reload_after_a_lost_answer_finds_the_acknowledgment(
    windows: Windows, order: Order
) -> None:
    windows.expect_trouble("ERR_CONNECTION_RESET")
    page = enter(windows.open(), order.begin().shop)
    lost = lose_answers(page, "acknowledge", 3)
    to_review(page)
    agree(page)
    page.get_by_role("button", name="Agree and send").click()
    expect(page.get_by_role("alert")).to_be_visible(timeout=10_000)
    page.reload()
    shown = ack_id(page)
    assert len(lost) == 3
    assert [one["ack_id"] for one in order.acknowledgments()] == [shown]


def test_two_tabs_lead_to_one_acknowledgment(windows: Windows, order: Order) -> None:
    """The second tab shows the result of the first."""
    windows.expect_trouble("409")
    first, second = (enter(windows.open(), order.begin().shop), windows.open())
    enter(second, order.shop)
    shown = acknowledge(first)
    initial(second, "ZZ")
    second.get_by_role("button", name="Continue").click()
    agree(second)
    second.get_by_role("button", name="Agree and send").click()
    assert ack_id(second) == shown
    (only,) = order.acknowledgments()
    assert only["initials_per_line"] == ["AB"] * LINES


def test_a_page_that_opens_offline_can_try_again(windows: Windows, order: Order) -> None:
    """The component's own English is shown until the service answers."""
    windows.expect_trouble("ERR_INTERNET_DISCONNECTED|ERR_FAILED")
    order.begin()
    page = windows.open()
    page.route("**/current", lambda route: route.abort("internetdisconnected"))
    page.goto(order.shop.origin)
    expect(page.get_by_role("alert")).to_contain_text("could not be loaded", timeout=10_000)
    assert_accessible(page)
    page.unroute("**/current")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_label("line 1")).to_be_visible()
    expect(title(page)).to_be_focused()


def test_another_origin_cannot_show_the_notice(windows: Windows, order: Order) -> None:
    """The browser hides the refusal from the page, and the session stays open."""
    windows.expect_trouble("CORS|ERR_FAILED|403")
    order.begin(origin="https://another.example")
    page = windows.open()
    page.goto(order.shop.origin)
    expect(page.get_by_role("alert")).to_be_visible(timeout=10_000)
    assert page.evaluate("window.events")[0][1]["code"] == "network_error"
    assert order.read()["status"] == "open"


def test_an_invalid_token_is_refused_permanently(windows: Windows, order: Order) -> None:
    """A retry is not offered."""
    windows.expect_trouble("401")
    order.begin()
    order.shop.client_token = order.shop.client_token[:-6] + "000000"
    page = windows.open()
    page.goto(order.shop.origin)
    expect(page.get_by_role("alert")).to_contain_text("Go back to the shop")
    expect(page.locator("countersign-notice").get_by_role("button")).to_have_count(0)
    assert page.evaluate("window.events")[0][1]["code"] == "invalid_client_token"
    assert_accessible(page)


def test_an_expired_session_says_so(windows: Windows, order: Order, client: httpx2.Client) -> None:
    """Also if it expires while the buyer reads."""
    windows.expect_trouble("409")
    page = enter(windows.open(), order.begin(expires_in_seconds=60).shop)
    to_review(page)
    agree(page)
    client.post("/v1/test/clock/advance", json={"seconds": 120}).raise_for_status()
    page.get_by_role("button", name="Agree and send").click()
    expect(title(page)).to_have_text("This link has expired")
    assert_accessible(page)
    page.reload()
    expect(title(page)).to_have_text("This link has expired")
    assert page.evaluate("sessionStorage.length") == 0
    assert order.acknowledgments() == []


def test_a_cancelled_session_says_so(windows: Windows, order: Order) -> None:
    order.begin()
    order.client.post(f"{CREATE}/{order.id}/cancel", json={}).raise_for_status()
    page = windows.open()
    page.goto(order.shop.origin)
    expect(title(page)).to_have_text("This link was cancelled")
    assert_accessible(page)


def test_markup_in_names_is_text(windows: Windows, order: Order) -> None:
    """A session's words come from elsewhere: none of them becomes an element."""
    order.begin()
    page = windows.open()

    def disguised(route: Route) -> None:
        answer = route.fetch()
        body = answer.json()
        evil = "<img src=x onerror=alert(1)>"
        body["notice"]["title"] = body["notice"]["bullets"][0]["text"] = evil
        body["words"]["intro"] = body["notice"]["source_law"] = evil
        body["notice"]["source_url"] = "javascript:alert(1)"
        route.fulfill(response=answer, json=body)

    page.route("**/current", disguised)
    enter(page, order.shop)
    inside = page.locator("countersign-notice")
    expect(inside.locator("h3").first).to_have_text("<img src=x onerror=alert(1)>")
    assert inside.locator("img, script, iframe, a").count() == 0


@pytest.mark.parametrize("changed", [True, False], ids=["another-text", "same-text"])
def test_a_notice_that_changes_while_the_buyer_reads_is_shown_again(
    windows: Windows, order: Order, *, changed: bool
) -> None:
    """Initials for words that are not in force any more are forgotten, and only those."""
    windows.expect_trouble("409")
    page = enter(windows.open(), order.begin().shop)
    to_review(page)
    agree(page)
    stale = {"times": 0}

    def older(route: Route) -> None:
        stale["times"] += 1
        body = dict(route.request.post_data_json or {}, notice_version="1999-01-01")
        route.continue_(post_data=body)

    def newer(route: Route) -> None:
        answer = route.fetch()
        body = answer.json()
        body["notice"]["digest"] = "0" * 64
        route.fulfill(response=answer, json=body)

    page.route("**/current/acknowledge", older, times=1)
    if changed:
        page.route("**/current", newer, times=1)
    typed = "" if changed else re.compile(".")
    page.get_by_role("button", name="Agree and send").click()
    expect(page.get_by_role("alert")).to_contain_text("The notice has changed")
    expect(page.get_by_label("line 1")).to_have_value(typed)
    assert stale == {"times": 1}
    page.reload()
    expect(page.get_by_label("line 1")).to_have_value(typed)
    acknowledge(page)
