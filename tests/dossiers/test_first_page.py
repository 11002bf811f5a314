"""The first page of a dossier's PDF: a judge needs no other, and a custodian can sign it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from countersign.core.dossiers.pdf import _WORDS, dossier_pdf
from countersign_evidence.dossier import evidence_of, read_container
from countersign_evidence.verification import dossier_of
from tests.certificate.reader import pages_of
from tests.evidence.dossier_vectors import DOSSIERS, GOOD, LIVE
from tests.support.every import every

QUESTIONS: Final = ("Which order", "Who", "What", "When", "By what check")


def first_page(path: Path) -> str:
    """Its text, with single spaces."""
    data = path.read_bytes()
    pages = pages_of(dossier_pdf(dossier_of(data), evidence_of(read_container(data))))
    return " ".join(pages[0].split())


@every("path", [path for path in GOOD if path.stem in {"order", "hosted", "erased", "stamped"}])
def test_the_first_page_has_the_verdict_five_answers_and_a_place_to_sign(path: Path) -> None:
    """All on that page, in this order, however much is missing."""
    page, rest = first_page(path), ""
    for words in (*dossier_of(path.read_bytes()).summary, *QUESTIONS, "Custodian of the records"):
        before, found, rest = page.partition(words)
        assert found, (words, before)
        page = rest
    for words in ("Name", "Signature", "Date", "Page 1 of "):
        assert words in rest


def test_the_first_page_names_order_people_events_times_and_checks() -> None:
    """As in the records, each with its source."""
    page = first_page(LIVE)
    for words in (
        "Which order sess_8c1f as the vendor names it",
        "Who issued by An Operator, Inc.; vendor A Vendor; the buyer, known as cbid_test_",
        "initials JD, J.D., jd on 4 lines of the notice",
        "the order was cleared",
        "2026-11-20 21:31:00.123 UTC = 2026-11-20 13:31:00.123 PST by the clock of the service",
        "By what check a simulated identity check, of no person: verified",
    ):
        assert words in page, page


def test_text_of_others_does_not_change_the_order_of_a_line() -> None:
    """A line begins with words of ours, and no number of ours follows text of others.

    Otherwise a reference or a title that is written from right to left turns the line round.
    """
    for name in ("order_as", "buyer_as", "initials"):
        words = _WORDS["first"][name]
        assert words[0].isascii()
        assert words[0].isalpha()
        assert not re.search(r"\{(reference|initials|title)\}[^a-z]*\{(count|taken)\}", words)


def test_the_paper_says_that_no_key_was_checked() -> None:
    """The first line says so, since nothing that is printed can check it."""
    for summary in (dossier_of(path.read_bytes()).summary for path in (LIVE, *GOOD)):
        assert summary[0].startswith("Whose key signed this was not checked.")
        assert "the fingerprint of the key, below" in " ".join(summary)


def test_the_first_page_names_withheld_fields() -> None:
    """Order, buyer, initials and check: no gap looks like an answer."""
    page = first_page(DOSSIERS / "good" / "withheld.zip")
    for words in (
        "Which order withheld or erased",
        "the buyer, who is not named",
        "initials (withheld or erased) on 4 lines of the notice",
        "By what check no identity check is shown here",
    ):
        assert words in page, page
