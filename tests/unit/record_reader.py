"""A reader of evidence, written from spec/evidence-format.md with the standard library alone.

It shares nothing with the service, so that the two can disagree.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from hashlib import sha256
from typing import Any


def findings(
    *, record: bytes, record_sha256_hex: str, disclosures: Sequence[str], notice: bytes
) -> list[str]:
    """What section 6 of the format says is wrong with this evidence, sorted; nothing: []."""
    found = set()
    if sha256(record).hexdigest() != record_sha256_hex:
        found.add("record_digest_mismatch")
    members = json.loads(record)
    if sha256(notice).hexdigest() != members["notice_digest"]:
        found.add("notice_digest_mismatch")
    shown = [
        {"id": bullet["id"], "digest": sha256(bullet["text"].encode()).hexdigest()}
        for bullet in json.loads(notice)["bullets"]
    ]
    if shown != members["bullets"]:
        found.add("bullet_digest_mismatch")
    if any(digest_of(disclosure) not in members["_sd"] for disclosure in disclosures):
        found.add("disclosure_not_bound")
    names = [disclosed(disclosure)[1] for disclosure in disclosures]
    if len(set(names)) != len(names):
        found.add("disclosure_repeated")
    return sorted(found)


def digest_of(disclosure: str) -> str:
    """The member of `_sd` that binds this disclosure (RFC 9901 §4.2.3)."""
    return unpadded(sha256(disclosure.encode("ascii")).digest())


def disclosed(disclosure: str) -> list[Any]:
    """Salt, name and value."""
    content: list[Any] = json.loads(urlsafe_b64decode(disclosure + "=" * (-len(disclosure) % 4)))
    return content


def unpadded(data: bytes) -> str:
    """base64url without padding (RFC 4648 §5)."""
    return urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
