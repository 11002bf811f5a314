"""An order's reference is kept with session, acknowledgment and clearance, and finds them."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from countersign.base.errors import InvalidRequest, OrderReferenceMismatch
from countersign.base.http.body import parse_body, read_query
from countersign.base.values import Mode
from countersign.core.access.account import register
from countersign.core.access.key import Principal
from countersign.core.acknowledgments.acknowledge import acknowledge
from countersign.core.acknowledgments.find import find_many
from countersign.core.acknowledgments.model import Submission
from countersign.core.acknowledgments.schemas import AcknowledgmentRequest, AcknowledgmentsQuery
from countersign.core.checkout import sessions
from countersign.core.checkout.schemas import CheckoutSessionRequest, CheckoutSessionsQuery
from countersign.core.clearances.model import ClearanceRules
from countersign.core.clearances.read import list_clearances
from countersign.core.clearances.schemas import ClearanceDecision, ClearancesQuery
from countersign.core.gate.route import encode
from tests.certificate.reader import pages_of
from tests.checkout.buyer import Shop
from tests.checkout.checks import created
from tests.clearances.desk import NO_ONE, Desk, order
from tests.http.backstage import Operator, notice_file
from tests.http.calls import acknowledge as send
from tests.http.calls import message, read_back, refusal, verify
from tests.sealing.test_erasing import files, hidden_forms
from tests.support.acts import done
from tests.support.depth import drawn
from tests.support.service import Deployment

pytestmark = [pytest.mark.both_engines, pytest.mark.long]

ORDER: Final = "N\u00ba 100042 / Quillfeather"
ZIP: Final = "94111"
LISTS: Final = ("acknowledgments", "checkout_sessions", "clearances")


def found(client: httpx2.Client, kind: str, **query: str) -> list[dict[str, Any]]:
    """All of a list, page by page of two."""
    rows: list[dict[str, Any]] = []
    query["limit"] = "2"
    while True:
        answer = client.get(f"/v1/{kind}", params=query)
        assert answer.status_code == 200, answer.text
        rows += answer.json()["data"]
        if answer.json()["next_cursor"] is None:
            return rows
        query["after"] = answer.json()["next_cursor"]


def bought(shop: Shop, reference: str | None = ORDER, **more: object) -> dict[str, Any]:
    """A cleared session in which a known buyer has initialed."""
    cbid = verify(shop.client, shipping_zip=ZIP).json()["cbid"]
    buyer = shop.buyer(cbid=cbid, shipping_zip=ZIP, order_reference=reference, **more)
    assert buyer.acknowledge().status_code == 200
    session = shop.read(buyer)
    assert session["cleared"] is True
    return session


def test_a_session_gives_its_reference_to_acknowledgment_and_clearance(shop: Shop) -> None:
    """All three return the reference, and are found by it."""
    session = bought(shop)
    bought(shop, "another", session_id="cart-8")
    bought(shop, None)
    ids = {"acknowledgments": "ack_id", "checkout_sessions": "checkout_session_id"}
    for kind in LISTS:
        [row] = found(shop.client, kind, order_reference=ORDER)
        id_ = ids.get(kind, "clearance_id")
        assert (row["order_reference"], row[id_]) == (ORDER, session[id_])
        alone = shop.client.get(f"/v1/{kind}/{row[id_]}").json()
        assert alone["order_reference"] == ORDER
        assert found(shop.client, kind, order_reference="a third") == []


def test_without_a_reference_none_is_returned(shop: Shop) -> None:
    session = bought(shop, None)
    rows = [row for kind in LISTS for row in found(shop.client, kind)]
    assert [row["order_reference"] for row in rows] == [None] * 3
    assert session["order_reference"] is None


def test_a_search_by_reference_finds_one_accounts_objects(shop: Shop, other_shop: Shop) -> None:
    bought(shop)
    for kind in LISTS:
        assert found(other_shop.client, kind, order_reference=ORDER) == []


def test_an_acknowledgment_with_another_reference_than_its_session_is_refused(
    shop: Shop, other_shop: Shop
) -> None:
    """Nothing is written. The same one, none, or one of another account's session is accepted."""
    session = shop.buyer(order_reference="A-1", session_id="cart-8").session["session_id"]
    other_shop.buyer(order_reference="B-1", session_id="cart-9")
    refused = send(shop.client, session_id=session, order_reference="A-2")
    assert refusal(refused) == (409, "order_reference_mismatch")
    assert found(shop.client, "acknowledgments") == []
    for reference in ("A-1", None):
        taken = send(shop.client, session_id=session, order_reference=reference)
        assert taken.status_code == 200, taken.text
        assert read_back(shop.client, taken.json()["ack_id"])["order_reference"] == reference
    assert send(shop.client, session_id="cart-9", order_reference="A-2").status_code == 200
    assert send(shop.client, order_reference="A-2").status_code == 200


