"""Verify a bundle or a proof: numbered steps, and the first that fails.

The steps are those of `spec/evidence-format.md`. Nothing but the file and a policy is needed.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final, TypeAlias

from countersign_evidence.bundle import SUMS, contents_of, read_container, sums
from countersign_evidence.checkpoint import parse_checkpoint
from countersign_evidence.contents import check_disclosures, check_notice, check_record
from countersign_evidence.dossier import (
    CLEARANCE,
    FILES_MAX,
    GUIDE,
    Dossier,
    DossierRecord,
    Stamped,
    dossier_contents_of,
    is_dossier,
)
from countersign_evidence.entry import log_entry
from countersign_evidence.errors import EvidenceError
from countersign_evidence.joins import check_joins, check_members, check_order
from countersign_evidence.note import parse_note
from countersign_evidence.offline import verify as rules
from countersign_evidence.policy import (
    NONE,
    CheckedCheckpoint,
    NoQuorum,
    NotCheckable,
    Policy,
    parse_policy,
    readable,
)
from countersign_evidence.process import Binding
from countersign_evidence.proof import FIRST_LINE, Proof, parse_proof
from countersign_evidence.record import ACKNOWLEDGMENT, VERIFICATION
from countersign_evidence.timestamp import as_der, read_timestamp, subjects
from countersign_evidence.tree import leaf_hash, verify_inclusion

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
DOSSIER_STEPS: Final = (*STEPS[:7], "joins", *STEPS[7:])
"""Those of a dossier."""
_ZIP: Final = b"PK"
_CHECKPOINT: Final = "this checkpoint"
_BINDINGS: Final = frozenset(binding.value for binding in Binding)

CheckTimestamp: TypeAlias = Callable[[bytes, bytes], str]
"""Checks who signed an RFC 3161 response (DER) over these bytes: in words, or EvidenceError."""


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


_IN_WORDS: Final = {
    Conclusion.OK: "OK",
    Conclusion.CONSISTENT: "CONSISTENT, KEY NOT CHECKED",
    Conclusion.UNCHECKED: "COULD NOT BE CHECKED",
    Conclusion.FAILED: "FAILED",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What verifying came to.

    `step` and `name` are those of the step that failed or could not be checked, None if all went
    well. `facts` are what was established up to there, for people; `shown` the disclosed fields by
    name; `record` and `notice` what these say; `remarks` what is odd in them, and no failure;
    `dossier` all of that if it is one. These words are what was checked, and no others in the file.
    """

    outcome: Conclusion
    step: int | None = None
    name: str | None = None
    message: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    shown: Mapping[str, Any] = field(default_factory=dict)
    record: Mapping[str, Any] = field(default_factory=dict)
    notice: Mapping[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    dossier: Dossier | None = None

    @property
    def ok(self) -> bool:
        """Whether all steps passed; by whose key is in `outcome`."""
        return self.outcome in {Conclusion.OK, Conclusion.CONSISTENT}

    def line(self) -> str:
        if self.ok:
            return f"{_IN_WORDS[self.outcome]}  {self.message}"
        return f"{_IN_WORDS[self.outcome]} at step {self.step} ({self.name}): {self.message}"


class _Failure(EvidenceError):
    def __init__(self, name: str, message: str, outcome: Conclusion = Conclusion.FAILED) -> None:
        super().__init__(message)
        self.name = name
        self.outcome = outcome


@dataclass(slots=True)
class _Steps:
    facts: dict[str, Any] = field(default_factory=dict)
    shown: dict[str, Any] = field(default_factory=dict)
    record: dict[str, Any] = field(default_factory=dict)
    notice: dict[str, Any] = field(default_factory=dict)
    dossier: Dossier | None = None
    remarks: tuple[str, ...] = ()
    stamps: tuple[str, ...] = ()
    unchecked: _Failure | None = None


def verify_file(
    data: bytes, policy: Policy | None = None, check_timestamp: CheckTimestamp | None = None
) -> Verdict:
    """Verify a bundle, a dossier, or a proof with its record. Never raises, whatever the bytes are.

    Without a policy, that in the bundle is trusted, which shows only that the bundle agrees with
    itself. Without `check_timestamp` it is not checked whose the time-stamps are.
    """
    steps = _Steps()
    names = DOSSIER_STEPS if is_dossier(data) else STEPS
    try:
        if names is DOSSIER_STEPS:
            message = _verify_dossier(steps, data, policy, check_timestamp)
        elif data[:2] == _ZIP:
            message = _verify_bundle(steps, data, policy, check_timestamp)
        else:
            message = _verify_proof(steps, data, policy)
        if steps.unchecked:
            raise steps.unchecked
    except _Failure as failure:
        return Verdict(
            outcome=failure.outcome,
            step=names.index(failure.name) + 1,
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
        remarks=steps.remarks,
        dossier=steps.dossier,
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
        own = _own_policy(contents.policy)
    steps.facts["policy"] = "bundle" if policy is None else "given"
    checked = _signed(steps, proof, own if policy is None else policy)
    with _step("record"):
        if proof.extra != contents.record:
            raise EvidenceError("record.json is not the record of the proof")
        steps.record = check_record(contents.record, checked.checkpoint.origin)
        if steps.record["type"] != ACKNOWLEDGMENT:
            raise EvidenceError(
                f"the record of a bundle must be an acknowledgment, not {steps.record['type']}"
            )
    _included(steps, contents.record, proof, checked)
    with _step("disclosures"):
        steps.shown = check_disclosures(contents.disclosures, steps.record)
    with _step("notice"):
        steps.notice = check_notice(contents.notice, steps.record, steps.shown)
        steps.remarks = (
            *rules.remarks_of(steps.record, steps.shown),
            *rules.remarks_of_notice(steps.notice),
        )
    _check_timestamps(steps, contents.timestamps, proof.checkpoint, check_timestamp)
    with _step("files"):
        if sums({n: d for n, d in files.items() if n != SUMS}) != listed:
            raise EvidenceError(f"{SUMS} does not match the files")
    names = ", ".join(steps.shown) or "nothing personal"
    return f"{_sealed_where(steps)}; shown: {names}{_odd(steps)}; {_rests_on(steps)}"


def _verify_dossier(
    steps: _Steps, data: bytes, policy: Policy | None, check_timestamp: CheckTimestamp | None
) -> str:
    with _step("container"):
        files = read_container(data, FILES_MAX)
        contents, listed = dossier_contents_of(files)
        proofs = {id_: parse_proof(record.proof) for id_, record in contents.records.items()}
        first = next(iter(proofs.values()))
        if any(proof.checkpoint != first.checkpoint for proof in proofs.values()):
            raise EvidenceError("the proofs are not under the same checkpoint")
        parse_checkpoint(parse_note(first.checkpoint).text)
        bodies = {id_: _record_of(proof) for id_, proof in proofs.items()}
        own = _own_policy(contents.policy)
    steps.facts["policy"] = "bundle" if policy is None else "given"
    checked = _signed(steps, first, own if policy is None else policy)
    origin = checked.checkpoint.origin
    with _step("record"):
        members = {}
        for id_, body in bodies.items():
            if body != contents.records[id_].record:
                raise EvidenceError(f"the record {id_} is not that of its proof")
            members[id_] = check_record(body, origin)
            check_members(id_, members[id_])
        check_order([(members[id_]["type"], proof.index) for id_, proof in proofs.items()])
    for id_, proof in proofs.items():
        _included(steps, bodies[id_], proof, checked)
    with _step("disclosures"):
        shown = {
            id_: check_disclosures(record.disclosures, members[id_])
            for id_, record in contents.records.items()
        }
    notice = None
    with _step("notice"):
        for id_, record in members.items():
            if record["type"] == ACKNOWLEDGMENT:
                assert contents.notice is not None  # noqa: S101 - as its container says
                notice = check_notice(contents.notice, record, shown[id_])
    records = tuple(
        DossierRecord(
            id=id_,
            type=record["type"],
            record=record,
            body=bodies[id_],
            digest=sha256(bodies[id_]).hexdigest(),
            shown=shown[id_],
            index=proofs[id_].index,
        )
        for id_, record in members.items()
    )
    with _step("joins"):
        joined = check_joins(records, notice or {})
    steps.remarks = joined.remarks
    steps.record = dict(next(r.record for r in records if r.type in {ACKNOWLEDGMENT, CLEARANCE}))
    steps.notice = notice or {}
    _check_timestamps(steps, contents.timestamps, first.checkpoint, check_timestamp)
    with _step("files"):
        if contents.readme != GUIDE:
            raise EvidenceError("README.txt is not the text that every dossier has")
        if sums({n: d for n, d in files.items() if n != SUMS}) != listed:
            raise EvidenceError(f"{SUMS} does not match the files")
    steps.dossier = Dossier(
        records=records,
        notice=notice,
        joins=joined.joins,
        missing=joined.missing,
        remarks=joined.remarks,
        origin=origin,
        size=checked.checkpoint.size,
        root=checked.checkpoint.root,
        checkpoint=first.checkpoint,
        cosigned=tuple((readable(c.name), c.time) for c in checked.cosigned),
        timestamps=tuple(
            Stamped(name, read_timestamp(contents.timestamps[name]).at) for name in steps.stamps
        ),
        key_fingerprint=steps.facts["key_fingerprint"],
    )
    where = f"{steps.facts['log']}, checkpoint of size {steps.facts['size']}{_trust(steps.facts)}"
    what = ", ".join(record.id for record in records)
    lacks = f"; missing: {'; '.join(joined.missing)}" if joined.missing else ""
    return f"one order, {what}, sealed in {where}{lacks}{_odd(steps)}; {_rests_on(steps)}"


def dossier_of(data: bytes) -> Dossier:
    """What a dossier says, checked by its own policy, without the quorum that it asks for.

    So its maker and each of its readers get the same, of which the PDF is made.
    """
    policy = parse_policy(
        dossier_contents_of(read_container(data, FILES_MAX))[0].policy, any_kind=True
    )
    verdict = verify_file(data, replace(policy, quorum=NONE))
    if verdict.dossier is None:
        raise EvidenceError(verdict.line())
    return verdict.dossier


def _own_policy(text: bytes) -> Policy:
    if not text.endswith(b"\n"):  # a policy by hand may; in a bundle is one form
        raise EvidenceError("the last line of policy.txt does not end in a newline")
    return parse_policy(text, any_kind=True)


def _check_timestamps(
    steps: _Steps,
    stamps: Mapping[str, bytes],
    checkpoint: bytes,
    check: CheckTimestamp | None,
) -> None:
    with _step("timestamps"):
        named = {**stamps, _CHECKPOINT: without_cosignatures(checkpoint)}
        abouts = subjects(named)
        steps.facts["timestamps"] = [
            _stamped(token, named, abouts, check) for token in stamps.values()
        ]
        steps.stamps = stamps_of(stamps, checkpoint)


def stamps_of(stamps: Mapping[str, bytes], checkpoint: bytes) -> tuple[str, ...]:
    """The names of the time-stamps that show when the checkpoint was there.

    Those with an unknown hash show nothing, nor do those that renew one of them.
    """
    abouts = subjects({**stamps, _CHECKPOINT: without_cosignatures(checkpoint)})
    read = {name: read_timestamp(token) for name, token in stamps.items()}
    about = {name: abouts.get((one.algorithm, one.digest)) for name, one in read.items()}
    found = {_CHECKPOINT}
    while more := {name for name in about if about[name] in found} - found:
        found |= more
    return tuple(name for name in stamps if name in found)


def _verify_proof(steps: _Steps, data: bytes, policy: Policy | None) -> str:
    with _step("container"):
        if not data.startswith(FIRST_LINE.encode()):
            raise EvidenceError("neither a bundle nor a proof")
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
    steps.remarks = (*rules.remarks_of(steps.record, {}),)
    return f"{_sealed_where(steps)}{_odd(steps)}; {_rests_on(steps)}"


def _signed(steps: _Steps, proof: Proof, policy: Policy) -> CheckedCheckpoint:
    with _step("signature"):
        try:
            checked = policy.check_signature(proof.checkpoint)
        except NotCheckable as error:
            raise _Failure("signature", str(error), Conclusion.UNCHECKED) from error
    steps.facts |= {
        "log": checked.checkpoint.origin,
        "size": checked.checkpoint.size,
        "key": checked.key.vkey,
        "key_fingerprint": sha256(checked.key.public_key).hexdigest(),
    }
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
        raise EvidenceError("the proof does not contain its record")
    return proof.extra


def _stamped(
    token: bytes,
    named: Mapping[str, bytes],
    abouts: Mapping[tuple[bytes, bytes], str],
    check: CheckTimestamp | None,
) -> str:
    """What a time-stamp says, which is about the checkpoint, or renews another time-stamp."""
    stamp = read_timestamp(token)
    if not stamp.known():
        return f"{stamp.at}, not checked, since its hash algorithm is unknown"
    name = abouts.get((stamp.algorithm, stamp.digest))
    if name is None:
        raise EvidenceError("a time-stamp does not cover the checkpoint")
    about = f"for {name}" if name == _CHECKPOINT else f"renewing {name}"
    by = "its signer was not checked" if check is None else check(as_der(token), named[name])
    return f"{stamp.at}, {about}; {by}"


def without_cosignatures(note: bytes) -> bytes:
    """A signed checkpoint with only the signature lines of its own origin: what is time-stamped."""
    parsed = parse_note(note)
    origin = parse_checkpoint(parsed.text).origin
    start = note.rindex(b"\n\n") + 2
    lines = note[start:].splitlines(keepends=True)
    of_lines = zip(lines, parsed.signatures, strict=True)
    return note[:start] + b"".join(line for line, by in of_lines if by.name == origin)


def _sealed_where(steps: _Steps) -> str:
    facts, record = steps.facts, steps.record
    binding, known = record.get("binding"), ""
    if record["type"] == VERIFICATION and isinstance(binding, str) and binding in _BINDINGS:
        known = f" (no new check, the buyer was known by {binding})"
    return (
        f"{record['id']}{known} sealed in {facts['log']} as entry {facts['index']}, "
        f"checkpoint of size {facts['size']}{_trust(facts)}"
    )


def _odd(steps: _Steps) -> str:
    return f"; remarks: {len(steps.remarks)}" if steps.remarks else ""


def _trust(facts: Mapping[str, Any]) -> str:
    if facts["policy"] != "bundle":
        return ""
    return f" (checked against the key that came in this bundle, {facts['key_fingerprint']})"


def _rests_on(steps: _Steps) -> str:
    """What, besides the log's own signature, speaks for the checkpoint and its time."""
    facts = steps.facts
    by = ", ".join(cosigned["name"] for cosigned in facts["cosigned"])
    quorum = f"quorum {facts['quorum']}" if facts["quorum"] else "no quorum required"
    stamps = len(steps.stamps)
    if not by and not stamps:
        return "no witness, no time-stamp: only the operator's clock shows the time"
    return f"cosigned by {by or 'no witness'} ({quorum}), {stamps} time-stamp(s)"


@contextmanager
def _step(name: str) -> Iterator[None]:
    """Turns an EvidenceError inside into the failure of this step."""
    try:
        yield
    except _Failure:
        raise
    except EvidenceError as error:
        raise _Failure(name, str(error)) from error
    except RecursionError as error:
        raise _Failure(name, "it is nested too deeply") from error
