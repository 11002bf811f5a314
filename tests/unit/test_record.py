"""The record: exactly the members of the format, bound to its disclosures, and nothing personal."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countersign_evidence.disclosure import b64url_each
from countersign_evidence.record import (
    Record,
    Subject,
    bullet_digests,
    entropy_needed,
    make_records,
)
from tests.support import depth
from tests.unit.record_reader import digest_of, disclosed, unpadded
from tests.unit.support import jcs

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LINES = st.lists(st.tuples(TEXT, TEXT), max_size=5)
PERSONAL = st.lists(st.tuples(TEXT, st.one_of(st.none(), TEXT)), max_size=6)
FORMAT = (Path(__file__).parents[2] / "spec" / "evidence-format.md").read_text(encoding="utf-8")


def subject(word: str = "x", lines: list[tuple[str, str]] | None = None) -> Subject:
    """A constant subject; its content does not matter to this module."""
    return Subject(
        id=f"ack_{word}",
        account=word,
        account_record=None,
        operator_record=None,
        capture_process=None,
        mode="test",
        notice_id=word,
        notice_version=word,
        notice_digest=sha256(word.encode()).hexdigest(),
        notice_version_source="asserted",
        bullets=bullet_digests([("A", "Line.")] if lines is None else lines),
        capture="vendor_api",
        credential="secret_key",
        accepted_at="2026-11-20T21:31:00.123Z",
    )


def entropy(fields: int, seed: int = 0) -> bytes:
    """Bytes without a repeated group of 16."""
    return b"".join(sha256(f"{seed} {part}".encode()).digest()[:16] for part in range(fields + 1))


def make_record(about: Subject, personal: Sequence[tuple[str, object]], drawn: bytes) -> Record:
    made = Record(about, personal, drawn)
    make_records([made])
    return made


def sealed(personal: list[tuple[str, object]], seed: int = 0) -> Record:
    return make_record(subject(), personal, entropy(len(personal), seed))


@given(TEXT, LINES, PERSONAL)
@settings(max_examples=depth.drawn(60))
def test_any_record_is_canonical(
    word: str, lines: list[tuple[str, str]], personal: list[tuple[str, str | None]]
) -> None:
    """The bytes are those that RFC 8785 prescribes."""
    made = make_record(subject(word, lines), personal, entropy(len(personal)))
    assert made.body == jcs(json.loads(made.body))
    assert made.digest == sha256(made.body).digest()


@given(PERSONAL)
def test_every_personal_field_is_bound_by_its_digest(
    personal: list[tuple[str, str | None]],
) -> None:
    """In the order given, each with its own salt; `_sd` is sorted and says no more."""
    made = make_record(subject(), personal, entropy(len(personal)))
    drawn = entropy(len(personal))
    shown = [disclosed(one) for one in b64url_each(made.disclosures)]
    assert [(name, value) for _, name, value in shown] == personal
    assert [salt for salt, _, _ in shown] == [
        unpadded(drawn[at : at + 16]) for at in range(16, len(drawn), 16)
    ]
    digests = [digest_of(one) for one in b64url_each(made.disclosures)]
    assert json.loads(made.body)["_sd"] == sorted(digests)


@given(st.lists(PERSONAL, max_size=5))
def test_records_made_together_equal_those_made_one_by_one(
    many: list[list[tuple[str, str | None]]],
) -> None:
    """Nothing of one gets into another, whatever is acknowledged at the same time."""
    together, each = (
        [
            Record(subject(f"word {seed}"), personal, entropy(len(personal), seed))
            for seed, personal in enumerate(many)
        ]
        for _ in range(2)
    )
    make_records(together)
    for one in each:
        make_records([one])
    assert together == each


def test_a_record_has_exactly_the_members_of_the_format() -> None:
    """A member more or less is another version of the format."""
    section = FORMAT.partition("## 4. The record")[2].partition("\n## 5.")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    documented = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    assert set(json.loads(sealed([]).body)) == documented - {"test_clock"}
    ahead = msgspec.structs.replace(subject(), test_clock="2027-11-20T21:31:00.123Z")
    body = make_record(ahead, [], entropy(0)).body
    assert set(json.loads(body)) == documented
    assert jcs(json.loads(body)) == body


def test_a_record_says_version_type_and_algorithm() -> None:
    """A reader knows from the record alone how to read it."""
    record = json.loads(sealed([]).body)
    assert (record["v"], record["type"], record["_sd_alg"]) == (2, "acknowledgment", "sha-256")


def test_the_record_has_the_members_of_the_subject() -> None:
    """No two members are mixed up."""
    made_here = {"bullets", "sd", "sd_alg", "nonce", "type", "v"}
    words: dict[str, Any] = {
        name: name.upper() for name in {*Subject.__struct_fields__} - made_here
    }
    made = make_record(Subject(**words, bullets=bullet_digests([])), [], entropy(0))
    record = json.loads(made.body)
    assert {name: record[name] for name in words} == words


def test_nothing_personal_is_in_the_record() -> None:
    """Erasing the disclosures erases the person."""
    made = sealed([("initials_per_line", ["Zebulon"]), ("ip", {"ip": "203.0.113.7"})])
    assert b"Zebulon" not in made.body
    assert b"203.0.113.7" not in made.body
    assert b"initials" not in made.body


def test_the_same_act_never_has_the_same_digest_twice() -> None:
    """The nonce hides the content from someone who can guess it."""
    first, second = sealed([], seed=1), sealed([], seed=2)
    assert first.digest != second.digest
    nonce = json.loads(first.body)["nonce"]
    assert nonce == unpadded(entropy(0, 1))
    assert len(nonce) == 22


def test_an_unknown_field_is_bound_as_null() -> None:
    """Its absence can be shown, and the number of digests reveals nothing."""
    unknown, known = sealed([("session_id", None)]), sealed([("session_id", "s")])
    assert len(json.loads(unknown.body)["_sd"]) == len(json.loads(known.body)["_sd"]) == 1
    assert disclosed(b64url_each(unknown.disclosures)[0])[2] is None


@pytest.mark.parametrize("difference", [-16, -1, 1, 16])
def test_randomness_that_does_not_fit_is_a_mistake_of_the_program(difference: int) -> None:
    """A salt is never cut short or used twice in silence."""
    drawn = (entropy(2) + bytes(16))[: entropy_needed(2) + difference]
    with pytest.raises(ValueError, match="random bytes"):
        make_record(subject(), [("a", "1"), ("b", "2")], drawn)


def test_the_randomness_needed_is_a_nonce_and_a_salt_for_each_field() -> None:
    """16 bytes each."""
    assert [entropy_needed(fields) for fields in (0, 1, 5)] == [16, 32, 96]


@given(LINES)
def test_bullets_are_their_ids_with_the_hex_digest_of_their_text(
    lines: list[tuple[str, str]],
) -> None:
    """In the order of the notice; the digest is over UTF-8, without any normalisation."""
    assert bytes(bullet_digests(lines)) == jcs(
        [{"id": id_, "digest": sha256(text.encode()).hexdigest()} for id_, text in lines]
    )


def test_a_line_composed_otherwise_is_another_line() -> None:
    """é as one code point and as two look alike, and are not the same words."""
    one, two = bullet_digests([("A", "\u00e9")]), bullet_digests([("A", "e\u0301")])
    assert isinstance(one, msgspec.Raw)
    assert bytes(one) != bytes(two)
