"""Records: the exact bytes that are evidence, of an acknowledgment or of another fact.

Members and their meaning are those of `spec/evidence-format.md`. The bytes are written once,
hashed as they are, and never made again when they are verified.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from countersign.evidence.canonical import Json, canonical_json, checked_canonical_json
from countersign.evidence.disclosure import SALT_BYTES, Disclosure, b64url_each, disclose

VERSION: Final = 1
ACKNOWLEDGMENT: Final = "acknowledgment"


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
    hidden = _hide([(draft.personal, draft.entropy) for draft in drafts])
    bodies = [
        _encode(
            _Record(
                sd=sorted([disclosure.digest for disclosure in disclosures]),
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
        for (subject, _, _), (nonce, disclosures) in zip(drafts, hidden, strict=True)
    ]
    return [
        SealedRecord(body, sha256(body).digest(), disclosures)
        for body, (_, disclosures) in zip(bodies, hidden, strict=True)
    ]


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
    hidden = _hide([(draft.personal, draft.entropy) for draft in drafts])
    made = []
    for draft, (nonce, disclosures) in zip(drafts, hidden, strict=True):
        own: dict[str, Json] = {
            "v": VERSION,
            "nonce": nonce,
            "_sd": [*sorted(disclosure.digest for disclosure in disclosures)],
            "_sd_alg": "sha-256",
        }
        body = checked_canonical_json({**draft.members, **own})
        made.append(SealedRecord(body, sha256(body).digest(), disclosures))
    return made


def _hide(
    hidden: Sequence[tuple[Sequence[tuple[str, object]], bytes]],
) -> list[tuple[str, list[Disclosure]]]:
    """For each record, of which personal fields and entropy are given: nonce and disclosures."""
    fields: list[tuple[str, object]] = []
    nonces: list[bytes] = []
    salts: list[bytes] = []
    for personal, entropy in hidden:
        if len(entropy) != entropy_needed(len(personal)):
            msg = "wrong number of random bytes"
            raise ValueError(msg)
        fields += personal
        nonce, *own = [entropy[at : at + SALT_BYTES] for at in range(0, len(entropy), SALT_BYTES)]
        nonces.append(nonce)
        salts += own
    made = iter(disclose(salts, fields))
    return [
        (nonce, list(islice(made, len(personal))))
        for nonce, (personal, _) in zip(b64url_each(nonces), hidden, strict=True)
    ]