def test_sessions_of_the_other_mode_bind_no_reference(shop: Shop, operator: Operator) -> None:
    """A vendor may use one session id in both modes, and each mode has its own orders."""
    operator.publish(notice_file("of-both-modes", "1"))
    session = shop.buyer(order_reference="A-1", session_id="cart-10").session["session_id"]
    asked = {"notice_id": "of-both-modes", "session_id": session, "order_reference": "A-2"}
    assert refusal(send(shop.client, **asked)) == (409, "order_reference_mismatch")
    taken = send(shop.vendor.client("live"), **asked)
    assert taken.status_code == 200, taken.text


def test_a_session_has_links_of_one_reference(shop: Shop, other_shop: Shop) -> None:
    """Also after the first link was given up; a link without one may be first or follow.

    An acknowledgment binds as well; another account has sessions of its own.
    """
    assert send(shop.client, session_id="cart-8", order_reference="A-1").status_code == 200
    assert send(shop.client, session_id="cart-9").status_code == 200
    for session in ("cart-7", "cart-8", "cart-9"):
        for reference in (None, "A-1", "A-1"):
            link = shop.buyer(session_id=session, order_reference=reference)
            assert link.decline().status_code == 200
        refused = shop.create(session_id=session, order_reference="A-2")
        assert refusal(refused) == (409, "order_reference_mismatch")
        assert other_shop.create(session_id=session, order_reference="A-2").status_code == 200
    assert found(shop.client, "checkout_sessions", order_reference="A-2") == []


class Asking:
    """A vendor who asks for clearances of one acknowledgment."""

    def __init__(
        self, client: httpx2.Client, acknowledged: str | None, session_id: str = "cs_1"
    ) -> None:
        self.client, self.session_id = client, session_id
        sent = send(client, session_id=session_id, order_reference=acknowledged)
        cbid = verify(client, shipping_zip=ZIP).json()["cbid"]
        self.order = {"ack_id": sent.json()["ack_id"], "cbid": cbid, "shipping_zip": ZIP}

    def ask(self, reference: str | None, **more: object) -> httpx2.Response:
        body = self.order | {"session_id": self.session_id} | more
        body |= {} if reference is None else {"order_reference": reference}
        return self.client.post("/v1/clearances", json=body)

    def decided(self, reference: str | None, **more: object) -> str:
        answer = self.ask(reference, **more)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["clearance_id"])

    def shown(self, clearance_id: str) -> str | None:
        answer = self.client.get(f"/v1/clearances/{clearance_id}").json()
        reference: str | None = answer["order_reference"]
        return reference


def test_a_clearance_with_another_reference_than_its_acknowledgment_is_refused(
    shop: Shop,
) -> None:
    """No decision is made."""
    vendor = Asking(shop.client, "A-1")
    assert refusal(vendor.ask("A-2")) == (409, "order_reference_mismatch")
    assert found(shop.client, "clearances") == []


