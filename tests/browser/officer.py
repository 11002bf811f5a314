"""The tasks of docs/console.md in a browser: by mouse, by keyboard, on a phone; counted.

``python -m tests.browser.officer`` does them by mouse, and prints the duration of each.
docs/console.md has the most of each column.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from zipfile import ZipFile

from playwright.sync_api import Browser, Locator, Page, expect

from countersign_console.view import WORDS
from tests.browser.test_console import an_order, come_in, serving
from tests.http.backstage import Operator, Vendor
from tests.support.browsers import running_browser
from tests.support.service import Server

EN: Final = WORDS["en"]
REASON: Final = "Case 26-2"
ZIP: Final = "94105"
REFUSED: Final = "order 1002"
OF_ONE_BUYER: Final = 25
_TABS_MAX: Final = 80
_PATIENCE_MS: Final = 120_000
"""The dossiers of many orders take a while."""


def _by_key(target: Locator) -> None:
    """Tab to it, and press Enter, or Space for a box."""
    _tab_to(target)
    is_box = target.evaluate("it => it.type === 'checkbox'")
    target.page.keyboard.press("Space" if is_box else "Enter")


def _type_by_key(target: Locator, text: str) -> None:
    """Over what is there; a date as its parts, as the browser asks for them."""
    _tab_to(target)
    if target.get_attribute("type") == "date":
        year, month, day = text.split("-")
        target.page.keyboard.type(f"{month}{day}{year}")
        return
    target.page.keyboard.press("Control+A")
    if text:
        target.page.keyboard.insert_text(text)
    else:
        target.page.keyboard.press("Delete")


def _tab_to(target: Locator) -> None:
    """Past the menu by the first link, if it is behind it."""
    keyboard = target.page.keyboard
    is_new, is_inside = target.evaluate(
        "it => [document.activeElement === document.body, Boolean(it.closest('main'))]"
    )
    if is_new and is_inside:
        keyboard.press("Tab")
        keyboard.press("Enter")
    for _ in range(_TABS_MAX):
        if target.evaluate("it => it === document.activeElement"):
            return
        keyboard.press("Tab")
    raise AssertionError(f"{target} is not reached by keyboard at {target.page.url}")


@dataclass(frozen=True)
class Manner:
    """How a person uses the pages."""

    press: Callable[[Locator], None] = Locator.click
    type: Callable[[Locator, str], None] = Locator.fill
    window: Mapping[str, Any] = field(default_factory=dict)


_PHONE: Final = {
    "viewport": {"width": 320, "height": 640},
    "is_mobile": True,
    "has_touch": True,
    "color_scheme": "dark",
}
MANNERS: Final[Mapping[str, Manner]] = {
    "mouse": Manner(),
    "keyboard": Manner(press=_by_key, type=_type_by_key),
    "phone in the dark": Manner(press=Locator.tap, window=_PHONE),
}


@dataclass(frozen=True)
class Desk:
    """A server with a console, and the cookies of a signed-in compliance officer."""

    server: Server
    operator: Operator
    console: str
    cookies: Any
    others: Any
    """The cookies of a colleague."""


@dataclass
class Officer:
    """A person of compliance with an open page, and a shop with one order and a buyer who waits."""

    page: Page
    account_id: str
    manner: Manner
    colleague: Page
    front: str
    """The address of the page that each further task begins at."""
    shop: Vendor
    buyer: str = ""
    """The buyer of many orders."""
    orders: int = 0
    """Their number."""
    failed: str = ""
    """The code of a request that failed."""
    presses: int = 0
    fields: int = 0
    decided: str = ""
    """The buyer who was decided on."""

    def press(self, name: str, form: str = "") -> None:
        """Press the button with this word, of the page or of the form that does this."""
        place = self.page.locator(f"form[action$='{form}']") if form else self.page
        self._press(place.get_by_role("button", name=EN[name], exact=True))

    def follow(self, link: str) -> None:
        """Follow the link with this word, or to this address."""
        found = (
            self.page.get_by_role("link", name=EN[link], exact=link.startswith("act_"))
            if link in EN
            else None
        )
        with self.page.expect_navigation():
            self._press(found or self.page.locator(f"a[href$='{link}']"))

    def go(self, page: str, where: str = "test") -> None:
        """Choose a page in the menu, which a phone shows only when opened."""
        menu = self.page.locator("nav.pages summary")
        if menu.is_visible():
            self._press(menu)
        self.follow(f"/{where}/{page}")
        expect(self.page.get_by_role("heading", level=1)).to_have_text(EN[f"page_{page}"])

    def own(self) -> None:
        """Open what is the person's own, which a phone shows only then."""
        own = self.page.locator(".own summary")
        if own.is_visible():
            self._press(own)

    def write(self, target: str, text: str, form: str = "", *, free: bool = False) -> None:
        """Write into a field; the text of a notice itself, which is `free`, is not counted."""
        place = self.page.locator(f"form[action$='{form}']") if form else self.page
        self.fields += not free
        self.manner.type(place.locator(target), text)

    def choose(self, name: str, value: str) -> None:
        """Choose of a select, which counts as a field."""
        self.fields += 1
        self.page.locator(f"[name={name}]").select_option(value)

    def begin(self) -> None:
        self.page.goto(self.front)

    def press_each(self, target: str, number: int) -> None:
        for one in range(number):
            self._press(self.page.locator(target).nth(one))

    def tick(self) -> None:
        self._press(self.page.locator("[name=sure]"))

    def sees(self, text: str) -> None:
        expect(self.page.get_by_text(text).first).to_be_visible()

    def take(self, name: str, *, is_link: bool = False) -> bytes:
        """Press the button, or the link, that gives a file."""
        with self.page.expect_download() as given:
            if is_link:
                self._press(self.page.get_by_role("link", name=EN[name]))
            else:
                self.press(name)
        return Path(given.value.path()).read_bytes()

    def _press(self, target: Locator) -> None:
        self.presses += 1
        self.manner.press(target)


