"""An account is given what it holds of a buyer; staff of the deployment are given all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from countersign.core.access.key import Scope
from countersign.core.access.role import Role
from countersign_evidence.offline.verify import read_zip
from tests.http.backstage import make_client
from tests.http.calls import acknowledge, verify
from tests.staff.conftest import Desk
from tests.staff.street import Street

pytestmark = [pytest.mark.both_engines, pytest.mark.shows_personal_data]
Keys = dict[tuple[int, str], httpx2.Client]
WHY = {"Countersign-Reason": "asked in writing"}


def ask(client: httpx2.Client, cbid: str, status: int = 200) -> dict[str, Any]:
    """The data of an export, or its refusal."""
    answer = client.get(f"/v1/buyers/{cbid}/export", headers=WHY)
    assert answer.status_code == status, answer.text
    found: dict[str, Any]
    if status != 200:
        found = answer.json()["error"]
        return found
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-type"] == "application/zip"
    found = json.loads(read_zip(answer.content)["data.json"])
    return found


@pytest.fixture
def keys(desk: Desk, street: Street) -> Iterator[Keys]:
    """Clients of both accounts and modes, with keys for all that staff do."""
    made: Keys = {}
    for number, account in enumerate((street.first, street.other)):
        for mode in ("live", "test"):
            [key] = desk.operator.keys(account.id, [(mode, [Scope.BUYERS_REVIEW])])
            made[number, mode] = make_client(desk.server, key.token)
    yield made
    for client in made.values():
        client.close()


def test_an_account_is_given_its_own_part_and_nothing_of_another(
    street: Street, keys: Keys, desk: Desk
) -> None:
    """Its records, checks and sessions; no identifier of the other's, and nothing shared."""
    first, other = street.first, street.other
    cbid = first.verified(street.played)
    assert other.verified(street.played) == cbid
    own, theirs = first.buy(cbid, zip_=street.zip), other.buy(cbid, zip_=street.zip)
    with desk.person(Role.COMPLIANCE) as person:
        assert ask(person.client, cbid)["audit"] == []
        assert [one["action"] for one in ask(person.client, cbid)["audit"]] == [
            "subject_exported",
            "personal_data_shown",
        ]
    found = ask(keys[0, "live"], cbid)
    parts = {part["id"] for order in found["orders"] for part in order["parts"]}
    assert {*own} <= parts
    text = json.dumps(found)
    assert not [one for one in (*theirs, other.id) if one in text]
    assert found.keys().isdisjoint({"buyers", "remembered", "buyer_documents"})
    assert found["audit"] == []
    assert [*found["vendors"]] == [first.id]


def test_modes_never_mix(street: Street, keys: Keys) -> None:
    """A test key is given nothing of a live buyer, also where it named one in its records."""
    first = street.first
    live = first.verified(street.played)
    acknowledge(first.test, notice_id="law", session_id="mixed", cbid=live)
    ask(keys[0, "test"], live, 404)
    assert "mixed" not in json.dumps(ask(keys[0, "live"], live))
    played = verify(first.test, shipping_zip="94105").json()["cbid"]
    ask(keys[0, "live"], played, 404)
    assert ask(keys[0, "test"], played)["cbid"] == played


def test_a_buyer_of_others_looks_like_an_unknown_one(street: Street, keys: Keys) -> None:
    cbid = street.other.verified(street.played)
    never = "cbid_" + "0" * len(cbid.partition("_")[2])
    said = [ask(keys[0, "live"], one, 404)["message"] for one in (cbid, never, "cbid_x")]
    assert said[0].replace(cbid, never) == said[1]


def test_people_need_the_role_a_reason_and_the_passkey(street: Street, desk: Desk) -> None:
    """Those who see personal data, for one account or, as staff of the deployment, for all."""
    first, other = street.first, street.other
    cbid = first.verified(street.played)
    assert other.verified(street.played) == cbid
    own, theirs = first.buy(cbid, zip_=street.zip), other.buy(cbid, zip_=street.zip)
    for role in Role:
        with desk.person(role, first.id, member=True) as person:
            may = role in {Role.COMPLIANCE, Role.AUDITOR}
            found = ask(person.client, cbid, 200 if may else 403)
            assert not may or own[0] in json.dumps(found)
            assert not may or theirs[0] not in json.dumps(found)
            if may:
                client, path = person.client, f"/v1/buyers/{cbid}/export"
                assert client.get(path).json()["error"]["code"] == "invalid_request"
    with desk.person(Role.COMPLIANCE) as person:
        text = json.dumps(ask(person.client, cbid))
        assert own[0] in text
        assert theirs[0] in text
        desk.operator.execute("UPDATE person_sessions SET passkey_at = 0")
        ask(person.client, cbid, 403)


def test_the_audit_of_the_account_has_it(street: Street, keys: Keys) -> None:
    """With its reason, and in no other account's audit."""
    cbid = street.first.verified(street.played)
    assert street.other.verified(street.played) == cbid
    ask(keys[0, "live"], cbid)
    query = {"action": "subject_exported"}
    noted = street.first.live.get("/v1/audit", params=query).json()["data"]
    assert [one["details"]["reason"] for one in noted] == [WHY["Countersign-Reason"]]
    assert noted[0]["subject"] == cbid
    assert street.other.live.get("/v1/audit", params=query).json()["data"] == []
