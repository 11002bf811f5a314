"""The pages of acts: a name and one id for each field, errors at the fields, and the outcome."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

import pytest

from countersign.core.access.role import Role
from countersign_console.pages import PAGES
from countersign_console.view import WORDS
from tests.checkout.surfer import Page
from tests.console.test_pages import who_waits
from tests.console.visitor import Vendor, Visitor, an_officer, forms, places
from tests.http.backstage import notice_json
from tests.people.crew import Console, in_console
from tests.support.document import committed_document

pytestmark = pytest.mark.one_engine
EN: Final = WORDS["en"]
UNSEEN: Final = frozenset({"hidden"})


class Fields(HTMLParser):
    """The ids of a page, and the fields that have no name for a screen reader."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.labels: set[str] = set()
        self.unnamed: list[tuple[str, str]] = []
        self._inside = 0
        self.feed(text)
        self.unnamed = [one for one in self.unnamed if one[0] not in self.labels]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        have = {name: value or "" for name, value in attrs}
        self.ids += [have["id"]] if "id" in have else []
        if tag == "label":
            self._inside += 1
            self.labels |= {have["for"]} if "for" in have else set()
        is_field = tag in {"input", "select", "textarea"} and have.get("type") not in UNSEEN
        is_named = self._inside or have.get("aria-label")
        if is_field and not (is_named and have.get("name")):
            self.unnamed.append((have.get("id", ""), have.get("name", "")))

    def handle_endtag(self, tag: str) -> None:
        self._inside -= tag == "label"


async def every_page(console: Console, locales: tuple[str, ...] = ("en",)) -> list[tuple[str, str]]:
    """Each page, item and act of a shop with an order, a buyer who waits, a hold and a notice."""
    account = await console.account("vendor")
    vendor = await Vendor.of(console, account)
    order = await vendor.order("cs_1", "order 1001")
    await who_waits(console, account)
    await vendor.ask("POST", "/v1/webhook_endpoints", {"url": "https://shop.example/hooks"})
    where = places(account)
    owner = Visitor(console, (await console.person("Ada", Role.OWNER)).session)
    cora = Visitor(console, (await console.person("Cora", Role.COMPLIANCE)).session)
    its = f"{where[False, 'orders']}/{order['ack_id']}"
    notice = {"notice": notice_json("whole", "1")}
    await console.ask(owner.session, "/v1/notices/publish", "POST", body=notice)
    await owner.send(f"{its}/hold", reason="case 7", matter_name="Doe")
    await owner.send(f"{where[False, 'keys']}/-/create_key", key_reason="case 7")
    found = list[tuple[str, str]]()
    for one in (owner, cora):
        known = {its, *where.values(), *forms(account)}
        seen = set[str]()
        while known - seen:
            path = min(known - seen)
            seen.add(path)
            shown = await one.raw("GET", path)
            if shown.status_code != 200:
                assert shown.status_code in {303, 403, 404}, (path, shown.status_code)
                continue
            found.append((path, shown.text))
            for lang in locales[1:]:
                found.append((path, (await one.raw("GET", f"{path}?lang={lang}")).text))
            page = Page(shown)
            items = [have["href"] for _, have in page.elements if "href" in have]
            below = [i for i in items if i.startswith(f"{path}/") and "?" not in i]
            known |= {*below[-12:]}
    return found


def test_each_field_of_each_page_has_a_name_and_each_id_is_there_once(tmp_path: Path) -> None:
    """As do the pages of all acts, in each language: a click on a label goes to its field."""

    async def work(console: Console) -> set[str]:
        acts = set()
        for path, text in await every_page(console):
            fields = Fields(text)
            assert not fields.unnamed, (path, fields.unnamed)
            assert len(fields.ids) == len({*fields.ids}), (path, sorted(fields.ids))
            acts.add(path.rpartition("/")[2])
        return acts

    seen = in_console(tmp_path, work)
    declared = {act.name for page in PAGES.values() for act in (*page.new, *page.acts)}
    # Their forms are on the page of the item, or come after another form.
    elsewhere = {"resend_event", "remove_origin", "accept_zip", "publish_notice"}
    rare = {"enable_account", "enable_endpoint", "cancel_link", "override", "reinstate_notice"}
    assert declared - seen <= elsewhere | rare


def test_an_act_that_needs_a_passkey_asks_for_it_before_its_form() -> None:
    """It is declared where the operation of the API needs one, and nowhere else."""
    document: Any = committed_document()
    wrong = []
    for page in PAGES.values():
        for act in (*page.new, *page.acts):
            path = re.sub(r"\{id\}", "{x}", act.path)
            known = {re.sub(r"\{\w+\}", "{x}", one): it for one, it in document["paths"].items()}
            if act.run is None:
                answers = known[path][act.method.lower()]["responses"]
                needs = "passkey_required" in str(answers.get("403", ""))
                wrong += [act.name] if needs is not act.fresh else []
    assert wrong == []


def test_what_is_missing_is_said_at_each_field(tmp_path: Path) -> None:
    """In the title, in a list with links, and at the field, which has the focus."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        own = Visitor(console, (await console.person("Ada", Role.OWNER, account)).session)
        sent = await own.send(f"{places(account)[False, 'people']}/-/invite", name="Sam")
        page = Page(sent)
        said = EN["field_missing"].format(label=EN["column_role"])
        assert (sent.status_code, page.links[said]) == (422, "#field-role")
        (field,) = page.having(id="field-role")
        assert (field["aria-invalid"], "autofocus" in field) == ("true", True)
        assert page.having(id=field["aria-describedby"])
        assert sent.text.partition("<title>")[2].startswith(EN["error_title"])
        assert 'value="Sam"' in sent.text

    in_console(tmp_path, work)


def test_a_second_hold_is_asked_about_and_all_are_shown(tmp_path: Path) -> None:
    """With reason and matter, on the order's page too."""

    async def work(console: Console) -> None:
        own, its, _ = await an_officer(console)
        first = await own.send(f"{its}/hold", reason="case 7", matter_name="Doe")
        assert "Matter: Doe. Reason: case 7." in Page(first).text
        page = await own.open(f"{its}/hold")
        assert "case 7 (matter: Doe)" in page.text
        form = await own.form(f"{its}/hold")
        refused = await own.press(form, reason="case 8")
        assert (refused.status_code, EN["column_again"] in refused.text) == (422, True)
        await own.press(form, reason="case 8", again="1")
        shown = (await own.open(its)).text
        assert all(one in shown for one in ("case 7", "case 8", "Doe"))

    in_console(tmp_path, work)


def test_a_buyer_is_erased_from_the_order(tmp_path: Path) -> None:
    """With numbers before it, and after it the facts for a letter; a reason is chosen."""

    async def work(console: Console) -> None:
        own, its, order = await an_officer(console)
        page = await own.open(f"{its}/erase")
        assert f"{EN['kind_ack']}: 1" in page.text
        assert order["cbid"] not in str(page.links)
        form = await own.form(f"{its}/erase")
        assert form.fields.get("why", "") == ""
        refused = await own.press(form, sure="1")
        assert refused.status_code == 422
        done = await own.press(form, sure="1", why="request", with_acknowledgments="1")
        assert (done.status_code, EN["erase_done"] in Page(done).text) == (200, True)
        assert f"{EN['kind_ack']}: 1" in Page(done).text
        assert EN["erased_parts"] in (await own.open(its)).text

    in_console(tmp_path, work)
