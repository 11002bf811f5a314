"""A vendor refuses a buyer: only the vendor's own clearances show it."""

from __future__ import annotations

import time
from typing import Any

import httpx2
import pytest
from sqlalchemy import Connection

from countersign.base.values import from_ns
from countersign.core.access.role import Role
from countersign.core.buyers.sessions_sql import join
from countersign.core.buyers.sql import buyers_by_cbid
from countersign.operate import bootstrap
from tests.http.backstage import Vendor, notice_file
from tests.http.calls import acknowledge, refusal, verify
from tests.staff.conftest import Desk

pytestmark = pytest.mark.both_engines
ZIP = "94105"
WHY = {"reason": "case 7"}


def decided(client: httpx2.Client, cbid: str, number: int) -> Any:  # noqa: ANN401 - any JSON
    """Have an order of this buyer decided."""
    session = f"cart-{number}"
    ack_id = acknowledge(client, session_id=session, cbid=cbid).json()["ack_id"]
    order = {"ack_id": ack_id, "cbid": cbid, "shipping_zip": ZIP, "session_id": session}
    return client.post("/v1/clearances", json=order | {"product_class": "accessory"}).json()


def test_a_blocked_buyer_is_refused_by_the_vendor_and_keeps_the_status(
    desk: Desk, shop: Vendor
) -> None:
    """Clearances say so until it is undone; the status and its event stream do not."""
    client = shop.test
    session = {"provider_identity_session_id": "block-1", "shipping_zip": ZIP}
    cbid = verify(client, **session).json()["cbid"]
    before = client.get(f"/v1/buyers/{cbid}/status").content
    place = f"/v1/buyers/{cbid}"
    with desk.person(Role.COMPLIANCE, shop.account_id, "test") as person:
        assert person.post(f"{place}/block", WHY)["blocked"] is True
        assert person.post(f"{place}/block", WHY)["blocked"] is True
        events = client.get("/v1/events").json()["data"]
        assert decided(client, cbid, 1)["reasons"] == ["refused_by_vendor"]
        assert client.get(f"/v1/buyers/{cbid}/status").content == before
        assert not [one for one in events if "block" in one["type"]]
        assert person.post(f"{place}/unblock", WHY)["blocked"] is False
        actions = [one["action"] for one in person.get(f"/v1/audit?subject={cbid}")["data"]]
        assert actions == ["buyer_unblocked", "buyer_blocked", "buyer_blocked"]
    assert decided(client, cbid, 2)["cleared"] is True


def test_a_block_applies_to_one_account_in_one_mode(desk: Desk, shop: Vendor) -> None:
    """A buyer of the other mode is not found, and only the vendor's own people can block."""
    cbid = verify(shop.test, provider_identity_session_id="block-2").json()["cbid"]
    with (
        desk.operator.vendor(desk.server) as other,
        desk.person(Role.COMPLIANCE, shop.account_id, "live") as live,
        desk.person(Role.COMPLIANCE) as staff,
        desk.person(Role.DEVELOPER, shop.account_id, "test") as developer,
        desk.person(Role.COMPLIANCE, other.account_id, "test") as elsewhere,
    ):
        place = f"/v1/buyers/{cbid}/block"
        live.post(place, WHY, 404)
        staff.post(place, WHY, 400)
        developer.post(place, WHY, 403)
        # The other account's block has no effect here.
        elsewhere.post(place, WHY)
    answer = decided(shop.test, cbid, 3)
    assert "refused_by_vendor" not in answer["reasons"]


def test_a_block_is_erased_with_its_buyer(desk: Desk, shop: Vendor) -> None:
    """A buyer who returns to the sandbox under the same identifier is cleared again."""
    session = {"provider_identity_session_id": "block-4", "shipping_zip": ZIP}
    cbid = verify(shop.test, **session).json()["cbid"]
    with desk.person(Role.COMPLIANCE, shop.account_id, "test") as person:
        person.post(f"/v1/buyers/{cbid}/block", WHY)
        person.post("/v1/erasures", {"subject": cbid})
    own = "SELECT cbid FROM buyer_blocks WHERE cbid = :cbid"
    assert desk.operator.rows(own, cbid=cbid) == []


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/v1/notices/ab1263/acknowledge", {"initials_per_line": ["JD"] * 4}),
        ("/v1/clearances", {"ack_id": "ack_1", "shipping_zip": ZIP, "session_id": "s"}),
        ("/v1/checkout_sessions", {"return_url": "https://shop.example/", "session_id": "s"}),
    ],
)
def test_a_live_act_names_no_buyer_of_the_sandbox(
    desk: Desk, shop: Vendor, path: str, fields: dict[str, Any]
) -> None:
    """A live POST with a `cbid_test_…` is 403; its status stays 404."""
    cbid = verify(shop.test, provider_identity_session_id="crossing").json()["cbid"]
    if "acknowledge" in path:
        desk.operator.publish(notice_file("blocks", "1"))
        path, fields = path.replace("ab1263", "blocks"), {"initials_per_line": ["JD"] * 3}
    assert refusal(shop.live.post(path, json=fields | {"cbid": cbid})) == (403, "mode_mismatch")
    assert refusal(shop.live.get(f"/v1/buyers/{cbid}/status")) == (404, "not_found")


def test_a_block_stays_with_a_merged_buyer(desk: Desk, shop: Vendor) -> None:
    """The vendor refuses the person, under whichever identifier."""
    cbid, other = (
        verify(shop.test, provider_identity_session_id=f"join-{n}", shipping_zip=ZIP).json()["cbid"]
        for n in range(2)
    )
    with desk.person(Role.COMPLIANCE, shop.account_id, "test") as person:
        person.post(f"/v1/buyers/{cbid}/block", WHY)

        async def joined(opened: bootstrap.Deployment) -> None:
            def act(connection: Connection) -> None:
                known = buyers_by_cbid(connection, [other])[other]
                join(connection, cbid, known, from_ns(time.time_ns()), revoked=False)

            await opened.database.write(act)

        desk.operator.act(joined)
        for number, name in enumerate((cbid, other), 10):
            assert decided(shop.test, name, number)["reasons"] == ["refused_by_vendor"]
        assert person.post(f"/v1/buyers/{cbid}/unblock", WHY)["cbid"] == cbid
    assert decided(shop.test, other, 12)["cleared"] is True
