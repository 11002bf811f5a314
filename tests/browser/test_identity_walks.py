"""Every way of an identity check in a real browser: seven providers, each in every condition."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest

from countersign_simulators.hosted import Outcome
from tests.browser.checks import ACCESSIBLE, MANNERS, SANDBOX, WAYS, Manner, Walk, provided
from tests.browser.test_identity_page import acknowledge
from tests.browser.test_page import Order
from tests.browser.windows import Windows
from tests.checkout import outcomes
from tests.http.backstage import Operator
from tests.sandbox.calls import advance
from tests.support.service import Server

pytestmark = [
    pytest.mark.browser,
    pytest.mark.npm,
    pytest.mark.long,
    pytest.mark.usefixtures("patient"),
    pytest.mark.parametrize("deployment", ["sqlite"], indirect=True),
]


@pytest.fixture
def order(client: httpx2.Client, server: Server) -> Order:
    return Order(client, server)


@pytest.fixture(params=WAYS)
def walk(
    request: pytest.FixtureRequest,
    windows: Windows,
    operator: Operator,
    account: str,
    order: Order,
) -> Iterator[Walk]:
    """Give a buyer at each provider."""
    name = request.param
    if name == SANDBOX:
        yield Walk(windows, order, name, None, operator, account)
        return
    with provided(operator, account, order.server, name) as provider:
        provider.simulator.is_silent = True
        yield Walk(windows, order, name, provider, operator, account)


def test_a_verified_buyer_acknowledges_by_the_same_link(walk: Walk) -> None:
    walk.begin()
    window = walk.leave()
    assert window.evaluate("[document.referrer, opener]") == ["", None]
    walk.find(window, Outcome.VERIFIED)
    walk.come_back()
    acknowledge(walk.page)
    assert walk.order.read()["cleared"] is True
    assert walk.order.acknowledgment()["process"]["binding"] == "identity_session"


def test_a_buyer_reads_why_each_try_was_refused_and_passes_with_the_last_one(walk: Walk) -> None:
    walk.begin()
    by = "identity_start"
    for outcome in (Outcome.FAILED, Outcome.WRONG_ZIP, Outcome.CANCELLED, Outcome.EXPIRED):
        walk.check(outcome, by)
        reason = outcomes.said(walk.name, outcome)
        walk.shows(reason)
        assert walk.order.read()["status"] == "open"
        by = "identity_continue" if reason == outcomes.OPEN else "retry"
    walk.check(Outcome.VERIFIED, by)
    walk.shows_notice()


def test_a_waiting_page_shows_a_later_decision(walk: Walk) -> None:
    walk.begin()
    walk.check(Outcome.LATER)
    walk.shows("identity_deciding")
    walk.decide()
    walk.shows_notice()


def test_a_buyer_who_never_came_back_begins_again_in_another_browser(walk: Walk) -> None:
    walk.begin()
    walk.leave()
    walk.page.context.close()
    walk.enter()
    walk.shows("identity_intro")  # no browser is given the address of another one's check
    walk.check(Outcome.VERIFIED)
    walk.shows_notice()


def test_a_check_has_no_effect_once_the_link_has_expired(walk: Walk) -> None:
    walk.begin(expires_in_seconds=600)
    window = walk.leave()
    advance(walk.order.client, seconds=601)
    walk.find(window, Outcome.VERIFIED)
    if walk.way.is_apart:
        walk.page.reload()
    walk.shows("expired_intro", title="expired_title")
    found = walk.order.read()
    assert (found["status"], found["cleared"], found["cbid"]) == ("expired", None, None)


def test_two_tabs_share_one_check(walk: Walk) -> None:
    walk.begin()
    first, second = walk.page, walk.page.context.new_page()
    second.goto(walk.here)
    walk.leave()
    walk.page = second
    walk.check(Outcome.VERIFIED)
    walk.shows_notice()
    walk.page = first
    # A tab that waits loads itself again, and two loads at once would interrupt each other.
    if not walk.way.is_apart:
        first.goto(walk.here)
    walk.shows_notice()
    assert walk.checks == (1 if walk.provider else 0)


@pytest.mark.parametrize("walk", [n for n, way in WAYS.items() if way.opens_once], indirect=True)
def test_a_finished_buyer_is_not_sent_to_an_ended_page(walk: Walk) -> None:
    """Where the provider does not lead back, going on shows the decision."""
    walk.begin()
    walk.find(walk.leave(), Outcome.NEVER)
    walk.page.goto(walk.here)
    walk.shows("identity_waiting")
    walk.press("identity_continue")
    walk.shows_notice()


def go_through(walk: Walk, manner: Manner) -> None:
    """Begun, at the provider, refused, not finished, being decided, passed: by this manner."""
    walk.begin(manner)
    walk.shows("identity_how" if walk.provider else "identity_pretend")
    walk.check(Outcome.UNDERAGE)
    walk.shows("reason_age_below_minimum")
    window = walk.leave("retry")
    if walk.provider and not walk.way.is_apart:
        walk.page.goto(walk.here)
        walk.shows("identity_waiting")
        window = walk.leave("identity_continue")
    walk.find(window, Outcome.LATER)
    walk.come_back()
    walk.shows("identity_deciding")
    walk.press("identity_look")
    walk.shows_notice()


@pytest.mark.parametrize("walk", ["stripe", "veriff", "plaid", SANDBOX], indirect=True)
@pytest.mark.parametrize("manner", MANNERS.values(), ids=MANNERS)
def test_every_state_is_passed_in_each_manner(walk: Walk, manner: Manner) -> None:
    """The whole way works by each manner, at one provider of each kind that our page knows."""
    go_through(walk, manner)


@pytest.mark.parametrize("walk", ["veriff", "plaid", SANDBOX], indirect=True)
def test_every_state_of_differing_pages_is_accessible(walk: Walk) -> None:
    """Only pages that differ from those for Stripe, whose states are in `test_identity_page`."""
    go_through(walk, ACCESSIBLE)
