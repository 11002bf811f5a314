"""What leaves as evidence verifies: checked before it is answered, as its reader would.

A database that was changed behind the service's back, or that a disk has damaged, must not make it
hand out what fails before a judge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import msgspec
import structlog

from countersign.errors import DamagedValue, EvidenceDamaged
from countersign.evidence.contents import check_disclosures, check_notice
from countersign.evidence.errors import EvidenceError
from countersign.evidence.policy import Policy
from countersign.evidence.verification import Verdict, verify_file

_log: Final = structlog.get_logger("countersign.evidence")


@contextmanager
def explained(ack_id: str) -> Iterator[None]:
    """Whatever stored evidence does inside that sound evidence cannot do is told, and refused.

    Raises:
        EvidenceDamaged: it does not verify, or cannot even be read.
    """
    try:
        yield
    except (DamagedValue, msgspec.MsgspecError, ValueError, LookupError, TypeError) as error:
        _log.error("evidence_damaged", ack_id=ack_id, kind=type(error).__name__, reason=str(error))
        raise EvidenceDamaged from error


def check_proof(proof: bytes, policy: Policy) -> Verdict:
    """Verify a proof with the record in it; the policy is one without a quorum.

    Raises:
        EvidenceError: it does not verify.
    """
    verdict = verify_file(proof, policy)
    if not verdict.ok:
        raise EvidenceError(verdict.line())
    return verdict


def check_words(verdict: Verdict, shown: Sequence[str], notice: bytes) -> None:
    """Check that disclosures and notice are those of the record that was proved.

    Raises:
        EvidenceError: they are not.
    """
    check_notice(notice, verdict.record, check_disclosures(shown, verdict.record))
