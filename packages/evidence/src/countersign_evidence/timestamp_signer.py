"""RFC 3161 time-stamps, read and checked with the optional package `rfc3161-client`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from cryptography.x509 import Certificate, load_der_x509_certificate, load_pem_x509_certificates
from rfc3161_client import (
    HashAlgorithm,
    TimestampRequestBuilder,
    TimeStampResponse,
    VerificationError,
    VerifierBuilder,
    decode_timestamp_response,
)

from countersign_evidence.errors import EvidenceError
from countersign_evidence.timestamp import as_der, is_about, read_timestamp
from countersign_evidence.verification import CheckTimestamp

_GRANTED: Final = (0, 1)
"""The statuses of a response with a time-stamp: granted, and granted with changes."""
_REASON_MAX: Final = 200


def timestamp_request(data: bytes) -> bytes:
    """The request to an authority (DER) for a time-stamp of these bytes, by their SHA-512."""
    builder = TimestampRequestBuilder().data(data).hash_algorithm(HashAlgorithm.SHA512)
    return builder.build().as_bytes()


def check_timestamp(token: bytes, over: bytes, roots: Sequence[Certificate] = ()) -> str:
    """Check a response of an authority (DER) over these bytes; returns who signed it, for people.

    `roots` are trusted certificates of authorities; without any, the signature of the authority
    cannot be checked, which the result says.
    """
    response = _read(token)
    if not is_about(read_timestamp(token), over):
        raise EvidenceError("the time-stamp does not cover it")
    if not roots:
        return "the signer was not checked (no trusted roots given)"
    builder = VerifierBuilder()
    for root in roots:
        builder = builder.add_root_certificate(root)
    try:
        builder.build().verify_message(response, over)
    except (VerificationError, ValueError) as error:
        raise EvidenceError(
            f"the time-stamp is not signed by a trusted authority: {error}"
        ) from error
    return "signed by a trusted authority"


def timestamp_check(pem: bytes) -> CheckTimestamp:
    """A check against the root certificates in a PEM file; EvidenceError if it holds none."""
    try:
        roots = load_pem_x509_certificates(pem)
    except ValueError as error:
        raise EvidenceError("no certificates in PEM format") from error
    return lambda token, over: check_timestamp(token, over, roots)


def ends_at(token: bytes) -> datetime | None:
    """When the first of the certificates in a response (RFC 3161) ends; None if it has none."""
    certificates = [load_der_x509_certificate(der) for der in _read(token).signed_data.certificates]
    return min((each.not_valid_after_utc for each in certificates), default=None)


def _read(token: bytes) -> TimeStampResponse:
    try:
        try:
            response = decode_timestamp_response(token)
        except ValueError:  # rfc3161-client reads DER alone, and authorities may send BER
            response = decode_timestamp_response(as_der(token))
        granted = response.status in _GRANTED and bool(response.tst_info.gen_time)
        said = ", ".join(map(str, response.status_string))
    except (ValueError, AttributeError, TypeError) as error:
        raise EvidenceError(
            f"not an RFC 3161 response with a time-stamp: {str(error)[:_REASON_MAX]!a}"
        ) from error
    if not granted:
        raise EvidenceError(
            f"the authority refuses: status {response.status}, {said[:_REASON_MAX]!a}"
        )
    return response
