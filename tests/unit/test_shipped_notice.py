"""The shipped notice: only words that were found, with its gaps named."""

from __future__ import annotations

import re

import pytest

from countersign.core.notices.model import NoticeContent, notice_digest, published_bytes
from countersign.core.notices.notice_file import parse_notice_file, shipped_notice_files

FILE = "ab1263-2026-01-01.toml"

# The words of the reproduction that was found; line breaks are those of this source file only.
HEADING = (
    "It is generally a crime in California to engage in any of the following conduct without a "
    "valid license to manufacture firearms:"
)
LINES = {
    "A": "Manufacturing more than three firearms per calendar year in California.",
    "B": "Manufacturing a firearm using a three-dimensional printer or CNC milling machine.",
    "C": (
        "Manufacturing a firearm for the purpose of selling or transferring ownership of that "
        "firearm to another individual who is not licensed to manufacture firearms."
    ),
    "D": (
        "Manufacturing a firearm for the purpose of selling, loaning, or transferring that "
        "firearm, with the intent to complete the sale, loan, or transfer without a required "
        "background check initiated by a licensed firearms dealer."
    ),
}


@pytest.fixture(scope="module")
def shipped() -> NoticeContent:
    return parse_notice_file(shipped_notice_files()[FILE])


def test_the_statutory_words_are_those_that_were_found(shipped: NoticeContent) -> None:
    """The lead-in is the heading; the bullets are (A) to (D), word for word."""
    assert shipped.heading == HEADING
    assert {bullet.id: bullet.text for bullet in shipped.bullets} == LINES
    assert [bullet.id for bullet in shipped.bullets] == ["A", "B", "C", "D"]


def test_the_missing_items_are_named_and_not_invented(shipped: NoticeContent) -> None:
    """(E) is known by its first word only."""
    (gap,) = shipped.text_gaps
    assert gap == (
        "(E), which begins 'Allowing', and any later items are missing; take them from the "
        "official text"
    )
    assert not any(line.text.startswith("Allowing") for line in shipped.bullets)


def test_our_own_wording_is_marked_as_ours(shipped: NoticeContent) -> None:
    """Title and attestation are not the law's."""
    assert set(shipped.editorial) == {"title", "attestation_text"}


def test_the_attestation_claims_no_more_than_the_law_asks(shipped: NoticeContent) -> None:
    """Received and understood; nothing says that the statute requires initials."""
    assert "received" in shipped.attestation_text
    assert "understand" in shipped.attestation_text
    assert not re.search(r"initial|requir", shipped.attestation_text, re.IGNORECASE)


def test_the_citations_are_the_exact_strings(shipped: NoticeContent) -> None:
    """No unchecked subdivision is printed."""
    assert shipped.id == "ab1263"
    assert shipped.jurisdiction == "US-CA"
    assert shipped.effective_from == "2026-01-01"
    assert shipped.source_law == (
        "Cal. Civ. Code § 3273.51 (Firearm Industry Responsibility Act), as amended by "
        "Stats. 2025, ch. 636"
    )
    assert shipped.source_bill == ("AB 1263 (Gipson), Firearms: ghost guns, Stats. 2025, ch. 636")
    assert shipped.source_url == (
        "https://leginfo.legislature.ca.gov/faces/billNavClient.xhtml?bill_id=202520260AB1263"
    )


def test_the_version_says_that_it_is_incomplete(shipped: NoticeContent) -> None:
    """Readers of a record can tell it from a completed text."""
    assert "incomplete" in shipped.version


def test_the_published_bytes_never_change(shipped: NoticeContent) -> None:
    """This version is published: other bytes need another version, in another file."""
    assert notice_digest(published_bytes(shipped)) == DIGEST


DIGEST = "9097d72e6f2ef8647711257e6456ee7b845b058598918790a33a0c2829a8612d"
