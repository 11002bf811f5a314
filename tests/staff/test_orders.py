"""An order is found by anything that names it, held, and erased or kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import event

from countersign.base.values import Mode
from countersign.core.access.key import Principal
from countersign.core.access.role import Role
from countersign.core.access.secrets import DeploymentSecret
from countersign.operate import bootstrap
from countersign.operate.doctor.promises import PROMISES
from countersign.staff.acts import order_sql
from countersign_evidence.verification import dossier_of
from tests.http.backstage import Vendor
from tests.http.calls import acknowledge, refusal, verify
from tests.staff.conftest import Desk, Person

pytestmark = pytest.mark.both_engines
LAST_YEAR_OF_ALL = "2999-01-01T00:00:00Z"


@dataclass(frozen=True)
class Bought:
    """An order of the sandbox: identified, initialed, cleared and shipped."""

    session: str
    reference: str
    cbid: str
    ack_id: str
    clearance_id: str
    fulfilment_id: str


def buy(shop: Vendor, number: int) -> Bought:
    session, reference = f"cart-{shop.account_id}-{number}", f"order-{shop.account_id}-{number}"
    cbid = verify(shop.test, provider_identity_session_id=session, shipping_zip="94110").json()[
        "cbid"
    ]
    named = {"session_id": session, "order_reference": reference, "cbid": cbid}
    ack_id = acknowledge(shop.test, **named).json()["ack_id"]
    asked = {"ack_id": ack_id, "cbid": cbid, "session_id": session, "shipping_zip": "94110"}
    cleared = shop.test.post("/v1/clearances", json=asked | {"order_reference": reference}).json()
    assert cleared["cleared"], cleared
    clearance_id = cleared["clearance_id"]
    shipped = shop.test.post(
        f"/v1/clearances/{clearance_id}/fulfilment",
        json={"carrier": "UPS", "shipped_at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"},
    ).json()
    return Bought(session, reference, cbid, ack_id, clearance_id, shipped["fulfilment_id"])


@pytest.fixture
def compliance(desk: Desk, shop: Vendor) -> Iterator[Person]:
    """Give a compliance officer who asks about the sandbox of the test's account."""
    with desk.person(Role.COMPLIANCE, shop.account_id, "test") as made:
        yield made


def found(person: Person, query: str) -> list[str]:
    result = person.post("/v1/search", {"query": query})
    return [one["ack_id"] or one["checkout_session_id"] for one in result["orders"]]


def test_anything_that_names_an_order_finds_it(compliance: Person, shop: Vendor) -> None:
    """With its parts and its history, in order, without personal values."""
    order, other = buy(shop, 1), buy(shop, 2)
    for query in (
        *(order.session, order.reference, order.ack_id, order.clearance_id),
        *(order.fulfilment_id, order.cbid),
    ):
        assert found(compliance, query) == [order.ack_id], query
    assert found(compliance, other.reference) == [other.ack_id]
    (one,) = compliance.post("/v1/search", {"query": order.reference})["orders"]
    happened = [step["what"] for step in one["timeline"]]
    assert happened[:3] == ["identity_check_verified", "acknowledged", "cleared"]
    assert {part["type"] for part in one["parts"]} == {
        *("verification", "acknowledgment", "clearance", "fulfilment"),
    }
    assert (one["cleared"], one["cbid"]) == (True, order.cbid)
    text = compliance.client.post("/v1/search", json={"query": order.ack_id}).text
    assert order.session not in text
    assert order.reference not in text


def test_the_check_of_a_buyer_checked_elsewhere_is_not_shown(
    desk: Desk, compliance: Person, shop: Vendor
) -> None:
    """An order has the last check of its own account before its last record."""
    with desk.operator.vendor(desk.server) as other:
        cbid = verify(other.test, shipping_zip="94110").json()["cbid"]
    first = buy(shop, 1)
    named = {"session_id": f"cart-{shop.account_id}-x", "cbid": cbid}
    elsewhere = acknowledge(shop.test, **named).json()["ack_id"]
    for ack_id, checks in ((first.ack_id, 1), (elsewhere, 0)):
        (one,) = compliance.post("/v1/search", {"query": ack_id})["orders"]
        shown = [s["what"] for s in one["timeline"] if s["what"].startswith("identity_check")]
        assert len(shown) == checks


