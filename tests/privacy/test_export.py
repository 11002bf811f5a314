"""What a buyer is given is what an erasure erases, whole, readable and of nobody else."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, event, select

from countersign.base.db.tables import PERSONAL_INFO, metadata
from countersign.base.errors import UnknownSubject
from countersign.base.values import Mode
from countersign.core.access.audit import AuditAction, find_audit
from countersign.core.access.reach import DEPLOYMENT, AccountReach, Reach
from countersign.core.privacy.erase import plan_erasure
from countersign.core.privacy.export import (
    WORDS,
    Known,
    all_about,
    exported_tables,
    known_by,
    packed,
    rows_of,
)
from countersign.core.privacy.model import Plan
from countersign.hosted.toolkit.screens import LOCALES
from countersign.operate import bootstrap
from countersign_evidence.offline.verify import read_zip
from tests.http.backstage import Operator
from tests.privacy.test_leaves_nothing import buy, erase, shops
from tests.remembered.conftest import Person, Shop, another
from tests.support.holding import place_hold

__all__ = ["another", "shops"]
pytestmark = [pytest.mark.long, pytest.mark.shows_personal_data]


def exported(operator: Operator, cbid: str, reach: Reach = DEPLOYMENT) -> dict[str, Any]:
    """The export as its reader has it."""
    files = read_zip(operator.act(lambda opened: _packed(opened, cbid, reach)))
    assert [*files] == ["index.html", "data.json"]
    found: dict[str, Any] = json.loads(files["data.json"])
    return found


async def _packed(
    opened: bootstrap.Deployment, cbid: str, reach: Reach, locale: str = "en"
) -> bytes:
    return await packed(await all_about(opened.privacy, cbid, reach), locale)


def snapshot(operator: Operator) -> dict[tuple[str, str], dict[str, Any]]:
    """Every row of the tables with personal columns, by table and what stays the same of it."""
    with operator.transaction() as connection:
        return {
            (table.name, place_of(table.name, dict(row))): dict(row)
            for table in metadata.sorted_tables
            if any(PERSONAL_INFO in column.info for column in table.c)
            for row in connection.execute(select(table)).mappings()
        }


def place_of(name: str, row: dict[str, Any]) -> str:
    keys = [column.name for column in metadata.tables[name].primary_key]
    return repr([row[key] for key in keys or sorted(row)])


def raw_rows(operator: Operator, cbid: str) -> set[tuple[str, str]]:
    """The rows that an export reads."""

    async def work(opened: bootstrap.Deployment) -> set[tuple[str, str]]:
        privacy = opened.privacy
        plan = await plan_erasure(privacy, cbid, DEPLOYMENT, with_acknowledgments=True)

        assert plan.buyer
        buyer = plan.buyer

        def read(connection: Connection) -> set[tuple[str, str]]:
            known = known_by(connection, plan, buyer)
            return {
                (table.name, place_of(table.name, row))
                for table in exported_tables()
                for row in rows_of(connection, plan, table, known)
            }

        return await privacy.access.database.scan(read)

    return operator.act(work)


def test_every_personal_table_is_exported_or_left_out_with_a_reason() -> None:
    """A table that is added has words in both languages, or a reason."""
    names = {table.name for table in exported_tables()}
    declared = {
        table.name
        for table in metadata.sorted_tables
        for column in table.c
        if PERSONAL_INFO in column.info and column.info[PERSONAL_INFO].subject != "person"
    }
    assert declared == names | WORDS["left_out"].keys()
    for locale in LOCALES:
        assert WORDS[locale]["tables"].keys() == names
    assert WORDS["en"].keys() == WORDS["es"].keys()
    for section in ("sections", "labels", "terms"):
        assert [*WORDS["en"][section]] == [*WORDS["es"][section]]


def test_rows_are_found_by_indexes() -> None:
    """No export reads a table of all orders from end to end."""
    names = {*WORDS["found_by"]}
    for table in exported_tables():
        indexed = {column.name for index in table.indexes for column in [*index.columns][:1]}
        first = [*table.primary_key][:1]
        keys = {*indexed, *(column.name for column in first)}
        ways = {c.name for c in table.c if PERSONAL_INFO in c.info or c.primary_key} & names
        assert ways, table.name
        assert ways <= keys, table.name


def test_no_statement_reads_a_table_from_end_to_end() -> None:
    """By the plans of the embedded database."""
    engine, asked = create_engine("sqlite://"), list[tuple[str, Any]]()
    metadata.create_all(engine)
    known = Known(frozenset({"cbid_a"}), frozenset({"cbid_a", "ack_b", "ver_c"}))
    plan = Plan(subject="cbid_a", reach=DEPLOYMENT, buyer=None, records=(), kept_until=None)
    with engine.connect() as connection:
        event.listen(connection, "before_cursor_execute", lambda *given: asked.append(given[2:4]))
        for table in exported_tables():
            rows_of(connection, plan, table, known)
        assert len(asked) == len(exported_tables())
        for statement, values in [*asked]:
            explained = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)
            assert not [row[3] for row in explained if row[3].startswith("SCAN")], statement


def test_what_is_exported_is_what_an_erasure_erases(
    operator: Operator, shops: tuple[Shop, Shop], person: Person
) -> None:
    """Both walk the same declarations: each row that changes or goes was in the export."""
    bought = buy(operator, shops, person)
    before, shown = snapshot(operator), raw_rows(operator, bought.cbid)
    erase(operator, bought.cbid, naming=True)
    after = snapshot(operator)
    gone = {place for place, row in before.items() if after.get(place) != row}
    left_out = WORDS["left_out"].keys()
    assert {place for place in gone if place[0] not in left_out} <= shown
    # What only the end of evidence deletes stays.
    ending = {"records", "clearances", "fulfilments"}
    assert {place for place in shown if place[0] not in ending} <= gone


def test_a_buyer_is_given_everything(
    operator: Operator, shops: tuple[Shop, Shop], person: Person
) -> None:
    """Orders and initials of both shops, checks with their facts, who asked, and what is kept."""
    bought = buy(operator, shops, person)

    async def hold(opened: bootstrap.Deployment) -> None:
        await place_hold(opened.privacy, bought.ack_ids[0], "the case of the century")

    operator.act(hold)
    found = exported(operator, bought.cbid)
    text = json.dumps(found)
    parts = {part["id"]: part for order in found["orders"] for part in order["parts"]}
    for ack_id, session in zip(bought.ack_ids, bought.sessions, strict=True):
        disclosed = parts[ack_id]["disclosed"]
        assert disclosed["initials_per_line"] == ["ZQ"] * 3
        assert disclosed["session_id"] == session
        assert f"1Z{session}" in text
    assert parts[bought.ack_ids[0]]["on_hold"] is True
    assert parts[bought.ack_ids[1]]["on_hold"] is False
    assert "century" not in text
    checks = [*found["checks"], *parts.values()]
    evidence = next(one["payload"] for one in checks if "payload" in one)
    assert evidence["read"]["date_of_birth"]
    assert all(one["kept_until"] for one in checks if "payload" in one)
    assert len(found["vendors"]) == 2
    assert {one["action"] for one in found["audit"]} >= {"evidence_shown", "buyer_revoked"}
    assert found["buyers"][0]["status"] == "verified"
    assert found["remembered_uses"]
    assert "a letter" not in text  # the reasons of staff
    assert found["unreadable"] == []
    assert found["tables"] == sorted(found["ends"])


def test_an_account_is_given_its_own_part(
    operator: Operator, shops: tuple[Shop, Shop], person: Person
) -> None:
    """Nothing of another account, nothing shared, and nothing of the other mode."""
    bought = buy(operator, shops, person)
    first, other = (shop.vendor.account_id for shop in shops)
    found = exported(operator, bought.cbid, AccountReach(first, Mode.LIVE))
    text = json.dumps(found)
    assert bought.ack_ids[0] in text
    for theirs in (other, bought.ack_ids[1], bought.sessions[1], "remembered", '"proofs"'):
        assert theirs not in text
    assert "audit_log" not in text
    with pytest.raises(UnknownSubject):
        exported(operator, bought.cbid, AccountReach(first, Mode.TEST))


def test_nothing_of_another_buyer_is_given(
    operator: Operator, shops: tuple[Shop, Shop], person: Person, another: Person
) -> None:
    """Also where both were in one order: a clearance that names the other is left out."""
    mine, theirs = buy(operator, shops, person), buy(operator, shops, another, 2)
    assert mine.cbid != theirs.cbid
    post = shops[0].client.post
    own = {"session_id": "crossed", "cbid": mine.cbid}
    ack = post("/v1/notices/law/acknowledge", json=own | {"initials_per_line": ["ZQ"] * 3})
    order = {
        "ack_id": ack.json()["ack_id"],
        "cbid": theirs.cbid,
        "session_id": "crossed",
        "order_reference": "number of crossed",
        "shipping_zip": theirs.person.shipping_zip,
        "product_class": "accessory",
    }
    crossed = post("/v1/clearances", json=order)
    assert not crossed.raise_for_status().json()["cleared"]
    found = json.dumps(exported(operator, mine.cbid))
    assert ack.json()["ack_id"] in found
    assert crossed.json()["clearance_id"] not in found
    for other in (theirs.cbid, *theirs.ack_ids, *theirs.sessions, *theirs.person.personal):
        assert other in mine.person.personal or other not in found


class Markup(HTMLParser):
    """Elements and headings of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags = list[str]()
        self.attributes = list[tuple[str, str | None]]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


