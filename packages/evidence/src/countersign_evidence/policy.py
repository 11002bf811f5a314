"""Policy files (c2sp.org/tlog-policy): whose checkpoints count, and which witnesses cosign them.

A checkpoint is valid if a log that is listed signed it and the witnesses that cosigned it satisfy
the quorum. A signature that is not by a key of the policy counts for nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from countersign_evidence.checkpoint import Checkpoint, parse_checkpoint
from countersign_evidence.encoding import read_text
from countersign_evidence.errors import EvidenceError
from countersign_evidence.note import ED25519, NoKnownSignature, Verifier, open_note, parse_note

NONE: Final = b"none"
"""The quorum that asks for no witness."""
TEST_ORIGIN: Final = "/v1/log/test/"
"""What the origins of test logs have in them."""
POLICY_BYTES_MAX: Final = 1_000_000
_DEFINITIONS_MAX: Final = 1000


def readable(name: bytes) -> str:
    """The name of a witness or group for people. Only the bytes distinguish two names."""
    return name.decode("utf-8", "backslashreplace")


class Witness(NamedTuple):
    """A witness of a policy: its name there, its key, and its address, if it is given."""

    name: bytes
    verifier: Verifier
    url: str | None

    @property
    def key_name(self) -> str:
        """The name and id of its key, which distinguish it from another key of the same name."""
        return f"{self.verifier.name}+{self.verifier.key_id.hex()}"


class Group(NamedTuple):
    """Witnesses and groups of which so many have to have signed."""

    name: bytes
    threshold: int
    members: tuple[bytes, ...]


class Cosigned(NamedTuple):
    """A witness that cosigned a checkpoint, and when (Unix seconds, by its own clock)."""

    name: bytes
    time: int


class NoQuorum(EvidenceError):
    """Too few witnesses cosigned it."""


class UnnamedKey(EvidenceError):
    """No log of the policy signed it, and a key under the name of one did: perhaps a later one."""


class NotCheckable(EvidenceError):
    """It depends on a signature that is there, by a kind of key that cannot be checked here."""


class CheckedCheckpoint(NamedTuple):
    """A checkpoint that satisfies a policy."""

    checkpoint: Checkpoint
    key: Verifier
    cosigned: tuple[Cosigned, ...]
    unchecked: tuple[bytes, ...] = ()
    """Names of the witnesses that have a signature line, of a kind that cannot be checked here."""


@dataclass(frozen=True, slots=True)
class Policy:
    logs: tuple[Verifier, ...]
    witnesses: tuple[Witness, ...]
    groups: tuple[Group, ...]
    quorum: bytes

    def check_signature(self, note: bytes) -> CheckedCheckpoint:
        """Check that a log of the policy signed this checkpoint, for its own origin.

        UnnamedKey if only other keys with the name of such a log did.
        """
        # One key may be that of a log and of a witness: it is one key all the same.
        keys = dict.fromkeys([*self.logs, *(witness.verifier for witness in self.witnesses)])
        checkable = tuple(key for key in keys if key.checkable)
        parsed = parse_note(note)
        checkpoint = parse_checkpoint(parsed.text)
        signed = {line.by for line in parsed.signatures}
        try:
            _, lines = open_note(note, checkable)
        except NoKnownSignature:
            lines = ()
        verified = {line.by: line for line in lines}
        own = [key for key in self.logs if key.name == checkpoint.origin]
        log = next((key for key in own if key.signs_as in verified), None)
        if log is None:
            for key in own:
                if key.signs_as in signed and not key.checkable:
                    raise NotCheckable(f"the log signed with an unknown kind of key ({key.kind})")
            test = (
                ", a test log: is this the live policy?" if TEST_ORIGIN in checkpoint.origin else ""
            )
            known = {key.signs_as for key in own}
            unknown = any(by[0] == checkpoint.origin and by not in known for by in signed)
            error = UnnamedKey if own and unknown else EvidenceError
            raise error(f"no log of the policy signed for {checkpoint.origin}{test}")
        cosigned = tuple(
            Cosigned(witness.name, verified[witness.verifier.signs_as].time)
            for witness in self.witnesses
            if witness.verifier.signs_as in verified
        )
        unchecked = tuple(
            witness.name
            for witness in self.witnesses
            if not witness.verifier.checkable and witness.verifier.signs_as in signed
        )
        return CheckedCheckpoint(checkpoint, log, cosigned, unchecked)

    def check_quorum(self, signed: CheckedCheckpoint) -> None:
        """Check that enough witnesses cosigned; NotCheckable if that depends on unknown keys."""
        present = {cosigned.name for cosigned in signed.cosigned}
        if self._met(present):
            return
        found = ", ".join(sorted(map(readable, present))) or "no witness"
        msg = f"the policy requires {readable(self.quorum)}; cosigned by: {found}"
        if not self._met(present.union(signed.unchecked)):
            raise NoQuorum(msg)
        unknown = ", ".join(map(readable, signed.unchecked))
        msg += f"; signed by a kind of key that cannot be checked here: {unknown}"
        raise NotCheckable(msg)

    def _met(self, present: set[bytes]) -> bool:
        fulfilled = {NONE, *present}
        for group in self.groups:
            if len(fulfilled.intersection(group.members)) >= group.threshold:
                fulfilled.add(group.name)
        return self.quorum in fulfilled


def parse_policy(data: bytes, *, any_kind: bool = False) -> Policy:
    """Read a policy file; `any_kind`: also with keys of a kind that cannot be checked here.

    Their signatures count for nothing, so a quorum that needs them is not met.
    """
    if len(data) > POLICY_BYTES_MAX:
        raise EvidenceError(f"a policy has at most {POLICY_BYTES_MAX} bytes")
    if any((octet < 0x20 and octet not in b"\t\n") or octet == 0x7F for octet in data):
        raise EvidenceError("a policy has no control characters but tab and newline")
    reader = _Reader(any_kind=any_kind)
    for number, line in enumerate(data.split(b"\n"), 1):
        items = line.replace(b"\t", b" ").split(b" ")
        items = [item for item in items if item]
        if not items or items[0].startswith(b"#"):
            continue
        try:
            reader.take(items[0], items[1:])
        except EvidenceError as error:
            raise EvidenceError(f"line {number} of the policy: {error}") from error
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
                raise EvidenceError("expected log, witness, group or quorum")
        if len(self._logs) + len(self._names) > _DEFINITIONS_MAX:
            raise EvidenceError(f"there are more than {_DEFINITIONS_MAX} definitions")

    def policy(self) -> Policy:
        if self._quorum is None:
            raise EvidenceError("a policy has a quorum line")
        return Policy(tuple(self._logs), tuple(self._witnesses), tuple(self._groups), self._quorum)

    def _log(self, items: Sequence[bytes]) -> None:
        if len(items) not in {1, 2}:
            raise EvidenceError("expected log <vkey> [<url>]")
        key = self._vkey(items[0])
        if any(key.public_key == other.public_key for other in self._logs):
            raise EvidenceError("the same key as another log")
        self._logs.append(key)

    def _witness(self, items: Sequence[bytes]) -> None:
        if len(items) not in {2, 3}:
            raise EvidenceError("expected witness <name> <vkey> [<url>]")
        key = self._vkey(items[1])
        if key.kind == ED25519:
            raise EvidenceError(
                "the key of a witness must be of the kind 0x04 or 0x06, not 0x01 as for logs"
            )
        if any(key.public_key == other.verifier.public_key for other in self._witnesses):
            raise EvidenceError("the same key as another witness")
        self._define(items[0])
        url = items[2].decode("utf-8", "replace") if len(items) > 2 else None
        self._witnesses.append(Witness(items[0], key, url))

    def _group(self, items: Sequence[bytes]) -> None:
        if len(items) < 3:
            raise EvidenceError("expected group <name> all|any|<k> <name>…")
        name, how, members = items[0], items[1], tuple(items[2:])
        for member in members:
            if member == NONE or member not in self._names:
                raise EvidenceError("a member is not defined above")
            if member in self._members:
                raise EvidenceError("a name can be a member only once")
            self._members.add(member)
        threshold = {b"all": len(members), b"any": 1}.get(how)
        if threshold is None:
            if not how.isdigit() or len(how) > 4 or how.startswith(b"0"):
                raise EvidenceError("expected all, any or a number")
            threshold = int(how)
        if not 1 <= threshold <= len(members):
            raise EvidenceError("the number must be from 1 to the number of members")
        self._define(name)
        self._groups.append(Group(name, threshold, members))

    def _take_quorum(self, items: Sequence[bytes]) -> None:
        if len(items) != 1:
            raise EvidenceError("expected quorum <name>")
        if self._quorum is not None:
            raise EvidenceError("a policy has only one quorum line")
        if items[0] not in self._names:
            raise EvidenceError("the quorum is not defined above")
        self._quorum = items[0]

    def _define(self, name: bytes) -> None:
        if name in self._names:
            raise EvidenceError("the name is already defined")
        self._names.add(name)

    def _vkey(self, text: bytes) -> Verifier:
        return Verifier.parse(read_text(text, "a key is UTF-8"), any_kind=self._any_kind)
