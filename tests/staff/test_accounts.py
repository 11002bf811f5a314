"""Staff make accounts and keys over the same acts as the commands."""

from __future__ import annotations

import base64
import json
import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from countersign.base.values import timed_id
from countersign.core.access.key import MACHINE_SCOPES, PEOPLE_SCOPES, Scope
from countersign.core.access.role import Role
from countersign.core.gate.route import Route
from countersign.server.app import route_table
from tests.cli.serving import wait_until
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


def test_whole_responses_are_kept_for_a_reason_and_a_year_at_most(
    desk: Desk, owner: Person, shop: Vendor
) -> None:
    """From now on, and until then; the audit has the reason."""
    place, now = f"/v1/accounts/{shop.account_id}", datetime.now(UTC)
    soon, late = (f"{now + timedelta(days=days):%Y-%m-%dT00:00:00Z}" for days in (360, 370))
    why = {"responses_reason": "case 7"}
    for refused in (
        {"responses_until": soon},
        {"responses_until": soon, "responses_reason": ""},
        why,
        why | {"responses_until": late},
        {},
    ):
        assert code(owner.ask("PATCH", place, refused, 400)) == "invalid_request"
    set_ = owner.ask("PATCH", place, why | {"responses_until": soon, "request_days": 30}, 200)
    assert (set_["responses_until"], set_["request_days"]) == (soon, 30)
    [noted, *_] = owner.get(f"/v1/audit?subject={shop.account_id}")["data"]
    assert noted["action"] == "account_set"
    assert noted["details"]["responses_reason"] == "case 7"


def test_lists_of_accounts_have_pages(desk: Desk, owner: Person, shop: Vendor) -> None:
    """As in all lists."""
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


