"""Policy files (c2sp.org/tlog-policy): whose checkpoints count, and which witnesses cosign them.

A checkpoint is valid if a log that is listed signed it and the witnesses that cosigned it satisfy
the quorum. A signature that is not by a key of the policy counts for nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from countersign_evidence.encoding import NotCheckable, by_the_rules
from countersign_evidence.errors import EvidenceError
from countersign_evidence.note import Checkpoint, Verifier, parse_checkpoint, parse_note
from countersign_evidence.offline import verify as rules

NONE: Final = "none"
"""The quorum that asks for no witness."""
TEST_ORIGIN: Final = "/v1/log/test/"
"""Part of the origins of test logs."""
POLICY_BYTES_MAX: Final = 1_000_000


class Witness(NamedTuple):
    """A witness of a policy: its name there, its key, and its address, if it is given."""

    name: str
    verifier: Verifier
    url: str | None

    @property
    def key_name(self) -> str:
        """The name and id of its key, which distinguish it from another key of the same name."""
        return f"{self.verifier.name}+{self.verifier.key_id.hex()}"


class NoQuorum(EvidenceError):
    """Too few witnesses cosigned it."""


class UnnamedKey(EvidenceError):
    """No log of the policy signed it, and a key under the name of one did: perhaps a later one."""


class CheckedCheckpoint(NamedTuple):
    """A checkpoint that satisfies a policy."""

    checkpoint: Checkpoint
    key: Verifier
    cosigned: Mapping[str, int]
    """Witnesses of the policy by name, and when each signed (Unix seconds, by its own clock)."""
    unchecked: frozenset[rules.Key]
    """Keys with a signature line, of a kind that cannot be checked here."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy, read. Names can hold any bytes: what is no UTF-8 is escaped as a surrogate."""

    logs: tuple[Verifier, ...]
    witnesses: tuple[Witness, ...]
    groups: Mapping[str, tuple[int, list[str]]] = field(hash=False)
    """By name: the required number, and the witnesses and groups to count."""
    quorum: str

    @property
    def as_rules(self) -> rules.Policy:
        """The same policy for `verify.py`."""
        witnesses: dict[str, rules.Key] = {one.name: one.verifier for one in self.witnesses}
        return rules.Policy([*self.logs], witnesses, {**self.groups}, self.quorum)

    def check_signature(self, note: bytes) -> CheckedCheckpoint:
        """Check that a log of the policy signed this checkpoint, for its own origin.

        UnnamedKey if only other keys with the name of such a log did.
        """
        note_ = parse_note(note)
        checkpoint, policy = parse_checkpoint(note_.text), self.as_rules
        keys = {*policy.logs, *policy.witnesses.values()}
        signed, unchecked, _ = by_the_rules(rules.check_signatures)(keys, *note_)
        try:
            log = by_the_rules(rules.check_log)(policy, checkpoint.origin, {*signed}, unchecked)
        except NotCheckable:
            raise
        except EvidenceError as error:
            known = {key.signs_as for key in self.logs if key.name == checkpoint.origin}
            by = {line.by for line in note_.signatures if line.name == checkpoint.origin}
            if known and by - known:
                raise UnnamedKey(str(error)) from error
            raise
        cosigned = {name: signed[key] for name, key in policy.witnesses.items() if key in signed}
        return CheckedCheckpoint(checkpoint, Verifier(*log), cosigned, frozenset(unchecked))

    def check_quorum(self, signed: CheckedCheckpoint) -> None:
        """Check that enough witnesses cosigned; NotCheckable if that depends on unknown keys."""
        check = by_the_rules(rules.check_quorum)
        try:
            check(self.as_rules, {*signed.cosigned}, {*signed.unchecked})
        except NotCheckable:
            raise
        except EvidenceError as error:
            raise NoQuorum(str(error)) from error


def parse_policy(data: bytes, *, any_kind: bool = False) -> Policy:
    """Read a policy file; `any_kind`: also with keys of a kind that cannot be checked here.

    Their signatures count for nothing, so a quorum that needs them is not met.
    """
    read = by_the_rules(rules.read_policy)(data)
    lines = [line.split() for line in data.split(b"\n") if line.lstrip().startswith(b"witness")]
    urls = {line[1]: line[3].decode("utf-8", "replace") for line in lines if len(line) > 3}
    witnesses = [
        Witness(name, Verifier(*key), urls.get(name.encode("utf-8", "surrogateescape")))
        for name, key in read.witnesses.items()
    ]
    logs = tuple(Verifier(*key) for key in read.logs)
    for key in () if any_kind else (*logs, *(one.verifier for one in witnesses)):
        key.check_kind()
    return Policy(logs, (*witnesses,), read.groups, read.quorum)
