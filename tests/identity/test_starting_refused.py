"""Failed starts: a refusal, a failure, and every response that could be forged."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

import pytest
from structlog.testing import capture_logs

from countersign.base.errors import InvalidArgument, ProviderUnavailable, VerificationMisconfigured
from countersign.identity.model import StartedSession
from countersign.identity.registry import IdentityProviders, provider_names
from countersign.identity.starting import is_page
from countersign_simulators.base import Reply
from tests.identity.asking import FixedClock, keyed, places, put
from tests.identity.starts import (
    CASES,
    HIDDEN,
    REFERENCE,
    Case,
    receiving,
    replied,
    start,
    with_last,
)
from tests.support.every import every

STRIPE: Final = CASES["stripe"]
ERRORS: Final[dict[str, dict[int, dict[str, Any]]]] = {
    "stripe": {
        status: {"error": {"type": kind, "message": f"No, {HIDDEN}", "param": "return_url"}}
        for status, kind in [
            (400, "invalid_request_error"),
            (401, "invalid_request_error"),
            (403, "invalid_request_error"),
            (429, "invalid_request_error"),
            (500, "api_error"),
        ]
    }
    | {404: {"error": {"code": "resource_missing", "message": f"No such flow: {HIDDEN}"}}},
    "persona": {
        status: {"errors": [{"title": title, "details": HIDDEN}]}
        for status, title in [
            (400, "Bad Request"),
            (401, "Token is invalid"),
            (403, "Forbidden"),
            (404, "Record not found"),
            (422, "Unprocessable entity"),
            (429, "Rate limit exceeded"),
            (503, "Service unavailable"),
        ]
    },
    "veriff": {
        status: {"status": "fail", "code": code, "message": f"No, {HIDDEN}"}
        for status, code in [(400, "1104"), (401, "1001"), (403, "1804"), (429, "1005"), (500, "1")]
    },
    "plaid": {
        400: {"error_type": "INVALID_INPUT", "error_code": "INVALID_API_KEYS"},
        404: {"error_type": "INVALID_REQUEST", "error_code": "NOT_FOUND"},
        429: {"error_type": "RATE_LIMIT_EXCEEDED", "error_code": "RATE_LIMIT"},
        500: {"error_type": "API_ERROR", "error_code": "INTERNAL_SERVER_ERROR"},
    },
    "didit": {
        400: {"workflow_id": [f"Must be a valid UUID: {HIDDEN}"]},
        401: {"detail": "Authentication credentials were not provided."},
        403: {"detail": f"You do not have enough credits, {HIDDEN}."},
        429: {"detail": "Request was throttled."},
        500: {"detail": "Internal"},
    },
    "onfido": {
        status: {"error": {"type": kind, "message": f"No, {HIDDEN}", "fields": {}}}
        for status, kind in [
            (401, "authorization_error"),
            (403, "forbidden"),
            (404, "resource_not_found"),
            (422, "validation_error"),
            (429, "rate_limit"),
            (500, "internal_server_error"),
        ]
    },
}
REFUSED: Final = [
    (case, status, body) for case in CASES.values() for status, body in ERRORS[case.name].items()
]
FOR_NOW: Final = frozenset({429, 500, 503})


@every(("case", "status", "body"), REFUSED)
def test_a_providers_error_is_for_now_or_for_the_operator(
    case: Case, status: int, body: dict[str, Any]
) -> None:
    """A vendor can retry the one; the other has one line in the log, without its text."""
    # A long wait is not waited for here.
    headers = (("Content-Type", "application/json"), ("Retry-After", "60"), *case.headers)
    error_reply = Reply(status=status, body=json.dumps(body).encode(), headers=headers)
    with capture_logs() as lines:
        error, requests = start(case, [error_reply])
    assert len(requests) == 1
    (line,) = [line for line in lines if line["event"] == "provider_session_not_started"]
    assert line["provider"] == case.name
    assert HIDDEN not in repr(lines)
    if status in FOR_NOW:
        assert isinstance(error, ProviderUnavailable)
        assert error.retry_after == 60
    else:
        assert isinstance(error, VerificationMisconfigured)
        assert line["log_level"] == "error"
        assert HIDDEN not in error.message


@every("case", CASES.values())
@every("content", [b"", b"<html>Gateway</html>", b"[]", b"{}", b'{"a":1,"a":2}'])
def test_an_invalid_session_response_starts_no_check(case: Case, content: bytes) -> None:
    """Whether a gateway wrote it, or the provider: a buyer goes nowhere, and can try again."""
    error, _ = start(case, with_last(case, content))
    assert isinstance(error, ProviderUnavailable)


@every("case", CASES.values())
@every("other", ["chk_another", "", None, 7, [REFERENCE], ...])
def test_a_session_with_another_subject_is_not_used(case: Case, other: object) -> None:
    """Else the decision about one buyer could be counted for another."""
    body = put(case.replies[-1][1], tuple(case.own.split(".")), other)
    error, _ = start(case, with_last(case, body))
    assert isinstance(error, ProviderUnavailable)


def test_a_session_of_the_other_mode_is_not_used() -> None:
    """A test session never verifies a live buyer, so no buyer should go through one."""
    error, _ = start(STRIPE, with_last(STRIPE, STRIPE.replies[0][1] | {"livemode": False}))
    assert isinstance(error, ProviderUnavailable)
    session, _ = start(
        STRIPE,
        with_last(STRIPE, STRIPE.replies[0][1] | {"livemode": False}),
        api_key="rk_test_a_test_key",
    )
    assert isinstance(session, StartedSession)


def test_an_inquiry_of_another_environment_is_not_used() -> None:
    """The credentials name one environment: the operator has mixed up two."""
    case = CASES["persona"]
    error, _ = start(case, environment_id="env_AnotherOne")
    assert isinstance(error, VerificationMisconfigured)


def test_a_response_with_a_wrong_signature_is_not_used() -> None:
    """Veriff signs its responses: an unsigned one is from an attacker."""
    case = CASES["veriff"]
    status, body = case.replies[0]
    forged = Reply(
        status=status, body=json.dumps(body).encode(), headers=(("X-HMAC-Signature", "00" * 32),)
    )
    error, _ = start(case, [forged])
    assert isinstance(error, ProviderUnavailable)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_no_mutation_of_a_response_leads_a_buyer_astray(case: Case) -> None:
    """Every member at every level, replaced or removed: the provider's page, or none."""
    junk: list[object] = [None, 7, "", "https://evil.example/", ["x"], {}, "\ud800", ...]
    status, body = case.replies[-1]
    mutated = [put(body, path, value) for path in places(body) for value in junk]
    replies = [reply for each in mutated for reply in with_last(case, each, status)]

    async def all_of_them() -> None:
        async with receiving(case, replies) as (begin, _):
            for _ in mutated:
                session = await begin()
                if isinstance(session, StartedSession):
                    assert (session.session_id, session.url) == (case.session_id, case.url)
                else:
                    assert isinstance(session, ProviderUnavailable | VerificationMisconfigured)

    asyncio.run(all_of_them())


