"""Policy files (c2sp.org/tlog-policy): whose checkpoints count, and which witnesses cosign them.

A checkpoint is valid if a log that is listed signed it and the witnesses that cosigned it satisfy
the quorum. A signature that is not by a key of the policy counts for nothing.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

from countersign_evidence.checkpoint import Checkpoint, parse_checkpoint
from countersign_evidence.encoding import by_the_rules
from countersign_evidence.errors import EvidenceError
from countersign_evidence.note import NoKnownSignature, Verifier, open_note, parse_note
from countersign_evidence.offline import verify as rules

NONE: Final = b"none"
"""The quorum that asks for no witness."""
TEST_ORIGIN: Final = "/v1/log/test/"
"""What the origins of test logs have in them."""
POLICY_BYTES_MAX: Final = 1_000_000


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
    read = by_the_rules(rules.read_policy)(data)
    lines = [line.split() for line in data.split(b"\n") if line.lstrip().startswith(b"witness")]
    urls = {line[1]: line[3].decode("utf-8", "replace") for line in lines if len(line) > 3}
    witnesses = [(_name(name), Verifier.of(key)) for name, key in read.witnesses.items()]
    policy = Policy(
        tuple(map(Verifier.of, read.logs)),
        tuple(Witness(name, key, urls.get(name)) for name, key in witnesses),
        tuple(Group(_name(g), k, tuple(map(_name, of))) for g, (k, of) in read.groups.items()),
        _name(read.quorum),
    )
    for key in () if any_kind else (*policy.logs, *(key for _, key in witnesses)):
        if not key.checkable:
            raise key.uncheckable()
    return policy


def _name(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
