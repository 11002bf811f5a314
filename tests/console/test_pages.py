"""Pages in this process: their acts, what each reader sees, and complete lists."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import unescape
from io import StringIO
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from countersign.base.values import Mode, from_ns
from countersign.core.access.account import set_settings
from countersign.core.access.reach import reach_of
from countersign.core.access.role import Role
from countersign.core.gate.route import Reply
from countersign.core.log.audit_chain import seal_audit
from countersign.staff.people import roles
from countersign_console.pages import PAGES
from countersign_console.view import WORDS
from tests.console.visitor import Vendor
from tests.people.crew import Console, Person, in_console
from tests.remembered.device import ORIGIN
from tests.support.acts import done

EN: Final = WORDS["en"]
HOST: Final = ORIGIN.partition("//")[2]
KEPT: Final = re.compile(r"[?&](v|found)=")
HOOK: Final = "https://shop.example/hooks"


@dataclass
class Browser:
    """The browser of a person who is signed in, at the pages of an account and mode or of all."""

    console: Console
    person: Person
    place: str = "all"

    async def get(self, page: str) -> str:
        reply = await self._ask("GET", page)
        text = reply.body.decode()
        assert reply.status == 200, text
        assert b"cbid_" not in page.encode()
        return unescape(text)

    async def at(self, page: str) -> Reply:
        return await self._ask("GET", page)

    async def send(self, page: str, **form: str) -> Reply:
        """Send a form of a page; the page that shows what was kept of it, or the way elsewhere."""
        code = {"code": self.console.host.form_code(self.person.session)}
        reply = await self._ask("POST", page, urlencode(code | form).encode())
        while KEPT.search(to := dict(reply.headers).get(b"location", b"").decode()):
            assert "cbid_" not in to
            lang = "&" + page.partition("?")[2]
            place = to.removeprefix("/console/").removeprefix(f"{self.place}/")
            reply = await self._ask("GET", place + lang)
        return reply

    async def did(self, page: str, **form: str) -> str:
        """Send a form that succeeds; returns the text of the next page, or of this one."""
        reply = await self.send(page, **form)
        if reply.status != 303:
            assert reply.status == 200, reply.body.decode().partition("<main")[2]
            return unescape(reply.body.decode())
        to = dict(reply.headers)[b"location"].decode().removeprefix("/console/")
        assert "cbid_" not in to
        assert not to.startswith("passkey")
        shown = await self._ask("GET", to.removeprefix(f"{self.place}/"))
        assert shown.status == 200
        return unescape(shown.body.decode())

    async def _ask(self, method: str, page: str, body: bytes = b"") -> Reply:
        cookie = self.console.host.cookie_name("session")
        headers = {"Host": HOST, "Cookie": f"{cookie}={self.person.session}", "Origin": ORIGIN}
        if body:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        return await self.console.http(method, f"/console/{self.place}/{page}", headers, body)


async def api(
    console: Console,
    person: Person,
    path: str,
    method: str = "GET",
    **given: Any,  # noqa: ANN401 - as `call` takes
) -> Any:  # noqa: ANN401 - JSON
    answer = await console.ask(person.session, path, method, **given)
    assert answer.ok, answer.data
    return answer.data


async def a_key(console: Console, account: str, *scopes: str) -> Mapping[str, str]:
    owner = await console.person(f"Owner of {account}", Role.OWNER, account)
    about: dict[str, Any] = {"account": account, "mode": "test"}
    body = {"scopes": [*scopes]} if scopes else {}
    made = await api(console, owner, "/v1/keys", "POST", body=body, reason="to set it up", **about)
    return {"Authorization": f"Bearer {made['key']}", "Content-Type": "application/json"}


async def who_waits(console: Console, account: str, number: int = 1) -> None:
    """Have buyers of the sandbox wait for a decision: their ZIP codes are against them."""
    key = await a_key(console, account)
    for one in range(number):
        body = (
            b'{"provider_identity_session_id": "test_zip_mismatch", "test_mode": true, '
            b'"shipping_zip": "%05d"}' % (10_000 + one)
        )
        reply = await console.http("POST", "/v1/buyers/verify", key, body)
        assert reply.status == 200, reply.body


def said(name: str) -> str:
    """The first words of what a page says after an act."""
    return EN[f"said_{name}"].partition("{")[0]


def first(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    assert found is not None, text
    return found[1]


def test_two_people_decide_in_the_console(tmp_path: Path) -> None:
    """The first press proposes, the same person is refused, another one decides."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        await done(set_settings, console.deployment.access, account, reviewers=2)
        await who_waits(console, account)
        ada, bob = [
            Browser(
                console, await console.person(name, Role.COMPLIANCE, account), f"{account}/test"
            )
            for name in ("Ada", "Bob")
        ]
        place = first(r"/(reviews/ver_\w+)", await ada.get("reviews"))
        form = {"zip": "94110", "document": "a bill", "reason": "case 7"}
        assert said("proposed") in await ada.did(f"{place}/accept_zip", **form)
        refused = await ada.send(f"{place}/accept_zip", **form)
        assert (refused.status, b"not a second one" in refused.body) == (409, True)
        shown = await bob.get(place)
        assert EN["proposal_accept_zip"] in shown
        assert "94110" not in shown
        assert "Ada" in shown
        assert said("decided_accept_zip") in await bob.did(f"{place}/accept_zip", **form)
        assert EN["none_reviews"] in await bob.get("reviews")

    in_console(tmp_path, work)


