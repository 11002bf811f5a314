"""A repeated start: by us after a failure, or by a returning buyer."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from typing import Final

import pytest

from countersign.base.errors import ProviderUnavailable
from countersign.identity.model import Finding, StartedSession
from countersign.identity.transport import ProviderHttp, ProviderRequest, TransportFailure
from countersign_simulators.base import Reply
from countersign_simulators.server import serve
from tests.identity.asking import FixedClock
from tests.identity.starts import (
    CASES,
    Case,
    Receiver,
    asked,
    replied,
    replies_of,
    start,
)
from tests.support.service import free_port

IDEMPOTENT: Final = {"stripe", "persona", "plaid", "didit"}
ONCE: Final = ProviderRequest(method="POST", path="/", body=b"{}", repeatable=False)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_an_error_of_the_server_is_retried_only_if_the_provider_recognises_it(case: Case) -> None:
    """The first may have made a session: a second one would be another."""
    broken = Reply(status=500, body=b"{}", headers=case.headers)
    result, requests = start(case, [broken, *replies_of(case)])
    if case.name in IDEMPOTENT:
        assert isinstance(result, StartedSession)
        assert requests[0].body == requests[1].body
        key = "idempotency-key"
        assert requests[0].headers.get(key) == requests[1].headers.get(key)
    else:
        assert isinstance(result, ProviderUnavailable)
        assert len(requests) == 1


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_connection_that_ends_early_is_retried_only_if_the_provider_recognises_it(
    case: Case,
) -> None:
    """The request may have arrived."""
    first = replies_of(case)[0]
    result, requests = start(case, [replace(first, cut_after=10), *replies_of(case)])
    assert isinstance(result, StartedSession) is (case.name in IDEMPOTENT)
    assert len(requests) == (1 + len(case.asked) if case.name in IDEMPOTENT else 1)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_rate_limited_request_is_retried(case: Case) -> None:
    """429 says that nothing was done."""
    limited = Reply(status=429, body=b"{}", headers=(("Retry-After", "1"), *case.headers))
    if case.name == "stripe":
        limited = replace(limited, headers=(("Stripe-Should-Retry", "true"), *limited.headers))
    result, requests = start(case, [limited, *replies_of(case)])
    assert isinstance(result, StartedSession)
    assert len(requests) == 1 + len(case.asked)


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504])
def test_non_repeatable_requests_are_sent_once(status: int) -> None:
    """Each of these can come after the effect."""

    async def work() -> None:
        async with serve(Receiver([Reply(status=status)])) as served:
            http = ProviderHttp(served.url, FixedClock())
            assert (await http.send(ONCE)).status == status
            await http.close()
            assert len(served.requests) == 1

    asyncio.run(work())


def test_requests_that_reached_no_server_are_retried() -> None:
    """A server that restarts refuses connections for a moment: nothing happened twice."""
    port = free_port()
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    attempts: list[int] = []

    async def work() -> None:
        seen: list[bytes] = []

        async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}")
            await writer.drain()
            writer.close()

        def jitter() -> float:
            # It is asked before each attempt: at the second one, the server is there.
            attempts.append(1)
            if len(attempts) == 2:
                listening.listen()
            return 0.0

        http = ProviderHttp(f"http://127.0.0.1:{port}", FixedClock())
        http.jitter = jitter
        sending = asyncio.create_task(http.send(ONCE))
        while len(attempts) < 2:  # noqa: ASYNC110 - the transport counts
            await asyncio.sleep(0.01)
        async with await asyncio.start_server(take, sock=listening):
            assert (await sending).status == 201
        await http.close()
        assert len(seen) == 1

    asyncio.run(work())


def test_an_unreachable_server_is_a_failure_without_effect() -> None:
    """The three attempts say so."""

    async def work() -> None:
        http = ProviderHttp(f"http://127.0.0.1:{free_port()}", FixedClock())
        http.attempts = 1
        with pytest.raises(TransportFailure) as failed:
            await http.send(ONCE)
        await http.close()
        assert (failed.value.reason, failed.value.unsent) == ("connection_refused", True)
        assert failed.value.outcome is Finding.PROVIDER_UNAVAILABLE

    asyncio.run(work())


def test_a_buyer_returning_to_stripe_gets_a_working_address() -> None:
    """Each works once, and a repeated creation returns the first one."""
    case = CASES["stripe"]
    _, body = case.replies[0]
    replayed = replied(case, body)
    replayed = replace(replayed, headers=(*replayed.headers, ("Idempotent-Replayed", "true")))
    fresh = "https://verify.stripe.com/start/live_fresh"
    session, requests = start(case, [replayed, replied(case, body | {"url": fresh})])
    assert isinstance(session, StartedSession)
    assert session.url == fresh
    assert asked(requests[1]) == (f"GET /v1/identity/verification_sessions/{case.session_id}", None)


def test_a_submitted_session_has_no_page() -> None:
    """The caller looks at its decision instead."""
    case = CASES["stripe"]
    _, body = case.replies[0]
    submitted = body | {"status": "processing", "url": None}
    error, _ = start(case, [replied(case, submitted)])
    assert isinstance(error, ProviderUnavailable)


def test_each_link_to_a_persona_inquiry_is_a_new_one() -> None:
    """A link works once: the request for it has no key that would return the old one."""
    _, requests = start(CASES["persona"])
    assert "idempotency-key" not in requests[1].headers


@pytest.mark.parametrize("status", ["failed", "expired", "canceled", "success", "pending_review"])
def test_another_attempt_at_plaid_is_a_retry_of_the_ended_one(status: str) -> None:
    """Plaid has one verification for a subject and a template: `create` returns the old one."""
    case = CASES["plaid"]
    _, body = case.replies[0]
    old = replied(case, body | {"status": status, "id": "idv_TheOldOne1"})
    again = body | {"previous_attempt_id": "idv_TheOldOne1"}
    session, requests = start(case, [old, replied(case, again)])
    assert isinstance(session, StartedSession)
    assert session.session_id == case.session_id
    assert asked(requests[1]) == (
        "POST /identity_verification/retry",
        {
            "template_id": "idvtmp_Example12",
            "client_user_id": case.asked[0][1]["client_user_id"],
            "is_shareable": True,
            "strategy": "reset",
        },
    )


def test_a_retry_at_plaid_is_not_sent_twice() -> None:
    """Each makes one more verification, and each is billed."""
    case = CASES["plaid"]
    _, body = case.replies[0]
    old = replied(case, body | {"status": "failed"})
    error, requests = start(case, [old, Reply(status=500, body=b"{}")])
    assert isinstance(error, ProviderUnavailable)
    assert len(requests) == 2
