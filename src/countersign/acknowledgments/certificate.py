"""Certificates: an acknowledgment on paper, readable by a judge, with the evidence attached.

The template is `certificate.typ`. Values reach it as data, never as text of the template, so
nothing that a buyer or vendor wrote is ever read as markup. The same facts give the same bytes: the
certificate in a bundle is checked by making it again.

A certificate also says what is in no checked file: how the operator calls the vendor, who reviewed
the notice, when the checkpoint was made. That stands at the end of README.txt, with the release
that made it, so that a certificate can differ from the evidence in nothing else.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from functools import cache
from hashlib import sha256
from importlib import metadata, resources
from typing import Final

import msgspec

from countersign.acknowledgments.acknowledged_words import shared_sources
from countersign.acknowledgments.certificate_facts import CertificateFacts
from countersign.acknowledgments.certificate_words import certificate_words
from countersign.errors import Overloaded
from countersign.evidence.bundle import GUIDE, BundleContents, contents_of, read_container
from countersign.evidence.checkpoint import cosigned_at, parse_checkpoint
from countersign.evidence.contents import BOUND
from countersign.evidence.errors import EvidenceError
from countersign.evidence.note import parse_note
from countersign.evidence.policy import parse_policy
from countersign.evidence.proof import parse_proof
from countersign.evidence.timestamp import read_timestamp
from countersign.evidence.verification import stamps_of
from countersign.instant import rfc3339
from countersign.lines import Lines
from countersign.paper.typeset import OTHER_MAKER, maker, qr_code, typeset

WAITING_MAX: Final = 32
"""How many of one owner may wait while one of its certificates is being made."""
_RETRY_SECONDS: Final = 5
_BY: Final = b"\nMade by "
_NAMED: Final = b"\nThe record names these records by their digests (SHA-256); here in base64:\n"
_SAYS: Final = b"\nThe certificate also says this, which nothing in the bundle supports:\n"
TEXT_BYTES_MAX: Final = 128 * 1024
"""Text that is laid out takes hundreds of times its size in memory."""
_PROVED: Final = {
    *("record", "parties", "shown", "notice", "proof", "origin", "index", "size", "root"),
    *("key_fingerprint", "witnesses"),
}
_SOURCES: Final = ("certificate.py", "certificate.typ", "certificate_words.py")


class Certificates:
    """Makes certificates in a separate thread, for each account in turn.

    No process is needed: the compiler releases the interpreter (measured with typst 0.15: a
    thread that counts meanwhile keeps 94 % of its pace).
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="countersign-certificate")
        self._lines = Lines(WAITING_MAX, _RETRY_SECONDS)
        self._closed = False

    async def make(self, facts: CertificateFacts, owner: Hashable) -> bytes:
        """The PDF of a certificate."""
        return await self.run(lambda: make_certificate(facts), owner)

    async def run(self, make: Callable[[], bytes], owner: Hashable) -> bytes:
        """Make a file; however many an owner asks for, another waits for one of them at most.

        Raises:
            Overloaded: too many of this owner wait.
        """
        async with self._lines.turn(owner):
            if self._closed:
                raise Overloaded(retry_after=_RETRY_SECONDS)
            return await asyncio.get_running_loop().run_in_executor(self._thread, make)

    async def close(self) -> None:
        """Give up what waits, and return when what is being made is done."""
        self._closed = True
        await asyncio.to_thread(self._thread.shutdown, wait=True, cancel_futures=True)


def make_certificate(facts: CertificateFacts) -> bytes:
    """The PDF (PDF/A-3b and PDF/UA-1), made from nothing but the facts."""
    words = certificate_words(facts)
    return typeset(_source("certificate.typ"), words | {"qr": qr_code(words["verify_url"])})


@cache
def _source(name: str) -> bytes:
    return (resources.files(__package__) / name).read_bytes()


def readme(facts: CertificateFacts) -> bytes:
    """README.txt of the bundle whose certificate is made from these facts."""
    unproved = {f.name: getattr(facts, f.name) for f in fields(facts) if f.name not in _PROVED}
    says = msgspec.json.encode(unproved, order="sorted")
    named = msgspec.json.encode(facts.parties)
    return GUIDE + _BY + _maker().encode() + _NAMED + named + _SAYS + says + b"\n"


def compare_certificate(bundle: bytes, cosigned: int) -> str:
    """Compare the certificate in a bundle that was verified; returns the result in words.

    `cosigned` is how many cosignatures were checked: the certificate names all that are there.
    """
    contents, _ = contents_of(read_container(bundle))
    _, _, rest = contents.readme.partition(_BY)
    head, _, says = rest.partition(_SAYS)
    by, _, named = head.partition(_NAMED)
    if (
        sum(map(len, (named, says, contents.record, contents.notice, *contents.disclosures)))
        > TEXT_BYTES_MAX
    ):
        return "certificate.pdf was not compared: it has too much text"
    try:
        if by.decode() != _maker():
            return f"certificate.pdf was not compared: {OTHER_MAKER}"
        proof = parse_proof(contents.proof)
        note = parse_note(proof.checkpoint)
        checkpoint = parse_checkpoint(note.text)
        key = parse_policy(contents.policy, any_kind=True).check_signature(proof.checkpoint).key
        given = {
            **msgspec.json.decode(says),
            "record": contents.record,
            "parties": msgspec.json.decode(named, type=tuple[bytes, ...]),
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
        facts = msgspec.convert(given, CertificateFacts)
        same = _has_parties(facts) and _has_stamps(contents, facts)
        same = same and make_certificate(facts) == contents.certificate
    except (ImportError, metadata.PackageNotFoundError):
        return "certificate.pdf was not compared: the package typst is not installed"
    except Exception as error:  # README.txt can say anything
        raise EvidenceError(
            f"certificate.pdf cannot be made again from README.txt ({type(error).__name__})"
        ) from error
    if not same:
        raise EvidenceError(
            "certificate.pdf differs from the one that this release makes of the same evidence"
        )
    said = says.decode().strip()
    others = len(set(facts.witnesses)) - cosigned
    made = "certificate.pdf is the one that this release makes"
    if others > 0:
        made += f", but {others} of the cosignatures that it names were not checked"
    return f"{made}. Nothing in the bundle supports these details: {said}"


def _has_parties(facts: CertificateFacts) -> bool:
    """Whether the record names, by its digest, each record of a party that is said."""
    record = msgspec.json.decode(facts.record)
    named = {record.get(member) for member in BOUND}
    return all(sha256(body).hexdigest() in named for body in facts.parties)


def _has_stamps(contents: BundleContents, facts: CertificateFacts) -> bool:
    """Whether the certificate names as many time-stamps as the bundle has, at their times."""
    counted = stamps_of(contents.timestamps, parse_proof(contents.proof).checkpoint)
    there = Counter(read_timestamp(contents.timestamps[name]).at[:19] for name in counted)
    named = Counter(rfc3339(at)[:19] for _, at in facts.timestamps if at is not None)
    return len(facts.timestamps) == len(counted) and named <= there


@cache
def _maker() -> str:
    return maker(*shared_sources(), *(_source(name) for name in _SOURCES))
