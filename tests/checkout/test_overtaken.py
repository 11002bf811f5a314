"""If a session has changed, or was erased, since it was read, the act is not done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import pytest

from countersign.base.errors import CheckoutSessionClosed
from countersign.core.access.account import register
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.checkout import store
from countersign.core.checkout.model import seen_by
from countersign.core.checkout.order import Reading
from countersign.core.privacy.erase import erase_planned, plan_erasure
from countersign.core.privacy.model import ErasureReason
from countersign.hosted.pages import buyer
from countersign.hosted.toolkit.screens import WORDS
from countersign.operate import bootstrap
from countersign_simulators.base import Reply, Request
from tests.checkout.buyer import SHOP, Shop
from tests.checkout.provider import Counter, address, finish
from tests.checkout.surfer import Form, Page, Surfer, held_back
from tests.clearances.desk import NO_ONE
from tests.http.backstage import Operator, Vendor
from tests.support.acts import done
from tests.support.providers import playing
from tests.support.service import Server
from tests.verification.live import live_vendor

pytestmark = pytest.mark.both_engines
EN = WORDS["en"]
_OF_THE_CHECK = (
    "SELECT reference AS id FROM started_checks WHERE reference = :id",
    "SELECT c.id FROM checkout_sessions c JOIN shred_keys k ON k.record_id = c.id WHERE c.id = :id",
)
_OF_ALL = "SELECT id FROM pending_sessions WHERE account_id = :account"


@pytest.fixture
def desk(operator: Operator, server: Server) -> Iterator[Counter]:
    """Give a shop with live keys, whose buyers go to a provider."""
    with ExitStack() as stack:
        provider = stack.enter_context(playing("stripe"))
        made = stack.enter_context(live_vendor(operator, server, provider))
        operator.act(lambda opened: done(register, opened.access, made.account_id, SHOP))
        vendor = Vendor(made.account_id, made.test, made.live)
        yield Counter(Shop(vendor, server, stack, "live"), operator, provider)


def _surfer(desk: Counter, **changes: object) -> Surfer:
    return desk.buyer(collect=["identity"], notice_id=None, **changes)


def _form(page: Page, what: str) -> Form:
    return next(form for form in page.forms if form.action.endswith(f"/{what}"))


def _known(desk: Counter) -> str:
    """A buyer of the shop."""
    session = desk.provider.part("verified")
    body = {
        "provider_identity_session_id": session.session_id,
        "shipping_zip": session.shipping_zip,
        "subject_reference": session.subject_reference,
    }
    wanted = {name: value for name, value in body.items() if value is not None}
    made = desk.shop.client.post("/v1/buyers/verify", json=wanted).raise_for_status()
    return str(made.json()["cbid"])


@contextmanager
def _erased_while_asked(desk: Counter, cbid: str) -> Iterator[list[Request]]:
    """Erase the buyer as soon as the provider responds; returns the requests to it."""
    asked: list[Request] = []

    async def erase(opened: bootstrap.Deployment) -> None:
        plan = await plan_erasure(opened.privacy, cbid, DEPLOYMENT, with_acknowledgments=True)
        await erase_planned(opened.privacy, plan, ErasureReason.REQUEST)

    def meanwhile(request: Request, reply: Reply) -> Reply:
        asked.append(request)
        if len(asked) == 1:
            desk.operator.act(erase)
        return reply

    with desk.provider.mood(meanwhile):
        yield asked


def _nothing_is_left(desk: Counter, surfer: Surfer) -> None:
    for query in _OF_THE_CHECK:
        assert desk.operator.rows(query, id=surfer.buyer.id) == [], query
    account = desk.shop.vendor.account_id
    assert desk.operator.rows(_OF_ALL, account=account) == []
    assert desk.operator.rows("SELECT * FROM buyers WHERE account_id = :id", id=account) == []
    found = desk.shop.read(surfer.buyer)
    assert (found["status"], found["cbid"], found["session_id"]) == ("expired", None, None)


def test_a_check_started_while_its_session_is_erased_is_refused(desk: Counter) -> None:
    """The provider's session belongs to no one here: it is not followed, and not shown."""
    cbid = _known(desk)
    surfer = _surfer(desk, cbid=cbid)
    form = _form(surfer.open(), "start")
    with _erased_while_asked(desk, cbid) as asked:
        assert surfer.send(form).status == 404
    assert [request.method for request in asked] == ["POST"]
    _nothing_is_left(desk, surfer)
    assert surfer.send(form).status == 404
    assert len(asked) == 1


