"""The provider's own test mode: sessions of test keys, apart from every live one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from countersign.base.errors import (
    InvalidArgument,
    NotFound,
    ProviderSessionNotFound,
    WebhookRefused,
)
from countersign.base.values import BUYER, SANDBOX_BUYER, Mode, Reason, from_ns, is_id
from countersign.core.access.key import VENDOR_SCOPES, Principal
from countersign.core.access.reach import AccountReach
from countersign.core.buyers import poll_sessions, routes, settings
from countersign.core.buyers.decision import decide
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.rules import VerificationRules
from countersign.core.buyers.schemas import BuyerVerificationRequest
from countersign.identity.model import Finding, ProviderResult
from tests.support.providers import Playing, playing
from tests.verification.conftest import each_engine
from tests.verification.inside import Stage
from tests.verification.starting import (
    ZIP,
    Starter,
    counted,
    credentials_of_test_mode,
    one_document,
    sandbox_starter,
    starter_of,
    walk,
)

pytestmark = pytest.mark.long

S = BuyerStatus


@pytest.fixture
def played(stage: Stage) -> Iterator[Playing]:
    """Serve a simulated Stripe, by the clock of the deployment."""
    with playing("stripe", clock=stage.clock.monotonic) as running:
        yield running


def principal(vendor: Starter) -> Principal:
    """The account with a key of the mode."""
    return Principal(
        key_id="key",
        account_id=vendor.who.account_id,
        mode=vendor.who.mode,
        scopes=VENDOR_SCOPES,
        credential="secret_key",
    )


@each_engine
def test_test_keys_get_a_sandbox_buyer_from_the_providers_test_mode(
    stage: Stage, played: Playing
) -> None:
    """Simulated, in the test log, with its evidence; and its account's status is verified."""
    vendor = sandbox_starter(stage, played)
    assert vendor.names() == ("stripe",)
    made, check = vendor.verified()
    assert check.status is S.VERIFIED
    cbid = check.cbid or ""
    assert is_id(SANDBOX_BUYER, cbid)
    [buyer] = stage.rows("SELECT mode, simulated FROM buyers WHERE cbid = :cbid", cbid=cbid)
    assert (buyer["mode"], bool(buyer["simulated"])) == ("test", True)
    [record] = stage.rows("SELECT mode, body FROM records WHERE id = :id", id=check.verification)
    assert record["mode"] == "test"
    body = json.loads(bytes(record["body"]))
    assert (body["simulated"], body["provider"]) == (True, "stripe")
    for table in ("provider_sessions", "buyer_documents", "events", "verification_evidence"):
        assert {row["mode"] for row in stage.rows(f"SELECT mode FROM {table}")} == {"test"}, table  # noqa: S608 - our own names
    view = stage.do(routes.buyer_status(stage.opened.buyers, principal(vendor), cbid))
    assert view.status is S.VERIFIED
    assert vendor.judge(cbid, ZIP).status is S.VERIFIED
    assert vendor.judge(cbid, "90210").reasons == (Reason.ZIP_MISMATCH,)
    assert vendor.found(made) == (check, 1)


@each_engine
def test_two_sandboxes_with_one_document_never_meet(stage: Stage, played: Playing) -> None:
    """While the same document leads every live account to one buyer."""
    one, two = sandbox_starter(stage, played), sandbox_starter(stage, played)
    live = [starter_of(stage.insider(played)) for _ in range(2)]
    with played.mood(one_document):
        test_cbids = [vendor.verified()[1].cbid for vendor in (one, one, two)]
        live_cbids = {vendor.verified()[1].cbid for vendor in live}
    assert test_cbids[0] == test_cbids[1], "one sandbox knows its buyer again"
    assert test_cbids[2] != test_cbids[0]
    assert len(live_cbids) == 1
    assert {is_id(BUYER, cbid or "") for cbid in live_cbids} == {True}
    first = test_cbids[0] or ""
    elsewhere = two.judge(first, ZIP)
    assert (elsewhere.status, elsewhere.reasons) == (
        S.REQUIRES_INPUT,
        (Reason.SIMULATED_ELSEWHERE,),
    )


def test_a_test_session_never_verifies_a_live_buyer(stage: Stage, played: Playing) -> None:
    """Not by a live key, nor by the identifier in the other mode."""
    insider = stage.insider(played)
    live = starter_of(insider)
    test = Starter(stage, replace(live.who, mode=Mode.TEST))
    test.add(played, credentials_of_test_mode(played))
    made, check = test.verified()
    session = replace(
        insider.part("verified"),
        session_id=made.provider_session,
        shipping_zip=ZIP,
        subject_reference=None,
    )
    with pytest.raises(ProviderSessionNotFound):
        insider.verify(session)
    with pytest.raises(ProviderSessionNotFound):
        live.ask(made, test.references[made.provider_session])
    known = live.judge(check.cbid or "", ZIP)
    assert (known.status, known.cbid) == (S.REQUIRES_INPUT, None)
    assert {row["mode"] for row in stage.rows("SELECT mode FROM buyers")} == {"test"}


def test_a_live_session_never_becomes_a_test_one(stage: Stage, played: Playing) -> None:
    """The account's sandbox does not see it."""
    insider = stage.insider(played)
    live = starter_of(insider)
    test = Starter(stage, replace(live.who, mode=Mode.TEST))
    test.add(played, credentials_of_test_mode(played))
    made, check = live.verified()
    with pytest.raises(ProviderSessionNotFound):
        test.ask(made, live.references[made.provider_session])
    assert test.judge(check.cbid or "", ZIP).cbid is None