def test_a_hosted_session_is_an_order_before_anything_is_initialed(
    compliance: Person, shop: Vendor
) -> None:
    """It is found by its id, by the vendor's session, and by the order reference."""
    asked = {"collect": ["identity"], "session_id": "hosted", "order_reference": "H-1"}
    asked |= {"return_url": "https://shop.example/"}
    made = shop.test.post("/v1/checkout_sessions", json=asked).json()
    id_ = made["checkout_session_id"]
    for query in (id_, "hosted", "H-1"):
        assert found(compliance, query) == [id_], query


def test_no_data_of_another_account_or_mode_is_found(desk: Desk, shop: Vendor) -> None:
    """By none of its names."""
    order = buy(shop, 1)
    with (
        desk.operator.vendor(desk.server) as other,
        desk.person(Role.COMPLIANCE, other.account_id, "test") as stranger,
        desk.person(Role.COMPLIANCE, shop.account_id, "live") as live,
        desk.person(Role.SUPPORT) as staff,
    ):
        for person in (stranger, live, staff):
            for query in (order.session, order.reference, order.ack_id, order.cbid):
                assert found(person, query) == []
        for person in (stranger, live):
            person.post("/v1/holds", {"subject": order.ack_id, "reason": "case 1"}, 404)
            person.post("/v1/erasures/preview", {"subject": order.ack_id}, 404)
            person.post("/v1/erasures", {"subject": order.cbid}, 404)


def test_a_hold_of_the_console_keeps_the_order_and_its_check(
    compliance: Person, shop: Vendor
) -> None:
    """A preview names held data; after the release it is erased as requested."""
    order = buy(shop, 1)
    hold = compliance.post("/v1/holds", {"subject": order.clearance_id, "reason": "case 24-1187"})
    (one,) = compliance.post("/v1/search", {"query": order.ack_id})["orders"]
    assert one["hold_id"] == hold["hold_id"]
    subject = {"subject": order.ack_id}
    preview = compliance.post("/v1/erasures/preview", subject)
    assert preview["records"] == []
    assert hold["hold_id"] in (preview["prevented_by"] or str(preview["kept"]))
    refused = compliance.post("/v1/erasures", subject, 409)
    assert refused["error"]["code"] == "on_hold"
    released = compliance.post(f"/v1/holds/{hold['hold_id']}/release")
    assert released["hold_ids"] == [hold["hold_id"]]
    done = compliance.post("/v1/erasures", subject)
    assert order.ack_id in done["records"]
    (gone,) = compliance.post("/v1/search", {"query": order.ack_id})["orders"]
    assert "personal_data" in gone["missing"]
    assert shop.test.get(f"/v1/acknowledgments/{order.ack_id}").json()["initials_per_line"] is None


def test_a_matter_holds_several_orders_or_none(compliance: Person, shop: Vendor) -> None:
    """One unknown order refuses all of them; the end of the matter releases all."""
    first, second = buy(shop, 1), buy(shop, 2)
    orders = [{"subject": one.ack_id, "reason": "in dispute"} for one in (first, second)]
    unknown = {"subject": "ack_01km9x4v8gen3rr1p6q1s2t3v4", "reason": "no such order"}
    compliance.post("/v1/matters", {"name": "Case 1", "orders": [*orders, unknown]}, 404)
    assert compliance.get("/v1/matters")["data"] == []
    assert compliance.get("/v1/holds")["data"] == []
    matter = compliance.post("/v1/matters", {"name": "Case 1", "orders": orders})
    matter_id = matter["matter_id"]
    added = {"subject": first.cbid, "reason": "the buyer", "matter_id": matter_id}
    compliance.post("/v1/holds", added)
    assert compliance.get("/v1/matters")["data"][0]["holds"] == 3
    page = compliance.get(f"/v1/holds?matter_id={matter_id}&limit=2")
    rest = compliance.get(f"/v1/holds?matter_id={matter_id}&after={page['next_cursor']}")
    subjects = [one["subject"] for one in (*page["data"], *rest["data"])]
    assert subjects == [first.ack_id, second.ack_id, first.cbid]
    compliance.post("/v1/erasures", {"subject": first.cbid}, 409)
    ended = compliance.post(f"/v1/matters/{matter_id}/release")
    assert len(ended["hold_ids"]) == 3
    assert compliance.get("/v1/holds?status=active")["data"] == []
    compliance.post("/v1/holds", added, 404)
    done = compliance.post("/v1/erasures", {"subject": first.cbid})
    assert done["buyer"] is True


