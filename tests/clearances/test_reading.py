"""Reading and finding decisions, and erasing their personal data."""

from __future__ import annotations

import time

import pytest
from sqlalchemy import Table, select

from countersign.base.db.tables import metadata
from tests.clearances.checkout import CLEARANCES, SESSION, Checkout
from tests.http.calls import message, refusal

WORDS = {
    "line1": "1 Quillfeather Lane",
    "city": "Marrowbone",
    "state": "CA",
    "postal_code": "94110-7391",
}
CARRIER, TRACKING = "Lanternpost Express", "TRACK-ZAPHIRA-1"


def _found(shop: Checkout, **query: str) -> list[str]:
    answer = shop.client.get(CLEARANCES, params=query)
    assert answer.status_code == 200, answer.text
    return [item["clearance_id"] for item in answer.json()["data"]]


def test_clearances_are_found_by_acknowledgment_session_and_buyer_newest_first(
    checkout: Checkout,
) -> None:
    """Granted and refused ones."""
    ack_id, cbid = checkout.initialed(), checkout.buyer()
    barrel = checkout.decision(ack_id, cbid, product_class="barrel")["clearance_id"]
    other = checkout.decision(ack_id, cbid, session_id="cs_other")["clearance_id"]
    cleared = checkout.decision(ack_id, cbid)["clearance_id"]
    nobodys = checkout.decision("nonsense", "cbid_nobody")["clearance_id"]
    assert _found(checkout) == [nobodys, cleared, other, barrel]
    assert _found(checkout, ack_id=ack_id) == [cleared, other, barrel]
    assert _found(checkout, session_id=SESSION) == [nobodys, cleared, barrel]
    assert _found(checkout, session_id="cs_other", ack_id=ack_id) == [other]
    assert _found(checkout, cbid="cbid_nobody") == [nobodys]
    assert _found(checkout, cbid=cbid, session_id="cs_other") == [other]
    assert _found(checkout, cbid=cbid, session_id="cs_nobody") == []


def test_a_listed_clearance_equals_the_one_read_alone(checkout: Checkout) -> None:
    answer = checkout.cleared(product_class="accessory")
    checkout.fulfil(answer["clearance_id"], carrier=CARRIER)
    alone = checkout.client.get(
        f"{CLEARANCES}/{answer['clearance_id']}", headers={"Prefer": "wait=10"}
    ).json()
    (listed,) = checkout.client.get(CLEARANCES).json()["data"]
    assert listed | {"evidence": None} == alone | {"evidence": None}


@pytest.mark.parametrize("query", [{}, {"session_id": SESSION}])
def test_the_pages_of_a_list_hold_everything_once(
    checkout: Checkout, query: dict[str, str]
) -> None:
    made = [checkout.decision("nonsense", f"cbid_{n}")["clearance_id"] for n in range(5)]
    found, after = list[str](), dict[str, str]()
    while True:
        page = checkout.client.get(CLEARANCES, params=query | {"limit": "2"} | after).json()
        found += [item["clearance_id"] for item in page["data"]]
        if page["next_cursor"] is None:
            break
        after = {"after": page["next_cursor"]}
    assert found == made[::-1]


@pytest.mark.parametrize(
    "query", [{"after": "nonsense"}, {"limit": "0"}, {"order": "1"}, {"ack_id": "x" * 256}]
)
def test_a_search_that_cannot_be_read_is_refused(checkout: Checkout, query: dict[str, str]) -> None:
    answer = checkout.client.get(CLEARANCES, params=query)
    assert refusal(answer) == (400, "invalid_request")
    assert next(iter(query)) in message(answer)


def test_each_decision_and_each_report_is_an_entry_of_the_log(checkout: Checkout) -> None:
    """Refusals as well."""
    cleared = checkout.cleared()["clearance_id"]
    refused = checkout.decision("nonsense", "cbid_nobody")["clearance_id"]
    report = checkout.fulfil(cleared, carrier=CARRIER).json()["fulfilment_id"]
    query = (
        "SELECT r.id FROM records r JOIN log_entries e ON e.record_id = r.id"
        " WHERE r.account_id = :id AND r.type IN ('clearance', 'fulfilment')"
    )
    rows = checkout.operator.rows(query, id=checkout.vendor.account_id)
    deadline = time.monotonic() + 20
    while len(rows) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
        rows = checkout.operator.rows(query, id=checkout.vendor.account_id)
    assert {row["id"] for row in rows} == {cleared, refused, report}
    places = [checkout.back(id_)["evidence"] for id_ in (cleared, refused)]
    assert [place["status"] for place in places] == ["sealed", "sealed"]
    assert places[0]["index"] != places[1]["index"]


