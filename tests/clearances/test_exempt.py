"""Orders without a notice, by an exemption that a rule of the notice names."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from msgspec import UNSET, convert

from countersign.base.errors import InvalidRequest, NotFound
from countersign.base.values import Mode
from countersign.core.access.key import Principal
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.clearances.clear import clear_order, prepare_order
from countersign.core.clearances.read import get_clearance
from countersign.core.clearances.schemas import Clearance, ClearanceDecision, ClearanceRequest
from countersign.core.notices.notice_file import shipped_notice_files
from countersign.core.notices.publish import review
from countersign.core.notices.requirements import RuleVersion
from countersign.core.privacy.export import WORDS, all_about, packed
from countersign.core.privacy.retention import list_due
from countersign_evidence.offline.verify import read_zip
from countersign_evidence.verification import Conclusion, verify_file
from tests.certificate.reader import words_of
from tests.clearances.desk import Desk, MovingClock, open_desk
from tests.clearances.overriding import Shop
from tests.dossiers.orders import Orders, kinds, said
from tests.http.backstage import notice_file
from tests.support.acts import done
from tests.support.engines import ENGINES, Once, engine_server

ZIP = "94110"
DAY = timedelta(days=1)
RULE = """
[[applies_to.exemptions]]
kind = "licensed_dealer"
needs = ["number", "expires_on", "evidence_reference"]
waives = ["notice"]
source = "Law of this test § 2"
"""
SOURCE = "Law of this test § 2"
OTHER_LAW = """
[applies_to]
version = "1"
source = "another law"
product_classes = ["{class_}"]
delivered_to = ["CA"]
residents_of = []
identity_checks = []
"""
DEALER = {
    "reason": "licensed dealer",
    "kind": "licensed_dealer",
    "number": "1-23-456-78-9A-12345",
    "evidence_reference": "doc-2931",
}


def with_rule(rule: str = RULE, version: str = "2") -> str:
    """The shipped notice, with exemptions in a rule of this version."""
    (file,) = shipped_notice_files().values()
    return file.decode().replace('\nversion = "1"\n', f'\nversion = "{version}"\n') + rule


class Dealers:
    """A vendor who sells to dealers."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.who = desk, desk.account()
        self.cbid = desk.sandbox_buyer(self.who, "vs_1", ZIP)

    def exemption(self, days: int = 30, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
        expires_on = (self.desk.clock.now + days * DAY).date().isoformat()
        return {**DEALER, "expires_on": expires_on} | more

    def order(self, **more: object) -> ClearanceRequest:
        members: dict[str, object] = {"cbid": self.cbid, "session_id": "cs_1", "shipping_zip": ZIP}
        members |= {"product_class": "accessory", "exemption": self.exemption()} | more
        return convert(members, ClearanceRequest)

    def ask(self, who: Principal | None = None, **more: object) -> ClearanceDecision:
        return self.desk.clear(who or self.who, self.order(**more))

    def read(self, clearance_id: str) -> Clearance:
        room = self.desk.deployment.clearances
        return self.desk.do(get_clearance(room, self.who, clearance_id))


@pytest.fixture(scope="module", params=ENGINES)
def desk(
    request: pytest.FixtureRequest, once: Once, tmp_path_factory: pytest.TempPathFactory
) -> Desk:
    """Give a deployment whose only notice has a rule with an exemption, on each engine."""
    place = tmp_path_factory.mktemp(f"exempt-{request.param}") / "data"
    desk = once(place, lambda: open_desk(place, MovingClock(), engine_server(request)))
    desk.publish(with_rule(), reviewed=False)
    return desk


@pytest.mark.both_engines
def test_an_order_that_the_rule_exempts_is_cleared_without_an_acknowledgment(desk: Desk) -> None:
    """The clearance says what was asserted, and by which rule and source the notice was waived."""
    shop = Dealers(desk)
    answer = shop.ask(order_reference="1001")
    assert (answer.cleared, answer.reasons) == (True, ())
    assert answer.obligations == ({"type": "compared", "what": "zip"},)
    found = shop.read(answer.clearance_id)
    assert found.ack_id is None
    assert found.token == answer.token
    assert found.exemption == convert(shop.exemption(), type(found.exemption))
    assert found.exempt_from is not UNSET
    (waived,) = found.exempt_from
    assert (waived.notice_id, waived.version) == ("ab1263", "2026-01-01-incomplete")
    assert waived.rule == RuleVersion(id="ab1263", version="2")
    assert waived.exemption is not None
    assert (waived.exemption.kind, waived.exemption.source) == ("licensed_dealer", SOURCE)


def test_a_licence_without_an_end_in_sight_is_no_error(desk: Desk) -> None:
    shop = Dealers(desk)
    assert shop.ask(exemption=shop.exemption(expires_on="9999-12-31")).cleared


def test_an_erased_clearance_has_one_erasure(desk: Desk) -> None:
    """It is both the order's first clearance and one of its order."""
    shop = Dealers(desk)
    cleared = shop.ask().clearance_id
    assert desk.erase(cleared) == (cleared,)


def test_the_same_order_gets_the_same_clearance(desk: Desk) -> None:
    shop = Dealers(desk)
    exemption = shop.exemption()
    first = shop.ask(exemption=exemption)
    assert shop.ask(exemption=exemption) == first
    desk.clock.advance(timedelta(hours=25))
    later = shop.ask(exemption=exemption)
    assert later.cleared
    assert later.clearance_id != first.clearance_id
    assert shop.ask(exemption=exemption) == later


@pytest.mark.both_engines
def test_equal_orders_at_the_same_moment_get_one_clearance(desk: Desk) -> None:
    shop, room = Dealers(desk), desk.deployment.clearances
    first, second = (desk.do(prepare_order(room, shop.who, shop.order())) for _ in range(2))

    async def both() -> set[str]:
        done = await asyncio.gather(clear_order(first), clear_order(second))
        assert all(one.decision.cleared for one in done)
        return {one.decision.clearance_id for one in done}

    (found,) = desk.do(both())
    assert shop.ask().clearance_id == found


def test_one_session_exempts_one_order(desk: Desk) -> None:
    shop = Dealers(desk)
    shop.ask()
    other = shop.ask(product_class="firearm_accessory")
    assert other.reasons == ("acknowledgment_already_used",)


def test_another_licence_is_another_order(desk: Desk) -> None:
    """A release by hand is for one licence too; with an acknowledgment none of it counts."""
    shop = Dealers(desk)
    refused = shop.ask(exemption=shop.exemption(days=-1))
    by_hand = Shop(desk, shop.who, refused.clearance_id, None)
    made = by_hand.override(by_hand.person())
    again = shop.ask(exemption=shop.exemption(days=-1))
    assert (again.overridden, again.override_id) == (True, made.override_id)
    other = shop.ask(exemption=shop.exemption(days=-1, number="9"))
    assert "exemption_expired" in other.reasons
    assert other.overridden is UNSET
    assert shop.ask(session_id="cs_3").cleared
    renewed = shop.ask(session_id="cs_3", exemption=shop.exemption(days=31))
    assert renewed.reasons == ("acknowledgment_already_used",)
    named: dict[str, Any] = {
        "session_id": "cs_2",
        "ack_id": desk.acknowledge(shop.who, "ab1263", "cs_2"),
    }
    first = shop.ask(**named)
    assert shop.ask(**named, exemption=None) == first


def test_another_account_or_mode_has_none_of_it(desk: Desk) -> None:
    shop, other = Dealers(desk), Dealers(desk)
    first = shop.ask()
    own = other.ask()
    assert own.cleared
    assert own.clearance_id != first.clearance_id
    with pytest.raises(NotFound):
        other.read(first.clearance_id)
    as_ack = shop.ask(ack_id=first.clearance_id)
    assert "acknowledgment_not_found" in as_ack.reasons


def test_the_licence_ends_by_the_clock_of_the_decision(desk: Desk) -> None:
    """A clearance never lasts longer than the licence."""
    shop = Dealers(desk)
    exemption = shop.exemption(days=0)
    first = shop.ask(exemption=exemption)
    assert first.cleared
    assert first.expires_at is not None
    assert first.expires_at.date() == (desk.clock.now + DAY).date()
    assert first.expires_at.hour == 0
    desk.clock.advance(DAY)
    assert shop.ask(exemption=exemption).reasons == ("exemption_expired",)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"number": None}, "exemption_facts_missing"),
        ({"number": " "}, "exemption_facts_missing"),
        ({"number": "\u200b"}, "exemption_facts_missing"),
        ({"evidence_reference": "\t\u00a0"}, "exemption_facts_missing"),
        ({"evidence_reference": None}, "exemption_facts_missing"),
        ({"expires_on": "2020-01-01"}, "exemption_expired"),
        ({"kind": "law_enforcement"}, "exemption_not_named"),
        ({"kind": None}, "exemption_not_named"),
    ],
)
def test_an_exemption_that_the_rule_does_not_have_clears_nothing(
    desk: Desk, changed: dict[str, Any], reason: str
) -> None:
    shop = Dealers(desk)
    answer = shop.ask(exemption=shop.exemption(**changed))
    assert (answer.cleared, answer.reasons) == (False, (reason,))


