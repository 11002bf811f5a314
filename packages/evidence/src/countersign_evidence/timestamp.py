"""RFC 3161 responses: the subject and the time of a time-stamp, read from its bytes.

The signature of the authority is not checked here: that takes its certificates. The envelope of a
response is CMS (RFC 5652), which may be BER and not DER: lengths without an end, certificates in
any order. Common authorities send that, so it is read here.
"""

from typing import Final, TypeAlias

from countersign_evidence.encoding import by_the_rules
from countersign_evidence.offline import verify as rules

_OCTETS, _OID, _OCTETS_IN_PARTS, _SEQUENCE, _TAGGED = 0x04, 0x06, 0x24, 0x30, 0xA0

Timestamp: TypeAlias = rules.Stamp
"""The subject of a time-stamp, its hash, and the time by the authority's clock."""
read_timestamp: Final = by_the_rules(rules.read_stamp)
"""The content of a TimeStampResp; EvidenceError if it is malformed or was not granted."""


def is_about(stamp: Timestamp, data: bytes) -> bool:
    """Whether it is about these bytes; by an unknown hash nothing can be compared."""
    hash_ = rules.HASHES.get(stamp.algorithm)
    return hash_ is not None and hash_(data).digest() == stamp.digest


@by_the_rules
def as_der(response: bytes) -> bytes:
    """The same response with its envelope in DER, for readers that know nothing else.

    The signed parts stay byte for byte: the certificates, the time-stamp and the signers.
    """
    rules.read_stamp(response)
    status, token = rules.read_parts(rules.read_ber(response, 0)[:2])
    (signed,) = rules.read_parts(rules.read_parts(token)[1], _TAGGED)
    version, algorithms, encap, *rest = rules.read_parts(signed)
    (octets,) = rules.read_parts(rules.read_parts(encap)[1], _TAGGED)
    if octets[0] == _OCTETS_IN_PARTS:
        octets = (_OCTETS, b"".join(part for _, part in rules.read_parts(octets, octets[0])))
    content = _written(*octets)
    inner = _written(_SEQUENCE, _written(_OID, rules.TST_INFO) + _written(_TAGGED, content))
    more = b"".join(
        _written(tag, b"".join(sorted(_written(*o) for o in rules.read_parts((tag, part), tag))))
        if tag == _TAGGED
        else _written(tag, part)
        for tag, part in rest
    )
    data = _written(_SEQUENCE, _written(*version) + _written(*algorithms) + inner + more)
    signed_data = _written(_OID, rules.SIGNED_DATA) + _written(_TAGGED, data)
    return _written(_SEQUENCE, _written(*status) + _written(_SEQUENCE, signed_data))


def _written(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content