def test_nothing_personal_of_an_order_is_in_the_database_in_the_clear(checkout: Checkout) -> None:
    """Neither in a table nor in the server's log."""
    session = "cs_quillfeather_4711"
    ack_id, cbid = checkout.initialed(session_id=session), checkout.buyer(zip_="94110")
    answer = checkout.decision(
        *(ack_id, cbid),
        session_id=session,
        shipping_zip="94110-7391",
        shipping_address=WORDS,
    )
    assert answer["cleared"], answer
    checkout.fulfil(answer["clearance_id"], carrier=CARRIER, tracking_number=TRACKING)
    secrets = [session, "94110-7391", WORDS["line1"], WORDS["city"], CARRIER, TRACKING]
    assert all(word in str(checkout.back(answer["clearance_id"])) for word in secrets)
    with checkout.operator.transaction() as connection:
        stored = {
            table.name: repr(connection.execute(select(table)).all())
            for table in metadata.sorted_tables
        }
    assert answer["clearance_id"] in stored["clearances"]
    leaks = [(name, word) for name, rows in stored.items() for word in secrets if word in rows]
    assert leaks == []
    log = checkout.server.log.read_text()
    assert [word for word in [*secrets, cbid] if word in log] == []


def test_erasing_an_acknowledgment_erases_its_clearances_personal_data(
    checkout: Checkout,
) -> None:
    """In refused and granted clearances and in reports; the decisions stay."""
    ack_id, cbid = checkout.initialed(), checkout.buyer()
    refused = checkout.decision(ack_id, cbid, product_class="barrel")["clearance_id"]
    cleared = checkout.decision(ack_id, cbid, shipping_address=WORDS)["clearance_id"]
    report = checkout.fulfil(cleared, carrier=CARRIER, tracking_number=TRACKING).json()
    checkout.server.deployment.run("erase", ack_id, "--yes")
    for clearance_id in (refused, cleared):
        back = checkout.back(clearance_id)
        assert back["erased_at"] is not None
        personal = ("cbid", "session_id", "shipping_zip", "shipping_address", "product_class")
        assert [back[name] for name in personal] == [None] * len(personal)
        assert back["token"] is None
        assert back["ack_id"] == ack_id
    back = checkout.back(cleared)
    assert back["cleared"] is True
    assert back["closed_at"] == report["closed_at"]
    (answer,) = back["fulfilments"]
    assert (answer["carrier"], answer["tracking_number"]) == (None, None)
    ids = [refused, cleared, report["fulfilment_id"]]
    assert _kept(checkout, metadata.tables["disclosures"], ids) == []
    assert _kept(checkout, metadata.tables["shred_keys"], ids) == []
    assert checkout.decision(ack_id, cbid)["reasons"] == [
        "acknowledgment_erased",
        "acknowledgment_already_used",
        "buyer_mismatch",
    ]


def _kept(shop: Checkout, table: Table, ids: list[str]) -> list[str]:
    with shop.operator.transaction() as connection:
        query = select(table.c.record_id).where(table.c.record_id.in_(ids))
        return list(connection.execute(query).scalars())


def test_erasing_a_buyer_does_not_free_its_acknowledgments(checkout: Checkout) -> None:
    """No row says who it was, and still no one else can use its acknowledgments."""
    ack_id, cbid = checkout.initialed(), checkout.buyer()
    assert checkout.decision(ack_id, cbid)["cleared"]
    checkout.server.deployment.run("erase", cbid, "--yes")
    with checkout.operator.transaction() as connection:
        uses = metadata.tables["acknowledgment_uses"]
        row = connection.execute(select(uses).where(uses.c.ack_id == ack_id)).one()
    assert row.cbid is None
    used = "acknowledgment_already_used"
    assert checkout.decision(ack_id, cbid)["reasons"] == [used, "buyer_not_found", "buyer_mismatch"]
    assert checkout.decision(ack_id, checkout.buyer())["reasons"] == [used, "buyer_mismatch"]
