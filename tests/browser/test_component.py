"""The component in a shop's page, in a real browser against a real service."""

from __future__ import annotations

import re
from hashlib import sha256

import pytest
from playwright.sync_api import expect

from tests.browser.order import (
    LINES,
    Order,
    ack_id,
    acknowledge,
    agree,
    enter,
    events,
    initial,
    title,
    to_review,
)
from tests.browser.windows import Windows, assert_accessible, assert_accessible_in_every_look
from tests.docs.generated import COMPONENT
from tests.docs.markdown import ROOT, read

pytestmark = [
    pytest.mark.browser,
    pytest.mark.npm,
    pytest.mark.long,
    pytest.mark.parametrize("deployment", ["sqlite"], indirect=True),
]


def test_a_buyer_acknowledges_by_mouse(windows: Windows, order: Order) -> None:
    """The shown id, which is sent with its form, is that of the session; the event has neither."""
    page = enter(windows.open(), order.begin().shop)
    shown = acknowledge(page)
    session = order.read()
    assert (session["status"], session["ack_id"]) == ("completed", shown)
    assert [one["capture"] for one in order.acknowledgments()] == ["hosted"]
    assert events(page) == ["ready", "acknowledged"]
    detail = page.evaluate("window.events[1][1]")
    assert detail == {
        "checkout_session_id": order.id,
        "status": "completed",
        "return_url": f"{order.shop.origin}/return?checkout_session_id={order.id}",
    }
    page.get_by_role("button", name="Pay").click()
    expect(page.locator("body")).to_have_text(f"/order?ack_id={shown}")


def test_the_script_of_the_guide_puts_the_notice_into_a_page(
    windows: Windows, order: Order
) -> None:
    """docs/component.md; the page has loaded the package that the script imports."""
    (block,) = [b for b in read(ROOT / "docs" / "component.md").blocks if b.language == "js"]
    imported, _, script = block.text.partition("\n")
    assert imported == 'import "countersign-notice";'
    script = script.replace("https://countersign.example.com", order.begin().shop.service)
    page = enter(windows.open(), order.shop)
    page.evaluate(
        f"""clientToken => {{
            const place = document.createElement("div");
            place.id = "notice";
            document.querySelector("countersign-notice").replaceWith(place);
            const finish = id => {{ window.finished = id }};
            {script}
        }}""",
        order.shop.client_token,
    )
    acknowledge(page)
    assert page.evaluate("window.finished") == order.id


def test_a_buyer_acknowledges_by_keyboard_alone(windows: Windows, order: Order) -> None:
    """Every field and button is reached in the order of reading; focus never gets lost."""
    page = enter(windows.open(), order.begin().shop)
    press = page.keyboard.press
    press("Tab")
    for _ in range(LINES):
        page.keyboard.type("KB")
        press("Tab")
    focused = "document.activeElement.shadowRoot.activeElement"
    assert page.evaluate(f"{focused}.tagName") == "A"  # The source of the law.
    press("Shift+Tab")
    press("Enter")
    expect(title(page)).to_be_focused()
    expect(title(page)).to_have_text("Review your initials")
    for _ in range(2):
        press("Tab")
        press("Space")
    press("Tab")
    assert "Agree and send" in page.evaluate(f"{focused}.textContent")
    press("Enter")
    ack_id(page)
    expect(title(page)).to_be_focused()
    assert order.acknowledgments()[0]["initials_per_line"] == ["KB"] * LINES


def test_a_buyer_acknowledges_on_a_small_slow_phone(windows: Windows, order: Order) -> None:
    """360 pixels wide: nothing scrolls sideways, and everything is large enough to touch."""
    page = enter(windows.slow_phone(), order.begin().shop)
    for step in ("form", "review", "done"):
        assert page.evaluate("document.documentElement.scrollWidth") == 360, step
        for field in page.locator("countersign-notice :is(input, button.primary)").all():
            box = field.bounding_box()
            assert box
            assert min(box["width"], box["height"]) >= 24, step
        if step == "form":
            to_review(page)
        elif step == "review":
            agree(page)
            page.get_by_role("button", name="Agree and send").tap()
            ack_id(page)
    assert order.read()["status"] == "completed"


