"""A shop without code: links by the command line; and the origins that live sessions return to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.checkout.buyer import SHOP, Buyer, wanted
from tests.http.backstage import Vendor, another_deployment, make_client
from tests.http.calls import refusal
from tests.http.conftest import LIVE_NOTICE, Configured
from tests.support.service import Deployment, running_server

SESSIONS = "/v1/checkout_sessions"
IN_TEST = ("--account", "shop", "--mode", "test")
ASKED = ("--session", "cart-7", "--return-url", f"{SHOP}/back", "--notice", "ab1263")


@pytest.fixture
def embedded(tmp_path: Path) -> Deployment:
    """Give a deployment of this test alone, with an account."""
    made = another_deployment(tmp_path / "data")
    made.account("shop")
    return made


def test_a_link_made_by_hand_leads_a_buyer_to_the_end(embedded: Deployment) -> None:
    """The command needs no server, and prints only the link."""
    made = embedded.run("checkout-sessions", "create", *IN_TEST, *ASKED, "--expires-in", "2h")
    token = made.stdout.strip().rpartition("/c/")[2]
    (listed,) = embedded.read("checkout-sessions", "list", *IN_TEST, "--session", "cart-7")
    assert (listed["status"], listed["url"], listed["client_token"]) == ("open", None, None)
    assert embedded.read("checkout-sessions", "list", *IN_TEST, "--session", "cart-8") == []
    with running_server(embedded) as server, make_client(server, token) as browser:
        ended = Buyer(listed, browser).acknowledge().json()
    shown = ("checkout-sessions", "show", *IN_TEST, listed["checkout_session_id"])
    assert embedded.read(*shown)["ack_id"] == ended["ack_id"]
    assert f"ack_id: {ended['ack_id']}" in embedded.run(*shown).stdout


def test_the_command_creates_the_same_session_as_the_api(embedded: Deployment) -> None:
    more: tuple[str, ...] = ("--cbid", "cbid_x", "--zip", "94111", "--product-class", "accessory")
    more += ("--origin", SHOP.upper(), "--locale", "es")
    more += ("--collect", "acknowledgment", "--collect", "identity")
    made = embedded.read("checkout-sessions", "create", *IN_TEST, *ASKED, *more)
    expected = {
        "session_id": "cart-7",
        "return_url": f"{SHOP}/back",
        "notice_id": "ab1263",
        "cbid": "cbid_x",
        "origin": SHOP,
        "locale": "es",
        "collect": ["identity", "acknowledgment"],
        "livemode": False,
    }
    assert {name: made[name] for name in expected} == expected
    assert made["url"].endswith(made["client_token"])


def test_a_cancelled_link_stops_working_and_is_cancelled_once(embedded: Deployment) -> None:
    made = embedded.read("checkout-sessions", "create", *IN_TEST, *ASKED)
    cancel = ("checkout-sessions", "cancel", *IN_TEST, made["checkout_session_id"], "--yes")
    assert embedded.read(*cancel)["status"] == "cancelled"
    again = embedded.run(*cancel, check=False)
    assert (again.returncode, "checkout_session_closed" in again.stderr) == (1, True)


def test_a_link_that_verifies_a_buyer_is_made_by_hand(embedded: Deployment) -> None:
    """As by the API; the command prints only the link."""
    asked = (*IN_TEST, "--session", "cart-7", "--return-url", f"{SHOP}/back", "--zip", "94111")
    create = ("checkout-sessions", "create", "--collect", "identity", *asked)
    printed = embedded.run(*create).stdout
    assert "/c/" in printed
    assert len(printed.splitlines()) == 1
    made = embedded.read(*create, "--expires-in", "2h")
    assert (made["status"], made["session_id"], made["collect"]) == ("open", "cart-7", ["identity"])
    show = ("checkout-sessions", "show", *IN_TEST, made["checkout_session_id"])
    assert embedded.read(*show) == made | {"url": None, "client_token": None}
    assert "status: open" in embedded.run(*show).stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("create", *IN_TEST, *ASKED, "--return-url", "ftp://shop.example"), "invalid_request"),
        (("create", *IN_TEST, *ASKED, "--expires-in", "25h"), "invalid_request"),
        (("create", *IN_TEST, *ASKED, "--zip", "9411"), "invalid_request"),
        (("create", *IN_TEST, *ASKED, "--notice", "none"), "notice_not_found"),
        (("create", "--account", "other", "--mode", "test", *ASKED), "account_not_found"),
        (("show", *IN_TEST, "chk_00000000000000000000000000"), "not_found"),
        (("cancel", *IN_TEST, "chk_00000000000000000000000000", "--yes"), "not_found"),
    ],
)
def test_the_command_refuses_the_same_input_as_the_api(
    embedded: Deployment, arguments: tuple[str, ...], code: str
) -> None:
    done = embedded.run("checkout-sessions", *arguments, check=False)
    assert (done.returncode, code in done.stderr) == (1, True), done.stderr


def test_origins_are_registered_once_as_browsers_write_them(embedded: Deployment) -> None:
    def origins(*arguments: str) -> str:
        return embedded.run("accounts", "origins", *arguments).stdout.strip()

    assert origins("add", "shop", "HTTPS://Shop.example:443/") == SHOP
    assert origins("add", "shop", SHOP) == SHOP
    assert origins("add", "shop", f"{SHOP}:8443") == f"{SHOP}:8443"
    assert origins("list", "shop").split() == [SHOP, f"{SHOP}:8443"]
    listed = embedded.read("accounts", "origins", "list", "shop")
    assert listed["origins"] == [SHOP, f"{SHOP}:8443"]
    assert origins("remove", "shop", f"{SHOP}/", "--yes") == SHOP
    assert origins("list", "shop") == f"{SHOP}:8443"
    for refused in (
        ("remove", "shop", SHOP, "--yes"),
        ("add", "shop", f"{SHOP}/path"),
        ("add", "shop", "https://user@shop.example"),
    ):
        done = embedded.run("accounts", "origins", *refused, check=False)
        assert (done.returncode, "invalid_argument" in done.stderr) == (1, True)
    traces = [row["action"] for row in embedded.read("audit")]
    assert [trace for trace in traces if "origin" in trace].count("account.origin_added") <= 2
    assert len([trace for trace in traces if "origin" in trace]) == 3


def test_live_sessions_return_to_and_are_embedded_in_registered_origins_alone(
    configured: Configured, configured_vendor: Vendor
) -> None:
    """Exactly: scheme, host and port. A removed one is not accepted any more."""
    run, live = configured.deployment.run, configured_vendor.live
    origins, account = ("accounts", "origins"), configured_vendor.account_id

    def asked(**changes: object) -> tuple[int, str]:
        response = live.post(
            SESSIONS, json=wanted(notice_id=LIVE_NOTICE, order_reference="1", **changes)
        )
        return (200, "open") if response.status_code == 200 else refusal(response)

    assert asked() == (409, "origin_not_registered")
    run(*origins, "add", account, SHOP)
    assert asked() == (200, "open")
    assert asked(origin=SHOP) == (200, "open")
    for other in ("http://shop.example", f"{SHOP}:8443", "https://www.shop.example"):
        assert asked(return_url=f"{other}/back") == (409, "origin_not_registered")
        assert asked(origin=other) == (409, "origin_not_registered")
    run(*origins, "remove", account, SHOP, "--yes")
    assert asked() == (409, "origin_not_registered")


def test_a_live_session_is_acknowledged_with_a_live_record(
    configured: Configured, configured_vendor: Vendor
) -> None:
    configured.deployment.run("accounts", "origins", "add", configured_vendor.account_id, SHOP)
    body = wanted(notice_id=LIVE_NOTICE, order_reference="1001")
    made = configured_vendor.live.post(SESSIONS, json=body).json()
    assert (made["livemode"], made["client_token"][:9]) == (True, "cst_live_")
    with make_client(configured.server, made["client_token"]) as browser:
        ended = Buyer(made, browser).acknowledge().json()
    found = configured_vendor.live.get(f"/v1/acknowledgments/{ended['ack_id']}").json()
    assert (found["livemode"], found["capture"]) == (True, "hosted")
    in_test = configured_vendor.test.get(f"{SESSIONS}/{made['checkout_session_id']}")
    assert refusal(in_test) == (404, "not_found")
