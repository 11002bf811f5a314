"""Where forms lead: Back, reload and links work on each page, and nothing typed is lost or sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import Connection, select

from countersign.base.db.tables import idempotency_keys
from countersign.core.access.role import Role
from countersign.core.access.sessions import IDLE_MAX
from countersign.staff.people.kept import LASTS_MS
from countersign_console.view import WORDS
from tests.checkout.surfer import Form, Page
from tests.console.visitor import Vendor, Visitor, forms, places
from tests.people.crew import Console, in_console
from tests.remembered.device import ORIGIN, Passkey

pytestmark = pytest.mark.one_engine
EN: Final = WORDS["en"]
TYPED: Final = "typed-by-a-person"
OWN: Final = {"Origin": ORIGIN, "Sec-Fetch-Site": "same-origin"}


async def press(own: Visitor, to: str, /, **fields: str) -> str:
    """Send a form; returns the address of its redirect."""
    form = {"code": own.console.host.form_code(own.session)} | fields
    reply = await own.post(to, form, **OWN)
    assert (reply.status_code, reply.content) == (303, b""), (to, reply.status_code)
    return str(reply.headers["location"])


async def sign_in(console: Console, passkey: Passkey, page: Page) -> tuple[str, str]:
    """Sign in on this page; gives the new session, and where it leads."""
    console.clock.seconds += 1
    asked = console.host.passkey_options()
    assert asked is not None
    options, state = asked
    fields = page.forms[0].fields | {"credential": passkey.sign(dict(options))}
    reply = await Visitor(console, "").post(
        "/console/sign-in", fields, **OWN, Cookie=f"csc-state={state}"
    )
    cookies = [one.partition(";")[0] for one in reply.headers.get_list("set-cookie")]
    (session,) = (one.partition("=")[2] for one in cookies if one.startswith("csc-session="))
    return session, str(reply.headers["location"])


def test_no_page_is_the_response_to_a_form(tmp_path: Path) -> None:
    """Each form of each page leads to an address that holds, without what was typed in it."""

    async def work(console: Console) -> set[str]:
        account = await console.account("vendor")
        vendor = await Vendor.of(console, account)
        order = await vendor.order("cs_1", "order 1001")
        made = await vendor.ask(
            "POST",
            "/v1/checkout_sessions",
            {"session_id": "cs_2", "notice_id": "ab1263", "return_url": "https://shop.example/"},
        )
        await vendor.ask("POST", "/v1/webhook_endpoints", {"url": "https://shop.example/hooks"})
        person = await console.person("Ada", Role.OWNER)
        officer = await console.person("Cora", Role.COMPLIANCE)
        where = places(account)
        orders = where[False, "orders"]
        below = [f"{orders}/{order['ack_id']}", f"{orders}/{made['checkout_session_id']}"]
        below += [*forms(account), f"{below[0]}/hold", f"{below[0]}/erase"]
        below += [f"{where[True, 'accounts']}/{account}", "/console/sessions"]
        below.append(f"{where[True, 'notices']}/ab1263~2026-01-01-incomplete")
        pressed = set()
        for one in (person, officer):
            own = Visitor(console, one.session)
            for path in [*where.values(), *below]:
                page = await own.open(path)
                items = [have["href"] for _, have in page.elements if "href" in have]
                known = {path, *(one for one in items if one.startswith(f"{path}/"))}
                for place in sorted(known)[:3]:
                    pressed |= await check_forms(own, await own.open(place))
        return pressed

    pressed = in_console(tmp_path, work)
    assert {"find", "export", "read", "hold", "create_key", "preview", "csv", "check"} <= pressed


async def check_forms(own: Visitor, page: Page) -> set[str]:
    """Send each form of a page, empty and filled; gives the actions."""
    buttons = [have["formaction"] for _, have in page.elements if "formaction" in have]
    forms = [one for one in page.forms if one.method == "post" and "sign-out" not in one.action]
    actions = set()
    for form in forms:
        for action in {form.action, *buttons}:
            for fields in ({}, filled(form)):
                await check_led(own, action, fields)
            actions.add(action.rpartition("/")[2])
    return actions


def filled(form: Form) -> dict[str, str]:
    return {name: value or TYPED for name, value in form.fields.items() if name != "code"}


async def check_led(own: Visitor, action: str, fields: dict[str, str]) -> None:
    to = await press(own, action, **fields)
    assert to.startswith("/console/")
    assert TYPED not in to
    if to.startswith("/console/sign-in"):
        return
    shown = [await own.raw("GET", to) for _ in range(2)]
    assert shown[0].status_code == shown[1].status_code < 500, (action, to)
    assert shown[0].status_code != 303 or shown[0].headers["location"] != to


def test_what_was_typed_survives_an_ended_session_for_the_same_person(tmp_path: Path) -> None:
    """It is shown after signing in, and not sent; nobody else sees it, nor after ten minutes."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        order = await (await Vendor.of(console, account)).order("cs_1", "order 1001")
        cora = await console.person("Cora", Role.COMPLIANCE, account)
        eve = await console.person("Eve", Role.COMPLIANCE, account)
        old = Visitor(console, cora.session)
        path = f"{places(account)[False, 'orders']}/{order['ack_id']}"
        form = await old.form(f"{path}/hold")
        console.clock.seconds += IDLE_MAX.total_seconds() + 1
        reply = await old.post(form.action, form.fields | {"reason": TYPED}, **OWN)
        door = str(reply.headers["location"])
        assert (reply.status_code, TYPED in door) == (303, False)
        page = await old.open(door)
        assert EN["sign_in_back"] in page.text
        session = there = ""
        for one, is_own in ((eve, False), (cora, True)):
            session, there = await sign_in(console, one.passkey, page)
            assert there.startswith(form.action)
            shown = await Visitor(console, session).open(there)
            assert (f'value="{TYPED}"' in shown.response.text) is is_own
            assert (EN["session_over"] in shown.text) is is_own
        holds = await console.ask(session, "/v1/holds", account=account, mode="test")
        assert holds.data["data"] == []
        console.clock.seconds += LASTS_MS / 1000
        later = await Visitor(console, session).open(there)
        assert (TYPED in later.response.text, EN["said_gone"] in later.text) == (False, True)

    in_console(tmp_path, work)