def test_the_interface_is_in_spanish_but_not_the_law(windows: Windows, order: Order) -> None:
    """The notice was not translated, so it stays as it was published."""
    order.begin(locale="es")
    page = windows.open()
    page.goto(order.shop.origin)
    expect(title(page)).to_have_text("Aviso e iniciales")
    inside = page.locator("countersign-notice")
    assert inside.locator("section").get_attribute("lang") == "es"
    assert {line.get_attribute("lang") for line in inside.locator("li p.text").all()} == {"en"}
    for number in range(1, LINES + 1):
        page.get_by_label(f"Sus iniciales para la línea {number}").fill("ÑÑ")
    page.get_by_role("button", name="Continuar y revisar").click()
    agree(page)
    page.get_by_role("button", name="Aceptar y enviar").click()
    ack_id(page)
    assert order.acknowledgments()[0]["initials_per_line"] == ["ÑÑ"] * LINES


def test_typed_text_survives_a_reload_until_the_end(windows: Windows, order: Order) -> None:
    """It is kept in the tab, under the session's id, and deleted at the end."""
    page = enter(windows.open(), order.begin().shop)
    page.get_by_label("line 2").fill("RL")
    page.reload()
    expect(page.get_by_label("line 2")).to_have_value("RL")
    expect(page.get_by_label("line 1")).to_have_value("")
    assert page.evaluate("Object.keys(sessionStorage)") == [f"countersign-notice:{order.id}"]
    acknowledge(page)
    assert page.evaluate("sessionStorage.length") == 0
    page.reload()
    assert ack_id(page) == order.read()["ack_id"]
    assert events(page) == ["ready", "acknowledged"]


def test_initials_can_be_corrected_before_they_are_sent(windows: Windows, order: Order) -> None:
    page = enter(windows.open(), order.begin().shop)
    to_review(page)
    page.get_by_role("button", name="Change initials").click()
    expect(page.get_by_label("line 3")).to_have_value("AB")
    page.get_by_label("line 3").fill("CD")
    page.get_by_role("button", name="Continue").click()
    agree(page)
    page.get_by_role("button", name="Agree and send").click()
    ack_id(page)
    assert order.acknowledgments()[0]["initials_per_line"] == ["AB", "AB", "CD", "AB"]


def test_no_field_is_filled_in_for_the_buyer(windows: Windows, order: Order) -> None:
    """One field for each line, all empty; two boxes, both open."""
    page = enter(windows.open(), order.begin().shop)
    fields = page.locator("countersign-notice input")
    assert [field.input_value() for field in fields.all()] == [""] * LINES
    assert {field.get_attribute("autocomplete") for field in fields.all()} == {"off"}
    to_review(page)
    assert [box.is_checked() for box in page.get_by_role("checkbox").all()] == [False, False]


def test_the_focus_moves_to_the_first_line_without_initials(windows: Windows, order: Order) -> None:
    """Each line that is missing is named in an alert, with a way there."""
    page = enter(windows.open(), order.begin().shop)
    page.get_by_label("line 1").fill("AB")
    page.get_by_label("line 3").fill(" \u200b")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_label("line 2")).to_be_focused()
    expect(page.get_by_label("line 2")).to_have_accessible_description(
        re.compile("Line 2: type your initials")
    )
    alert = page.get_by_role("alert")
    expect(alert.get_by_role("button")).to_have_text(
        [re.compile(f"Line {number}: ") for number in (2, 3, 4)]
    )
    assert_accessible(page)
    alert.get_by_role("button", name="Line 4").click()
    expect(page.get_by_label("line 4")).to_be_focused()


def test_nothing_is_sent_without_both_statements(windows: Windows, order: Order) -> None:
    page = enter(windows.open(), order.begin().shop)
    to_review(page)
    page.get_by_role("checkbox").first.check()
    page.get_by_role("button", name="Agree and send").click()
    expect(page.get_by_role("checkbox").last).to_be_focused()
    expect(page.get_by_role("alert")).to_contain_text("Tick the box")
    assert order.read()["status"] == "open"


def test_a_buyer_can_decline(windows: Windows, order: Order) -> None:
    """After a confirmation the page gets an event, and its form has nothing to send."""
    page = enter(windows.open(), order.begin().shop)
    page.get_by_role("button", name="Decline").click()
    expect(title(page)).to_be_focused()
    assert_accessible(page)
    page.get_by_role("button", name="No, go back").click()
    page.get_by_role("button", name="Decline").click()
    page.get_by_role("button", name="Yes, decline").click()
    expect(title(page)).to_have_text("You declined")
    assert order.read()["status"] == "declined"
    assert events(page) == ["ready", "declined"]
    assert page.evaluate("document.querySelector('form').checkValidity()") is False
    assert_accessible(page)