def said(name: str) -> str:
    """The first words of what a page says after an act."""
    return EN[f"said_{name}"].partition("{")[0].strip()


def find(one: Officer) -> None:
    one.write("#query", "order 1001")
    one.press("search_button")
    one.sees(EN["verdict_cleared"])
    assert "1001" not in one.page.url


def understand(one: Officer) -> None:
    """The page of the order says it at once."""
    one.sees(EN["missing"])
    one.sees(EN["timeline"])


def read(one: Officer) -> None:
    one.write("#why", REASON)
    one.press("act_read")
    expect(one.page.get_by_text("JD", exact=True).first).to_be_visible()
    assert "JD" not in one.page.title()


def hand_over(one: Officer) -> None:
    one.follow("back_to_order")
    one.write("#why", REASON)
    assert one.take("evidence_certificate").startswith(b"%PDF-")
    one.press("evidence_cover")
    one.sees(EN["cover_what"])
    assert one.take("save_dossier", is_link=True).startswith(b"PK")


def hold(one: Officer) -> None:
    one.follow("back_to_order")
    one.follow("act_hold")
    one.write("[name=reason]", REASON, form="/hold")
    one.press("act_hold")
    one.sees(said("hold"))
    one.sees(EN["verdict_held"])


def decide(one: Officer) -> None:
    """Accept the ZIP code of the buyer who waits."""
    one.go("reviews")
    one.follow("open")
    one.decided = one.page.locator("main dl .id").first.inner_text()
    one.write("#field-zip", ZIP)
    one.write("#field-document", "a bill of this month")
    one.press("act_accept_zip")
    one.sees(said("decided_accept_zip"))


def erase(one: Officer) -> None:
    """Erase the buyer who was decided on: first the preview, then the act."""
    one.go("erasures")
    one.write("#subject", one.decided)
    one.press("erase_preview")
    one.sees(EN["effect"])
    one.choose("why", "request")
    one.tick()
    one.press("act_erase")
    one.sees(EN["erase_done"])
    assert "cbid" not in one.page.url


def publish(one: Officer) -> None:
    """Copy a version, change a line, publish; another person opens the address of the review."""
    address = _published(one, "01")
    one.page, own = one.colleague, one.page
    one.page.goto(address)
    _review(one)
    one.page = own


