"""Initials typed once and pressed on each further line, in a real browser; and what that saves."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from countersign.core.checkout.brand import put_brand
from countersign.hosted.toolkit.screens import WORDS
from tests.browser import test_looks
from tests.browser.test_back import go_back
from tests.browser.test_looks import LOOKS, ORDER, Album
from tests.browser.test_page import EN, LINES, Order, agree, heading
from tests.browser.windows import PHONE, Windows, assert_accessible_in_every_look
from tests.http.backstage import Operator
from tests.support.acts import done

pytestmark = [
    pytest.mark.browser,
    pytest.mark.npm,
    pytest.mark.long,
    pytest.mark.parametrize("deployment", ["sqlite"], indirect=True),
]
order = test_looks.order


@pytest.fixture(autouse=True)
def allowed(order: Order, operator: Operator, account: str) -> None:
    """Let the account's buyers adopt."""
    brand: dict[str, Any] = {
        "name": None,
        "color": None,
        "logo": None,
        "initials": "adopted_allowed",
    }
    operator.act(lambda opened: done(put_brand, opened.access, account, **brand))


def at_ease(page: Page, milliseconds: int = 2000) -> Page:
    """Let forms be sent at once, as if their page had been shown for long enough.

    Within half a second it would be the second half of a double click.
    """
    page.add_init_script(
        "Object.defineProperty(SubmitEvent.prototype, 'timeStamp',"
        f" {{get: () => {milliseconds}, configurable: true}})"
    )
    return page


def button(page: Page, number: int, words: Any = EN) -> Locator:  # noqa: ANN401 - texts of a locale
    return page.get_by_role("button", name=words["adopt_press"].replace("{number}", str(number)))


def keep(page: Page, words: Any = EN, text: str = "AB") -> None:  # noqa: ANN401 - as above
    """Type the first line's initials, and keep them."""
    page.locator("#initials-1").fill(text)
    page.get_by_role("button", name=words["adopt_use"]).click()
    page.wait_for_url("**#at-*")


def press(page: Page, number: int, words: Any = EN) -> None:  # noqa: ANN401 - as above
    """Press the button of a line."""
    with page.expect_navigation():
        button(page, number, words).click()


def methods(order: Order) -> list[str]:
    return [line["method"] for line in order.acknowledgment()["process"]["lines"]]


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("look", LOOKS)
def test_each_state_in_every_look(windows: Windows, order: Order, look: str) -> None:
    """Accessible, and at most 20 KB."""
    page = at_ease(windows.open(**LOOKS[look]))
    words = WORDS["es" if look == "spanish" else "en"]
    album = Album(page, look)
    page.goto(order.begin(order=ORDER).url)
    album.take("adopting 1 nothing typed", words["title"])
    keep(page, words)
    album.take("adopting 2 first line", words["title"])
    press(page, 2, words)
    if look == "phone":
        # The buyer sees this next without a touch: the next line, with its button.
        expect(page.locator("#line-3")).to_be_in_viewport(ratio=1)
        expect(button(page, 3, words)).to_be_in_viewport(ratio=1)
        album.picture("adopting next line")
    album.take("adopting 3 second line", words["title"])
    page.goto(f"{page.url.partition('?')[0].partition('#')[0]}?wrong=press")
    album.take("adopting 4 not taken", words["title"])
    page.locator("#initials-3").fill("XY")
    press(page, 4, words)
    album.take("adopting 5 review asks", words["review_title"])
    page.get_by_role("link", name=words["change"]).first.click()
    album.take("adopting 6 change", words["title"])
    press(page, 3, words)
    heading(page, words["review_title"])
    agree(page, words)
    heading(page, words["done_title"])


def test_the_states_are_accessible_in_all_colours_and_sizes(windows: Windows, order: Order) -> None:
    page = at_ease(windows.open())
    page.goto(order.begin().url)
    assert_accessible_in_every_look(page)
    keep(page)
    page.locator("#initials-3").fill("XY")
    press(page, 2)
    assert_accessible_in_every_look(page)
    press(page, 4)
    heading(page, EN["review_title"])
    assert_accessible_in_every_look(page)


def test_a_buyer_adopts_by_keyboard_alone(windows: Windows, order: Order) -> None:
    """Enter keeps the first line; then Tab leads to the next button, from its line's text on."""
    page = at_ease(windows.open())
    page.goto(order.begin().url)
    page.locator("#initials-1").focus()
    page.keyboard.type("AB")
    page.keyboard.press("Enter")
    for number in range(2, LINES + 1):
        page.wait_for_url(f"**#at-{number}")
        expect(page.locator(f"#at-{number}")).to_be_focused()
        page.keyboard.press("Enter")  # of a key that is held down: nothing to press has the focus
        page.keyboard.press("Tab")
        expect(button(page, number)).to_be_focused()
        page.keyboard.press("Enter")
    heading(page, EN["review_title"])
    agree(page)
    heading(page, EN["done_title"])
    assert methods(order) == ["typed", "adopted", "adopted", "adopted"]


