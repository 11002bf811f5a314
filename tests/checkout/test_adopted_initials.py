"""Initials typed once and copied to each further line by a press: accepted and recorded values.

The browser is one without JavaScript, so each press is a request that the service observes.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode

import pytest

from countersign.hosted.toolkit.screens import WORDS
from tests.checkout.buyer import Shop
from tests.checkout.surfer import Form, Page, Surfer
from tests.http.backstage import Operator

pytestmark = pytest.mark.one_engine

Surf = Callable[..., Surfer]
EN, ES = WORDS["en"], WORDS["es"]
LINES = 4


@pytest.fixture(autouse=True)
def allowed(shop: Shop, operator: Operator) -> None:
    """Let the account's buyers adopt."""
    shop.brand(operator, initials="adopted_allowed")


@pytest.fixture
def begun(surf: Surf) -> tuple[Surfer, Page]:
    """A buyer who has typed the first line's initials, and the page with the buttons."""
    surfer = surf()
    return surfer, press(surfer, surfer.open(), initials_1="AB")


def press(surfer: Surfer, page: Page, line: int | None = None, **typed: str) -> Page:
    """Press the button of a line, or the one that stores the typed text."""
    form = Form(f"{surfer.root}/press", "post", page.form.fields)
    return surfer.send(form, **typed, **({} if line is None else {"line": str(line)}))


def buttons(page: Page) -> list[int]:
    """The lines that have a button to put initials there."""
    return [int(one["value"]) for one in page.having(name="line")]


def typed(page: Page) -> list[str]:
    return [page.form.fields[f"initials_{number}"] for number in range(1, LINES + 1)]


def recorded(surfer: Surfer, shop: Shop, page: Page) -> tuple[list[str], list[str], list[int]]:
    """Agree, and give the initials of the record, how they came, and how often they changed."""
    assert surfer.agree(page).heading == EN["done_title"]
    acknowledgment = shop.acknowledgment(surfer.buyer)
    lines = acknowledgment["process"]["lines"]
    methods, changes = ([line[name] for line in lines] for name in ("method", "changes"))
    return acknowledgment["initials_per_line"], methods, changes


def test_initials_are_typed_once_and_pressed_on_each_further_line(surf: Surf, shop: Shop) -> None:
    """One request for each line, each with its time; the review follows the last one."""
    surfer = surf()
    page = surfer.open()
    assert buttons(page) == []
    shop.client.post("/v1/test/clock/advance", json={"seconds": 10})
    page = press(surfer, page, initials_1="AB")
    for number in range(2, LINES + 1):
        assert page.heading == EN["title"]
        assert buttons(page) == [*range(number, LINES + 1)]
        assert typed(page) == ["AB"] * (number - 1) + [""] * (LINES - number + 1)
        assert page.response.url.fragment == f"at-{number}"
        shop.client.post("/v1/test/clock/advance", json={"seconds": 10})
        page = press(surfer, page, number)
    assert page.heading == EN["review_title"]
    assert recorded(surfer, shop, page) == (
        ["AB"] * LINES,
        ["typed", "adopted", "adopted", "adopted"],
        [0] * LINES,
    )
    lines = shop.acknowledgment(surfer.buyer)["process"]["lines"]
    came = [datetime.fromisoformat(line["initialed_at"]) for line in lines]
    assert all(after - before >= timedelta(seconds=10) for before, after in pairwise(came))
    # Each press is of a page that was served after the press before it.
    assert all(
        before["initialed_at"] <= after["shown_at"] <= after["initialed_at"]
        for before, after in pairwise(lines)
    )


def test_typing_on_each_line_stays_possible(surf: Surf, shop: Shop) -> None:
    """All in one form, or some of them next to the buttons."""
    surfer = surf()
    review = surfer.initial(surfer.open())
    assert recorded(surfer, shop, review)[1:] == (["typed"] * LINES, [0] * LINES)
    surfer = surf()
    page = press(surfer, surfer.open(), initials_1="AB")
    page = press(surfer, page, 2)
    review = surfer.send(page.form, initials_3="AB", initials_4="A.B.")
    assert recorded(surfer, shop, review) == (
        ["AB", "AB", "AB", "A.B."],
        ["typed", "adopted", "typed", "typed"],
        [0] * LINES,
    )


def test_no_initials_are_filled_in_before_a_press(begun: tuple[Surfer, Page]) -> None:
    """A button shows the initials; the field of its line is empty until they were put there."""
    _, page = begun
    assert typed(page) == ["AB", "", "", ""]
    for number in (2, 3, 4):
        assert f"{EN['adopt_press'].replace('{number}', str(number))} AB" in page.text


