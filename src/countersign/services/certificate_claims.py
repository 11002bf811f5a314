"""What a certificate claims, what it does not, and how anyone can check it.

Words such as "admissible" are left to the court. What nobody outside vouches for is said to be so.
"""

from __future__ import annotations

from typing import Any

from countersign.domain.acknowledgment import Capture
from countersign.domain.mode import Mode
from countersign.services.certificate_facts import CertificateFacts


def proves(record: dict[str, Any], facts: CertificateFacts) -> list[str]:
    """What holds once the checks pass."""
    told = [
        (
            f"The record {record['id']}, attached to this document, is entry {facts.index} of "
            "the log whose checkpoint is in the attached proof, and was not changed since that "
            "checkpoint was signed."
        ),
        "The notice above is, to the byte, the one that the record names by its digest.",
    ]
    if facts.shown:
        told.append("Each personal field shown here is the one that the record is bound to.")
    if facts.witnesses:
        told.append(
            "The witnesses named above saw the checkpoint at the times given with their names, by "
            "their own clocks."
        )
    if facts.timestamps:
        told.append(
            "The time-stamp authorities named above saw the checkpoint at the times that their "
            "responses in the bundle state, if the signatures of these are good too."
        )
    return told


def proves_not(record: dict[str, Any], facts: CertificateFacts) -> list[str]:
    """What nobody should read into it, even then."""
    by_vendor = record["capture"] == Capture.VENDOR_API
    told = [
        "Who typed the initials. "
        + (
            "The vendor asserts what the buyer did."
            if by_vendor
            else "It shows what a browser sent, not whose hand it was."
        ),
        (
            "That the clock, the IP address, the user agent or an identity are right: it shows "
            "what the service recorded."
        ),
        "That no other record was held back before it reached the log.",
        "Any conclusion of law. What weight this has is for the court to decide.",
    ]
    if by_vendor:
        told.insert(
            1,
            "That the buyer was shown the notice. It shows the words of the version that the "
            "record names; that these were on the buyer's screen is what the vendor asserts.",
        )
    if not facts.witnesses and not facts.timestamps:
        told.append(
            "That the operator, who holds the database and the key, did not write the whole log "
            "anew: nobody else has signed this checkpoint. A proof or checkpoint that was handed "
            "out at the time and differs would show it."
        )
    if record["mode"] == Mode.TEST:
        told.insert(0, "Anything about a sale: this is test evidence, made to try things out.")
    return told


def how(facts: CertificateFacts, digest: str) -> list[str]:
    """The ways to check it, for people with different means."""
    return [
        (
            f"In a browser: open {facts.verify_url}, or the file verify.html of the bundle, and "
            "choose the bundle. Nothing is uploaded, and the file needs no network. The QR code "
            "leads to the page."
        ),
        (
            "On any computer with Python 3.11 or newer: unpack the bundle and run "
            "python3 -I verify.py in it."
        ),
        (
            "With the command of this service: countersign verify FILE --policy POLICY. Take the "
            "policy, which holds the key of the log, from a source that you trust."
        ),
        (
            "Read the words from what the verifier shows, and take the verifier, too, from a "
            "source that you trust: nothing vouches for this document, nor for the programs in "
            "the bundle. Whoever handed them on could have changed them."
        ),
        "By hand: the SHA-256 of the attached record.json has to be " + digest + ".",
        (
            "Attached to this document: record.json, disclosures.json, notice.json and "
            "proof.tlog-proof, as in the bundle."
        ),
    ]