def test_a_shop_refuses_a_buyer_and_clears_again(tmp_path: Path) -> None:
    """By people who may decide, with a reason for the audit; an auditor has no such button."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        await who_waits(console, account)
        place = f"{account}/test"
        ada = Browser(console, await console.person("Ada", Role.COMPLIANCE, account), place)
        attempt = first(r"/(reviews/ver_\w+)", await ada.get("reviews"))
        assert EN["act_block"] in await ada.get(attempt)
        assert (await ada.send(f"{attempt}/block", reason="")).status == 422
        assert said("block") in await ada.did(f"{attempt}/block", reason="case 24-1187")
        assert said("unblock") in await ada.did(f"{attempt}/unblock", reason="case 24-1188")
        eve = Browser(console, await console.person("Eve", Role.AUDITOR, account), place)
        assert EN["act_block"] not in await eve.get(attempt)
        noted = await eve.get("audit")
        assert "case 24-1187" in noted
        assert "case 24-1188" in noted

    in_console(tmp_path, work)


def test_a_refusal_names_the_field_by_its_label_and_keeps_what_was_typed(tmp_path: Path) -> None:
    """No path in JSON; a page in Spanish says that the words are English, or has its own."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        await who_waits(console, account)
        cora = await console.person("Cora", Role.COMPLIANCE, account)
        browser = Browser(console, cora, f"{account}/test")
        place = first(r"/(reviews/ver_\w+)", await browser.get("reviews"))
        form = {"zip": "no ZIP", "document": "a bill", "reason": "case 7"}
        shown = {
            lang: unescape(
                (await browser.send(f"{place}/accept_zip?lang={lang}", **form)).body.decode()
            )
            for lang in WORDS
        }
        assert "$." not in "".join(shown.values())
        for lang, page in shown.items():
            assert f": {WORDS[lang]['column_zip']}.</a>" in page
            assert f"<title>{WORDS[lang]['error_title']}" in page
            assert 'value="a bill"' in page
            assert 'value="case 7"' in page
            assert 'id="field-zip" name="zip" value="no ZIP" required aria-invalid' in page
        assert WORDS["es"]["problem_other"].partition("{")[0] in shown["es"]
        unknown = await browser.send("erasures/-/preview?lang=es", subject="cbid_nope")
        assert WORDS["es"]["problem_unknown_subject"] in unescape(unknown.body.decode())

    in_console(tmp_path, work)


