"""Check rows that decide what is in force against their twins, which a log seals.

Which description of a party counts, and what a hold keeps from erasure, follows from rows. The
descriptions are records; each placing and each end of a hold is an entry of the audit, whose chain
the live log seals. A row that was changed, added or deleted contradicts its twin.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, literal, select

from countersign.base.db.tables import (
    audit_log,
    audit_owners,
    deployment_records,
    legal_holds,
    parties,
    records,
)
from countersign.base.values import Mode
from countersign.core.access.audit import AuditAction, entries_of, named
from countersign.core.log.record import RecordType

APART: Final = timedelta(minutes=1)
"""By how much the clocks of one service may differ: twice what lets a server stop sealing."""
_PARTIES: Final = [RecordType.OPERATOR, RecordType.ACCOUNT, RecordType.CAPTURE_PROCESS]
_OPERATOR: Final = literal("deployment")
"""The scope of the operator's descriptions."""


def unmatched_rows(connection: Connection) -> list[tuple[Mode, str]]:
    """All differences, each with the mode of the log that shows it."""
    holds = [(Mode.LIVE, message) for message in _unmatched_holds(connection)]
    return [*_unmatched_parties(connection), *holds]


def _unmatched_parties(connection: Connection) -> Iterator[tuple[Mode, str]]:
    """Differences between the list of descriptions and their records, by the mode of the log."""
    twins: dict[str, tuple[Any, ...]] = {}
    for c, scope in ((deployment_records.c, _OPERATOR), (records.c, records.c.account_id)):
        query = select(c.id, scope, c.mode, c.type, c.digest, c.body).where(c.type.in_(_PARTIES))
        for id_, *said, body in connection.execute(query):
            try:
                twins[id_] = (*said, msgspec.json.decode(body, type=dict[str, Any]).get("previous"))
            except (msgspec.MsgspecError, TypeError):
                twins[id_] = (*said, None)  # it is damaged, which is a separate finding
    before: dict[tuple[str, ...], str] = {}
    for row in connection.execute(select(parties).order_by(parties.c.number)):
        of_party, digest = (row.scope, row.mode, row.type), bytes(row.digest)
        if twins.pop(row.record_id, None) != (*of_party, digest, before.get(of_party)):
            message = f"the description {row.record_id} of a party is not the one of the record"
            yield Mode(row.mode), message
        before[of_party] = digest.hex()
    for id_, (_, mode, *_rest) in twins.items():
        yield Mode(mode), f"the record {id_} describes a party, but its row is missing"


def _unmatched_holds(connection: Connection) -> Iterator[str]:
    """Differences between holds and the entries of the audit that placed or released them."""
    log = select(audit_log).order_by(audit_log.c.id)
    # By their hold; a buyer who is erased is not named.
    placed, released = (
        {one.details["hold_id"]: one for one in entries if one.details.get("hold_id")}
        for action in (AuditAction.HOLD_PLACED, AuditAction.HOLD_RELEASED)
        for entries in [entries_of(connection, log.where(audit_log.c.action == action))]
    )
    o = audit_owners.c
    owned = select(o.entry_id, o.account_id, o.mode).join(audit_log, audit_log.c.id == o.entry_id)
    owned = owned.where(audit_log.c.action == AuditAction.HOLD_PLACED)
    owners = {tuple(owner) for owner in connection.execute(owned)}
    holds = connection.execute(select(legal_holds).order_by(legal_holds.c.id)).all()
    shown = named(connection, [(hold.subject, hold.reason) for hold in holds])
    for hold, (subject, reason) in zip(holds, shown, strict=True):
        entry, end = placed.pop(hold.id, None), released.get(hold.id)
        if entry is None:
            yield f"the hold {hold.id} is a row of which the audit has no entry"
            continue
        details = entry.details
        said = (entry.subject, details.get("reason", reason), details.get("matter_id"))
        # The deployment's binds every account: earlier releases kept those in audits of accounts.
        moved = hold.account_id and (entry.id, hold.account_id, hold.mode) not in owners
        late = abs(entry.at - hold.placed_at) > APART
        if said != (subject, reason, hold.matter_id) or moved or late:
            yield f"the hold {hold.id} is not the one that the audit has"
        ended = [at for at in (hold.released_at, end.at if end else None) if at]
        if len(ended) == 1 or (ended and abs(ended[0] - ended[1]) > APART):
            yield f"the hold {hold.id} ended otherwise than the audit has it"
    for hold_id in placed:
        yield f"the audit has the hold {hold_id}, but its row is missing"