def _published(one: Officer, month: str) -> str:
    """Publish a version of a day of its own; gives the address of its review."""
    day = f"2026-{month}-0{2 + [*MANNERS.values()].index(one.manner)}"
    one.go("notices", "all")
    one.follow("notices/ab1263~2026-01-01-incomplete/copy_notice")
    one.write("[name='n.effective_from']", day)
    one.write("[name='n.letter.5']", "E", free=True)
    one.write("[name='n.text.5']", "Allowing others to do so.", free=True)
    one.write("[name='n.text_gaps']", "", free=True)
    one.press("act_copy_notice")
    one.sees(EN["differences"])
    one.press("act_publish_notice")
    one.sees(said("publish_notice"))
    return one.page.locator(f"text=~{day}/review_notice").inner_text()


def _review(one: Officer) -> None:
    one.write("[name=against]", "https://leginfo.legislature.ca.gov/x")
    one.press("act_review_notice")
    one.sees(said("review_notice").partition(" ")[0])


def see_state(one: Officer) -> None:
    one.go("state", "all")
    one.sees(EN["promise_time_stamped"])
    one.sees(EN["promise_backed_up"])


def see_who_looked(one: Officer) -> None:
    one.go("orders", f"{one.account_id}/live")
    one.own()
    one.follow("to_test")
    one.go("audit")
    one.sees(REASON)


def see_refused_of_a_day(one: Officer) -> None:
    """The last refused order of a day."""
    one.choose("state", "refused")
    one.write("#filter-day", f"{datetime.now(UTC):%Y-%m-%d}")
    one.press("filter")
    one.press_each("table.orders a", 1)
    one.sees(EN["verdict_refused"])


def hand_over_all(one: Officer) -> None:
    """All orders of one buyer, for counsel."""
    one.write("#query", one.buyer)
    one.press("search_button")
    one.follow("tick_all")
    one.write("#why", REASON)
    with ZipFile(BytesIO(one.take("dossiers_ticked"))) as packed:
        assert len(packed.namelist()) == one.orders


def hold_three(one: Officer) -> None:
    """Three orders, for a matter."""
    one.press_each("input[name^='order.']", 3)
    one.press("hold_ticked")
    one.write("[name=reason]", REASON)
    one.write("[name=matter_name]", "Doe v. Ridgeline")
    one.press("act_hold")
    one.sees(said("hold"))


def explain_refusal(one: Officer) -> None:
    """A customer who was turned away, who says the number of the order."""
    one.write("#query", REFUSED)
    one.press("search_button")
    one.sees(EN["verdict_refused"])
    one.sees(EN["reasons"])


def put_live(one: Officer) -> None:
    """A version of a notice, with two people who both begin at the front page."""
    address = _published(one, "02")
    one.page, own = one.colleague, one.page
    one.begin()
    one.go("notices", "all")
    one.follow(address.partition("/console/all/")[2])
    _review(one)
    one.page = own


def explain_failure(one: Officer) -> None:
    """Why a developer's request failed: its code, and the page of the guide about it."""
    one.page, own = one.colleague, one.page
    one.begin()
    one.go("requests")
    one.follow(f"/docs/errors#{one.failed}")
    one.page = own


TASKS: Final[Mapping[str, tuple[Callable[[Officer], None], str]]] = {
    "Find an order": (find, "4"),
    "See what happened, and what is missing": (understand, "with the first"),
    "Read the initials": (read, "with the first"),
    "Print it, and hand it to counsel": (hand_over, "3"),
    "Hold it": (hold, "2"),
    "Decide a buyer who waits": (decide, "4"),
    "Answer an erasure": (erase, "4"),
    "Publish and review a notice": (publish, "4 and an editor"),
    "See that all is well": (see_state, "not tried"),
    "See who looked": (see_who_looked, "not tried"),
}
"""The ten tasks in the order of docs/console.md, and the commands that each took before as root."""
FURTHER: Final[Mapping[str, Callable[[Officer], None]]] = {
    "The last refused order of a day": see_refused_of_a_day,
    "All 25 orders of one buyer, for counsel": hand_over_all,
    "Hold three orders for a matter": hold_three,
    "A customer who was turned away": explain_refusal,
    "Put a notice live with two people": put_live,
    "Why a developer's request failed": explain_failure,
}
"""Tasks that each begin at the front page, in a shop with more orders."""


