"""Is what somebody holds still in the log? A kept proof against what the log publishes now."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from countersign_evidence.alarm import Alarm, format_alarm
from countersign_evidence.cli.files import written
from countersign_evidence.dossier import read_container
from countersign_evidence.entry import log_entry
from countersign_evidence.errors import EvidenceError
from countersign_evidence.monitor.reading import Reader
from countersign_evidence.monitor.round import (
    AlarmFound,
    Look,
    Unchecked,
    accusing,
    continues,
    not_smaller,
    signed_checkpoint,
)
from countersign_evidence.monitor.source import LogSource, Unreachable, open_source
from countersign_evidence.monitor.watch import LookStatus, Seen
from countersign_evidence.note import Checkpoint, checkpoint_of
from countersign_evidence.policy import Policy
from countersign_evidence.proof import Proof, parse_proof
from countersign_evidence.tree import leaf_hash, verify_inclusion


def proofs_in(data: bytes) -> list[Proof]:
    """The proofs of one checkpoint in a verified file, which can itself be a proof."""
    if data[:2] != b"PK":
        return [parse_proof(data)]
    files = read_container(data)
    return [parse_proof(body) for name, body in files.items() if name.endswith(".tlog-proof")]


async def still_in(look: Look, source: LogSource, proofs: Sequence[Proof]) -> str:
    """Check verified proofs of one checkpoint against the log at this address.

    Returns the result in words. Raises AlarmFound if the log contradicts a proof, else Unchecked
    or Unreachable.
    """
    checkpoint = proofs[0].checkpoint
    old = checkpoint_of(checkpoint)
    note, new = await signed_checkpoint(look, source)
    if new.origin != old.origin:
        raise Unchecked(f"{source.url} is {new.origin}, and the proof is of {old.origin}")
    note, new = await not_smaller(look, source, checkpoint, note)
    await continues(look, source, checkpoint, note)
    reader = Reader(source.get, new)
    with accusing(look, source, note):
        for proof in proofs:
            await _is_entry(reader, proof, new)
    indexes = [str(proof.index) for proof in proofs]
    entries, proof_holds = ("entries", "proofs hold") if indexes[1:] else ("entry", "proof holds")
    return (
        f"{entries} {', '.join(indexes)} of {new.origin} {'are' if indexes[1:] else 'is'} still "
        f"there: the checkpoint of {old.size} that the {proof_holds} is the beginning of today's, "
        f"of {new.size}"
    )


async def _is_entry(reader: Reader, proof: Proof, new: Checkpoint) -> None:
    """Check that the log of this checkpoint has the entry of a proof; raises Wrong if not."""
    leaf = leaf_hash(log_entry(new.origin, sha256(proof.extra).digest()))
    path = await reader.path(proof.index)
    try:
        verify_inclusion(proof.index, new.size, leaf, path, new.root)
    except EvidenceError as error:
        raise await reader.wrong_edge() from error
    if await reader.leaf(proof.index) != leaf:
        raise await reader.wrong_edge()


def compare(data: bytes, policy: Policy, url: str) -> Seen:
    """Check all proofs of a file that was verified against the log at this address.

    The file of an alarm is written into the current directory. Raises InvalidArgument if it cannot.
    """
    look = Look(policy=policy, clock=time.time_ns)

    async def run() -> str:
        async with open_source(url) as source:
            return await still_in(look, source, proofs_in(data))

    try:
        return Seen(status=LookStatus.CONSISTENT, message=asyncio.run(run()))
    except AlarmFound as found:
        return Seen.of(found.alarm, write_alarm(found.alarm))
    except (Unchecked, Unreachable) as error:
        return Seen(status=LookStatus.UNCHECKED, message=str(error))


def write_alarm(alarm: Alarm) -> Path:
    """Write the file of an alarm, named after its kind, into the current directory."""
    path = Path(f"{alarm.kind.value}.alarm.json")
    with written(path) as target:
        target.write(format_alarm(alarm))
    return path