def test_evidence_is_shown_for_a_reason_to_those_who_may_see_it(tmp_path: Path) -> None:
    """The audit keeps the reason; support has no form for it, and is refused without one."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        await who_waits(console, account)
        place, seen = f"{account}/test", {}
        for role in (Role.COMPLIANCE, Role.AUDITOR, Role.OWNER):
            browser = Browser(console, await console.person(role, role, account), place)
            attempt = first(r"/(reviews/ver_\w+)", await browser.get("reviews"))
            page = await browser.get(attempt)
            offered = f"{attempt}/evidence" in page, f"{attempt}/accept_zip" in page
            without = (await browser.send(f"{attempt}/evidence")).status
            reply = await browser.send(f"{attempt}/evidence", reason="case 24-1187")
            assert dict(reply.headers)[b"cache-control"] == b"no-store"
            seen[role] = (*offered, without, reply.status)
        assert seen == {
            Role.COMPLIANCE: (True, True, 400, 200),
            Role.AUDITOR: (True, False, 400, 200),
            Role.OWNER: (False, True, 403, 403),
        }
        auditor = Browser(console, await console.person("Eve", Role.AUDITOR, account), place)
        assert "case 24-1187" in await auditor.get("audit")

    in_console(tmp_path, work)


def test_every_item_of_a_long_list_is_reached(tmp_path: Path) -> None:
    """Page after page, in the audit by a form, and as a file with its filter."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        owner = await console.person("Ada", Role.OWNER, account)
        about: dict[str, Any] = {"account": account, "mode": "test"}
        made = {
            (await api(console, owner, "/v1/matters", "POST", body={"name": f"case {n}"}, **about))[
                "matter_id"
            ]
            for n in range(55)
        }
        browser = Browser(console, owner, f"{account}/test")
        page = await browser.get("matters")
        found = {*re.findall(r"matters/(mat_\w+)", page)}
        assert len(found) == 50
        after = first(r"/(matters\?after=[^\"]+)", page)
        found |= {*re.findall(r"matters/(mat_\w+)", await browser.get(after))}
        assert found == made
        staff = await console.person("Staff", Role.AUDITOR)
        audit = Browser(console, staff)
        opened = {"action": "matter_opened"}
        page = await audit.did("audit/-/find", **opened)
        after = first(r'name="after" value="(\w+)"', page)
        assert page.count("Matter opened</td>") == 50
        rest = await audit.did("audit/-/find", after=after, **opened)
        assert rest.count("Matter opened</td>") == 5
        file = (await audit.send("audit/-/csv", **opened)).body.decode()
        assert file.count("\r\n") == 57
        assert all(one in file for one in made)
        refused = await audit.send("audit/-/csv", begin="yesterday")
        assert refused.status == 400

    in_console(tmp_path, work)


def test_the_audit_is_filtered_by_names_and_acts_in_words(tmp_path: Path) -> None:
    """By all who ever had a role there, and no one else; an act leads to its order."""

    async def work(console: Console) -> None:
        account, other = await console.account("vendor"), await console.account("other")
        order = await (await Vendor.of(console, account)).order("cs_1", "order 1001")
        owner = await console.person("Ada", Role.OWNER, account)
        cora = await console.person("Cora", Role.COMPLIANCE, account)
        await console.person("Otto", Role.OWNER, other)
        place, said = f"{account}/test", {"subject": order["ack_id"], "reason": "case 7"}
        await Browser(console, cora, place).did("holds/-/place_hold", **said)
        await done(
            roles.remove,
            console.deployment.people,
            cora.id,
            reach_of(account, Mode.LIVE),
        )
        audit = Browser(console, owner, place)
        page = await audit.get("audit")
        assert f'<option value="{cora.id}">Cora</option>' in page
        assert '<option value="hold_placed">Hold placed</option>' in page
        assert "Otto" not in page
        found = await audit.did("audit/-/find", actor=cora.id, action="hold_placed")
        assert found.count(">Hold placed</td>") == 1
        assert f'<option value="{cora.id}" selected>Cora</option>' in found
        to = first(r'href="/console/[^"]+/test/(orders/ack_\w+)"', found)
        assert EN["item_orders"] in await audit.get(to)
        nothing = await audit.did("audit/-/find", actor=cora.id, action="matter_opened")
        assert EN["audit_nothing"] in nothing
        await seal_audit(console.deployment.log, now_too=True)
        file = (await audit.send("audit/-/csv", actor=cora.id)).body.decode()
        lines = [*csv.DictReader(StringIO(file))]
        assert {one["name"] for one in lines[:-1]} == {"Cora"}
        assert lines[-1]["audit_id"] == "head"
        assert re.fullmatch("[0-9a-f]{64}", lines[-1]["subject"])

    in_console(tmp_path, work)