def test_only_the_notice_is_waived(desk: Desk) -> None:
    """A barrel, another ZIP code and an unknown buyer are refused as ever."""
    shop = Dealers(desk)
    for classes in (["barrel"], ["accessory", "barrel"]):
        answer = shop.ask(product_class=None, product_classes=classes)
        assert answer.reasons == ("notice_not_sufficient",), classes
    assert shop.ask(shipping_zip="94111").reasons == ("zip_mismatch",)
    assert shop.ask(cbid="cbid_test_nobody").reasons == ("buyer_not_found",)
    with pytest.raises(InvalidRequest):
        shop.ask(exemption=None)


def test_every_notice_has_to_be_waived(desk: Desk) -> None:
    shop = Dealers(desk)
    applies_to = OTHER_LAW.format(class_="of_another_law")
    desk.publish(notice_file("another-law", "1", applies_to=applies_to), reviewed=False)
    classes: dict[str, Any] = {
        "product_class": None,
        "product_classes": ["accessory", "of_another_law"],
    }
    assert shop.ask(**classes).reasons == ("exemption_not_named",)
    assert shop.ask().cleared


def test_live_keys_need_a_reviewed_rule(desk: Desk) -> None:
    shop = Dealers(desk)
    who = desk.account(Mode.LIVE)
    answer = shop.ask(who, cbid=desk.live_buyer(who, ZIP), order_reference="1001")
    assert "exemption_not_named" in answer.reasons


