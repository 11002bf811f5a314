"""Two vendors with the same buyer, who hold, erase and block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import httpx2
from sqlalchemy import Connection, select, update

from countersign.base.db.tables import deployment, metadata, records
from countersign.base.values import Mode
from countersign.core.access.key import VENDOR_SCOPES, Scope
from countersign.core.access.reach import DEPLOYMENT, AccountReach
from countersign.core.buyers.admin import set_block
from countersign.core.buyers.sql import erased_name
from countersign.core.privacy.erase import ERASURE_DUE, erase_planned, finish_restore, plan_erasure
from countersign.core.privacy.model import ErasureReason
from countersign.core.privacy.requests import ErasureOutcome, request_erasure
from countersign.operate import bootstrap
from countersign_evidence.record import CBID_FIELD
from tests.http.backstage import Operator
from tests.http.calls import acknowledge
from tests.support.acts import done
from tests.support.providers import Playing
from tests.support.service import Server

STAFF: Final = (
    *VENDOR_SCOPES,
    *(Scope.ERASURE_WRITE, Scope.HOLDS_MANAGE, Scope.RETENTION_READ, Scope.AUDIT_READ),
)
PRODUCT: Final = "accessory"
OF_BUYERS: Final = ("buyers", "provider_sessions", "buyer_documents", "remembered")
"""Tables that accounts share: an account's view is checked over the API instead."""


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

    def verified(self, played: Playing, number: int = 0) -> str:
        """Verify the one person of these tests; sessions 2 and 3 are of another one."""
        session = played.part("verified", number)
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
        asked |= {"order_reference": self.id}
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
        """As if all of the account's data about a buyer came from a backup made before it left."""

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
        self.operator.act(lambda opened: done(refuse, opened.buyers))

    def ids(self, table: str, account_id: str) -> list[str]:
        """The records of an account that this table still has, oldest first."""
        column = next(iter(metadata.tables[table].primary_key))
        own = select(records.c.id).join(column.table, column == records.c.id)
        own = own.where(records.c.account_id == account_id).order_by(records.c.id)
        with self.operator.transaction() as connection:
            return [*connection.execute(own).scalars()]

    def rows(self, account_id: str, mode: str) -> dict[str, list[Any]]:
        """All rows of an account in a mode, except those that grow by themselves."""
        found = {}
        with self.operator.transaction() as connection:
            for table in metadata.sorted_tables:
                own = {"account_id", "mode"} <= {*table.c.keys()}
                if own and table.name not in OF_BUYERS and table.name != "api_keys":
                    query = select(table).where(
                        table.c.account_id == account_id, table.c.mode == mode
                    )
                    rows = sorted(map(repr, connection.execute(query)))
                    # The log is sealed at each call of this.
                    found[table.name] = [row for row in rows if ".sealed'" not in row]
        return found


async def erase_as_the_command(opened: bootstrap.Deployment, cbid: str) -> set[str]:
    """As `countersign erase --with-acknowledgments`; returns the held data."""
    plan = await plan_erasure(opened.privacy, cbid, DEPLOYMENT, with_acknowledgments=True)
    return {*await erase_planned(opened.privacy, plan, ErasureReason.REQUEST)}


async def erase_as_the_buyer(opened: bootstrap.Deployment, cbid: str) -> set[str]:
    """As the buyer's own click at `/buyer`."""
    assert await request_erasure(opened.privacy, cbid) is ErasureOutcome.KEPT
    return set()


def noted(client: httpx2.Client, *actions: str) -> list[dict[str, Any]]:
    """These entries of the audit that a key may list, oldest first."""
    found = client.get("/v1/audit", params={"limit": 100}).json()["data"]
    return [one for one in reversed(found) if one["action"] in actions]
