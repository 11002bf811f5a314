"""What an account erases and holds is its own, in its own mode; others lose and learn nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import httpx2
import pytest
from sqlalchemy import Connection, select, update

from countersign import bootstrap
from countersign.access.key import VENDOR_SCOPES, Scope
from countersign.access.origins import add_origin
from countersign.access.reach import DEPLOYMENT, AccountReach
from countersign.access.role import Role
from countersign.buyers.admin import set_block
from countersign.buyers.sql import erased_name
from countersign.db.tables import deployment, metadata
from countersign.mode import Mode
from countersign.privacy.erase import ERASURE_DUE, erase_planned, finish_restore, plan_erasure
from countersign.privacy.model import ErasureReason
from countersign.privacy.requests import ErasureOutcome, request_erasure
from countersign_evidence.record import CBID_FIELD
from tests.checkout.buyer import Buyer as CheckoutBuyer
from tests.http.backstage import Operator, make_client, notice_file
from tests.http.calls import acknowledge, verify
from tests.staff.conftest import Desk
from tests.support.providers import Playing, playing
from tests.support.service import Server
from tests.verification.live import configure

pytestmark = pytest.mark.both_engines

STAFF: Final = (
    *VENDOR_SCOPES,
    *(Scope.ERASURE_WRITE, Scope.HOLDS_MANAGE, Scope.RETENTION_READ, Scope.AUDIT_READ),
)
PRODUCT: Final = "accessory"
OF_BUYERS: Final = ("buyers", "provider_sessions", "buyer_documents", "remembered")
"""Tables that accounts share: what an account relies on is asked over the API instead."""


@dataclass(frozen=True)
class Account:
    """A vendor with keys of both modes that may also do what staff do."""

    id: str
    live: httpx2.Client
    test: httpx2.Client

    def ask(
        self, path: str, body: Mapping[str, Any], status: int = 200, mode: str = "live"
    ) -> dict[str, Any]:
        answer = (self.live if mode == "live" else self.test).post(path, json=body)
        assert answer.status_code == status, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def verified(self, played: Playing) -> str:
        """Verify the one person of these tests."""
        session = played.part("verified")
        own = {"provider_identity_session_id": session.session_id}
        made = self.ask("/v1/buyers/verify", own | {"shipping_zip": session.shipping_zip})
        assert made["status"] == "verified"
        return str(made["cbid"])

    def buy(self, cbid: str, mode: str = "live", zip_: str = "94105") -> list[str]:
        """Initials and a decision that name a buyer; gives the records."""
        client = self.live if mode == "live" else self.test
        session = f"cart-{self.id}"
        made = acknowledge(client, notice_id="law", session_id=session, cbid=cbid)
        ack_id = made.json()["ack_id"]
        named = {"session_id": session, "cbid": cbid}
        asked = named | {"ack_id": ack_id, "shipping_zip": zip_, "product_class": PRODUCT}
        return [ack_id, self.ask("/v1/clearances", asked, mode=mode)["clearance_id"]]


@dataclass(frozen=True)
class Street:
    """Two vendors whose one buyer is the same person."""

    operator: Operator
    server: Server
    first: Account
    other: Account
    played: Playing

    @property
    def zip(self) -> str:
        return self.played.part("verified").shipping_zip

    def naming(self, account: Account, cbid: str) -> str:
        """A live acknowledgment that names a buyer of either mode, as older releases took it."""
        ack_id: str = acknowledge(account.live, notice_id="law").json()["ack_id"]

        async def work(opened: bootstrap.Deployment) -> bytes:
            return opened.access.secret.blind_index(account.id, CBID_FIELD, cbid)

        index = self.operator.act(work)
        statement = "UPDATE disclosures SET cbid_index = :index WHERE record_id = :ack_id"
        assert self.operator.execute(statement, index=index, ack_id=ack_id) == 1
        return ack_id

    def restored(self, account: Account, cbid: str) -> None:
        """As if all that the account has of a buyer were of a backup, since which it left."""

        async def restore(opened: bootstrap.Deployment) -> None:
            name = erased_name(opened.access.secret, cbid, AccountReach(account.id, Mode.LIVE))

            def due(connection: Connection) -> None:
                own = deployment.c.name == name
                found = connection.execute(update(deployment).where(own).values(value=ERASURE_DUE))
                assert found.rowcount == 1

            await opened.database.write(due)
            await finish_restore(opened.privacy)

        self.operator.act(restore)

    def block(self, account: Account, cbid: str) -> None:
        """Let an account refuse the orders of a buyer."""
        own = AccountReach(account.id, Mode.LIVE)
        refuse = partial(set_block, reach=own, cbid=cbid, reason="returns", blocked=True)
        self.operator.act(lambda opened: refuse(opened.buyers))

    def rows(self, account_id: str, mode: str) -> dict[str, list[Any]]:
        """All that the database has of an account in a mode, but for what grows by itself."""
        found = {}
        with self.operator.transaction() as connection:
            for table in metadata.sorted_tables:
                own = {"account_id", "mode"} <= {*table.c.keys()}
                if own and table.name not in OF_BUYERS and table.name != "api_keys":
                    query = select(table).where(
                        table.c.account_id == account_id, table.c.mode == mode
                    )
                    rows = sorted(map(repr, connection.execute(query)))
                    # The log is sealed whenever that is done.
                    found[table.name] = [row for row in rows if ".sealed'" not in row]
        return found


@pytest.fixture
def street(desk: Desk) -> Iterator[Street]:
    """Give two vendors at the simulated Stripe."""
    with ExitStack() as stack:
        played = stack.enter_context(playing("stripe"))
        made: list[Account] = []
        for _ in range(2):
            account_id = desk.operator.account()
            configure(desk.operator, account_id, played)
            keys = desk.operator.keys(account_id, [(mode, STAFF) for mode in ("live", "test")])
            clients = [stack.enter_context(make_client(desk.server, key.token)) for key in keys]
            made.append(Account(account_id, *clients))
        first, other = made
        yield Street(desk.operator, desk.server, first, other, played)


@pytest.fixture(autouse=True)
def law(desk: Desk) -> None:
    """Publish the notice that live keys acknowledge here."""
    if not desk.operator.rows("SELECT 1 FROM notice_versions WHERE notice_id = 'law'"):
        desk.operator.publish(notice_file("law", "1"))


def test_an_account_erases_its_own_records_and_nothing_of_another(street: Street) -> None:
    """Preview, answer and audit name its own; the other's rows, status and clearances stay."""
    first, other = street.first, street.other
    cbid = first.verified(street.played)
    assert other.verified(street.played) == cbid
    own, theirs = first.buy(cbid, zip_=street.zip), other.buy(cbid, zip_=street.zip)
    before, status = street.rows(other.id, "live"), other.live.get(f"/v1/buyers/{cbid}/status")
    subject = {"subject": cbid, "with_acknowledgments": True}
    preview = first.ask("/v1/erasures/preview", subject)
    assert not {*theirs} & {*preview["records"]}
    assert {*own} < {*preview["records"]}
    done = first.ask("/v1/erasures", subject)
    assert done["records"] == preview["records"]
    assert street.rows(other.id, "live") == before
    after = other.live.get(f"/v1/buyers/{cbid}/status")
    assert (after.status_code, after.json()) == (200, status.json())
    decided = other.live.get(f"/v1/clearances/{other.buy(cbid, zip_=street.zip)[1]}").json()
    assert decided["cleared"], decided
    assert (
        street.operator.rows("SELECT id FROM verifications WHERE account_id = :own", own=first.id)
        == []
    )
    last = other.ask("/v1/erasures", subject)
    assert {*theirs} < {*last["records"]}
    assert other.live.get(f"/v1/buyers/{cbid}/status").status_code == 404


