"""Two accounts, two modes: only the status of a buyer is shared, in the same mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
from sqlalchemy import insert

from countersign.base.db.tables import buyers
from countersign.base.values import BUYER, timed_id
from countersign.core.access.key import Scope
from countersign.server.app import route_table
from tests.http.backstage import Vendor, make_client
from tests.http.calls import acknowledge, refusal, verify
from tests.http.conftest import LIVE_NOTICE, Configured
from tests.support import postgres

# A leak in one run of many is a leak.
pytestmark = pytest.mark.first_try

REVIEWS = "/v1/buyers/reviews"
LINES = ["A", "B", "C"]
DECIDING = [Scope.BUYERS_REVIEW, Scope.CLEARANCES_OVERRIDE]
WHO = [(account, mode) for account in ("first", "second") for mode in ("test", "live")]


@dataclass(frozen=True, kw_only=True)
class Party:
    """One account in one mode, with its stored objects; `secrets` are texts of its own."""

    account: str
    mode: str
    client: httpx2.Client
    ack_id: str
    cbid: str
    session_id: str
    secrets: tuple[str, ...]
    reviewing: httpx2.Client
    """With the scopes that a key has only if they are named."""


@dataclass(frozen=True)
class Stage:
    """All four parties, and someone without a key."""

    parties: tuple[Party, ...]
    stranger: httpx2.Client
    account_ids: tuple[str, ...]

    def pairs(self) -> Iterator[tuple[Party, Party]]:
        """Each party as the owner, with each of the others."""
        for owner in self.parties:
            for other in self.parties:
                if other is not owner:
                    yield owner, other


@pytest.fixture(scope="module")
def stage(configured: Configured) -> Iterator[Stage]:
    """Give two accounts, each with something stored in both modes."""
    with ExitStack() as stack:
        vendors = {
            name: stack.enter_context(configured.operator.vendor(configured.server))
            for name in ("first", "second")
        }
        parties = tuple(_party(configured, stack, name, mode, vendors[name]) for name, mode in WHO)
        stranger = stack.enter_context(make_client(configured.server))
        ids = tuple(vendor.account_id for vendor in vendors.values())
        yield Stage(parties, stranger, ids)


def _party(configured: Configured, stack: ExitStack, name: str, mode: str, vendor: Vendor) -> Party:
    mark, client, account_id = f"{name}-{mode}", vendor.client(mode), vendor.account_id
    reviewing = configured.operator.key(account_id, mode, scopes=DECIDING)
    cbid = (
        verify(client, provider_identity_session_id=mark).json()["cbid"]
        if mode == "test"
        else _verified_live(configured, account_id)
    )
    session_id = f"session-of-{mark}"
    secrets = (session_id, f"browser-of-{mark}", f"I-{mark}")
    answer = acknowledge(
        client,
        notice_id=LIVE_NOTICE,
        initials_per_line=[secrets[2]] * len(LINES),
        session_id=session_id,
        cbid=cbid,
        user_agent=secrets[1],
    )
    assert answer.status_code == 200, answer.text
    return Party(
        account=name,
        mode=mode,
        client=client,
        ack_id=answer.json()["ack_id"],
        cbid=cbid,
        session_id=session_id,
        secrets=(*secrets, answer.json()["ack_id"]),
        reviewing=stack.enter_context(make_client(configured.server, reviewing.token)),
    )


def _verified_live(configured: Configured, account_id: str) -> str:
    """Write a live buyer whom this account has verified: no provider can be asked yet."""
    cbid = timed_id(BUYER, 10**18, account_id[-8:].encode())
    with configured.operator.transaction() as connection:
        connection.execute(
            insert(buyers),
            {
                "cbid": cbid,
                "account_id": account_id,
                "mode": "live",
                "status": "verified",
                "reasons": "[]",
                "proofs": "[]",
                "verified_at": datetime(2020, 1, 1, tzinfo=UTC),
                "expires_at": datetime(2999, 1, 1, tzinfo=UTC),
                "simulated": False,
            },
        )
    return cbid


def nothing_of(owner: Party, answer: httpx2.Response) -> None:
    """No word of the owner is in an answer to another."""
    said = answer.text + str(answer.headers)
    assert not [secret for secret in owner.secrets if secret in said], answer.request.url


def notices_are_the_same_for_every_account(path: str) -> Callable[[Stage], None]:
    def check(stage: Stage) -> None:
        for mode in ("test", "live"):
            answers = {p.client.get(path).content for p in stage.parties if p.mode == mode}
            assert len(answers) == 1
        for owner, other in stage.pairs():
            nothing_of(owner, other.client.get(path))

    return check


def requirements_are_the_same_for_every_account(stage: Stage) -> None:
    """One account's assertions do not affect others, even under the same idempotency key."""
    for mode in ("test", "live"):
        bodies = set()
        for party in (p for p in stage.parties if p.mode == mode):
            cart = {"product_classes": ["accessory"], "ship_to": {"state": "CA"}}
            keyed = {"Idempotency-Key": "isolation"}
            own = cart | {"exemption": {"reason": party.session_id}}
            answer = party.client.post("/v1/requirements", json=own, headers=keyed)
            assert answer.json()["exemption"]["reason"] == party.session_id
            bodies.add(party.client.post("/v1/requirements", json=cart).content)
        assert len(bodies) == 1


