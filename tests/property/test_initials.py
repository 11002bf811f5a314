"""Any list of strings as initials is stored exactly as typed, or refused with the right code."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.property.engines import Engines
from tests.property.initials import HIDING, LINES, LISTS, as_json, as_read, expected_of
from tests.support.depth import drawn

pytestmark = [pytest.mark.postgres, pytest.mark.long]
ACKNOWLEDGE = "/v1/notices/ab1263/acknowledge"


@settings(max_examples=drawn(150), deadline=None)
@given(initials=LISTS, escaped=st.lists(st.booleans(), min_size=1, max_size=8))
@example(initials=["JD"] * LINES, escaped=[False])
@example(initials=["\U0001f600"] * LINES, escaped=[True])
@example(initials=["\ud83d\ude00"] * LINES, escaped=[True])
@example(initials=["\ude00\ud83d"] * LINES, escaped=[True])
@example(initials=["\x00"] * LINES, escaped=[False])
@example(initials=["J" * 32] * LINES, escaped=[False])
@example(initials=["J" * 33] * LINES, escaped=[False])
@example(initials=["\U0001f600" * 32] * LINES, escaped=[True])
@example(initials=[" JD \t", "\u202eDJ", "J\u200bD", "e\u0301"], escaped=[False])
def test_any_list_of_strings_is_stored_exactly_as_typed_or_refused_with_the_right_code(
    engines: Engines, initials: list[str], escaped: list[bool]
) -> None:
    judge(engines, initials, escaped)


def test_each_character_that_may_hide_is_judged_on_a_line_of_its_own(engines: Engines) -> None:
    for character in HIDING:
        for escaped in (False, True):
            judge(engines, ["JD", character, "JD", "JD"], [escaped])


def judge(engines: Engines, initials: list[str], escaped: list[bool]) -> None:
    """Have both engines judge these initials, and compare with the rules."""
    lines = ", ".join(as_json(text, escaped) for text in initials)
    read = [as_read(text) for text in initials]
    expected = expected_of(read)

    answers = engines.post(ACKNOWLEDGE, f'{{"initials_per_line": [{lines}]}}'.encode())

    if expected.code is None:
        for side, answer in zip((engines.sqlite, engines.postgres), answers, strict=True):
            assert answer.status == 200
            stored = side.read(f"/v1/acknowledgments/{answer.json()['ack_id']}")
            assert stored["initials_per_line"] == read
        return
    answer = answers[0]
    assert answer.code == expected.code
    assert answer.status == (400 if expected.code == "invalid_request" else 422)
    if expected.blank_lines:
        assert answer.message.endswith(f" {', '.join(map(str, expected.blank_lines))}.")
    if expected.code == "initials_count_mismatch":
        assert f"expected {LINES} " in answer.message
        assert f"got {len(initials)}" in answer.message