def test_an_account_that_does_not_allow_it_has_no_buttons(
    surf: Surf, shop: Shop, operator: Operator
) -> None:
    """Typing on each line is the default."""
    shop.brand(operator, initials="")
    surfer = surf()
    page = surfer.open()
    assert EN["adopt_use"] not in page.text
    assert EN["initials_hint"] in page.text
    assert recorded(surfer, shop, surfer.initial(page))[1] == ["typed"] * LINES


def test_a_press_before_any_typing_asks_for_the_first_line(surf: Surf) -> None:
    """Also one that a program sends."""
    surfer = surf()
    for line in (None, 2):
        page = press(surfer, surfer.open(), line)
        assert page.links[EN["empty_initials"].replace("{number}", "1")] == "#initials-1"
        assert len(page.having(role="alert")) == 1
        assert typed(page) == [""] * LINES


def test_presses_may_come_in_any_order(begun: tuple[Surfer, Page], shop: Shop) -> None:
    """The page goes to the next line without initials, wrapping to the first."""
    surfer, page = begun
    page = press(surfer, page, 4)
    assert page.response.url.fragment == "at-2"
    page = press(surfer, press(surfer, page, 3), 2)
    assert recorded(surfer, shop, page)[1] == ["typed", "adopted", "adopted", "adopted"]


def test_a_repeated_press_counts_once(begun: tuple[Surfer, Page], shop: Shop) -> None:
    """A double click, a form that is sent again, and two tabs at the same moment."""
    surfer, page = begun
    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(lambda _: press(surfer, page, 2).status, range(4))] == [200] * 4
    page = press(surfer, press(surfer, page, 3), 4)
    assert recorded(surfer, shop, page)[1:] == (
        ["typed", "adopted", "adopted", "adopted"],
        [0] * LINES,
    )


def test_a_press_of_a_button_with_other_initials_is_refused(
    begun: tuple[Surfer, Page], shop: Shop
) -> None:
    """Another tab has changed the first line since, or the same form changes it."""
    surfer, old = begun
    page = press(surfer, old, initials_1="XY")
    assert typed(page) == ["XY", "", "", ""]
    page = press(surfer, old, 2, initials_1="")
    assert EN["adopt_not_taken"] in page.text
    assert typed(page) == ["XY", "", "", ""]
    page = press(surfer, page, 3, initials_1="ZZ", initials_2="ZZ")
    assert EN["adopt_not_taken"] in page.text
    assert typed(page) == ["ZZ", "ZZ", "", ""]
    page = press(surfer, press(surfer, page, 3), 4)
    assert recorded(surfer, shop, page) == (
        ["ZZ"] * LINES,
        ["typed", "typed", "adopted", "adopted"],
        [2, 0, 0, 0],
    )


def test_another_first_line_changes_no_other_line(begun: tuple[Surfer, Page], shop: Shop) -> None:
    """Adopted initials stay until pressed again or typed over; the review asks."""
    surfer, page = begun
    for number in (2, 3, 4):
        page = press(surfer, page, number)
    form = surfer.follow(page, EN["change"])
    assert buttons(form) == []
    review = surfer.send(form.form, initials_1="CD")
    assert EN["differing"].replace("{letters}", "(A)") in review.text
    form = surfer.follow(review, EN["change"])
    assert buttons(form) == [2, 3, 4]
    form = press(surfer, form, 2)
    assert (form.heading, form.response.url.fragment) == (EN["title"], "at-3")
    review = press(surfer, press(surfer, form, 3), 4)
    assert EN["differs"] not in review.text
    assert recorded(surfer, shop, review) == (
        ["CD"] * LINES,
        ["typed", "adopted", "adopted", "adopted"],
        [1] * LINES,
    )


def test_overtyped_initials_count_as_typed(begun: tuple[Surfer, Page], shop: Shop) -> None:
    """And the same text, sent with its form again, changes nothing."""
    surfer, page = begun
    for number in (2, 3, 4):
        page = press(surfer, page, number)
    form = surfer.follow(page, EN["change"])
    review = surfer.send(form.form, initials_3="A.B")
    assert recorded(surfer, shop, review)[1:] == (
        ["typed", "adopted", "typed", "adopted"],
        [0, 0, 1, 0],
    )


def test_an_account_that_stops_allowing_it_takes_no_further_press(
    begun: tuple[Surfer, Page], shop: Shop, operator: Operator
) -> None:
    """Earlier adopted initials were allowed and stay; the rest is typed."""
    surfer, page = begun
    page = press(surfer, page, 2)
    shop.brand(operator, initials="typed")
    page = press(surfer, page, 3, initials_4="AB")
    assert EN["adopt_not_taken"] in page.text
    assert (buttons(page), typed(page)) == ([], ["AB", "AB", "", "AB"])
    review = surfer.send(page.form, initials_3="AB")
    assert recorded(surfer, shop, review)[1] == ["typed", "adopted", "typed", "typed"]