def test_a_link_leads_there_after_signing_in(tmp_path: Path) -> None:
    """With its filter; and so does a step-up, with what was typed before it."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        ada = await console.person("Ada", Role.OWNER, account)
        wanted = f"{places(account)[False, 'orders']}?state=refused&day=2026-11-24"
        stranger = Visitor(console, "")
        led = await stranger.raw("GET", wanted)
        session, there = await sign_in(
            console, ada.passkey, await stranger.open(led.headers["location"])
        )
        assert there == wanted
        own = Visitor(console, session)
        keys = places(account)[False, "people"]
        form = await own.form(f"{keys}/-/invite")
        console.clock.seconds += 301
        led = await own.post(form.action, form.fields | {"name": TYPED, "role": "support"}, **OWN)
        door = await own.open(led.headers["location"])
        assert "passkey" in led.headers["location"]
        asked = console.host.passkey_options(session)
        assert asked is not None
        options, state = asked
        fields = door.forms[-1].fields | {"credential": ada.passkey.sign(dict(options))}
        cookie = f"csc-session={session}; csc-state={state}"
        done = await own.post("/console/passkey", fields, **OWN, Cookie=cookie)
        back = await own.open(done.headers["location"])
        assert f'value="{TYPED}"' in back.response.text
        assert EN["said_passkey"] in back.text
        members = await console.ask(session, "/v1/members", account=account, mode="live")
        assert [one["name"] for one in members.data["data"]] == ["Ada"]

    in_console(tmp_path, work)


def test_what_is_kept_is_sealed(tmp_path: Path) -> None:
    """Nothing that was typed is in the database to read, and an erased buyer's goes too."""

    def rows(connection: Connection) -> list[Any]:
        return [*connection.execute(select(idempotency_keys))]

    async def work(console: Console) -> tuple[str, int]:
        account = await console.account("vendor")
        order = await (await Vendor.of(console, account)).order("cs_1", "order 1001")
        own = Visitor(console, (await console.person("Cora", Role.COMPLIANCE)).session)
        where = places(account)
        read = console.deployment.database.read
        before = len(await read(rows))
        await press(own, f"{where[False, 'orders']}/-/find", query=TYPED)
        there = await press(own, f"{where[False, 'erasures']}/-/preview", subject=order["cbid"])
        kept = await read(rows)
        assert len(kept) == before + 2
        erase = {"subject": order["cbid"], "with_acknowledgments": "1", "sure": "1"}
        erase["why"] = "request"
        await press(own, f"{where[False, 'erasures']}/-/erase", **erase)
        gone = await own.raw("GET", there)
        assert gone.headers["location"] == f"{where[False, 'erasures']}?said=gone"
        return repr(kept), len(await read(rows))

    kept, _ = in_console(tmp_path, work)
    assert TYPED not in kept


