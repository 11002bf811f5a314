"""The PDF of a dossier: what was checked, for people, made of nothing else.

The same dossier gives the same bytes, so that a reader of this release can make it again.
"""

from functools import cache
from importlib import metadata
from typing import Final

import msgspec
from typst import Compiler

from countersign import __version__
from countersign.evidence.dossier import Dossier

_TEMPLATE: Final = b"""
#let facts = json(bytes(sys.inputs.facts))
#set document(title: "Dossier", keywords: (facts.maker,))
#set text(lang: "en")
= Dossier
#for line in facts.lines [#par(line)]
"""


def maker() -> bytes:
    """What is in the bytes of each PDF that this release makes, and in no other's."""
    return f"Countersign {__version__} dossier, typst {metadata.version('typst')}".encode()


def dossier_pdf(dossier: Dossier) -> bytes:
    """The PDF, made of nothing but what was checked."""
    lines = [
        f"Log {dossier.origin}, checkpoint of size {dossier.size}",
        *(f"{one.index} {one.type} {one.id} {one.digest}" for one in dossier.records),
        *dossier.joins,
        *(f"Missing: {what}" for what in dossier.missing),
    ]
    facts = msgspec.json.encode({"maker": maker().decode(), "lines": lines}).decode()
    made = _compiler().compile(_TEMPLATE, sys_inputs={"facts": facts}, timestamp=0)
    assert isinstance(made, bytes)  # noqa: S101 - a PDF is one file
    return made


@cache
def _compiler() -> Compiler:
    return Compiler(_TEMPLATE, ignore_system_fonts=True)