def an_acknowledgment_is_not_replayed_to_another(stage: Stage) -> None:
    """The same idempotency key and body, sent by all four: four acknowledgments."""
    answers = [
        acknowledge(
            party.client,
            notice_id=LIVE_NOTICE,
            initials_per_line=LINES,
            headers={"Idempotency-Key": "isolation"},
        )
        for party in stage.parties
    ]
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["ack_id"] for answer in answers}) == len(stage.parties)
    assert not any("Idempotent-Replayed" in answer.headers for answer in answers)


def lists_hold_only_ones_own(stage: Stage) -> None:
    path = "/v1/acknowledgments"
    for owner in stage.parties:
        assert owner.ack_id in owner.client.get(path).text
    for owner, other in stage.pairs():
        nothing_of(owner, other.client.get(path, params={"limit": "100"}))
        for query in (
            {"session_id": owner.session_id},
            {"cbid": owner.cbid},
            {"session_id": owner.session_id, "notice_id": LIVE_NOTICE},
        ):
            assert other.client.get(path, params=query).json()["data"] == []
        # A cursor is a place in time, so another account's only says where to continue.
        nothing_of(owner, other.client.get(path, params={"after": owner.ack_id}))


def an_acknowledgment_is_read_by_its_owner_alone(stage: Stage) -> None:
    """To all others it does not exist: the same answer as for one that never was."""
    for owner, other in stage.pairs():
        path = f"/v1/acknowledgments/{owner.ack_id}"
        assert owner.client.get(path).json()["session_id"] == owner.session_id
        answer = other.client.get(path)
        assert refusal(answer) == (404, "not_found")
        never = other.client.get("/v1/acknowledgments/ack_00000000000000000000000000")
        assert answer.content == never.content
        nothing_of(owner, answer)


def evidence_is_its_owners(what: str) -> Callable[[Stage], None]:
    """For all others there is none: the same response as for an unknown acknowledgment."""

    def check(stage: Stage) -> None:
        for owner, other in stage.pairs():
            path = f"/v1/acknowledgments/{owner.ack_id}/{what}"
            mine = owner.client.get(path, headers={"Prefer": "wait=10"})
            assert mine.status_code == 200
            answer = other.client.get(path)
            assert refusal(answer) == (404, "not_found")
            never = f"/v1/acknowledgments/ack_00000000000000000000000000/{what}"
            assert answer.content == other.client.get(never).content
            nothing_of(owner, answer)

    return check


def a_dossier_is_its_owners(stage: Stage) -> None:
    """For all others there is none, and it contains nothing of theirs."""
    cleared = {party: _clear(party, party).json()["clearance_id"] for party in stage.parties}
    for owner, other in stage.pairs():
        path = f"/v1/clearances/{cleared[owner]}/dossier"
        mine = owner.client.get(path, headers={"Prefer": "wait=10"})
        assert mine.status_code == 200
        nothing_of(other, mine)
        answer = other.client.get(path)
        assert refusal(answer) == (404, "not_found")
        never = "/v1/clearances/clr_00000000000000000000000000/dossier"
        assert answer.content == other.client.get(never).content
        nothing_of(owner, answer)


def a_verification_is_an_accounts_own(stage: Stage) -> None:
    """The same session elsewhere is another buyer; guesses of a ZIP count for each by itself."""
    first, second = (p for p in stage.parties if p.mode == "test")
    fields = {"provider_identity_session_id": "a-session-of-both"}
    for code in ("10001", "10002", "10003", "10004", "10005"):
        assert verify(first.client, shipping_zip=code, **fields).status_code == 200
    assert verify(first.client, shipping_zip="10006", **fields).status_code == 429
    theirs = verify(second.client, shipping_zip="10006", **fields)
    assert theirs.status_code == 200
    found = {
        verify(party.client, shipping_zip="10001", **fields).json()["cbid"]
        for party in (first, second)
    }
    assert len(found) == 2
    live = [p.client for p in stage.parties if p.mode == "live"]
    assert [refusal(verify(client))[1] for client in live] == ["mode_mismatch"] * 2


