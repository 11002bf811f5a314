"""In any order of events, only a positive, bound decision for this buyer verifies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from countersign.base.errors import CountersignError
from countersign.base.values import Mode
from countersign.core.buyers.identity_check import IdentityCheck
from countersign.core.buyers.model import BuyerStatus
from tests.support.depth import drawn
from tests.support.providers import Playing, playing
from tests.verification.inside import Stage
from tests.verification.starting import (
    ZIP,
    Starter,
    a_reference,
    credentials_of_test_mode,
    live_starter,
    sandbox_starter,
    starter_of,
    walk,
)

pytestmark = pytest.mark.long

OUTCOMES = ("verified", "underage", "wrong_zip", "failed", "later", "cancelled", "never")
POSITIVE = {"verified", "later", "never"}
CLOSING = {*POSITIVE, "underage", "wrong_zip", "cancelled"}
"""After these the page does not begin again."""
ZIPS = (ZIP, "90210")
VENDORS, CHECKS = 4, 3
number = st.integers(0, CHECKS - 1)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("walk"), number, st.sampled_from(OUTCOMES), st.sampled_from(ZIPS)),
        # The caller, the session, the reference and the ZIP code.
        st.tuples(
            st.just("ask"), st.integers(0, VENDORS - 1), number, number, st.sampled_from(ZIPS)
        ),
        st.tuples(st.just("poll")),
    ),
    max_size=12,
)


@pytest.fixture
def vendors(stage: Stage) -> Iterator[list[Starter]]:
    """Give two live accounts, the sandbox of the first, and another sandbox, at one provider."""
    with playing("stripe", clock=stage.clock.monotonic) as played:
        yield _vendors(stage, played)


def _vendors(stage: Stage, played: Playing) -> list[Starter]:
    first = starter_of(stage.insider(played))
    test = Starter(stage, replace(first.who, mode=Mode.TEST))
    test.add(played, credentials_of_test_mode(played))
    return [first, live_starter(stage, played), test, sandbox_starter(stage, played)]


class Pages:
    """The pages of the provider's sessions, and how their buyers went through them."""

    def __init__(self, made: Sequence[IdentityCheck]) -> None:
        self._made = made
        self.closed: set[int] = set()
        self.good: set[int] = set()
        """Ended positively, with the ZIP code that they were started for."""

    def walk(self, which: int, outcome: str, zip_: str) -> None:
        """Let a buyer go through a page that is still open."""
        if which in self.closed:
            return
        walk(self._made[which], outcome, zip_)
        if outcome in CLOSING:
            self.closed.add(which)
        # The page's "another ZIP code" is the one of these two that was not typed.
        shown = zip_ if outcome != "wrong_zip" else ZIPS[1 - ZIPS.index(zip_)]
        if outcome in {*POSITIVE, "wrong_zip"} and shown == ZIP:
            self.good.add(which)


@settings(
    max_examples=drawn(30),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(owner=st.integers(0, VENDORS - 1), done=steps)
def test_only_a_positive_bound_decision_makes_a_check_verified(
    stage: Stage, vendors: list[Starter], owner: int, done: list[tuple[Any, ...]]
) -> None:
    """Bound to its own session, reference, account, mode and ZIP code."""
    own = vendors[owner]
    made: list[IdentityCheck] = [own.start(a_reference()) for _ in range(CHECKS)]
    references = [own.references[one.provider_session] for one in made]
    pages = Pages(made)
    for what, *how in done:
        if what == "walk":
            pages.walk(*how)
        elif what == "ask":
            asker, which, reference, zip_ = how
            check = _asked(vendors[asker], made[which], references[reference], zip_)
            assert check is None or (asker, which) == (owner, reference)
            if check is not None and check.status is BuyerStatus.VERIFIED:
                assert which in pages.closed
                assert zip_ != ZIP or which in pages.good
        else:
            stage.wait(timedelta(minutes=20))
    for which, one in enumerate(made):
        found = own.found(one)[0]
        if found is not None and found.status is BuyerStatus.VERIFIED:
            assert which in pages.good
            assert str(found.cbid).startswith("cbid_test_") is (own.who.mode is Mode.TEST)


def _asked(vendor: Starter, made: IdentityCheck, reference: str, zip_: str) -> IdentityCheck | None:
    """The result of a question; None if it is refused."""
    try:
        return vendor.ask(made, reference, zip_)
    except CountersignError:
        return None