def test_a_buyer_of_others_alone_is_as_unknown_as_one_that_never_was(street: Street) -> None:
    """Erasing, its preview, and a hold: 404, in the same words."""
    cbid = street.other.verified(street.played)
    never = "cbid_" + "0" * len(cbid.partition("_")[2])
    body = {"reason": "case 1"}
    for path, more in (("erasures/preview", {}), ("erasures", {}), ("holds", body)):
        said = [
            street.first.ask(f"/v1/{path}", {"subject": one} | more, 404)["error"]["message"]
            for one in (cbid, never)
        ]
        assert said[0].replace(cbid, never) == said[1]


def test_a_test_key_touches_nothing_live(street: Street) -> None:
    """It neither erases live records, nor sees, places or releases a live hold."""
    first, other = street.first, street.other
    cbid = verify(first.test, shipping_zip="94105").json()["cbid"]
    acknowledge(first.test, notice_id="law", cbid=cbid)
    live = [street.naming(one, cbid) for one in (first, other)]
    of_test = other.buy(cbid, "test")
    rows = {
        (one.id, mode): street.rows(one.id, mode)
        for one, mode in ((first, "live"), (other, "live"), (other, "test"))
    }
    done = first.ask("/v1/erasures", {"subject": cbid, "with_acknowledgments": True}, mode="test")
    assert not {*live, *of_test} & {*done["records"]}
    for (account_id, mode), before in rows.items():
        assert street.rows(account_id, mode) == before
    hold = first.ask("/v1/holds", {"subject": first.id, "reason": "case 1"})
    assert first.test.get("/v1/holds").json()["data"] == []
    first.ask(f"/v1/holds/{hold['hold_id']}/release", {}, 404, mode="test")
    first.ask("/v1/erasures", {"subject": live[0]}, 409)
    first.ask("/v1/holds", {"subject": live[0], "reason": "case 2"}, 404, mode="test")
    first.ask("/v1/holds", {"subject": first.id, "reason": "case 3"}, mode="test")
    first.ask(f"/v1/holds/{hold['hold_id']}/release", {})
    first.ask("/v1/erasures", {"subject": live[0]})


