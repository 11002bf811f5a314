"""Policy files (c2sp.org/tlog-policy): whose checkpoints count, and which witnesses cosign them.

A checkpoint is valid if a log that is listed signed it and the witnesses that cosigned it satisfy
the quorum. A signature that is not by a key of the policy counts for nothing.
"""

from collections.abc import Sequence
from typing import Final

from countersign.evidence.errors import EvidenceError
from countersign.evidence.note import ED25519, Verifier
from countersign.evidence.trust import (
    NONE,
    CheckedCheckpoint,
    Cosigned,
    Group,
    NoQuorum,
    NotCheckable,
    NotSigned,
    Policy,
    Witness,
)

__all__ = [
    "NONE",
    "CheckedCheckpoint",
    "Cosigned",
    "Group",
    "NoQuorum",
    "NotCheckable",
    "NotSigned",
    "Policy",
    "Witness",
    "parse_policy",
]
_BYTES_MAX: Final = 1_000_000
_DEFINITIONS_MAX: Final = 1000


def parse_policy(data: bytes, *, any_kind: bool = False) -> Policy:
    """Read a policy file.

    Args:
        data: the file.
        any_kind: also take keys of a kind that cannot be checked here. Their signatures count for
            nothing, so a quorum that needs them is not met.

    Raises:
        EvidenceError: it is malformed.
    """
    if len(data) > _BYTES_MAX:
        msg = f"a policy has at most {_BYTES_MAX} bytes"
        raise EvidenceError(msg)
    if any((octet < 0x20 and octet not in b"\t\n") or octet == 0x7F for octet in data):
        msg = "a policy has no control characters but tab and newline"
        raise EvidenceError(msg)
    reader = _Reader(any_kind=any_kind)
    for number, line in enumerate(data.split(b"\n"), 1):
        items = line.replace(b"\t", b" ").split(b" ")
        items = [item for item in items if item]
        if not items or items[0].startswith(b"#"):
            continue
        try:
            reader.take(items[0], items[1:])
        except EvidenceError as error:
            msg = f"line {number} of the policy: {error}"
            raise EvidenceError(msg) from error
    return reader.policy()


class _Reader:
    """Takes the lines one by one: what a line names has to stand above it."""

    def __init__(self, *, any_kind: bool) -> None:
        self._any_kind = any_kind
        self._logs: list[Verifier] = []
        self._witnesses: list[Witness] = []
        self._groups: list[Group] = []
        self._names: set[bytes] = {NONE}
        self._members: set[bytes] = set()
        self._quorum: bytes | None = None

    def take(self, keyword: bytes, items: Sequence[bytes]) -> None:
        match keyword:
            case b"log":
                self._log(items)
            case b"witness":
                self._witness(items)
            case b"group":
                self._group(items)
            case b"quorum":
                self._take_quorum(items)
            case _:
                msg = "expected log, witness, group or quorum"
                raise EvidenceError(msg)
        if len(self._logs) + len(self._names) > _DEFINITIONS_MAX:
            msg = f"there are more than {_DEFINITIONS_MAX} definitions"
            raise EvidenceError(msg)

    def policy(self) -> Policy:
        if self._quorum is None:
            msg = "a policy has a quorum line"
            raise EvidenceError(msg)
        return Policy(tuple(self._logs), tuple(self._witnesses), tuple(self._groups), self._quorum)

    def _log(self, items: Sequence[bytes]) -> None:
        if len(items) not in {1, 2}:
            msg = "expected log <vkey> [<url>]"
            raise EvidenceError(msg)
        key = self._vkey(items[0])
        if any(key.public_key == other.public_key for other in self._logs):
            msg = "the same key as another log"
            raise EvidenceError(msg)
        self._logs.append(key)

    def _witness(self, items: Sequence[bytes]) -> None:
        if len(items) not in {2, 3}:
            msg = "expected witness <name> <vkey> [<url>]"
            raise EvidenceError(msg)
        key = self._vkey(items[1])
        if key.kind == ED25519:
            msg = "the key of a witness must be of the kind 0x04 or 0x06, not 0x01 as for logs"
            raise EvidenceError(msg)
        if any(key.public_key == other.verifier.public_key for other in self._witnesses):
            msg = "the same key as another witness"
            raise EvidenceError(msg)
        self._define(items[0])
        url = items[2].decode("utf-8", "replace") if len(items) > 2 else None
        self._witnesses.append(Witness(items[0], key, url))

    def _group(self, items: Sequence[bytes]) -> None:
        if len(items) < 3:
            msg = "expected group <name> all|any|<k> <name>…"
            raise EvidenceError(msg)
        name, how, members = items[0], items[1], tuple(items[2:])
        for member in members:
            if member == NONE or member not in self._names:
                msg = "a member is not defined above"
                raise EvidenceError(msg)
            if member in self._members:
                msg = "a name can be a member only once"
                raise EvidenceError(msg)
            self._members.add(member)
        words = {b"all": len(members), b"any": 1}
        threshold = words.get(how)
        if threshold is None:
            if not how.isdigit() or len(how) > 4 or how.startswith(b"0"):
                msg = "expected all, any or a number"
                raise EvidenceError(msg)
            threshold = int(how)
        if not 1 <= threshold <= len(members):
            msg = "the number must be from 1 to the number of members"
            raise EvidenceError(msg)
        self._define(name)
        self._groups.append(Group(name, threshold, members))

    def _take_quorum(self, items: Sequence[bytes]) -> None:
        if len(items) != 1:
            msg = "expected quorum <name>"
            raise EvidenceError(msg)
        if self._quorum is not None:
            msg = "a policy has only one quorum line"
            raise EvidenceError(msg)
        if items[0] not in self._names:
            msg = "the quorum is not defined above"
            raise EvidenceError(msg)
        self._quorum = items[0]

    def _define(self, name: bytes) -> None:
        if name in self._names:
            msg = "the name is already defined"
            raise EvidenceError(msg)
        self._names.add(name)

    def _vkey(self, text: bytes) -> Verifier:
        try:
            return Verifier.parse(text.decode("utf-8"), any_kind=self._any_kind)
        except UnicodeDecodeError as error:
            msg = "a verifier key is UTF-8"
            raise EvidenceError(msg) from error
