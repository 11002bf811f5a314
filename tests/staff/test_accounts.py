"""Staff make accounts and keys over the same acts as the commands."""

from __future__ import annotations

import base64

import httpx2
import pytest

from countersign.access.key import Scope
from countersign.access.role import Role
from tests.http.backstage import Vendor, make_client
from tests.staff.conftest import Desk, Person

pytestmark = pytest.mark.both_engines
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(20)).decode()


def code(answer: dict[str, dict[str, str]]) -> str:
    return answer["error"]["code"]


def test_an_account_lives_from_its_creation_to_its_end(desk: Desk, owner: Person) -> None:
    """Each step is an act of its command, and the audit names the person."""
    made = owner.post("/v1/accounts", {"name": "A shop of the console"})
    place = f"/v1/accounts/{made['account_id']}"
    assert code(owner.post("/v1/accounts", {"name": "a SHOP of the console"}, 409)) == (
        "account_exists"
    )
    assert owner.post(f"{place}/rename", {"name": "Renamed here"})["name"] == "Renamed here"
    brand = {"color": "#1F4D3A", "logo": PNG, "support_email": "help@shop.example"}
    shown = owner.ask("PATCH", f"{place}/brand", brand, 200)
    assert shown["color"] == "#1f4d3a"
    assert shown["logo"]
    assert code(owner.ask("PATCH", f"{place}/brand", {"logo": "no"}, 400)) == "invalid_request"
    owner.post(f"{place}/origins", {"origin": "https://shop.example"})
    assert owner.get(place)["origins"] == ["https://shop.example"]
    owner.post(f"{place}/origins/remove", {"origin": "https://shop.example"})
    owner.post(f"{place}/origins/remove", {"origin": "https://shop.example"}, 400)
    assert owner.post(f"{place}/disable")["status"] == "disabled"
    assert owner.post(f"{place}/enable")["status"] == "active"
    assert owner.get(f"{place}/close")["status"] == "active"
    assert owner.post(f"{place}/close")["status"] == "closed"
    assert code(owner.post(f"{place}/enable", {}, 409)) == "account_closed"
    noted = owner.get(f"/v1/audit?subject={made['account_id']}")["data"]
    assert {one["actor"] for one in noted} == {owner.id}
    assert [one["action"] for one in noted][::-1] == [
        *("account_created", "account_renamed", "brand_changed", "origin_added"),
        *("origin_removed", "account_disabled", "account_enabled", "account_closed"),
    ]


def test_lists_of_accounts_have_pages(desk: Desk, owner: Person, shop: Vendor) -> None:
    """As all lists have."""
    desk.operator.account()  # there are two at least
    first = owner.get("/v1/accounts?limit=1")
    second = owner.get(f"/v1/accounts?limit=100&after={first['next_cursor']}")
    assert shop.account_id in {one["account_id"] for one in (*first["data"], *second["data"])}
    assert first["data"][0] not in second["data"]


def test_a_repeated_request_makes_one_account(owner: Person) -> None:
    """The response is kept in the transaction of the act."""
    body, key = {"name": "made once"}, {"Idempotency-Key": "once"}
    answers = [owner.client.post("/v1/accounts", json=body, headers=key) for _ in range(2)]
    assert answers[0].content == answers[1].content
    assert answers[1].headers["Idempotent-Replayed"] == "true"


def test_a_member_sees_no_other_account(desk: Desk, shop: Vendor) -> None:
    """What is another's is not found."""
    with (
        desk.person(Role.COMPLIANCE, shop.account_id, member=True) as member,
        desk.operator.vendor(desk.server) as other,
    ):
        found = member.client.get(f"/v1/accounts/{other.account_id}")
        assert found.status_code in {403, 404}


def test_keys_are_made_rotated_and_revoked_for_one_account_and_mode(
    desk: Desk, shop: Vendor
) -> None:
    """A key of the other mode is not found, and the new key works at once."""
    with (
        desk.person(Role.DEVELOPER, shop.account_id, "test") as test,
        desk.person(Role.DEVELOPER, shop.account_id, "live") as live,
    ):
        made = test.post("/v1/keys", {"scopes": ["notices:read"], "lifetime_seconds": 3600})
        with make_client(desk.server, made["key"]) as client:
            assert client.get("/v1/notices").status_code == 200
            assert client.get("/v1/accounts").status_code == 403
        assert not made["livemode"]
        listed = test.get("/v1/keys")["data"]
        assert made["key_id"] in {one["key_id"] for one in listed}
        assert all("key" not in one for one in listed)
        assert made["key_id"] not in {one["key_id"] for one in live.get("/v1/keys")["data"]}
        place = f"/v1/keys/{made['key_id']}"
        assert code(live.post(f"{place}/revoke", {}, 404)) == "key_not_found"
        successor = test.post(f"{place}/rotate", {"overlap_seconds": 0})
        assert successor["replaces"] == made["key_id"]
        assert test.post(f"/v1/keys/{successor['key_id']}/revoke")["works"] is False
        refused = f"/v1/keys/{successor['key_id']}/rotate"
        assert code(test.post(refused, {}, 409)) == "key_not_usable"


def test_no_one_gives_a_key_more_than_they_may_do(desk: Desk, shop: Vendor) -> None:
    """Of what staff do; what a vendor's server needs anyone gives who makes keys."""
    with desk.person(Role.DEVELOPER, shop.account_id, "test") as person:
        person.post("/v1/keys", {"scopes": [Scope.ERASURE_WRITE]}, 403)
        person.post("/v1/keys", {"scopes": [Scope.ACCOUNTS_MANAGE]}, 403)
        person.post("/v1/keys", {"scopes": [Scope.ACKS_READ]})


def test_a_key_that_manages_keys_is_named_in_the_audit(desk: Desk, shop: Vendor) -> None:
    """The actor is who asked, and never the user of the server."""
    manager = desk.operator.key(shop.account_id, scopes=[Scope.KEYS_MANAGE])
    with make_client(desk.server, manager.token) as client:
        made = client.post("/v1/keys", json={"scopes": ["notices:read"]}).json()
    actors = _actors(desk, made["key_id"])
    assert actors == {manager.id}


def _actors(desk: Desk, key_id: str) -> set[str]:
    rows = desk.operator.rows("SELECT actor, details FROM audit_log WHERE action = 'key_created'")
    return {row["actor"] for row in rows if key_id in row["details"]}


def test_where_the_console_is_off_there_is_no_such_path(client: httpx2.Client) -> None:
    """Also for a key with every scope: the path is unknown."""
    for method, path in (("GET", "/v1/accounts"), ("POST", "/v1/search"), ("GET", "/v1/audit")):
        answer = client.request(method, path, json={} if method == "POST" else None)
        assert answer.status_code == 404, path
