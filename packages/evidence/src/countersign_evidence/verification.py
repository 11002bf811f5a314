"""Verify a dossier or a proof: `verify.py`, with types and with OpenSSL.

The steps are those of `spec/evidence-format.md`. Nothing but the file and a policy is needed. The
rules are those of `verify.py` alone; this adds only checks that need libraries.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Any, Final, TypeAlias

from countersign_evidence.dossier import (
    POLICY,
    Dossier,
    read_container,
)
from countersign_evidence.encoding import readable
from countersign_evidence.errors import EvidenceError
from countersign_evidence.note import Verifier, checkpoint_of, verifies
from countersign_evidence.offline import verify as rules
from countersign_evidence.policy import NONE, Policy, parse_policy
from countersign_evidence.timestamp import as_der

STEPS: Final = tuple(rules.STEPS)
"""The names of the steps, the first is number 1."""

CheckTimestamp: TypeAlias = Callable[[bytes, bytes], str]
"""Checks who signed an RFC 3161 response (DER) over these bytes: in words, or EvidenceError."""


class Conclusion(StrEnum):
    """The outcome of verifying, in the same words for all readers."""

    OK = "ok"
    """All steps passed, and the key is one that the reader was given."""
    CONSISTENT = "consistent"
    """All steps passed with the key in the dossier itself, which its maker may have made."""
    UNCHECKED = "unchecked"
    """None failed, but it depends on something unknown to this reader: a kind of signature, or a
    container of an earlier release."""
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
    """The outcome of verifying.

    `step` and `name` are those of the failed or uncheckable step, None if all passed. `summary` is
    the verdict in at most six lines, for people who know no format. `facts` are the facts
    established so far, for people. `record` is the record, for a dossier its main one, `shown` its
    disclosed fields by name, `notice` the content of the notice; `remarks` are odd facts that are
    no failure; `dossier` all of that if it is one. Only these words were checked, and no others in
    the file.
    """

    outcome: Conclusion
    step: int | None = None
    name: str | None = None
    message: str
    summary: tuple[str, ...] = ()
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


def verify_file(
    data: bytes, policy: Policy | None = None, check_timestamp: CheckTimestamp | None = None
) -> Verdict:
    """Verify a dossier, or a proof with its record. Never raises, whatever the bytes are.

    Without a policy, the one in the file is trusted, which only shows that the file agrees with
    itself. Without `check_timestamp`, the signers of time-stamps are not checked.
    """
    return judged(partial(rules.verify_bytes, data), policy, check_timestamp)[0]


def judged(
    judge: Callable[[rules.Policy | None, rules.Means], rules.Report],
    policy: Policy | None,
    check_timestamp: CheckTimestamp | None,
) -> tuple[Verdict, bytes]:
    """The verdict of a function of `verify.py`, with these means; and a dossier's ZIP file."""
    signer = _signer(check_timestamp) if check_timestamp else rules.unknown_signer
    means = rules.Means(verifies=verifies, signer=signer)
    report = judge(None if policy is None else policy.as_rules, means)
    return _verdict(report), report.packed


def _verdict(report: rules.Report) -> Verdict:
    facts = _facts(report)
    verdict = Verdict(
        outcome=Conclusion(report.outcome),
        message=readable(report.line().partition("  ")[2]),
        summary=tuple(rules.summary(report)),
        facts=facts,
    )
    if failed := report.failed:
        step, message = STEPS.index(failed.name) + 1, readable(failed.detail)
        return replace(verdict, step=step, name=failed.name, message=message)
    return replace(
        verdict,
        shown=report.shown,
        record=report.record,
        notice=report.notice,
        remarks=tuple(report.remarks),
        dossier=_dossier(report, facts) if report.order else None,
    )


def _signer(check: CheckTimestamp) -> Callable[[bytes, bytes], str]:
    def signer(token: bytes, over: bytes) -> str:
        try:
            return check(as_der(token), over)
        except EvidenceError as error:
            raise rules.Bad(str(error)) from error

    return signer


def _facts(report: rules.Report) -> dict[str, Any]:
    facts = {n: v for n, v in report.facts.items() if n != "record_sha256"}
    if key := report.key:
        facts["key"] = Verifier(*key).vkey
    if facts.get("quorum"):
        facts["quorum"] = readable(facts["quorum"])
    if "cosigned" in facts:
        facts["cosigned"] = [one | {"name": readable(one["name"])} for one in facts["cosigned"]]
    return facts


def _dossier(report: rules.Report, facts: Mapping[str, Any]) -> Dossier:
    """A dossier that was verified, with its types."""
    order = report.order
    assert order is not None  # noqa: S101 - only of a dossier
    return Dossier(
        records=tuple(order.records),
        notice=report.notice if order.acknowledgment else None,
        order=order.as_json(),
        words=tuple(rules.explain_order(order)),
        summary=tuple(rules.summary(report, paper=True)),
        remarks=tuple(report.remarks),
        origin=facts["log"],
        size=facts["size"],
        root=checkpoint_of(report.note).root,
        cosigned=tuple((one["name"], one["time"]) for one in facts["cosigned"]),
        timestamps=tuple(report.stamps.items()),
        key_fingerprint=facts["key_fingerprint"],
    )


def party_digests(record: Mapping[str, Any]) -> list[str | None]:
    """The digests of the records of parties that a record names."""
    return [record[name] for name in rules.parties_of(record)]


def dossier_of(data: bytes) -> Dossier:
    """The content of a dossier, checked by its own policy, without its quorum.

    So its maker and all its readers get the same content for the PDF.
    """
    policy = parse_policy(read_container(data).get(POLICY, b""), any_kind=True)
    verdict = verify_file(data, replace(policy, quorum=NONE))
    if verdict.dossier is None:
        raise EvidenceError(verdict.line())
    return verdict.dossier