def test_orders_are_filtered_by_address_and_found_by_a_form(tmp_path: Path) -> None:
    """A found order has the name that was typed, on its page too, in the title nowhere."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        vendor = await Vendor.of(console, account)
        order = await vendor.order("cs_1", "ORD-00042")
        owner = Visitor(console, (await console.person("Ada", Role.OWNER)).session)
        orders = places(account)[False, "orders"]
        links = [have.get("href", "") for _, have in (await owner.open(orders)).elements]
        (item,) = (one for one in links if one.startswith(f"{orders}/ord_"))
        for query, is_there in (
            *(("state=cleared", True), ("state=refused", False), ("held=true", False)),
            *(("waiting=true", False), ("notice_id=ab1263", True), ("notice_id=other", False)),
            *(("day=2026-01-01", False), ("state=cleared&held=false&waiting=false", True)),
        ):
            assert (item in (await owner.open(f"{orders}?{query}")).response.text) is is_there, (
                query
            )
        for text in ("ord-00042", "ORD-00042", order["ack_id"].upper(), order["cbid"], "cs_1"):
            led = await owner.send(f"{orders}/-/find", query=text)
            there = led.headers.get("location", str(led.request.url))
            assert there.partition("?")[0].endswith(item), text
            page = await owner.open(there.removeprefix(ORIGIN))
            is_name = text.lower().startswith(("ord-", "cs_"))
            assert (text in page.heading) is is_name, page.heading
            assert text not in page.response.text.partition("<title>")[2].partition("</title>")[0]
        other = places(await console.account("other"))[False, "orders"]
        assert EN["first_title"] in (await owner.open(other)).text
        assert EN["none_live"] in (await owner.open(other.replace("/test/", "/live/"))).text

    in_console(tmp_path, work)


def test_ticked_orders_are_held_for_a_matter_and_exported(tmp_path: Path) -> None:
    """For a new one or one that there is; a form that is sent twice holds once."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        vendor = await Vendor.of(console, account)
        for number in range(3):
            await vendor.order(f"cs_{number}", f"order {number}")
        cora = await console.person("Cora", Role.COMPLIANCE, account)
        own, orders = Visitor(console, cora.session), places(account)[False, "orders"]
        page = await own.open(orders)
        names = [have.get("name", "") for _, have in page.elements]
        boxes = {name: "1" for name in names if name.startswith("order.ord_")}
        assert len(boxes) == 3
        file = await own.send(f"{orders}/-/export", **boxes)
        assert (file.headers["content-type"], file.text.count("ord_")) == (
            "text/csv; charset=utf-8",
            3,
        )
        assert (await own.send(f"{orders}/-/select")).status_code == 422
        chosen = Page(await own.send(f"{orders}/-/select", **boxes))
        assert EN["hold_effect"].format(number=3) in chosen.text
        form = next(one for one in chosen.forms if one.action.endswith("/hold"))
        refused = await own.press(form, reason="")
        assert (refused.status_code, EN["not_done"] in refused.text) == (422, True)
        for _ in range(2):
            led = await own.post(
                form.action, form.fields | {"reason": "case 7", "matter_name": "Doe"}, **OWN
            )
            shown = await own.led(led)
            assert (shown.status_code, "Matter: Doe" in shown.text) == (200, True)
        about = {"account": account, "mode": "test"}
        (matter,) = (await console.ask(cora.session, "/v1/matters", **about)).data["data"]
        assert (matter["name"], matter["holds"]) == ("Doe", 3)
        again = await own.send(f"{orders}/-/select", **boxes)
        assert "case 7 (matter: Doe)" in Page(again).text
        form = next(one for one in Page(again).forms if one.action.endswith("/hold"))
        chosen_matter = {"reason": "case 8", "matter_id": matter["matter_id"]}
        asked = Page(await own.press(form, **chosen_matter))
        assert EN["column_again"] in asked.text
        chosen_matter["again"] = "1"
        for _ in range(2):
            await own.post(form.action, form.fields | chosen_matter, **OWN)
        (matter,) = (await console.ask(cora.session, "/v1/matters", **about)).data["data"]
        assert matter["holds"] == 6

    in_console(tmp_path, work)