def test_a_buyer_who_comes_back_from_the_identity_check_goes_on(
    windows: Windows, order: Order
) -> None:
    """The check is on the hosted page, in another tab: afterwards the element looks again."""
    order.begin(collect=["identity", "acknowledgment"], shipping_zip="94111")
    page = windows.open()
    page.goto(order.shop.origin)
    expect(title(page)).to_have_text("Identity check")
    assert_accessible(page)
    for outcome, then in (("zip_mismatch", "Identity check"), ("verified", "Notice and initials")):
        with page.expect_popup() as opened:
            page.get_by_role("link", name="Continue on the secure page").click()
        assert opened.value.evaluate("opener") is None
        opened.value.locator(f"#{outcome}").check()
        opened.value.get_by_role("button").first.click()
        opened.value.wait_for_load_state()
        opened.value.close()
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        expect(title(page)).to_have_text(then)
        expect(title(page)).to_be_focused()
    assert acknowledge(page) == order.read()["ack_id"]


def test_the_buyer_can_keep_a_copy(windows: Windows, order: Order) -> None:
    """The copy has its own address: the link of an ended session shows no copy."""
    page = enter(windows.open(), order.begin().shop)
    shown = acknowledge(page)
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Keep a copy").click()
    expect(opened.value.get_by_text(shown)).to_be_visible()


def test_every_state_is_accessible(windows: Windows, order: Order) -> None:
    """At WCAG 2.2 AA, as far as axe-core can see, in every look."""
    page = enter(windows.open(), order.begin().shop)
    assert_accessible_in_every_look(page)
    to_review(page)
    assert_accessible_in_every_look(page)
    agree(page)
    page.get_by_role("button", name="Agree and send").click()
    ack_id(page)
    assert_accessible_in_every_look(page)


def test_large_text_fits_on_a_small_phone(windows: Windows, order: Order) -> None:
    """At 200 % on 360 pixels, nothing is cut off and nothing scrolls sideways."""
    page = enter(windows.open(viewport={"width": 360, "height": 640}), order.begin().shop)
    page.evaluate("document.documentElement.style.fontSize = '200%'")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    to_review(page)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert_accessible(page)


def test_states_are_announced(windows: Windows, order: Order) -> None:
    """A permanent live region announces each view."""
    page = enter(windows.open(), order.begin().shop)
    live = page.get_by_role("status")
    expect(live).to_have_text("Notice and initials")
    to_review(page)
    expect(live).to_have_text("Review your initials")
    agree(page)
    page.get_by_role("button", name="Agree and send").click()
    expect(live).to_have_text("Almost done")


def test_the_order_cannot_be_sent_before_the_notice_is_acknowledged(
    windows: Windows, order: Order
) -> None:
    """`required`: as with any other field, the browser moves the focus to it."""
    page = enter(windows.open(), order.begin().shop)
    page.get_by_role("button", name="Pay").click()
    expect(page.get_by_label("line 1")).to_be_focused()
    assert page.url == f"{order.shop.origin}/"
    shown = acknowledge(page)
    assert page.evaluate("document.querySelector('countersign-notice').value") == shown
    assert page.evaluate("document.querySelector('form').checkValidity()") is True


def test_what_the_browser_claims_is_in_the_record(windows: Windows, order: Order) -> None:
    """Each line shown and initialed, a change, the review; and the size of the window."""
    page = enter(windows.open(viewport={"width": 800, "height": 700}), order.begin().shop)
    initial(page)
    page.get_by_label("line 2").fill("XY")
    for number in range(1, LINES + 1):
        # The component's observer is the older one, so it is called before this one.
        page.get_by_label(f"line {number}").evaluate(
            """field => new Promise(seen => {
                const line = field.closest("li");
                const half = ([entry]) => entry.intersectionRatio >= 0.5 && seen();
                new IntersectionObserver(half, { threshold: 0.5 }).observe(line);
                line.scrollIntoView({ block: "center" });
            })"""
        )
    page.get_by_role("button", name="Continue").click()
    agree(page)
    page.get_by_role("button", name="Agree and send").click()
    found = ack_id(page)
    resource = order.client.get(f"/v1/acknowledgments/{found}").raise_for_status().json()
    process = resource["process"]
    claimed = {(one["line"], one["event"]) for one in process["claimed"]}
    lines = range(1, LINES + 1)
    assert claimed == {
        *((number, "shown") for number in lines),
        *((number, "initialed") for number in lines),
        (2, "changed"),
        (None, "reviewed"),
    }
    assert process["viewport"] == {"width": 800, "height": 700}
    assert (process["surface"], process["script"]) == ("component", True)
    assert process["origin"] == order.shop.origin
    assert process["rendered_digest"] == sha256(COMPONENT.read_bytes()).hexdigest()