def test_too_long_input_is_refused_and_kept_for_correction(begun: tuple[Surfer, Page]) -> None:
    surfer, page = begun
    page = press(surfer, page, 2, initials_3="A" * 33)
    assert page.links == page.links | {EN["too_long"].replace("{number}", "3"): "#initials-3"}
    assert len(page.having(**{"aria-invalid": "true"})) == 1
    assert typed(page) == ["AB", "", "A" * 33, ""]
    page = press(surfer, page, 2, initials_3="")
    assert typed(page) == ["AB", "AB", "", ""]


def test_the_rest_can_be_sent_at_once_only_when_every_line_has_initials(
    begun: tuple[Surfer, Page],
) -> None:
    surfer, page = begun
    page = surfer.send(press(surfer, page, 3).form)
    assert page.heading == EN["title"]
    wrong = [one["id"] for one in page.having(**{"aria-invalid": "true"})]
    assert wrong == ["initials-2", "initials-4"]
    assert buttons(page) == [2, 4]


def test_the_language_can_change_between_two_presses(
    begun: tuple[Surfer, Page], shop: Shop
) -> None:
    surfer, page = begun
    spanish = surfer.follow(press(surfer, page, 2), "Español")
    assert buttons(spanish) == [3, 4]
    spanish = press(surfer, spanish, 3)
    assert (spanish.heading, spanish.response.url.fragment) == (ES["title"], "at-4")
    review = press(surfer, spanish, 4)
    assert surfer.agree(review).heading == ES["done_title"]
    process = shop.acknowledgment(surfer.buyer)["process"]
    assert (process["locale"], process["consent"]) == ("es", ES["consent"])


def test_the_form_and_the_button_of_another_session_are_of_no_use(surf: Surf) -> None:
    """Neither the code of the form, nor that of the button, which names the initials."""
    mine, other = surf(), surf()
    page, others = (press(one, one.open(), initials_1="AB") for one in (mine, other))
    form = Form(f"{mine.root}/press", "post", page.form.fields)
    assert mine.send(form, line="2", csrf=others.form.fields["csrf"]).status == 403
    refused = mine.send(form, line="2", adopting=others.form.fields["adopting"])
    assert EN["adopt_not_taken"] in refused.text
    assert typed(refused) == ["AB", "", "", ""]


@pytest.mark.parametrize("line", ["1", "0", "-1", "5", "02", "²", "2 ", "all", ""])
def test_no_other_number_counts_as_a_line_with_a_button(
    begun: tuple[Surfer, Page], line: str
) -> None:
    """No button for the first line, and none for all lines."""
    surfer, page = begun
    refused = surfer.send(Form(f"{surfer.root}/press", "post", page.form.fields), line=line)
    assert (refused.status, typed(refused)) == (200, ["AB", "", "", ""])
    assert EN["adopt_not_taken"] in refused.text


def test_a_form_with_two_lines_is_refused(begun: tuple[Surfer, Page]) -> None:
    """One press, one line, one request."""
    surfer, page = begun
    body = [*page.form.fields.items(), ("line", "2"), ("line", "3")]
    response = surfer.client.post(
        f"{surfer.root}/press",
        content=urlencode(body).encode(),
        headers={"content-type": "application/x-www-form-urlencoded"},
    )
    assert response.status_code == 400
    assert typed(surfer.open(surfer.root)) == ["AB", "", "", ""]


def test_a_review_cannot_be_reached_before_every_line_has_initials(
    begun: tuple[Surfer, Page], shop: Shop
) -> None:
    surfer, page = begun
    page = press(surfer, page, 2)
    refused = surfer.send(
        Form(f"{surfer.root}/accept", "post", page.form.fields),
        agreement="yes", consent="yes", reviewed="x",
    )  # fmt: skip
    assert refused.heading == EN["title"]
    assert shop.read(surfer.buyer)["status"] == "open"


def test_the_component_begins_with_no_line(begun: tuple[Surfer, Page], shop: Shop) -> None:
    """It accepts typed initials alone: initials that a page stored for some lines stay out."""
    surfer, page = begun
    press(surfer, page, 2)
    assert surfer.buyer.acknowledge().status_code == 200
    process: dict[str, Any] = shop.acknowledgment(surfer.buyer)["process"]
    assert process["surface"] == "component"
    assert [line["method"] for line in process["lines"]] == ["typed"] * LINES
    assert len({line["initialed_at"] for line in process["lines"]}) == 1