def test_a_test_record_that_names_a_live_buyer_is_no_tie(street: Street) -> None:
    """A test key may name a live buyer, and neither erases nor holds anything of that buyer."""
    first = street.first
    cbid = first.verified(street.played)
    own = {"notice_id": "law", "session_id": "crossing", "cbid": cbid}
    assert acknowledge(first.test, **own).status_code == 200  # type: ignore[arg-type] # no headers
    before = street.rows(first.id, "live")
    first.ask("/v1/erasures", {"subject": cbid, "with_acknowledgments": True}, 404, mode="test")
    first.ask("/v1/erasures/preview", {"subject": cbid}, 404, mode="test")
    first.ask("/v1/holds", {"subject": cbid, "reason": "case 9"}, 404, mode="test")
    assert street.rows(first.id, "live") == before


def test_a_hold_of_one_vendor_neither_binds_another_nor_is_shown_to_it(street: Street) -> None:
    """The deployment's own hold binds both."""
    first, other = street.first, street.other
    cbid = first.verified(street.played)
    other.verified(street.played)
    ack_id, _ = other.buy(cbid, zip_=street.zip)
    hold = first.ask("/v1/holds", {"subject": cbid, "reason": "case 1"})["hold_id"]
    first.ask("/v1/holds", {"subject": first.id, "reason": "case 1"})
    assert other.live.get("/v1/holds").json()["data"] == []
    preview = other.ask("/v1/erasures/preview", {"subject": cbid, "with_acknowledgments": True})
    assert (preview["kept"], preview["prevented_by"]) == ([], None)
    until = {"until": "2999-01-01T00:00:00Z"}
    due = other.live.get("/v1/retention", params=until).json()["data"]
    assert {one["hold_id"] for one in due} <= {None}
    other.ask("/v1/erasures", {"subject": ack_id})
    other.ask("/v1/erasures", {"subject": cbid})
    refused = first.ask("/v1/erasures", {"subject": cbid}, 409)
    assert hold in refused["error"]["message"]


def test_a_release_carries_out_what_waited_in_its_own_reach(desk: Desk, street: Street) -> None:
    """And says so to the one who released."""
    first, other = street.first, street.other
    cbid = first.verified(street.played)
    other.verified(street.played)
    held, waits = dict[str, str](), dict[str, list[str]]()
    for one in (first, other):
        waits[one.id] = one.buy(cbid, zip_=street.zip)
        order = {"subject": waits[one.id][0], "reason": "case 1"}
        held[one.id] = one.ask("/v1/holds", order)["hold_id"]
        done = one.ask("/v1/erasures", {"subject": cbid, "with_acknowledgments": True})
        assert {*waits[one.id]} <= {kept["record_id"] for kept in done["kept"]}
    before = street.rows(other.id, "live")
    released = first.ask(f"/v1/holds/{held[first.id]}/release", {})
    assert {*waits[first.id]} <= {*released["erased"]}
    assert not {*waits[other.id]} & {*released["erased"]}
    assert street.rows(other.id, "live") == before