def test_a_repeated_search_is_done_again(owner: Person) -> None:
    """It works without a write, and keeps no response."""
    sent: dict[str, Any] = {"json": {"query": "1001"}, "headers": {"Idempotency-Key": "searched"}}
    answers = [owner.client.post("/v1/search", **sent) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert "Idempotent-Replayed" not in answers[1].headers


def test_a_member_sees_no_other_account(desk: Desk, shop: Vendor) -> None:
    """Objects of another account are not found."""
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
        wanted = {"scopes": ["notices:read"], "name": "shop server", "lifetime_seconds": 3600}
        made = test.post("/v1/keys", wanted)
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
        assert successor["name"] == "shop server"
        assert test.post(f"/v1/keys/{successor['key_id']}/revoke")["works"] is False
        refused = f"/v1/keys/{successor['key_id']}/rotate"
        assert code(test.post(refused, {}, 409)) == "key_not_usable"


def test_no_one_grants_a_key_more_than_their_own_rights(desk: Desk, shop: Vendor) -> None:
    """For staff scopes; anyone who makes keys may grant a vendor server's scopes."""
    with desk.person(Role.DEVELOPER, shop.account_id, "test") as person:
        person.post("/v1/keys", {"scopes": [Scope.NOTICES_MANAGE]}, 403)
        person.post("/v1/keys", {"scopes": [Scope.ACCOUNTS_MANAGE]}, 403)
        person.post("/v1/keys", {"scopes": [Scope.NOTICES_READ]})


def test_no_one_grants_a_key_scopes_of_people_over_the_api(desk: Desk, shop: Vendor) -> None:
    """Neither an owner nor a key of the machine that has it, nor by a rotation."""
    widest = desk.operator.key(shop.account_id, scopes=[Scope.KEYS_MANAGE, *MACHINE_SCOPES])
    with (
        desk.person(Role.OWNER, shop.account_id, "test") as person,
        make_client(desk.server, widest.token) as client,
    ):
        for scope in sorted(MACHINE_SCOPES):
            refused = person.post("/v1/keys", {"scopes": [scope]}, 403)
            assert "`countersign keys` makes" in refused["error"]["message"]
            assert client.post("/v1/keys", json={"scopes": [scope]}).status_code == 403
        rotated = f"/v1/keys/{widest.id}/rotate"
        person.post(rotated, {}, 403)
        assert client.post(rotated, json={}).status_code == 403
        assert client.post("/v1/holds", json={}).status_code == 400


def test_a_key_made_by_a_person_in_the_past_cannot_destroy_or_decide(
    desk: Desk, shop: Vendor
) -> None:
    """Its scopes of people are gone, also in lists and for its successors; the others work."""
    old = desk.operator.key(shop.account_id, scopes=[Scope.NOTICES_READ, *MACHINE_SCOPES])
    made_by = "UPDATE api_keys SET made_by = :by WHERE id = :key"
    with desk.person(Role.OWNER, shop.account_id, "test") as person:
        desk.operator.execute(made_by, by=person.id, key=old.id)
        with make_client(desk.server, old.token) as client:
            assert client.get("/v1/notices").status_code == 200
            for method, path in (
                ("POST", "/v1/erasures"),
                ("POST", "/v1/holds"),
                ("GET", "/v1/audit"),
                ("GET", "/v1/buyers/reviews"),
            ):
                body = "{}" if method == "POST" else ""
                assert client.request(method, path, content=body).status_code == 403, path
        listed = {one["key_id"]: one for one in person.get("/v1/keys")["data"]}
        assert (listed[old.id]["scopes"], listed[old.id]["made_by"]) == (
            ["notices:read"],
            person.id,
        )
        successor = person.post(f"/v1/keys/{old.id}/rotate", {})
        assert (successor["scopes"], successor["made_by"]) == (["notices:read"], person.id)


@pytest.mark.parametrize("scopes", [["acks:read"], ["clearances:read"], ["evidence:read"], None])
def test_a_person_without_personal_data_states_why_a_key_reads_it(
    desk: Desk, shop: Vendor, scopes: list[str] | None
) -> None:
    """For a new key and for a rotation; the audit keeps the reason. A key cannot state a reason."""
    body, why = {"scopes": scopes}, {"Countersign-Reason": "export to the ledger"}
    plain = {"scopes": ["notices:read", "keys:manage"]}
    old = desk.operator.key(shop.account_id)
    with desk.person(Role.DEVELOPER, shop.account_id, "test") as person:
        made = []
        for path, sent in (("/v1/keys", body), (f"/v1/keys/{old.id}/rotate", {})):
            refused = person.post(path, sent, 400)
            assert "Countersign-Reason" in refused["error"]["message"]
            made.append(person.post(path, sent, headers=why))
            assert made[-1]["made_by"] == person.id
            assert "export to the ledger" in _noted(desk, made[-1]["key_id"])
        manager = person.post("/v1/keys", plain)
        with make_client(desk.server, manager["key"]) as client:
            assert client.post("/v1/keys", json=body).status_code == 403
            for one in made:
                assert client.post(f"/v1/keys/{one['key_id']}/rotate", json={}).status_code == 403


def test_a_key_of_a_person_who_sees_personal_data_needs_no_reason(desk: Desk, shop: Vendor) -> None:
    """Nor does a key of the machine that makes keys."""
    manager = desk.operator.key(shop.account_id, scopes=[Scope.KEYS_MANAGE])
    with desk.person(Role.OWNER, shop.account_id, "test") as person:
        also = {"id": timed_id("grt", 0, secrets.token_bytes(8)), "person": person.id}
        desk.operator.execute(
            "INSERT INTO person_grants (id, person_id, account_id, role, granted_at, granted_by)"
            " VALUES (:id, :person, :account, 'compliance', 0, 'a test')",
            account=shop.account_id,
            **also,
        )
        person.post("/v1/keys", {"scopes": ["acks:read"]})
    with make_client(desk.server, manager.token) as client:
        assert client.post("/v1/keys", json={}).status_code == 200


def test_reads_by_a_persons_key_are_counted_by_day(desk: Desk, shop: Vendor) -> None:
    """One entry for a key and day, with the sum; none for a key of the machine."""
    why = {"Countersign-Reason": "export to the ledger"}
    with desk.person(Role.DEVELOPER, shop.account_id, "test") as person:
        made = person.post("/v1/keys", {}, headers=why)
    with make_client(desk.server, made["key"]) as of_person:
        for client in (of_person, shop.test):
            for path in ("/v1/acknowledgments", "/v1/clearances", "/v1/notices"):
                assert client.get(path).status_code == 200
            assert client.get("/v1/acknowledgments/ack_unknown").status_code == 404

    def counted() -> list[tuple[str, int]]:
        query = "SELECT id, reads FROM api_keys WHERE account_id = :own AND reads IS NOT NULL"
        return [(row["id"], row["reads"]) for row in desk.operator.rows(query, own=shop.account_id)]

    wait_until(lambda: counted() == [(made["key_id"], 2)], "both are counted")
    of_yesterday = "UPDATE api_keys SET read_on = read_on - 86400000 WHERE reads IS NOT NULL"
    assert desk.operator.execute(of_yesterday) >= 1
    with make_client(desk.server, made["key"]) as client:
        client.get("/v1/acknowledgments")
    wait_until(lambda: counted() == [(made["key_id"], 1)], "a new day has begun")
    query = "SELECT actor, details FROM audit_log WHERE action = 'key_reads' AND subject = :own"
    (noted,) = desk.operator.rows(query, own=shop.account_id)
    assert (noted["actor"], json.loads(noted["details"])["reads"]) == (made["key_id"], 2)


def test_a_key_made_by_a_key_has_the_same_maker(desk: Desk, shop: Vendor) -> None:
    """A person stays the maker through keys that make keys; so does the machine."""
    scopes = {"scopes": ["keys:manage", "notices:read"]}
    machine = desk.operator.key(shop.account_id, scopes=[Scope.KEYS_MANAGE])
    with desk.person(Role.DEVELOPER, shop.account_id, "test") as person:
        token, by = person.post("/v1/keys", scopes)["key"], person.id
        for first, maker in ((token, by), (machine.token, "machine")):
            token = first
            for _ in range(2):
                with make_client(desk.server, token) as client:
                    made = client.post("/v1/keys", json=scopes).json()
                    assert made["made_by"] == maker
                    again = client.post(f"/v1/keys/{made['key_id']}/rotate", json={}).json()
                    assert again["made_by"] == maker
                token = again["key"]


def test_a_secret_is_repeated_to_no_one_else(desk: Desk, shop: Vendor) -> None:
    """Another key of the account with the same Idempotency-Key is refused, and nothing is done."""
    big = desk.operator.key(shop.account_id, scopes=[s for s in Scope if s not in PEOPLE_SCOPES])
    low = desk.operator.key(shop.account_id, scopes=[Scope.KEYS_MANAGE, Scope.WEBHOOKS_MANAGE])
    with make_client(desk.server, big.token) as first, make_client(desk.server, low.token) as other:
        rotated = desk.operator.key(shop.account_id)
        endpoint = first.post("/v1/webhook_endpoints", json={"url": "https://shop.example/h"})
        for path, body in (
            ("/v1/keys", {"scopes": ["search:read"]}),
            (f"/v1/keys/{rotated.id}/rotate", {}),
            ("/v1/webhook_endpoints", {"url": "https://shop.example/hooks"}),
            (f"/v1/webhook_endpoints/{endpoint.json()['endpoint_id']}/rotate_secret", {}),
        ):
            before = _secrets(desk)
            sent: dict[str, Any] = {"json": body, "headers": {"Idempotency-Key": path}}
            made = first.post(path, **sent)
            assert made.status_code == 200, made.text
            assert _secrets(desk) == before + 1
            refused = other.post(path, **sent)
            assert (refused.status_code, code(refused.json())) == (409, "secret_not_repeated")
            assert first.post(path, **sent).content == made.content
            assert _secrets(desk) == before + 1


def _secrets(desk: Desk) -> int:
    counted = "SELECT (SELECT count(*) FROM api_keys) + (SELECT count(*) FROM webhook_secrets) AS n"
    return int(desk.operator.rows(counted)[0]["n"])


def test_responses_without_a_secret_repeat_for_each_key_of_the_account(
    desk: Desk, shop: Vendor
) -> None:
    """A retry after a rotation, or from a second server with a key of its own, acts once."""
    keys = [desk.operator.key(shop.account_id) for _ in range(2)]
    with (
        make_client(desk.server, keys[0].token) as one,
        make_client(desk.server, keys[1].token) as other,
    ):
        sent: dict[str, Any] = {
            "json": {"test_mode": True},
            "headers": {"Idempotency-Key": "same"},
        }
        answers = [client.post("/v1/buyers/verify", **sent) for client in (one, other)]
        assert answers[0].content == answers[1].content
        assert answers[1].headers["Idempotent-Replayed"] == "true"


def test_each_response_with_a_secret_is_marked() -> None:
    """By the names of secrets in responses: a new one needs a decision."""

    def secret(route: Route[Any]) -> bool:
        names = {"key", "secret", "link"}
        return bool(names & set(getattr(route.response, "__struct_fields__", ())))

    kept = [route for route in route_table() if route.request is not None and secret(route)]
    unmarked = {route.operation for route in kept if not route.secret}
    assert unmarked == {"revokeKey"}, "which shows no key"
    assert {route.operation for route in route_table() if route.secret} >= {
        "createKey", "rotateKey", "createWebhookEndpoint", "rotateWebhookSecret",
        "inviteMember", "inviteStaffPerson", "linkMember", "linkStaffPerson",
    }  # fmt: skip


def test_a_key_that_manages_keys_is_named_in_the_audit(desk: Desk, shop: Vendor) -> None:
    """The actor is the caller, and never the user of the server."""
    manager = desk.operator.key(shop.account_id, scopes=[Scope.KEYS_MANAGE])
    with make_client(desk.server, manager.token) as client:
        made = client.post("/v1/keys", json={"scopes": ["notices:read"]}).json()
    actors = _actors(desk, made["key_id"])
    assert actors == {manager.id}


def _noted(desk: Desk, key_id: str) -> str:
    rows = desk.operator.rows("SELECT details FROM audit_log WHERE action LIKE 'key_%'")
    return str([row["details"] for row in rows if key_id in row["details"]])


def _actors(desk: Desk, key_id: str) -> set[str]:
    rows = desk.operator.rows("SELECT actor, details FROM audit_log WHERE action = 'key_created'")
    return {row["actor"] for row in rows if key_id in row["details"]}


def test_without_the_console_there_is_no_such_path(client: httpx2.Client) -> None:
    """Also for a key with every scope: the path is unknown."""
    for method, path in (("GET", "/v1/accounts"), ("POST", "/v1/search"), ("GET", "/v1/audit")):
        answer = client.request(method, path, json={} if method == "POST" else None)
        assert answer.status_code == 404, path
