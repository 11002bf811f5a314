"""The signed history of a log's keys: which key counts for which sizes of checkpoints.

See `spec/evidence-format.md`, section 19. From one trusted key a reader learns the other keys, and
the tree size at which a key was retired.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from countersign_evidence.encoding import read_number, read_text
from countersign_evidence.entry import check_origin, entry_host
from countersign_evidence.errors import EvidenceError
from countersign_evidence.note import (
    ED25519,
    Signer,
    Verifier,
    open_note,
    parse_checkpoint,
    parse_note,
)
from countersign_evidence.policy import CheckedCheckpoint, Policy, UnnamedKey

_OPEN_END = "-"


class KeyRange(NamedTuple):
    """A key, and the sizes of the checkpoints for which it counts; `end` None: it still signs."""

    start: int
    end: int | None
    key: Verifier

    def holds(self, size: int) -> bool:
        """Whether it is one of these sizes."""
        return self.start <= size and (self.end is None or size <= self.end)


class KeyHistory(NamedTuple):
    """The keys of a log, the oldest first."""

    origin: str
    ranges: tuple[KeyRange, ...]

    @property
    def keys(self) -> tuple[Verifier, ...]:
        return tuple(found.key for found in self.ranges)

    def goes_on(self, before: "KeyHistory") -> bool:
        """Whether it begins with the keys of another; one still signing there may have ended."""
        pairs = [*zip(before.ranges, self.ranges, strict=False)]
        return len(pairs) == len(before.ranges) and all(
            old[:1] + old[2:] == new[:1] + new[2:] and old.end in {None, new.end}
            for old, new in pairs
        )

    def counts(self, key: Verifier, size: int) -> bool:
        """Whether a key counts for a checkpoint of this size."""
        return any(found.key == key and found.holds(size) for found in self.ranges)


def sign_history(history: KeyHistory, signers: Sequence[Signer]) -> bytes:
    """The signed note of a history. Only Ed25519 keys sign it: others sign checkpoints alone."""
    text = _text(history)
    return text + b"\n" + b"".join(signer.sign(text) for signer in signers)


def check_history(
    note: bytes, trusted: Sequence[Verifier], before: KeyHistory | None = None
) -> KeyHistory:
    """The history, if each of these Ed25519 keys of its log signed it.

    `before` was checked earlier. This one goes on from it, and of the keys in that only the newest
    has to have signed. So a stolen retired key adds nothing for readers who know its successor.
    Raises EvidenceError if it is malformed, is not signed by those or by the newest key that it
    lists, or has a wrong signature by a trusted or a listed key.
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
    if before is not None:
        if not history.goes_on(before):
            raise EvidenceError(f"the key history of {origin} contradicts an earlier one")
        earlier = [key for key in before.keys if key.kind == ED25519]
        own = [*(key for key in own if key not in earlier), *earlier[-1:]]
    _, lines_by = open_note(note, [*dict.fromkeys([*own, *listed])])
    signed = {line.by for line in lines_by}
    if not own or not all(key in listed and key.signs_as in signed for key in own):
        raise EvidenceError(f"not every trusted key of {origin} signed the key history")
    if listed[-1].signs_as not in signed:
        raise EvidenceError("the newest key did not sign the key history")
    return history


def follows(policy: Policy, origin: str) -> bool:
    """Whether this policy can follow the log's keys: only Ed25519 keys sign histories."""
    return any(key.name == origin and key.kind == ED25519 for key in policy.logs)


def known_history(policy: Policy, origin: str, histories: Iterable[bytes]) -> KeyHistory | None:
    """The known history of a log's keys; `histories` begin with those known longest.

    A history that the policy's keys did not sign, or that does not continue the earlier ones, is
    ignored.
    """
    return next(reversed(_chain(policy, origin, histories)), None)


def _chain(policy: Policy, origin: str, histories: Iterable[bytes]) -> list[KeyHistory]:
    found: list[KeyHistory] = []
    own = [key for key in policy.logs if key.name == origin]
    for note in histories:
        with suppress(EvidenceError):
            found.append(check_history(note, own, found[-1] if found else None))
    return found


def keys_for(
    policy: Policy, origin: str, size: int | None, histories: Iterable[bytes]
) -> tuple[Verifier, ...]:
    """The keys that count for a tree of this size of a log: of the policy, then by its histories.

    `size` None: of any size, since a receipt has none. A key that counts in any history counts:
    otherwise a log could sign two trees, and afterwards end the key's range before them.
    """
    named = [found for known in _chain(policy, origin, histories) for found in known.ranges]
    counted = [
        found.key for found in named if found.key.checkable and (size is None or found.holds(size))
    ]
    own = [key for key in policy.logs if key.name == origin]
    return tuple(dict.fromkeys([*own, *counted]))


def check_checkpoint(
    note: bytes, policy: Policy, histories: Sequence[bytes] = ()
) -> CheckedCheckpoint:
    """`Policy.check_signature`, also by a key that counts for this size by one of the histories."""
    try:
        return policy.check_signature(note)
    except UnnamedKey:
        said = parse_checkpoint(parse_note(note).text)
        logs = keys_for(policy, said.origin, said.size, histories)
        return replace(policy, logs=logs).check_signature(note)


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
