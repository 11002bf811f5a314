"""The hosted page in a real browser against a real service: every way through it, in every look."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Page, Route, expect

from countersign.core.checkout.brand import put_brand
from countersign.hosted.toolkit.screens import WORDS
from tests.browser.windows import Windows, assert_accessible, assert_accessible_in_every_look
from tests.http.backstage import Operator
from tests.support.acts import done
from tests.support.service import Server

pytestmark = [
    pytest.mark.browser,
    pytest.mark.npm,
    pytest.mark.long,
    pytest.mark.parametrize("deployment", ["sqlite"], indirect=True),
]
CREATE = "/v1/checkout_sessions"
LINES = 4
EN, ES = WORDS["en"], WORDS["es"]
START = re.compile(f"^({EN['identity_start']}|{EN['retry']})$")
"""Number of the identity check."""
PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63c8593417000334018f95ba1fc90000000049454e44ae426082"
)


class Order:
    """A checkout session with its link."""

    def __init__(self, client: httpx2.Client, server: Server) -> None:
        self.client, self.server = client, server
        self.id = self.url = ""

    def begin(self, **changes: object) -> Order:
        body = {"return_url": f"{self.server.url}/docs", "session_id": "cs_page"}
        made = self.client.post(CREATE, json=body | {"notice_id": "ab1263"} | changes)
        session = made.raise_for_status().json()
        self.id = session["checkout_session_id"]
        self.url = f"{self.server.url}/c/{session['client_token']}"
        return self

    def read(self) -> dict[str, Any]:
        found: dict[str, Any] = self.client.get(f"{CREATE}/{self.id}").raise_for_status().json()
        return found

    def acknowledgment(self) -> dict[str, Any]:
        """The only acknowledgment."""
        [found] = self.client.get("/v1/acknowledgments").raise_for_status().json()["data"]
        assert found["ack_id"] == self.read()["ack_id"]
        whole: dict[str, Any] = found
        return whole


@pytest.fixture
def order(client: httpx2.Client, server: Server) -> Order:
    return Order(client, server)


def heading(page: Page, words: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(words)


def initial(page: Page, text: str = "AB") -> None:
    for number in range(1, LINES + 1):
        page.locator(f"#initials-{number}").fill(text)


def go_on(page: Page, words: dict[str, str] | Any = EN) -> None:  # noqa: ANN401 - texts of a locale
    page.get_by_role("button", name=words["continue"]).click()


def agree(page: Page, words: dict[str, str] | Any = EN) -> None:  # noqa: ANN401 - as above
    accept = page.get_by_role("button", name=words["accept"])
    accept.wait_for()  # `all` waits for no page
    for box in page.get_by_role("checkbox").all():
        box.check()
    accept.click()


def walk(page: Page, url: str, words: Any = EN) -> None:  # noqa: ANN401 - as above
    """The whole way by mouse."""
    page.goto(url)
    heading(page, words["title"])
    initial(page)
    go_on(page, words)
    heading(page, words["review_title"])
    agree(page, words)
    heading(page, words["done_title"])


def test_a_buyer_acknowledges_by_mouse(windows: Windows, order: Order) -> None:
    page = windows.open()
    walk(page, order.begin().url)
    process = order.acknowledgment()["process"]
    expect(page.get_by_text(order.read()["ack_id"], exact=True)).to_be_visible()
    assert (process["surface"], process["script"]) == ("page", True)
    assert process["viewport"] == page.viewport_size
    claimed = [(one["line"], one["event"]) for one in process["claimed"]]
    assert {(number, "initialed") for number in range(1, LINES + 1)} <= set(claimed)
    assert (1, "shown") in claimed
    assert order.url.rpartition("/")[2] not in page.url
    page.get_by_role("link", name=re.compile("^Return to ")).click()
    assert page.url.endswith(f"checkout_session_id={order.id}")
    assert page.evaluate("document.referrer") == ""


def test_the_script_takes_the_token_from_the_address(windows: Windows, order: Order) -> None:
    """One response to the link, no entry more to go back to, and reload needs no token."""
    page, answers = windows.open(), []
    page.on("response", lambda one: answers.append(one.status) if "/c/" in one.url else None)
    link, own = order.begin().url, f"{order.server.url}/c/{order.id}"
    page.goto(link)
    heading(page, EN["title"])
    assert (page.url, page.evaluate("history.length"), answers) == (own, 2, [200])
    initial(page)
    page.reload()
    assert page.locator("#initials-1").input_value() == "AB"
    go_on(page)
    heading(page, EN["review_title"])
    page.go_back()
    assert page.url.startswith(own)
    page.goto(f"{link}?lang=es")
    heading(page, ES["review_title"])
    assert page.url == f"{own}?lang=es"


def test_without_a_script_the_first_form_takes_the_token_from_the_address(
    windows: Windows, order: Order
) -> None:
    page = windows.open(java_script_enabled=False)
    link, own = order.begin().url, f"{order.server.url}/c/{order.id}"
    page.goto(link)
    page.reload()
    initial(page)
    go_on(page)
    heading(page, EN["review_title"])
    assert page.url == own
    page.go_back()  # to the link, which shows where the session stands
    heading(page, EN["review_title"])


def test_a_buyer_acknowledges_by_keyboard_alone(windows: Windows, order: Order) -> None:
    page = windows.open()
    page.goto(order.begin().url)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name=EN["skip"])).to_be_focused()
    page.keyboard.press("Enter")
    for _ in range(LINES):
        page.keyboard.press("Tab")
        page.keyboard.type("AB")
    page.keyboard.press("Enter")
    heading(page, EN["review_title"])
    for _ in range(30):
        page.keyboard.press("Tab")
        kind = page.evaluate("document.activeElement.type ?? ''")
        if kind == "checkbox":
            page.keyboard.press("Space")
        elif kind == "submit":
            page.keyboard.press("Enter")
            break
    heading(page, EN["done_title"])
    assert order.acknowledgment()["initials_per_line"] == ["AB"] * LINES


def test_a_buyer_acknowledges_on_a_small_slow_phone(windows: Windows, order: Order) -> None:
    page = windows.slow_phone()
    walk(page, order.begin().url)
    assert order.acknowledgment()["process"]["viewport"]["width"] == 360


def test_a_buyer_acknowledges_in_spanish(windows: Windows, order: Order) -> None:
    page = windows.open(locale="es-MX")
    walk(page, order.begin(locale="es").url, ES)
    assert order.acknowledgment()["process"]["consent"] == ES["consent"]


def test_a_buyer_acknowledges_without_javascript(windows: Windows, order: Order) -> None:
    page = windows.open(java_script_enabled=False)
    page.goto(order.begin(collect=["identity", "acknowledgment"]).url)
    page.get_by_role("button", name=EN["identity_start"]).click()
    page.locator("#initials-1").fill("AB")
    go_on(page)
    expect(page.locator("#initials-2")).to_be_focused()
    initial(page)
    go_on(page)
    agree(page)
    heading(page, EN["done_title"])
    process = order.acknowledgment()["process"]
    assert (process["script"], process["claimed"], process["binding"]) == (
        None,
        [],
        "identity_session",
    )


@pytest.fixture
def branded(order: Order, operator: Operator, account: str) -> Order:
    """Give an order at a vendor with a name, a colour and a logo."""
    brand: dict[str, Any] = {"name": "Acme & Sons", "color": "#ffcc00", "logo": PICTURE}
    operator.act(lambda opened: done(put_brand, opened.access, account, **brand))
    return order


@pytest.mark.timeout(300)
def test_every_state_is_accessible(windows: Windows, branded: Order) -> None:
    """In every look, with the vendor's logo."""
    windows.expect_trouble("404")
    order = branded
    page = windows.open()

    def check(title: str) -> None:
        heading(page, title)
        assert_accessible_in_every_look(page)

    page.goto(order.begin(collect=["identity", "acknowledgment"]).url)
    check(EN["identity_title"])
    assert page.evaluate("document.images[0].naturalWidth") == 1
    for outcome in ("underage", "provider_down", "verified"):
        page.get_by_label(EN[f"outcome_{outcome}"], exact=True).check()
        page.get_by_role("button", name=START).click()
        expect(page.get_by_label(EN["outcome_verified"], exact=True)).to_have_count(
            0 if outcome == "verified" else 1
        )
        check(EN["title"] if outcome == "verified" else EN["identity_title"])
    go_on(page)
    expect(page.get_by_role("alert")).to_contain_text(EN["error_title"])
    check(EN["title"])
    initial(page)
    go_on(page)
    check(EN["review_title"])
    page.get_by_role("button", name=EN["accept"]).click()
    expect(page.get_by_role("alert")).to_contain_text(EN["error_title"])
    check(EN["review_title"])
    page.get_by_role("link", name=EN["decline"]).click()
    check(EN["decline_title"])
    page.get_by_role("link", name=EN["decline_back"]).click()
    agree(page)
    check(EN["done_title"])
    page.get_by_role("link", name=EN["copy_link"]).click()
    expect(page).to_have_url(re.compile("/copy/"))
    check(EN["copy_title"])
    page.goto(order.begin().url)
    page.get_by_role("link", name=EN["decline"]).click()
    page.get_by_role("button", name=EN["decline_confirm"]).click()
    check(EN["declined_title"])
    page.goto(order.begin().url)
    order.client.post(f"{CREATE}/{order.id}/cancel", json={}).raise_for_status()
    page.reload()
    check(EN["cancelled_title"])
    page.goto(f"{order.server.url}/c/nothing")
    check(EN["unknown_title"])
    url = order.begin(expires_in_seconds=60).url
    order.client.post("/v1/test/clock/advance", json={"seconds": 61}).raise_for_status()
    page.goto(url)
    check(EN["expired_title"])