def test_a_reader_sees_due_data_and_erases_nothing(
    desk: Desk, compliance: Person, shop: Vendor
) -> None:
    """The list is of one account and mode, and has pages."""
    buy(shop, 1)
    with desk.person(Role.AUDITOR, shop.account_id, "test") as auditor:
        assert auditor.get(f"/v1/retention?until={LAST_YEAR_OF_ALL}")["next_cursor"] is None
        assert auditor.get("/v1/erasures/requests")["data"] == []
        assert auditor.get("/v1/holds")["data"] == []
        order = buy(shop, 2)
        auditor.post("/v1/erasures/preview", {"subject": order.ack_id})
        refused = auditor.client.post("/v1/erasures", json={"subject": order.ack_id})
        assert refused.status_code == 403
        refused = auditor.client.post("/v1/holds", json={"subject": order.ack_id, "reason": "no"})
        assert refused.status_code == 403


def test_the_audit_is_found_by_actor_action_time_and_subject(
    desk: Desk, compliance: Person, shop: Vendor
) -> None:
    """Newest first; for an account, entries about it and its data."""
    order = buy(shop, 1)
    compliance.post("/v1/holds", {"subject": order.ack_id, "reason": "case 7"})
    compliance.post("/v1/holds", {"subject": order.cbid, "reason": "case 7"})
    own = compliance.get("/v1/audit?action=hold_placed")["data"]
    assert [one["subject"] for one in own] == [order.cbid, order.ack_id]
    assert {one["actor"] for one in own} == {compliance.id}
    first = compliance.get(f"/v1/audit?actor={compliance.id}&limit=1")
    after = compliance.get(f"/v1/audit?actor={compliance.id}&after={first['next_cursor']}")
    assert first["data"] + after["data"] == own
    assert compliance.get("/v1/audit?end=2020-01-01T00:00:00Z")["data"] == []
    assert compliance.get(f"/v1/audit?subject={order.ack_id}")["data"] == own[1:]
    with desk.person(Role.AUDITOR) as auditor:
        assert own[0] in auditor.get(f"/v1/audit?actor={compliance.id}")["data"]


def test_a_deployments_staff_see_its_state(desk: Desk) -> None:
    """Sealing, what is owed, and the doctor's findings inside a server."""
    with desk.person(Role.SUPPORT) as person:
        standing = person.get("/v1/deployment")
        assert {one["livemode"] for one in standing["logs"]} == {True, False}
        assert [one["suspended"] for one in standing["logs"]] == [None, None]
        assert {one["promise"] for one in standing["promises"]} == {*PROMISES}
        findings = person.get("/v1/deployment/findings")["findings"]
        assert {"disk", "schema", "logs", "notices", "promises"} <= {
            one["check"] for one in findings
        }
        broken = {one["check"] for one in findings if one["severity"] == "broken"}
        assert broken <= {"durability"}  # the PostgreSQL of the tests does not wait for its disk


def test_a_search_takes_the_same_queries_whatever_it_finds(desk: Desk, shop: Vendor) -> None:
    """One order or many: each query is for all of them."""
    cbids = dict[str, str]()
    for name, number in (("alone", 1), ("many", 6)):
        cbids[name] = verify(shop.test, provider_identity_session_id=name).json()["cbid"]
        for cart in range(number):
            acknowledge(shop.test, session_id=f"{name}-{cart}", cbid=cbids[name])
    who = Principal(
        key_id="",
        account_id=shop.account_id,
        mode=Mode.TEST,
        scopes=frozenset(),
        credential="",
    )

    async def secret_of(opened: bootstrap.Deployment) -> DeploymentSecret:
        return opened.access.secret

    secret = desk.operator.act(secret_of)

    def counted(name: str) -> tuple[int, int]:
        statements = list[str]()
        with desk.operator.transaction() as connection:
            event.listen(
                connection, "before_cursor_execute", lambda *given: statements.append(given[2])
            )
            keys, _ = order_sql.find(connection, secret, who, cbids[name])
            stored = order_sql.read(connection, who, keys)
        return len(stored), len(statements)

    (one, few), (several, same) = counted("alone"), counted("many")
    assert (one, several) == (1, 6)
    assert few == same <= 16


