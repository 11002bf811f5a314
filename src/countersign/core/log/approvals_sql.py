"""Approvers of changes of the logs' keys, proposals, and approvals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, insert, select

from countersign.base.db.statements import row
from countersign.base.db.tables import log_approvals, log_proposals, log_rosters
from countersign_evidence.approval import Roster, make_roster
from countersign_evidence.note import SignatureLine


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredProposal:
    """A proposal, with the keys that it would add, as JSON (their private halves are sealed)."""

    id: str
    log_id: int
    text: bytes
    keys: bytes
    at: datetime


def roster(connection: Connection) -> Roster:
    """The roster in force; a deployment begins with one that needs no approval."""
    newest = select(log_rosters).order_by(log_rosters.c.number.desc()).limit(1)
    row = connection.execute(newest).first()
    return Roster(0, ()) if row is None else make_roster(row.threshold, row.approvers.split())


def add_roster(connection: Connection, made: Roster, proposal_id: str, at: datetime) -> None:
    """Put a roster in force, as a proposal asked for."""
    number = connection.execute(select(func.coalesce(func.max(log_rosters.c.number), 0)))
    approvers = "\n".join(approver.vkey for approver in made.approvers)
    row = {"number": number.scalar_one() + 1, "threshold": made.threshold, "approvers": approvers}
    connection.execute(insert(log_rosters), row | {"proposal_id": proposal_id, "at": at})


def is_in_force(connection: Connection, proposal_id: str) -> bool:
    """Whether a roster was put in force by this proposal."""
    same = select(log_rosters.c.number).where(log_rosters.c.proposal_id == proposal_id)
    return connection.execute(same).first() is not None


def newest_proposal(connection: Connection) -> StoredProposal | None:
    """The newest proposal: an earlier one can no longer be approved."""
    newest = select(log_proposals).order_by(log_proposals.c.id.desc()).limit(1)
    return row(connection, newest, StoredProposal)


def add_approval(
    connection: Connection, proposal_id: str, roster: Roster, line: SignatureLine, at: datetime
) -> bool:
    """Keep the signature line of an approver in the roster; False if there is one already."""
    approver = next(one.vkey for one in roster.approvers if one.signs_as == line.by)
    if approver in dict(approvals_of(connection, proposal_id, roster)):
        return False
    row = {"proposal_id": proposal_id, "approver": approver, "line": line.text(), "at": at}
    connection.execute(insert(log_approvals), row)
    return True


def approvals_of(
    connection: Connection, proposal_id: str, roster: Roster
) -> Sequence[tuple[str, bytes]]:
    """The approvers in the roster (verifier keys) of a proposal, each with its signature line."""
    c = log_approvals.c
    given = select(c.approver, c.line).where(c.proposal_id == proposal_id)
    given = given.where(c.approver.in_([one.vkey for one in roster.approvers]))
    found = connection.execute(given.order_by(c.at, c.approver))
    return [(row.approver, row.line) for row in found]