def test_text_of_twice_the_size_is_readable(windows: Windows, order: Order) -> None:
    page = windows.open(viewport={"width": 360, "height": 640})
    page.goto(order.begin().url)
    page.evaluate("document.documentElement.style.fontSize = '200%'")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert_accessible(page)


def test_the_notice_is_set_off_and_nothing_of_it_is_hidden(windows: Windows, order: Order) -> None:
    """Clear and conspicuous: larger than the text around it, in a box, in full."""
    page = windows.open()
    page.goto(order.begin().url)
    found = page.evaluate(
        """() => {
          const style = (query) => getComputedStyle(document.querySelector(query));
          const box = style(".notice");
          const size = (query) => parseFloat(style(query).fontSize);
          return {
            larger: size(".lines p") > size("main > p") && size(".lead") > size("main > p"),
            border: parseFloat(box.borderTopWidth),
            contrast: box.backgroundColor !== style("html").backgroundColor,
            hidden: [...document.querySelectorAll(".notice, .notice *")].filter((one) =>
              !one.checkVisibility() && one.type !== "hidden"
              || one.tagName !== "INPUT" && getComputedStyle(one).overflow !== "visible"
            ).length,
          };
        }"""
    )
    assert found == {"larger": True, "border": 1, "contrast": True, "hidden": 0}


