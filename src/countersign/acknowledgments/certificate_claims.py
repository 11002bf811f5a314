"""The facts of a certificate; what they prove, what they do not, and how to check them.

Words such as "admissible" are left to the court. The text names what rests on the operator alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from countersign.acknowledgments.model import Capture
from countersign.mode import Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """Who compared the text of a notice, against which address, and when, as the operator says."""

    by: str
    against: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateFacts:
    """What a certificate is made from.

    `review` is the last one before the acknowledgment, `account_name` how the operator calls the
    vendor; neither is in the record.
    `shown` are the encoded disclosures that are shown; `index` and `size` are the place of the
    entry and the number of entries under the checkpoint of the proof; `checkpoint_at` is when that
    checkpoint was made, by the service's clock; `witnesses` and `timestamps` are names with the
    times that they attest, None for a time that was not read or is no date.
    """

    record: bytes
    shown: tuple[str, ...]
    erased_at: datetime | None
    notice: bytes
    review: Review | None
    account_name: str | None
    proof: bytes
    origin: str
    index: int
    size: int
    root: bytes
    checkpoint_at: datetime
    key_fingerprint: str
    witnesses: tuple[tuple[str, datetime | None], ...]
    timestamps: tuple[tuple[str, datetime | None], ...]
    verify_url: str


def proves(record: dict[str, Any], facts: CertificateFacts) -> list[str]:
    """What holds once the checks pass."""
    claims = [
        (
            f"The record {record['id']}, attached to this document, is entry {facts.index} of "
            "the log whose checkpoint is in the attached proof. It was not changed after that "
            "checkpoint was signed."
        ),
        "The notice above is exactly the one whose digest is in the record.",
    ]
    if facts.shown:
        claims.append(
            "Each personal field shown here is exactly the one whose digest is in the record."
        )
    if facts.witnesses:
        claims.append(
            "The witnesses named above saw the checkpoint at the times next to their names, by "
            "their own clocks."
        )
    if facts.timestamps:
        claims.append(
            "The time-stamp authorities named above saw the checkpoint at the times in their "
            "responses in the bundle, if the signatures of those responses are valid too."
        )
    return claims


def proves_not(record: dict[str, Any], facts: CertificateFacts) -> list[str]:
    """What the certificate does not prove, even then."""
    by_vendor = record["capture"] == Capture.VENDOR_API
    claims = [
        "Who typed the initials. "
        + (
            "The vendor asserts what the buyer did."
            if by_vendor
            else "The record shows what a browser sent, not who used the browser."
        ),
        (
            "That the clock, the IP address, the user agent or an identity is right: the record "
            "shows what the service stored."
        ),
        "That no other record was kept out of the log.",
        "Any conclusion of law. The court decides what weight this has.",
    ]
    if by_vendor:
        claims.insert(
            1,
            "That the buyer was shown the notice. This document shows the text of the version "
            "that the record names. The vendor asserts that this text was on the buyer's screen.",
        )
    if not facts.witnesses and not facts.timestamps:
        claims.append(
            "That the operator, who has the database and the key, did not rewrite the whole "
            "log: no one else has signed this checkpoint. A different proof or checkpoint from "
            "that time would show such a change."
        )
    if record["mode"] == Mode.TEST:
        claims.insert(0, "Anything about a sale: this is test evidence, made to try things out.")
    return claims


def how(facts: CertificateFacts, digest: str) -> list[str]:
    """The ways to check the evidence."""
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
            "With the command of this service: countersign verify FILE --policy POLICY. Get the "
            "policy, which has the key of the log, from a source that you trust."
        ),
        (
            "Rely on the text that the verifier shows, and get the verifier, too, from a source "
            "that you trust. The log's signature covers neither this document nor the programs "
            "in the bundle: anyone who passed them on could have changed them."
        ),
        "By hand: the SHA-256 of the attached record.json must be " + digest + ".",
        (
            "Attached to this document: record.json, disclosures.json, notice.json and "
            "proof.tlog-proof, as in the bundle."
        ),
    ]
