"""The export of an audit with its chain: spec/evidence-format.md, section 21.

It shows, without operator or database, that no entry was changed, deleted, inserted or back-dated
before the log sealed the head of the chain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import pairwise
from typing import Final

import msgspec

from countersign_evidence.canonical import canonical_json
from countersign_evidence.offline.verify import is_time
from countersign_evidence.policy import Policy
from countersign_evidence.verification import verify_file

CHAIN: Final = "chain.jsonl"
HEADS: Final = "heads"
PROOF_ENDING: Final = ".tlog-proof"
FIRST: Final = bytes(32)
"""The digest before the first entry."""
CLOCKS_APART: Final = timedelta(minutes=1)
"""By how much an entry may be earlier than one before it: clocks differ, and acts take time."""
_PREFIX: Final = b"countersign/audit/v1\n"


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of the audit, with the members that its digest covers."""

    id: str
    at: str
    actor: str
    action: str
    subject: str
    details: str


class ChainedEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry in its chain: a line of the export. Salt and digest are in hexadecimal."""

    digest: str
    entry: Entry
    salt: str


_read_link: Final = msgspec.json.Decoder(ChainedEntry).decode


def entry_digest(salt: bytes, before: bytes, entry: Entry) -> bytes:
    """The digest of an entry; it covers that of the entry before it."""
    return sha256(_PREFIX + salt + before + canonical_json(entry)).digest()


@dataclass(kw_only=True)
class AuditChecked:
    """The outcome for an export."""

    entries: int = 0
    heads: int = 0
    sealed: int = 0
    """How many entries the newest head covers. Those after it are the operator's word."""
    sealed_by: str | None = None
    """The record of that head."""
    findings: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def check_audit(
    lines: Iterable[bytes], proofs: Mapping[str, bytes], policy: Policy
) -> AuditChecked:
    """Check the lines of a chain against the proofs of its sealed heads, by the records' ids."""
    found, before, latest = AuditChecked(), FIRST, ""
    places: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        found.entries = number
        try:
            link = _read_link(line)
            own = entry_digest(bytes.fromhex(link.salt), before, link.entry).hex()
            before = bytes.fromhex(link.digest)
        except (msgspec.MsgspecError, ValueError):
            found.findings.append(f"line {number} is not an entry")
            return found
        name, at = f"entry {number} ({link.entry.id})", link.entry.at
        if own != link.digest or not is_time(at):
            found.findings.append(f"{name} is not as it was chained")
        elif at < latest:
            early = datetime.fromisoformat(latest) - datetime.fromisoformat(at)
            said = f"{name} is dated {early.total_seconds():.3f} s earlier than one before it"
            (found.remarks if early <= CLOCKS_APART else found.findings).append(said)
        else:
            latest = at
        places[link.digest] = number
    heads = list(_heads(found, places, proofs, policy))
    for (log, _, place, _), (other, _, later, id_) in pairwise(sorted(heads)):
        if log == other and later < place:
            found.findings.append(f"{id_} sealed fewer entries than a head before it")
    found.heads = len(heads)
    for _, _, place, id_ in heads:
        if place > found.sealed:
            found.sealed, found.sealed_by = place, id_
    return found


def _heads(
    found: AuditChecked, places: Mapping[str, int], proofs: Mapping[str, bytes], policy: Policy
) -> Iterator[tuple[str, int, int, str]]:
    """Of each sealed head its log, its place there, how many entries it covers, and its record."""
    for id_, proof in sorted(proofs.items()):
        verdict = verify_file(proof, policy)
        record = verdict.record
        if not verdict.ok:
            found.findings.append(f"the proof of {id_}: {verdict.line()}")
        elif (record["id"], record["type"], record["mode"]) != (id_, "audit_head", "live"):
            found.findings.append(f"{id_} is not the record of a head of the audit")
        elif record.get("head") not in places:
            found.findings.append(f"no entry has the digest that the record {id_} sealed")
        else:
            yield verdict.facts["log"], verdict.facts["index"], places[record["head"]], id_