def test_an_account_has_its_brand_origins_and_end(tmp_path: Path) -> None:
    """The contrast of the colour is shown; a test page shows the brand; closing is previewed."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        owner = Browser(console, await console.person("Ada", Role.OWNER))
        place = f"accounts/{account}"
        assert EN["said_change_brand"] in await owner.did(f"{place}/change_brand", color="#ffd24d")
        assert EN["contrast_weak"] in await owner.get(place)
        assert EN["said_add_origin"] in await owner.did(
            f"{place}/add_origin", origin="https://shop.example"
        )
        assert "https://shop.example" in await owner.get(place)
        assert EN["said_remove_origin"] in await owner.did(
            f"{place}/remove_origin", origin="https://shop.example"
        )
        assert f"{ORIGIN}/c/" in await owner.did(f"{place}/preview")
        assert EN["said_change_account"] in await owner.did(
            f"{place}/change_account", reviewers="2"
        )
        assert EN["closing_records"] in await owner.get(f"{place}/close_account")
        assert (await owner.send(f"{place}/close_account")).status == 422
        assert EN["said_close_account"] in await owner.did(f"{place}/close_account", sure="1")
        looks = Browser(console, await console.person("Cora", Role.COMPLIANCE))
        assert "/change_brand" not in await looks.get(place)

    in_console(tmp_path, work)


def test_an_endpoint_is_changed_tried_and_caught_up(tmp_path: Path) -> None:
    """Its deliveries stand below it, each to be sent again."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        person = await console.person("Dev", Role.DEVELOPER, account)
        dev = Browser(console, person, f"{account}/test")
        ticked = {"event_types.acknowledgment.created": "1"}
        shown = await dev.did("webhooks/-/add_endpoint", url=HOOK, **ticked)
        place = f"webhooks/{first('(whe_[a-z0-9]+)', shown)}"
        assert "acknowledgment.created" in await dev.get(place)
        assert EN["said_change_endpoint"] in await dev.did(
            f"{place}/change_endpoint", every_event_type="1", description="orders"
        )
        await api(
            console,
            person,
            "/v1/test/events",
            "POST",
            account=account,
            mode="test",
            body={"type": "acknowledgment.created"},
        )
        events = await api(console, person, "/v1/events", account=account, mode="test")
        event = events["data"][-1]["id"]
        assert EN["said_resend_event"] in await dev.did(f"{place}/resend_event", event_id=event)
        assert f'name="event_id" value="{event}"' in await dev.get(place)
        assert EN["said_recover"] in await dev.did(f"{place}/recover", since="2026-11-01")
        assert EN["said_disable_endpoint"] in await dev.did(f"{place}/disable_endpoint")
        page = await dev.get(place)
        assert "/enable_endpoint" in page
        assert "/recover" not in page
        assert EN["said_enable_endpoint"] in await dev.did(f"{place}/enable_endpoint")

    in_console(tmp_path, work)