def test_a_live_order_is_exempt_by_a_reviewed_rule(tmp_path: Path) -> None:
    """By no other one, and of a complete text."""
    with open_desk(tmp_path / "data", MovingClock(), None) as desk:
        shop, who = Dealers(desk), desk.account(Mode.LIVE)
        named = {"cbid": desk.live_buyer(who, ZIP), "order_reference": "1001"}
        file = re.sub(r"text_gaps = \[.*?\]\n", "", with_rule(), flags=re.DOTALL)
        file = file.replace("2026-01-01-incomplete", "2026-01-01").replace("three firearms", "3")
        desk.publish(file)
        assert shop.ask(who, **named).reasons == ("exemption_not_named",)
        said: dict[str, Any] = {
            "by": "A. Reader",
            "against": "https://law.example/text",
            "rule": "2",
        }
        desk.do(done(review, desk.deployment.notices, "ab1263", "2026-01-01", **said))
        desk.do(desk.deployment.notices.registry.notices(fresh=True))
        assert shop.ask(who, **named).cleared


def test_with_an_acknowledgment_the_exemption_is_only_shown(desk: Desk) -> None:
    shop = Dealers(desk)
    ack_id = desk.acknowledge(shop.who, "ab1263", "cs_1")
    answer = shop.ask(ack_id=ack_id, exemption={"reason": "licensed dealer"})
    assert answer.cleared
    found = shop.read(answer.clearance_id)
    assert (found.ack_id, found.exempt_from) == (ack_id, UNSET)
    assert found.exemption is not None


@pytest.mark.both_engines
def test_a_shipped_order_stays_cleared_when_the_licence_has_ended(desk: Desk) -> None:
    shop = Dealers(desk)
    exemption = shop.exemption(days=1)
    first = shop.ask(exemption=exemption)
    desk.fulfil(shop.who, first.clearance_id, carrier="a carrier")
    desk.clock.advance(5 * DAY)
    again = shop.ask(exemption=exemption)
    assert (again.clearance_id, again.already_shipped) == (first.clearance_id, True)


