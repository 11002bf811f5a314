"""A certificate as somebody without our code has it: words on pages, and attached files."""

from __future__ import annotations

import io

from pypdf import PdfReader


def words_of(pdf: bytes) -> str:
    """The text of all pages, as copied from the document, with runs of white space as one space."""
    return " ".join(" ".join(page.extract_text() for page in _read(pdf).pages).split())


def lines_of(pdf: bytes) -> list[str]:
    """The lines of all pages, as they are on the page."""
    return [line for page in _read(pdf).pages for line in page.extract_text().splitlines()]


def pages_of(pdf: bytes) -> list[str]:
    """The text of each page."""
    return [" ".join(page.extract_text().split()) for page in _read(pdf).pages]


def files_of(pdf: bytes) -> dict[str, bytes]:
    """Name and bytes of each attachment."""
    return {name: bodies[0] for name, bodies in _read(pdf).attachments.items()}


def squeezed(text: str) -> str:
    """The text without white space: a line may break anywhere in a long word."""
    return "".join(text.split())


def _read(pdf: bytes) -> PdfReader:
    return PdfReader(io.BytesIO(pdf), strict=True)
