"""Checkpoints (c2sp.org/tlog-checkpoint): the signed head of a log, as a note."""

from base64 import b64encode
from typing import NamedTuple

from countersign.evidence.encoding import read_hash, read_number
from countersign.evidence.errors import EvidenceError


class Checkpoint(NamedTuple):
    """The head of a log: its origin, how many entries it has, and their root."""

    origin: str
    size: int
    root: bytes


def format_checkpoint(checkpoint: Checkpoint) -> bytes:
    """The text of the note."""
    root = b64encode(checkpoint.root).decode("ascii")
    return f"{checkpoint.origin}\n{checkpoint.size}\n{root}\n".encode()


def parse_checkpoint(text: bytes) -> Checkpoint:
    """Read the text of a note; extension lines are allowed and ignored.

    Raises:
        EvidenceError: it is not a checkpoint.
    """
    try:
        lines = text.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        msg = "a checkpoint is UTF-8"
        raise EvidenceError(msg) from error
    # Three lines at least, each with its newline, and none of them empty.
    if len(lines) < 4 or lines.pop() != "" or "" in lines:
        msg = "a checkpoint is an origin, a size and a root, each on a line"
        raise EvidenceError(msg)
    return Checkpoint(lines[0], read_number(lines[1]), read_hash(lines[2]))
