"""Everything personal has an end, that comes by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Connection, delete, func, select, text

from countersign.base.config import load_settings
from countersign.base.db.engine import database_url
from countersign.base.db.tables import deployment, personal_columns
from countersign.base.values import from_ns, to_ms
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.buyers import admin
from countersign.core.buyers.sql import ERASED_BUYER, erased_name
from countersign.core.checkout.expiry import sweep
from countersign.core.log.blind_runs import merge
from countersign.core.privacy.requests import ErasureOutcome
from countersign.core.privacy.retention import BUYERS_KEPT, RETAINED, Retained, retain
from countersign.operate import bootstrap
from countersign.operate.housekeeping import delete_outdated
from countersign.operate.serving_role import grants
from tests.http.backstage import Operator, notice_file
from tests.privacy.left import Value, everything, keyed, namespaces, naming
from tests.privacy.test_leaves_nothing import (
    ORDER_KEYS,
    buy,
    erase,
    guesses,
    personal_rows,
)
from tests.remembered.conftest import Person, Shop
from tests.support.acts import done
from tests.support.holding import place_hold, release_hold
from tests.support.service import PREFIX, Server

pytestmark = pytest.mark.long

DAY = timedelta(days=1)
YEARS = 7
LAW = notice_file("law", "1").replace("source_url", f"retention_years = {YEARS}\nsource_url")
MakeShop = Callable[..., Shop]


class Later:
    """A clock that is ahead by so much."""

    def __init__(self, ahead: timedelta) -> None:
        self._ahead = ahead

    def time_ns(self) -> int:
        return to_ms(datetime.now(UTC) + self._ahead) * 1_000_000

    def monotonic(self) -> float:
        return 0.0


def keeper_of(operator: Operator) -> dict[str, str]:
    """The environment of retention: on PostgreSQL with the role that it has there, and no other."""
    environment = {**operator.deployment.environment}
    settings = load_settings(environment)
    url = database_url(settings.database_url, settings.data_dir)
    if url.get_backend_name() == "postgresql":
        with operator.transaction() as connection:
            known = text("SELECT 1 FROM pg_roles WHERE rolname = 'keeper'")
            if connection.execute(known).first() is None:
                connection.execute(text("CREATE ROLE keeper LOGIN"))
            for statement in grants("keeper", "retention")[1:-1]:
                connection.exec_driver_sql(statement)
        keeper = url.set(username="keeper").render_as_string(hide_password=False)
        environment[f"{PREFIX}DATABASE_URL"] = keeper
    return environment


def retained(operator: Operator, ahead: timedelta) -> Retained:
    """Housekeeping and retention, as they are so much later."""
    settings = load_settings(operator.deployment.environment)

    async def work() -> Retained:
        async with bootstrap.open_deployment(settings, clock=Later(ahead - 60 * DAY)) as opened:
            await sweep(opened.checkout)
        clock = Later(ahead)
        async with bootstrap.open_deployment(settings, clock=clock) as opened:
            await delete_outdated(opened.database, from_ns(clock.time_ns()))
        keeper = load_settings(keeper_of(operator))
        async with bootstrap.open_deployment(keeper, clock=clock) as opened:
            return await retain(opened.privacy)

    return asyncio.run(work())


def pass_time(operator: Operator, ahead: timedelta) -> list[str]:
    """What ends in so much time."""
    done = retained(operator, ahead)
    assert not done.failed
    return done.erased


def left_in(operator: Operator) -> dict[str, int]:
    """By table, the rows that lead to a person; the others are overwritten or name nobody."""

    def count(connection: Connection) -> dict[str, int]:
        tables = {c.table for c in personal_columns("buyer", "check", "session", "content")}
        tables |= {c.table for c in personal_columns("tombstone")} - {deployment}
        found = {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in tables
        }
        return {name: number for name, number in found.items() if number and name != "events"}

    return operator.act(lambda opened: opened.database.read(count))


def files_of(server: Server, backup: Path) -> list[Value]:
    """Database, write-ahead log, heads, keys, the log, and a backup made now: as values.

    Of the embedded database: on PostgreSQL vacuum and archiving decide.
    """
    deployment = server.deployment
    if not (deployment.data_dir / "countersign.db").exists():
        return []
    deployment.run("backup", str(backup))
    folders = (deployment.data_dir, backup)
    found = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    assert {"countersign.db", "shred-keys.db"} <= {path.name for path in found}, found
    return [Value("file", str(path), "", path.read_bytes()) for path in [*found, server.log]]


@pytest.fixture
def shops(operator: Operator, live_shop: MakeShop) -> tuple[Shop, Shop]:
    operator.publish(LAW)
    return live_shop(), live_shop()


def test_ten_years_later_every_personal_row_is_gone(
    operator: Operator, server: Server, shops: tuple[Shop, Shop], person: Person, tmp_path: Path
) -> None:
    """Buyers with orders, without, failed, revoked and erased: with all keys, nothing is found.

    Neither in the database, nor in its files, nor in a backup.

    What stays: the tombstones of the revoked and of the erased ones.
    """
    bought = buy(operator, shops, person)
    gone = buy(operator, shops, person, 1)
    erase(operator, gone.cbid)
    vendor = shops[0].vendor
    failed = vendor.verify(vendor.part("underage")).json()["cbid"]
    revoked = vendor.verified(vendor.part("verified", 2))
    operator.act(lambda opened: done(admin.revoke, opened.buyers, revoked, "stolen"))
    other = {
        "ack_id": bought.ack_ids[0],
        "cbid": bought.cbid,
        "session_id": "of-another-vendor",
        "order_reference": "number of another vendor",
        "product_class": "accessory",
        "shipping_zip": bought.person.shipping_zip,
    }
    refused = shops[1].client.post("/v1/clearances", json=other).json()
    assert not refused["cleared"], refused
    operator.act(lambda opened: merge(opened.database, 4))
    before, secret, account_ids = everything(operator)
    guess = guesses(bought, secret, account_ids, bought.orders)
    names = [bought.cbid, failed, *bought.sessions, "of-another-vendor"]
    scopes = [*account_ids, "remembered", "remembered live", "strangers"]
    kept, places = personal_rows(operator, bought.cbid), namespaces(operator)
    assert naming(before, names)
    assert guess(before)
    assert keyed(before, secret, scopes, names)
    then = files_of(server, tmp_path / "before")
    passed = pass_time(operator, 3650 * DAY)
    assert {*passed} >= {bought.cbid, failed, revoked, refused["clearance_id"]}
    left, *_ = everything(operator)
    assert naming(left, names) == set()
    assert guess(left) == set()
    assert keyed(left, secret, scopes, names) <= ORDER_KEYS
    assert keyed(left, secret, places, [bought.person.session_id]) == set()
    assert {v.table for v in left if v.data in kept.get(v.table, ())} == set()
    files, stored = files_of(server, tmp_path / "backup"), {value.data for value in left}
    assert naming(files, names) == set()
    assert keyed(files, secret, scopes, [bought.cbid, failed]) == set()
    sealed = {data for some in kept.values() for data in some - stored}
    assert {file.column for file in files for data in sealed if data in file.data} == set()
    assert all(any(data in file.data for file in then) for data in sealed if then), "it is found"
    stay = {"buyers": 1, "buyer_documents": 1, "provider_sessions": 1, "buyer_references": 2}
    assert left_in(operator) == stay
    rows = operator.rows("SELECT cbid, status, proofs, expires_at FROM buyers")
    assert [{**row} for row in rows] == [
        {"cbid": revoked, "status": "revoked", "proofs": "[]", "expires_at": None}
    ]
    assert operator.rows("SELECT 1 FROM deployment WHERE name LIKE :name", name=f"{ERASED_BUYER}%")
    # A tombstone has ended once.
    assert pass_time(operator, 3650 * DAY + 2 * BUYERS_KEPT) == []


def test_a_buyer_ends_a_year_after_the_last_check(
    operator: Operator, shops: tuple[Shop, Shop]
) -> None:
    """Not before; a check that is made meanwhile begins another year."""
    vendor = shops[0].vendor
    cbid = vendor.verified(vendor.part("verified"))
    [row] = operator.rows("SELECT expires_at FROM buyers WHERE cbid = :cbid", cbid=cbid)
    now = datetime.now(UTC)
    valid = timedelta(milliseconds=row["expires_at"] - to_ms(now))
    assert cbid not in pass_time(operator, valid + BUYERS_KEPT - DAY)
    assert vendor.status(cbid)["status"] == "verified"
    assert pass_time(operator, valid + BUYERS_KEPT + DAY)[-1:] == [cbid]
    assert left_in(operator) == {}
    # The document is not known any more: it is another buyer.
    assert vendor.verified(vendor.part("verified")) != cbid


def test_an_order_keeps_its_buyer_until_it_is_erased(
    operator: Operator, shops: tuple[Shop, Shop], person: Person
) -> None:
    """Acknowledgments name the buyer for as long as their notice says; then the buyer ends."""
    bought = buy(operator, shops, person)
    three = pass_time(operator, 3 * 365 * DAY)
    assert not {*bought.ack_ids, bought.cbid} & {*three}
    passed = pass_time(operator, YEARS * 366 * DAY)
    assert {*passed} == {*bought.ack_ids, bought.cbid}


@pytest.mark.parametrize("on", ["buyer", "account", "check"])
def test_a_hold_keeps_a_buyer_from_ending(
    operator: Operator, shops: tuple[Shop, Shop], on: str
) -> None:
    """Until it is released."""
    vendor = shops[0].vendor
    cbid = vendor.verified(vendor.part("verified"))
    [check] = operator.rows("SELECT id FROM verifications")
    subject = {"buyer": cbid, "account": vendor.account_id, "check": check["id"]}[on]
    hold = operator.act(lambda opened: place_hold(opened.privacy, subject, "case"))
    assert pass_time(operator, 3650 * DAY) == []
    assert left_in(operator)["buyers"] == 1
    operator.act(lambda opened: release_hold(opened.privacy, hold.id))
    assert pass_time(operator, 3650 * DAY)[-1:] == [cbid]
    name = operator.act(lambda opened: _note(opened.access.secret, cbid))
    assert operator.rows("SELECT 1 FROM deployment WHERE name = :name", name=name)


def test_what_cannot_be_erased_stops_nothing_else(
    operator: Operator, shops: tuple[Shop, Shop]
) -> None:
    """The run goes on, but is not one that came to its end, and says what failed."""
    vendor = shops[0].vendor
    broken, other = (vendor.verified(vendor.part("verified", number)) for number in (1, 2))
    with operator.transaction() as connection:
        # A proof that nothing can read, as after a failing disk.
        damaged = text("UPDATE buyers SET proofs = '[' WHERE cbid = :cbid")
        connection.execute(damaged, {"cbid": broken})
        # The server has retained at its start.
        connection.execute(delete(deployment).where(deployment.c.name == RETAINED))
    done = retained(operator, 3650 * DAY)
    checks = operator.rows("SELECT id FROM verifications WHERE cbid = :cbid", cbid=broken)
    assert other in done.erased
    assert {*done.failed} == {check["id"] for check in checks}, done
    ended = operator.rows("SELECT 1 FROM deployment WHERE name = :name", name=RETAINED)
    assert ended == []
    with operator.transaction() as connection:
        connection.execute(text("UPDATE buyers SET proofs = '[]'"))
    assert broken in pass_time(operator, 3650 * DAY)
    assert operator.rows("SELECT 1 FROM deployment WHERE name = :name", name=RETAINED)


def test_a_revoked_buyer_who_asks_is_erased_by_the_role_of_retention(
    operator: Operator, shops: tuple[Shop, Shop]
) -> None:
    """But for what stays of a revoked buyer; the audit names the buyer by a reference."""
    vendor = shops[0].vendor
    revoked = vendor.verified(vendor.part("verified"))
    operator.act(lambda opened: done(admin.revoke, opened.buyers, revoked, "stolen"))
    with operator.transaction() as connection:
        asked = text("INSERT INTO erasure_requests (cbid, requested_at) VALUES (:cbid, :at)")
        connection.execute(asked, {"cbid": revoked, "at": to_ms(datetime.now(UTC) + DAY)})
    assert retained(operator, 2 * DAY).requested == {revoked: ErasureOutcome.ERASED}
    assert operator.rows("SELECT 1 FROM erasure_requests") == []
    assert operator.rows("SELECT 1 FROM verifications") == []


async def _note(secret: DeploymentSecret, cbid: str) -> str:
    return erased_name(secret, cbid, DEPLOYMENT)


def test_a_refusal_about_an_erased_acknowledgment_ends_too(
    operator: Operator, shops: tuple[Shop, Shop], person: Person
) -> None:
    """It came after the erasure, so it is no order's, and keeps no buyer."""
    bought = buy(operator, shops, person)
    for ack_id in bought.ack_ids:
        erase(operator, ack_id)
    order = {"ack_id": bought.ack_ids[0], "cbid": bought.cbid, "session_id": bought.sessions[0]}
    order |= {"order_reference": "late", "shipping_zip": bought.person.shipping_zip}
    late = shops[0].client.post("/v1/clearances", json=order | {"product_class": "accessory"})
    assert "acknowledgment_erased" in late.json()["reasons"]
    pass_time(operator, 10 * 365 * DAY)
    assert operator.rows("SELECT record_id FROM disclosures") == []
    assert operator.rows("SELECT cbid FROM buyers") == []


def test_a_buyer_who_cannot_be_read_keeps_no_other_data(
    operator: Operator, shops: tuple[Shop, Shop]
) -> None:
    """Neither the buyers on the same page, nor whole responses whose time is over."""
    vendor = shops[0].vendor
    broken = vendor.verify(vendor.part("underage")).json()["cbid"]
    other = vendor.verified(vendor.part("verified"))
    with operator.transaction() as connection:
        damaged = text("UPDATE buyers SET reasons = '[' WHERE cbid = :cbid")
        connection.execute(damaged, {"cbid": broken})
    done = retained(operator, 40 * DAY)
    assert "the review queue" in done.failed
    whole = "SELECT record_id FROM verification_evidence WHERE response IS NOT NULL"
    assert operator.rows(whole) == []
    assert other in retained(operator, 3650 * DAY).erased