def test_a_clearance_without_a_reference_gets_that_of_its_acknowledgment(shop: Shop) -> None:
    """Whether it is granted or not, and also for a request that does not name a cleared order."""
    vendor = Asking(shop.client, "A-1")
    refused = vendor.decided(None, product_class="barrel")
    granted = vendor.decided(None)
    named = vendor.decided("A-1")
    assert vendor.decided(None) == named != granted
    rows = found(shop.client, "clearances", order_reference="A-1")
    assert [row["clearance_id"] for row in rows] == [named, granted, refused]
    assert [row["order_reference"] for row in rows] == ["A-1"] * 3


def test_a_decision_says_whether_its_request_named_the_order(shop: Shop) -> None:
    """Each answer about its own request; the stored clearance about the one that made it."""
    vendor = Asking(shop.client, "A-1")
    answers = [vendor.ask(reference).json() for reference in (None, "A-1", None, "A-1")]
    assert [answer["order_named"] for answer in answers] == [False, True, False, True]
    assert [answer["reasons"] for answer in answers] == [[]] * 4
    unnamed, named = (answers[0]["clearance_id"], answers[1]["clearance_id"])
    assert [answer["clearance_id"] for answer in answers] == [unnamed, named, named, named]
    rows = found(shop.client, "clearances")
    stored = {row["clearance_id"]: row["order_named"] for row in rows}
    assert stored == {unnamed: False, named: True}


def test_a_reference_sent_with_the_clearance_is_stored_there(shop: Shop) -> None:
    """An earlier clearance without a reference is decided again; another reference refuses."""
    vendor = Asking(shop.client, None)
    first = vendor.decided(None)
    named = vendor.decided("A-1")
    assert named != first
    assert [vendor.decided(reference) for reference in ("A-1", None)] == [named, named]
    assert refusal(vendor.ask("A-2")) == (409, "order_reference_mismatch")
    assert [vendor.shown(one) for one in (first, named)] == [None, "A-1"]
    rows = found(shop.client, "clearances", order_reference="A-1")
    assert [row["clearance_id"] for row in rows] == [named]
    assert found(shop.client, "acknowledgments", order_reference="A-1") == []


def test_a_clearance_with_another_reference_than_its_checkout_session_is_refused(
    shop: Shop,
) -> None:
    """Also where the acknowledgment came without one."""
    vendor = Asking(shop.client, None)
    shop.buyer(session_id="cs_1", order_reference="A-1", collect=["acknowledgment"])
    assert refusal(vendor.ask("A-2")) == (409, "order_reference_mismatch")
    assert vendor.shown(vendor.decided("A-1")) == "A-1"


def test_a_session_made_later_does_not_refuse_the_repeat_of_a_clearance(shop: Shop) -> None:
    """Whether it is the acknowledgment's reference or the clearance's; other orders are refused."""
    for acknowledged in ("A-1", None):
        vendor = Asking(shop.client, acknowledged, f"cs_{acknowledged}")
        granted = vendor.decided("A-1")
        # An acknowledgment without a reference binds its session to none.
        link = shop.create(session_id=vendor.session_id, order_reference="A-2")
        assert link.status_code == (409 if acknowledged else 200)
        assert vendor.decided("A-1") == granted
        assert refusal(vendor.ask("A-3")) == (409, "order_reference_mismatch")
        if acknowledged is None:
            other = vendor.ask("A-1", product_class="accessory")
            assert refusal(other) == (409, "order_reference_mismatch")


class Ordering:
    """A vendor's order on the desk: of an acknowledgment without a reference, cleared at will."""

    def __init__(self, desk: Desk, notice_id: str) -> None:
        desk.publish(notice_file(notice_id, "1"))
        self.desk, self.who = desk, desk.account()
        self.ack_id = desk.acknowledge(self.who, notice_id, "cs_1")
        self.cbid = desk.sandbox_buyer(self.who, "vs_1", ZIP)

    def clear(self, reference: str | None, **more: object) -> ClearanceDecision:
        asked = order(self.ack_id, self.cbid, "cs_1", ZIP, order_reference=reference, **more)
        return self.desk.clear(self.who, asked)


