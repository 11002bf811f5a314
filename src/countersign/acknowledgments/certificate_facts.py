"""What a certificate is made from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """Who compared the text of a notice, against which address, and when, as the operator says."""

    by: str
    against: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateFacts:
    """What a certificate is made from.

    `parties` are the records of the operator, the account and its way of capturing that the record
    names by their digests, as far as there are any.
    `review` is the last one before the acknowledgment, `account_name` how the operator calls the
    vendor; neither is in the record.
    `shown` are the encoded disclosures that are shown; `index` and `size` are the place of the
    entry and the number of entries under the checkpoint of the proof; `checkpoint_at` is when that
    checkpoint was made, by the service's clock; `witnesses` and `timestamps` are names with the
    times that they attest, None for a time that was not read or is no date.
    """

    record: bytes
    parties: tuple[bytes, ...]
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
