"""Every way to be refused where others take part: webhooks, and identity providers."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

from countersign.base.values import Mode, rfc3339
from countersign.core.access.reach import AccountReach
from countersign.core.events.model import KEPT
from countersign.core.events.sql import find_event
from countersign.operate.bootstrap import Deployment
from tests.http import wire
from tests.http.failures import ODD_IDS, VERIFY, Caller, Failure, make_caller
from tests.support import postgres
from tests.support.acts import asked
from tests.support.providers import Playing, playing
from tests.verification.live import configure


def failures_beyond(caller: Caller) -> Iterator[Failure]:
    """Refusals around events, webhooks and live verification, on the shared server."""
    yield from _events_and_webhooks(caller)
    yield from _live_verification(make_caller(caller.operator, caller.url, caller.public_url))


def _events_and_webhooks(caller: Caller) -> Iterator[Failure]:
    """Refusals for readers of events, and for webhooks."""
    endpoints = "/v1/webhook_endpoints"
    for path in ("/v1/events/{}", f"{endpoints}/{{}}", f"{endpoints}/{{}}/deliveries"):
        for odd in ODD_IDS:
            answer = caller.send(path.format(odd))
            yield caller.failure(path.format(odd[:20]), "not_found", answer)
    for query in ("after=evt_1", "type=buyer.known", "since=yesterday"):
        answer = caller.send(f"/v1/events?{query}")
        yield caller.failure(f"events with {query}", "invalid_request", answer)
    found = json.loads(caller.post("/v1/test/events", b'{"type":"clearance.closed"}').body)["id"]
    answer = caller.send(f"/v1/events?after={_long_ago(caller, found)}")
    yield caller.failure("a cursor of long ago", "cursor_expired", answer)
    for name, address in (("none", ""), ("plain HTTP", "http://hook.example/"), ("no URL", "x")):
        answer = caller.post(endpoints, b'{"url":"%s"}' % address.encode())
        yield caller.failure(f"address: {name}", "invalid_request", answer, b"POST")
    made, body = [], b'{"url":"https://hook.example/"}'
    while (answer := caller.post(endpoints, body)).status == 200:
        made.append(f"{endpoints}/{json.loads(answer.body)['endpoint_id']}")
    yield caller.failure("one too many", "too_many_webhook_endpoints", answer, b"POST")
    assert caller.send(made[0], b"PATCH", body=b'{"disabled":true}').status == 200
    since = rfc3339(datetime.now(UTC))
    for act, what in (("resend", {"event_id": found}), ("recover", {"since": since})):
        answer = caller.post(f"{made[0]}/{act}", json.dumps(what).encode())
        yield caller.failure(f"{act}, disabled", "webhook_endpoint_disabled", answer, b"POST")
    for path in made:
        assert caller.send(path, b"DELETE").status == 200
    answer = caller.send(made[0], b"DELETE")
    yield caller.failure("deleted already", "not_found", answer, b"DELETE")


def _long_ago(caller: Caller, event_id: str) -> str:
    """The identifier of an event older than the kept ones."""

    async def work(opened: Deployment) -> str:
        postgres.settle()
        events = opened.events
        own = AccountReach(caller.account_id, Mode.TEST)
        known = await asked(find_event, events, own, event_id)
        assert known is not None
        before = known.created_at - KEPT - timedelta(days=1)
        return events.ids.of(replace(known, created_at=before))

    return caller.operator.act(work)


def _live_verification(caller: Caller) -> Iterator[Failure]:
    """Refusals with a live key, and of the provider's messages."""
    messages = f"/v1/provider_webhooks/stripe/{caller.account_id}"
    for path in (messages, "/v1/provider_webhooks/", "/v1/provider_webhooks/nobody/x"):
        answer = caller.post(path, b"{}", key=None)
        yield caller.failure(f"message to {path[:30]}", "not_found", answer, b"POST")
    with playing("stripe") as played:
        configure(caller.operator, caller.account_id, played)
        for plays, code in (
            ("unknown", "provider_session_not_found"),
            ("other_subject", "provider_session_not_bound"),
            ("test_mode", "provider_session_not_bound"),
            ("truncated", "provider_unavailable"),
            ("rate_limited", "provider_unavailable"),
        ):
            answer = caller.post(VERIFY, _asked(played, plays), key="live")
            yield caller.failure(f"live, {plays}", code, answer, b"POST")
        for left_out in ("provider_identity_session_id", "shipping_zip"):
            body = _asked(played, "verified", left_out)
            answer = caller.post(VERIFY, body, key="live")
            yield caller.failure(f"live without {left_out}", "invalid_request", answer, b"POST")
        answer = caller.post(messages, b"{}", key=None)
        yield caller.failure("an unsigned message", "invalid_webhook", answer, b"POST")
        answer = caller.send(messages, key=None)
        yield caller.failure("reading messages", "method_not_allowed", answer)
        answer = caller.post(messages, b" " * (1024 * 1024 + 1), key=None)
        yield caller.failure("a huge message", "payload_too_large", answer, b"POST")
        answer = _among_unfinished(caller, messages)
        yield caller.failure("among unfinished messages", "overloaded", answer, b"POST")
        configure(caller.operator, caller.account_id, played, subject_reference_required=True)
        body = _asked(played, "verified", "subject_reference")
        answer = caller.post(VERIFY, body, key="live")
        yield caller.failure("no subject_reference", "invalid_request", answer, b"POST")
        wrong = {**played.simulator.credentials, "api_key": "rk_live_not_this_one"}
        configure(caller.operator, caller.account_id, played, credentials=wrong)
        answer = caller.post(VERIFY, _asked(played, "verified"), key="live")
        yield caller.failure("wrong credentials", "verification_misconfigured", answer, b"POST")


def _among_unfinished(caller: Caller, messages: str) -> wire.Answer:
    """The answer to a message when so many others of its account are in memory that it is full."""
    place = urlsplit(caller.url)
    size = 256 * 1024
    head = f"POST {messages} HTTP/1.1\r\nHost: countersign\r\nContent-Length: {size}\r\n\r\n"
    with ExitStack() as others:
        while (answer := caller.post(messages, b" " * 1000, key=None)).status != 503:
            connection = socket.create_connection((place.hostname, place.port))
            others.enter_context(connection).sendall(head.encode() + b" " * (size - 1))
    return answer


def _asked(played: Playing, plays: str, left_out: str = "") -> bytes:
    """A request about the session that plays this, without one field."""
    session = played.part("verified" if plays == "unknown" else plays)
    body = {
        "provider_identity_session_id": "vs_1Unknown" if plays == "unknown" else session.session_id,
        "shipping_zip": session.shipping_zip,
        "subject_reference": session.subject_reference,
    }
    return json.dumps({name: value for name, value in body.items() if name != left_out}).encode()
