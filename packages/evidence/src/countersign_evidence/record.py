"""Records: the exact bytes that are evidence, of an acknowledgment or of another fact.

Members and their meaning are those of `spec/evidence-format.md`. The bytes are written once,
hashed as they are, and never made again when they are verified.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final

import msgspec

from countersign_evidence.canonical import Json, canonical_json, checked_canonical_json
from countersign_evidence.disclosure import SALT_BYTES, b64url_each, disclose

VERSION: Final = 1
PARTIES_VERSION: Final = 2
"""For records that bind those of the operator and of the account."""
ACKNOWLEDGMENT: Final = "acknowledgment"
VERIFICATION: Final = "verification"
SESSION_FIELD: Final = "session_id"
CBID_FIELD: Final = "cbid"
REFERENCE_FIELD: Final = "order_reference"
"""The names of personal fields that can also be used to find records."""
_ALGORITHM: Final = "sha-256"


class Subject(msgspec.Struct, kw_only=True):
    """The members of an acknowledgment record; nothing in it is personal.

    They stand in the order of their names, so that writing them needs no sorting. Members with a
    default are not set by the caller: `make_records` fills in `sd` and `nonce`.
    """

    sd: Sequence[str] = msgspec.field(name="_sd", default=())
    sd_alg: str = msgspec.field(name="_sd_alg", default=_ALGORITHM)
    accepted_at: str
    account: str
    account_record: str | None
    bullets: msgspec.Raw
    capture: str
    capture_process: str | msgspec.UnsetType | None = msgspec.UNSET
    credential: str
    id: str
    mode: str
    nonce: str = ""
    notice_digest: str
    notice_id: str
    notice_version: str
    notice_version_source: str
    operator_record: str | None
    test_clock: str | msgspec.UnsetType = msgspec.UNSET
    type: str = ACKNOWLEDGMENT
    v: int = PARTIES_VERSION


class Record(msgspec.Struct):
    """A record: its content, and its bytes once `make_records` has written them."""

    members: Subject | Mapping[str, Json] = {}
    """The public members: of an acknowledgment, or of another record."""
    personal: Sequence[tuple[str, object]] = ()
    """Name and value of each personal field; a missing field has the value None, so that its
    absence can be shown."""
    entropy: bytes = b""
    """`entropy_needed(len(personal))` random bytes: 16 for the nonce, 16 for each salt."""
    body: bytes = b""
    digest: bytes = b""
    """The SHA-256 of the body."""
    disclosures: Sequence[bytes] = ()
    """Those that the body binds, as JSON, each without a line break."""


_encode: Final = msgspec.json.Encoder().encode


def entropy_needed(fields: int) -> int:
    """How many random bytes a record with this many personal fields takes: nonce and salts."""
    return SALT_BYTES * (fields + 1)


def bullet_digests(bullets: Sequence[tuple[str, str]]) -> msgspec.Raw:
    """The `bullets` member, canonical: id and hex SHA-256 of the UTF-8 text of each line."""
    return msgspec.Raw(
        canonical_json(
            [{"id": id_, "digest": sha256(t.encode()).hexdigest()} for id_, t in bullets]
        )
    )


def make_records(records: Sequence[Record]) -> None:
    """Write records, and the disclosures of their personal fields: one step for all of them."""
    parts: list[bytes] = []
    for record in records:
        entropy = record.entropy
        if len(entropy) != SALT_BYTES * (len(record.personal) + 1):
            raise ValueError("wrong number of random bytes")
        parts += [entropy[at : at + SALT_BYTES] for at in range(0, len(entropy), SALT_BYTES)]
    drawn = iter(b64url_each(parts))
    nonces, lines = [], []
    for record in records:
        nonces.append(next(drawn))
        lines += [(salt, *field) for field, salt in zip(record.personal, drawn, strict=False)]
    plain, digests = disclose(lines)
    start = 0
    for record, nonce in zip(records, nonces, strict=True):
        members, end = record.members, start + len(record.personal)
        bound = sorted(digests[start:end])
        if isinstance(members, Subject):
            members.sd, members.nonce = bound, nonce
            record.body = _encode(members)
        else:
            own = {"nonce": nonce, "_sd": bound, "_sd_alg": _ALGORITHM}
            record.body = checked_canonical_json({"v": VERSION, **members, **own})
        record.digest, record.disclosures = sha256(record.body).digest(), plain[start:end]
        start = end