@pytest.mark.both_engines
def test_an_erasure_takes_the_licence(desk: Desk) -> None:
    """With the buyer: the decision, its reports, and what bound the order."""
    shop = Dealers(desk)
    first = shop.ask()
    desk.fulfil(shop.who, first.clearance_id, carrier="a carrier")
    erased = desk.erase(shop.cbid, with_acknowledgments=True)
    assert {one[:3] for one in erased} == {"clr", "ful", "ver"}
    found = shop.read(first.clearance_id)
    assert (found.exemption, found.cbid) == (None, None)
    assert found.exempt_from is not UNSET


@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_erasure_by_any_clearance_takes_the_whole_order(desk: Desk, place: int) -> None:
    """And one by a refused decision, which can name anything, takes that alone."""
    shop = Dealers(desk)
    ids, exemption = list[str](), shop.exemption()
    for _ in range(3):
        ids.append(shop.ask(exemption=exemption).clearance_id)
        desk.clock.advance(timedelta(hours=25))
    report = desk.fulfil(shop.who, ids[-1], carrier="a carrier")
    forged = shop.ask(ack_id=ids[0]).clearance_id
    other = Dealers(desk).ask(ack_id=ids[0]).clearance_id
    assert desk.erase(other) == (other,)
    assert {*desk.erase(forged)} == {forged}
    assert {*desk.erase(ids[place])} == {*ids, report.fulfilment_id}


@pytest.mark.shows_personal_data
def test_a_buyers_export_has_the_licence_and_names_no_staff(desk: Desk) -> None:
    """Nor the shop's user; what only looks like an acknowledgment is not called one."""
    shop, privacy = Dealers(desk), desk.deployment.privacy
    by_hand = Shop(desk, shop.who, shop.ask(shipping_zip="94111").clearance_id, None)
    by_hand.override(by_hand.person(), claimed_user="shop user 17")
    assert shop.ask(session_id="cs_2").cleared
    data = desk.do(packed(desk.do(all_about(privacy, shop.cbid, DEPLOYMENT)), "en"))
    files = {name: content.decode() for name, content in read_zip(data).items()}
    for name, content in files.items():
        assert "1-23-456-78-9A-12345" in content, name
        for staff in (by_hand.person().actor, "case 4712", "shop user 17"):
            assert staff not in content, (name, staff)
    for label in ("Exemption, as the shop asserted it", "Last day of the licence"):
        assert f"<dt>{label}</dt>" in files["index.html"]
    assert WORDS["en"]["terms"]["override"] in files["index.html"]
    assert "<dt>Acknowledgment</dt>" not in files["index.html"]


def test_a_dossier_shows_the_exemption_as_the_vendors_assertion(desk: Desk) -> None:
    """No reader takes it for a check, and a changed one fails."""
    shop = Dealers(desk)
    first = shop.ask()
    data = Orders(desk).dossier(shop.who, first.clearance_id)
    assert "clearance" in kinds(data)
    (clearance,) = said(data).of("clearance")
    assert clearance.shown["exemption"] == shop.exemption()
    with ZipFile(BytesIO(data)) as packed:
        pdf = packed.read("dossier.pdf")
    assert "nobody here checks the licence with an authority" in words_of(pdf)
    found = verify_file(data)
    assert found.outcome is Conclusion.CONSISTENT
    assert (
        "by the vendor's assertion of an exemption, which nothing here checks" in found.summary[2]
    )
    name = f"records/{first.clearance_id}.json"
    with ZipFile(BytesIO(data)) as packed:
        record = packed.read(name)
    forged = record.replace(SOURCE.encode(), b"Law of this test \xc2\xa7 9")
    assert forged != record
    assert data.count(record) > 0
    assert verify_file(data.replace(record, forged)).outcome is Conclusion.FAILED


def test_the_licence_is_kept_as_long_as_the_notice_says(desk: Desk) -> None:
    """With the order's other records; refused ones go after a year."""
    shop = Dealers(desk)
    first, refused = shop.ask(), shop.ask(session_id="cs_2", shipping_zip="94111")
    report = desk.fulfil(shop.who, first.clearance_id, carrier="a carrier")

    async def due() -> list[str]:
        return [one.record_id async for one in list_due(desk.deployment.privacy, DEPLOYMENT)]

    desk.clock.advance(2 * 365 * DAY)
    found = desk.do(due())
    assert refused.clearance_id in found
    assert first.clearance_id not in found
    desk.clock.advance(6 * 365 * DAY)
    assert first.clearance_id in desk.do(due())
    erased = desk.erase(first.clearance_id)
    assert {*erased} == {first.clearance_id, report.fulfilment_id}