def test_a_hold_on_what_was_erased_is_refused(street: Street) -> None:
    """Instead of promising to keep what is gone."""
    ack_id = acknowledge(street.first.live, notice_id="law").json()["ack_id"]
    street.first.ask("/v1/erasures", {"subject": ack_id})
    said = street.first.ask("/v1/holds", {"subject": ack_id, "reason": "too late"}, 404)
    assert "erased" in said["error"]["message"]


async def erase_as_the_command(opened: bootstrap.Deployment, cbid: str) -> set[str]:
    """As `countersign erase --with-acknowledgments`; gives what holds keep."""
    plan = await plan_erasure(opened.privacy, cbid, DEPLOYMENT, with_acknowledgments=True)
    return {*await erase_planned(opened.privacy, plan, ErasureReason.REQUEST)}


async def erase_as_the_buyer(opened: bootstrap.Deployment, cbid: str) -> set[str]:
    """As the buyer's own click at `/buyer`."""
    assert await request_erasure(opened.privacy, cbid) is ErasureOutcome.KEPT
    return set()


@pytest.mark.parametrize("way", ["api", "command", "buyer"])
@pytest.mark.parametrize("held_by", ["ack_id", "clearance_id", "order_reference"])
def test_a_held_order_keeps_its_session_with_all_that_it_showed(
    street: Street, way: str, held_by: str
) -> None:
    """Whichever way its buyer is erased; it goes when the hold ends. Others of the buyer go."""
    account = street.first
    cbid = verify(account.test, shipping_zip="94105").json()["cbid"]

    def session(**more: str) -> dict[str, Any]:
        asked = {"return_url": "https://shop.example/", "cbid": cbid, "notice_id": "ab1263"}
        return account.ask("/v1/checkout_sessions", asked | more, mode="test")

    def read(one: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = account.test.get(
            f"/v1/checkout_sessions/{one['checkout_session_id']}"
        ).json()
        return found

    one = session(session_id="cart-7", order_reference=f"order-{account.id}", shipping_zip="94105")
    other = session(session_id="cart-8")
    with make_client(street.server, one["client_token"]) as browser:
        assert CheckoutBuyer(one, browser).acknowledge().status_code == 200
    before = read(one)
    subject = before["ack_id"]
    if held_by == "clearance_id":
        subject = before["clearance_id"]
    elif held_by == "order_reference":
        more = {"session_id": "phone", "order_reference": before["order_reference"]}
        subject = acknowledge(account.test, **more).json()["ack_id"]
    order = {"subject": subject, "reason": "case 1"}
    hold = account.ask("/v1/holds", order, mode="test")["hold_id"]
    id_ = before["checkout_session_id"]
    if way == "api":
        erase = {"subject": cbid, "with_acknowledgments": True}
        preview = account.ask("/v1/erasures/preview", erase, mode="test")
        kept = account.ask("/v1/erasures", erase, mode="test")["kept"]
        assert kept == preview["kept"]
        assert id_ in {one["record_id"] for one in kept}
    elif way == "command":
        kept_ids = street.operator.act(lambda opened: erase_as_the_command(opened, cbid))
        assert id_ in kept_ids
    else:
        street.operator.act(lambda opened: erase_as_the_buyer(opened, cbid))
    assert read(one) == before
    assert read(other)["session_id"] is None
    released = account.ask(f"/v1/holds/{hold}/release", {}, mode="test")
    assert id_ in released["erased"] or before["ack_id"] in released["erased"]
    assert read(one)["session_id"] is None


def test_after_each_act_of_one_account_the_other_is_as_before(street: Street) -> None:
    """A shared buyer, both modes, holds of both: no act of one changes a row of the other's.

    Nor does an act of a test key change a live row.
    """
    first, other = street.first, street.other
    cbid = first.verified(street.played)
    other.verified(street.played)
    played = verify(first.test, shipping_zip="94105").json()["cbid"]
    orders = {
        (one.id, mode): one.buy(cbid if mode == "live" else played, mode, street.zip)
        for one in (first, other)
        for mode in ("live", "test")
    }
    own_hold = {
        one.id: one.ask("/v1/holds", {"subject": orders[one.id, "live"][0], "reason": "case 1"})
        for one in (first, other)
    }
    matter = {
        "name": "Case 2",
        "orders": [{"subject": orders[first.id, "live"][1], "reason": "in dispute"}],
    }
    opened = first.ask("/v1/matters", matter)["matter_id"]
    theirs, whole = own_hold[other.id]["hold_id"], {"with_acknowledgments": True}
    acts: list[tuple[str, str, dict[str, Any], int]] = [
        ("test", f"holds/{own_hold[first.id]['hold_id']}/release", {}, 404),
        ("test", f"matters/{opened}/release", {}, 404),
        ("test", "holds", {"subject": cbid, "reason": "case 3"}, 404),
        ("test", "erasures", {"subject": orders[first.id, "live"][0]}, 404),
        ("test", "erasures", {"subject": cbid} | whole, 404),
        ("test", "erasures", {"subject": played} | whole, 200),
        ("live", f"holds/{theirs}/release", {}, 404),
        ("live", "erasures", {"subject": orders[other.id, "live"][0]}, 404),
        ("live", "holds", {"subject": orders[other.id, "live"][0], "reason": "no"}, 404),
        ("live", "holds", {"subject": other.id, "reason": "no"}, 404),
        ("live", "erasures", {"subject": orders[first.id, "live"][0]}, 409),
        ("live", "erasures", {"subject": cbid} | whole, 200),
        ("live", f"matters/{opened}/release", {}, 200),
        ("live", f"holds/{own_hold[first.id]['hold_id']}/release", {}, 200),
    ]
    status = other.live.get(f"/v1/buyers/{cbid}/status").json()
    for mode, path, body, expected in acts:
        watched = [(other.id, "live"), (other.id, "test")]
        watched += [(first.id, "live")] if mode == "test" else [(first.id, "test")]
        before = {one: street.rows(*one) for one in watched}
        first.ask(f"/v1/{path}", body, expected, mode=mode)
        assert {one: street.rows(*one) for one in watched} == before, path
        assert other.live.get(f"/v1/buyers/{cbid}/status").json() == status, path
    left = street.rows(first.id, "live")
    assert not left["verifications"]
    assert not [row for row in left["disclosures"] if orders[first.id, "live"][0] in row]
    # The buyer's own wish is not kept from one vendor by the hold of another.
    other.ask("/v1/holds", {"subject": cbid, "reason": "case 4"})
    assert first.verified(street.played) == cbid
    theirs_before = street.rows(other.id, "live")
    outcome = street.operator.act(lambda opened: request_erasure(opened.privacy, cbid))
    assert outcome is ErasureOutcome.ON_HOLD
    assert street.rows(other.id, "live") == theirs_before
    assert not street.rows(first.id, "live")["verifications"]


def test_a_restore_takes_an_account_out_of_a_buyer_again(street: Street) -> None:
    """What it left since the backup; the buyer stays for the other, as it was."""
    first, other = street.first, street.other
    cbid = first.verified(street.played)
    other.verified(street.played)
    first.ask("/v1/erasures", {"subject": cbid})
    assert first.verified(street.played) == cbid
    before = street.rows(other.id, "live")
    street.restored(first, cbid)
    assert not street.rows(first.id, "live")["verifications"]
    assert street.rows(other.id, "live") == before
    assert other.live.get(f"/v1/buyers/{cbid}/status").json()["status"] == "verified"


@pytest.mark.parametrize("with_session", [True, False])
def test_a_restore_takes_an_account_out_of_a_buyer_whom_only_a_session_named(
    street: Street, with_session: bool
) -> None:
    """With its block, also if the backup is from before the session."""
    first, other = street.first, street.other
    cbid = other.verified(street.played)
    street.operator.act(lambda opened: add_origin(opened.access, first.id, "https://shop.example"))
    asked = {"return_url": "https://shop.example/", "cbid": cbid, "notice_id": "law"}

    def make() -> str:
        made = first.ask("/v1/checkout_sessions", asked | {"session_id": "cart-7"})
        return f"/v1/checkout_sessions/{made['checkout_session_id']}"

    make()
    first.ask("/v1/erasures", {"subject": cbid})
    session = make() if with_session else None
    street.block(first, cbid)
    before = street.rows(other.id, "live")
    street.restored(first, cbid)
    assert not street.rows(first.id, "live")["buyer_blocks"]
    assert session is None or first.live.get(session).json()["session_id"] is None
    first.ask("/v1/erasures/preview", {"subject": cbid}, 404)
    assert street.rows(other.id, "live") == before


@pytest.mark.parametrize("way", ["account", "buyer"])
def test_a_hold_of_an_account_that_left_keeps_the_buyer(street: Street, way: str) -> None:
    """Neither another account nor the buyer ends the hold by an erasure."""
    first, other = street.first, street.other
    cbid = first.verified(street.played)
    assert other.verified(street.played) == cbid
    ack_id, _ = other.buy(cbid, zip_=street.zip)
    other.ask("/v1/erasures", {"subject": cbid})
    hold = other.ask("/v1/holds", {"subject": cbid, "reason": "case 1"})["hold_id"]
    before, status = street.rows(other.id, "live"), other.live.get(f"/v1/buyers/{cbid}/status")
    if way == "account":
        first.ask("/v1/erasures", {"subject": cbid})
    else:
        outcome = street.operator.act(lambda opened: request_erasure(opened.privacy, cbid))
        assert outcome is ErasureOutcome.ON_HOLD
        asked = "SELECT 1 FROM erasure_requests WHERE cbid = :cbid"
        assert street.operator.rows(asked, cbid=cbid)
    assert not street.rows(first.id, "live")["verifications"]
    assert street.rows(other.id, "live") == before
    after = other.live.get(f"/v1/buyers/{cbid}/status")
    assert (after.status_code, after.json()) == (200, status.json())
    assert [one["subject"] for one in other.live.get("/v1/holds").json()["data"]] == [cbid]
    other.ask("/v1/erasures", {"subject": ack_id}, 409)
    other.ask(f"/v1/holds/{hold}/release", {})
    if way == "account":
        other.ask("/v1/erasures", {"subject": cbid})
    assert other.live.get(f"/v1/buyers/{cbid}/status").status_code == 404


@pytest.mark.parametrize("again", [True, False])
def test_an_account_that_left_relies_on_the_buyer_again_by_a_later_record(
    street: Street, again: bool
) -> None:
    """What it kept from before keeps no buyer; an acknowledgment after that does."""
    first, other = street.first, street.other
    cbid = first.verified(street.played)
    assert other.verified(street.played) == cbid
    other.buy(cbid, zip_=street.zip)
    other.ask("/v1/erasures", {"subject": cbid})
    if again:
        acknowledge(other.live, notice_id="law", session_id="later", cbid=cbid)
    first.ask("/v1/erasures", {"subject": cbid})
    found = other.live.get(f"/v1/buyers/{cbid}/status").status_code
    assert found == (200 if again else 404)
    if again:
        decided = other.live.get(f"/v1/clearances/{other.buy(cbid, zip_=street.zip)[1]}").json()
        assert decided["cleared"], decided


async def erase_as_retention(opened: bootstrap.Deployment, cbid: str) -> None:
    """As `countersign retention run` erases each record that is due."""
    plan = await plan_erasure(opened.privacy, cbid, DEPLOYMENT, with_acknowledgments=True)
    for id_ in (record.record_id for record in plan.records):
        if not id_.startswith(("ack_", "ver_")):
            continue
        due = await plan_erasure(opened.privacy, id_, DEPLOYMENT)
        await erase_planned(opened.privacy, due, ErasureReason.RETENTION)


def noted(client: httpx2.Client, *actions: str) -> list[dict[str, Any]]:
    """These entries of the audit that a key may list, oldest first."""
    found = client.get("/v1/audit", params={"limit": 100}).json()["data"]
    return [one for one in reversed(found) if one["action"] in actions]


@pytest.mark.parametrize("way", ["account", "staff", "command", "retention", "buyer"])
def test_each_account_that_loses_something_has_it_in_its_own_audit(
    desk: Desk, street: Street, way: str
) -> None:
    """Also if others erase it, with in whose name that was; it says nothing of another account."""
    first, other = street.first, street.other
    cbid = first.verified(street.played)
    assert other.verified(street.played) == cbid
    first.buy(cbid, zip_=street.zip)
    other.buy(cbid, zip_=street.zip)
    whole = {"subject": cbid, "with_acknowledgments": True}
    by, losing = "deployment", [first, other]
    if way == "account":
        first.ask("/v1/erasures", whole)
        by, losing = "account", [first]
    elif way == "staff":
        with desk.person(Role.COMPLIANCE) as person:
            person.post("/v1/erasures", whole)
            mine = person.get(f"/v1/audit?actor={person.id}&action=erased")["data"]
        about = {(one["details"]["account_id"], one["details"]["mode"]) for one in mine}
        assert about == {(first.id, "live"), (other.id, "live")}
    elif way == "command":
        street.operator.act(lambda opened: erase_as_the_command(opened, cbid))
    elif way == "retention":
        street.operator.act(lambda opened: erase_as_retention(opened, cbid))
    else:
        street.operator.act(lambda opened: request_erasure(opened.privacy, cbid))
        by = "buyer"
    for one in (first, other):
        entries = noted(one.live, "erased")
        assert bool(entries) == (one in losing)
        assert {(e["details"]["account_id"], e["details"]["mode"]) for e in entries} <= {
            (one.id, "live")
        }
        assert {e["details"]["by"] for e in entries} <= {by}
        assert noted(one.test, "erased") == []


def test_a_hold_is_in_the_audit_of_those_whose_it_is(desk: Desk, street: Street) -> None:
    """On a record or a whole account: of that account in that mode, else of the deployment."""
    first, other = street.first, street.other
    ack_id = acknowledge(first.test, notice_id="ab1263").json()["ack_id"]
    acts = ("hold_placed", "hold_released", "matter_opened", "matter_closed")
    for subject in (first.id, ack_id):
        asked = {"subject": subject, "reason": "case 1"}
        hold = first.ask("/v1/holds", asked, mode="test")["hold_id"]
        first.ask(f"/v1/holds/{hold}/release", {}, mode="test")
        orders = {"name": "Case 2", "orders": [asked]}
        matter = first.ask("/v1/matters", orders, mode="test")["matter_id"]
        if subject == ack_id:
            first.ask(f"/v1/matters/{matter}/release", {}, mode="test")
            continue
        with desk.person(Role.COMPLIANCE) as person:
            # What staff of the deployment end was the account's, which has to know.
            person.post(f"/v1/matters/{matter}/release")
            own = person.post("/v1/holds", asked)["hold_id"]
            person.post(f"/v1/holds/{own}/release")
            opened = person.post("/v1/matters", orders)["matter_id"]
            person.post(f"/v1/matters/{opened}/release")
            mine = person.get(f"/v1/audit?actor={person.id}&limit=100")["data"]
        assert len([one for one in mine if one["action"] in acts]) == 8
    each = ["hold_placed", "hold_released", "matter_opened", "hold_placed"]
    each += ["hold_released", "matter_closed"]
    in_test = [one["action"] for one in noted(first.test, *acts)]
    assert sorted(in_test) == sorted(each * 2)
    for client in (first.live, other.live, other.test):
        assert noted(client, *acts) == []


def test_a_block_goes_with_what_the_account_has_and_with_the_buyer(street: Street) -> None:
    """An account takes its own block along, and not that of another; the buyer takes all."""
    cbid = street.first.verified(street.played)
    street.other.buy(cbid, zip_=street.zip)
    for account in (street.first, street.other):
        street.block(account, cbid)
    blocked = "SELECT account_id FROM buyer_blocks"
    assert len(street.operator.rows(blocked)) == 2
    street.first.ask("/v1/erasures", {"subject": cbid, "reason": "request"})
    assert [row["account_id"] for row in street.operator.rows(blocked)] == [street.other.id]
    street.operator.act(lambda opened: request_erasure(opened.privacy, cbid))
    assert street.operator.rows(blocked) == []