def the_status_of_a_buyer_crosses_accounts_and_not_modes(stage: Stage) -> None:
    for owner in stage.parties:
        path = f"/v1/buyers/{owner.cbid}/status"
        own = owner.client.get(path).json()
        assert own["status"] == "verified"
        for other in stage.parties:
            answer = other.client.get(path)
            if other.mode != owner.mode:
                assert refusal(answer) == (404, "not_found")
            elif other is not owner and owner.mode == "test":
                # A simulated verification never counts outside its own account.
                assert answer.json() == {
                    "cbid": owner.cbid,
                    "status": "requires_input",
                    "verified_at": None,
                    "expires_at": None,
                    "reasons": ["simulated_elsewhere"],
                }
            else:
                assert answer.json() == own
            if other is not owner:
                nothing_of(owner, answer)


def sandboxes(stage: Stage) -> tuple[Party, Party]:
    """Two test keys, the first of which acts; the live ones are refused."""
    first, second = (party for party in stage.parties if party.mode == "test")
    return first, second


def live_keys_have_no_sandbox(stage: Stage, method: str, path: str, body: object) -> None:
    for party in stage.parties:
        if party.mode == "live":
            answer = party.client.request(method, path, json=body)
            assert refusal(answer) == (403, "mode_mismatch")


def a_buyer_is_reviewed_by_the_account_of_the_attempt(stage: Stage) -> None:
    """No other queue has it, and no one else can decide on it."""
    dismissing = {"decision": "dismiss", "reason": "case 7"}
    for owner in of_the_sandbox(stage):
        failed = verify(owner.client, provider_identity_session_id="test_failed")
        cbid = failed.json()["cbid"]
        path = f"/v1/buyers/{cbid}/review"
        assert refusal(owner.client.get(REVIEWS)) == (403, "forbidden")
        assert refusal(owner.client.post(path, json=dismissing)) == (403, "forbidden")
        for other in stage.parties:
            if other is not owner:
                assert cbid not in other.reviewing.get(REVIEWS).text
                answer = other.reviewing.post(path, json=dismissing)
                assert refusal(answer) == (404, "not_found")
        assert cbid in owner.reviewing.get(REVIEWS).text
        assert owner.reviewing.post(path, json=dismissing).json()["cbid"] == cbid
        assert cbid not in owner.reviewing.get(REVIEWS).text
        # The next run finds it waiting again.
        moved = owner.client.post("/v1/test/buyers", json={"cbid": cbid, "status": "pending"})
        assert moved.status_code == 200


def a_test_clock_is_ones_own(stage: Stage) -> None:
    """No one else's time moves, and no one else can reset it."""
    first, second = sandboxes(stage)
    advance = "/v1/test/clock/advance"
    assert first.client.post(advance, json={"seconds": 400 * 86400}).status_code == 200
    assert first.client.get(f"/v1/buyers/{first.cbid}/status").json()["status"] == "expired"
    assert second.client.get("/v1/test/clock").json()["ahead_seconds"] == 0
    assert second.client.get(f"/v1/buyers/{second.cbid}/status").json()["status"] == "verified"
    assert second.client.delete("/v1/test/clock").status_code == 200
    assert first.client.get("/v1/test/clock").json()["ahead_seconds"] == 400 * 86400
    live_keys_have_no_sandbox(stage, "POST", advance, {"seconds": 1})
    live_keys_have_no_sandbox(stage, "GET", "/v1/test/clock", None)
    live_keys_have_no_sandbox(stage, "DELETE", "/v1/test/clock", None)
    assert first.client.delete("/v1/test/clock").json()["ahead_seconds"] == 0


def a_sandbox_buyer_is_moved_by_its_own_account_alone(stage: Stage) -> None:
    """For all others there is no such buyer: the same response as for an unknown one."""
    for owner, other in stage.pairs():
        if other.mode != "test":
            continue
        body = {"cbid": owner.cbid, "status": "revoked"}
        answer = other.client.post("/v1/test/buyers", json=body)
        never = other.client.post(
            "/v1/test/buyers", json=body | {"cbid": "cbid_test_00000000000000000000000000"}
        )
        assert refusal(answer) == (404, "not_found")
        assert answer.content == never.content
        status = owner.client.get(f"/v1/buyers/{owner.cbid}/status").json()["status"]
        assert status == "verified"
        live_keys_have_no_sandbox(stage, "POST", "/v1/test/buyers", body)


def a_triggered_event_is_ones_own(stage: Stage) -> None:
    first, _ = sandboxes(stage)
    found = first.client.post("/v1/test/events", json={"type": "clearance.closed"}).json()
    postgres.settle()
    for party in stage.parties:
        answer = party.client.get(f"/v1/events/{found['id']}")
        assert answer.status_code == (200 if party is first else 404)
    live_keys_have_no_sandbox(stage, "POST", "/v1/test/events", {"type": "clearance.closed"})


