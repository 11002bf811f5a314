"""Typesetting: a template and data become a PDF (PDF/A-3b and PDF/UA-1), always the same bytes.

Values reach a template as data, never as its text, so nothing that anyone wrote is ever read as
markup. No clock is read, and no font of the machine.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib import metadata, resources
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import msgspec

from countersign import __version__
from countersign.core.paper.text import FONT_PACKAGES

if TYPE_CHECKING:
    from typst import Compiler

_STANDARDS: Final = ("a-3b", "ua-1")
"""For archives, and for screen readers."""
OTHER_MAKER: Final = "it was not made by this release with these fonts and tools"
"""Why a document was not compared whose `maker` is another."""
_SOURCES: Final = ("parts.typ", "showable.txt", "text.py", "typeset.py")
_TOOLS: Final = ("typst", "segno", "tzdata", *(name.replace("_", "-") for name in FONT_PACKAGES))
# A compiler serves one caller at a time, and refuses a second one.
_compiling: Final = Lock()


def typeset(template: bytes, words: Mapping[str, Any]) -> bytes:
    """The PDF of a template, which comes after the common parts (`parts.typ`)."""
    facts = msgspec.json.encode(words).decode()
    with _compiling:
        made = _compiler().compile(
            _parts() + template,
            sys_inputs={"facts": facts},
            pdf_standards=list(_STANDARDS),
            timestamp=0,
        )
    assert isinstance(made, bytes)  # noqa: S101 - a PDF is one file
    return made


@cache
def _compiler() -> Compiler:
    """The compiler, which knows its fonts; each is read when a text first needs it."""
    from typst import Compiler, Fonts  # noqa: PLC0415 - most processes do without

    places = [str(resources.files(package)) for package in FONT_PACKAGES]
    return Compiler(_parts(), font_paths=Fonts(include_system_fonts=False, font_paths=places))


@cache
def _parts() -> bytes:
    return (resources.files(__package__) / "parts.typ").read_bytes()


def qr_code(url: str) -> str:
    """A QR code, as SVG."""
    import segno  # noqa: PLC0415 - as above

    target = io.BytesIO()
    segno.make(url, error="m", micro=False).save(
        target, kind="svg", border=0, xmldecl=False, svgns=True, dark="#1c2733"
    )
    return target.getvalue().decode()


def maker(*sources: bytes) -> str:
    """The release, identified by all that a document depends on; `sources` are its own."""
    place = resources.files(__package__)
    common = [(place / name).read_bytes() for name in _SOURCES]
    made = sha256(b"".join([*common, *sources])).hexdigest()[:16]
    tools = ", ".join(f"{name} {metadata.version(name)}" for name in _TOOLS)
    return f"Countersign {__version__} ({made}, {tools})"
