"""Records: the exact bytes that are evidence, of an acknowledgment or of another fact.

Members and their meaning are those of `spec/evidence-format.md`. The bytes are written once,
hashed as they are, and never made again when they are verified.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import islice
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec

from countersign.evidence.canonical import Json, canonical_json, checked_canonical_json
from countersign.evidence.disclosure import SALT_BYTES, Disclosure, b64url_each, disclose

VERSION: Final = 1
ACKNOWLEDGMENT: Final = "acknowledgment"
SESSION_FIELD: Final = "session_id"
CBID_FIELD: Final = "cbid"
"""The names of personal fields by whose values records are found, too."""


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """What an acknowledgment record says openly; nothing in it is personal."""

    accepted_at: str
    account: str
    bullets: msgspec.Raw
    capture: str
    credential: str
    id: str
    mode: str
    notice_digest: str
    notice_id: str
    notice_version: str
    notice_version_source: str
    test_clock: str | msgspec.UnsetType = msgspec.UNSET


class Draft(NamedTuple):
    """What the record of an acknowledgment is made of."""

    subject: Subject
    personal: Sequence[tuple[str, object]]
    """Name and value of each personal field; a field that is not known is given with the value
    None, so that its absence can be shown."""
    entropy: bytes
    """`entropy_needed(len(personal))` random bytes: 16 for the nonce, 16 for each salt."""


class SealedRecord(NamedTuple):
    """A record and the disclosures that it binds."""

    body: bytes
    digest: bytes
    disclosures: list[Disclosure]


class _Record(msgspec.Struct, frozen=True, kw_only=True):
    """The members in the order of their names, so that writing them needs no sorting."""

    sd: list[str] = msgspec.field(name="_sd")
    sd_alg: str = msgspec.field(name="_sd_alg")
    accepted_at: str
    account: str
    bullets: msgspec.Raw
    capture: str
    credential: str
    id: str
    mode: str
    nonce: str
    notice_digest: str
    notice_id: str
    notice_version: str
    notice_version_source: str
    test_clock: str | msgspec.UnsetType
    type: str
    v: int


_encode: Final = msgspec.json.Encoder().encode
_digest: Final = attrgetter("digest")


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


def make_records(drafts: Sequence[Draft]) -> list[SealedRecord]:
    """Write the records of acknowledgments, and the disclosures of their personal fields."""
    made = []
    for (subject, _, _), (nonce, disclosures) in zip(drafts, _hide(drafts), strict=True):
        body = _encode(
            _Record(
                sd=sorted(map(_digest, disclosures)),
                sd_alg="sha-256",
                accepted_at=subject.accepted_at,
                account=subject.account,
                bullets=subject.bullets,
                capture=subject.capture,
                credential=subject.credential,
                id=subject.id,
                mode=subject.mode,
                nonce=nonce,
                notice_digest=subject.notice_digest,
                notice_id=subject.notice_id,
                notice_version=subject.notice_version,
                notice_version_source=subject.notice_version_source,
                test_clock=subject.test_clock,
                type=ACKNOWLEDGMENT,
                v=VERSION,
            )
        )
        made.append(SealedRecord(body, sha256(body).digest(), disclosures))
    return made


class FactDraft(NamedTuple):
    """What a record of something else than an acknowledgment is written from."""

    members: Mapping[str, Json]
    """What the record says openly: `type`, `id`, `mode`, `at` and its own members."""
    personal: Sequence[tuple[str, object]]
    """As in a `Draft`."""
    entropy: bytes
    """As in a `Draft`."""


def make_facts(drafts: Sequence[FactDraft]) -> list[SealedRecord]:
    """Write records of something else: verifications, clearances, erasures, key rotations."""
    made = []
    for draft, (nonce, disclosures) in zip(drafts, _hide(drafts), strict=True):
        own: dict[str, Json] = {
            "v": VERSION,
            "nonce": nonce,
            "_sd": [*sorted(map(_digest, disclosures))],
            "_sd_alg": "sha-256",
        }
        body = checked_canonical_json({**draft.members, **own})
        made.append(SealedRecord(body, sha256(body).digest(), disclosures))
    return made


def _hide(drafts: Sequence[Draft | FactDraft]) -> list[tuple[str, list[Disclosure]]]:
    """For each draft its nonce and its disclosures, which are made in one go for all."""
    fields: list[tuple[str, object]] = []
    nonces: list[bytes] = []
    salts: list[bytes] = []
    for _, personal, entropy in drafts:
        if len(entropy) != SALT_BYTES * (len(personal) + 1):
            msg = "wrong number of random bytes"
            raise ValueError(msg)
        fields += personal
        nonces.append(entropy[:SALT_BYTES])
        for at in range(SALT_BYTES, len(entropy), SALT_BYTES):
            salts.append(entropy[at : at + SALT_BYTES])  # noqa: PERF401 - in the order of fields
    made = iter(disclose(salts, fields))
    hidden = []
    for nonce, (_, personal, _) in zip(b64url_each(nonces), drafts, strict=True):
        hidden.append((nonce, list(islice(made, len(personal)))))
    return hidden