def test_a_link_is_made_shown_and_cancelled(tmp_path: Path) -> None:
    """For an order, with its costs; its address is shown once."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        person = await console.person("Dev", Role.DEVELOPER, account)
        dev = Browser(console, person, f"{account}/test")
        form = {
            "return_url": "https://shop.example/done",
            "notice_id": "ab1263",
            "order_reference": "order 1001",
        }
        what = {"order_text": "Handguard", "amount": "189.00"}
        assert (await dev.send("orders/-/create_link", **form, **what)).status == 400
        form |= what | {"currency": "USD", "code": console.host.form_code(person.session)}
        shown = await dev.did("orders/-/create_link", **form)
        place = f"orders/{first(r'(chk_[a-z0-9]+)', shown)}"
        assert place.removeprefix("orders/") in await dev.did("orders/-/create_link", **form)
        assert f"{ORIGIN}/c/" in shown
        assert EN["value_waiting_for_buyer"] in await dev.get(place)
        assert EN["said_cancel_link"] in await dev.did(f"{place}/cancel_link", sure="1")
        assert "/cancel_link" not in await dev.get(place)

    in_console(tmp_path, work)


def test_a_key_has_the_ticked_scopes(tmp_path: Path) -> None:
    """No one is offered a scope for a key that they lack themselves."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        person = await console.person("Dev", Role.DEVELOPER, account)
        dev = Browser(console, person, f"{account}/test")
        page = await dev.get("keys/-/create_key")
        assert 'name="scopes.acks:create"' in page
        assert 'name="scopes.keys:manage"' in page
        assert 'name="scopes.search:read"' in page
        assert 'name="scopes.erasure:write"' not in page
        ticked = {"scopes.notices:read": "1", "scopes.erasure:write": "1"}
        await dev.did("keys/-/create_key", **ticked)
        made = await api(console, person, "/v1/keys", account=account, mode="test")
        assert [one["scopes"] for one in made["data"]] == [["notices:read"]]
        assert "Dev" in await dev.get("keys"), "who made it"

    in_console(tmp_path, work)


def test_a_key_has_a_name_and_an_end_which_its_page_says(tmp_path: Path) -> None:
    """A number of days, or a date that is not past."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        dev = await console.person("Dev", Role.DEVELOPER, account)
        browser = Browser(console, dev, f"{account}/test")
        fields = {"scopes.notices:read": "1", "key_name": "shop server"}
        day = f"{from_ns(console.clock.time_ns()) + timedelta(days=30):%Y-%m-%d}"
        for lasts in ({"expires": "90"}, {"on_day": day}, {}):
            page = await browser.did("keys/-/create_key", **fields, **lasts)
            assert "shop server" in page
            assert ("Expires on" in page) is bool(lasts)
        listed = await api(console, dev, "/v1/keys", account=account, mode="test")
        first_, second, third = listed["data"]
        assert {one["name"] for one in listed["data"]} == {"shop server"}
        made, ends = (datetime.fromisoformat(first_[at]) for at in ("created_at", "expires_at"))
        assert ends - made == timedelta(days=90)
        assert second["expires_at"][:10] == day
        assert third["expires_at"] is None
        past = await browser.send("keys/-/create_key", **fields, on_day="2026-01-01")
        assert past.status == 400

    in_console(tmp_path, work)


def test_the_other_mode_of_a_page_is_one_link_away(tmp_path: Path) -> None:
    """For an item, its list: a test item does not exist in live mode."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        browser = Browser(console, await console.person("Ada", Role.OWNER), f"{account}/test")
        for page, other in (("holds", "holds"), ("holds/hold_x", "holds"), ("nothing", "orders")):
            reply = await browser.at(page)
            assert f'href="/console/{account}/live/{other}"' in reply.body.decode()

    in_console(tmp_path, work)


def test_retention_shows_the_reason_and_the_command_to_type(tmp_path: Path) -> None:
    """Erasing due data is a command."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        person = await console.person("Cora", Role.COMPLIANCE, account)
        cora = Browser(console, person, f"{account}/live")
        page = await cora.get("retention?until=2040-01-01")
        assert "countersign retention run" in page
        assert 'value="2040-01-01"' in page

    in_console(tmp_path, work)


def test_every_page_answers_to_an_address_below_it(tmp_path: Path) -> None:
    """That of an item that its list shows elsewhere, and of one that is not there."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        owner = await console.person("Owner", Role.OWNER)
        for of_all, name in PAGES:
            browser = Browser(console, owner, "all" if of_all else f"{account}/test")
            reply = await browser.at(f"{name}/ord_{'0' * 26}")
            assert reply.status in {200, 303, 404}, (name, reply.status)

    in_console(tmp_path, work)
