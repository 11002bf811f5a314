"""Starting a session: the request to each provider, and the members of its response that count."""

from __future__ import annotations

import hmac
from hashlib import sha256

import pytest

from countersign.base.errors import VerificationMisconfigured
from countersign.identity.model import StartedSession
from tests.identity.starts import CASES, HIDDEN, Case, asked, start, without

pytestmark = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def test_a_session_is_requested_as_the_provider_describes_it(case: Case) -> None:
    """With our reference as its subject, the return address, the language and the template."""
    session, requests = start(case)
    assert [asked(request) for request in requests] == list(case.asked)
    assert {name: requests[0].headers.get(name) for name in case.sent} == case.sent
    assert isinstance(session, StartedSession)
    assert (session.session_id, session.url) == (case.session_id, case.url)
    assert HIDDEN not in repr(session)
    if case.name == "veriff":
        secret = case.credentials["shared_secrets"][0].encode()
        signature = hmac.new(secret, requests[0].body, sha256).hexdigest()
        assert requests[0].headers["x-hmac-signature"] == signature


def test_credentials_without_a_template_cannot_start_a_session(case: Case) -> None:
    """The operator learns which member is missing, before anything is sent."""
    if case.template is None:
        assert case.name in {"stripe", "veriff"}
        return
    error, requests = start(without(case, case.template))
    assert isinstance(error, VerificationMisconfigured)
    assert f"`{case.template}`" in error.message
    assert requests == []
