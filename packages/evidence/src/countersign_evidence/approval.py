"""Approvals: a change of a log's keys as a text, and the approvers' signatures.

See `spec/evidence-format.md`, section 19. A person is represented by an Ed25519 key, registered in
advance and held by the person alone.
"""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from countersign_evidence.encoding import read_text, strict_base64
from countersign_evidence.entry import check_origin, entry_host
from countersign_evidence.errors import EvidenceError
from countersign_evidence.instant import parse_rfc3339, rfc3339_ms
from countersign_evidence.note import (
    ED25519,
    SignatureLine,
    Signer,
    Verifier,
    check_name,
    open_note,
)

ROTATE: Final = "rotate-key"
SET_APPROVERS: Final = "set-approvers"
"""The kinds of changes to approve."""
_PRIVATE: Final = "PRIVATE+KEY+"


class Roster(NamedTuple):
    """The approvers of key changes, and how many each needs; 0: none."""

    threshold: int
    approvers: tuple[Verifier, ...]


def make_roster(threshold: int, vkeys: Sequence[str]) -> Roster:
    """A roster of these verifier keys.

    Raises EvidenceError if one is no Ed25519 key, two have a name or key in common, or there are
    fewer than the threshold.
    """
    approvers = tuple(Verifier.parse(vkey) for vkey in vkeys)
    if any(approver.kind != ED25519 for approver in approvers):
        raise EvidenceError("the key of an approver is an Ed25519 key, of kind 0x01")
    for what in ({a.name for a in approvers}, {a.public_key for a in approvers}):
        if len(what) != len(approvers):
            raise EvidenceError("two approvers have the same name, or the same key")
    if not 0 <= threshold <= len(approvers):
        raise EvidenceError("the threshold is at most the number of approvers")
    return Roster(threshold, approvers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A change of the keys of a log that is to be approved before `until`.

    `lines` are the changes: names and values, in the order of the text.
    """

    id: str
    origin: str
    until: datetime
    act: str
    lines: tuple[tuple[str, str], ...]

    def values(self, name: str) -> list[str]:
        """The values of the lines of this name."""
        return [value for other, value in self.lines if other == name]

    def text(self) -> bytes:
        """The signed text. Its first line is never an origin, that is the first of a checkpoint."""
        lines = [f"{entry_host(self.origin)}/approval/v1", self.origin]
        lines += [f"proposal {self.id}", f"until {rfc3339_ms(self.until)}", f"act {self.act}"]
        lines += [f"{name} {value}" for name, value in self.lines]
        return "".join(f"{line}\n" for line in lines).encode()


def parse_proposal(text: bytes) -> Proposal:
    """Read what `Proposal.text` wrote; EvidenceError for anything else."""
    lines = read_text(text, "a proposal is UTF-8").split("\n")
    if len(lines) <= 5 or lines.pop() != "":
        raise EvidenceError("not a proposal to approve")
    check_origin(lines[1])
    pairs = [line.partition(" ")[::2] for line in lines[2:]]
    values = [value for _, value in pairs[:3]]
    try:
        until = parse_rfc3339(values[1])
    except ValueError as error:
        raise EvidenceError("a proposal has a time") from error
    found = Proposal(
        id=values[0], origin=lines[1], until=until, act=values[2], lines=tuple(pairs[3:])
    )
    if found.text() != text:
        raise EvidenceError("not a proposal to approve")
    return found


def check_approvals(note: bytes, roster: Roster) -> tuple[Proposal, tuple[SignatureLine, ...]]:
    """A proposal, and the signatures of approvers of this roster below it, all good.

    Raises EvidenceError if it is malformed, one of them is wrong, or there is none.
    """
    text, lines = open_note(note, roster.approvers)
    return parse_proposal(text), lines


def sign_proposal(text: bytes, signer: Signer) -> bytes:
    """The signed note of one person's approval of a proposal; EvidenceError if it is none."""
    return parse_proposal(text).text() + b"\n" + signer.sign(text)


def private_key(name: str, seed: bytes) -> str:
    """A private key as text, as Go's sumdb/note writes it: with a plus between its parts."""
    key_id = Signer.from_seed(name, seed).verifier.key_id.hex()
    return f"{_PRIVATE}{name}+{key_id}+{b64encode(bytes([ED25519]) + seed).decode('ascii')}"


def read_private_key(text: str) -> Signer:
    """The signer of a private key as text; EvidenceError if it is none, or of another kind."""
    name, _, rest = text.strip().removeprefix(_PRIVATE).partition("+")
    key_id, _, encoded = rest.partition("+")
    check_name(name)
    data = strict_base64(encoded)
    if not text.startswith(_PRIVATE) or len(data) != 33 or data[0] != ED25519:
        raise EvidenceError("not a private Ed25519 key")
    signer = Signer.from_seed(name, data[1:])
    if signer.verifier.key_id.hex() != key_id:
        raise EvidenceError("the id of the private key does not go with it")
    return signer
