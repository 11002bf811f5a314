"""Changing a log's keys, and the approvals for that.

Without approvers the operator changes a key alone. Otherwise a change is proposed: the new key
exists already and is named in the text that the approvers sign, and the transaction of the last
required approval carries the change out. The log's record of it contains those signatures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Final, NamedTuple

import msgspec
from sqlalchemy import Connection, insert

from countersign.base.db.tables import log_proposals
from countersign.base.errors import EvidenceRefused, InvalidArgument
from countersign.base.values import Mode, from_ns, rfc3339_ms, timed_id
from countersign.core.access.audit import AuditAction, write_audit
from countersign.core.log import approvals_sql, logs_sql
from countersign.core.log.approvals_sql import StoredProposal
from countersign.core.log.model import AUDIT_SUBJECT, Log, LogKey
from countersign.core.log.operate import log_in_use
from countersign.core.log.record import RecordType
from countersign.core.log.room import LogRoom
from countersign_evidence.approval import (
    ROTATE,
    SET_APPROVERS,
    Proposal,
    Roster,
    check_approvals,
    make_roster,
    parse_proposal,
)
from countersign_evidence.canonical import Json
from countersign_evidence.errors import refused_as
from countersign_evidence.note import ED25519, MLDSA_COSIGNATURE, parse_note

OVERLAP: Final = timedelta(days=7)
"""How long the old key still signs together with its successor."""
VALID: Final = timedelta(days=7)
"""How long a proposal can be approved."""
_read_keys: Final = msgspec.json.Decoder(list[LogKey]).decode


class Change(NamedTuple):
    """A change of keys or approvers: the proposal, and whether it was carried out.

    `signed` are the approvers (verifier keys) so far, of the `needed` number.
    """

    text: bytes
    signed: Sequence[str]
    needed: int
    keys: Sequence[LogKey] = ()
    carried_out: bool = False


async def rotate_log_key(room: LogRoom, overlap: timedelta = OVERLAP) -> Change:
    """Give the live log new keys, or propose it; the old ones sign, too, until the overlap ends."""
    log = await log_in_use(room, Mode.LIVE)
    old = await room.database.read(_current_keys, log.id)
    if not old:
        raise EvidenceRefused(
            f"The keys of {log.origin} are missing. Begin a new epoch: `countersign log recover`."
        )
    new = [key for _, key in await room.keys.make(Mode.LIVE, log.origin, log.id)]
    lines = [("overlap", str(int(overlap.total_seconds())))]
    lines += [("old", key.vkey) for key in old] + [("new", key.vkey) for key in new]
    return await _propose(room, log, ROTATE, lines, new)


async def set_approvers(room: LogRoom, threshold: int, vkeys: Sequence[str]) -> Change:
    """Change who approves changes of the live log's keys, or propose that.

    InvalidArgument if that is no roster.
    """
    with refused_as(InvalidArgument, "These cannot be the approvers"):
        roster = make_roster(threshold, vkeys)
    lines = [("threshold", str(threshold))]
    lines += [("approver", approver.vkey) for approver in roster.approvers]
    return await _propose(room, await log_in_use(room, Mode.LIVE), SET_APPROVERS, lines, ())


async def approve(room: LogRoom, note: bytes) -> Change:
    """Accept the approvals in a signed proposal; the last one needed executes it.

    EvidenceRefused if it is not the open proposal, or no approver signed it.
    """
    change = await room.database.write(_approve, room, note)
    await room.keys.load()
    return change


async def _propose(
    room: LogRoom, log: Log, act: str, lines: Sequence[tuple[str, str]], keys: Sequence[LogKey]
) -> Change:
    time_ns = room.clock.time_ns()
    proposal = Proposal(
        id=timed_id("prp", time_ns, room.access.entropy(8)),
        origin=log.origin,
        until=from_ns(time_ns) + VALID,
        act=act,
        lines=tuple(lines),
    )
    stored = StoredProposal(
        id=proposal.id,
        log_id=log.id,
        text=proposal.text(),
        keys=msgspec.json.encode([*keys]),
        at=from_ns(time_ns),
    )
    change = await room.database.write(_write_proposal, room, stored)
    if change.carried_out:
        await room.keys.load()
    return change


def _write_proposal(connection: Connection, room: LogRoom, stored: StoredProposal) -> Change:
    room.sequencer.wait_for_turn(connection, Mode.LIVE)
    roster = approvals_sql.roster(connection)
    connection.execute(insert(log_proposals), asdict(stored))
    if not roster.threshold:
        return _carry_out(connection, room, stored, roster, ())
    _audit(connection, room, AuditAction.LOG_CHANGE_PROPOSED, stored)
    return Change(stored.text, (), roster.threshold)


def open_proposal(connection: Connection, room: LogRoom) -> Change | None:
    """The proposal that can be approved now; None if there is no proposal."""
    stored, roster = approvals_sql.newest_proposal(connection), approvals_sql.roster(connection)
    if stored is None or _why_closed(connection, room, stored) is not None:
        return None
    signed = [key for key, _ in approvals_sql.approvals_of(connection, stored.id, roster)]
    return Change(stored.text, signed, roster.threshold)


def _approve(connection: Connection, room: LogRoom, note: bytes) -> Change:
    room.sequencer.wait_for_turn(connection, Mode.LIVE)
    stored, roster = approvals_sql.newest_proposal(connection), approvals_sql.roster(connection)
    with refused_as(EvidenceRefused, "This does not approve the proposal"):
        given = parse_note(note).text
        if stored is None or given != stored.text:
            raise EvidenceRefused("This is not the proposal that was made last.")
        why = _why_closed(connection, room, stored)
        if why is not None:
            raise EvidenceRefused(why)
        _, lines = check_approvals(note, roster)
    now = from_ns(room.clock.time_ns())
    for line in lines:
        if approvals_sql.add_approval(connection, stored.id, roster, line, now):
            _audit(connection, room, AuditAction.LOG_CHANGE_APPROVED, stored, by=line.name)
    approvals = approvals_sql.approvals_of(connection, stored.id, roster)
    if len(approvals) < roster.threshold:
        return Change(stored.text, [key for key, _ in approvals], roster.threshold)
    return _carry_out(connection, room, stored, roster, approvals)


def _why_closed(connection: Connection, room: LogRoom, stored: StoredProposal) -> str | None:
    """Why a proposal cannot be carried out any more; None: it can."""
    proposal = parse_proposal(stored.text)
    if proposal.act == ROTATE:
        current = [key.vkey for key in _current_keys(connection, stored.log_id)]
        if current != proposal.values("old"):
            return "The keys of the log have changed since this was proposed."
    elif approvals_sql.is_in_force(connection, stored.id):
        return "This was carried out already."
    if from_ns(room.clock.time_ns()) >= proposal.until:
        return f"This could be approved until {rfc3339_ms(proposal.until)}. Propose it again."
    newest = logs_sql.newest_logs(connection)[Mode.LIVE]
    return None if newest.id == stored.log_id else "The log has ended: a new epoch has begun."


def _current_keys(connection: Connection, log_id: int) -> Sequence[LogKey]:
    """The keys that no rotation has given an end to."""
    return [key for key in logs_sql.keys_of(connection, log_id) if key.retires_at is None]


def _carry_out(
    connection: Connection,
    room: LogRoom,
    stored: StoredProposal,
    roster: Roster,
    approvals: Sequence[tuple[str, bytes]],
) -> Change:
    proposal, now = parse_proposal(stored.text), from_ns(room.clock.time_ns())
    members: dict[str, Json] = {"log": proposal.origin}
    if approvals:
        signed = stored.text + b"\n" + b"".join(line for _, line in approvals)
        members |= {"approval": signed.decode(), "threshold": roster.threshold}
    keys = [
        replace(key, log_id=stored.log_id, created_at=now, retires_at=None)
        for key in _read_keys(stored.keys)
    ]
    if [key.vkey for key in keys] != proposal.values("new"):
        raise EvidenceRefused(
            "The keys stored with this proposal are not those that its text names: the database "
            "was changed. Propose it again."
        )
    if proposal.act == ROTATE:
        retires = now + timedelta(seconds=int(proposal.values("overlap")[0]))
        members["old_key_retires_at"] = rfc3339_ms(retires)
        for name, of in (("old", _current_keys(connection, stored.log_id)), ("new", keys)):
            newest = {key.verifier.kind: key.vkey for key in of}
            members[f"{name}_key"] = newest.get(ED25519, of[-1].vkey)
            if MLDSA_COSIGNATURE in newest:
                members[f"{name}_ml_dsa_key"] = newest[MLDSA_COSIGNATURE]
        logs_sql.add_keys(connection, keys, retires)
        type_, action = RecordType.KEY_ROTATION, AuditAction.LOG_KEY_ROTATED
    else:
        vkeys = proposal.values("approver")
        new = make_roster(int(proposal.values("threshold")[0]), vkeys)
        approvals_sql.add_roster(connection, new, stored.id, now)
        members |= {"new_threshold": new.threshold, "approvers": [*vkeys]}
        type_, action = RecordType.APPROVERS, AuditAction.LOG_APPROVERS_CHANGED
    # Sealed with the old keys still: no process has read the new ones.
    room.journal.write(connection, [room.recorder.of_deployment(type_, Mode.LIVE, members)])
    if keys:
        logs_sql.count_key_change(connection, stored.log_id)
    _audit(connection, room, action, stored, new_keys=[key.vkey for key in keys])
    by = [key for key, _ in approvals]
    return Change(stored.text, by, roster.threshold, keys, carried_out=True)


def _audit(
    connection: Connection,
    room: LogRoom,
    action: AuditAction,
    stored: StoredProposal,
    **more: object,
) -> None:
    details = {"proposal": stored.id, **more}
    write_audit(connection, room.access.audit.entry(action, AUDIT_SUBJECT, **details))
