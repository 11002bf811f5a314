"""Proof files (c2sp.org/tlog-proof@v1): one text that shows an entry to be in a log."""

from base64 import b64encode
from dataclasses import dataclass
from typing import Final

from countersign_evidence.encoding import read_hash, read_number, read_text, strict_base64
from countersign_evidence.errors import EvidenceError
from countersign_evidence.note import NOTE_BYTES_MAX

FIRST_LINE: Final = "c2sp.org/tlog-proof@v1"
PATH_LENGTH_MAX: Final = 63
_EXTRA: Final = "extra "
_INDEX: Final = "index "
_PROOF_BYTES_MAX: Final = 2 * NOTE_BYTES_MAX


@dataclass(frozen=True, slots=True)
class Proof:
    """A proof, not verified.

    `extra` is the record, from which the leaf is made; `checkpoint` is the signed note, verbatim.
    """

    extra: bytes | None
    index: int
    path: tuple[bytes, ...]
    checkpoint: bytes


def format_proof(proof: Proof) -> bytes:
    lines = [FIRST_LINE]
    if proof.extra is not None:
        lines.append(_EXTRA + b64encode(proof.extra).decode("ascii"))
    lines.append(f"{_INDEX}{proof.index}")
    lines += [b64encode(hash_).decode("ascii") for hash_ in proof.path]
    return "\n".join([*lines, "", ""]).encode() + proof.checkpoint


def parse_proof(data: bytes) -> Proof:
    """Read a proof file; the checkpoint in it is taken as it is."""
    if len(data) > _PROOF_BYTES_MAX:
        raise EvidenceError(f"a proof has at most {_PROOF_BYTES_MAX} bytes")
    head, blank, checkpoint = data.partition(b"\n\n")
    if not blank or not checkpoint:
        raise EvidenceError("a proof is some lines, an empty line and a checkpoint")
    lines = read_text(head, "the lines before the checkpoint are ASCII", "ascii").split("\n")
    if lines.pop(0) != FIRST_LINE:
        raise EvidenceError(f"a proof begins with {FIRST_LINE}")
    extra = None
    if lines and lines[0].startswith(_EXTRA):
        extra = strict_base64(lines.pop(0).removeprefix(_EXTRA))
    if not lines or not lines[0].startswith(_INDEX):
        raise EvidenceError("the line with the index is missing")
    index = read_number(lines.pop(0).removeprefix(_INDEX))
    if len(lines) > PATH_LENGTH_MAX:
        raise EvidenceError(f"a path has at most {PATH_LENGTH_MAX} hashes")
    return Proof(extra, index, tuple(read_hash(line) for line in lines), checkpoint)