def test_one_begins_where_one_was(tmp_path: Path) -> None:
    """In the account and mode of the last page."""

    async def work(console: Console) -> None:
        accounts = [await console.account(name) for name in ("a", "b")]
        ada = await console.person("Ada", Role.OWNER)
        own = Visitor(console, ada.session)
        shown = await own.raw("GET", f"/console/{accounts[1]}/live/today")
        (kept,) = (one for one in shown.headers.get_list("set-cookie") if "csc-place" in one)
        cookie = f"csc-session={ada.session}; {kept.partition(';')[0]}"
        led = await own.raw("GET", "/console/", {"Cookie": cookie})
        assert led.headers["location"] == f"/console/{accounts[1]}/live/orders"
        fresh = await own.raw("GET", "/console/")
        assert fresh.headers["location"] == f"/console/{accounts[0]}/test/orders"

    in_console(tmp_path, work)


def test_an_order_shows_what_people_decided_on_its_buyer(tmp_path: Path) -> None:
    """With name and reason, to those who may see the audit."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        order = await (await Vendor.of(console, account)).order("cs_1", "order 1001")
        cora = await console.person("Cora", Role.COMPLIANCE, account)
        path, about = f"/v1/buyers/{order['cbid']}/block", {"account": account, "mode": "test"}
        body = {"reason": "case 24-1187"}
        made = await console.ask(cora.session, path, "POST", body=body, **about)
        assert made.ok, made.data
        page = f"{places(account)[False, 'orders']}/{order['ack_id']}"
        shown = (await Visitor(console, cora.session).open(page)).text
        assert all(one in shown for one in (EN["decided_buyer_blocked"], "Cora: case 24-1187"))
        dev = await console.person("Dev", Role.DEVELOPER, account)
        assert "case 24-1187" not in (await Visitor(console, dev.session).open(page)).text

    in_console(tmp_path, work)


def test_a_refusal_of_the_api_is_a_page_with_its_status(tmp_path: Path) -> None:
    """Also at the first page, when the person's only account is disabled."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        boss = await console.person("Boss", Role.OWNER)
        ada = await console.person("Ada", Role.OWNER, account)
        about = {"account": "", "mode": "live"}
        path = f"/v1/accounts/{account}/disable"
        assert (await console.ask(boss.session, path, "POST", body={}, **about)).ok
        page = await Visitor(console, ada.session).open("/console/")
        assert (page.response.status_code, page.heading) == (403, EN["failed"])
        assert account in page.response.text

    in_console(tmp_path, work)


