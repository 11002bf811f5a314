"""After each kind of erasure, no remaining data leads to the erased data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
import pytest
from sqlalchemy import Connection, insert

from countersign.base.db.tables import deployment
from countersign.core.access.audit import ERASED_BUYER, find_audit
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.buyers import admin
from countersign.core.buyers.sql import erased_name
from countersign.core.log.blind_runs import merge
from countersign.core.privacy.erase import ERASURE_DUE, erase_planned, finish_restore, plan_erasure
from countersign.core.privacy.erase_sql import destroy_disclosures
from countersign.core.privacy.holds import find_holds
from countersign.core.privacy.model import ErasureReason, RecordErasure
from countersign.core.privacy.requests import request_erasure
from countersign.operate import bootstrap
from countersign_simulators.base import Session
from tests.http.backstage import Operator, notice_file
from tests.privacy.left import (
    Value,
    everything,
    guessed_zips,
    keyed,
    namespaces,
    naming,
    personal_of,
)
from tests.remembered.conftest import Person, Shop, form_of, link, remembered
from tests.storage import items
from tests.support import postgres
from tests.support.acts import done
from tests.support.holding import place_hold, release_hold

pytestmark = pytest.mark.long

MakeShop = Callable[..., Shop]
IP, AGENT, ADDRESS = "203.0.113.77", "Planted/7.7", None
WRONG_ZIP = "00501"


@dataclass(frozen=True)
class Bought:
    """A buyer, and an order at each of two shops."""

    person: Session
    cbid: str
    sessions: tuple[str, ...]
    ack_ids: tuple[str, ...]
    verifications: tuple[str, ...]
    zips: list[str]
    """Values of every person known to the provider, and the tried one."""

    @property
    def orders(self) -> list[list[Any]]:
        pairs = zip(self.ack_ids, self.sessions, strict=True)
        return [[ack_id, session, "accessory", ADDRESS] for ack_id, session in pairs]


def buy(operator: Operator, shops: tuple[Shop, Shop], person: Person, number: int = 0) -> Bought:
    """A live buyer with everything that can be known of one, and an order at each shop."""
    played = shops[0].vendor.part("verified", number)
    cbid, zip_ = shops[0].vendor.verified(played), played.shipping_zip
    again = {"Idempotency-Key": f"verify-{number}"}
    assert shops[0].vendor.verify(played, headers=again).json()["cbid"] == cbid
    sessions, ack_ids = list[str](), list[str]()
    for shop in shops:
        session = f"planted-order-{len(sessions)}-{number}"
        made = shop.client.post(
            "/v1/checkout_sessions",
            json={
                "return_url": "https://shop.example/back",
                "session_id": session,
                "collect": ["identity"],
                "cbid": cbid,
                "shipping_zip": zip_,
            },
            headers={"Idempotency-Key": f"session-{session}"},
        )
        assert made.status_code == 200, made.text
        ack_id = shop.client.post(
            "/v1/notices/law/acknowledge",
            json={
                "initials_per_line": ["ZQ"] * 3,
                "session_id": session,
                "cbid": cbid,
                "ip": IP,
                "user_agent": AGENT,
            },
            headers={"Idempotency-Key": f"ack-{session}"},
        ).json()["ack_id"]
        order = {
            "ack_id": ack_id,
            "cbid": cbid,
            "session_id": session,
            "order_reference": f"number of {session}",
            "product_class": "accessory",
        }
        wrong = shop.client.post("/v1/clearances", json=order | {"shipping_zip": WRONG_ZIP})
        assert wrong.json()["reasons"] == ["zip_mismatch"], wrong.text
        cleared = shop.client.post(
            "/v1/clearances",
            json=order | {"shipping_zip": zip_},
            headers={"Idempotency-Key": f"clearance-{session}"},
        ).json()
        assert cleared["cleared"], cleared
        report = {"carrier": "UPS", "tracking_number": f"1Z{session}"}
        path = f"/v1/clearances/{cleared['clearance_id']}/fulfilment"
        assert shop.client.post(path, json=report).status_code == 200
        sessions.append(session)
        ack_ids.append(ack_id)
    remembered(operator, person, cbid)
    # ZIP codes compared by the buyer's own browser count separately from the vendor's.
    asked = shops[0].session(shipping_zip=WRONG_ZIP)
    person.post(form_of(person.open(link(asked)), "cookie"))
    letter = f"a letter about {cbid}"
    operator.act(lambda opened: done(admin.revoke, opened.buyers, cbid, letter))
    operator.act(lambda opened: done(admin.reinstate, opened.buyers, cbid, letter))
    operator.act(lambda opened: admin.evidence(opened.buyers, DEPLOYMENT, cbid, letter))
    rows = operator.rows("SELECT id FROM verifications WHERE cbid = :cbid", cbid=cbid)
    checks = tuple(row["id"] for row in rows)
    zips = {WRONG_ZIP, *(one.shipping_zip for one in shops[0].vendor.playing.simulator.sessions)}
    return Bought(played, cbid, tuple(sessions), tuple(ack_ids), checks, sorted(zips))


PERSONAL_IN = {
    *("buyers", "verifications", "verification_evidence", "disclosures", "records"),
    *("acknowledgment_uses", "buyer_documents", "provider_sessions", "buyer_references"),
    *("remembered", "remembered_uses", "zip_attempts", "events", "idempotency_keys"),
    "checkout_sessions",
}
"""The tables with data about a buyer who bought."""
LISTS = {"blind_recent", "blind_runs"}
"""The tables that find disclosures, on SQLite alone."""


def personal_rows(operator: Operator, cbid: str) -> dict[str, set[bytes]]:
    """By table, a buyer's sealed or hashed values, by the tables' own declarations."""

    def find(connection: Connection, secret: DeploymentSecret) -> list[tuple[str, Any]]:
        return [*personal_of(connection, secret, DEPLOYMENT, cbid)]

    found = operator.act(lambda opened: opened.database.scan(find, opened.access.secret))
    kept: dict[str, set[bytes]] = {}
    for table, row in found:
        hidden = {bytes(one) for one in row.values() if isinstance(one, bytes | memoryview)}
        kept.setdefault(table, set()).update(hidden)
    return kept


def kept_answers(found: list[Value]) -> list[Value]:
    """The stored responses for retries among these."""
    return [value for value in found if value.table == "idempotency_keys"]


def guesses(
    bought: Bought, secret: DeploymentSecret, account_ids: list[str], orders: list[list[Any]]
) -> Callable[[list[Value]], set[tuple[str, str]]]:
    """Finds the columns from which a ZIP code of the buyer could be guessed."""
    return partial(
        guessed_zips,
        secret=secret,
        zips=bought.zips,
        account_ids=account_ids,
        cbids=[bought.cbid],
        orders=orders,
    )


def hold_and_release(operator: Operator, subject: str) -> None:
    """A hold that was placed and released; its reason names the buyer."""

    async def work(opened: bootstrap.Deployment) -> None:
        hold = await place_hold(opened.privacy, subject, f"case about {subject}")
        await release_hold(opened.privacy, hold.id)

    operator.act(work)


def erase(operator: Operator, subject: str, *, naming: bool = False) -> None:
    """As `countersign erase` does."""

    async def work(opened: bootstrap.Deployment) -> None:
        plan = await plan_erasure(opened.privacy, subject, DEPLOYMENT, with_acknowledgments=naming)
        await erase_planned(opened.privacy, plan, ErasureReason.REQUEST)

    operator.act(work)


def restore(operator: Operator, cbid: str) -> None:
    """A restore after the buyer was erased since the backup."""

    def due(connection: Connection, name: str) -> None:
        connection.execute(insert(deployment), {"name": name, "value": ERASURE_DUE})

    async def work(opened: bootstrap.Deployment) -> None:
        await opened.database.write(due, erased_name(opened.access.secret, cbid, DEPLOYMENT))
        await finish_restore(opened.privacy)

    operator.act(work)


WHOLE: Mapping[str, Callable[[Operator, str], object]] = {
    "the buyer": erase,
    "the buyer with acknowledgments": partial(erase, naming=True),
    "by the buyer": lambda operator, cbid: operator.act(
        lambda opened: request_erasure(opened.privacy, cbid)
    ),
    "after a restore": restore,
}


ORDER_KEYS = {("order_acts", "key")}


@pytest.fixture
def shops(operator: Operator, live_shop: MakeShop) -> tuple[Shop, Shop]:
    operator.publish(notice_file("law", "1"))
    return live_shop(), live_shop()


@pytest.mark.parametrize("how", WHOLE)
def test_nothing_leads_to_an_erased_buyer(
    operator: Operator, shops: tuple[Shop, Shop], person: Person, how: str
) -> None:
    """No identifier, no keyed hash of one, and no ZIP code, with all keys in hand.

    Also after holds, whose reasons name the buyer. Remaining acknowledgments are found by their own
    disclosures, and their orders by nothing.
    """
    bought = buy(operator, shops, person)
    hold_and_release(operator, bought.cbid)
    hold_and_release(operator, bought.ack_ids[0])
    before, secret, account_ids = everything(operator)
    guess = guesses(bought, secret, account_ids, bought.orders)
    found = {column for _, column in guess(before)}
    assert found >= {"zip_index", "order_index", "proofs"}, "the test finds what is there"
    assert ("events", "object_id", bought.cbid) in naming(before, [bought.cbid])
    # Some keys of disclosures wait, and the rest is in runs.
    operator.act(lambda opened: merge(opened.database, 4))
    kept, places = personal_rows(operator, bought.cbid), namespaces(operator)
    assert kept.keys() - LISTS == PERSONAL_IN
    assert keyed(before, secret, places, [bought.person.session_id])
    WHOLE[how](operator, bought.cbid)
    left, *_ = everything(operator)
    gone = [bought.cbid, bought.person.session_id]
    stay = {("disclosures", "cbid_index")}
    if how == "the buyer with acknowledgments":
        gone += [*bought.sessions, IP, AGENT]
        stay = set()
    assert naming(left, gone) == set()
    scopes = [*account_ids, "remembered", "remembered live", "strangers"]
    found_by = keyed(left, secret, scopes, [bought.cbid])
    assert {one for one in found_by if not stay or not one[0].startswith("blind_")} == stay
    assert guess(left) == set()
    assert keyed(left, secret, places, [bought.person.session_id]) == set()
    again = {(v.table, v.column) for v in left if v.data in kept.get(v.table, ())}
    assert {one for one in again if one[0] not in {"disclosures", *LISTS}} == set()
    if not stay:
        assert again == set()
        # An order keeps its identifier: the row says where it stands, and nothing personal.
        assert keyed(left, secret, scopes, bought.sessions) == ORDER_KEYS
        assert naming(kept_answers(left), bought.ack_ids) == set()
    # The note of the erasure does not reveal its records by their time either.
    [when, *_] = operator.rows("SELECT at FROM erasures ORDER BY at DESC")
    assert not [v for v in left if v.table == "deployment" and str(when["at"]).encode() in v.data]
    entries = operator.act(lambda opened: opened.database.read(find_audit, None))
    about = [entry for entry in entries if entry.action in {"hold_placed", "evidence_shown"}]
    assert {entry.subject for entry in about} == {ERASED_BUYER, bought.ack_ids[0]}
    assert [
        hold.subject for hold in operator.act(lambda o: o.database.read(find_holds, DEPLOYMENT))
    ] == [
        ERASED_BUYER,
        bought.ack_ids[0],
    ]


def test_the_audit_names_the_buyer_until_the_erasure(
    operator: Operator, shops: tuple[Shop, Shop], person: Person
) -> None:
    """It is found by the buyer, in the reasons too; the rows themselves never name one."""
    bought = buy(operator, shops, person)
    entries = operator.act(lambda opened: opened.database.read(find_audit, bought.cbid))
    assert [entry.action.value for entry in entries] == [
        "buyer_revoked",
        "buyer_reinstated",
        "evidence_shown",
    ]
    assert {entry.subject for entry in entries} == {bought.cbid}
    assert {entry.details["reason"] for entry in entries} == {f"a letter about {bought.cbid}"}
    rows = operator.rows("SELECT * FROM audit_log")
    assert bought.cbid not in str(rows)
    references = [row["subject"] for row in rows if row["subject"].startswith("ref_")]
    assert len(set(references)) == len(references) == 3


def test_nothing_leads_to_the_content_of_an_erased_acknowledgment(
    operator: Operator, shops: tuple[Shop, Shop], person: Person
) -> None:
    """The buyer stays; the order, its session and its ZIP code cannot be found by trying."""
    bought = buy(operator, shops, person)
    hold_and_release(operator, bought.ack_ids[0])
    ack_id, session = bought.ack_ids[0], bought.sessions[0]
    before, secret, account_ids = everything(operator)
    guess = guesses(bought, secret, account_ids, bought.orders[:1])
    assert "order_index" in {column for _, column in guess(before)}
    erase(operator, ack_id)
    left, *_ = everything(operator)
    assert naming(left, [session]) == {("idempotency_keys", "response, opened", session)}
    # A known request could be tried against the keyed hash of the request.
    assert naming(kept_answers(before), [ack_id])
    assert naming(kept_answers(left), [ack_id]) == set()
    own = [value for value in left if value.table != "idempotency_keys"]
    # The vendor's request for its other session of this order is no part of the acknowledgment.
    of_request = {("checkout_sessions", "session_index")}
    assert keyed(own, secret, account_ids, [session]) == of_request | ORDER_KEYS
    assert "order_index" not in {column for _, column in guess(left)}
    uses = {v.column for v in left if v.table == "acknowledgment_uses" and v.row == ack_id}
    assert uses >= {"clearance_id", "cbid_index", "order_index"}
    assert "cbid" not in uses
    mine = [v for v in left if v.table == "acknowledgment_uses" and v.row == ack_id]
    assert keyed(mine, secret, account_ids, [bought.cbid]) == set()


def test_an_erased_verification_leaves_no_zip_of_its_own(
    operator: Operator, shops: tuple[Shop, Shop], person: Person
) -> None:
    """The buyer stays verified for the ZIP code that was proved, until that has expired."""
    bought = buy(operator, shops, person)
    # A second one is written where a second has passed between the two requests.
    for check in bought.verifications:
        erase(operator, check)
    left, secret, account_ids = everything(operator)
    guess = guesses(bought, secret, account_ids, [])
    of_checks = [value for value in left if value.table == "verifications"]
    assert guess(of_checks) == set()
    order = {"cbid": bought.cbid, "shipping_zip": bought.person.shipping_zip}
    assert shops[0].vendor.status(bought.cbid)["status"] == "verified", order
    # As retention meets it: expired long ago.
    rows = operator.rows("SELECT proofs FROM buyers WHERE cbid = :cbid", cbid=bought.cbid)
    proofs = msgspec.json.decode(rows[0]["proofs"])
    past = [proof | {"expires_at": 0} for proof in proofs]
    change = "UPDATE buyers SET proofs = :proofs WHERE cbid = :cbid"
    operator.execute(change, proofs=msgspec.json.encode(past).decode(), cbid=bought.cbid)

    def forget(connection: Connection) -> None:
        destroy_disclosures(
            connection, RecordErasure([*bought.verifications], items.fact(items.account()))
        )

    operator.act(lambda opened: opened.database.write(forget))
    left, *_ = everything(operator)
    of_buyers = [value for value in left if value.table == "buyers"]
    assert guess(of_buyers) == set()


def test_a_request_sent_again_after_the_erasure_is_judged_again(
    operator: Operator, shops: tuple[Shop, Shop], person: Person
) -> None:
    """The stored response named the buyer, and was erased with the buyer."""
    bought = buy(operator, shops, person)
    verify, again = shops[0].vendor.verify, {"Idempotency-Key": "verify-0"}
    assert verify(bought.person, headers=again).headers["idempotent-replayed"] == "true"
    erase(operator, bought.cbid)
    answer = verify(bought.person, headers=again)
    assert "idempotent-replayed" not in answer.headers
    assert answer.json()["cbid"] != bought.cbid


def test_events_of_an_erased_buyer_stay_in_their_place(
    operator: Operator, shops: tuple[Shop, Shop], person: Person
) -> None:
    """A reader that pages through them loses none, and learns no identifier."""
    bought = buy(operator, shops, person)
    other = buy(operator, shops, person, 1)
    client = shops[0].client
    postgres.settle()
    before = client.get("/v1/events", params={"limit": 100}).json()["data"]
    erase(operator, bought.cbid)
    postgres.settle()
    after = client.get("/v1/events", params={"limit": 100}).json()["data"]
    # A record that is sealed meanwhile adds its own event at the end.
    assert [e["id"] for e in after][: len(before)] == [e["id"] for e in before]
    named = [e["data"]["cbid"] for e in after if e["type"].startswith("buyer.")]
    assert None in named
    assert bought.cbid not in named
    assert other.cbid in named