def a_planned_fault_is_ones_own(stage: Stage) -> None:
    """No one else meets it, sees it or clears it."""
    first, second = sandboxes(stage)
    path, body = "/v1/test/fault", {"fault": "misconfigured"}
    assert first.client.post(path, json=body).status_code == 200
    assert second.client.get(path).json()["fault"] is None
    assert verify(second.client).status_code == 200
    assert second.client.delete(path).status_code == 200
    assert refusal(verify(first.client)) == (409, "verification_misconfigured")
    live_keys_have_no_sandbox(stage, "POST", path, body)
    live_keys_have_no_sandbox(stage, "GET", path, None)
    live_keys_have_no_sandbox(stage, "DELETE", path, None)
    assert first.client.delete(path).status_code == 200
    assert verify(first.client).status_code == 200


def _clear(asking: Party, asked: Party) -> httpx2.Response:
    """One party asks about another's order."""
    body = {
        "ack_id": asked.ack_id,
        "cbid": asked.cbid,
        "session_id": asked.session_id,
        "order_reference": "1001",
        "shipping_zip": "94110",
    }
    return asking.client.post("/v1/clearances", json=body)


def an_order_is_decided_by_what_is_ones_own(stage: Stage) -> None:
    """Another's acknowledgment is like one that does not exist, and so is another mode's buyer."""
    for owner, other in stage.pairs():
        answer = _clear(other, owner)
        if (owner.mode, other.mode) == ("test", "live"):
            assert refusal(answer) == (403, "mode_mismatch")
            continue
        reasons = answer.json()["reasons"]
        assert "acknowledgment_not_found" in reasons
        assert ("buyer_not_found" in reasons) == (owner.mode != other.mode)
    for owner in stage.parties:
        assert "acknowledgment_not_found" not in _clear(owner, owner).json()["reasons"]


NEVER_CLEARED = "/v1/clearances/clr_00000000000000000000000000"


def a_clearance_is_read_by_its_owner_alone(stage: Stage) -> None:
    """To all others it does not exist: the same answer as for one that never was."""
    paths = {p: f"/v1/clearances/{_clear(p, p).json()['clearance_id']}" for p in stage.parties}
    never = {party: party.client.get(NEVER_CLEARED) for party in stage.parties}
    for owner, other in stage.pairs():
        answer = other.client.get(paths[owner])
        assert refusal(answer) == (404, "not_found")
        assert answer.content == never[other].content
    for owner in stage.parties:
        assert owner.client.get(paths[owner]).json()["session_id"] == owner.session_id


def a_clearance_is_reported_on_by_its_owner_alone(stage: Stage) -> None:
    """For all others it does not exist; its owner learns that it was not granted."""
    found = {party: _clear(party, party).json()["clearance_id"] for party in stage.parties}
    for asking in stage.parties:
        for owner in stage.parties:
            path = f"/v1/clearances/{found[owner]}/fulfilment"
            answer = asking.client.post(path, json={"carrier": "UPS"})
            own = (409, "clearance_not_granted")
            assert refusal(answer) == (own if asking is owner else (404, "not_found"))


def a_refusal_is_overridden_by_its_owner_alone(stage: Stage) -> None:
    """For all others it does not exist; its owner learns that the goods have no name."""
    found = {party: _clear(party, party).json()["clearance_id"] for party in stage.parties}
    wanted = {"reason": "case 7", "claimed_user": "user 7"}
    for asking in stage.parties:
        for owner in stage.parties:
            answer = asking.reviewing.post(f"/v1/clearances/{found[owner]}/override", json=wanted)
            own = (409, "override_not_allowed")
            assert refusal(answer) == (own if asking is owner else (404, "not_found"))


def clearances_that_are_found_are_ones_own(stage: Stage) -> None:
    answer = {party: _clear(party, party).json()["clearance_id"] for party in stage.parties}
    for asking in stage.parties:
        everything = asking.client.get("/v1/clearances", params={"limit": "100"}).text
        for owner in stage.parties:
            query = {"session_id": owner.session_id}
            found = asking.client.get("/v1/clearances", params=query).json()["data"]
            if asking is owner:
                assert answer[owner] in everything
                assert answer[owner] in [item["clearance_id"] for item in found]
            else:
                # Its own requests, with another's identifiers.
                assert answer[owner] not in everything
                assert answer[owner] not in [item["clearance_id"] for item in found]


def events_are_ones_own(stage: Stage) -> None:
    """Also when asked for with another's cursor."""
    postgres.settle()
    answer = {p: p.client.get("/v1/events").json()["data"] for p in stage.parties}
    for owner, other in stage.pairs():
        own = {event["id"] for event in answer[owner]}
        assert own
        assert not own & {event["id"] for event in answer[other]}
        cursor = answer[owner][0]["id"]
        after = other.client.get("/v1/events", params={"after": cursor})
        assert refusal(after) == (400, "invalid_request")
        nothing_of(owner, other.client.get("/v1/events"))