@pytest.mark.parametrize(
    ("wanted", "said", "verified"),
    [
        (True, True, True),
        (True, False, False),
        (True, None, False),
        (False, False, True),
        (False, True, False),
        (False, None, False),
    ],
)
def test_a_session_must_have_the_mode_of_the_key(
    wanted: bool,
    said: bool | None,
    verified: bool,
) -> None:
    """A missing mode counts as the other mode."""
    result = ProviderResult(
        provider="stripe", session_id="vs_1", outcome=Finding.VERIFIED, live=said
    )
    decision = decide(
        result,
        VerificationRules(),
        shipping_zip=ZIP,
        subject_reference=None,
        now=from_ns(10**18),
        live=wanted,
    )
    assert (Reason.TEST_SESSION in decision.reasons) is not verified


def test_credentials_must_be_of_the_mode(stage: Stage, played: Playing) -> None:
    """Without a simulator's URL: there is one set of simulated credentials for both."""
    insider = stage.insider(played)
    room, account_id = stage.opened.buyers, insider.account_id
    for mode, credentials in (
        (Mode.TEST, played.simulator.credentials),
        (Mode.LIVE, credentials_of_test_mode(played)),
    ):
        held = json.dumps(credentials).encode()
        with pytest.raises(InvalidArgument):
            stage.do(settings.add(room, account_id, mode, "stripe", held, None))
    assert starter_of(insider, Mode.TEST).names() == ()


def test_one_webhook_address_serves_both_modes(stage: Stage, played: Playing) -> None:
    """Each integration tries its own secrets; a message with an unknown secret is refused."""
    insider = stage.insider(played)
    live = starter_of(insider)
    test = Starter(stage, replace(live.who, mode=Mode.TEST))
    own = {**credentials_of_test_mode(played), "webhook_secrets": ["whsec_of_the_test_mode"]}
    test.add(played, own)
    made = [live.start(), test.start()]
    for one in made:
        walk(one, "never")
    room = stage.opened.buyers
    found = stage.do(poll_sessions.webhook_integrations(room, "stripe", insider.account_id))
    assert [one.mode for one in found] == [Mode.LIVE, Mode.TEST]
    insider.hint_of(made[0].provider_session)
    due = "SELECT mode FROM pending_sessions WHERE next_poll_at <= :now"
    now = round(stage.clock.now.timestamp() * 1000)
    assert [row["mode"] for row in stage.rows(due, now=now)] == ["live"]
    forged = {"stripe-signature": "t=1,v1=00"}
    with pytest.raises(WebhookRefused):
        stage.do(poll_sessions.take_webhook(room, found, forged, b"{}"))
    with pytest.raises(NotFound):
        stage.do(poll_sessions.webhook_integrations(room, "veriff", insider.account_id))


def test_a_message_of_the_test_mode_hurries_a_session_of_test_keys(
    stage: Stage, played: Playing
) -> None:
    """Also where the live integration has other secrets, and refuses it."""
    insider = stage.insider(played)
    insider.configure({**played.simulator.credentials, "webhook_secrets": ["whsec_of_live_mode"]})
    test = Starter(stage, AccountReach(insider.account_id, Mode.TEST))
    test.add(played, credentials_of_test_mode(played))
    made = test.start()
    walk(made, "never")
    insider.hint_of(made.provider_session)
    assert stage.wait(timedelta(0)) == 1
    check, _ = test.found(made)
    assert check is not None
    assert check.status is S.VERIFIED


def test_verify_with_test_keys_stays_simulated(stage: Stage, played: Playing) -> None:
    """Deterministic, and without a question to anybody."""
    vendor = sandbox_starter(stage, played)
    made, _ = vendor.verified()
    asked = len(played.served.requests)
    request = BuyerVerificationRequest(
        provider_identity_session_id="test_underage", shipping_zip=ZIP, test_mode=True
    )
    room = stage.opened.buyers
    result = stage.do(routes.verify(room, principal(vendor), request))
    assert result.view.reasons == (Reason.AGE_BELOW_MINIMUM,)
    again = BuyerVerificationRequest(
        provider_identity_session_id=made.provider_session, shipping_zip=ZIP, test_mode=True
    )
    assert stage.do(routes.verify(room, principal(vendor), again)).view.status is S.VERIFIED
    assert len(played.served.requests) == asked


def test_a_sandbox_goes_by_its_own_clock(stage: Stage, played: Playing) -> None:
    """Verified for a year from the clock's time; the record has both times."""
    vendor = sandbox_starter(stage, played)
    ahead = timedelta(days=400)
    stage.execute(
        "INSERT INTO test_clocks (account_id, ahead_ms, changed_at) VALUES (:a, :ms, 0)",
        a=vendor.who.account_id,
        ms=ahead // timedelta(milliseconds=1),
    )
    stage.do(stage.opened.access.test_clocks.renew())
    _, check = vendor.verified()
    assert check.status is S.VERIFIED
    [record] = stage.rows("SELECT body FROM records WHERE id = :id", id=check.verification)
    assert "test_clock" in json.loads(bytes(record["body"]))
    assert vendor.judge(check.cbid or "", ZIP).status is S.VERIFIED


def test_nothing_is_written_in_a_sandbox_before_something_is_submitted(
    stage: Stage, played: Playing
) -> None:
    """As with live buyers."""
    vendor = sandbox_starter(stage, played)
    made = vendor.start()
    assert vendor.ask(made).cbid is None
    assert counted(stage, "buyers", "verifications", "events", "records") == [0, 0, 0, 0]