def test_enter_in_a_field_presses_no_button_of_a_line(windows: Windows, order: Order) -> None:
    """Enter stores the typed text and continues."""
    page = at_ease(windows.open())
    page.goto(order.begin().url)
    keep(page)
    page.locator("#initials-3").fill("AB")
    page.locator("#initials-3").press("Enter")
    expect(button(page, 3)).to_be_hidden()
    expect(page.locator("#initials-2")).to_have_value("")
    press(page, 2)
    press(page, 4)
    agree(page)
    heading(page, EN["done_title"])
    assert methods(order) == ["typed", "adopted", "typed", "adopted"]


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_back_after_each_press(windows: Windows, order: Order, script: bool) -> None:
    """No browser asks whether to send a form again, and nothing is accepted twice."""
    page = at_ease(windows.open(java_script_enabled=script))
    page.goto(order.begin().url)
    keep(page)
    for number in range(2, LINES + 1):
        press(page, number)
        title = EN["review_title"] if number == LINES else EN["title"]
        heading(page, title)
        go_back(page, title)  # the link's own address, which shows how far the buyer is
        page.goto(order.url)
    agree(page)
    heading(page, EN["done_title"])
    lines = order.acknowledgment()["process"]["lines"]
    assert [(line["method"], line["changes"]) for line in lines] == [
        ("typed", 0), *[("adopted", 0)] * 3
    ]  # fmt: skip


def test_a_double_click_presses_one_line(windows: Windows, order: Order) -> None:
    """Its second half can meet the next page, where the next line's button is."""
    page = at_ease(windows.open())
    page.goto(order.begin().url)
    keep(page)
    with page.expect_navigation():
        button(page, 2).dblclick()
    # The second half, as it is shown if the next page is quick.
    at_ease(page, 250)
    with page.expect_navigation():
        page.reload()
    button(page, 3).click()
    expect(page.locator("#initials-2")).to_have_value("AB")
    expect(page.locator("#initials-3")).to_have_value("")
    expect(button(page, 3)).to_have_text(f"{EN['adopt_press'].replace('{number}', '3')} AB")


class Thumb:
    """A buyer on a phone: counts presses, keys and pages, and the seconds of the machine."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.presses = self.keys = self.pages = 0
        self.seconds = 0.0

    def press(self, what: Locator, *, leads: bool = False) -> None:
        self.presses += 1
        began = time.perf_counter()
        if leads:
            with self.page.expect_navigation():
                what.tap()
            self.pages += 1
            self.seconds += time.perf_counter() - began
        else:
            what.tap()

    def type(self, number: int) -> None:
        """Touch a field, and type two letters in it."""
        field = self.page.locator(f"#initials-{number}")
        self.press(field)
        self.keys += 2
        field.fill("AB")
        expect(field).to_have_value("AB")


def purchase(page: Page, url: str, *, adopted: bool) -> Thumb:
    """From the link to the last page, on a phone."""
    thumb, began = Thumb(page), time.perf_counter()
    page.goto(url)
    thumb.seconds += time.perf_counter() - began
    thumb.pages += 1
    thumb.type(1)
    if adopted:
        thumb.press(page.get_by_role("button", name=EN["adopt_use"]), leads=True)
        for number in range(2, LINES + 1):
            thumb.press(button(page, number), leads=True)
    else:
        for number in range(2, LINES + 1):
            thumb.type(number)
        thumb.press(page.get_by_role("button", name=EN["continue"]), leads=True)
    heading(page, EN["review_title"])
    for box in page.get_by_role("checkbox").all():
        thumb.press(box)
    thumb.press(page.get_by_role("button", name=EN["accept"]), leads=True)
    heading(page, EN["done_title"])
    return thumb


@pytest.mark.usefixtures("patient")
def test_a_purchase_on_a_phone_in_presses_and_keys(
    windows: Windows, order: Order, tmp_path: Path
) -> None:
    """The figures of docs/checkout.md, which are also written into the folder of the test.

    Seconds are of the machine: from a press to the page that it leads to, without any reading.
    """
    counts, said = {}, []
    for network, opened in (("loopback", windows.open), ("slow 4G", windows.slow_phone)):
        for adopted in (False, True):
            name = "adopted" if adopted else "typed"
            page = at_ease(opened(**PHONE))
            thumb = purchase(page, order.begin().url, adopted=adopted)
            counts[name] = (thumb.presses, thumb.keys, thumb.pages)
            presses, keys, pages = counts[name]
            said.append(
                f"{network}, {name}: {presses} presses, {keys} keys, {pages} pages, "
                f"{thumb.seconds:.2f} s of the machine"
            )
    folder = Path(os.environ.get("COUNTERSIGN_TESTS_PICTURES") or tmp_path)
    (folder / "purchase.txt").write_text("\n".join(said) + "\n", encoding="utf-8")
    assert counts == {"typed": (8, 8, 3), "adopted": (8, 2, 6)}
