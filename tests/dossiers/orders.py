"""Orders from the initials to the report of their fulfilment, and their dossiers."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Final

from countersign.core.access.account import Account, find_account
from countersign.core.access.key import Principal
from countersign.core.dossiers.dossier import DossierQuery, dossier
from countersign.core.parties import (
    Particulars,
    describe,
    state_capture_process,
)
from countersign_evidence.dossier import SUMS, Dossier, read_container, sums, write_container
from countersign_evidence.verification import dossier_of
from tests.clearances.desk import Desk, order
from tests.support.acts import done

ZIP: Final = "94103"
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Order:
    """An order of a vendor, with the identifiers that it got."""

    who: Principal
    session: str
    cbid: str
    ack_id: str
    clearance_id: str


class Orders:
    """A desk, and its orders."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    def vendor(self, *, described: bool = True) -> Principal:
        """A new account; `described`: with its records and those of the operator."""
        who, room = self.desk.account(), self.desk.deployment.log
        if described:
            account: Account = self.desk.do(find_account(room.access, who.account_id))
            self.desk.do(done(describe, room, None, Particulars(legal_name="An Operator, Inc.")))
            self.desk.do(done(describe, room, account, Particulars(legal_name="A Vendor, Inc.")))
            self.desk.do(done(state_capture_process, room, account, "We show each line."))
        return who

    def order(self, who: Principal, *, named: bool = True, fulfilled: bool = True) -> Order:
        """An order that was cleared; named: the acknowledgment names the buyer."""
        number = next(_numbers)
        session = f"sess_{number}"
        cbid = self.desk.sandbox_buyer(who, f"test_session_{number}", ZIP)
        ack_id = self.desk.acknowledge(who, "ab1263", session, cbid if named else None)
        decision = self.desk.clear(who, order(ack_id, cbid, session, ZIP))
        assert decision.cleared, decision.reasons
        if fulfilled:
            self.desk.fulfil(who, decision.clearance_id, carrier="a carrier", tracking_number="1Z")
        return Order(who, session, cbid, ack_id, decision.clearance_id)

    def dossier(
        self, who: Principal, id_: str, disclose: str | None = None, size: int | None = None
    ) -> bytes:
        """The file."""
        room = self.desk.deployment.acknowledgments
        self.desk.do(self.desk.deployment.log.seal.settle())
        return self.desk.do(dossier(room, who, id_, DossierQuery(disclose=disclose, size=size)))


def said(data: bytes) -> Dossier:
    """The content of a dossier, checked."""
    return dossier_of(data)


def kinds(data: bytes) -> list[str]:
    """The types of its records."""
    return [record.type for record in said(data).records]


def files_of(data: bytes) -> dict[str, bytes]:
    """Its files but SHA256SUMS."""
    files = read_container(data)
    del files[SUMS]
    return files


def packed(files: dict[str, bytes]) -> bytes:
    """A dossier of these files, with matching SHA256SUMS."""
    return write_container({**files, SUMS: sums(files)})
