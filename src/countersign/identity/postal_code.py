"""US ZIP codes: a pattern and a comparison. ASCII digits only, compared as strings."""

import re
from typing import Annotated, Final

from msgspec import Meta

from countersign.http.schemas import in_full

ZIP_PATTERN: Final = r"^[0-9]{5}(-[0-9]{4})?$"
"""Five ASCII digits, or ZIP+4, as a JSON Schema (ECMA 262) pattern."""
ZipCode = Annotated[
    str, Meta(pattern=in_full(ZIP_PATTERN), max_length=10, examples=["94105", "94105-1234"])
]

_ZIP: Final = re.compile(r"[0-9]{5}(?:-[0-9]{4})?\Z")
_DOCUMENT_ZIP: Final = re.compile(r"(?!00000)([0-9]{5})(?:-|-?[0-9]{4})?\Z")


def is_zip(text: str) -> bool:
    """Whether the text is a ZIP code: five ASCII digits, or ZIP+4."""
    return _ZIP.match(text) is not None


def zip5(text: str) -> str:
    """The first five digits, which are what is compared."""
    return text[:5]


def document_zip5(text: str) -> str | None:
    """The first five digits of a ZIP code as documents carry it; None if it is none.

    Licences hold five digits, ZIP+4, or nine digits in a row, with spaces around, or a hyphen
    before four digits that are missing. Five zeros stand where there is none.
    """
    match = _DOCUMENT_ZIP.match(text.replace(" ", ""))
    return match[1] if match else None
