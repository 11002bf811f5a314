"""One test over many values lists all that fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.every import every

pytestmark = pytest.mark.later  # it tests the tools of the tests


@every("number", [1, 2])
@every(("one", "other"), [("a", "b"), ("c", "d")])
def test_each_value_is_tested_with_the_fixtures_of_the_test(
    tmp_path: Path, number: int, one: str, other: str
) -> None:
    """Stacked decorators make every combination."""
    (tmp_path / f"{number}{one}{other}").touch(exist_ok=False)
    assert len(list(tmp_path.iterdir())) == (number - 1) * 2 + (1 if one == "a" else 2)


def test_all_failures_are_listed_at_once() -> None:
    """With the value of each, whether it is an assertion, an error or a missing error."""

    @every("number", range(5))
    def ask(number: int) -> None:
        assert number != 1, "not one"
        if number == 2:
            raise KeyError("two")
        if number == 3:
            pytest.fail("three")

    with pytest.raises(AssertionError) as failed:
        ask()
    said = str(failed.value)
    assert said.startswith("3 of 5 number:\n(1,): AssertionError: not one")
    assert "(2,): KeyError: 'two'" in said
    assert "(3,): Failed: three" in said


def test_a_test_without_values_is_an_error() -> None:
    """A table that lost its rows would pass."""
    with pytest.raises(AssertionError, match="nothing to ask"):
        every("number", [])