def test_the_focus_is_on_the_first_error_with_its_words(windows: Windows, order: Order) -> None:
    page = windows.open()
    page.goto(order.begin().url)
    page.locator("#initials-1").fill("AB")
    go_on(page)
    field = page.get_by_label(EN["line_label"].replace("{number}", "2"))
    expect(field).to_be_focused()
    expect(field).to_have_accessible_description(re.compile("Line 2: type your initials"))
    expect(page.locator("#initials-1")).to_have_value("AB")
    page.get_by_role("alert").get_by_role("link", name="Line 4").click()
    expect(page.locator("#initials-4")).to_be_focused()


def test_typed_text_survives_a_reload_and_leaves_no_trace_at_the_end(
    windows: Windows, order: Order
) -> None:
    page = windows.open()
    page.goto(order.begin().url)
    expect(page.locator("#initials-1")).to_have_value("")
    page.locator("#initials-1").fill("AB")
    page.reload()
    expect(page.locator("#initials-1")).to_have_value("AB")
    walk(page, order.url)
    assert page.evaluate("sessionStorage.length") == 0


def test_every_state_can_be_reloaded_and_gone_back_from(windows: Windows, order: Order) -> None:
    page = windows.open()
    page.goto(order.begin().url)
    initial(page)
    go_on(page)
    heading(page, EN["review_title"])
    page.reload()
    heading(page, EN["review_title"])
    page.get_by_role("link", name=EN["change"]).click()
    expect(page.locator("#initials-1")).to_have_value("AB")
    page.reload()
    expect(page.locator("#initials-1")).to_have_value("AB")
    page.go_back()
    heading(page, EN["review_title"])
    agree(page)
    heading(page, EN["done_title"])
    page.reload()
    heading(page, EN["done_title"])
    page.go_back()
    page.goto(f"{order.server.url}/c/{order.id}?step=form")
    heading(page, EN["done_title"])
    assert order.acknowledgment()


