"""People are invited, listed, removed and signed out over the API, by owners alone."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import httpx2
import pytest

from countersign.core.access.role import Role
from tests.http.backstage import Vendor, make_client
from tests.staff.conftest import Desk, Person

pytestmark = pytest.mark.both_engines
MEMBERS, STAFF = "/v1/members", "/v1/staff"
ACTS = ("remove", "link", "sign_out")


def code(answer: dict[str, Any]) -> str:
    return str(answer["error"]["code"])


def invited(owner: Person, path: str = MEMBERS, name: str = "Sam Poe") -> str:
    return str(owner.post(path, {"name": name, "role": "support"})["person_id"])


@pytest.fixture
def boss(desk: Desk, shop: Vendor) -> Iterator[Person]:
    """Give an owner of the account of this test, who is not of the staff."""
    with desk.person(Role.OWNER, shop.account_id, member=True) as made:
        yield made


def test_a_member_is_invited_listed_signed_out_and_removed(
    desk: Desk, shop: Vendor, boss: Person
) -> None:
    """The link is in the response that makes it, and the audit of the account has each step."""
    made = boss.post(MEMBERS, {"name": "Sam Poe", "role": "compliance"})
    assert "/console/link#csign_pl_" in made["link"]
    listed = {one["person_id"]: one for one in boss.get(MEMBERS)["data"]}
    assert listed.keys() == {boss.id, made["person_id"]}
    sam = listed[made["person_id"]]
    assert (sam["role"], sam["has_passkey"], sam["granted_by"]) == ("compliance", False, boss.id)
    assert sam["link_until"] == made["expires_at"]
    again = boss.post(f"{MEMBERS}/{made['person_id']}/link")
    assert again["link"] != made["link"]
    assert boss.post(f"{MEMBERS}/{made['person_id']}/sign_out")["sessions"] == 0
    assert boss.post(f"{MEMBERS}/{made['person_id']}/remove")["name"] == "Sam Poe"
    assert code(boss.post(f"{MEMBERS}/{made['person_id']}/link", {}, 404)) == "person_not_found"
    with desk.person(Role.AUDITOR, shop.account_id, member=True) as auditor:
        noted = auditor.get("/v1/audit")["data"]
    assert [one["action"] for one in noted if one["subject"] == made["person_id"]][::-1] == [
        *("person_invited", "person_link_made", "person_sessions_ended", "person_removed"),
    ]
    assert {one["actor"] for one in noted if one["subject"] == made["person_id"]} == {boss.id}
    assert "Sam Poe" not in str(noted)


def test_staff_are_invited_and_removed_by_owners_of_the_deployment(owner: Person) -> None:
    made = invited(owner, STAFF, "Max Mean")
    assert made in {one["person_id"] for one in owner.get(f"{STAFF}?limit=100")["data"]}
    assert code(owner.post(STAFF, {"name": "max mean", "role": "support"}, 409)) == "people_refused"
    assert owner.post(f"{STAFF}/{made}/remove")["role"] == "support"


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.OWNER])
def test_only_owners_appoint(desk: Desk, shop: Vendor, boss: Person, role: Role) -> None:
    """No other role acts on people, its own person included; an auditor looks."""
    sam, looks = invited(boss), 200 if role is Role.AUDITOR else 403
    with desk.person(role, shop.account_id, member=True) as member, desk.person(role) as of_staff:
        for person, path in ((member, MEMBERS), (of_staff, STAFF)):
            person.get(path, looks)
            for given in Role:
                person.post(path, {"name": "Eve", "role": given}, 403)
            for named in (sam, person.id, boss.id):
                for act in ACTS:
                    person.post(f"{path}/{named}/{act}", {}, 403)
        member.get(STAFF, 403)


def test_an_owner_of_an_account_has_no_role_elsewhere(
    desk: Desk, shop: Vendor, boss: Person, owner: Person
) -> None:
    """Members of another account, and staff, are not found, and get no role by their id."""
    with (
        desk.operator.vendor(desk.server) as other,
        desk.person(Role.OWNER, other.account_id, member=True) as theirs,
    ):
        sam = invited(theirs)
        for named in (sam, theirs.id, owner.id, "per_nobody", "Sam Poe"):
            for act in ACTS:
                found = boss.post(f"{MEMBERS}/{named}/{act}", {}, 404)
                assert code(found) == "person_not_found"
        for named in (sam, theirs.id, owner.id):
            refused = boss.post(MEMBERS, {"name": named, "role": "support"}, 404)
            assert code(refused) == "person_not_found"
        assert {one["person_id"] for one in boss.get(MEMBERS)["data"]} == {boss.id}
        account = {"Countersign-Account": other.account_id}
        assert code(boss.get(MEMBERS, 403, account)) == "forbidden"
        assert code(boss.get(STAFF, 403)) == "forbidden"
        assert code(owner.get(MEMBERS, 400)) == "invalid_request"


def test_links_for_owners_or_people_with_two_places_are_made_on_the_machine(
    desk: Desk, shop: Vendor, boss: Person, owner: Person
) -> None:
    """The response has the line to type; a role by the id makes no link."""
    refused = boss.post(MEMBERS, {"name": "Sam Poe", "role": "owner"}, 409)
    assert code(refused) == "link_on_machine"
    of = f"--account {shop.account_id}"
    assert f"countersign members invite 'Sam Poe' {of} --role owner" in refused["error"]["message"]
    refused = boss.post(f"{MEMBERS}/{boss.id}/link", {}, 409)
    assert f"countersign members link {boss.id} {of}" in refused["error"]["message"]
    refused = owner.post(f"{STAFF}/{owner.id}/link", {}, 409)
    assert f"countersign staff link {owner.id}" in refused["error"]["message"]
    with desk.person(Role.SUPPORT) as known, desk.person(Role.OWNER, shop.account_id) as of_staff:
        made = of_staff.post(MEMBERS, {"name": known.id, "role": "developer"})
        assert (made["link"], made["expires_at"]) == (None, None)
        for person, path in ((boss, MEMBERS), (of_staff, MEMBERS), (owner, STAFF)):
            assert code(person.post(f"{path}/{known.id}/link", {}, 409)) == "link_on_machine"
        waiting = invited(boss, name="Waits")
        taken = owner.post(STAFF, {"name": waiting, "role": "owner"}, 409)
        assert code(taken) == "people_refused"


def test_a_repeated_invitation_is_one_and_its_link_is_stored_nowhere_in_clear(
    desk: Desk, boss: Person
) -> None:
    """The kept response is encrypted, and the link itself is found by a keyed hash."""
    body, key = {"name": "Ann Once", "role": "support"}, {"Idempotency-Key": "invite-once"}
    answers = [boss.client.post(MEMBERS, json=body, headers=key) for _ in range(2)]
    assert answers[0].content == answers[1].content
    assert answers[1].headers["Idempotent-Replayed"] == "true"
    token = answers[0].json()["link"].partition("#")[2].encode()
    kept = desk.operator.rows("SELECT response FROM idempotency_keys")
    links = desk.operator.rows("SELECT digest FROM person_links")
    assert kept
    assert all(token not in bytes(row["response"]) for row in kept)
    assert all(token not in bytes(row["digest"]) for row in links)


def test_the_last_owner_stays(boss: Person) -> None:
    assert code(boss.post(f"{MEMBERS}/{boss.id}/remove", {}, 409)) == "people_refused"


def test_if_owners_remove_each_other_at_the_same_moment_one_is_left(
    desk: Desk, shop: Vendor
) -> None:
    """The second is no longer an owner when its turn comes, even if a third one would be left."""
    for third in (False, True):
        with ExitStack() as stack, desk.operator.vendor(desk.server) as made:
            own = [
                stack.enter_context(desk.person(Role.OWNER, made.account_id, member=True))
                for _ in range(3 if third else 2)
            ]

            def remove(by: Person, other: Person) -> httpx2.Response:
                return by.client.post(f"{MEMBERS}/{other.id}/remove", json={})

            with ThreadPoolExecutor(2) as pool:
                done = list(pool.map(remove, own[:2], own[1::-1]))
            statuses = sorted(answer.status_code for answer in done)
            assert statuses[0] == 200
            assert statuses[1] in {401, 403}
            left = desk.operator.rows(
                "SELECT id FROM person_grants WHERE account_id = :account",
                account=made.account_id,
            )
            assert len(left) == len(own) - 1


def test_people_are_changed_with_a_passkey_used_now(desk: Desk, shop: Vendor) -> None:
    """Not with an old session; the list is shown."""
    with desk.person(Role.OWNER, shop.account_id, member=True) as boss:
        sam = invited(boss)
        desk.operator.rows(
            "UPDATE person_sessions SET passkey_at = created_at - 400000"
            " WHERE person_id = :person RETURNING id",
            person=boss.id,
        )
        boss.get(MEMBERS)
        refused = [boss.post(MEMBERS, {"name": "Eve", "role": "support"}, 403)]
        refused += [boss.post(f"{MEMBERS}/{sam}/{act}", {}, 403) for act in ACTS]
        assert {code(one) for one in refused} == {"passkey_required"}


def test_no_key_may_touch_people(desk: Desk, shop: Vendor, boss: Person) -> None:
    """Nor can a key with such a scope be made."""
    sam = invited(boss)
    for path in (MEMBERS, STAFF, "/v1/me/sessions"):
        assert shop.live.get(path).status_code == 403
    for act in ACTS:
        assert shop.live.post(f"{MEMBERS}/{sam}/{act}", json={}).status_code == 403
    with desk.person(Role.OWNER, shop.account_id) as of_staff:
        for scope in ("people:manage", "staff:manage", "sessions:manage"):
            of_staff.post("/v1/keys", {"scopes": [scope]}, 400)


@pytest.mark.parametrize("role", list(Role))
def test_everyone_ends_their_own_sessions_and_no_others(
    desk: Desk, shop: Vendor, role: Role
) -> None:
    """Whatever the role, without naming an account; the session of another person is not found."""
    with (
        desk.person(role, shop.account_id, member=True) as sam,
        desk.person(role, shop.account_id, member=True) as eve,
    ):
        anywhere = {"Countersign-Account": ""}
        (of_eve,) = eve.get("/v1/me/sessions", headers=anywhere)["data"]
        assert of_eve["is_this"]
        missing = sam.post(f"/v1/me/sessions/{of_eve['session_id']}/end", {}, 404)
        assert code(missing) == "session_not_found"
        assert sam.post("/v1/me/sessions/end") == {"person_id": sam.id, "sessions": 1}
        sam.get("/v1/me/sessions", 401)
        assert eve.post(f"/v1/me/sessions/{of_eve['session_id']}/end")["sessions"] == 1
        eve.get("/v1/me/sessions", 401)


def test_a_signed_out_person_is_out_at_once(desk: Desk, shop: Vendor, boss: Person) -> None:
    with desk.person(Role.SUPPORT, shop.account_id, member=True) as sam:
        sam.get("/v1/notices")
        assert boss.post(f"{MEMBERS}/{sam.id}/sign_out")["sessions"] == 1
        sam.get("/v1/notices", 401)


@pytest.mark.parametrize("role", list(Role))
def test_all_staff_find_the_accounts_that_they_may_work_in(
    desk: Desk, shop: Vendor, role: Role
) -> None:
    """Only owners change them; members see no list of accounts."""
    with desk.person(role) as person, desk.person(role, shop.account_id, member=True) as member:
        assert person.get("/v1/accounts?limit=1")["data"]
        if role is not Role.OWNER:
            person.post("/v1/accounts", {"name": "not made"}, 403)
        member.get("/v1/accounts", 403)


@pytest.mark.parametrize("named", ["some", "all", "none"])
def test_removing_a_person_names_the_keys_that_end(desk: Desk, shop: Vendor, named: str) -> None:
    """Working ones, in both modes; without `end_keys` it is refused, and the person stays."""
    with desk.person(Role.OWNER, shop.account_id) as boss:
        with desk.person(Role.DEVELOPER, shop.account_id, "test", member=True) as dev:
            live = {"Countersign-Mode": "live"}
            scopes = {"scopes": ["notices:read"]}
            made = [dev.post("/v1/keys", scopes, headers=mode) for mode in ({}, live, {})]
            dev.post(f"/v1/keys/{made[2]['key_id']}/revoke", {})
            ids = [one["key_id"] for one in made[:2]]
        (shown,) = [one for one in boss.get(MEMBERS)["data"] if one["person_id"] == dev.id]
        assert {(one["key_id"], one["livemode"], one["works"]) for one in shown["keys"]} == {
            (ids[0], False, True),
            (ids[1], True, True),
        }
        path = f"{MEMBERS}/{dev.id}/remove"
        refused = boss.post(path, {}, 409)["error"]
        assert refused["code"] == "keys_remain"
        assert all(one in refused["message"] for one in ids)
        foreign = desk.operator.key(shop.account_id)
        for unknown in ([foreign.id], ["all"]):
            assert code(boss.post(path, {"end_keys": unknown}, 404)) == "key_not_found"
        assert dev.id in {one["person_id"] for one in boss.get(MEMBERS)["data"]}
        wanted, ended = {"some": (ids[:1], ids[:1]), "all": ("all", ids), "none": ([], [])}[named]
        removed = boss.post(path, {"end_keys": wanted})
        works = {one["key_id"]: one["works"] for one in removed["keys"]}
        assert works == {one: one not in ended for one in ids}
        for key in made[:2]:
            with make_client(desk.server, key["key"]) as client:
                expected = 401 if key["key_id"] in ended else 200
                assert client.get("/v1/notices").status_code == expected
