"""A certificate in every script that a buyer may type, as PDFium, pypdf and qpdf read it."""

from __future__ import annotations

import io
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any, Final

import pdfua
import pypdfium2
import pytest
from pypdf import PdfReader
from pypdf.generic import ArrayObject, DictionaryObject, IndirectObject

from countersign.core.paper.typeset import han_font, showable
from tests.certificate.facts import made_dossier, make_certificate
from tests.certificate.reader import squeezed

SCRIPTS: Final = {
    "Latin": "Zo\u00eb \u00c5ngstr\u00f6m",
    "accents typed apart": "Ze\u0301 o\u0302\u0323",
    "Cyrillic": "\u0416.\u042e.",
    "Greek": "\u0386\u03c1\u03b7\u03c2 \u03a9.",
    "Arabic": "\u062a\u0631\u062e\u064a\u0635 \u0635\u0627\u0644\u062d",
    "Persian": "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \u067e\u0686\u06af",
    "Hebrew": "\u05d3\u05f4\u05e8 \u05db\u05d4\u05df",
    "Devanagari": "\u0905\u0915\u094d\u0937\u092f \u0915\u094d\u0937\u093f",
    "Bengali": "\u09ac\u09be\u0982\u09b2\u09be \u0995\u09cd\u09b7",
    "Tamil": "\u0ba4\u0bae\u0bbf\u0bb4\u0bcd",
    "Thai": "\u0e17\u0e39\u0e49 \u0e20\u0e32\u0e29\u0e32",
    "Armenian": "\u0540\u0561\u0575\u056f",
    "Georgian": "\u10e5\u10d0\u10e0\u10d7\u10e3\u10da\u10d8",
    "simplified Chinese": "\u5f20\u4e09 \u56fd",
    "traditional Chinese": "\u5f35\u4e09 \u570b",
    "Japanese": "\u5c71\u7530\u3000\u30ab\u30ca",
    "Korean": "\uae40\ucca0\uc218",
    "Korean, typed apart": "\u1100\u1175\u11b7",
    "emoji": "\U0001f44d\U0001f3fd\U0001f469\u200d\U0001f467\u2764\ufe0f",
    "mixed": "JD \u05db\u05d4\u05df",
}
FROM_THE_RIGHT: Final = {"Arabic", "Persian", "Hebrew"}


@cache
def certificate() -> bytes:
    lines = [(f"{number}", f"The words of line {number}.") for number in range(len(SCRIPTS))]
    return make_certificate(made_dossier({"initials_per_line": [*SCRIPTS.values()]}, lines=lines))


@cache
def text() -> str:
    """The text that PDFium, the browsers' reader, copies from all pages."""
    pages = pypdfium2.PdfDocument(certificate())
    return squeezed("".join(page.get_textpage().get_text_bounded() for page in pages))


@pytest.mark.parametrize("script", SCRIPTS)
def test_text_copied_from_a_certificate_is_the_typed_initials(script: str) -> None:
    """In each script, and no character is spelled out for lack of a font."""
    typed = SCRIPTS[script]
    assert showable(typed) == typed
    # In a row that begins with a number a reader may order the words from the left, and takes what
    # does not join (U+200C) for two.
    words = typed.replace("\u200c", " ").split() if script in FROM_THE_RIGHT else [typed]
    for word in words:
        assert squeezed(word) in text(), ascii(word)


def test_each_language_with_chinese_characters_has_its_own_glyphs() -> None:
    """One code point is written differently in Japan, Korea, Taiwan and China."""
    for script, font in (
        ("simplified Chinese", "SC"),
        ("traditional Chinese", "TC"),
        ("Japanese", "JP"),
        ("Korean", "KR"),
    ):
        assert han_font(SCRIPTS[script]) == font
    assert han_font("\u4e00", "zh-Hant") == "TC"
    assert han_font("\u4e00", "ja") == "JP"
    names = {str(font["/BaseFont"]) for font in fonts(certificate())}
    for font in ("CJKjp", "CJKkr", "CJKsc", "CJKtc", "IBMPlexSansArabic", "NotoEmoji"):
        assert any(font in name for name in names), font