def fill(one: Officer, orders: int) -> None:
    """Give the shop an order that was refused, and a buyer with so many orders."""
    one.orders = orders

    def post(path: str, **body: object) -> Any:  # noqa: ANN401 - JSON
        return one.shop.test.post(path, json=body).raise_for_status().json()

    shipping = {"shipping_zip": ZIP, "test_mode": True}
    who = {"provider_identity_session_id": "session-2", **shipping}
    one.buyer = post("/v1/buyers/verify", **who)["cbid"]
    one.failed = one.shop.test.get("/v1/notices/ab1264").json()["error"]["code"]
    lines = len(one.shop.test.get("/v1/notices/ab1263").json()["bullets"])
    given = {"initials_per_line": ["JD"] * lines, "ip": "203.0.113.7"}
    named = [{"session_id": f"of-one-{n}", "cbid": one.buyer} for n in range(orders)]
    made = [post("/v1/notices/ab1263/acknowledge", **given, **names) for names in named][-1]
    wait = {"Prefer": "wait=10"}
    one.shop.test.get(
        f"/v1/acknowledgments/{made['ack_id']}/proof", headers=wait
    ).raise_for_status()
    order = {"session_id": "refused", "order_reference": REFUSED}
    asked = {"provider_identity_session_id": "test_zip_mismatch", **shipping}
    cbid = post("/v1/buyers/verify", **asked)["cbid"]
    made = post("/v1/notices/ab1263/acknowledge", **given, **order, cbid=cbid)
    about = {"ack_id": made["ack_id"], "cbid": cbid, "shipping_zip": ZIP}
    assert not post("/v1/clearances", **about, **order, product_class="firearm_accessory")[
        "cleared"
    ]


@contextmanager
def a_desk(folder: Path, browser: Browser) -> Iterator[Desk]:
    """Serve, and let a person of compliance come in."""
    with serving(folder) as server, Operator(server.deployment) as operator:
        with browser.new_context() as context:
            console = come_in(context.new_page(), server, "Cora", "compliance", start="page_state")
            cookies = context.storage_state()
        with browser.new_context() as context:
            come_in(context.new_page(), server, "Ada", "owner", start="page_state")
            others = context.storage_state()
        yield Desk(server, operator, console, cookies, others)


@contextmanager
def an_officer(desk: Desk, page: Page, colleague: Page, manner: Manner) -> Iterator[Officer]:
    """Open the orders of a shop that has one order and one waiting buyer."""
    with desk.operator.vendor(desk.server) as shop:
        an_order(shop.test)
        front = f"{desk.console}/{shop.account_id}/test/orders"
        page.goto(front)
        yield Officer(page, shop.account_id, manner, colleague, front, shop)


def measured(browser: Browser, desk: Desk) -> Iterator[str]:
    """Do the tasks by mouse; gives a line of the table for each."""
    page = browser.new_context(storage_state=desk.cookies).new_page()
    page.set_default_timeout(_PATIENCE_MS)
    colleague = browser.new_context(storage_state=desk.others).new_page()
    with an_officer(desk, page, colleague, MANNERS["mouse"]) as one:
        for name, (task, before) in TASKS.items():
            yield f"| {name} | {before} | {_counted(one, task)}"
        fill(one, OF_ONE_BUYER)
        for name, task in FURTHER.items():
            one.begin()
            yield f"| {name} | new | {_counted(one, task)}"


def _counted(one: Officer, task: Callable[[Officer], None]) -> str:
    """Presses, fields and seconds."""
    one.presses = one.fields = 0
    begun = time.perf_counter()
    task(one)
    return f"{one.presses} | {one.fields} | {time.perf_counter() - begun:.1f} |"


def main() -> int:
    with (
        TemporaryDirectory() as folder,
        running_browser() as browser,
        a_desk(Path(folder) / "data", browser) as desk,
    ):
        for line in measured(browser, desk):
            sys.stdout.write(f"{line}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