def an_event_is_read_by_its_owner_alone(stage: Stage) -> None:
    """To all others it does not exist: the same answer as for one that never was."""
    postgres.settle()
    found = {p: p.client.get("/v1/events").json()["data"][0]["id"] for p in stage.parties}
    never = {party: party.client.get("/v1/events/evt_none") for party in stage.parties}
    for owner, other in stage.pairs():
        assert owner.client.get(f"/v1/events/{found[owner]}").json()["id"] == found[owner]
        answer = other.client.get(f"/v1/events/{found[owner]}")
        assert refusal(answer) == (404, "not_found")
        assert answer.content == never[other].content


ENDPOINTS = "/v1/webhook_endpoints"


@contextmanager
def endpoints_of_all(stage: Stage) -> Iterator[dict[Party, str]]:
    """Give each party a webhook endpoint, by its path."""
    made = {
        p: f"{ENDPOINTS}/"
        + p.client.post(ENDPOINTS, json={"url": f"https://{p.account}-{p.mode}.example/"}).json()[
            "endpoint_id"
        ]
        for p in stage.parties
    }
    try:
        yield made
    finally:
        for party, path in made.items():
            assert party.client.delete(path).status_code in {200, 404}


def the_endpoints_that_are_listed_are_ones_own(stage: Stage) -> None:
    """Four were made, by four; each sees one."""
    with endpoints_of_all(stage) as paths:
        for party, path in paths.items():
            (shown,) = party.client.get(ENDPOINTS).json()["data"]
            assert path == f"{ENDPOINTS}/{shown['endpoint_id']}"
            assert shown["url"] == f"https://{party.account}-{party.mode}.example/"


def an_endpoint_is_its_owners(
    method: str, act: str = "", body: object = None
) -> Callable[[Stage], None]:
    """For all others there is none: the same response as for an unknown one."""

    def check(stage: Stage) -> None:
        with endpoints_of_all(stage) as paths:
            never = f"{ENDPOINTS}/we_00000000000000000000000000{act}"
            for owner, other in stage.pairs():
                before = owner.client.get(paths[owner]).json()
                answer = other.client.request(method, paths[owner] + act, json=body)
                assert refusal(answer) == (404, "not_found")
                assert answer.content == other.client.request(method, never, json=body).content
                assert owner.client.get(paths[owner]).json() == before

    return check


def a_providers_message_says_nothing_of_accounts(stage: Stage) -> None:
    """An unconfigured provider looks like an unknown account; no key helps."""
    path = "/v1/provider_webhooks/stripe/{}"
    for asking in (stage.stranger, *(party.client for party in stage.parties)):
        answers = {
            asking.post(path.format(name), content=b"{}").content
            for name in ("acct_00000000000000000000000000", *stage.account_ids)
        }
        assert len(answers) == 1
        assert b"not_found" in answers.pop()


def it_is_the_same_for_everyone(path: str) -> Callable[[Stage], None]:
    def check(stage: Stage) -> None:
        clients = [stage.stranger, *(party.client for party in stage.parties)]
        answers = [client.get(path) for client in clients]
        assert len({(answer.status_code, answer.content) for answer in answers}) == 1
        for party in stage.parties:
            nothing_of(party, answers[0])

    return check


CHECKOUTS = "/v1/checkout_sessions"
CURRENT = f"{CHECKOUTS}/current"


def a_checkout_session(party: Party, **changes: str) -> dict[str, str]:
    """A new session of a party, with words of its own."""
    body = {"return_url": "https://shop.example/", "session_id": party.session_id}
    body |= {"notice_id": LIVE_NOTICE, "cbid": party.cbid}
    response = party.client.post(CHECKOUTS, json=body | changes)
    assert response.status_code == 200, response.text
    made: dict[str, str] = response.json()
    return made


def of_the_sandbox(stage: Stage) -> list[Party]:
    """Buyers whose return addresses need no registration."""
    return [party for party in stage.parties if party.mode == "test"]


def a_checkout_session_is_its_owners(method: str, action: str = "") -> Callable[[Stage], None]:
    def made(party: Party) -> str:
        return a_checkout_session(party)["checkout_session_id"]

    return a_session_is_its_owners(CHECKOUTS, "chk", made, method, action)


def a_session_is_its_owners(
    where: str, prefix: str, made: Callable[[Party], str], method: str, action: str
) -> Callable[[Stage], None]:
    def check(stage: Stage) -> None:
        for owner in of_the_sandbox(stage):
            path = f"{where}/{made(owner)}{action}"
            never = f"{where}/{prefix}_00000000000000000000000000{action}"
            body: dict[str, Any] = {"json": {}} if method == "POST" else {}
            for other in stage.parties:
                if other is not owner:
                    answer = other.client.request(method, path, **body)
                    assert refusal(answer) == (404, "not_found")
                    assert answer.content == other.client.request(method, never, **body).content
                    nothing_of(owner, answer)

    return check