def test_a_return_while_the_session_is_erased_brings_no_buyer_back(desk: Counter) -> None:
    """The provider says `verified`, but its buyer no longer exists."""
    cbid = _known(desk)
    surfer = _surfer(desk, cbid=cbid)
    location = finish(address(surfer.send(_form(surfer.open(), "start"))), "verified")
    with _erased_while_asked(desk, cbid) as asked:
        assert surfer.open(urlsplit(location or "").path).status == 404
    assert asked
    _nothing_is_left(desk, surfer)
    assert desk.shop.events(surfer.buyer) == []


def _made(desk: Counter) -> int:
    """The number of sessions that the provider was asked to create."""
    return sum(request.method == "POST" for request in desk.provider.served.requests)


def _verify(surfer: Surfer) -> None:
    """Go through the check in this browser."""
    location = finish(address(surfer.send(_form(surfer.open(), "start"))), "verified")
    surfer.open(urlsplit(location or "").path)


Change = Callable[[Counter, Surfer], object]
CHANGES: Mapping[str, tuple[Change, str]] = {
    "cancelled": (
        lambda desk, surfer: desk.shop.client.post(
            f"/v1/checkout_sessions/{surfer.buyer.id}/cancel", json={}
        ),
        "cancelled",
    ),
    "declined": (
        lambda _, surfer: surfer.send(_form(surfer.open(f"{surfer.root}/decline"), "decline")),
        "declined",
    ),
    "verified": (lambda _, surfer: _verify(surfer), "completed"),
}


@pytest.mark.parametrize("what", ["start", "check", "decline"])
@pytest.mark.parametrize("change", sorted(CHANGES))
def test_a_form_completed_after_the_session_ended_changes_nothing(
    desk: Counter, change: str, what: str
) -> None:
    """It was read while the session was open: starting, asking and declining are refused alike."""
    surfer = _surfer(desk)
    fields = _form(surfer.open(), "start").fields
    act, status = CHANGES[change]
    with held_back(surfer.client, f"{surfer.root}/{what}", fields) as end:
        act(desk, surfer)
        before, requests = desk.shop.read(surfer.buyer), len(desk.provider.served.requests)
        assert before["status"] == status
        received = end()
    assert " 303 " in received.splitlines()[0]
    assert f"location: {surfer.root}" in received.lower()
    assert desk.shop.read(surfer.buyer) == before
    assert len(desk.provider.served.requests) == requests
    assert desk.shop.events(surfer.buyer) == [f"checkout_session.{status}"]


def test_a_start_completed_after_another_tabs_continues_the_same_check(
    desk: Counter,
) -> None:
    """Links of this provider open once: it is asked again with the same key and attempt."""
    surfer = _surfer(desk)
    form = _form(surfer.open(), "start")
    with held_back(surfer.client, form.action, form.fields) as end:
        surfer.send(form)
        end()
    assert _made(desk) == 2
    account = desk.shop.vendor.account_id
    assert len(desk.operator.rows(_OF_ALL, account=account)) == 1


def test_a_review_is_not_noted_for_another_tabs_initials(shop: Shop, operator: Operator) -> None:
    """Otherwise a person who agreed to the first initials would have sent the others."""
    with Surfer(shop.server, shop.buyer()) as surfer:
        assert surfer.initial(surfer.open()).heading == EN["review_title"]

    async def overtake(opened: bootstrap.Deployment) -> object:
        room = opened.checkout
        before = await store.find_by_id(room, surfer.buyer.id)
        assert before is not None
        assert before.asked.reading is not None
        before = seen_by(before, before.asked.reading.browser or "")
        assert before.asked.reading is not None
        first, digest = before.asked.reading.initials or (), before.asked.reading.notice_digest
        after = await buyer.initial(room, before, digest, ["XY"] * len(first), NO_ONE.client)
        with pytest.raises(CheckoutSessionClosed):
            await buyer.review(room, before, "es")
        return (await store.find_by_id(room, after.id) or before).asked.reading

    reading = operator.act(overtake)
    assert isinstance(reading, Reading)
    assert (set(reading.initials or ()), reading.reviewed_at) == ({"XY"}, None)
