"""Forged requests of a browser, and hostile texts of vendors and buyers."""

from __future__ import annotations

import asyncio
import logging
import re
from html import unescape
from pathlib import Path
from typing import Any, Final

import pytest

from countersign.core.access.audit import AuditEntry, find_audit
from countersign.core.access.role import Role
from countersign_console.view import WORDS
from tests.checkout.surfer import Page
from tests.console.visitor import COOKIE, Vendor, Visitor, forms, places
from tests.http.backstage import notice_json
from tests.http.test_requirements import RULE
from tests.people.crew import Console, in_console
from tests.remembered.device import ORIGIN, Passkey

pytestmark = pytest.mark.one_engine
PAGE_BYTES_MAX: Final = 80 * 1024
SECURE: Final = "https://localhost:4711"
NASTY: Final = "\"'><script>x</script><b onclick=x>{{7*7}}&amp;"
"""Ends any attribute and element."""
EN: Final = WORDS["en"]
TURNED: Final = f"\u202e{NASTY}"
"""The same, from right to left."""
LINK: Final = "javascript:alert(1)//"
LAW: Final = "https://law.example/the-text"
ALLOWED: Final = ("/console", "/docs/", "/favicon.ico", "#main", "#field-")


async def audit(console: Console) -> list[AuditEntry]:
    return list(await console.deployment.database.read(find_audit, None))


def test_a_form_does_nothing_without_the_code_of_its_session(tmp_path: Path) -> None:
    """On every page: without one, with that of another person, and from another site."""

    async def work(console: Console) -> tuple[set[int], int]:
        account = await console.account("vendor")
        own = Visitor(console, (await console.person("Ada", Role.OWNER)).session)
        eve = await console.person("Eve", Role.OWNER)
        theirs, code = console.host.form_code(eve.session), console.host.form_code(own.session)
        filled = {"name": "x", "reason": "case", "subject": "cbid_1", "sure": "1", "url": "x"}
        filled |= {"cbid": "cbid_1", "decision": "dismiss", "query": "x", "file": "x"}
        asked = []
        before = len(await audit(console))
        for path in (*places(account).values(), *forms(account)):
            page = await own.open(path)
            actions = {form.action for form in page.forms if form.method == "post"}
            for action in {*actions, f"{path}/-/new"}:
                headers = {"Origin": ORIGIN, "Sec-Fetch-Site": "same-origin"}
                asked += [
                    await own.post(action, filled, **headers),
                    await own.post(action, filled | {"code": ""}, **headers),
                    await own.post(action, filled | {"code": theirs}, **headers),
                    await own.post(action, filled | {"code": code}, Origin="https://evil.example"),
                    await own.post(action, filled | {"code": code}),
                ]
            assert actions, path
        shown = {(await own.led(one)).status_code for one in asked if "v=" in str(one.headers)}
        assert await console.host.who(own.session) is not None, "signed out"
        refused = {one.status_code for one in asked} | shown
        return refused, len(await audit(console)) - before

    assert in_console(tmp_path, work) == ({303, 403}, 0)


