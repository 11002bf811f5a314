"""A buyer is not asked for another identity check that cannot help."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from countersign.core.buyers.admin import revoke
from countersign.hosted.toolkit.screens import WORDS
from countersign_simulators.registry import SIMULATORS
from tests.checkout.buyer import Shop
from tests.checkout.provider import Counter, arrive, begin, counter, finish
from tests.checkout.surfer import Page, Surfer
from tests.http.backstage import Operator
from tests.support.acts import done

pytestmark = pytest.mark.one_engine


@pytest.fixture
def desk(shop: Shop, operator: Operator) -> Iterator[Counter]:
    with counter(shop, operator) as made:
        yield made


def check(surfer: Surfer, outcome: str, page: Page | None = None, who: str = "same") -> Page:
    """A whole check, by default of the person who was checked before."""
    return arrive(surfer, finish(begin(surfer, page), outcome, who=who))


def cbid_of(desk: Counter, surfer: Surfer) -> str:
    return str(desk.shop.read(surfer.buyer)["cbid"])


def ends(words: str) -> str:
    return words.rpartition("{vendor}")[2]


def forms(page: Page) -> list[str]:
    return [form.action.rpartition("/")[2] for form in page.forms]


@pytest.mark.parametrize("name", SIMULATORS)
def test_one_person_has_one_identifier_by_link(shop: Shop, operator: Operator, name: str) -> None:
    """The same document at the same provider, in another session; another person has another."""
    with counter(shop, operator, name) as desk:
        found = []
        for who in ("another", "same", "another"):
            surfer = desk.buyer()
            assert check(surfer, "verified", who=who).heading == WORDS["en"]["title"]
            found.append(cbid_of(desk, surfer))
        assert found[0] == found[1] != found[2]


@pytest.mark.parametrize("locale", ["en", "es"])
def test_a_revoked_buyer_is_sent_to_the_vendor_and_not_to_another_check(
    desk: Counter, operator: Operator, locale: str
) -> None:
    """The session and one event have the reason, and no further check can be started."""
    words = WORDS[locale]
    first = desk.buyer()
    check(first, "verified", who="another")
    operator.act(lambda opened: done(revoke, opened.buyers, cbid_of(desk, first), "stolen licence"))
    surfer = desk.buyer(locale=locale)
    leaving = surfer.send(surfer.open().form)
    [url] = [link for link in leaving.links.values() if link.startswith(desk.provider.url)]
    again = arrive(surfer, finish(url, "verified", who="same"))
    assert words["reason_revoked"] in again.text
    assert ends(words["identity_barred"]) in again.text
    assert forms(again) == []
    found = desk.shop.read(surfer.buyer)
    assert (found["status"], found["cbid"], found["reasons"]) == ("open", None, ["revoked"])
    [event] = desk.shop.events_of(surfer.buyer)
    assert (event["type"], event["data"]["reasons"]) == ("checkout_session.blocked", ["revoked"])
    asked = len(desk.provider.served.requests)
    csrf = surfer.follow(again, words["decline"]).form.fields["csrf"]
    response = surfer.client.post(
        f"{surfer.root}/start", data={"csrf": csrf, "provider": "stripe", "again": "9"}
    )
    assert ends(words["identity_barred"]) in response.text
    assert len(desk.provider.served.requests) == asked


def test_the_same_document_of_somebody_too_young_is_enough_twice(desk: Counter) -> None:
    """Another document in between changes nothing; the first time may have been a mistake."""
    surfer = desk.buyer()
    page = check(surfer, "underage", who="another")
    assert "start" in forms(page)
    page = check(surfer, "underage", page)
    assert ends(WORDS["en"]["reason_age_below_minimum"]) in page.text
    assert ends(WORDS["en"]["identity_barred"]) in page.text
    assert forms(page) == []
    assert desk.shop.read(surfer.buyer)["reasons"] == ["age_below_minimum"]
    [event] = desk.shop.events_of(surfer.buyer)
    assert event["data"]["reasons"] == ["age_below_minimum"]


def test_another_document_may_be_of_somebody_else(desk: Counter) -> None:
    """A child who showed the parent's card, say."""
    surfer = desk.buyer()
    page = check(surfer, "underage", who="another")
    page = check(surfer, "underage", page, who="another")
    assert check(surfer, "verified", page, who="another").heading == WORDS["en"]["title"]


def test_a_returning_person_is_recognised(desk: Counter) -> None:
    """A person who failed, and is verified later with the same document, is one buyer."""
    surfer = desk.buyer()
    page = check(surfer, "wrong_zip", who="another")
    assert check(surfer, "verified", page).heading == WORDS["en"]["title"]
    other = desk.buyer()
    check(other, "verified")
    assert cbid_of(desk, other) == cbid_of(desk, surfer)