@every("case", CASES.values())
@every(
    "page",
    [
        "https://evil.example/{path}",
        "https://{host}.evil.example/{path}",
        "https://evil{domain}/{path}",
        "https://evil-{domain}/{path}",
        "https://{host}@evil.example/{path}",
        "https://evil.example\\@{host}/{path}",
        "http://{host}/{path}",
        "//{host}/{path}",
        "javascript:alert(1)//{host}",
        "https://{host}:8443/{path}",
        "https://{host}/{path} onclick=x",
        'https://{host}/{path}"',
        "https://{host}/{path}\r\nSet-Cookie: a=b",
        "https://{host}\n/{path}",
    ],
)
def test_a_forged_response_sends_no_buyer_elsewhere(case: Case, page: str) -> None:
    """A page that looks the same could collect documents and faces: no open redirect."""
    host, _, path = case.url.removeprefix("https://").partition("/")
    forged = page.format(host=host, path=path, domain=".".join(host.split(".")[-2:]))
    status, body = case.replies[-1]
    (where,) = [place for place in places(body) if str(place[-1]) in _ADDRESSES]
    with capture_logs() as lines:
        error, _ = start(case, with_last(case, put(body, where, forged), status))
    assert isinstance(error, ProviderUnavailable | VerificationMisconfigured)
    assert HIDDEN not in repr(lines)
    assert "evil" not in repr(lines) + error.message


