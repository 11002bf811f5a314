"""Legal holds: held data is not erased, whichever of its names the request uses."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import count

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import URL, Connection, update

from countersign.base.db.database import Database
from countersign.base.db.engine import Purpose, open_engine
from countersign.base.db.tables import legal_holds
from countersign.base.errors import OnHold
from countersign.base.values import Mode
from countersign.core.access.account import Account, add_account
from countersign.core.access.audit import AuditAction, AuditEntry
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.buyers import sessions_sql
from countersign.core.buyers.model import Buyer
from countersign.core.privacy import holds
from countersign.core.privacy.erase import carry_out
from countersign.core.privacy.erase_sql import find_buyer
from countersign.core.privacy.held import find_held
from countersign.core.privacy.model import ErasableBuyer, Hold, RecordErasure
from tests.storage import items
from tests.support.databases import Run, on_sqlite
from tests.support.depth import drawn

LATER = count(1)
SECRET = DeploymentSecret(bytes(range(32)))


def entry(action: AuditAction, subject: str) -> AuditEntry:
    return AuditEntry(
        id=items.identifier("aud"),
        at=items.NOON,
        actor="someone",
        action=action,
        subject=subject,
        details={},
    )


def joined(connection: Connection, item: tuple[str, Buyer]) -> None:
    other, buyer = item
    sessions_sql.join(connection, other, buyer, items.NOON, revoked=False)


class World:
    """Two accounts with buyers, holds and erasures, in a real database."""

    def __init__(self, database: Database, run: Run) -> None:
        self.run = run
        self.database = database
        self.accounts = [items.account(), items.account()]
        for account in self.accounts:
            run(database.write(add_account, account))

    def verify(self, account: Account, cbid: str) -> str:
        """The account verifies this buyer, whom it may not have seen before."""
        new = items.verification(
            account, cbid, Mode.LIVE, at=items.NOON + next(LATER) * items.SECOND
        )

        def decide(known: Buyer | None) -> Buyer:
            at = {"verified_at": new.record.at}
            return msgspec.structs.replace(known, **at) if known else new.decide(None)

        self.run(items.verify(self.database, replace(new, decide=decide)))
        return new.record.id

    def join(self, other: str, cbid: str) -> None:
        """The one identifier is found to be the person of the other."""
        known = self.run(items.buyer_of(self.database, self.accounts[0].id, Mode.LIVE, cbid))
        assert known is not None
        self.run(self.database.write(joined, (other, known[0])))

    def hold(self, subject: str) -> str:
        placed = Hold(
            id=items.identifier("hold"),
            subject=subject,
            reason="case 7",
            placed_at=items.NOON,
            released_at=None,
        )
        self.run(
            self.database.write(
                holds.store, SECRET, placed, entry(AuditAction.HOLD_PLACED, subject)
            )
        )
        return placed.id

    def release(self, hold_id: str) -> None:
        own = update(legal_holds).where(legal_holds.c.id == hold_id)
        ended = own.values(released_at=items.NOON)
        self.run(self.database.write(lambda connection: connection.execute(ended).rowcount))

    def erase(self, cbid: str) -> None:
        """As `privacy.erase` does: with the disclosures of the buyer's verifications."""
        found = self.find(cbid)
        assert found is not None
        left = [v.record_id for v in found.verifications if v.erased_at is None]
        held = self.run(self.database.scan(find_held, SECRET, left, DEPLOYMENT))
        going = [[id_] for id_ in left if id_ not in held]
        parts = [RecordErasure(ids, items.fact(self.accounts[0])) for ids in going or [[]]]
        kept = held
        self.run(
            self.database.write(
                carry_out, SECRET, items.JOURNAL, parts, DEPLOYMENT, cbid=cbid, kept=kept
            )
        )

    def erase_record(self, record_id: str) -> None:
        parts = [RecordErasure([record_id], items.fact(self.accounts[0]))]
        self.run(self.database.write(carry_out, SECRET, items.JOURNAL, parts, DEPLOYMENT))

    def exists(self, cbid: str) -> bool:
        return self.find(cbid) is not None

    async def held(self, record_ids: list[str]) -> dict[str, tuple[str, str]]:
        scan = self.database.scan
        _, found = await scan(holds.find_holding, SECRET, DEPLOYMENT, record_ids, ())
        return found

    def find(self, cbid: str) -> ErasableBuyer | None:
        return self.run(self.database.read(find_buyer, SECRET, cbid, DEPLOYMENT))


@pytest.mark.parametrize("asked_for", ["alias", "primary"])
@pytest.mark.parametrize("owner", ["alias", "primary", "verifier"])
def test_a_hold_on_an_account_keeps_its_buyers_under_every_identifier(
    database: Database, run: Run, owner: str, asked_for: str
) -> None:
    """Also where the record of its verification was erased before: the buyer itself stays."""
    world = World(database, run)
    mine, other = world.accounts
    alias, primary = items.identifier("cbid"), items.identifier("cbid")
    records = [
        world.verify(mine if owner == "alias" else other, alias),
        world.verify(mine if owner == "primary" else other, primary),
    ]
    if owner == "verifier":
        records.append(world.verify(mine, primary))
    world.join(alias, primary)
    for record_id in records:
        world.erase_record(record_id)
    hold = world.hold(mine.id)
    subject = alias if asked_for == "alias" else primary
    with pytest.raises(OnHold):
        world.erase(subject)
    world.release(hold)
    world.erase(subject)
    assert not world.exists(alias)
    assert not world.exists(primary)


