"""A Veriff session of somebody else is not mine: only Veriff knows whom it is about."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from countersign.hosted.toolkit.screens import WORDS
from countersign_simulators.base import Reply, Request, hmac_hex
from countersign_simulators.veriff import SHARED_SECRET
from tests.checkout.buyer import Shop
from tests.checkout.provider import Counter, begin, come_back, counter, finish, send
from tests.checkout.surfer import Surfer
from tests.http.backstage import Operator

pytestmark = pytest.mark.one_engine

EN = WORDS["en"]


@pytest.fixture
def desk(shop: Shop, operator: Operator) -> Iterator[Counter]:
    with counter(shop, operator, "veriff") as made:
        yield made


def saying(reply: Reply, **members: Any) -> Reply:  # noqa: ANN401 - any JSON
    """The same with other members of its session, and signed by Veriff."""
    said = json.loads(reply.body)
    said["verification"] |= members
    body = json.dumps(said).encode()
    name = "x-hmac-signature"
    headers = [pair for pair in reply.headers if pair[0] != name]
    return replace(reply, body=body, headers=(*headers, (name, hmac_hex(SHARED_SECRET, body))))


def is_not_verified(desk: Counter, surfer: Surfer) -> None:
    """Neither on the page nor for the shop, and no buyer is written because of it."""
    assert surfer.open(surfer.root).heading == EN["identity_title"]
    found = desk.shop.read(surfer.buyer)
    assert (found["status"], found["cbid"]) == ("open", None)


@pytest.mark.parametrize("by_end_user", [False, True])
@pytest.mark.parametrize("names_theirs", [False, True])
def test_a_session_for_another_reference_verifies_no_one(
    desk: Counter, names_theirs: bool, by_end_user: bool
) -> None:
    """Or for none; Veriff's statement about it is signed, and final."""
    mine, theirs = desk.buyer(), desk.buyer()
    location = finish(begin(mine), "verified")
    named = theirs.buyer.id if names_theirs else None
    members = {"vendorData": None if by_end_user else named}
    members["endUserId"] = named if by_end_user else None
    with desk.provider.mood(lambda _, reply: saying(reply, **members)):
        assert come_back(mine, location).heading == EN["identity_title"]
        assert send(mine, mine.open(mine.root), "check").status == 200
    assert desk.shop.read(mine.buyer)["reasons"] == ["session_not_bound"]
    is_not_verified(desk, mine)
    # It has no effect: Veriff's statement about the real session counts.
    assert come_back(mine, location).heading == EN["title"]


def test_the_decision_about_another_session_is_not_used_for_mine(desk: Counter) -> None:
    """Correctly signed by Veriff, and returned in place of the requested one."""
    mine, theirs = desk.buyer(), desk.buyer()
    location, other = (finish(begin(surfer), "verified") for surfer in (mine, theirs))
    replies = list[Reply]()

    def kept(_: Request, reply: Reply) -> Reply:
        replies.append(reply)
        return reply

    with desk.provider.mood(kept):
        assert come_back(theirs, other).heading == EN["title"]
    with desk.provider.mood(lambda *_: replies[0]):
        assert come_back(mine, location).heading == EN["identity_title"]
        assert send(mine, mine.open(mine.root), "check").having(role="alert")
    is_not_verified(desk, mine)


@pytest.mark.parametrize("names_mine", [False, True])
def test_a_session_created_for_somebody_else_is_not_used_as_mine(
    desk: Counter, names_mine: bool
) -> None:
    """Whether Veriff names the other reference, or gives one session to both."""
    theirs, mine = desk.buyer(), desk.buyer()
    made = list[Reply]()

    def kept(_: Request, reply: Reply) -> Reply:
        made.append(reply)
        return reply

    with desk.provider.mood(kept):
        begin(theirs)
    page = mine.open()
    changes = {"vendorData": mine.buyer.id} if names_mine else {}
    with desk.provider.mood(lambda *_: saying(made[0], **changes)):
        assert send(mine, page, "start").having(role="alert")
    is_not_verified(desk, mine)
    query = "SELECT reference FROM started_checks WHERE account_id = :id"
    rows = desk.operator.rows(query, id=desk.shop.vendor.account_id)
    assert [row["reference"] for row in rows] == [theirs.buyer.id]
