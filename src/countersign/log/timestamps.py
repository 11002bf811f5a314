"""RFC 3161 time-stamps, read and checked with the optional package `rfc3161-client`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256, sha384, sha512
from typing import Final

from cryptography.x509 import Certificate, load_pem_x509_certificates
from rfc3161_client import (
    HashAlgorithm,
    TimestampRequestBuilder,
    TimeStampResponse,
    VerificationError,
    VerifierBuilder,
    decode_timestamp_response,
)

from countersign.evidence.errors import EvidenceError
from countersign.evidence.timestamp import as_der
from countersign.evidence.verification import CheckTimestamp
from countersign.instant import rfc3339

_HASHES: Final = {
    "2.16.840.1.101.3.4.2.1": sha256,
    "2.16.840.1.101.3.4.2.2": sha384,
    "2.16.840.1.101.3.4.2.3": sha512,
}


_GRANTED: Final = (0, 1)
"""The statuses of a response with a time-stamp: granted, and granted with changes."""
_REASON_MAX: Final = 200


def timestamp_request(data: bytes) -> bytes:
    """The request to an authority (DER) for a time-stamp of these bytes, by their SHA-512."""
    builder = TimestampRequestBuilder().data(data).hash_algorithm(HashAlgorithm.SHA512)
    return builder.build().as_bytes()


def check_timestamp(token: bytes, over: bytes, roots: Sequence[Certificate] = ()) -> str:
    """Check a response of an authority; gives what it says, for people.

    Args:
        token: the response (DER).
        over: the bytes that it has to be about.
        roots: certificates of authorities that are trusted; without any, the signature of the
            authority cannot be checked, which the result says.

    Raises:
        EvidenceError: it is malformed, about something else, or not signed under these roots.
    """
    response = _read(token)
    info = response.tst_info
    hash_ = _HASHES.get(info.message_imprint.hash_algorithm.dotted_string)
    if hash_ is None or info.message_imprint.message != hash_(over).digest():
        msg = "the time-stamp does not cover the checkpoint"
        raise EvidenceError(msg)
    at = rfc3339(info.gen_time)
    if not roots:
        return f"{at}, for this checkpoint; the signer was not checked (no trusted roots given)"
    builder = VerifierBuilder()
    for root in roots:
        builder = builder.add_root_certificate(root)
    try:
        builder.build().verify_message(response, over)
    except (VerificationError, ValueError) as error:
        msg = f"the time-stamp is not signed by a trusted authority: {error}"
        raise EvidenceError(msg) from error
    return f"{at}, signed by a trusted authority"


def timestamp_check(pem: bytes) -> CheckTimestamp:
    """A check against the root certificates in a PEM file.

    Raises:
        EvidenceError: it holds none.
    """
    try:
        roots = load_pem_x509_certificates(pem)
    except ValueError as error:
        msg = "no certificates in PEM format"
        raise EvidenceError(msg) from error
    return lambda token, over: check_timestamp(token, over, roots)


def stamped_at(token: bytes) -> datetime | None:
    """The time that a response of an authority states; None if it cannot be read."""
    try:
        return _read(token).tst_info.gen_time
    except EvidenceError:
        return None


def _read(token: bytes) -> TimeStampResponse:
    try:
        try:
            response = decode_timestamp_response(token)
        except ValueError:  # rfc3161-client reads DER alone, and authorities may send BER
            response = decode_timestamp_response(as_der(token))
        granted = response.status in _GRANTED and bool(response.tst_info.gen_time)
        said = ", ".join(map(str, response.status_string))
    except (ValueError, AttributeError, TypeError) as error:
        msg = f"not an RFC 3161 response with a time-stamp: {str(error)[:_REASON_MAX]!a}"
        raise EvidenceError(msg) from error
    if not granted:
        msg = f"the authority refuses: status {response.status}, {said[:_REASON_MAX]!a}"
        raise EvidenceError(msg)
    return response