def test_every_page_is_safe_to_show_and_small(tmp_path: Path) -> None:
    """Not framed, not cached, scripts by digest alone; sign-in pages, too."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        order = await (await Vendor.of(console, account)).order("cs_1", "order 1001")
        person = await console.person("Ada", Role.OWNER)
        own = Visitor(console, person.session, SECURE)
        its = f"/console/{account}/test/orders/{order['ack_id']}"
        paths = [*places(account).values(), *forms(account), its, f"{its}/hold", f"{its}/erase"]
        for path in [*paths, "/console/passkey", "/console/link", "/console/sign-in", "/console/x"]:
            shown = await own.raw("GET", path)
            page, headers = Page(shown), shown.headers
            assert headers["cache-control"] == "no-store", path
            assert headers["referrer-policy"] == "same-origin"
            assert headers["x-robots-tag"] == "noindex"
            assert page.policy["default-src"] == page.policy["base-uri"] == "'none'"
            assert page.policy["frame-ancestors"] == "'none'"
            assert page.policy["form-action"] == "'self'"
            assert "unsafe" not in headers["content-security-policy"]
            assert len(shown.content) <= PAGE_BYTES_MAX, path
            check_whole(page)

    in_console(tmp_path, work, PUBLIC_URL=SECURE)


def check_whole(page: Page) -> None:
    """The page has the elements of its templates alone, and leads nowhere else."""
    assert page.response.text.count("<script") <= 1
    for tag, have in page.elements:
        assert tag not in {"iframe", "object", "img", "b"}
        assert not [name for name in have if name.startswith("on") or name == "style"]
        for name in ("href", "action", "formaction", "src"):
            if name in have:
                assert have[name].startswith(ALLOWED), have


def test_an_earlier_cookie_never_becomes_the_signed_in_session(tmp_path: Path) -> None:
    """An attacker who plants a session does not get the new one; signing out ends it."""

    async def work(console: Console) -> list[str]:
        passkey = Passkey()
        _, link = await console.link("Ada", Role.OWNER)
        planted = await console.come_in(link, passkey)
        console.clock.seconds += 1
        browser = Visitor(console, planted, SECURE)
        shown = await browser.raw("GET", "/console/sign-in")
        assert COOKIE not in str(shown.headers)
        asked = console.host.passkey_options()
        assert asked is not None
        options, state = asked
        await browser.raw("GET", "/console/sign-in")
        cookies = f"__Host-{COOKIE}={planted}; __Host-csc-state={state}"
        led = await browser.post(
            "/console/sign-in",
            {"credential": passkey.sign(dict(options), origin=SECURE)},
            Origin=SECURE,
            Cookie=cookies,
        )
        assert (led.status_code, led.headers["location"]) == (303, "/console/")
        (given,) = (
            line
            for line in led.headers.get_list("set-cookie")
            if line.startswith("__Host-" + COOKIE)
        )
        name_and_token, *attributes = given.split("; ")
        new = name_and_token.partition("=")[2]
        assert new
        assert new != planted
        out = await Visitor(console, new, SECURE).send("/console/sign-out")
        assert "Max-Age=0" in out.headers["set-cookie"]
        gone = await Visitor(console, new, SECURE).raw("GET", "/console/all/state")
        assert gone.headers["location"] == "/console/sign-in?back=all%2Fstate"
        return attributes

    attributes = in_console(tmp_path, work, PUBLIC_URL=SECURE)
    assert attributes == ["Path=/", "HttpOnly", "SameSite=Strict", "Secure"]


def test_a_visit_by_ip_address_is_redirected_to_the_host_name(tmp_path: Path) -> None:
    """`make run` prints the IP address, and browsers allow passkeys only with the name."""

    async def work(console: Console) -> list[str]:
        asked = [("127.0.0.1:4711", "sign-in"), ("127.0.0.1:4711", "link"), ("[::1]:4711", "link")]
        replies = [await console.http("GET", f"/console/{p}", {"Host": h}) for h, p in asked]
        return [dict(reply.headers).get(b"location", b"").decode() for reply in replies]

    led = in_console(tmp_path, work, PUBLIC_URL="http://127.0.0.1:4711")
    assert led == [f"{ORIGIN}/console/sign-in", f"{ORIGIN}/console/link", ""]


def test_texts_of_vendors_and_buyers_are_escaped_on_every_page(tmp_path: Path) -> None:
    """As markup, as a link, or right to left."""

    async def work(console: Console) -> list[str]:
        where = await nasty_order(console)
        own = Visitor(console, (await console.person("<i>Ada</i>", Role.COMPLIANCE)).session)
        dev = Visitor(console, (await console.person("<i>Dev</i>", Role.OWNER)).session)
        shown = []
        for path in where["paths"]:
            for visitor in (own, dev):
                page = await visitor.open(path)
                check_whole(page)
                shown.append(page)
        here = f"{where['orders']}/{where['ack_id']}"
        found = await own.send(f"{where['orders']}/-/find", query=NASTY[:30] + LINK)
        read = await own.send(f"{here}/read", reason="case <b>7</b>")
        failed = await own.send(f"{here}/hold", reason="", matter_id=NASTY)
        for response in (found, read, failed):
            if response.content:
                shown.append(Page(response))
                check_whole(shown[-1])
        audited = Page(await own.raw("GET", where["audit"]))
        return ["".join(page.words) for page in (*shown, audited)]

    words = "\n".join(in_console(tmp_path, work))
    for text in (NASTY[:40], LINK, "<i>Ada</i>", "case <b>7</b>", "<u>matter</u>"):
        assert text in words, text


async def nasty_order(console: Console) -> dict[str, Any]:
    """An order, an account and all else with markup in each field; where it is shown."""
    account = await console.account("<u>Shop</u>")
    vendor = await Vendor.of(console, account)
    order = await vendor.order(TURNED, TURNED[:64], user_agent=TURNED)
    hook = {"url": "https://shop.example/hooks?'script'", "description": NASTY}
    await vendor.ask("POST", "/v1/webhook_endpoints", hook)
    link = {
        "notice_id": "ab1263", "return_url": "https://shop.example/?'script'",
        "session_id": NASTY + LINK,
        "order_reference": NASTY[:30] + LINK,
        "order": {"lines": [{"text": NASTY}], "currency": "USD"},
    }  # fmt: skip
    made = await vendor.ask("POST", "/v1/checkout_sessions", link)
    owner = Visitor(console, (await console.person("Own", Role.OWNER)).session)
    root = f"/console/{account}/test"
    await owner.send(f"{root}/matters/-/open_matter", name="<u>matter</u> " + NASTY[:40])
    where = places(account)
    held = f"{where[False, 'orders']}/{order['ack_id']}"
    await owner.send(f"{held}/hold", reason=NASTY)
    return {
        "ack_id": order["ack_id"],
        "orders": where[False, "orders"],
        "audit": where[True, "audit"],
        "paths": [
            *where.values(),
            held,
            f"{where[False, 'orders']}/{made['checkout_session_id']}",
            *forms(account),
            f"{held}/hold",
            f"{where[True, 'accounts']}/{account}",
        ],
    }


def test_no_personal_value_is_in_an_address_a_title_a_log_a_metric_or_the_audit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """A buyer's values are marked; each page is opened, and each value searched for and shown."""
    marks = {"reference": "MARKEDORDER", "session": "MARKEDSESSION", "agent": "MARKEDAGENT"}

    async def work(console: Console) -> tuple[list[str], str, str]:
        account = await console.account("vendor")
        vendor = await Vendor.of(console, account)
        order = await vendor.order(marks["session"], marks["reference"], user_agent=marks["agent"])
        own = Visitor(console, (await console.person("Ada", Role.COMPLIANCE)).session)
        where = places(account)
        search = where[False, "orders"]
        responses = [await own.raw("GET", path) for path in where.values()]
        queries = (marks["reference"], marks["session"], "MARKEDMISTAKE")
        responses += [await own.send(f"{search}/-/find", query=query) for query in queries]
        here = f"{search}/{order['ack_id']}"
        read = await own.send(f"{here}/read", reason="case 7")
        assert marks["reference"] in read.text
        subject = {"subject": order["cbid"]}
        erasures = await own.send(f"{where[False, 'erasures']}/-/preview", **subject)
        assert erasures.status_code == 200
        responses += [await own.raw("GET", here), read, erasures]
        outside = []
        for one in responses:
            assert one.status_code in {200, 303, 403}, one.text
            title = one.text.partition("<title>")[2].partition("</title>")[0]
            links = [have.get("href", "") + have.get("action", "") for _, have in elements(one)]
            outside += [one.headers.get("location", ""), unescape(title), *links]
        assert order["cbid"] not in "\n".join(outside)
        kept = "\n".join(map(repr, await audit(console)))
        metrics = await console.http("GET", "/metrics")
        return outside, kept, metrics.body.decode()

    with caplog.at_level(logging.DEBUG):
        outside, kept, metrics = in_console(tmp_path, work)
    said = capsys.readouterr()
    everything = "\n".join([*outside, kept, metrics, caplog.text, said.out, said.err])
    assert "MARKED" not in everything
    assert "203.0.113.7" not in everything
    assert "personal_data_shown" in kept


