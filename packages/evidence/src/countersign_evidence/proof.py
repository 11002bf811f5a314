"""Proof files (c2sp.org/tlog-proof@v1): one text that shows an entry to be in a log."""

from base64 import b64encode
from dataclasses import dataclass
from typing import Final

from countersign_evidence.encoding import by_the_rules
from countersign_evidence.offline import verify as rules

PATH_LENGTH_MAX: Final = 63


@dataclass(frozen=True, slots=True)
class Proof:
    """A proof, not verified.

    `extra` is the record, which the leaf is made from; `checkpoint` is the signed note, verbatim.
    """

    extra: bytes
    index: int
    path: tuple[bytes, ...]
    checkpoint: bytes


def format_proof(proof: Proof) -> bytes:
    extra, *path = (b64encode(each).decode("ascii") for each in (proof.extra, *proof.path))
    lines = [rules.PROOF_LINE, f"extra {extra}", f"index {proof.index}", *path]
    return "\n".join([*lines, "", ""]).encode() + proof.checkpoint


def parse_proof(data: bytes) -> Proof:
    """Read a proof file; its checkpoint is not checked."""
    extra, index, path, checkpoint = by_the_rules(rules.read_proof)(data)
    return Proof(extra, index, tuple(path), checkpoint)