def test_the_evidence_of_a_check_is_shown_for_a_reason(desk: Desk, shop: Vendor) -> None:
    """For people who see personal data; a simulated check has none."""
    order = buy(shop, 1)
    place = f"/v1/buyers/{order.cbid}/evidence"
    with (
        desk.person(Role.COMPLIANCE, shop.account_id, "test") as person,
        desk.person(Role.COMPLIANCE, shop.account_id, "live") as live,
        desk.person(Role.OWNER, shop.account_id, "test") as blind,
    ):
        person.get(place, 400)
        why = {"Countersign-Reason": "case 24-1187"}
        assert person.get(place, headers=why) == {"cbid": order.cbid, "checks": []}
        assert live.get(place, 404, headers=why)["error"]["code"] == "not_found"
        assert blind.client.get(place, headers=why).status_code == 403
        noted = person.get("/v1/audit?action=evidence_shown")["data"]
        assert [one["details"]["reason"] for one in noted] == ["case 24-1187"]


def test_the_evidence_of_others_buyer_is_refused_like_that_of_an_unknown_one(
    desk: Desk, shop: Vendor
) -> None:
    """Of others, erased, or unknown: an account learns nothing about others' buyers."""
    with desk.operator.vendor(desk.server) as other:
        theirs, erased = (buy(other, number).cbid for number in (1, 2))
    never = f"{theirs[:-4]}{'2222' if not theirs.endswith('2222') else '3333'}"
    desk.operator.deployment.run("erase", erased, "--yes")
    why = {"Countersign-Reason": "case 24-1187"}
    with desk.person(Role.COMPLIANCE, shop.account_id, "test") as person:
        said = [
            person.get(f"/v1/buyers/{cbid}/evidence", 404, headers=why)["error"]
            for cbid in (theirs, erased, never)
        ]
    assert said == [{"code": "not_found", "message": "The buyer was not found."}] * 3


def test_refusals_of_the_api_name_no_option_of_a_command(desk: Desk, shop: Vendor) -> None:
    """Their reader has a form or a program."""
    cbid = verify(shop.test, provider_identity_session_id="test_failed").json()["cbid"]
    blank = {"reason": " \t "}
    with (
        desk.person(Role.COMPLIANCE) as staff,
        desk.person(Role.COMPLIANCE, shop.account_id, "test") as person,
    ):
        test = {"Countersign-Mode": "test"}
        refused = [
            staff.client.post(f"/v1/buyers/{cbid}/revoke", json=blank, headers=test),
            staff.client.post(f"/v1/buyers/{cbid}/reinstate", json=blank, headers=test),
            person.client.post(f"/v1/buyers/{cbid}/review", json=blank | {"decision": "dismiss"}),
            staff.client.get("/v1/accounts/acct_none"),
            person.client.post("/v1/keys/key_none/revoke", json={}),
        ]
    assert all(400 <= answer.status_code < 500 for answer in refused)
    for answer in refused:
        message = answer.json()["error"]["message"]
        assert " --" not in message, message
        assert "countersign " not in message, message


def test_staff_revoke_a_buyer_at_every_vendor(desk: Desk, shop: Vendor) -> None:
    """And reinstate it; for one account it cannot be done."""
    order = buy(shop, 1)
    place, why = f"/v1/buyers/{order.cbid}", {"reason": "case 7"}
    with (
        desk.person(Role.COMPLIANCE) as live,
        desk.person(Role.COMPLIANCE, shop.account_id, "test") as one,
    ):
        assert one.client.post(f"{place}/revoke", json=why).status_code == 403
        live.post(f"{place}/revoke", why, 404)
        test = {"Countersign-Mode": "test"}
        assert live.post(f"{place}/revoke", why, headers=test)["status"] == "revoked"
        assert live.post(f"{place}/reinstate", why, headers=test)["status"] == "verified"