def test_an_expired_clearance_sets_no_order_reference(desk: Desk) -> None:
    """Until the second in which it expires, it does."""
    vendor = Ordering(desk, "of-expired-references")
    first = vendor.clear("A-1")
    assert first.expires_at is not None
    desk.clock.advance(first.expires_at - desk.clock.now - timedelta(milliseconds=1))
    with pytest.raises(OrderReferenceMismatch):
        vendor.clear("A-2")
    desk.clock.advance(timedelta(milliseconds=1))
    again = vendor.clear("A-2")
    assert (again.cleared, again.clearance_id != first.clearance_id) == (True, True)


def test_the_clearance_of_another_order_does_not_set_this_ones_reference(desk: Desk) -> None:
    """The decision is about the real obstacle: the acknowledgment is used."""
    vendor = Ordering(desk, "of-other-references")
    assert vendor.clear("A-1").cleared
    address = {"line1": "1 Main St", "city": "San Francisco", "state": "CA", "postal_code": ZIP}
    other = vendor.clear("A-2", shipping_address=address)
    assert other.reasons == ("acknowledgment_already_used",)


def test_naming_a_cleared_order_does_not_prolong_its_clearance(desk: Desk) -> None:
    vendor = Ordering(desk, "of-named-later")
    first = vendor.clear(None)
    desk.clock.advance(timedelta(hours=5))
    named = vendor.clear("A-1")
    assert named.clearance_id != first.clearance_id
    assert named.expires_at == first.expires_at
    assert vendor.clear("A-1") == named
    assert first.expires_at is not None
    desk.clock.advance(first.expires_at - desk.clock.now)
    assert vendor.clear("A-1").expires_at == desk.clock.now + timedelta(hours=24)


@pytest.mark.parametrize("way", ["body", "query"])
@pytest.mark.parametrize("reference", ["", "x" * 65, "\u0958" * 33, "e\u0301" * 65, "\u0301" * 300])
def test_a_reference_that_is_empty_or_too_long_is_refused(
    shop: Shop, way: str, reference: str
) -> None:
    """The limit counts composed characters; the error names the field."""
    for kind in LISTS:
        if way == "query":
            answer = shop.client.get(f"/v1/{kind}", params={"order_reference": reference})
        elif kind == "acknowledgments":
            answer = send(shop.client, order_reference=reference)
        elif kind == "checkout_sessions":
            answer = shop.create(order_reference=reference)
        else:
            answer = Asking(shop.client, None).ask(reference)
        assert refusal(answer) == (400, "invalid_request")
        assert "order_reference" in message(answer)


TEXTS = st.text(min_size=1, max_size=80) | st.text("e\u0301\u0958\u1100\u1161\u11a8x", min_size=1)


@pytest.mark.one_engine
@settings(max_examples=drawn(300), deadline=None)
@given(TEXTS)
@example("e\u0301" * 64)
@example("\u03b1\u0313\u0300\u0345" * 64)
@example("\u0958" * 32)
@example("x" * 64)
@example("x" * 65)
def test_a_reference_is_its_composed_characters_if_these_are_64_at_most(given_: str) -> None:
    """In bodies and in queries; composed text stays unchanged."""
    composed = unicodedata.normalize("NFC", given_)
    fits = len(composed) <= 64 and "\x00" not in given_ and len(given_) <= 256
    body = encode({"initials_per_line": [], "order_reference": given_})
    query = str(httpx2.QueryParams({"order_reference": given_})).encode()

    def read() -> list[str | None]:
        asked = read_query(query, AcknowledgmentsQuery)
        assert asked is not None
        return [parse_body(body, AcknowledgmentRequest).order_reference, asked.order_reference]

    if fits:
        assert read() == [composed, composed]
        return
    with pytest.raises(InvalidRequest, match="order_reference"):
        parse_body(body, AcknowledgmentRequest)
    with pytest.raises(InvalidRequest, match="order_reference"):
        read_query(query, AcknowledgmentsQuery)