@pytest.mark.parametrize("delivered", [True, False], ids=["answer lost", "request lost"])
def test_a_network_that_drops_gives_one_acknowledgment(
    windows: Windows, order: Order, *, delivered: bool
) -> None:
    windows.expect_trouble("ERR_CONNECTION_RESET|ERR_INTERNET")
    page = windows.open()
    page.goto(order.begin().url)
    initial(page)
    go_on(page)
    heading(page, EN["review_title"])

    def lose(route: Route) -> None:
        if delivered:
            route.fetch(max_redirects=0)
        route.abort("connectionreset")

    page.route("**/accept", lose)
    with page.expect_event("requestfailed"):
        agree(page)
    page.unroute("**/accept")
    page.goto(f"{order.server.url}/c/{order.id}")
    if not delivered:
        agree(page)
    heading(page, EN["done_title"])
    assert order.acknowledgment()


def test_offline_nothing_is_sent_and_the_page_says_so(windows: Windows, order: Order) -> None:
    windows.expect_trouble("ERR_INTERNET_DISCONNECTED")
    page = windows.open()
    page.goto(order.begin().url)
    initial(page)
    page.context.set_offline(True)
    go_on(page)
    expect(page.get_by_role("status")).to_have_text(EN["offline"])
    page.context.set_offline(False)
    go_on(page)
    heading(page, EN["review_title"])


def test_a_second_click_sends_nothing(windows: Windows, order: Order) -> None:
    page = windows.open()
    page.goto(order.begin().url)
    initial(page)
    go_on(page)
    heading(page, EN["review_title"])
    sent: list[str] = []
    page.on("request", lambda one: sent.append(one.url) if one.url.endswith("/accept") else None)
    for box in page.get_by_role("checkbox").all():
        box.check()
    page.get_by_role("button", name=EN["accept"]).dblclick()
    heading(page, EN["done_title"])
    assert len(sent) == 1


def test_the_tab_that_is_left_shows_the_end(windows: Windows, order: Order) -> None:
    first = windows.open()
    first.goto(order.begin().url)
    second = first.context.new_page()
    walk(second, order.url)
    initial(first, "XY")
    go_on(first)
    heading(first, EN["done_title"])
    assert order.acknowledgment()["initials_per_line"] == ["AB"] * LINES


def test_no_other_page_can_frame_the_session(
    windows: Windows, order: Order, frames: Callable[[str], str]
) -> None:
    windows.expect_trouble("frame-ancestors|CSP|ERR_BLOCKED|404")
    page = windows.open()
    page.goto(frames(order.begin().url))
    expect(page.frame_locator("iframe").get_by_role("heading", level=1)).to_have_count(0)


@pytest.fixture
def frames(tmp_path: Path) -> Callable[[str], str]:
    """Give the address of a page that frames another one."""

    def make(url: str) -> str:
        file = tmp_path / "frame.html"
        file.write_text(f'<!doctype html><title>x</title><iframe src="{url}"></iframe>')
        return file.as_uri()

    return make