@pytest.mark.parametrize("locale", LOCALES)
def test_the_page_is_read_offline_without_scripts(
    operator: Operator, shops: tuple[Shop, Shop], person: Person, locale: str
) -> None:
    """In the buyer's language, with headings in order, and links only within it."""
    bought = buy(operator, shops, person)
    data = operator.act(lambda opened: _packed(opened, bought.cbid, DEPLOYMENT, locale))
    page = read_zip(data)["index.html"].decode()
    markup = Markup()
    markup.feed(page)
    assert not {"script", "img", "link", "iframe", "form", "object"} & {*markup.tags}
    links = {value for name, value in markup.attributes if name in {"href", "src"}}
    ids = {f"#{value}" for name, value in markup.attributes if name == "id"}
    assert links == ids
    assert ("lang", locale) in markup.attributes
    levels = [int(tag[1]) for tag in markup.tags if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    assert WORDS[locale]["title"] in page
    assert "ZQ" in page
    assert bought.sessions[0] in page
    assert "&lt;" not in page


def test_an_erased_buyer_has_no_export(
    operator: Operator, shops: tuple[Shop, Shop], person: Person
) -> None:
    bought = buy(operator, shops, person)
    erase(operator, bought.cbid)
    with pytest.raises(UnknownSubject):
        exported(operator, bought.cbid)
    with pytest.raises(UnknownSubject):
        exported(operator, bought.ack_ids[0])


def test_the_command_writes_the_file_and_the_audit(
    operator: Operator, shops: tuple[Shop, Shop], person: Person, tmp_path: Path
) -> None:
    """`countersign subject export CBID`."""
    bought = buy(operator, shops, person)
    target = tmp_path / "all.zip"
    made = operator.deployment.run(
        "subject", "export", bought.cbid, "--output", str(target), "--json"
    )
    assert json.loads(made.stdout)["bytes"] == target.stat().st_size
    assert json.loads(read_zip(target.read_bytes())["data.json"])["cbid"] == bought.cbid
    [*_, last] = operator.act(lambda opened: opened.database.read(find_audit, bought.cbid))
    assert last.action is AuditAction.SUBJECT_EXPORTED


def test_initials_without_a_buyer_are_given_and_erased_with_the_buyer_of_their_clearance(
    operator: Operator, shops: tuple[Shop, Shop]
) -> None:
    """An acknowledgment may name no buyer until its order is cleared."""
    vendor, post = shops[0].vendor, shops[0].client.post
    played = vendor.part("verified")
    cbid = vendor.verified(played)
    named = {"session_id": "unnamed", "initials_per_line": ["QX"] * 3}
    ack_id = post("/v1/notices/law/acknowledge", json=named).json()["ack_id"]
    order = {"ack_id": ack_id, "cbid": cbid, "session_id": "unnamed", "product_class": "accessory"}
    order |= {"order_reference": "unnamed", "shipping_zip": played.shipping_zip}
    cleared = post("/v1/clearances", json=order).json()
    assert cleared["cleared"], cleared
    sent = {"carrier": "UPS", "tracking_number": "1ZUNNAMED"}
    post(f"/v1/clearances/{cleared['clearance_id']}/fulfilment", json=sent).raise_for_status()
    found = json.dumps(exported(operator, cbid))
    assert "QX" in found
    assert "1ZUNNAMED" in found
    erase(operator, cbid, naming=True)
    assert operator.rows("SELECT record_id FROM disclosures") == []


def test_a_text_of_a_vendor_in_the_form_of_a_buyer_hides_nothing(
    operator: Operator, shops: tuple[Shop, Shop], person: Person
) -> None:
    bought = buy(operator, shops, person)
    named = {"session_id": f"cart cbid_{'0' * 26}", "cbid": bought.cbid}
    body = named | {"initials_per_line": ["QX"] * 3}
    ack_id = shops[0].client.post("/v1/notices/law/acknowledge", json=body).json()["ack_id"]
    assert ack_id in json.dumps(exported(operator, bought.cbid))


def test_the_whole_response_of_a_provider_is_given(
    operator: Operator, shops: tuple[Shop, Shop]
) -> None:
    vendor = shops[0].vendor
    cbid = vendor.verify(vendor.part("underage")).json()["cbid"]
    (check,) = exported(operator, cbid)["checks"]
    assert json.loads(check["response"]["text"])["verified_outputs"]["dob"]
