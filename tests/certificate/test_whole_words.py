"""Words of a notice on paper: broken only where they are longer than their column."""

from __future__ import annotations

import re
import tomllib
from importlib import resources
from typing import Any, Final

from tests.certificate.facts import PERSONAL, made_dossier, make_certificate
from tests.certificate.reader import lines_of, words_of
from tests.support.hosted import PROCESS_JSON

NOTICE: Final[dict[str, Any]] = tomllib.loads(
    (resources.files("countersign.core.notices") / "ab1263-2026-01-01.toml").read_text("utf-8")
)
LINES: Final = [(line["id"], line["text"]) for line in NOTICE["bullets"]]
HOSTED: Final = {"capture": "hosted", "credential": "checkout_session"}
TEXTS: Final = [NOTICE["title"], NOTICE["heading"], NOTICE["attestation_text"]]


def hosted_pdf(lines: list[tuple[str, str]]) -> bytes:
    """A hosted certificate whose lines have times of their own, next to the words."""
    given = [PROCESS_JSON["lines"][number % 2 * 3] for number in range(len(lines))]
    personal = {**PERSONAL, "process": PROCESS_JSON | {"lines": given}}
    personal["initials_per_line"] = ["JD"] * len(lines)
    words = {name: NOTICE[name] for name in ("title", "heading", "attestation_text")}
    odd = ("at of rec_1 is odd",)
    return make_certificate(
        made_dossier(personal, lines=lines, notice=words, subject=HOSTED, remarks=odd)
    )


def test_every_word_of_the_shipped_notice_is_whole() -> None:
    """On one line, also where it has a hyphen: a legal text is not cut."""
    pdf = hosted_pdf(LINES)
    printed = {word for line in lines_of(pdf) for word in line.split()}
    words = {word for text in [*TEXTS, *(text for _, text in LINES)] for word in text.split()}
    assert words - printed == set()
    assert "three-dimensional" in words
    assert "What is odd, and no failure • at of rec_1 is odd" in words_of(pdf)


def test_a_word_longer_than_its_column_is_hyphenated() -> None:
    """At its own hyphens and slashes first; an identifier is broken without one."""
    own = "-".join(["extraordinarily"] * 6)
    letters, identifier = "Donaudampfschifffahrtsgesellschaft" * 3, "a1b2" * 40
    lines = lines_of(hosted_pdf([("A", f"{own} {letters} {identifier}"), *LINES]))
    text = "\n".join(lines)
    pieces = re.findall(r"(?:extraordinarily-?)+", text)
    assert len(pieces) > 1
    assert "-".join(piece.strip("-") for piece in pieces) == own
    broken = [
        line.strip() for line in lines if re.search("donau|schiff|gesell", line, re.IGNORECASE)
    ]
    assert [line[-1] in "-\u00ad" for line in broken[:-1]] == [True] * (len(broken) - 1)
    assert "".join(re.findall("[a1b2]{8,}", text)).count("a1b2") >= 39
    assert not re.search("[ab12]{8,}[-\u00ad]", text)