def test_over_the_limit_each_page_says_so_and_one_can_sign_out(tmp_path: Path) -> None:
    """Also staff, whose accounts are asked for."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        ada = await console.person("Ada", Role.OWNER, account)
        boss = await console.person("Boss", Role.OWNER)
        for person in (ada, boss):
            own = Visitor(console, person.session)
            while (await console.ask(person.session, "/v1/me/sessions")).ok:
                pass
            where = places(account)
            asked = [one for (of_all, _), one in where.items() if person is boss or not of_all]
            asked.append("/console/sessions")
            asked += ["/console/"] if person is ada else []
            for path in asked:
                page = await own.open(path)
                assert (page.response.status_code, page.heading) == (429, EN["failed"]), path
                assert 'action="/console/sign-out"' in page.response.text
            code = {"code": console.host.form_code(person.session)}
            for path in ("/console/sessions", f"{where[False, 'keys']}/-/create_key"):
                reply = await own.led(await own.post(path, code | {"name": "k"}, **OWN))
                assert reply.status_code == 429, path
                assert EN["problem_rate_limited"] in Page(reply).text, path
            old = await own.post("/console/sign-out", {}, **OWN)
            assert old.headers["location"] == "/console/sessions?problem=old_form"
            out = await own.post("/console/sign-out", code, **OWN)
            assert out.headers["location"] == "/console/sign-in?said=signed_out"
            assert "Max-Age=0" in out.headers["set-cookie"]
            assert await console.host.who(person.session) is None

    in_console(tmp_path, work, RATE_LIMIT="4/60")


def test_the_forms_of_an_ended_session_lead_to_pages(tmp_path: Path) -> None:
    """Those about the person too; signing out is done already."""

    async def work(console: Console) -> None:
        await console.account("vendor")
        ada = await console.person("Ada", Role.OWNER)
        own = Visitor(console, ada.session)
        console.clock.seconds += IDLE_MAX.total_seconds() + 1
        for _ in range(2):
            out = await own.post("/console/sign-out", {}, **OWN)
            assert out.headers["location"] == "/console/sign-in?said=signed_out"
        for path, fields, to in (
            *(("/console/", {}, "/console/"), ("/console/sessions", {}, "/console/sessions")),
            ("/console/passkey", {"back": "all/accounts?v=1"}, "/console/all/accounts?v=1"),
        ):
            led = await own.post(path, fields, **OWN)
            session, there = await sign_in(
                console, ada.passkey, await own.open(led.headers["location"])
            )
            assert there == to
            shown = await Visitor(console, session).raw("GET", there)
            assert shown.status_code in {200, 303}, path

    in_console(tmp_path, work)


def test_an_address_in_numbers_keeps_where_one_was_going(tmp_path: Path) -> None:
    """At the host of the settings alone, whatever the query says."""

    async def work(console: Console) -> None:
        stranger = Visitor(console, "", "http://127.0.0.1:8080")
        led = await stranger.raw("GET", "/console/acc_1/test/orders?state=refused")
        door = led.headers["location"]
        moved = (await stranger.raw("GET", door)).headers["location"]
        assert moved == "http://localhost:8080" + door
        assert "refused" in moved
        bad = await stranger.raw("GET", "/console/sign-in?back=%2F%2Fevil.example&to=%0d%0aX:1")
        assert bad.headers["location"].startswith("http://localhost:8080/console/sign-in?back=%2F")

    in_console(tmp_path, work, PUBLIC_URL="http://localhost:8080")


def test_what_is_shown_once_is_deleted_with_that(tmp_path: Path) -> None:
    """A new key or link; on reload the page says so. A result of another kind stays."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        vendor = await Vendor.of(console, account)
        hook = {"url": "https://shop.example/hooks"}
        made = await vendor.ask("POST", "/v1/webhook_endpoints", hook)
        own = Visitor(console, (await console.person("Ada", Role.OWNER, account)).session)
        where = places(account)
        key = {"scopes.notices:read": "1", "kind": "secret", "name": "k"}
        link = {"session_id": "cs_2", "notice_id": "ab1263", "return_url": "https://shop.example/"}
        example = f"{where[False, 'webhooks']}/{made['endpoint_id']}/send_example"
        for form, fields, is_once in (
            (f"{where[False, 'keys']}/-/create_key", key, True),
            (f"{where[False, 'orders']}/-/create_link", link, True),
            (example, {"type": "acknowledgment.created"}, False),
        ):
            there = await press(own, form, **fields)
            first, again = [(await own.open(there)).text for _ in range(2)]
            assert (EN["shown_once"] in first, EN["said_gone"] in first) == (is_once, False), form
            assert (EN["said_gone"] in again, EN["shown_once"] in again) == (is_once, False), form
            assert (EN["result_send_example"] in again) is not is_once

    in_console(tmp_path, work)
