"""Every outcome at every provider, as a buyer without JavaScript meets it on the page."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import pytest

from countersign.hosted.toolkit.screens import WORDS
from countersign_simulators.hosted import Outcome
from countersign_simulators.registry import SIMULATORS
from tests.checkout.buyer import Shop
from tests.checkout.outcomes import OPEN, OTHERWISE, REFUSED, said
from tests.checkout.provider import Counter, arrive, begin, check, choose, counter, go_on
from tests.checkout.surfer import Surfer
from tests.http.backstage import Operator
from tests.support.service import Server

pytestmark = [pytest.mark.long, pytest.mark.one_engine]
EN = WORDS["en"]
_MAKE_DUE = "UPDATE pending_sessions SET next_poll_at = 0 WHERE account_id = :account"


@pytest.fixture(scope="module")
def desks(server: Server, operator: Operator) -> Iterator[Mapping[str, Counter]]:
    """Give a shop for each provider, whose messages arrive."""
    with ExitStack() as opened:

        def desk(name: str) -> Counter:
            shop = Shop(opened.enter_context(operator.vendor(server)), server, opened)
            return opened.enter_context(counter(shop, operator, name, hears=True))

        yield {name: desk(name) for name in sorted(SIMULATORS)}


@pytest.fixture(
    params=[
        # One provider is enough to test differences between engines.
        pytest.param(name, marks=() if name == "stripe" else pytest.mark.one_engine)
        for name in sorted(SIMULATORS)
    ]
)
def desk(request: pytest.FixtureRequest, desks: Mapping[str, Counter]) -> Counter:
    """Give each of them."""
    return desks[request.param]


def named(desk: Counter, text: str) -> str:
    """A text of the page with the provider's name, from after the vendor's name on."""
    said = EN[text].rpartition("{vendor}")[2]
    return said.replace("{provider}", desk.provider.name.capitalize())


def reach(desk: Counter, outcome: str) -> Surfer:
    """A buyer with this outcome, whose page is as the provider left it."""
    surfer = desk.buyer(collect=["identity"], notice_id=None)
    arrive(surfer, choose(begin(surfer), outcome))
    return surfer


def test_a_verified_buyer_acknowledges_and_the_order_is_cleared(desk: Counter) -> None:
    """The record says how the buyer is known; the vendor reads one ended session."""
    surfer = desk.buyer()
    notice = check(surfer, "verified")
    assert notice.heading == EN["title"]
    surfer.agree(surfer.initial(notice))
    found = desk.shop.read(surfer.buyer)
    assert (found["status"], found["cleared"]) == ("completed", True)
    assert found["cbid"].startswith("cbid_test_")
    record = desk.shop.client.get(f"/v1/acknowledgments/{found['ack_id']}").json()
    assert record["process"]["binding"] == "identity_session"
    assert record["process"]["verification"].startswith("ver_")
    assert desk.shop.events(surfer.buyer) == ["checkout_session.completed"]


@pytest.mark.parametrize(
    ("desk", "outcome"),
    [
        # The first stage has all outcomes at one provider, and at others those that differ.
        pytest.param(
            name,
            outcome,
            marks=()
            if name == "stripe" or outcome is Outcome.UNDERAGE or (name, outcome) in OTHERWISE
            else pytest.mark.later,
        )
        for name in sorted(SIMULATORS)
        for outcome in REFUSED
    ],
    indirect=["desk"],
)
def test_a_buyer_reads_why_a_check_failed_and_tries_again(desk: Counter, outcome: Outcome) -> None:
    """In the buyer's words, also after a reload; the vendor sees an open session until then."""
    surfer = desk.buyer(collect=["identity"], notice_id=None)
    text = said(desk.provider.name, outcome)
    first = begin(surfer)
    failed = arrive(surfer, choose(first, outcome))
    for page in (failed, surfer.open(str(failed.response.url))):
        assert (page.status, page.heading) == (200, EN["identity_title"])
        assert len(page.having(role="alert")) == 1
        assert named(desk, text) in page.text
        others = {name for name in EN if name.startswith("reason_")} - {text}
        assert not [name for name in others if named(desk, name) in page.text]
    found = desk.shop.read(surfer.buyer)
    assert (found["status"], found["cleared"]) == ("open", None)
    if text == OPEN:
        going_on = go_on(surfer, failed)
        assert surfer.open(surfer.root).text.count(named(desk, "identity_waiting")) == 1
        failed = arrive(surfer, choose(going_on, "underage"))
    done = check(surfer, "verified", failed)
    assert done.heading == EN["done_title"]
    assert desk.shop.read(surfer.buyer)["status"] == "completed"
    assert desk.shop.events(surfer.buyer) == ["checkout_session.completed"]


def test_a_later_decision_ends_a_session_without_a_viewer(
    desks: Mapping[str, Counter], operator: Operator
) -> None:
    """By a provider's message, or if that is lost, by polling."""
    buyers = []
    for desk in desks.values():
        buyers.append((desk, reach(desk, "later")))
        desk.provider.simulator.is_silent = True
        lost = reach(desk, "later")
        desk.provider.simulator.is_silent = False
        assert EN["identity_deciding"] in lost.open(lost.root).text
        buyers.append((desk, lost))
        operator.execute(_MAKE_DUE, account=desk.shop.vendor.account_id)
    end = time.monotonic() + 30
    while [one for desk, one in buyers if desk.status(one) == "open"]:
        assert time.monotonic() < end, "they were not decided in time"
        time.sleep(0.1)
    for desk, surfer in buyers:
        found = desk.shop.read(surfer.buyer)
        assert (found["status"], found["reasons"]) == ("completed", [])
        assert desk.shop.events(surfer.buyer) == ["checkout_session.completed"]
        assert surfer.open(surfer.root).heading == EN["done_title"]