def lists_of_checkout_sessions_hold_only_ones_own(stage: Stage) -> None:
    for owner in of_the_sandbox(stage):
        own = a_checkout_session(owner)["checkout_session_id"]
        assert own in owner.client.get(CHECKOUTS, params={"session_id": owner.session_id}).text
        for other in stage.parties:
            if other is not owner:
                listed = other.client.get(CHECKOUTS, params={"session_id": owner.session_id})
                assert listed.json()["data"] == []
                nothing_of(owner, other.client.get(CHECKOUTS, params={"after": own}))


def lists_of_orders_hold_only_ones_own(stage: Stage) -> None:
    """Also where two accounts name an order alike, and no cursor of another's shows more."""
    for owner in stage.parties:
        own = owner.client.get("/v1/orders")
        assert owner.ack_id in own.text
        for other in stage.parties:
            if other is not owner:
                nothing_of(owner, other.client.get("/v1/orders"))
                after = own.json()["next_cursor"]
                nothing_of(owner, other.client.get("/v1/orders", params={"after": after}))


def an_order_is_its_accounts(stage: Stage) -> None:
    """By its own identifier, or that of a part."""
    for owner in stage.parties:
        order = owner.client.get(f"/v1/orders/{owner.ack_id}").json()
        assert order["ack_id"] == owner.ack_id
        for other in stage.parties:
            if other is not owner:
                for id_ in (order["order_id"], owner.ack_id):
                    shown = other.client.get(f"/v1/orders/{id_}")
                    assert shown.status_code == 404 or shown.json()["ack_id"] == other.ack_id
                    nothing_of(owner, shown)


def a_checkout_session_is_not_replayed_to_another(stage: Stage) -> None:
    """The same idempotency key and body, sent by both: two sessions."""
    body = {"return_url": "https://shop.example/", "session_id": "s", "notice_id": LIVE_NOTICE}
    body |= {"order_reference": "1001"}
    answers = [
        party.client.post(CHECKOUTS, json=body, headers={"Idempotency-Key": "isolation"})
        for party in of_the_sandbox(stage)
    ]
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["client_token"] for answer in answers}) == len(answers)


def a_client_token_leads_to_its_own_session(
    method: str, action: str = ""
) -> Callable[[Stage], None]:
    """And a key, of whatever account, to none."""

    def check(stage: Stage) -> None:
        first, second = of_the_sandbox(stage)
        made = a_checkout_session(first)
        body: dict[str, Any] = {"json": {}} if method == "POST" else {}
        for party in stage.parties:
            answer = party.client.request(method, CURRENT + action, **body)
            assert refusal(answer) == (401, "invalid_client_token")
        token = {"Authorization": f"Bearer {made['client_token']}"}
        other = {"Authorization": f"Bearer {a_checkout_session(second)['client_token']}"}
        own = stage.stranger.get(CURRENT, headers=token).json()
        assert own["checkout_session_id"] == made["checkout_session_id"]
        nothing_of(first, stage.stranger.request(method, CURRENT + action, headers=other, **body))

    return check


def a_preflight_says_nothing_of_sessions(path: str) -> Callable[[Stage], None]:
    def check(stage: Stage) -> None:
        asked = {"Origin": "https://shop.example"}
        answers = {
            client.options(path, headers=asked).headers["access-control-allow-headers"]
            for client in (stage.stranger, *(party.client for party in stage.parties))
        }
        assert answers == {"authorization, content-type"}

    return check


def a_hosted_page_is_for_the_browser_of_its_link(method: str) -> Callable[[Stage], None]:
    """No key opens it, not even that of the account."""

    def check(stage: Stage) -> None:
        clients = [stage.stranger, *(party.client for party in stage.parties)]
        for owner in of_the_sandbox(stage):
            id_ = a_checkout_session(owner)["checkout_session_id"]
            answers = [
                client.request(method, f"/c/{name}/decline")
                for client in clients
                for name in (id_, "chk_00000000000000000000000000")
            ]
            assert {answer.status_code for answer in answers} == {404}
            assert len({answer.content for answer in answers}) == 1
            nothing_of(owner, answers[0])

    return check


def the_page_of_buyers_is_for_the_browser_of_the_buyer(
    method: str, path: str, status: int
) -> Callable[[Stage], None]:
    """No key opens it, and without a passkey or a cookie it has nothing of a buyer."""

    def check(stage: Stage) -> None:
        for client in (stage.stranger, *(party.client for party in stage.parties)):
            answer = client.request(method, path)
            assert answer.status_code == status
            for owner in of_the_sandbox(stage):
                nothing_of(owner, answer)

    return check