def test_an_order_is_found_in_any_unicode_composition(shop: Shop) -> None:
    sent = send(shop.client, order_reference="Cafe\u0301 7")
    [row] = found(shop.client, "acknowledgments", order_reference="Caf\u00e9 7")
    assert (row["ack_id"], row["order_reference"]) == (sent.json()["ack_id"], "Caf\u00e9 7")
    assert found(shop.client, "acknowledgments", order_reference="Cafe\u0301 7") == [row]


Line = tuple[int, Mode, int | None, bool]
"""An order: its account, mode and reference, and whether its clearance names it."""
NOTICE = "of-order-references"


@settings(max_examples=drawn(6), deadline=None)
@given(
    lines=st.lists(
        st.tuples(
            st.integers(0, 1), st.sampled_from(Mode), st.none() | st.integers(0, 2), st.booleans()
        ),
        min_size=1,
        max_size=8,
    )
)
def test_lists_by_reference_match_those_of_an_oracle(desk: Desk, lines: Sequence[Line]) -> None:
    """For each account, mode and reference, page by page; the oracle is a list comprehension."""
    desk.publish(notice_file(f"{NOTICE}-{id(lines)}", "1"))
    notice_id = f"{NOTICE}-{id(lines)}"
    parties = [desk.account() for _ in range(2)]
    for party in parties:
        desk.do(done(register, desk.deployment.access, party.account_id, "https://shop.example"))
        desk.rules(party, ClearanceRules(order_reference_required=False))
    made: list[tuple[Principal, int | None, str, str, str]] = []
    for account, mode, number, names_it in lines:
        who = replace(parties[account], mode=mode)
        made.append((who, number, *placed(desk, who, notice_id, number, names_it=names_it)))
    for who in {one[0] for one in made}:
        for number in range(3):
            own = [one for one in made if one[:2] == (who, number)]
            assert listed(desk, who, f"order {number}") == tuple(
                sorted([str(one[place]) for one in own], reverse=True) for place in (2, 3, 4)
            )


def placed(
    desk: Desk, who: Principal, notice_id: str, number: int | None, *, names_it: bool
) -> tuple[str, str, str]:
    """A session, an acknowledgment and a decision of one order."""
    reference = None if number is None else f"order {number}"
    session_id = f"cs_{id(who)}_{number}"
    wanted = CheckoutSessionRequest(
        return_url="https://shop.example/",
        session_id=session_id,
        notice_id=notice_id,
        order_reference=reference,
    )
    session = desk.do(created(desk.deployment.checkout, who, wanted))
    notice = desk.do(desk.deployment.notices.registry.in_force(notice_id, who.mode))
    submission = Submission(
        initials_per_line=["JD"] * len(notice.content.bullets),
        session_id=session_id,
        cbid=None,
        notice_version=None,
        origin=NO_ONE,
        order_reference=reference,
    )
    ack = desk.do(acknowledge(desk.deployment.acknowledgments, who, notice, submission))
    asked = order(ack.id, "cbid_nobody", session_id, ZIP)
    if names_it and reference is not None:
        asked = order(ack.id, "cbid_nobody", session_id, ZIP, order_reference=reference)
    return session.id, ack.id, desk.clear(who, asked).clearance_id


def listed(desk: Desk, who: Principal, reference: str) -> tuple[list[str], list[str], list[str]]:
    """The identifiers found by a reference, two to a page."""
    rooms = desk.deployment
    found_: tuple[list[str], list[str], list[str]] = [], [], []
    after = None
    while True:
        wanted = CheckoutSessionsQuery(order_reference=reference, after=after, limit=2)
        page = desk.do(sessions.list_checkout_sessions(rooms.checkout, who, wanted))
        found_[0].extend(one.checkout_session_id for one in page.data)
        after = page.next_cursor
        if after is None:
            break
    after = None
    while True:
        query = AcknowledgmentsQuery(order_reference=reference, after=after, limit=2)
        acks, after = desk.do(find_many(rooms.acknowledgments, who, query))
        found_[1].extend(one.ack_id for one in acks)
        if after is None:
            break
    while True:
        asked = ClearancesQuery(order_reference=reference, after=after, limit=2)
        decided = desk.do(list_clearances(rooms.clearances, who, asked))
        found_[2].extend(one.clearance_id for one in decided.data)
        if (after := decided.next_cursor) is None:
            return found_


