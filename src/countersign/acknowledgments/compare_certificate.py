"""The certificate in a bundle, made again from what the bundle proves, and compared.

A certificate also says what is in no checked file: how the operator calls the vendor, who reviewed
the notice, when the checkpoint was made. That stands at the end of README.txt, with the release
that made it, so that a certificate can differ from the evidence in nothing else.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from functools import cache
from hashlib import sha256
from importlib import metadata, resources
from typing import Final

import msgspec

from countersign import __version__
from countersign.acknowledgments.certificate import make_certificate
from countersign.acknowledgments.certificate_facts import CertificateFacts
from countersign.evidence.bundle import GUIDE, BundleContents, read_bundle
from countersign.evidence.checkpoint import parse_checkpoint
from countersign.evidence.cosignature import cosigned_at
from countersign.evidence.errors import EvidenceError
from countersign.evidence.note import parse_note
from countersign.evidence.policy import parse_policy
from countersign.evidence.proof import parse_proof
from countersign.evidence.timestamp import read_timestamp
from countersign.instant import rfc3339

_BY: Final = b"\nMade by "
_SAYS: Final = b"\nThe certificate also says this, which nothing in the bundle supports:\n"
_BYTES_MAX: Final = 128 * 1024
"""Text that is laid out takes hundreds of times its size in memory."""
_PROVED: Final = {
    *("record", "shown", "notice", "proof", "origin", "index", "size", "root"),
    *("key_fingerprint", "witnesses"),
}
_SOURCES: Final = (
    *("certificate.py", "certificate.typ", "certificate_claims.py", "certificate_facts.py"),
    *("certificate_words.py", "text_safety.py"),
)


def readme(facts: CertificateFacts) -> bytes:
    """README.txt of the bundle whose certificate is made from these facts."""
    told = {f.name: getattr(facts, f.name) for f in fields(facts) if f.name not in _PROVED}
    says = msgspec.json.encode(told, order="sorted")
    return GUIDE + _BY + _maker().encode() + _SAYS + says + b"\n"


def compare_certificate(bundle: bytes, cosigned: int) -> str:
    """Compare the certificate in a bundle that was verified; gives what came of it, for people.

    `cosigned` is how many cosignatures were checked: the certificate names all that are there.

    Raises:
        EvidenceError: this release makes another certificate of the same evidence.
    """
    contents, _ = read_bundle(bundle)
    _, _, rest = contents.readme.partition(_BY)
    by, _, says = rest.partition(_SAYS)
    if sum(map(len, (says, contents.record, contents.notice, *contents.disclosures))) > _BYTES_MAX:
        return "certificate.pdf was not compared: it has too much text"
    try:
        if by.decode() != _maker():
            return "certificate.pdf was not compared: it was not made by this release"
        proof = parse_proof(contents.proof)
        note = parse_note(proof.checkpoint)
        checkpoint = parse_checkpoint(note.text)
        key = parse_policy(contents.policy, any_kind=True).check_signature(proof.checkpoint).key
        told = {
            **msgspec.json.decode(says),
            "record": contents.record,
            "shown": contents.disclosures,
            "notice": contents.notice,
            "proof": contents.proof,
            "origin": checkpoint.origin,
            "index": proof.index,
            "size": checkpoint.size,
            "root": checkpoint.root,
            "key_fingerprint": sha256(key.public_key).hexdigest(),
            "witnesses": [
                (line.name, cosigned_at(line.time))
                for line in note.signatures
                if line.name != checkpoint.origin
            ],
        }
        facts = msgspec.convert(told, CertificateFacts)
        same = _has_stamps(contents, facts) and make_certificate(facts) == contents.certificate
    except (ImportError, metadata.PackageNotFoundError):
        return "certificate.pdf was not compared: the package typst is not installed"
    except Exception as error:  # README.txt can say anything
        msg = f"certificate.pdf cannot be made again from README.txt ({type(error).__name__})"
        raise EvidenceError(msg) from error
    if not same:
        msg = "certificate.pdf differs from the one that this release makes of the same evidence"
        raise EvidenceError(msg)
    said = says.decode().strip()
    others = len(set(facts.witnesses)) - cosigned
    made = "certificate.pdf is the one that this release makes"
    if others > 0:
        made += f", but {others} of the cosignatures that it names were not checked"
    return f"{made}. Nothing in the bundle supports these details: {said}"


def _has_stamps(contents: BundleContents, facts: CertificateFacts) -> bool:
    """Whether the certificate names as many time-stamps as the bundle has, at their times."""
    there = Counter(read_timestamp(token).at[:19] for token in contents.timestamps.values())
    named = Counter(rfc3339(at)[:19] for _, at in facts.timestamps if at is not None)
    return len(facts.timestamps) == len(contents.timestamps) and named <= there


@cache
def _maker() -> str:
    """The release, told from others by all that a certificate depends on."""
    place = resources.files(__package__)
    made = sha256(b"".join((place / name).read_bytes() for name in _SOURCES)).hexdigest()[:16]
    tools = ", ".join(f"{name} {metadata.version(name)}" for name in ("typst", "segno"))
    return f"Countersign {__version__} ({made}, {tools})"
