"""Whose checkpoints count: logs, witnesses, and how many of these have to have cosigned."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from countersign.evidence.checkpoint import Checkpoint, parse_checkpoint
from countersign.evidence.errors import EvidenceError
from countersign.evidence.note import NoKnownSignature, Verifier, open_note, parse_note

NONE: Final = b"none"
"""The quorum that asks for no witness."""
TEST_ORIGIN: Final = "/v1/log/test/"
"""What the origins of test logs have in them."""


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


class NotSigned(EvidenceError):
    """No log of the policy signed it."""


class NoQuorum(EvidenceError):
    """Too few witnesses cosigned it."""


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
    """A policy, read."""

    logs: tuple[Verifier, ...]
    witnesses: tuple[Witness, ...]
    groups: tuple[Group, ...]
    quorum: bytes

    def check(self, note: bytes) -> CheckedCheckpoint:
        """Check a signed checkpoint.

        Raises:
            NotSigned: no log of the policy signed it for its own origin.
            NoQuorum: the witnesses that cosigned it do not satisfy the quorum.
            NotCheckable: whether they do cannot be checked here.
            EvidenceError: it is malformed.
        """
        signed = self.check_signature(note)
        self.check_quorum(signed)
        return signed

    def check_signature(self, note: bytes) -> CheckedCheckpoint:
        """The same without the quorum."""
        # One key may be that of a log and of a witness: it is one key all the same.
        keys = dict.fromkeys([*self.logs, *(witness.verifier for witness in self.witnesses)])
        checkable = tuple(key for key in keys if key.checkable)
        parsed = parse_note(note)
        checkpoint = parse_checkpoint(parsed.text)
        signed = {(line.name, line.key_id) for line in parsed.signatures}
        try:
            _, lines = open_note(note, checkable)
        except NoKnownSignature:
            lines = ()
        except EvidenceError as error:
            raise NotSigned(str(error)) from error
        verified = {(line.name, line.key_id): line for line in lines}
        log = next(
            (
                key
                for key in self.logs
                if key.name == checkpoint.origin and (key.name, key.key_id) in verified
            ),
            None,
        )
        if log is None:
            for key in self.logs:
                named = key.name == checkpoint.origin and (key.name, key.key_id) in signed
                if named and not key.checkable:
                    msg = f"the log signed with an unknown kind of key ({key.kind})"
                    raise NotCheckable(msg)
            raise NotSigned(_nobody_signed(checkpoint.origin))
        cosigned = tuple(
            Cosigned(witness.name, verified[id_].time)
            for witness in self.witnesses
            if (id_ := (witness.verifier.name, witness.verifier.key_id)) in verified
        )
        unchecked = tuple(
            witness.name
            for witness in self.witnesses
            if not witness.verifier.checkable
            and (witness.verifier.name, witness.verifier.key_id) in signed
        )
        return CheckedCheckpoint(checkpoint, log, cosigned, unchecked)

    def check_quorum(self, signed: CheckedCheckpoint) -> None:
        """Check that enough witnesses cosigned.

        Raises:
            NoQuorum: they did not.
            NotCheckable: they did, if the cosignatures that cannot be checked here are good.
        """
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
        """Whether these witnesses make the quorum."""
        fulfilled = {NONE, *present}
        for group in self.groups:
            if len(fulfilled.intersection(group.members)) >= group.threshold:
                fulfilled.add(group.name)
        return self.quorum in fulfilled


def _nobody_signed(origin: str) -> str:
    """Why a checkpoint of this log counts for nothing; a test log is said to be one."""
    if TEST_ORIGIN in origin:
        return f"no log of the policy signed for {origin}, a test log: is this the live policy?"
    return f"no log of the policy signed for {origin}"