def test_staff_see_the_review_queue_of_the_sandbox(desk: Desk, shop: Vendor) -> None:
    """An approval can be practised."""
    cbid = verify(shop.test, provider_identity_session_id="test_failed").json()["cbid"]
    with desk.person(Role.COMPLIANCE) as staff:
        waiting = staff.get("/v1/buyers/reviews?limit=100", headers={"Countersign-Mode": "test"})[
            "data"
        ]
        assert (cbid, shop.account_id) in {(one["cbid"], one["account_id"]) for one in waiting}
    with desk.person(Role.COMPLIANCE, shop.account_id, "test") as person:
        person.post(f"/v1/buyers/{cbid}/review", {"decision": "dismiss", "reason": "practice"})
        assert person.get("/v1/buyers/reviews")["data"] == []


def test_a_list_has_every_order_once(shop: Vendor) -> None:
    """Whatever its newest act is, with any size of page, of which none is empty; and by state."""
    bought = buy(shop, 1)
    alone = acknowledge(shop.test, session_id="alone").json()["ack_id"]
    refused = acknowledge(shop.test, session_id="refused").json()["ack_id"]
    asked = {"ack_id": refused, "cbid": bought.cbid, "session_id": "refused"}
    assert not shop.test.post("/v1/clearances", json=asked | {"shipping_zip": "10001"}).json()[
        "cleared"
    ]
    states = {bought.ack_id: "shipped", alone: "acknowledged", refused: "refused"}
    for limit in (1, 2, 3, 50):
        found, after = dict[str, str](), dict[str, str]()
        while True:
            page = shop.test.get("/v1/orders", params={"limit": limit, **after}).json()
            assert page["data"]
            assert not {one["ack_id"] for one in page["data"]} & found.keys()
            found |= {one["ack_id"]: one["state"] for one in page["data"]}
            if page["next_cursor"] is None:
                break
            after = {"after": page["next_cursor"]}
        assert found == states
    for ack_id, state in states.items():
        [one] = shop.test.get("/v1/orders", params={"state": state}).json()["data"]
        assert one["ack_id"] == ack_id
    [one] = shop.test.get("/v1/orders", params={"session_id": bought.session}).json()["data"]
    assert one["ack_id"] == bought.ack_id


def kept_kinds(person: Person, cbid: str) -> set[str]:
    """Erase a buyer; the kinds of what holds keep."""
    kept = person.post("/v1/erasures", {"subject": cbid, "with_acknowledgments": True})["kept"]
    return {one["record_id"].partition("_")[0] for one in kept}


def test_a_hold_keeps_the_check_of_each_buyer_that_an_order_names(
    compliance: Person, shop: Vendor
) -> None:
    """Also where a decision about another buyer was refused."""
    first, second = (
        verify(shop.test, provider_identity_session_id=name, shipping_zip="94110").json()["cbid"]
        for name in ("first", "second")
    )
    ack_id = acknowledge(shop.test, session_id="both", cbid=first).json()["ack_id"]
    asked = {"ack_id": ack_id, "cbid": second, "session_id": "both", "shipping_zip": "94110"}
    assert not shop.test.post("/v1/clearances", json=asked).json()["cleared"]
    compliance.post("/v1/holds", {"subject": ack_id, "reason": "case 1"})
    assert kept_kinds(compliance, first) >= {"ack", "ver"}
    assert "ver" in kept_kinds(compliance, second)


