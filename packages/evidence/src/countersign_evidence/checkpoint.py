"""Checkpoints (c2sp.org/tlog-checkpoint): the signed head of a log, as a note."""

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from countersign_evidence.encoding import by_the_rules
from countersign_evidence.offline import verify as rules

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


Checkpoint: TypeAlias = rules.Checkpoint
"""The head of a log: its origin, how many entries it has, and their root."""
parse_checkpoint: Final = by_the_rules(rules.read_checkpoint)
"""Reads the text of a note; extension lines are allowed and ignored."""


def format_checkpoint(checkpoint: Checkpoint) -> bytes:
    root = b64encode(checkpoint.root).decode("ascii")
    return f"{checkpoint.origin}\n{checkpoint.size}\n{root}\n".encode()


def cosigned_at(time: int) -> datetime | None:
    """When a witness signed, from the Unix seconds in its cosignature; None for no date we have.

    The holder of the witness's key may sign any number below 2^63, far beyond the year 9999.
    """
    try:
        return _EPOCH + timedelta(seconds=time)
    except OverflowError:
        return None
