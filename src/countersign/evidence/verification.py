"""Verify a bundle or a proof: numbered steps, and the first that fails.

The steps are those of `spec/evidence-format.md`. Nothing but the file and a policy is needed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final, TypeAlias

from countersign.evidence.bundle import SUMS, contents_of, read_container, sums
from countersign.evidence.checkpoint import parse_checkpoint
from countersign.evidence.contents import check_disclosures, check_notice, check_record
from countersign.evidence.entry import log_entry
from countersign.evidence.errors import EvidenceError
from countersign.evidence.note import parse_note
from countersign.evidence.policy import (
    NONE,
    CheckedCheckpoint,
    NoQuorum,
    NotCheckable,
    Policy,
    parse_policy,
)
from countersign.evidence.proof import FIRST_LINE, Proof, parse_proof
from countersign.evidence.record import ACKNOWLEDGMENT
from countersign.evidence.timestamp import as_der, read_timestamp
from countersign.evidence.tree import leaf_hash, verify_inclusion
from countersign.evidence.trust import readable

STEPS: Final = (
    "container",
    "signature",
    "quorum",
    "record",
    "inclusion",
    "disclosures",
    "notice",
    "timestamps",
    "files",
)
"""The names of the steps, the first is number 1."""
_ZIP: Final = b"PK"

CheckTimestamp: TypeAlias = Callable[[bytes, bytes], str]
"""Checks an RFC 3161 response (DER) over these bytes: what it says, or EvidenceError."""


class Conclusion(StrEnum):
    """What verifying came to, the same words for all readers."""

    OK = "ok"
    """All steps passed, and the key is one that the reader was given."""
    CONSISTENT = "consistent"
    """All steps passed with the key in the bundle itself, which its maker may have made."""
    UNCHECKED = "unchecked"
    """None failed, but it depends on a signature of a kind that this reader cannot check."""
    FAILED = "failed"
    """A step failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What verifying came to.

    `step` and `name` are those of the step that failed or could not be checked, None if all went
    well. `facts` are what was established up to there, for people; `shown` the disclosed fields by
    name; `record` and `notice` what these say. These words are what was checked, and no others in a
    bundle are.
    """

    outcome: Conclusion
    step: int | None = None
    name: str | None = None
    message: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    shown: Mapping[str, Any] = field(default_factory=dict)
    record: Mapping[str, Any] = field(default_factory=dict)
    notice: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether all steps passed; by whose key is in `outcome`."""
        return self.outcome in {Conclusion.OK, Conclusion.CONSISTENT}

    def line(self) -> str:
        """The verdict in one line."""
        match self.outcome:
            case Conclusion.OK:
                return f"OK  {self.message}"
            case Conclusion.CONSISTENT:
                return f"CONSISTENT, KEY NOT CHECKED  {self.message}"
            case Conclusion.UNCHECKED:
                return f"COULD NOT BE CHECKED at step {self.step} ({self.name}): {self.message}"
            case Conclusion.FAILED:
                return f"FAILED at step {self.step} ({self.name}): {self.message}"


class _Failure(EvidenceError):
    def __init__(self, name: str, message: str, outcome: Conclusion = Conclusion.FAILED) -> None:
        super().__init__(message)
        self.name = name
        self.outcome = outcome


class _Steps:
    """The state of one verification."""

    def __init__(self) -> None:
        self.facts: dict[str, Any] = {}
        self.shown: dict[str, Any] = {}
        self.record: dict[str, Any] = {}
        self.notice: dict[str, Any] = {}
        self.unchecked: _Failure | None = None


def verify_file(
    data: bytes, policy: Policy | None = None, check_timestamp: CheckTimestamp | None = None
) -> Verdict:
    """Verify a bundle, or a proof with the record in it. Never raises, whatever the bytes are.

    Args:
        data: the file.
        policy: whose logs and witnesses are trusted; None: those of the policy in the bundle
            itself, which shows only that the bundle agrees with itself.
        check_timestamp: checks the signatures of RFC 3161 responses; None: what they are about is
            checked, whose they are is not.
    """
    steps = _Steps()
    try:
        if data[:2] == _ZIP:
            message = _verify_bundle(steps, data, policy, check_timestamp)
        else:
            message = _verify_proof(steps, data, policy)
        if steps.unchecked:
            raise steps.unchecked
    except _Failure as failure:
        return Verdict(
            outcome=failure.outcome,
            step=STEPS.index(failure.name) + 1,
            name=failure.name,
            message=str(failure),
            facts=steps.facts,
        )
    return Verdict(
        outcome=Conclusion.OK if steps.facts["policy"] == "given" else Conclusion.CONSISTENT,
        message=message,
        facts=steps.facts,
        shown=steps.shown,
        record=steps.record,
        notice=steps.notice,
    )


def _verify_bundle(
    steps: _Steps, data: bytes, policy: Policy | None, check_timestamp: CheckTimestamp | None
) -> str:
    with _step("container"):
        files = read_container(data)
        contents, listed = contents_of(files)
        proof = parse_proof(contents.proof)
        parse_checkpoint(parse_note(proof.checkpoint).text)
        _record_of(proof)
        own = parse_policy(contents.policy, any_kind=True)
        if not contents.policy.endswith(b"\n"):  # a policy by hand may; in a bundle is one form
            msg = "the last line of policy.txt does not end in a newline"
            raise EvidenceError(msg)
    steps.facts["policy"] = "bundle" if policy is None else "given"
    checked = _signed(steps, proof, own if policy is None else policy)
    with _step("record"):
        if proof.extra != contents.record:
            msg = "record.json is not the record of the proof"
            raise EvidenceError(msg)
        steps.record = check_record(contents.record, checked.checkpoint.origin)
        if steps.record["type"] != ACKNOWLEDGMENT:
            msg = f"the record of a bundle must be an acknowledgment, not {steps.record['type']}"
            raise EvidenceError(msg)
    _included(steps, contents.record, proof, checked)
    with _step("disclosures"):
        steps.shown = check_disclosures(contents.disclosures, steps.record)
    with _step("notice"):
        steps.notice = check_notice(contents.notice, steps.record, steps.shown)
    with _step("timestamps"):
        over = without_cosignatures(proof.checkpoint)
        steps.facts["timestamps"] = [
            _stamped(token, over, check_timestamp) for token in contents.timestamps.values()
        ]
    with _step("files"):
        if sums({n: d for n, d in files.items() if n != SUMS}) != listed:
            msg = f"{SUMS} does not match the files"
            raise EvidenceError(msg)
    names = ", ".join(steps.shown) or "nothing personal"
    return f"{_told(steps)}; shown: {names}; {_rests_on(steps.facts)}"


