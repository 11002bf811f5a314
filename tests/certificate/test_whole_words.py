"""Words of a notice on paper: broken only where they are longer than their column."""

from __future__ import annotations

import re
import tomllib
from importlib import resources
from types import MappingProxyType
from typing import Any, Final

import msgspec
import pytest

from countersign.acknowledgments.certificate import make_certificate
from countersign.dossiers.pdf import dossier_pdf
from countersign.evidence.dossier import Dossier, DossierRecord
from tests.certificate.facts import ACK_ID, PERSONAL, made_facts
from tests.certificate.reader import lines_of, words_of
from tests.support.hosted import PROCESS_JSON

NOTICE: Final[dict[str, Any]] = tomllib.loads(
    (resources.files("countersign") / "notices" / "ab1263-2026-01-01.toml").read_text("utf-8")
)
LINES: Final = [(line["id"], line["text"]) for line in NOTICE["bullets"]]
HOSTED: Final = {"capture": "hosted", "credential": "checkout_session"}
TEXTS: Final = [NOTICE["title"], NOTICE["heading"], NOTICE["attestation_text"]]


def hosted_pdf(kind: str, lines: list[tuple[str, str]]) -> bytes:
    """A hosted certificate or dossier whose lines have times of their own, next to the words."""
    given = [PROCESS_JSON["lines"][number % 2 * 3] for number in range(len(lines))]
    personal = {**PERSONAL, "process": PROCESS_JSON | {"lines": given}}
    personal["initials_per_line"] = ["JD"] * len(lines)
    words = {name: NOTICE[name] for name in ("title", "heading", "attestation_text")}
    facts = made_facts(personal, lines=lines, notice=words, subject=HOSTED)
    if kind == "certificate":
        return make_certificate(facts)
    acknowledgment = DossierRecord(
        id=ACK_ID,
        type="acknowledgment",
        record=msgspec.json.decode(facts.record),
        body=facts.record,
        digest="ab" * 32,
        shown=personal,
        index=1,
    )
    return dossier_pdf(
        Dossier(
            records=(acknowledgment,),
            notice=MappingProxyType(msgspec.json.decode(facts.notice)),
            joins=(),
            missing=(),
            remarks=("at of rec_1 is odd",),
            origin="log.example/v1/log/live/1",
            size=42,
            root=bytes(32),
            checkpoint=b"",
            cosigned=(),
            timestamps=(),
            key_fingerprint="cd" * 32,
        )
    )


@pytest.mark.parametrize("kind", ["certificate", "dossier"])
def test_every_word_of_the_shipped_notice_is_whole(kind: str) -> None:
    """On one line, also where it has a hyphen: a legal text is not cut."""
    pdf = hosted_pdf(kind, LINES)
    printed = {word for line in lines_of(pdf) for word in line.split()}
    words = {word for text in [*TEXTS, *(text for _, text in LINES)] for word in text.split()}
    assert words - printed == set()
    assert "three-dimensional" in words
    if kind == "dossier":
        assert "What is odd, and no failure • at of rec_1 is odd" in words_of(pdf)


def test_a_word_that_is_longer_than_its_column_is_broken_with_a_hyphen() -> None:
    """At its own hyphens and slashes first; an identifier is broken without one."""
    own = "-".join(["extraordinarily"] * 6)
    letters, identifier = "Donaudampfschifffahrtsgesellschaft" * 3, "a1b2" * 40
    lines = lines_of(hosted_pdf("certificate", [("A", f"{own} {letters} {identifier}"), *LINES]))
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
