"""The operator learns why no one is verified, without personal data."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

import httpx2
import pytest
from structlog.testing import capture_logs

from countersign.identity.base import evidence_of
from countersign.identity.model import Finding, ProviderResult
from countersign.identity.registry import IdentityProviders, provider_names
from countersign.identity.reporting import reason_word, report
from countersign.identity.stripe import Stripe
from countersign_simulators.registry import SIMULATORS
from countersign_simulators.server import serve
from tests.identity.asking import FixedClock, keyed, reply
from tests.support.every import every

SAID: Final = {
    Finding.PROVIDER_UNAVAILABLE: "warning",
    Finding.PROVIDER_REJECTED: "error",
    Finding.INVALID_RESPONSE: "error",
}


def logged(
    outcome: Finding, reason: str | None, request_id: str | None, unread: tuple[str, ...] = ()
) -> list[Any]:
    answer = reply(b"Jane Doe", 418)
    evidence = evidence_of(answer, FixedClock(), "v1", request_id)
    result = ProviderResult(
        provider="stripe",
        session_id="vs_JaneDoe",
        outcome=outcome,
        provider_status="Jane",
        subject_reference="Doe",
        reason_code=reason,
        unread=unread,
        evidence=evidence,
    )
    with capture_logs() as lines:
        report(result, ())
    return lines


@every("outcome", Finding)
def test_only_an_answer_that_decides_nothing_is_reported(outcome: Finding) -> None:
    """One line, an error if somebody has to act; verdicts are not logged."""
    lines = logged(outcome, "unreadable", "req_1")
    if outcome not in SAID:
        assert lines == []
        return
    assert lines == [
        {
            "event": "provider_no_result",
            "log_level": SAID[outcome],
            "provider": "stripe",
            "outcome": outcome.value,
            "reason_code": "unreadable",
            "http_status": 418,
            "request_id": "req_1",
        }
    ]


@pytest.mark.parametrize(
    ("outcome", "event"),
    [
        (Finding.VERIFIED, "provider_facts_unreadable"),
        (Finding.INVALID_RESPONSE, "provider_no_result"),
    ],
)
def test_members_that_could_not_be_read_are_named(outcome: Finding, event: str) -> None:
    """Else no one can see why a buyer is refused, or a session is unusable at each try."""
    (line,) = logged(outcome, None, None, unread=("verified_outputs.dob",))
    assert (line["event"], line["members"]) == (event, ["verified_outputs.dob"])


@pytest.mark.parametrize("request_id", [None, "", "Jane Doe", "a" * 129, "a\nb", "é", "a" * 128])
def test_a_request_id_is_logged_only_if_it_can_be_one(request_id: str | None) -> None:
    """It is a header that anybody could have filled."""
    (line,) = logged(Finding.INVALID_RESPONSE, "unreadable", request_id)
    assert line.get("request_id") == (request_id if request_id == "a" * 128 else None)


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("timeout", "timeout"),
        ("ConnectError", "ConnectError"),
        ("http_503", "http_503"),
        ("report_http_500", "report_http_500"),
        ("rate_limit", "rate_limit"),
        ("Jane", "other"),
        ("94111", "other"),
        ("http_94111", "other"),
        (None, "other"),
    ],
)
def test_a_logged_reason_is_a_reviewed_word(reason: str | None, word: str) -> None:
    """A provider's free text stays in the encrypted evidence."""
    published = Stripe.words.error_codes
    assert reason_word(reason, None, published) == word
    assert reason_word(reason, 401, published) == ("http_401" if word == "other" else word)


def test_every_failure_of_the_connection_has_its_word() -> None:
    """httpx2's names for connection failures, without the uninformative ones."""
    vague = {"HTTPError", "HTTPStatusError", "NetworkError", "RequestError", "SSEError",
             "TimeoutException", "TransportError"}  # fmt: skip
    for name in dir(httpx2):
        found = getattr(httpx2, name)
        if isinstance(found, type) and issubclass(found, httpx2.HTTPError) and name not in vague:
            assert reason_word(name) == name


@pytest.mark.parametrize("name", provider_names())
def test_every_provider_is_made_with_reporting(name: str) -> None:
    """Over HTTP: wrong credentials, a page of something in between, and no one there."""
    simulator = SIMULATORS[name](FixedClock().now)
    credentials = json.dumps(dict(simulator.credentials)).encode()
    providers = IdentityProviders(keyed, FixedClock())

    async def work() -> list[Any]:
        async with serve(simulator) as served:
            url = served.url
            provider = providers(name, credentials, url)
            assert provider.name == name
            probe = provider.probe_session_id
            with capture_logs() as absent:
                assert (await provider.retrieve(probe)).outcome is Finding.NOT_FOUND
            assert absent == []
            await provider.close()
        away = providers(name, credentials, url)
        with capture_logs() as lines:
            assert (await away.retrieve(probe)).outcome is Finding.PROVIDER_UNAVAILABLE
        await away.close()
        return lines

    (line,) = asyncio.run(work())
    assert line["provider"] == name
    assert line["outcome"] == "provider_unavailable"
    assert line["reason_code"] == "connection_refused"


@every("body", [b'{"detail":"Not Found"}', b'{"error":{"code":"x"}}', b"<html>"])
@every("name", provider_names())
def test_a_404_of_another_server_is_never_a_providers_word(name: str, body: bytes) -> None:
    """`--check` asks for an unknown session: only the provider itself can know that."""
    simulator = SIMULATORS[name](FixedClock().now)
    credentials = json.dumps(dict(simulator.credentials)).encode()

    async def anywhere(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 404 Not Found\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()

    async def work() -> ProviderResult:
        server = await asyncio.start_server(anywhere, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            providers = IdentityProviders(keyed, FixedClock())
            provider = providers(name, credentials, f"http://127.0.0.1:{port}")
            result = await provider.retrieve(provider.probe_session_id)
            await provider.close()
            return result

    assert asyncio.run(work()).outcome is Finding.INVALID_RESPONSE