def _verify_proof(steps: _Steps, data: bytes, policy: Policy | None) -> str:
    with _step("container"):
        if not data.startswith(FIRST_LINE.encode()):
            msg = "neither a bundle nor a proof"
            raise EvidenceError(msg)
        proof = parse_proof(data)
        parse_checkpoint(parse_note(proof.checkpoint).text)
        record = _record_of(proof)
    if policy is None:
        raise _Failure("signature", "a proof alone needs a policy to be checked against")
    steps.facts["policy"] = "given"
    checked = _signed(steps, proof, policy)
    with _step("record"):
        steps.record = check_record(record, checked.checkpoint.origin)
    _included(steps, record, proof, checked)
    return f"{_told(steps)}; {_rests_on(steps.facts)}"


def _signed(steps: _Steps, proof: Proof, policy: Policy) -> CheckedCheckpoint:
    with _step("signature"):
        try:
            checked = policy.check_signature(proof.checkpoint)
        except NotCheckable as error:
            raise _Failure("signature", str(error), Conclusion.UNCHECKED) from error
    steps.facts["log"] = checked.checkpoint.origin
    steps.facts["size"] = checked.checkpoint.size
    steps.facts["key"] = checked.key.vkey
    steps.facts["key_fingerprint"] = sha256(checked.key.public_key).hexdigest()
    try:
        policy.check_quorum(checked)
    except NoQuorum as error:
        raise _Failure("quorum", str(error)) from error
    except NotCheckable as error:  # what else is wrong is worth more than what cannot be known
        steps.unchecked = _Failure("quorum", str(error), Conclusion.UNCHECKED)
    steps.facts["quorum"] = None if policy.quorum == NONE else readable(policy.quorum)
    steps.facts["cosigned"] = [{"name": readable(c.name), "time": c.time} for c in checked.cosigned]
    return checked


def _included(steps: _Steps, record: bytes, proof: Proof, checked: CheckedCheckpoint) -> None:
    checkpoint = checked.checkpoint
    with _step("inclusion"):
        leaf = leaf_hash(log_entry(checkpoint.origin, sha256(record).digest()))
        verify_inclusion(proof.index, checkpoint.size, leaf, proof.path, checkpoint.root)
    steps.facts["index"] = proof.index


def _record_of(proof: Proof) -> bytes:
    if proof.extra is None:
        msg = "the proof does not contain its record"
        raise EvidenceError(msg)
    return proof.extra


def _stamped(token: bytes, over: bytes, check: CheckTimestamp | None) -> str:
    """What a time-stamp says, which has to be about these bytes."""
    stamp = read_timestamp(token)
    if not stamp.known():
        return f"{stamp.at}, not checked, since its hash algorithm is unknown"
    if not stamp.about(over):
        msg = "a time-stamp does not cover the checkpoint"
        raise EvidenceError(msg)
    if check is None:
        return f"{stamp.at}, for this checkpoint; its signer was not checked"
    return check(as_der(token), over)


def without_cosignatures(note: bytes) -> bytes:
    """A signed checkpoint with only the signature lines of its own origin: what is time-stamped.

    Raises:
        EvidenceError: it is malformed.
    """
    parsed = parse_note(note)
    origin = parse_checkpoint(parsed.text).origin
    start = note.rindex(b"\n\n") + 2
    lines = note[start:].splitlines(keepends=True)
    own = [
        line
        for line, signature in zip(lines, parsed.signatures, strict=True)
        if signature.name == origin
    ]
    return note[:start] + b"".join(own)


def _told(steps: _Steps) -> str:
    facts, record = steps.facts, steps.record
    trust = ""
    if facts["policy"] == "bundle":
        trust = f" (checked against the key that came in this bundle, {facts['key_fingerprint']})"
    return (
        f"{record['id']} sealed in {facts['log']} as entry {facts['index']}, "
        f"checkpoint of size {facts['size']}{trust}"
    )


def _rests_on(facts: Mapping[str, Any]) -> str:
    """What, besides the log's own signature, speaks for the checkpoint and its time."""
    by = ", ".join(cosigned["name"] for cosigned in facts["cosigned"])
    quorum = f"quorum {facts['quorum']}" if facts["quorum"] else "no quorum required"
    stamps = len(facts.get("timestamps", ()))
    if not by and not stamps:
        return "no witness, no time-stamp: only the operator's clock shows the time"
    return f"cosigned by {by or 'no witness'} ({quorum}), {stamps} time-stamp(s)"


class _step:  # noqa: N801 - it reads as a statement
    """Turns an EvidenceError inside into the failure of this step."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, EvidenceError) and not isinstance(error, _Failure):
            raise _Failure(self._name, str(error)) from error
        if isinstance(error, RecursionError):
            message = "it is nested too deeply"
            raise _Failure(self._name, message) from error
