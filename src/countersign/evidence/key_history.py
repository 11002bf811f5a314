"""The signed history of a log's keys: which key counts for checkpoints of which sizes.

See `spec/evidence-format.md`, section 19. Who trusts one of the keys learns the others from it, and
where in the log a key stopped to count.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from countersign.evidence.encoding import read_number, read_text
from countersign.evidence.entry import check_origin, entry_host
from countersign.evidence.errors import EvidenceError
from countersign.evidence.note import ED25519, Signer, Verifier, open_note, parse_note

_OPEN_END = "-"


class KeyRange(NamedTuple):
    """A key, and the sizes of the checkpoints for which it counts; `end` None: it still signs."""

    start: int
    end: int | None
    key: Verifier


@dataclass(frozen=True, slots=True)
class KeyHistory:
    """The keys of a log, the oldest first."""

    origin: str
    ranges: tuple[KeyRange, ...]

    def counts(self, key: Verifier, size: int) -> bool:
        """Whether a key counts for a checkpoint of this size."""
        return any(
            found.key == key and found.start <= size and (found.end is None or size <= found.end)
            for found in self.ranges
        )


def sign_history(history: KeyHistory, signers: Sequence[Signer]) -> bytes:
    """The signed note of a history. Only Ed25519 keys sign it: others sign checkpoints alone."""
    text = _text(history)
    return text + b"\n" + b"".join(signer.sign(text) for signer in signers)


def check_history(note: bytes, trusted: Sequence[Verifier]) -> KeyHistory:
    """What a history says that one of these keys signed, for its own log.

    Raises EvidenceError if it is malformed, none of the keys signed it, a signature by one of them
    or by a key that it lists is wrong, or the newest Ed25519 key that it lists did not sign.
    """
    lines = read_text(parse_note(note).text, "a key history is UTF-8").split("\n")
    if len(lines) < 4 or lines.pop() != "":
        raise EvidenceError("a key history is two lines, and one for each key")
    origin = lines[1]
    check_origin(origin)
    history = KeyHistory(origin, tuple(map(_range, lines[2:])))
    if _text(history) != parse_note(note).text:
        raise EvidenceError("not a key history")
    if any(found.key.name != origin for found in history.ranges):
        raise EvidenceError("a key history lists only keys of its log")
    listed = [found.key for found in history.ranges if found.key.kind == ED25519]
    own = [key for key in trusted if key.name == origin and key.kind == ED25519]
    _, lines_by = open_note(note, [*dict.fromkeys([*own, *listed])])
    signed = {line.by for line in lines_by}
    if not any(key.signs_as in signed for key in own):
        raise EvidenceError(f"no key that is trusted signed the key history of {origin}")
    if not listed or listed[-1].signs_as not in signed:
        raise EvidenceError("the newest key did not sign the key history")
    return history


def _text(history: KeyHistory) -> bytes:
    # Never the text of a checkpoint, whose first line is an origin.
    lines = [f"{entry_host(history.origin)}/keys/v1", history.origin]
    for start, end, key in history.ranges:
        lines.append(f"{start} {_OPEN_END if end is None else end} {key.vkey}")
    return "".join(f"{line}\n" for line in lines).encode()


def _range(line: str) -> KeyRange:
    parts = line.split(" ")
    if len(parts) != 3:
        raise EvidenceError("a line of a key history is two sizes and a key")
    end = None if parts[1] == _OPEN_END else read_number(parts[1])
    return KeyRange(read_number(parts[0]), end, Verifier.parse(parts[2], any_kind=True))