def test_an_erased_reference_is_found_no_more_in_any_file(own_shop: Shop) -> None:
    """Of session, acknowledgment and clearance, with the keyed hash; the kept proof stays valid."""
    session = bought(own_shop)
    kept = bought(own_shop, "another order", session_id="cart-8")
    own_shop.server.deployment.run("erase", session["ack_id"], "--yes")
    for kind in LISTS:
        assert found(own_shop.client, kind, order_reference=ORDER) == []
        assert len(found(own_shop.client, kind, order_reference="another order")) == 1
    for kind, id_ in zip(LISTS, ("ack_id", "checkout_session_id", "clearance_id"), strict=True):
        alone = own_shop.client.get(f"/v1/{kind}/{session[id_]}").json()
        assert alone["order_reference"] is None
    assert read_back(own_shop.client, kept["ack_id"])["order_reference"] == "another order"
    data = files(own_shop.server.deployment.data_dir)
    assert not [form for form in hidden_forms(ORDER) if form in data]


@pytest.mark.shows_personal_data
def test_an_operator_finds_an_order_and_prints_its_certificate(
    own_shop: Shop, tmp_path: Path
) -> None:
    """By the reference alone, at any account; each look is in the audit, without the order."""
    session, deployment = bought(own_shop), own_shop.server.deployment
    bought(own_shop, "another order", session_id="cart-8")
    ack_id = session["ack_id"]
    [row] = json.loads(run(deployment, "list", "--order-reference", ORDER, "--json"))
    assert (row["ack_id"], row["order_reference"]) == (ack_id, ORDER)
    assert row["clearance_id"] == session["clearance_id"]
    mine = ("list", "--session", "cart-7", "--account", own_shop.vendor.account_id)
    assert [line.split("  ")[4] for line in run(deployment, *mine).splitlines()] == [ORDER]
    assert run(deployment, *mine, "--mode", "live") == ""
    found_ = json.loads(run(deployment, "show", ack_id, "--json"))
    api = read_back(own_shop.client, ack_id)
    for name in ("order_reference", "initials_per_line", "session_id", "ip"):
        assert found_[name] == api[name]
    target = tmp_path / "certificate.pdf"
    run(deployment, "certificate", ack_id, "--output", str(target))
    page = " ".join(pages_of(target.read_bytes())[0].split())
    assert f"Which order order {ORDER}; checkout session cart-7 as the vendor names it" in page
    audit = json.loads(deployment.run("audit", "--json").stdout)
    did = [(entry["action"], entry["subject"]) for entry in audit[-5:]]
    assert did == [
        ("acknowledgments_listed", "acknowledgments"),
        ("acknowledgments_listed", own_shop.vendor.account_id),
        ("acknowledgments_listed", own_shop.vendor.account_id),
        ("acknowledgment_shown", ack_id),
        ("certificate_written", ack_id),
    ]
    assert "100042" not in json.dumps(audit)


def test_an_impossible_look_is_not_in_the_audit(own_shop: Shop) -> None:
    """An invalid search is refused before, and a clearance is no acknowledgment."""
    session, deployment = bought(own_shop), own_shop.server.deployment
    before = deployment.read("audit")
    for option in ("--order-reference", "--session"):
        for text in ("", "\udcff"):
            refused = deployment.run("acknowledgments", "list", option, text, check=False)
            assert (refused.returncode, refused.stdout) == (1, "")
            assert f"{option} must be UTF-8" in refused.stderr
    refused = deployment.run("acknowledgments", "show", session["clearance_id"], check=False)
    assert "does not exist" in refused.stderr
    assert refused.returncode != 0
    assert deployment.read("audit") == before


def run(deployment: Deployment, *words: str) -> str:
    """The standard output of a command of this group."""
    return deployment.run("acknowledgments", *words).stdout
