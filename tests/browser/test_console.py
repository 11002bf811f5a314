"""The console in a real browser: a person comes in by a link and does what staff do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from playwright.sync_api import Page, expect

from countersign_console.view import WORDS
from tests.browser.test_remembered import authenticator
from tests.browser.windows import Windows, assert_accessible, assert_accessible_in_every_look
from tests.http.backstage import Operator, another_deployment
from tests.support import service
from tests.support.openid_provider import OpenIdProvider, openid_provider
from tests.support.service import Server, running, start_server

pytestmark = [pytest.mark.browser, pytest.mark.npm, pytest.mark.usefixtures("patient")]
EN: Final = WORDS["en"]
HEADER_MAX: Final = 64
"""In CSS pixels, on a phone."""
OF_ACCOUNT: Final = (
    *("orders", "today", "reviews", "holds", "matters", "erasures", "retention"),
    *("webhooks", "audit"),
)
OF_SERVICE: Final = (
    "accounts",
    "notices",
    "notices/ab1263~2026-01-01-incomplete",
    "state",
    "audit",
)


@contextmanager
def serving(folder: Path, **settings: str) -> Iterator[Server]:
    """Serve at a name: browsers allow no passkeys at an IP address."""
    port = service.free_port()
    own = {"PUBLIC_URL": f"http://localhost:{port}", "CONSOLE": "true"} | settings
    made = another_deployment(folder, None, **own)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service, "free_port", lambda: port)
        started = start_server(made)
    with running(started):
        yield started


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path / "data") as started:
        yield started


@pytest.fixture
def provider() -> Iterator[OpenIdProvider]:
    """Give a provider of OpenID Connect, at another site than the console."""
    with openid_provider() as listening:
        listening.roll_over("RS256")
        yield listening


@pytest.fixture
def vendor(server: Server) -> Iterator[tuple[str, httpx2.Client]]:
    """Give the account of a shop, and a client with its test key."""
    account = server.deployment.run("accounts", "create", "Ridgeline Workshop").stdout.strip()
    made = server.deployment.run("keys", "create", "--account", account, "--mode", "test")
    headers = {"Authorization": f"Bearer {made.stdout.strip()}"}
    with httpx2.Client(base_url=server.url, headers=headers, verify=False) as client:
        yield account, client


def an_order(client: httpx2.Client) -> dict[str, Any]:
    """A buyer who was verified, initials on every line, and a clearance; another buyer waits."""

    def post(path: str, **body: object) -> Any:  # noqa: ANN401 - JSON
        return client.post(path, json=body).raise_for_status().json()

    verify = "/v1/buyers/verify"
    zip_code = {"shipping_zip": "94105", "test_mode": True}
    buyer = post(verify, provider_identity_session_id="session-1", **zip_code)
    post(verify, provider_identity_session_id="test_zip_mismatch", **zip_code)
    shared = {"session_id": "cs_1", "cbid": buyer["cbid"]}
    lines = len(client.get("/v1/notices/ab1263").json()["bullets"])
    made = post(
        "/v1/notices/ab1263/acknowledge",
        initials_per_line=["JD"] * lines,
        order_reference="order 1001",
        ip="203.0.113.7",
        user_agent="test",
        **shared,
    )
    about = {"ack_id": made["ack_id"], "shipping_zip": "94105"}
    assert post("/v1/clearances", product_class="firearm_accessory", **about, **shared)["cleared"]
    return {"ack_id": made["ack_id"], **shared}


def come_in(
    page: Page,
    server: Server,
    name: str,
    role: str,
    account: str = "",
    *,
    start: str = "page_orders",
) -> str:
    """Come in by an invitation, with a new passkey; gives where the console is."""
    authenticator(page)
    group = ("members", "invite", "--account", account) if account else ("staff", "invite")
    invited = server.deployment.run(*group, name, "--role", role)
    link = next(word for word in invited.stdout.split() if "/console/link#" in word)
    page.goto(link)
    expect(page.get_by_text(name, exact=True)).to_be_visible()
    page.get_by_role("button", name=EN["link_button"]).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(EN[start])
    return link.partition("/link#")[0]


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=EN[name], exact=True).click()


def test_an_order_is_found_read_and_held(
    server: Server, vendor: tuple[str, httpx2.Client], windows: Windows
) -> None:
    """By its reference, in words; personal data for a reason that the audit keeps."""
    account, client = vendor
    order = an_order(client)
    page = windows.open()
    console = come_in(page, server, "Cora", "compliance")
    page.goto(f"{console}/{account}/test/orders")
    page.locator("#query").fill("order 1001")
    press(page, "search_button")
    expect(page.get_by_text(EN["verdict_cleared"])).to_be_visible()
    assert "1001" not in page.url
    assert_accessible_in_every_look(page)

    page.locator("#why").fill("letter of counsel")
    press(page, "act_read")
    expect(page.get_by_text("JD", exact=True).first).to_be_visible()
    assert_accessible_in_every_look(page)

    page.goto(f"{console}/{account}/test/orders/{order['ack_id']}")
    page.locator("#why").fill("letter of counsel")
    with page.expect_download() as given:
        press(page, "evidence_certificate")
    assert Path(given.value.path()).read_bytes().startswith(b"%PDF-")

    page.get_by_role("link", name=EN["act_hold"]).click()
    page.locator("#field-reason").fill("Case 26-2")
    press(page, "act_hold")
    expect(page.get_by_text("Reason: Case 26-2.")).to_be_visible()

    page.goto(f"{console}/{account}/test/audit")
    expect(page.get_by_text("letter of counsel").first).to_be_visible()

    page.goto(f"{console}/{account}/test/erasures")
    page.locator("#subject").fill(order["cbid"])
    page.get_by_role("button", name=EN["erase_preview"]).last.click()
    expect(page.get_by_text(EN["effect"])).to_be_visible()
    assert order["cbid"] not in page.url
    assert_accessible_in_every_look(page)


def test_every_page_is_readable(
    server: Server, vendor: tuple[str, httpx2.Client], windows: Windows
) -> None:
    """On a narrow phone, in the dark and on paper; at most 80 KB, without external resources.

    The header has one line.
    """
    account, client = vendor
    an_order(client)
    page = windows.open()
    console = come_in(page, server, "Cora", "compliance")
    here = [f"{account}/test/{name}" for name in OF_ACCOUNT]
    for place in (*here, *(f"all/{name}" for name in OF_SERVICE)):
        shown = page.goto(f"{console}/{place}")
        assert shown is not None
        assert shown.status == 200, place
        assert len(shown.body()) < 80 * 1024
        for dark, width in ((False, 1280), (True, 320)):
            page.emulate_media(color_scheme="dark" if dark else "light")
            page.set_viewport_size({"width": width, "height": 700})
            assert_accessible(page)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), place
            header = page.locator("body > header").bounding_box()
            assert header is not None
            assert header["height"] <= HEADER_MAX, place
        page.emulate_media(media="print")
        assert page.locator("h1").is_visible(), place
        menu = page.locator("body > header, nav.pages, a.skip")
        assert not any(part.is_visible() for part in menu.all()), place
        page.emulate_media(media="screen")
    page.goto(f"{console}/{account}/test/reviews")
    page.get_by_role("link", name=EN["open"]).click()
    assert_accessible_in_every_look(page)
    page.locator("#why").fill("case 24-1187")
    press(page, "act_read")
    expect(page.get_by_text(EN["evidence_none"])).to_be_visible()
    page.goto(f"{console}/{account}/test/orders?lang=es")
    page.goto(f"{console}/{account}/test/orders")
    expect(page.get_by_role("heading", level=1)).to_have_text(WORDS["es"]["page_orders"])


def test_a_developer_makes_a_key_and_sees_no_personal_data(
    server: Server, vendor: tuple[str, httpx2.Client], windows: Windows
) -> None:
    """The key is shown once, and works; destructive acts need a tick."""
    account, client = vendor
    order = an_order(client)
    page = windows.open()
    console = come_in(page, server, "Dev", "developer", account)
    page.goto(f"{console}/{account}/test/keys")
    page.get_by_role("link", name=EN["act_create_key"]).click()
    page.locator("#field-key_reason").fill("to set the shop up")
    press(page, "act_create_key")
    key = page.locator("main code").last.inner_text()
    headers = {"Authorization": f"Bearer {key}"}
    assert client.get("/v1/notices/ab1263", headers=headers).status_code == 200

    page.goto(f"{console}/{account}/test/webhooks")
    page.get_by_role("link", name=EN["act_add_endpoint"]).click()
    page.locator("#field-url").fill("https://shop.example/hooks")
    press(page, "act_add_endpoint")
    for name in ("keys", "keys/-/create_key", "orders/-/create_link", "webhooks"):
        page.goto(f"{console}/{account}/test/{name}")
        assert_accessible(page)
    page.get_by_role("link", name=EN["open"]).click()
    assert_accessible_in_every_look(page)

    windows.expect_trouble("422")
    page.goto(f"{console}/{account}/test/keys")
    page.get_by_role("link", name=EN["open"]).last.click()
    page.locator("details.more summary").click()
    page.get_by_role("link", name=EN["act_revoke_key"]).click()
    press(page, "act_revoke_key")
    expect(page.get_by_role("link", name=EN["tick_sure"])).to_be_visible()
    assert_accessible(page)

    page.goto(f"{console}/{account}/test/orders/{order['ack_id']}")
    expect(page.get_by_text(EN["no_personal"])).to_be_visible()


def test_an_order_is_found_and_held_without_javascript(
    server: Server, vendor: tuple[str, httpx2.Client], windows: Windows
) -> None:
    """Only the passkey needs it."""
    account, client = vendor
    an_order(client)
    signed = windows.open()
    console = come_in(signed, server, "Cora", "compliance")
    state = signed.context.storage_state()
    page = windows.open(java_script_enabled=False, storage_state=state)
    page.goto(f"{console}/{account}/test/orders")
    page.locator("#query").fill("order 1001")
    press(page, "search_button")
    expect(page.get_by_text(EN["verdict_cleared"])).to_be_visible()
    page.get_by_role("link", name=EN["act_hold"]).click()
    page.locator("#field-reason").fill("Case 26-2")
    press(page, "act_hold")
    expect(page.get_by_text("Reason: Case 26-2.")).to_be_visible()


def test_the_proofs_of_an_order_are_checked_in_the_browser(
    server: Server, vendor: tuple[str, httpx2.Client], windows: Windows
) -> None:
    """With the verifier of every dossier; the covering page is printed without menu and buttons."""
    account, client = vendor
    order = an_order(client)
    proof = f"/v1/acknowledgments/{order['ack_id']}/proof"
    client.get(proof, headers={"Prefer": "wait=10"}).raise_for_status()
    page = windows.open(timezone_id="America/Los_Angeles")
    console = come_in(page, server, "Cora", "compliance")
    place = f"{console}/{account}/test/orders/{order['ack_id']}"
    page.goto(place)
    expect(page.locator(".timeline time").first).to_contain_text(re.compile(r"UTC \(.+ P[SD]T\)"))
    assert_accessible_in_every_look(page)
    page.locator("#why").fill("letter of counsel")
    press(page, "evidence_check")
    expect(page.locator("#verdict")).to_have_class("verdict good")
    assert 4 <= page.locator("#verdict p").count() <= 6
    expect(page.get_by_text("Checked against the test policy of this site")).to_be_visible()
    assert_accessible_in_every_look(page)

    page.goto(place)
    page.locator("#why").fill("letter of counsel")
    press(page, "evidence_cover")
    expect(page.get_by_text(EN["cover_signature_line"])).to_be_visible()
    assert_accessible_in_every_look(page)
    page.emulate_media(media="print")
    for hidden in ("header", "nav", "a.button", ".note"):
        expect(page.locator(hidden).first).to_be_hidden()
    expect(page.locator(".paper")).to_have_text(
        f"Countersign · Ridgeline Workshop · {EN['mode_test']}"
    )

    state = page.context.storage_state()
    plain = windows.open(java_script_enabled=False, storage_state=state)
    plain.goto(place)
    plain.locator("#why").fill("letter of counsel")
    press(plain, "evidence_check")
    expect(plain.locator("noscript .note")).to_be_visible()
    with plain.expect_download() as given:
        plain.get_by_role("link", name=EN["save_dossier"]).click()
    assert Path(given.value.path()).read_bytes().startswith(b"PK")


def test_staff_reach_an_account_that_the_menu_does_not_name(
    server: Server, windows: Windows
) -> None:
    """The menu has a hundred of them."""
    with Operator(server.deployment) as operator:
        newest = [operator.account() for _ in range(101)][-1]
    page = windows.open()
    console = come_in(page, server, "Cora", "compliance")
    shown = page.goto(f"{console}/{newest}/test/orders")
    assert shown is not None
    assert shown.status == 200
    expect(page.get_by_role("heading", level=1)).to_have_text(EN["page_orders"])


def test_a_signed_out_person_sees_nothing(
    server: Server, vendor: tuple[str, httpx2.Client], windows: Windows
) -> None:
    """Also with the cookies of before: the session has ended on the server."""
    assert vendor
    page = windows.open()
    console = come_in(page, server, "Cora", "auditor")
    page.goto(f"{console}/all/state")
    cookies = page.context.cookies()
    press(page, "sign_out")
    expect(page.get_by_role("heading", level=1)).to_have_text(EN["sign_in"])
    page.context.add_cookies(json.loads(json.dumps(cookies)))
    page.goto(f"{console}/all/state")
    expect(page.get_by_role("heading", level=1)).to_have_text(EN["sign_in"])


def test_an_owner_invites_a_person_and_ends_the_own_sessions(
    server: Server, windows: Windows
) -> None:
    """The link is shown once, and lets the person in; then all sessions of the owner are ended."""
    page = windows.open()
    console = come_in(page, server, "Bo", "owner", start="page_state")
    page.goto(f"{console}/all/people")
    assert_accessible_in_every_look(page)
    page.get_by_role("link", name=EN["act_invite"]).click()
    assert_accessible_in_every_look(page)
    page.locator("#field-name").fill("Sam Poe")
    page.locator("#field-role").select_option("support")
    press(page, "act_invite")
    link = page.locator("main code").inner_text()
    assert_accessible(page)
    page.goto(f"{console}/all/people")
    page.get_by_role("link", name=EN["open"]).last.click()
    expect(page.get_by_text("Sam Poe")).to_be_visible()
    assert_accessible_in_every_look(page)

    other = windows.open()
    authenticator(other)
    other.goto(link)
    other.get_by_role("button", name=EN["link_button"]).click()
    expect(other.get_by_role("heading", level=1)).to_have_text(EN["page_state"])

    page.get_by_role("link", name=EN["page_sessions"]).click()
    assert_accessible_in_every_look(page)
    press(page, "act_end_sessions")
    expect(page.get_by_role("heading", level=1)).to_have_text(EN["sign_in"])


@pytest.mark.parametrize("scripts", [True, False])
def test_a_person_signs_in_at_a_provider(
    tmp_path: Path, provider: OpenIdProvider, windows: Windows, *, scripts: bool
) -> None:
    """From another site and back, with cookies that no other site receives; then a second time."""
    with serving(tmp_path / "data", **provider.environment) as started:
        page = windows.open(java_script_enabled=scripts)

        def at_provider(words: str) -> None:
            page.get_by_role("link", name=EN[words].replace("{host}", provider.host)).click()
            if not scripts:
                press(page, "provider_go_on")

        invited = started.deployment.run("staff", "invite", "Ada", "--role", "owner")
        link = next(word for word in invited.stdout.split() if "/console/link#" in word)
        console, _, token = link.partition("/link#")
        provider.redirect_uris = {f"{console}/provider/return"}
        page.goto(link)
        if not scripts:
            page.get_by_label(EN["link_paste"]).fill(token)
            press(page, "link_open")
        expect(page.get_by_text("Ada", exact=True)).to_be_visible()
        if scripts:
            assert_accessible_in_every_look(page)
        at_provider("provider_connect")
        expect(page.get_by_text("Ada, owner")).to_be_visible()
        assert "code=" not in page.url
        press(page, "sign_out")
        expect(page.get_by_text(EN["said_signed_out"])).to_be_visible()
        if scripts:
            assert_accessible_in_every_look(page)
        at_provider("provider_button")
        expect(page.get_by_text("Ada, owner")).to_be_visible()
        page.goto(f"{console}/passkey?back=all/audit")
        at_provider("provider_again")
        expect(page.get_by_text(EN["said_provider"])).to_be_visible()
        windows.expect_trouble("403")
        provider.person = "someone else"
        press(page, "sign_out")
        at_provider("provider_button")
        expect(page.get_by_text(EN["provider_unknown"])).to_be_visible()
