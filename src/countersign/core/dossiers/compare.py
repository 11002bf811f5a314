"""Compare the PDF in a dossier with the one that this release makes from the same evidence."""

from importlib import metadata
from typing import Final

from countersign.core.dossiers.pdf import dossier_pdf, maker
from countersign.core.paper.typeset import OTHER_MAKER
from countersign_evidence.dossier import (
    PDF,
    Dossier,
    evidence_of,
    read_container,
)
from countersign_evidence.errors import EvidenceError
from countersign_evidence.verification import dossier_of

TEXT_BYTES_MAX: Final = 128 * 1024
"""Text that is laid out takes hundreds of times its size in memory."""


def compare_pdf(data: bytes, verified: Dossier) -> str:
    """Make the PDF of a dossier that was verified again; returns the result in words.

    It follows the policy in the dossier, which is its maker's: the result says which keys the
    reader's policy did not check.
    """
    files = read_container(data)
    try:
        if maker() not in files[PDF]:
            return f"dossier.pdf was not compared: {OTHER_MAKER}"
        own = dossier_of(data)
        if sum(len(files[name]) for name in files if name.endswith(".json")) > TEXT_BYTES_MAX:
            return "dossier.pdf was not compared: it has too much text"
        try:
            same = dossier_pdf(own, evidence_of(files)) == files[PDF]
        except (ValueError, OverflowError):  # month 13, the year 1, a leap second
            return "dossier.pdf was not compared: the dossier has a time that is no date"
        except (AttributeError, KeyError, TypeError) as error:  # members of no type are checked
            raise EvidenceError(
                f"dossier.pdf cannot be made again from the records ({type(error).__name__})"
            ) from error
    except (ImportError, metadata.PackageNotFoundError):
        return "dossier.pdf was not compared: the package typst is not installed"
    if not same:
        raise EvidenceError(
            "dossier.pdf differs from the one that this release makes of the same evidence"
        )
    unchecked = [f"a cosignature by {by[0]}" for by in own.cosigned if by not in verified.cosigned]
    if own.key_fingerprint != verified.key_fingerprint:
        unchecked.append(f"the log key {own.key_fingerprint}")
    but = ", BUT your policy did not check what it names: " if unchecked else ""
    return f"dossier.pdf is the one that this release makes{but}{', '.join(unchecked)}"
