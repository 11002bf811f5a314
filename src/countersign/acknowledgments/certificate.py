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
import io
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from functools import cache
from hashlib import sha256
from importlib import metadata, resources
from threading import Lock
from typing import TYPE_CHECKING, Final

import msgspec

from countersign import __version__
from countersign.acknowledgments.certificate_words import CertificateFacts, certificate_words
from countersign.errors import Overloaded
from countersign.evidence.bundle import GUIDE, BundleContents, contents_of, read_container
from countersign.evidence.checkpoint import cosigned_at, parse_checkpoint
from countersign.evidence.errors import EvidenceError
from countersign.evidence.note import parse_note
from countersign.evidence.policy import parse_policy
from countersign.evidence.proof import parse_proof
from countersign.evidence.timestamp import read_timestamp
from countersign.instant import rfc3339

if TYPE_CHECKING:
    from typst import Compiler

WAITING_MAX: Final = 32
"""How many of one account may wait while one of its certificates is being made."""
_RETRY_SECONDS: Final = 5
_STANDARDS: Final = ("a-3b", "ua-1")
"""For archives, and for screen readers."""
_BY: Final = b"\nMade by "
_SAYS: Final = b"\nThe certificate also says this, which nothing in the bundle supports:\n"
_BYTES_MAX: Final = 128 * 1024
"""Text that is laid out takes hundreds of times its size in memory."""
_PROVED: Final = {
    *("record", "shown", "notice", "proof", "origin", "index", "size", "root"),
    *("key_fingerprint", "witnesses"),
}
_SOURCES: Final = (
    *("certificate.py", "certificate.typ", "certificate.toml", "certificate_words.py"),
)
# A compiler serves one caller at a time, and refuses a second one.
_compiling: Final = Lock()


@dataclass(slots=True)
class _Queue:
    """Those of one account: one at a time stands in the line for the thread."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    inside: int = 0


class Certificates:
    """Makes certificates in a separate thread, for each account in turn.

    No process is needed: the compiler releases the interpreter (measured with typst 0.15: a
    thread that counts meanwhile keeps 94 % of its pace).
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="countersign-certificate")
        self._queues: dict[str, _Queue] = {}
        self._closed = False

    async def make(self, facts: CertificateFacts, account: str) -> bytes:
        """The PDF of a certificate."""
        return await self.run(lambda: make_certificate(facts), account)

    async def run(self, make: Callable[[], bytes], account: str) -> bytes:
        """Make a PDF; however many an account asks for, another waits for one of them at most."""
        queue = self._queues.setdefault(account, _Queue())
        if queue.inside > WAITING_MAX:
            raise Overloaded(retry_after=_RETRY_SECONDS)
        queue.inside += 1
        try:
            async with queue.turn:
                if self._closed:
                    raise Overloaded(retry_after=_RETRY_SECONDS)
                return await asyncio.get_running_loop().run_in_executor(self._thread, make)
        finally:
            queue.inside -= 1
            if not queue.inside:
                del self._queues[account]

    async def close(self) -> None:
        """Give up what waits, and return when what is being made is done."""
        self._closed = True
        await asyncio.to_thread(self._thread.shutdown, wait=True, cancel_futures=True)


def make_certificate(facts: CertificateFacts) -> bytes:
    """The PDF (PDF/A-3b and PDF/UA-1), made from nothing but the facts."""
    words = certificate_words(facts)
    words["qr"] = _qr(words["verify_url"])
    text = msgspec.json.encode(words).decode()
    with _compiling:
        made = _compiler().compile(
            _template(), sys_inputs={"facts": text}, pdf_standards=list(_STANDARDS), timestamp=0
        )
    assert isinstance(made, bytes)  # noqa: S101 - a PDF is one file
    return made


@cache
def _compiler() -> Compiler:
    """The compiler with its fonts read, which takes far longer than a page."""
    from typst import Compiler  # noqa: PLC0415 - most processes do without

    return Compiler(_template(), ignore_system_fonts=True)


@cache
def _template() -> bytes:
    return (resources.files(__package__) / "certificate.typ").read_bytes()


def _qr(url: str) -> str:
    import segno  # noqa: PLC0415 - as above

    target = io.BytesIO()
    segno.make(url, error="m", micro=False).save(
        target, kind="svg", border=0, xmldecl=False, svgns=True, dark="#1c2733"
    )
    return target.getvalue().decode()


def readme(facts: CertificateFacts) -> bytes:
    """README.txt of the bundle whose certificate is made from these facts."""
    unproved = {f.name: getattr(facts, f.name) for f in fields(facts) if f.name not in _PROVED}
    says = msgspec.json.encode(unproved, order="sorted")
    return GUIDE + _BY + _maker().encode() + _SAYS + says + b"\n"


def compare_certificate(bundle: bytes, cosigned: int) -> str:
    """Compare the certificate in a bundle that was verified; returns the result in words.

    `cosigned` is how many cosignatures were checked: the certificate names all that are there.
    """
    contents, _ = contents_of(read_container(bundle))
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
        given = {
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
        facts = msgspec.convert(given, CertificateFacts)
        same = _has_stamps(contents, facts) and make_certificate(facts) == contents.certificate
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


def _has_stamps(contents: BundleContents, facts: CertificateFacts) -> bool:
    """Whether the certificate names as many time-stamps as the bundle has, at their times."""
    there = Counter(read_timestamp(token).at[:19] for token in contents.timestamps.values())
    named = Counter(rfc3339(at)[:19] for _, at in facts.timestamps if at is not None)
    return len(facts.timestamps) == len(contents.timestamps) and named <= there


@cache
def _maker() -> str:
    """The release, identified by all that a certificate depends on."""
    place = resources.files(__package__)
    made = sha256(b"".join((place / name).read_bytes() for name in _SOURCES)).hexdigest()[:16]
    tools = ", ".join(f"{name} {metadata.version(name)}" for name in ("typst", "segno"))
    return f"Countersign {__version__} ({made}, {tools})"