def test_a_hold_that_another_server_is_placing_keeps_its_buyer(
    url: URL, database: Database, run: Run
) -> None:
    """An erasure that began meanwhile sees the hold, and destroys nothing."""
    world = World(database, run)
    cbid = items.identifier("cbid")
    world.verify(world.accounts[0], cbid)
    engine = open_engine(url, Purpose.WRITE)
    hold = Hold(
        id=items.identifier("hold"),
        subject=cbid,
        reason="case 7",
        placed_at=items.NOON,
        released_at=None,
    )

    found = world.find(cbid)
    assert found is not None

    async def both() -> None:
        ids = [one.record_id for one in found.verifications]
        part = RecordErasure(ids, items.fact(world.accounts[0]))
        with engine.begin() as other:
            holds.store(other, SECRET, hold, entry(AuditAction.HOLD_PLACED, cbid))
            erasing = asyncio.create_task(
                database.write(carry_out, SECRET, items.JOURNAL, [part], DEPLOYMENT, cbid=cbid)
            )
            await asyncio.sleep(0.1)  # by now it waits for the other transaction
        with pytest.raises(OnHold):
            await erasing

    run(both())
    engine.dispose()
    assert world.exists(cbid)


class HoldsAndErasures(RuleBasedStateMachine):
    """Buyers, identifiers, holds and erasures, with what must be true, in sets."""

    cbids: Bundle[str] = Bundle("cbids")
    holds: Bundle[str] = Bundle("holds")

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.person: dict[str, set[str]] = {}
        """The identifiers of the person with this one."""
        self.verified: dict[str, tuple[str, str]] = {}
        """Of each record of a verification: the account, and an identifier of the buyer."""
        self.erased: set[str] = set()
        self.held: dict[str, str] = {}
        """The subject of each hold."""

    def is_on_hold(self, cbid: str) -> bool:
        """Whether something keeps the person with this identifier, and so all of it."""
        own = [item for item in self.verified.items() if item[1][1] in self.person[cbid]]
        kept = self.person[cbid] | {account for _, (account, _) in own}
        return not kept.isdisjoint(self.held.values())

    def is_record_on_hold(self, record_id: str) -> bool:
        account, cbid = self.verified[record_id]
        kept = {record_id, account, *self.person.get(cbid, ())}
        return not kept.isdisjoint(self.held.values())

    @rule(target=cbids, account=st.integers(0, 1))
    def come(self, account: int) -> str:
        return self._verify(account, items.identifier("cbid"))

    @rule(account=st.integers(0, 1), cbid=cbids)
    def verify(self, account: int, cbid: str) -> None:
        if primary := self._primary(cbid):
            self._verify(account, primary)

    @rule(one=cbids, other=cbids)
    def join(self, one: str, other: str) -> None:
        first, second = self._primary(one), self._primary(other)
        if first and second and first != second:
            self.world.join(first, second)
            together = self.person[first] | self.person[second]
            self.person |= dict.fromkeys(together, together)

    @rule(target=holds, cbid=cbids, on=st.sampled_from(["cbid", "account", "record"]))
    def hold(self, cbid: str, on: str) -> str | MultipleResults[str]:
        if cbid not in self.person:
            return multiple()
        record_id, (account, _) = next(v for v in self.verified.items() if v[1][1] == cbid)
        subject = {"cbid": cbid, "account": account, "record": record_id}[on]
        if subject in self.erased:
            return multiple()
        hold = self.world.hold(subject)
        self.held[hold] = subject
        return hold

    @rule(hold=consumes(holds))
    def release(self, hold: str) -> None:
        self.world.release(hold)
        del self.held[hold]

    @rule(cbid=cbids)
    def erase(self, cbid: str) -> None:
        if cbid not in self.person:
            return
        if self.is_on_hold(cbid):
            with pytest.raises(OnHold):
                self.world.erase(cbid)
            return
        self.world.erase(cbid)
        gone = self.person[cbid]
        own = {id_ for id_, (_, one) in self.verified.items() if one in gone}
        # A hold on a record keeps that record, and nothing else of the buyer.
        self.erased |= {id_ for id_ in own if not self.is_record_on_hold(id_)}
        for identifier in gone:
            del self.person[identifier]

    @rule(data=st.data())
    def erase_record(self, data: st.DataObject) -> None:
        left = [id_ for id_ in self.verified if id_ not in self.erased]
        if not left:
            return
        record_id = data.draw(st.sampled_from(left))
        if self.is_record_on_hold(record_id):
            with pytest.raises(OnHold):
                self.world.erase_record(record_id)
            return
        self.world.erase_record(record_id)
        self.erased.add(record_id)

    @invariant()
    def those_are_there_who_were_not_erased(self) -> None:
        everyone = {cbid for _, cbid in self.verified.values()}
        assert {c for c in everyone if self.world.exists(c)} == self.person.keys() & everyone

    @invariant()
    def retention_passes_over_what_is_on_hold(self) -> None:
        left = [id_ for id_ in self.verified if id_ not in self.erased]
        held = self.world.run(self.world.held(left))
        assert set(held) == {id_ for id_ in left if self.is_record_on_hold(id_)}

    def _verify(self, account: int, cbid: str) -> str:
        owner = self.world.accounts[account]
        record_id = self.world.verify(owner, cbid)
        self.person.setdefault(cbid, {cbid})
        self.verified[record_id] = (owner.id, cbid)
        return cbid

    def _primary(self, cbid: str) -> str | None:
        """The current identifier of a person in the database."""
        found = self.world.find(cbid)
        return None if found is None else found.cbids[0]


@on_sqlite
def test_no_held_data_is_erased_whatever_happens_before(database: Database, run: Run) -> None:
    """For all people, and for holds that come and go in any order."""
    run_state_machine_as_test(
        lambda: HoldsAndErasures(World(database, run)),  # type: ignore[arg-type]  # a factory will do
        settings=settings(max_examples=drawn(20), stateful_step_count=20),
    )
