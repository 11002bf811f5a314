"""An expired or revoked buyer acknowledges nothing, and an unverified one has no name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from countersign.base.errors import CheckoutSessionClosed
from countersign.core.buyers.model import BuyerStatus
from countersign.core.checkout import sessions, store
from countersign.core.checkout.model import Collected, Session, Status
from tests.checkout.checks import Checks, checks_at, publish
from tests.verification.conftest import each_engine, stage
from tests.verification.inside import Stage

__all__ = ["stage"]

pytestmark = each_engine
BOTH = (Collected.IDENTITY, Collected.ACKNOWLEDGMENT)


@pytest.fixture
def checks(stage: Stage) -> Iterator[Checks]:
    """Give an account whose buyers are checked, and that has a notice."""
    publish(stage)
    with ExitStack() as stack:
        yield checks_at(stage, stack)


def verified(checks: Checks) -> Session:
    session = checks.begin(checks.create(*BOTH))
    checks.submit(session, "verified")
    session = checks.follow(session)
    assert session.step is Collected.ACKNOWLEDGMENT
    return session


def refused(checks: Checks, session: Session) -> Session:
    with pytest.raises(CheckoutSessionClosed):
        checks.acknowledge(session)
    session = checks.read(session.id)
    assert (session.status, session.step) == (Status.OPEN, Collected.IDENTITY)
    assert (session.ack_id, session.cbid) == (None, None)
    return session


def test_a_buyer_revoked_after_the_identity_step_cannot_acknowledge(
    checks: Checks,
) -> None:
    session = verified(checks)
    cbid = session.cbid or ""
    checks.stage.revoke(cbid)
    known = refused(checks, session).asked.identity
    assert known is not None
    assert (known.status, known.cbid) == (BuyerStatus.REVOKED, cbid)
    assert checks.events(session.id) == ["checkout_session.blocked"]
    assert checks.stage.rows("SELECT * FROM records WHERE type = 'acknowledgment'") == []


def test_rules_that_became_stricter_after_the_identity_step_are_applied_to_the_initials(
    checks: Checks,
) -> None:
    session = verified(checks)
    checks.insider.configure(minimum_age=99)
    session = refused(checks, session)
    assert session.asked.reasons
    again = checks.begin(session)
    assert again.asked.attempts == 2


def test_a_session_hides_an_unverified_buyer_and_is_erased_with_the_buyer(
    checks: Checks,
) -> None:
    session = checks.begin(checks.create(*BOTH))
    checks.submit(session, "underage")
    session = checks.follow(session)
    assert session.subject is not None
    assert sessions.view(checks.room, session, session.created_at).cbid is None
    assert store.cbid_index(checks.room, session) is not None
