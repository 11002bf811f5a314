"""Prove an acknowledgment: a proof that anyone can check.

Evidence is verified before it is handed out, as its reader would: a database that was changed
behind the service's back, or that a disk has damaged, must not make it hand out what fails in
court.
"""

from __future__ import annotations

import asyncio

from countersign.core.access.key import Principal
from countersign.core.acknowledgments.find import refusing_damage, stored
from countersign.core.acknowledgments.room import Acknowledgments
from countersign.core.log import logs_sql, tree_sql
from countersign.core.log.model import cosignatures
from countersign.core.log.seal import with_cosignatures
from countersign_evidence.errors import EvidenceError
from countersign_evidence.proof import Proof, format_proof
from countersign_evidence.verification import verify_file


async def proof(room: Acknowledgments, who: Principal, ack_id: str, wait: float = 0.0) -> bytes:
    """The proof that the log holds the record (c2sp.org/tlog-proof).

    `wait` is how many seconds to wait for sealing, and for the cosignatures that a quorum asks for.
    """
    database, seal = room.log.database, room.log.seal
    with refusing_damage(ack_id), room.checkpoints.patience(who.account_id, wait) as seconds:
        found = await stored(room, who, ack_id)
        deadline = asyncio.get_running_loop().time() + seconds
        log_id, sealed = await seal.sealed(ack_id, seconds)
        log = next(log for log in await database.read(logs_sql.all_logs) if log.id == log_id)
        checkpoint = await room.checkpoints.over(log, sealed.index, deadline)
        anchors = await database.read(logs_sql.anchors_of, log.id, checkpoint.size)
        note = await seal.release(log, checkpoint)
        path = await database.scan(tree_sql.inclusion, log_id, sealed.index, checkpoint.size)
        signed = with_cosignatures(note, cosignatures(anchors))
        written = format_proof(Proof(found.record, sealed.index, tuple(path), signed))
        verdict = verify_file(written, await room.log.policy.without_quorum(log.mode))
        if not verdict.ok:
            raise EvidenceError(verdict.line())
        return written