def requests_are_of_ones_own_keys(stage: Stage) -> None:
    found = {p: p.client.get("/v1/requests").json()["data"] for p in stage.parties}
    for owner, other in stage.pairs():
        ids = {one["request_id"] for one in found[owner]}
        assert ids
        assert ids.isdisjoint(one["request_id"] for one in found[other])
        after = {"after": found[owner][0]["request_id"]}
        assert other.client.get("/v1/requests", params=after).json()["data"] == []


CONSIDERED: dict[tuple[str, str], Callable[[Stage], None]] = {
    ("POST", CHECKOUTS): a_checkout_session_is_not_replayed_to_another,
    ("GET", "/v1/requests"): requests_are_of_ones_own_keys,
    ("GET", "/v1/orders"): lists_of_orders_hold_only_ones_own,
    ("GET", "/v1/orders/{order_id}"): an_order_is_its_accounts,
    ("GET", CHECKOUTS): lists_of_checkout_sessions_hold_only_ones_own,
    ("GET", f"{CHECKOUTS}/{{checkout_session_id}}"): a_checkout_session_is_its_owners("GET"),
    ("POST", f"{CHECKOUTS}/{{checkout_session_id}}/cancel"): a_checkout_session_is_its_owners(
        "POST", "/cancel"
    ),
    ("GET", CURRENT): a_client_token_leads_to_its_own_session("GET"),
    **{
        ("POST", CURRENT + action): a_client_token_leads_to_its_own_session("POST", action)
        for action in ("/events", "/acknowledge", "/decline")
    },
    **{
        ("OPTIONS", CURRENT + action): a_preflight_says_nothing_of_sessions(CURRENT + action)
        for action in ("", "/events", "/acknowledge", "/decline")
    },
    ("GET", "/c/{path*}"): a_hosted_page_is_for_the_browser_of_its_link("GET"),
    ("POST", "/c/{path*}"): a_hosted_page_is_for_the_browser_of_its_link("POST"),
    ("GET", "/buyer"): the_page_of_buyers_is_for_the_browser_of_the_buyer("GET", "/buyer", 200),
    # Without a session its form is not read: it leads to the page.
    ("POST", "/buyer"): the_page_of_buyers_is_for_the_browser_of_the_buyer("POST", "/buyer", 303),
    ("POST", "/buyer/sign-in"): the_page_of_buyers_is_for_the_browser_of_the_buyer(
        "POST", "/buyer/sign-in", 415
    ),
    ("GET", "/logos/{path*}"): it_is_the_same_for_everyone(f"/logos/{'0' * 64}"),
    ("GET", "/v1/notices"): notices_are_the_same_for_every_account("/v1/notices"),
    ("GET", "/v1/notices/{notice_id}"): notices_are_the_same_for_every_account(
        f"/v1/notices/{LIVE_NOTICE}"
    ),
    ("GET", "/v1/notices/{notice_id}/versions"): notices_are_the_same_for_every_account(
        "/v1/notices/amended/versions"
    ),
    ("POST", "/v1/requirements"): requirements_are_the_same_for_every_account,
    (
        "POST",
        "/v1/notices/{notice_id}/acknowledge",
    ): an_acknowledgment_is_not_replayed_to_another,
    ("GET", "/v1/acknowledgments"): lists_hold_only_ones_own,
    ("GET", "/v1/acknowledgments/{ack_id}"): an_acknowledgment_is_read_by_its_owner_alone,
    ("GET", "/v1/acknowledgments/{ack_id}/proof"): evidence_is_its_owners("proof"),
    ("GET", "/v1/acknowledgments/{ack_id}/certificate"): evidence_is_its_owners("certificate"),
    ("GET", "/v1/acknowledgments/{ack_id}/dossier"): evidence_is_its_owners("dossier"),
    ("GET", "/v1/clearances/{clearance_id}/dossier"): a_dossier_is_its_owners,
    ("GET", "/v1/log/keys"): it_is_the_same_for_everyone("/v1/log/keys"),
    ("GET", "/v1/log/policy"): it_is_the_same_for_everyone("/v1/log/policy"),
    ("GET", "/v1/log/{path*}"): it_is_the_same_for_everyone("/v1/log/live/1/tile/entries/000.p/1"),
    ("GET", "/verify"): it_is_the_same_for_everyone("/verify"),
    ("POST", "/v1/buyers/verify"): a_verification_is_an_accounts_own,
    ("GET", "/v1/buyers/{cbid}/status"): the_status_of_a_buyer_crosses_accounts_and_not_modes,
    ("GET", REVIEWS): a_buyer_is_reviewed_by_the_account_of_the_attempt,
    ("POST", "/v1/buyers/{cbid}/review"): a_buyer_is_reviewed_by_the_account_of_the_attempt,
    ("GET", "/v1/test/clock"): a_test_clock_is_ones_own,
    ("POST", "/v1/test/clock/advance"): a_test_clock_is_ones_own,
    ("DELETE", "/v1/test/clock"): a_test_clock_is_ones_own,
    ("POST", "/v1/test/buyers"): a_sandbox_buyer_is_moved_by_its_own_account_alone,
    ("POST", "/v1/test/events"): a_triggered_event_is_ones_own,
    ("GET", "/v1/test/fault"): a_planned_fault_is_ones_own,
    ("POST", "/v1/test/fault"): a_planned_fault_is_ones_own,
    ("DELETE", "/v1/test/fault"): a_planned_fault_is_ones_own,
    ("POST", "/v1/clearances"): an_order_is_decided_by_what_is_ones_own,
    ("GET", "/v1/clearances"): clearances_that_are_found_are_ones_own,
    ("GET", "/v1/clearances/{clearance_id}"): a_clearance_is_read_by_its_owner_alone,
    (
        "POST",
        "/v1/clearances/{clearance_id}/fulfilment",
    ): a_clearance_is_reported_on_by_its_owner_alone,
    (
        "POST",
        "/v1/clearances/{clearance_id}/override",
    ): a_refusal_is_overridden_by_its_owner_alone,
    ("GET", "/v1/events"): events_are_ones_own,
    ("GET", "/v1/events/{event_id}"): an_event_is_read_by_its_owner_alone,
    ("POST", ENDPOINTS): the_endpoints_that_are_listed_are_ones_own,
    ("GET", ENDPOINTS): the_endpoints_that_are_listed_are_ones_own,
    ("GET", f"{ENDPOINTS}/{{endpoint_id}}"): an_endpoint_is_its_owners("GET"),
    ("PATCH", f"{ENDPOINTS}/{{endpoint_id}}"): an_endpoint_is_its_owners(
        "PATCH", body={"disabled": True}
    ),
    ("DELETE", f"{ENDPOINTS}/{{endpoint_id}}"): an_endpoint_is_its_owners("DELETE"),
    ("POST", f"{ENDPOINTS}/{{endpoint_id}}/rotate_secret"): an_endpoint_is_its_owners(
        "POST", "/rotate_secret", {}
    ),
    ("GET", f"{ENDPOINTS}/{{endpoint_id}}/deliveries"): an_endpoint_is_its_owners(
        "GET", "/deliveries"
    ),
    ("POST", f"{ENDPOINTS}/{{endpoint_id}}/resend"): an_endpoint_is_its_owners(
        "POST", "/resend", {"event_id": "evt_none"}
    ),
    ("POST", f"{ENDPOINTS}/{{endpoint_id}}/recover"): an_endpoint_is_its_owners(
        "POST", "/recover", {"since": "2026-11-20T00:00:00Z"}
    ),
    ("POST", f"{ENDPOINTS}/{{endpoint_id}}/send_example"): an_endpoint_is_its_owners(
        "POST", "/send_example", {"type": "buyer.failed"}
    ),
    ("POST", "/v1/provider_webhooks/{path*}"): a_providers_message_says_nothing_of_accounts,
    ("GET", "/.well-known/jwks.json"): it_is_the_same_for_everyone("/.well-known/jwks.json"),
    ("GET", "/healthz"): it_is_the_same_for_everyone("/healthz"),
    ("GET", "/readyz"): it_is_the_same_for_everyone("/readyz"),
    ("GET", "/.well-known/security.txt"): it_is_the_same_for_everyone("/.well-known/security.txt"),
    ("GET", "/openapi.json"): it_is_the_same_for_everyone("/openapi.json"),
    ("GET", "/docs"): it_is_the_same_for_everyone("/docs"),
    **{
        ("GET", path): it_is_the_same_for_everyone(path)
        for path in (
            "/",
            "/robots.txt",
            "/favicon.ico",
            "/component/v1/countersign-notice.js",
        )
    },
    ("GET", "/docs/{path*}"): it_is_the_same_for_everyone("/docs/integrate"),
}
"""The meaning of isolation on each route."""


def test_every_route_was_considered() -> None:
    """A new route fails here until its isolation is described."""
    assert set(CONSIDERED) == {
        (route.method, route.path) for route in route_table() if not route.console
    }


@pytest.mark.parametrize("route", CONSIDERED, ids=" ".join)
def test_only_the_status_of_a_buyer_crosses_accounts(stage: Stage, route: tuple[str, str]) -> None:
    CONSIDERED[route](stage)


def test_the_words_of_one_party_are_found_in_its_own_answers(stage: Stage) -> None:
    """The marks that would reveal a leak are really there."""
    for party in stage.parties:
        text = party.client.get(f"/v1/acknowledgments/{party.ack_id}").text
        assert all(secret in text for secret in party.secrets)
