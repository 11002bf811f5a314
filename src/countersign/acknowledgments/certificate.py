"""Certificates: an acknowledgment on paper, readable by a judge, with the evidence attached.

The template is `certificate.typ`. Values reach it as data, never as text of the template, so
nothing that a buyer or vendor wrote is ever read as markup. The same facts give the same bytes.
"""

from __future__ import annotations

import asyncio
import io
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from threading import Lock
from typing import TYPE_CHECKING, Final

import msgspec

from countersign.acknowledgments.certificate_facts import CertificateFacts
from countersign.acknowledgments.certificate_words import certificate_words
from countersign.errors import Overloaded

if TYPE_CHECKING:
    from typst import Compiler

__all__ = ["WAITING_MAX", "CertificateFacts", "Certificates", "make_certificate"]

WAITING_MAX: Final = 32
"""How many of one account may wait while one of its own is being made."""
_RETRY_SECONDS: Final = 5
_STANDARDS: Final = ("a-3b", "ua-1")
"""For archives, and for screen readers."""
# A compiler serves one caller at a time, and refuses a second one.
_compiling: Final = Lock()


@dataclass(slots=True)
class _Queue:
    """Those of one account: one at a time stands in the line for the thread."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    inside: int = 0


class Certificates:
    """Makes certificates in a thread of their own, for each account in turn.

    No process is needed: the compiler lets go of the interpreter (measured with typst 0.15: a
    thread that counts meanwhile keeps 94 % of its pace).
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="countersign-certificate")
        self._queues: dict[str, _Queue] = {}
        self._closed = False

    async def make(self, facts: CertificateFacts, account: str) -> bytes:
        """The PDF; however many an account asks for, another waits for one of them at most.

        Raises:
            Overloaded: `WAITING_MAX` of this account are waiting already, or the service ends.
        """
        queue = self._queues.setdefault(account, _Queue())
        if queue.inside > WAITING_MAX:
            raise Overloaded(retry_after=_RETRY_SECONDS)
        queue.inside += 1
        try:
            async with queue.turn:
                if self._closed:
                    raise Overloaded(retry_after=_RETRY_SECONDS)
                return await asyncio.get_running_loop().run_in_executor(
                    self._thread, make_certificate, facts
                )
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
    told = msgspec.json.encode(words).decode()
    with _compiling:
        made = _compiler().compile(
            _template(), sys_inputs={"facts": told}, pdf_standards=list(_STANDARDS), timestamp=0
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
