"""The one question over HTTP: each reason, bindings, used-up acknowledgments, and repetitions."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from countersign.core.access.key import Scope
from countersign.core.clearances.schemas import ClearanceReason
from tests.clearances.checkout import ADULT, CLEARANCES, LABEL, SESSION, Checkout
from tests.http.backstage import make_client, notice_file
from tests.http.calls import acknowledge, message, read_back, refusal, verify

MEMBERS = [
    *("clearance_id", "cleared", "order_named", "reasons", "obligations", "expires_at", "token"),
    "already_shipped",
]
ZIP_SHIPPED = [{"type": "compared", "what": "zip"}]


def test_a_cleared_order_is_answered_with_exactly_the_fields_of_the_design(
    checkout: Checkout,
) -> None:
    """With a token, its expiry, and the comparison."""
    answer = checkout.cleared()
    assert list(answer) == MEMBERS
    assert re.fullmatch(r"clr_[0-9a-hjkmnp-tv-z]{26}", answer["clearance_id"])
    assert (answer["cleared"], answer["reasons"], answer["obligations"]) == (True, [], ZIP_SHIPPED)
    assert answer["token"].count(".") == 2
    left = datetime.fromisoformat(answer["expires_at"]) - datetime.now(tz=UTC)
    assert timedelta(hours=23) < left <= timedelta(hours=24)


def test_an_uncleared_order_gets_status_200_as_well(checkout: Checkout) -> None:
    """It is a response, no failure; nothing in it can be mistaken for a yes."""
    answer = checkout.ask("ack_unheard_of", "cbid_unheard_of")
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    found = answer.json()
    assert list(found) == MEMBERS
    assert found["cleared"] is False
    assert found["reasons"] == ["acknowledgment_not_found", "buyer_not_found"]
    assert (found["obligations"], found["expires_at"], found["token"]) == ([], None, None)


Reasons = list[str]


def _of_another_account(shop: Checkout) -> Reasons:
    with shop.operator.vendor(shop.server) as vendor:
        other = Checkout(vendor=vendor, operator=shop.operator, server=shop.server)
        return list(shop.decision(other.initialed(), shop.buyer())["reasons"])


def _of_the_other_mode(shop: Checkout) -> Reasons:
    notice_id, _ = shop.notice()
    answer = acknowledge(shop.vendor.live, notice_id=notice_id, session_id=SESSION)
    return list(shop.decision(answer.json()["ack_id"], shop.buyer())["reasons"])


def _erased(shop: Checkout) -> Reasons:
    ack_id = shop.initialed()
    shop.server.deployment.run("erase", ack_id, "--yes")
    return list(shop.decision(ack_id, shop.buyer())["reasons"])


def _used(shop: Checkout) -> Reasons:
    ack_id, cbid = shop.initialed(), shop.buyer()
    assert shop.decision(ack_id, cbid)["cleared"]
    return list(shop.decision(ack_id, cbid, product_class="accessory")["reasons"])


def _live(shop: Checkout) -> Reasons:
    order = {"ack_id": "ack_1", "cbid": "b", "shipping_zip": "94110", "session_id": SESSION}
    answer = shop.vendor.live.post(CLEARANCES, json=order | {"order_reference": "1001"})
    assert "Countersign-Live-Would-Refuse" not in answer.headers
    return list(answer.json()["reasons"])


def _withdrawn(shop: Checkout) -> Reasons:
    notice_id, version = shop.notice()
    ack_id, cbid = shop.initialed(notice_id), shop.buyer()
    shop.operator.withdraw(notice_id, version)
    return list(shop.decision(ack_id, cbid)["reasons"])


def _superseded(shop: Checkout) -> Reasons:
    notice_id, _ = shop.notice()
    ack_id, cbid = shop.initialed(notice_id), shop.buyer()
    shop.operator.publish(notice_file(notice_id, "2", effective_from="2021-01-01"))
    return list(shop.decision(ack_id, cbid)["reasons"])


def _with(**more: object) -> Callable[[Checkout], Reasons]:
    def ask(shop: Checkout) -> Reasons:
        return list(shop.decision(shop.initialed(), shop.buyer(), **more)["reasons"])

    return ask


def _buyer_who(part: str) -> Callable[[Checkout], Reasons]:
    def ask(shop: Checkout) -> Reasons:
        return list(shop.decision(shop.initialed(), shop.buyer(part))["reasons"])

    return ask


def _verified_elsewhere(shop: Checkout) -> Reasons:
    with shop.operator.vendor(shop.server) as vendor:
        other = Checkout(vendor=vendor, operator=shop.operator, server=shop.server)
        return list(shop.decision(shop.initialed(), other.buyer())["reasons"])


def _other_than_acknowledged(shop: Checkout) -> Reasons:
    ack_id = shop.initialed(cbid=shop.buyer())
    return list(shop.decision(ack_id, shop.buyer())["reasons"])


CASES: dict[str, tuple[Callable[[Checkout], Reasons], Reasons]] = {
    "an acknowledgment that there is not": (
        lambda shop: list(shop.decision("nonsense", shop.buyer())["reasons"]),
        ["acknowledgment_not_found"],
    ),
    "of another account": (_of_another_account, ["acknowledgment_not_found"]),
    "of the other mode": (_of_the_other_mode, ["acknowledgment_not_found"]),
    "erased": (_erased, ["acknowledgment_erased"]),
    "another session": (_with(session_id="cs_other"), ["session_mismatch"]),
    "no session at all": (
        lambda shop: list(shop.decision(shop.initialed(session_id=None), shop.buyer())["reasons"]),
        ["session_mismatch"],
    ),
    "used for another order": (_used, ["acknowledgment_already_used"]),
    "too old": (
        lambda shop: list(
            shop.decision(shop.initialed_long_ago(timedelta(days=8)), shop.buyer())["reasons"]
        ),
        ["acknowledgment_too_old"],
    ),
    "a withdrawn notice": (_withdrawn, ["notice_not_in_force"]),
    "a superseded notice": (_superseded, ["notice_not_in_force"]),
    "a barrel": (_with(product_class="barrel"), ["notice_not_sufficient"]),
    "a live order that does not say what is sold": (
        _live,
        ["acknowledgment_not_found", "product_class_missing", "buyer_not_found"],
    ),
    "a buyer that there is not": (
        lambda shop: list(shop.decision(shop.initialed(), "cbid_nobody")["reasons"]),
        ["buyer_not_found"],
    ),
    "another buyer than acknowledged": (_other_than_acknowledged, ["buyer_mismatch"]),
    "a pending buyer": (_buyer_who("pending"), ["buyer_not_verified"]),
    "a buyer who failed": (_buyer_who("failed"), ["buyer_not_verified"]),
    "a buyer who has to act": (
        _buyer_who("requires_input"),
        ["buyer_requires_input", "identity_requires_input"],
    ),
    "a buyer simulated by another account": (
        _verified_elsewhere,
        ["buyer_requires_input", "simulated_elsewhere"],
    ),
    "an expired buyer": (_buyer_who("expired"), ["buyer_expired"]),
    "a revoked buyer": (_buyer_who("revoked"), ["buyer_revoked"]),
    "another ZIP code": (_with(shipping_zip="94111"), ["zip_mismatch"]),
    "a buyer without a ZIP code": (
        lambda shop: list(shop.decision(shop.initialed(), shop.buyer(zip_=None))["reasons"]),
        ["zip_mismatch"],
    ),
    "an address elsewhere": (
        _with(shipping_address={"line1": "1 Main Street", "postal_code": "94111"}),
        ["address_mismatch"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_failed_condition_is_the_given_reason(checkout: Checkout, case: str) -> None:
    """One condition fails at a time, so one reason is given."""
    ask, expected = CASES[case]
    assert ask(checkout) == expected


def test_every_possible_reason_was_provoked() -> None:
    """A new reason fails here until a request has met it."""
    met = {reason for _, expected in CASES.values() for reason in expected}
    met.add("refused_by_vendor")  # by staff: tests/staff/test_blocks.py
    met.add("order_already_fulfilled")  # stored by earlier releases
    met |= {one for one in ClearanceReason if one.startswith("exemption_")}  # test_exempt.py
    assert {reason.value for reason in ClearanceReason} <= met


def test_all_reasons_against_an_order_are_given_at_once_in_fixed_order(
    checkout: Checkout,
) -> None:
    """The same list every time, so that a vendor can show or compare it."""
    ack_id = checkout.initialed(cbid=checkout.buyer())
    tried = [
        checkout.decision(
            ack_id,
            checkout.buyer("expired"),
            session_id="cs_other",
            shipping_zip="10001",
            product_class="barrel",
            shipping_address={"postal_code": "10002"},
        )
        for _ in range(2)
    ]
    assert [answer["reasons"] for answer in tried] == [
        [
            "session_mismatch",
            "notice_not_sufficient",
            "buyer_mismatch",
            "buyer_expired",
            "zip_mismatch",
            "address_mismatch",
        ]
    ] * 2
    assert tried[0]["clearance_id"] != tried[1]["clearance_id"]


def test_zip_plus_4_is_compared_by_its_first_five_digits(checkout: Checkout) -> None:
    """And it is the same order then."""
    ack_id, cbid = checkout.initialed(), checkout.buyer()
    first = checkout.decision(ack_id, cbid, shipping_zip="94110-1234")
    assert first["cleared"]
    assert checkout.decision(ack_id, cbid) == first


def test_an_acknowledgment_without_a_buyer_is_bound_by_its_first_clearance(
    checkout: Checkout,
) -> None:
    """Granted or not, if that buyer is verified: nobody can try one buyer after the other."""
    ack_id, first = checkout.initialed(), checkout.buyer()
    assert checkout.decision(ack_id, first, product_class="barrel")["cleared"] is False
    assert checkout.decision(ack_id, checkout.buyer())["reasons"] == ["buyer_mismatch"]
    assert checkout.decision(ack_id, first)["cleared"] is True


def test_an_unverified_buyer_does_not_bind_an_acknowledgment(checkout: Checkout) -> None:
    """A pending verification may end with another identifier."""
    ack_id = checkout.initialed()
    assert checkout.decision(ack_id, checkout.buyer("pending"))["cleared"] is False
    assert checkout.decision(ack_id, checkout.buyer())["cleared"] is True


def test_only_a_cleared_order_uses_an_acknowledgment_up(checkout: Checkout) -> None:
    """A refused order can be corrected and sent again, also as another order."""
    ack_id, cbid = checkout.initialed(), checkout.buyer()
    assert checkout.decision(ack_id, cbid, product_class="barrel")["cleared"] is False
    assert checkout.decision(ack_id, cbid, product_class="accessory")["cleared"] is True
    answer = checkout.decision(ack_id, cbid, product_class="manufacturing_machine")
    assert answer["reasons"] == ["acknowledgment_already_used"]


def test_the_same_order_gets_the_same_clearance_byte_for_byte(checkout: Checkout) -> None:
    """Also without an Idempotency-Key."""
    ack_id, cbid = checkout.initialed(), checkout.buyer()
    order: dict[str, Any] = {
        "product_class": "accessory",
        "shipping_address": {"postal_code": "94110"},
    }
    answers = {checkout.ask(ack_id, cbid, **order).content for _ in range(3)}
    assert len(answers) == 1


def test_an_outdated_clearance_is_not_given_again(checkout: Checkout) -> None:
    """Revoking the buyer ends it; reinstating restores it."""
    ack_id, cbid = checkout.initialed(), checkout.buyer()
    first = checkout.decision(ack_id, cbid)
    checkout.server.deployment.run("buyers", "revoke", cbid, "--reason", "a test", "--yes")
    refused = checkout.decision(ack_id, cbid)
    assert refused["reasons"] == ["buyer_revoked"]
    assert refused["clearance_id"] != first["clearance_id"]
    checkout.server.deployment.run("buyers", "reinstate", cbid, "--reason", "a test")
    assert checkout.decision(ack_id, cbid) == first


def test_several_classes_are_one_order(checkout: Checkout) -> None:
    """In any order and number of times; a list of one is the same as that class alone."""
    ack_id, cbid = checkout.initialed(), checkout.buyer()
    two = ["firearm_accessory", "accessory"]
    first = checkout.decision(ack_id, cbid, product_classes=two)
    assert first["cleared"] is True
    assert checkout.decision(ack_id, cbid, product_classes=[*two[::-1], two[0]]) == first
    back = checkout.back(first["clearance_id"])
    assert (back["product_class"], back["product_classes"]) == (None, sorted(two))
    assert back["token"] == first["token"]
    alone = checkout.decision(ack_id, cbid, product_class="accessory")
    assert alone["reasons"] == ["acknowledgment_already_used"]
    other = checkout.initialed()
    one = checkout.decision(other, cbid, product_class="accessory")
    assert checkout.decision(other, cbid, product_classes=["accessory"]) == one
    assert checkout.back(one["clearance_id"])["product_classes"] == ["accessory"]


def test_the_notice_has_to_suffice_for_each_class(checkout: Checkout) -> None:
    """Each has to be known, too, and they are given in one way."""
    ack_id, cbid = checkout.initialed(), checkout.buyer()
    refused = checkout.decision(ack_id, cbid, product_classes=["accessory", "barrel"])
    assert refused["reasons"] == ["notice_not_sufficient"]
    unreadable: list[dict[str, Any]] = [
        {"product_classes": ["accessory", "crossbow"]},
        {"product_classes": []},
        {"product_classes": ["accessory"], "product_class": "accessory"},
    ]
    for wrong in unreadable:
        answer = checkout.ask(ack_id, cbid, **wrong)
        assert refusal(answer) == (400, "invalid_request")
        assert "$.product_classes" in message(answer)


def test_an_unknown_class_is_refused_with_the_known_ones(
    checkout: Checkout,
) -> None:
    """A typing error is no barrel. A notice that names a class makes it known at once."""
    ack_id, cbid = checkout.initialed(), checkout.buyer()
    answer = checkout.ask(ack_id, cbid, product_class="crossbow")
    assert refusal(answer) == (400, "invalid_request")
    for known in ("accessory", "barrel", "manufacturing_machine"):
        assert known in message(answer)
    checkout.notice('[[obligations]]\ntype = "product_classes"\nsufficient_for = ["crossbow"]\n')
    found = checkout.decision(ack_id, cbid, product_class="crossbow")
    assert found["reasons"] == ["notice_not_sufficient"]


def test_a_test_key_is_told_what_a_live_key_needs(
    checkout: Checkout,
) -> None:
    """It is judged without both, so that an integration can begin; the header warns."""
    ack_id, cbid = checkout.initialed(), checkout.buyer()
    deployment, account = checkout.server.deployment, checkout.vendor.account_id

    def warned(**more: Any) -> str | None:  # noqa: ANN401 - any JSON
        answer = checkout.ask(ack_id, cbid, **more)
        assert answer.status_code == 200
        return answer.headers.get("Countersign-Live-Would-Refuse")

    both = "product_class_missing, order_reference_missing"
    assert warned() == both
    assert warned(product_class="accessory") == "order_reference_missing"
    assert warned(order_reference="1001") == "product_class_missing"
    optional = ("--product-class", "optional", "--order-reference", "optional")
    deployment.run("accounts", "clearance", "set", account, *optional)
    shown = deployment.read("accounts", "clearance", "show", account)
    assert (shown["product_class"], shown["order_reference"]) == ("optional", "optional")
    assert warned() is None


def test_live_orders_of_a_new_account_are_named(checkout: Checkout) -> None:
    """Sessions with a notice and clearances: nothing is written until the operator allows it."""
    order = {"ack_id": "ack_1", "cbid": "b", "shipping_zip": "94110", "session_id": SESSION}
    link = {"return_url": "https://shop.example/", "session_id": SESSION, "notice_id": "ab1263"}
    live, account = checkout.vendor.live, checkout.vendor.account_id
    asked = ((CLEARANCES, order), ("/v1/checkout_sessions", link))
    for path, body in asked:
        assert refusal(live.post(path, json=body)) == (422, "order_reference_missing")
    assert live.get(CLEARANCES).json()["data"] == []
    allow = ("accounts", "clearance", "set", account, "--order-reference", "optional")
    checkout.server.deployment.run(*allow)
    decided = live.post(CLEARANCES, json=order).json()
    assert (decided["cleared"], decided["order_named"]) == (False, False)
    assert refusal(live.post(asked[1][0], json=link))[1] != "order_reference_missing"


def test_obligations_are_those_of_the_acknowledged_version(checkout: Checkout) -> None:
    """As in the file, with the compared ZIP code at the end; product classes are a rule."""
    notice_id, _ = checkout.notice(
        f'[[obligations]]\ntype = "package_label"\ntext = "{LABEL}"\n'
        '[[obligations]]\ntype = "product_classes"\nsufficient_for = ["slingshot"]\n' + ADULT
    )
    ack_id, cbid = checkout.initialed(notice_id), checkout.buyer()
    assert checkout.decision(ack_id, cbid, product_class="accessory")["reasons"] == [
        "notice_not_sufficient"
    ]
    answer = checkout.decision(ack_id, cbid, product_class="slingshot")
    assert answer["obligations"] == [
        {"type": "package_label", "text": LABEL},
        {"type": "adult_signature"},
        *ZIP_SHIPPED,
    ]
    assert checkout.back(answer["clearance_id"])["obligations"] == answer["obligations"]


def test_zip_codes_cannot_be_guessed_with_clearances_either(checkout: Checkout) -> None:
    """Five a day, over verify and clearances together; then the response is only Retry-After."""
    ack_id, session = checkout.initialed(), "vs_of_a_guesser"
    sent = {"provider_identity_session_id": session, "shipping_zip": "94110"}
    cbid = verify(checkout.client, **sent).json()["cbid"]
    for code in ("10001", "10002", "10003", "10004"):
        assert checkout.decision(ack_id, cbid, shipping_zip=code)["reasons"] == ["zip_mismatch"]
    refused = checkout.ask(ack_id, cbid, shipping_zip="10005")
    assert refusal(refused) == (429, "rate_limited")
    assert int(refused.headers["Retry-After"]) > 23 * 3600
    assert "10005" not in message(refused)
    more = verify(checkout.client, **sent | {"shipping_zip": "10005"})
    assert refusal(more) == (429, "rate_limited")
    # A ZIP code that was tried before may be asked again.
    assert checkout.decision(ack_id, cbid)["cleared"] is True
    assert checkout.decision(ack_id, cbid, shipping_zip="10004")["cleared"] is False


def test_a_refused_guess_binds_and_writes_nothing(checkout: Checkout) -> None:
    ack_id, cbid = checkout.initialed(), checkout.buyer()
    spent = checkout.initialed()
    for code in ("10001", "10002", "10003", "10004"):
        checkout.decision(spent, cbid, shipping_zip=code)
    assert checkout.ask(ack_id, cbid, shipping_zip="10005").status_code == 429
    found = checkout.client.get(CLEARANCES, params={"ack_id": ack_id}).json()["data"]
    assert found == []
    assert checkout.decision(ack_id, checkout.buyer())["cleared"] is True


def test_a_clearance_reads_back_as_requested_and_answered(checkout: Checkout) -> None:
    """And its acknowledgment names it."""
    ack_id, cbid = checkout.initialed(), checkout.buyer()
    address = {"line1": "1 Main Street", "state": "CA", "postal_code": "94110-1234"}
    answer = checkout.decision(ack_id, cbid, product_class="accessory", shipping_address=address)
    back = checkout.back(answer["clearance_id"])
    assert {name: back[name] for name in MEMBERS[:-1]} | {MEMBERS[-1]: False} == answer
    assert (back["ack_id"], back["cbid"], back["session_id"]) == (ack_id, cbid, SESSION)
    assert (back["shipping_zip"], back["product_class"]) == ("94110", "accessory")
    assert back["shipping_address"] == address
    assert (back["livemode"], back["fulfilments"], back["closed_at"]) == (False, [], None)
    assert read_back(checkout.client, ack_id)["clearance_id"] == answer["clearance_id"]


def test_refused_clearances_can_be_read(checkout: Checkout) -> None:
    answer = checkout.decision("nonsense", "cbid_nobody")
    back = checkout.back(answer["clearance_id"])
    assert {name: back[name] for name in MEMBERS[:-1]} | {MEMBERS[-1]: False} == answer
    assert (back["ack_id"], back["cbid"]) == (None, "cbid_nobody")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"ack_id": None}, "ack_id"),
        ({"cbid": ""}, "$.cbid"),
        ({"session_id": "x" * 256}, "$.session_id"),
        ({"shipping_zip": "9411"}, "$.shipping_zip"),
        ({"shipping_zip": "94110\n"}, "$.shipping_zip"),
        ({"shipping_zip": "９４１１０"}, "$.shipping_zip"),  # noqa: RUF001 - not ASCII digits
        ({"product_class": "Barrel"}, "$.product_class"),
        ({"product_class": "acessory"}, "$.product_class"),
        ({"product_class": "barrel\n"}, "$.product_class"),
        ({"shipping_address": {"line1": "1 Main Street"}}, "postal_code"),
        ({"shipping_address": {"postal_code": "94110", "zip": "1"}}, "zip"),
        ({"order_id": "1"}, "order_id"),
    ],
)
def test_a_question_that_cannot_be_read_is_refused_by_the_field(
    checkout: Checkout, change: dict[str, Any], named: str
) -> None:
    answer = checkout.ask("ack_1", "cbid_1", **change)
    assert refusal(answer) == (400, "invalid_request")
    assert named in message(answer)


def test_a_repeated_request_is_decided_once(checkout: Checkout) -> None:
    """The Idempotency-Key holds a refusal too: it is an answer like any other."""
    key = {"Idempotency-Key": "asked-once"}
    first = checkout.ask("nonsense", "cbid_nobody", headers=key)
    again = checkout.ask("nonsense", "cbid_nobody", headers=key)
    assert again.content == first.content
    assert again.headers["Idempotent-Replayed"] == "true"
    other = checkout.ask("nonsense", "cbid_somebody", headers=key)
    assert refusal(other) == (422, "idempotency_key_reused")


def test_requesting_and_reading_need_separate_scopes(checkout: Checkout) -> None:
    answer = checkout.cleared()
    path = f"{CLEARANCES}/{answer['clearance_id']}"
    reader, asker = checkout.operator.keys(
        checkout.vendor.account_id,
        [("test", [Scope.CLEARANCES_READ]), ("test", [Scope.CLEARANCES_CREATE])],
    )
    body = {"ack_id": "a", "cbid": "b", "shipping_zip": "94110", "session_id": "c"}
    with make_client(checkout.server, reader.token) as client:
        assert client.get(path).status_code == 200
        assert client.get(CLEARANCES).status_code == 200
        for refused in (
            client.post(CLEARANCES, json=body),
            client.post(f"{path}/fulfilment", json={"carrier": "UPS"}),
        ):
            assert refusal(refused) == (403, "forbidden")
    with make_client(checkout.server, asker.token) as client:
        assert client.post(CLEARANCES, json=body).status_code == 200
        assert refusal(client.get(path)) == (403, "forbidden")
        assert refusal(client.get(CLEARANCES)) == (403, "forbidden")


def test_an_accounts_new_rules_apply_to_its_next_clearance(
    checkout: Checkout,
) -> None:
    """And is in the audit log; other accounts keep theirs."""
    deployment, account = checkout.server.deployment, checkout.vendor.account_id
    ack_id = checkout.initialed_long_ago(timedelta(hours=2))
    deployment.run(
        *("accounts", "clearance", "set", account),
        *("--acknowledgment-max-age", "1h", "--lifetime", "30m"),
    )
    shown = deployment.read("accounts", "clearance", "show", account)
    assert shown == {
        "account_id": account,
        "acknowledgment_max_age_seconds": 3600,
        "lifetime_seconds": 1800,
        "paid_max_age_seconds": 15552000,
        "overrides_per_day": 0,
        "product_class": "required",
        "order_reference": "required",
    }
    assert checkout.decision(ack_id, checkout.buyer())["reasons"] == ["acknowledgment_too_old"]
    answer = checkout.cleared()
    left = datetime.fromisoformat(answer["expires_at"]) - datetime.now(tz=UTC)
    assert left <= timedelta(minutes=30)
    rows = checkout.operator.rows(
        "SELECT action, details FROM audit_log WHERE subject = :id AND action LIKE 'clearance%'",
        id=account,
    )
    assert [row["action"] for row in rows] == ["clearance_settings_changed"]
    assert "3600" in rows[-1]["details"]


def test_settings_out_of_bounds_are_refused(checkout: Checkout) -> None:
    done = checkout.server.deployment.run(
        *("accounts", "clearance", "set", checkout.vendor.account_id, "--lifetime", "8d"),
        check=False,
    )
    assert done.returncode == 1
    assert "7 days" in done.stderr


def test_a_repeated_yes_is_judged_again(checkout: Checkout) -> None:
    """The same bytes while it is true; a revocation in between counts, whatever the key says."""
    key = {"Idempotency-Key": "gate"}
    ack_id, cbid = checkout.initialed(), checkout.buyer()
    first = checkout.ask(ack_id, cbid, headers=key)
    assert first.json()["cleared"] is True
    again = checkout.ask(ack_id, cbid, headers=key)
    assert again.content == first.content
    assert again.headers["Idempotent-Replayed"] == "true"
    moved = checkout.client.post("/v1/test/buyers", json={"cbid": cbid, "status": "revoked"})
    assert moved.status_code == 200
    after = checkout.ask(ack_id, cbid, headers=key)
    assert (after.json()["cleared"], after.json()["reasons"]) == (False, ["buyer_revoked"])
    assert after.json()["token"] is None
    assert "Idempotent-Replayed" not in after.headers
