"""Checkpoints (c2sp.org/tlog-checkpoint): the signed head of a log, as a note.

And what a witness signs (c2sp.org/tlog-cosignature): a checkpoint, and when it was seen.
"""

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from countersign_evidence.encoding import by_the_rules
from countersign_evidence.errors import EvidenceError
from countersign_evidence.offline import verify as rules

_NAME_BYTES_MAX = 255
_LABEL = b"subtree/v1\n\x00"
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


def ed25519_message(time: int, text: bytes) -> bytes:
    """The message of a cosignature/v1 by Ed25519: two lines, and the text of the note."""
    return f"cosignature/v1\ntime {time}\n".encode() + text


def mldsa_message(name: str, time: int, text: bytes) -> bytes:
    """The message of a cosignature by ML-DSA-44 over a checkpoint.

    It is the `cosigned_message` over all leaves of the tree, those from 0 to before its size.
    Extension lines of the checkpoint are no part of it.
    """
    origin, size, root = parse_checkpoint(text)
    start, end = (number.to_bytes(8, "big") for number in (0, size))
    return b"".join(
        [_LABEL, _short(name), time.to_bytes(8, "big"), _short(origin), start, end, root]
    )


def _short(name: str) -> bytes:
    """Text with its length in one byte before it."""
    data = name.encode()
    if not 1 <= len(data) <= _NAME_BYTES_MAX:
        raise EvidenceError(f"a name that is cosigned has from 1 to {_NAME_BYTES_MAX} bytes")
    return bytes([len(data)]) + data