def elements(response: Any) -> list[tuple[str, dict[str, str]]]:  # noqa: ANN401 - httpx2's
    return Page(response).elements if response.content else []


def test_a_button_pressed_twice_acts_once(tmp_path: Path) -> None:
    """Both presses show the same: a key that is shown once is not lost to the second."""

    async def work(console: Console) -> tuple[int, bool, int]:
        account = await console.account("vendor")
        own = Visitor(console, (await console.person("Ada", Role.OWNER)).session)
        where = places(account)[False, "keys"]
        form = await own.form(f"{where}/-/create_key")
        once, twice = await asyncio.gather(
            *(own.press(form, key_reason="case 7") for _ in range(2))
        )
        await own.press(await own.form(form.action), key_reason="case 7")
        rows = [have for tag, have in (await own.open(where)).elements if tag == "tr"]
        return len(rows) - 1, keys_of(once) == keys_of(twice), len(keys_of(once))

    number, same, shown = in_console(tmp_path, work)
    assert (number, same, shown) == (2, True, 1)


def keys_of(response: Any) -> list[str]:  # noqa: ANN401 - httpx2's
    return [word for word in " ".join(Page(response).words).split() if word.startswith("csign_sk_")]


def test_a_number_of_any_length_is_refused_in_words(tmp_path: Path) -> None:
    """Python itself reads no number of more than 4,300 digits."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        dev = Visitor(console, (await console.person("Dev", Role.DEVELOPER, account)).session)
        path = f"{places(account)[False, 'orders']}/-/create_link"
        link = {"return_url": "https://shop.example/", "notice_id": "ab1263"}
        for digits in (15, 16, 5000):
            sent = await dev.send(path, **link, expires_in_seconds="9" * digits)
            assert sent.status_code == 400, digits
            assert "expires_in_seconds" in sent.text

    in_console(tmp_path, work)


def test_a_version_is_copied_compared_published_and_reviewed_by_another_person(
    tmp_path: Path,
) -> None:
    """Mistakes stand at their fields; the publisher is refused as its reviewer, and the text kept.

    A setting lets one person do both, which the record says.
    """
    old = "/console/all/notices/ab1263~2026-01-01-incomplete"
    new = "/console/all/notices/ab1263~2027"

    async def work(console: Console) -> tuple[str, str]:
        ada, bob = [
            Visitor(console, (await console.person(name, Role.OWNER)).session)
            for name in ("Ada", "Bob")
        ]
        shown = await ada.open(old)
        assert EN["class_barrel"] in shown.text
        assert "sold in person" not in shown.text
        form = await ada.form(f"{old}/copy_notice")
        assert (form.fields["n.version"], form.fields["n.letter.1"]) == ("", "A")
        changed = {"n.effective_from": "2026-01-01", "n.version": "a b", "n.text.5": "Allowing it."}
        changed |= lines_of(await ada.open(f"{old}/copy_notice")) | {"n.letter.5": "E"}
        changed |= {"n.text.5": "Allowing it.", "n.text_gaps": ""}
        wrong = Page(await ada.press(form, **changed))
        assert wrong.having(id="field-n-version", **{"aria-invalid": "true"})
        checked = Page(await ada.press(form, **changed | {"n.version": "2027"}))
        assert (EN["differences"] in checked.text, "Allowing it." in checked.text) == (True, True)
        long = await ada.press(
            form, **changed | {"n.version": "2028", "n.retention_years": "9" * 5000}
        )
        assert (long.status_code, 'id="field-n-retention_years"' in long.text) == (400, True)
        edit, publish = checked.forms[-2:]
        assert "Allowing it." in Page(await ada.press(edit)).text
        led = Page(await ada.press(publish))
        assert "ab1263 2027" in led.text, led.text
        assert f"{new}/review_notice" in led.text
        review, read = await ada.form(f"{new}/review_notice"), {"against": LAW}
        assert review.fields["against"] == ""
        own = Page(await ada.press(review, **read)).text
        page = await bob.open(f"{new}/review_notice")
        assert all(one in page.text for one in ("Allowing it.", EN["column_applies_to"]))
        done = Page(await bob.press(await bob.form(f"{new}/review_notice"), **read)).text
        auditor = Visitor(console, (await console.person("Eve", Role.AUDITOR)).session)
        assert (await auditor.open(f"{old}/copy_notice")).status == 403
        return own, done

    own, done = in_console(tmp_path / "two", work)
    assert "another person reviews it" in own
    assert "Reviewed by Bob" in done
    alone, _ = in_console(tmp_path / "one", work, NOTICE_REVIEWERS="1")
    assert "Reviewed by Ada" in alone


def test_a_rule_that_came_while_the_page_was_read_is_not_signed(tmp_path: Path) -> None:
    """The page comes back with the new rule, says so, and its box is not ticked."""

    async def work(console: Console) -> None:
        ada, bob = [
            Visitor(console, (await console.person(name, Role.OWNER)).session)
            for name in ("Ada", "Bob")
        ]

        async def publish(rule: str) -> None:
            applies = RULE.format(class_="barrel").replace('"1"', f'"{rule}"')
            notice = {"notice": notice_json("whole", "1", applies_to=applies)}
            await console.ask(ada.session, "/v1/notices/publish", "POST", body=notice)

        await publish("1")
        form = await bob.form("/console/all/notices/whole~1/review_notice")
        await publish("2")
        shown = Page(await bob.press(form, **{"against": LAW, "rule.1": "1"}))
        assert EN["rule_changed"] in shown.text
        assert "(rule 2)" in shown.text
        (again,) = (one for one in shown.forms if one.action == form.action)
        assert (again.fields["against"], "rule.2" in again.fields) == (LAW, False)
        done = Page(await bob.press(again, **{"rule.2": "1"})).text
        assert "Reviewed by Bob" in done

    in_console(tmp_path, work)


def lines_of(page: Page) -> dict[str, str]:
    """What the areas of a form hold."""
    found = re.findall(r'<textarea [^>]*name="([^"]+)"[^>]*>\n?([^<]*)', page.response.text)
    return {name: unescape(text).strip() for name, text in found}