def test_every_font_is_inside_and_every_letter_has_its_code_points() -> None:
    """So it looks the same in many years, and can be searched."""
    found = fonts(certificate())
    assert len(found) > 10
    for font in found:
        descriptor = font["/DescendantFonts"][0]["/FontDescriptor"]
        assert {"/FontFile2", "/FontFile3"} & set(descriptor), font["/BaseFont"]
        assert "/ToUnicode" in font


def test_no_machine_checkable_rule_of_pdf_ua_is_broken(tmp_path: Path) -> None:
    """By an independent checker: the document, a long one, and one in Arabic."""
    long = [
        (f"L{number}", "Words of a line. " * (60 if number == 7 else 1)) for number in range(60)
    ]
    arabic = {"language": "ar", "title": SCRIPTS["Arabic"], "heading": SCRIPTS["Persian"]}
    for pdf in (
        certificate(),
        make_certificate(made_dossier(lines=long)),
        make_certificate(made_dossier(notice=arabic)),
    ):
        (tmp_path / "certificate.pdf").write_bytes(pdf)
        assert pdfua.validate(str(tmp_path / "certificate.pdf")).findings == ()
        elements = structure(pdf)
        assert without_head(elements) == []
        reader = PdfReader(io.BytesIO(pdf), strict=True)
        root: Any = reader.root_object
        assert root["/MarkInfo"]["/Marked"]
        assert root["/ViewerPreferences"]["/DisplayDocTitle"]
        for page in reader.pages:
            links: Any = page.get("/Annots", ())
            assert all(link.get_object()["/Contents"] for link in links)


def test_a_line_that_goes_over_pages_has_its_id_on_each() -> None:
    """A page that is separated from the others still says which line is on it."""
    lines = [("A", "Short."), ("B", "Words of a long line. " * 600), ("C", "The last.")]
    pdf = make_certificate(made_dossier(lines=lines))
    pages = [page.extract_text() for page in PdfReader(io.BytesIO(pdf)).pages]
    inside = [page for page in pages if page.count("Words of a long line.") > 5]
    assert len(inside) > 2
    assert all("Line B" in page for page in inside)


def fonts(pdf: bytes) -> list[Any]:
    found: dict[str, Any] = {}
    for page in PdfReader(io.BytesIO(pdf)).pages:
        resources: Any = page["/Resources"]
        found |= {font["/BaseFont"]: font for font in resources.get("/Font", {}).values()}
    return list(found.values())


def structure(pdf: bytes) -> list[Any]:
    """The elements of the tree that a screen reader reads."""
    found: list[Any] = []

    def walk(one: object) -> None:
        one = one.get_object() if isinstance(one, IndirectObject) else one
        if isinstance(one, ArrayObject):
            for each in one:
                walk(each)
        elif isinstance(one, DictionaryObject) and "/S" in one:
            found.append(one)
            walk(one.get("/K"))

    root: Any = PdfReader(io.BytesIO(pdf)).root_object
    walk(root["/StructTreeRoot"]["/K"])
    return found


def without_head(elements: list[Any]) -> list[Any]:
    """Tables that do not say what their columns are."""
    tables = [one for one in elements if one["/S"] == "/Table"]
    heads = [one for one in elements if one["/S"] == "/THead"]
    assert tables
    parents = [head["/P"].get_object() for head in heads]
    return [table for table in tables if table not in parents]


def test_the_characters_of_names_are_compared_as_typed() -> None:
    """Accents that were typed apart stay apart: the text is not made uniform."""
    apart = SCRIPTS["accents typed apart"]
    assert unicodedata.normalize("NFC", apart) != apart
    assert squeezed(apart) in text()