def test_a_hold_on_the_order_of_a_link_keeps_the_check_of_its_buyer(
    compliance: Person, shop: Vendor
) -> None:
    """Before anything is initialed; by the identifier of the order."""
    cbid = verify(shop.test, shipping_zip="94110").json()["cbid"]
    asked = {"return_url": "https://shop.example/", "notice_id": "ab1263", "session_id": "link"}
    link = shop.test.post("/v1/checkout_sessions", json=asked | {"cbid": cbid}).json()
    order = shop.test.get(f"/v1/orders/{link['checkout_session_id']}").json()
    assert (order["state"], order["ack_id"]) == ("waiting_for_buyer", None)
    hold = compliance.post("/v1/holds", {"subject": order["order_id"], "reason": "case 1"})
    assert kept_kinds(compliance, cbid) == {"chk", "ver"}
    shown = shop.test.get(f"/v1/orders/{order['order_id']}").json()
    assert {part["hold_id"] for part in shown["parts"]} == {hold["hold_id"]}


def test_a_payment_is_no_shipment(shop: Vendor) -> None:
    """It changes no state, and the report of a shipment is still missing."""
    session = "paid"
    cbid = verify(shop.test, shipping_zip="94110").json()["cbid"]
    ack_id = acknowledge(shop.test, session_id=session, cbid=cbid).json()["ack_id"]
    asked = {"ack_id": ack_id, "cbid": cbid, "session_id": session, "shipping_zip": "94110"}
    cleared = shop.test.post("/v1/clearances", json=asked).json()
    report = f"/v1/clearances/{cleared['clearance_id']}/fulfilment"
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert shop.test.post(report, json={"paid_at": now}).status_code == 200
    order = shop.test.get(f"/v1/orders/{ack_id}").json()
    assert order["state"] == "cleared"
    assert "fulfilment" in order["missing"]
    assert [step["what"] for step in order["timeline"]].count("payment_reported") == 1


def test_each_session_of_a_reference_leads_to_its_order(shop: Vendor) -> None:
    """Also the second one, which joined the order that the reference was bound to."""
    acks = [
        acknowledge(shop.test, session_id=session, order_reference="R-7").json()["ack_id"]
        for session in ("desk", "phone")
    ]
    for named in ({"session_id": "desk"}, {"session_id": "phone"}, {"order_reference": "R-7"}):
        [order] = shop.test.get("/v1/orders", params=named).json()["data"]
        members = {part["id"] for part in order["parts"]}
        assert members == {*acks}


def test_an_order_says_when_its_name_was_used_again(shop: Vendor) -> None:
    """By another buyer, or after a shipment; a second click of the same buyer is neither."""

    def reused(ack_id: str) -> list[str]:
        timeline = shop.test.get(f"/v1/orders/{ack_id}").json()["timeline"]
        return [step["id"] for step in timeline if step["what"] == "name_used_again"]

    buyers = [
        verify(shop.test, provider_identity_session_id=session).json()["cbid"]
        for session in ("vs_first", "vs_other")
    ]
    first, again, other = (
        acknowledge(shop.test, session_id="shared", cbid=cbid).json()["ack_id"]
        for cbid in (buyers[0], buyers[0], buyers[1])
    )
    assert reused(first) == reused(again) == [other]
    bought = buy(shop, 1)
    copied = acknowledge(
        shop.test, session_id="copied", order_reference=bought.reference, cbid=bought.cbid
    )
    assert reused(bought.ack_id) == [copied.json()["ack_id"]]


def test_of_an_order_with_many_parts_the_newest_are_shown(shop: Vendor) -> None:
    """Such as that of a vendor who names all of them alike; what decides its state is shown too."""
    session, cbid = "checkout", verify(shop.test, shipping_zip="94110").json()["cbid"]
    ack_id = acknowledge(shop.test, session_id=session, cbid=cbid).json()["ack_id"]
    asked = {"ack_id": ack_id, "cbid": cbid, "session_id": session, "shipping_zip": "94110"}
    clearance_id = shop.test.post("/v1/clearances", json=asked).json()["clearance_id"]
    named = [
        acknowledge(shop.test, session_id=session).json()["ack_id"]
        for _ in range(order_sql.PARTS_MAX + 1)
    ]
    order = order_of(shop, named[0])
    shown = {part["id"] for part in order["parts"]}
    assert shown >= {ack_id, clearance_id, *named[1:]}
    assert named[0] not in shown
    assert order["more_parts"]
    assert (order["state"], order["clearance_id"], order["cleared"]) == (
        *("cleared", clearance_id, True),
    )
    assert not order_of(shop, buy(shop, 1).ack_id)["more_parts"]


