"""RFC 3161 responses: what a time-stamp is about and which time it gives, read from its bytes.

The signature of the authority is not checked here: that takes its certificates. The envelope of a
response is CMS (RFC 5652), which may be BER and not DER: lengths without an end, certificates in
any order. Common authorities send that, so it is read here.
"""

import re
from collections.abc import Mapping
from hashlib import sha256, sha384, sha512
from typing import Final, NamedTuple

from countersign_evidence.errors import EvidenceError

_HASHES: Final = {
    bytes.fromhex("608648016503040201"): sha256,
    bytes.fromhex("608648016503040202"): sha384,
    bytes.fromhex("608648016503040203"): sha512,
}
_SIGNED_DATA: Final = bytes.fromhex("2a864886f70d010702")
_TST_INFO: Final = bytes.fromhex("2a864886f70d0109100104")
_TIME: Final = re.compile(rb"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\.\d+)?Z\Z")
_INTEGER, _OCTETS, _OID, _TIME_TAG, _SEQUENCE, _TAGGED = 0x02, 0x04, 0x06, 0x18, 0x30, 0xA0
_OCTETS_IN_PARTS: Final = 0x24
_DEPTH_MAX: Final = 16


class Timestamp(NamedTuple):
    algorithm: bytes
    """The object identifier of the hash (the content of its DER)."""
    digest: bytes
    at: str
    """When, by the authority's clock: RFC 3339 in UTC."""

    def known(self) -> bool:
        """Whether the hash is SHA-256, SHA-384 or SHA-512; by others nothing can be compared."""
        return self.algorithm in _HASHES

    def about(self, data: bytes) -> bool:
        return self.known() and _HASHES[self.algorithm](data).digest() == self.digest


def subjects(named: Mapping[str, bytes]) -> dict[tuple[bytes, bytes], str]:
    """The names of what a time-stamp can be about, by its `algorithm` and `digest`."""
    return {
        (oid, hash_(data).digest()): name
        for oid, hash_ in _HASHES.items()
        for name, data in named.items()
    }


class _Value(NamedTuple):
    tag: int
    content: bytes
    end: int


def read_timestamp(response: bytes) -> Timestamp:
    """What a TimeStampResp says; EvidenceError if it is malformed, or no time-stamp was granted."""
    (_, encap, *_), _ = _signed_data(response)
    info = _parts(_value(_encapsulated(encap), 0), _SEQUENCE)
    try:
        algorithm, digest = _parts(info[2], _SEQUENCE)
        oid = _parts(algorithm, _SEQUENCE)[0]
        at = next(part for part in info[3:] if part.tag == _TIME_TAG)
    except (IndexError, ValueError, StopIteration) as error:
        raise _malformed() from error
    found = _TIME.match(at.content)
    if found is None or oid.tag != _OID or digest.tag != _OCTETS:
        raise _malformed()
    year, month, day, hour, minute, second, fraction = (
        (part or b"").decode("ascii") for part in found.groups()
    )
    when = f"{year}-{month}-{day}T{hour}:{minute}:{second}{fraction}Z"
    return Timestamp(oid.content, digest.content, when)


def as_der(response: bytes) -> bytes:
    """The same response with its envelope in DER, for readers that know nothing else.

    What is signed stays as it is, byte for byte: the certificates, the time-stamp and the signers.
    """
    (version, encap, algorithms, *rest), status = _signed_data(response)
    content = _written(_OCTETS, _encapsulated(encap))
    inner = _written(_SEQUENCE, _written(_OID, _TST_INFO) + _written(_TAGGED, content))
    more = b"".join(
        _written(part.tag, b"".join(sorted(_whole(one) for one in _parts(part, part.tag))))
        if part.tag == _TAGGED
        else _whole(part)
        for part in rest
    )
    data = _written(_SEQUENCE, _whole(version) + _whole(algorithms) + inner + more)
    signed = _written(_SEQUENCE, _written(_OID, _SIGNED_DATA) + _written(_TAGGED, data))
    return _written(_SEQUENCE, _whole(status) + signed)


def _signed_data(response: bytes) -> tuple[list[_Value], _Value]:
    """Version, content, digest algorithms and the rest of the SignedData; and the status."""
    outer = _value(response, 0)
    try:
        status, content = _parts(outer, _SEQUENCE)
        granted = _parts(status, _SEQUENCE)[0]
        kind, tagged = _parts(content, _SEQUENCE)
        (data,) = _parts(tagged, _TAGGED)
        version, algorithms, encap, *rest = _parts(data, _SEQUENCE)
    except (IndexError, ValueError) as error:
        raise _malformed() from error
    good = outer.end == len(response) and kind.content == _SIGNED_DATA
    if not good or granted.tag != _INTEGER or granted.content not in {b"\x00", b"\x01"}:
        raise _malformed()
    return [version, encap, algorithms, *rest], status


def _encapsulated(encap: _Value) -> bytes:
    """The bytes of the TSTInfo, which may be given in parts."""
    try:
        kind, tagged = _parts(encap, _SEQUENCE)
        (octets,) = _parts(tagged, _TAGGED)
    except ValueError as error:
        raise _malformed() from error
    if kind.content != _TST_INFO:
        raise _malformed()
    if octets.tag == _OCTETS_IN_PARTS:
        return b"".join(part.content for part in _parts(octets, _OCTETS_IN_PARTS))
    return octets.content


def _parts(value: _Value, tag: int) -> list[_Value]:
    """What stands in a value that has this tag."""
    if value.tag != tag:
        raise _malformed()
    parts, at = [], 0
    while at < len(value.content):
        parts.append(_value(value.content, at))
        at = parts[-1].end
    return parts


def _value(data: bytes, at: int, levels: int = _DEPTH_MAX) -> _Value:
    """The value that begins there (X.690 §8.1)."""
    if at + 2 > len(data) or not levels or data[at] & 0x1F == 0x1F:
        raise _malformed()
    tag, length, start = data[at], data[at + 1], at + 2
    if length == 0x80:  # it ends at two zero bytes
        end = start
        while data[end : end + 2] != b"\x00\x00":
            end = _value(data, end, levels - 1).end
        return _Value(tag, data[start:end], end + 2)
    if length > 0x80:
        count = length & 0x7F
        length, start = int.from_bytes(data[start : start + count], "big"), start + count
    if start + length > len(data):
        raise _malformed()
    return _Value(tag, data[start : start + length], start + length)


def _whole(value: _Value) -> bytes:
    return _written(value.tag, value.content)


def _written(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content


def _malformed() -> EvidenceError:
    return EvidenceError("not an RFC 3161 response with a time-stamp")
