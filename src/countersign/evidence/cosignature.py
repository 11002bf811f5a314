"""What a witness signs (c2sp.org/tlog-cosignature): a checkpoint, and when it was seen."""

from datetime import UTC, datetime, timedelta

from countersign.evidence.checkpoint import parse_checkpoint
from countersign.evidence.errors import EvidenceError

_NAME_BYTES_MAX = 255
_LABEL = b"subtree/v1\n\x00"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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

    Extension lines of the checkpoint are no part of it.

    Raises:
        EvidenceError: the text is not a checkpoint, or a name is too long.
    """
    checkpoint = parse_checkpoint(text)
    return subtree_message(name, time, checkpoint.origin, 0, checkpoint.size, checkpoint.root)


def subtree_message(  # noqa: PLR0917 - the members of the structure, in its order
    name: str, time: int, origin: str, start: int, end: int, root: bytes
) -> bytes:
    """The `cosigned_message` over the leaves from `start` to before `end`.

    Raises:
        EvidenceError: the name of the witness or the origin is empty, or over 255 bytes.
    """
    return b"".join(
        [
            _LABEL,
            _short(name),
            time.to_bytes(8, "big"),
            _short(origin),
            start.to_bytes(8, "big"),
            end.to_bytes(8, "big"),
            root,
        ]
    )


def _short(name: str) -> bytes:
    """Text with its length in one byte before it."""
    data = name.encode()
    if not 1 <= len(data) <= _NAME_BYTES_MAX:
        msg = f"a name that is cosigned has from 1 to {_NAME_BYTES_MAX} bytes"
        raise EvidenceError(msg)
    return bytes([len(data)]) + data