def test_the_newest_decision_is_what_an_order_tells(shop: Vendor) -> None:
    """Also where an earlier one was granted: page and dossier say that it is refused."""
    session = "revoked"
    cbid = verify(shop.test, provider_identity_session_id="vs_revoked", shipping_zip="94110")
    named = {"session_id": session, "cbid": cbid.json()["cbid"]}
    ack_id = acknowledge(shop.test, **named).json()["ack_id"]
    asked = named | {"ack_id": ack_id, "shipping_zip": "94110"}
    assert shop.test.post("/v1/clearances", json=asked).json()["cleared"]
    moved = shop.test.post("/v1/test/buyers", json={"cbid": named["cbid"], "status": "revoked"})
    assert moved.status_code == 200, moved.text
    refused = shop.test.post("/v1/clearances", json=asked).json()
    order = order_of(shop, ack_id)
    assert (order["state"], order["reasons"]) == ("refused", ["buyer_revoked"])
    assert (order["clearance_id"], order["cleared"]) == (refused["clearance_id"], False)
    waits = {"Prefer": "wait=10"}
    made = shop.test.get(f"/v1/acknowledgments/{ack_id}/dossier", headers=waits).content
    assert [one.id for one in dossier_of(made).of("clearance")] == [refused["clearance_id"]]


def test_an_order_lacks_what_its_clearance_requires(shop: Vendor) -> None:
    bought = buy(shop, 1)
    assert {*order_of(shop, bought.ack_id)["missing"]} - {"seal"} == {"delivery"}


def link(shop: Vendor, **named: str) -> str:
    """A link for a session; gives its identifier."""
    asked = {"return_url": "https://shop.example/", "notice_id": "ab1263", "session_id": "link"}
    made = shop.test.post("/v1/checkout_sessions", json=asked | named)
    return str(made.json()["checkout_session_id"])


def order_of(shop: Vendor, member: str) -> dict[str, Any]:
    found: dict[str, Any] = shop.test.get(f"/v1/orders/{member}").raise_for_status().json()
    return found


def test_an_erased_link_has_expired_on_its_order_too(compliance: Person, shop: Vendor) -> None:
    """As the link itself says; nobody is waited for."""
    cbid = verify(shop.test, shipping_zip="94110").json()["cbid"]
    made = link(shop, cbid=cbid)
    assert order_of(shop, made)["state"] == "waiting_for_buyer"
    compliance.post("/v1/erasures", {"subject": cbid})
    assert shop.test.get(f"/v1/checkout_sessions/{made}").json()["status"] == "expired"
    order = order_of(shop, made)
    assert order["state"] == "closed"
    assert [part["status"] for part in order["parts"]] == ["expired"]
    assert [step["what"] for step in order["timeline"]] == ["link_made", "session_expired"]


@pytest.mark.parametrize("on", ["buyer", "account"])
def test_a_hold_on_a_buyer_or_an_account_keeps_the_orders_that_are_links(
    desk: Desk, compliance: Person, shop: Vendor, on: str
) -> None:
    """Before anything is initialed; the account has no check of the buyer."""
    with desk.operator.vendor(desk.server) as other:
        cbid = verify(other.test, shipping_zip="94110").json()["cbid"]
    made = link(shop, cbid=cbid)
    subject = {"buyer": cbid, "account": shop.account_id}[on]
    hold = compliance.post("/v1/holds", {"subject": subject, "reason": "case 1"})["hold_id"]
    order = order_of(shop, made)
    assert order["hold_id"] == hold
    assert [part["hold_id"] for part in order["parts"]] == [hold]


