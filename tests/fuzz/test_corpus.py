"""Every run replays earlier findings, and each parser gets some random bytes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import CORPUS, TARGETS, seeds
from tests.support.depth import drawn


def test_each_file_of_the_corpus_is_of_a_parser() -> None:
    assert {folder.name for folder in CORPUS.iterdir()} <= set(TARGETS)


@pytest.mark.parametrize("name", TARGETS)
def test_no_parser_fails_on_the_corpus(name: str) -> None:
    for data in seeds(name):
        TARGETS[name](data)


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=drawn(30), deadline=None)
@given(data=st.data())
def test_no_parser_fails_on_bytes_by_chance(name: str, data: st.DataObject) -> None:
    """Any bytes, or a seed with a few of its bytes changed."""
    known = data.draw(st.sampled_from([*seeds(name)]))
    if not known or data.draw(st.booleans()):
        TARGETS[name](data.draw(st.binary(max_size=300)))
        return
    changed = bytearray(known)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(changed)))
        changed[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    TARGETS[name](bytes(changed))