_ADDRESSES: Final = {"url", "one-time-link", "shareable_url"}


@every(
    ("url", "base_url", "fits"),
    [
        ("https://verify.stripe.com/start/live_1#a", None, True),
        ("https://stripe.com", None, True),
        ("https://stripe.com?a=b&c=%20d", None, True),
        ("https://verify.stripe.com/" + "a" * 4096, None, False),
        ("https://xstripe.com/", None, False),
        ("https://Verify.stripe.com/", None, False),
        ("https://verify.stripe.com./", None, False),
        ("https://verify..stripe.com/", None, False),
        ("https://verify.example.com/", None, False),
        ("http://127.0.0.1:9100/start/1", None, False),
        ("http://127.0.0.1:9100/start/1?a=b", "http://127.0.0.1:9100", True),
        ("http://127.0.0.1:9100", "http://127.0.0.1:9100/", True),
        ("https://verify.stripe.com/1", "http://127.0.0.1:9100", True),
        ("http://127.0.0.1:91001/", "http://127.0.0.1:9100", False),
        ("http://127.0.0.1:9100@evil.example/", "http://127.0.0.1:9100", False),
        ("http://127.0.0.1:9100.evil.example/", "http://127.0.0.1:9100", False),
        ("http://127.0.0.1:9100\\@evil.example/", "http://127.0.0.1:9100", False),
        ("http://127.0.0.1:9101/", "http://127.0.0.1:9100", False),
        ("https://127.0.0.1:9100/", "http://127.0.0.1:9100", False),
    ],
)
def test_a_page_is_the_providers_or_at_the_base_url(
    url: str, base_url: str | None, *, fits: bool
) -> None:
    """Compared as a browser would read it."""
    assert is_page(url, ("stripe.com",), base_url) is fits


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_operator_can_name_a_host_of_their_own(case: Case) -> None:
    """Some providers serve their pages at the customer's host."""
    status, body = case.replies[-1]
    (where,) = [place for place in places(body) if str(place[-1]) in _ADDRESSES]
    replies = with_last(case, put(body, where, "https://verify.shop.example/s/1"), status)
    error, _ = start(case, replies)
    assert isinstance(error, VerificationMisconfigured)
    assert "page_hosts" in error.message
    session, _ = start(case, replies, page_hosts=["verify.shop.example"])
    assert isinstance(session, StartedSession)


@every("name", provider_names())
@every("host", ["", "https://a.example", "a.example/", "localhost", "A.example"])
def test_an_invalid_host_is_refused_in_the_credentials(name: str, host: str) -> None:
    """A name with a scheme would never fit, and no one would learn why."""
    content = json.dumps({**CASES[name].credentials, "page_hosts": [host]}).encode()
    with pytest.raises(InvalidArgument, match="page_hosts"):
        IdentityProviders(keyed, FixedClock()).review(name, content)


def test_a_first_step_that_fails_ends_the_start() -> None:
    """No run is made for an applicant that does not exist."""
    case = CASES["onfido"]
    error, requests = start(case, [replied(case, {"id": "../x"}, 201)])
    assert isinstance(error, ProviderUnavailable)
    assert len(requests) == 1