def test_a_hold_on_an_order_holds_no_other_order_with_the_same_check(
    compliance: Person, shop: Vendor
) -> None:
    """The check is kept; the rest of the other order can be erased."""
    first = buy(shop, 1)
    session = f"cart-{shop.account_id}-2"
    other = acknowledge(shop.test, session_id=session, cbid=first.cbid).json()["ack_id"]
    asked = {"session_id": session, "cbid": first.cbid, "ack_id": other, "shipping_zip": "94110"}
    assert shop.test.post("/v1/clearances", json=asked).json()["cleared"]
    hold = compliance.post("/v1/holds", {"subject": first.ack_id, "reason": "case 1"})["hold_id"]
    order = order_of(shop, other)
    assert order["hold_id"] is None
    kept = {part["type"]: part["hold_id"] for part in order["parts"]}
    assert kept == {"verification": hold, "acknowledgment": None, "clearance": None}
    assert {part["hold_id"] for part in order_of(shop, first.ack_id)["parts"]} == {hold}
    compliance.post("/v1/erasures", {"subject": other})
    compliance.post("/v1/erasures", {"subject": first.ack_id}, 409)


def test_a_corrected_report_moves_no_order(shop: Vendor) -> None:
    """The state is by the reports that count; if none is left, the report is missing."""
    bought = buy(shop, 1)
    report = f"/v1/clearances/{bought.clearance_id}/fulfilment"

    def told(**facts: object) -> tuple[str, bool]:
        made = shop.test.post(report, json=facts).raise_for_status().json()
        order = order_of(shop, made["fulfilment_id"])
        wrong.append(made["fulfilment_id"])
        return order["state"], "fulfilment" in order["missing"]

    wrong = [bought.fulfilment_id]
    delivered = {"delivered_at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"}
    assert told(**delivered) == ("delivered", False)
    assert told(corrects=wrong[-1], carrier="UPS") == ("shipped", False)
    assert told(corrects=wrong[0]) == ("shipped", False)
    assert told(corrects=wrong[2]) == ("cleared", True)


def test_a_refused_decision_joins_the_order_of_its_reference(shop: Vendor) -> None:
    """Also with an unknown acknowledgment, in another session."""
    bought = buy(shop, 1)
    asked = {"ack_id": "ack_01km9x4v8gen3rr1p6q1s2t3v4", "cbid": bought.cbid}
    asked |= {"session_id": "another", "shipping_zip": "94110"}
    refused = shop.test.post("/v1/clearances", json=asked | {"order_reference": bought.reference})
    order = order_of(shop, refused.json()["clearance_id"])
    assert bought.ack_id in {part["id"] for part in order["parts"]}


def test_a_reference_leads_to_the_order_that_named_it_first(shop: Vendor) -> None:
    """Even if an older order names it later."""
    old, first, _, joined = (
        acknowledge(shop.test, session_id=session, order_reference=reference).json()["ack_id"]
        for session, reference in (("old", None), ("first", "R-8"), ("old", "R-8"), ("new", "R-8"))
    )
    parts = {part["id"] for part in order_of(shop, joined)["parts"]}
    assert first in parts
    assert old not in parts


def test_a_session_is_acknowledged_for_one_reference(shop: Vendor) -> None:
    """Given first without one, it may be named later; another one is refused."""
    session = "one-cart"
    assert acknowledge(shop.test, session_id=session).status_code == 200
    for _ in range(2):
        again = acknowledge(shop.test, session_id=session, order_reference="Z-11")
        assert again.status_code == 200
    refused = acknowledge(shop.test, session_id=session, order_reference="Z-12")
    assert refusal(refused) == (409, "order_reference_mismatch")
    [order] = shop.test.get("/v1/orders", params={"session_id": session}).json()["data"]
    assert [part["type"] for part in order["parts"]] == ["acknowledgment"] * 3


def test_an_erasure_says_by_kind_what_goes_and_what_a_hold_keeps(
    compliance: Person, shop: Vendor
) -> None:
    bought = buy(shop, 1)
    of_order = compliance.post("/v1/erasures/preview", {"subject": bought.ack_id})
    assert of_order["erased"] == "1 acknowledgment, 1 clearance, 1 fulfilment report"
    assert of_order["still_kept"] == ""
    compliance.post("/v1/holds", {"subject": bought.ack_id, "reason": "case 1"})
    of_buyer = {"subject": bought.cbid, "with_acknowledgments": True}
    done = compliance.post("/v1/erasures", of_buyer)
    kept = "1 acknowledgment, 1 clearance, 1 fulfilment report, 1 identity check"
    assert (done["erased"], done["still_kept"]) == ("", kept)
