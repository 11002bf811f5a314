"""The transport of all adapters: shared deadline, queueing, limits."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Final

import httpx2
import pytest

from countersign.identity import stripe, transport
from countersign.identity.model import Finding
from countersign.identity.reporting import reason_word
from countersign.identity.transport import (
    FAILURES,
    ProviderHttp,
    ProviderReply,
    ProviderRequest,
    TransportFailure,
)
from countersign_simulators.base import Reply, Request
from countersign_simulators.server import serve
from countersign_simulators.stripe import Stripe
from tests.identity.asking import NOW, FixedClock, fingerprint, single
from tests.support.every import every

CONCURRENT: Final = 16
GET: Final = ProviderRequest(path="/")


class Scripted(Stripe):
    """Answers every request in the same way."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(FixedClock().now)
        self.reply = reply
        self.asked = 0

    def answer(self, request: Request) -> Reply:
        self.asked += 1
        return self.reply


def run(scripted: Scripted, work: Callable[[str], Awaitable[None]]) -> None:
    async def served() -> None:
        async with serve(scripted) as at:
            await work(at.url)

    asyncio.run(served())


async def failure(http: ProviderHttp) -> TransportFailure:
    with pytest.raises(TransportFailure) as raised:
        await http.send(GET)
    return raised.value


def test_waiting_for_others_opens_no_breaker_and_uses_up_no_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Our own load is no fault of the provider: callers without a place learn so, and soon."""
    monkeypatch.setattr(transport, "PLACE_SECONDS", 0.05)
    scripted = Scripted(Reply(status=200, body=b"{}", delay=1.0))

    async def work(url: str) -> None:
        http = single(url, FixedClock(), read_seconds=5.0, concurrency=CONCURRENT)
        first = [asyncio.create_task(http.send(GET)) for _ in range(CONCURRENT)]
        await asyncio.sleep(0.05)
        turned_away = await asyncio.gather(*(failure(http) for _ in range(FAILURES + 1)))
        assert {f.reason for f in turned_away} == {"no_place"}
        assert {f.outcome for f in turned_away} == {Finding.PROVIDER_UNAVAILABLE}
        assert [reply.status for reply in await asyncio.gather(*first)] == [200] * CONCURRENT
        assert (await http.send(GET)).status == 200
        await http.close()

    run(scripted, work)
    assert scripted.asked == CONCURRENT + 1


def test_the_time_of_waiting_for_a_place_is_not_taken_from_the_request() -> None:
    """A request that had to wait has all of its time when its turn comes."""
    scripted = Scripted(Reply(status=200, body=b"{}", delay=1.0))

    async def work(url: str) -> None:
        http = single(url, FixedClock(), read_seconds=5.0, total_seconds=1.7)
        replies = await asyncio.gather(*(http.send(GET) for _ in range(CONCURRENT * 2)))
        assert {reply.status for reply in replies} == {200}
        await http.close()

    run(scripted, work)


def test_an_open_breaker_answers_at_once_even_if_all_places_are_taken() -> None:
    """A provider that is down holds no one up."""
    scripted = Scripted(Reply(status=500, body=b""))

    async def work(url: str) -> None:
        http = single(url, FixedClock(), read_seconds=5.0, concurrency=CONCURRENT)
        for _ in range(FAILURES):
            assert (await http.send(GET)).status == 500
        assert (await failure(http)).reason == "breaker_open"
        await http.close()

    run(scripted, work)
    assert scripted.asked == FAILURES


def test_both_requests_to_stripe_share_one_allowance_of_time() -> None:
    """A key that may not read sensitive results makes two, in the time that is documented."""
    forbidden = Reply(status=403, body=b'{"error":{}}', delay=0.6)
    scripted = Scripted(forbidden)

    async def work(url: str) -> None:
        clock = FixedClock()
        provider = stripe.Stripe(
            stripe.StripeCredentials(api_key="rk_live_00000000"),
            base_url=url,
            fingerprint=fingerprint,
            clock=clock,
        )
        provider._http = single(url, clock, read_seconds=5.0, total_seconds=1.0)
        result = await provider.retrieve("vs_1ExampleAbCdEf")
        assert (result.outcome, result.reason_code) == (Finding.PROVIDER_UNAVAILABLE, "timeout")
        await provider.close()

    run(scripted, work)
    assert scripted.asked == 2


@every(
    ("status", "headers", "seconds"),
    [
        (429, {"retry-after": "7"}, 7),
        (503, {"retry-after": "7"}, 7),
        (429, {"retry-after": "0"}, 1),
        (429, {"retry-after": "999999"}, 3600),
        (429, {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, 1),
        (429, {"ratelimit-reset": "30"}, 30),
        (429, {"x-ratelimit-reset": "30"}, 30),
        (429, {"x-ratelimit-reset": str(int(NOW) + 42)}, 42),
        (429, {"ratelimit-reset": str(int(NOW) + 42)}, 42),
        (429, {"x-ratelimit-reset": str(int(NOW) - 42)}, 1),
        (429, {"x-ratelimit-reset": str(int(NOW) + 999_999)}, 3600),
        (429, {"x-ratelimit-reset": "17949492001"}, None),
        (429, {"x-ratelimit-reset": "\u0663"}, None),
        (500, {"x-ratelimit-reset": "30"}, None),
        (429, {}, None),
    ],
)
def test_a_limit_gives_the_wait_also_as_the_time_of_its_end(
    status: int, headers: dict[str, str], seconds: int | None
) -> None:
    """Seconds, or the Unix time of the reset; never more than an hour."""
    reply = ProviderReply(
        status=status, headers=headers, body=b"", target="GET /", came_at=int(NOW)
    )
    assert reply.retry_after == seconds


def test_a_reply_is_stamped_with_its_time_of_arrival() -> None:
    """By the clock of the service, which is compared with the end of a limit."""
    soon = (("X-RateLimit-Reset", str(int(NOW) + 90)),)
    scripted = Scripted(Reply(status=429, body=b"{}", headers=soon))

    async def work(url: str) -> None:
        http = single(url, FixedClock())
        assert (await http.send(GET)).retry_after == 90
        await http.close()

    run(scripted, work)


def test_a_closed_port_is_a_connection_refused() -> None:
    """A wrong name, a closed port and a refused certificate are put right in different places."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"

        async def work() -> str:
            http = single(url, FixedClock())
            try:
                return (await failure(http)).reason
            finally:
                await http.close()

        assert asyncio.run(work()) == "connection_refused"


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        (socket.gaierror(-2, "Name or service not known"), "name_not_resolved"),
        (ssl.SSLCertVerificationError("self-signed"), "certificate_refused"),
        (ExceptionGroup("all addresses", [OSError(errno.ENETUNREACH, "")]), "network_unreachable"),
        (OSError(errno.EPERM, "filtered"), "network_unreachable"),
        (ValueError("Jane Doe"), "ConnectError"),
        (None, "ConnectError"),
    ],
)
def test_a_connection_that_fails_is_named_by_its_cause(cause: Exception | None, kind: str) -> None:
    """However deep it is; and by a word that is logged."""
    error = httpx2.ConnectError("vs_JaneDoe")
    error.__cause__ = cause
    assert transport._kind(error) == kind
    assert reason_word(kind) == kind


def test_a_server_without_tls_is_a_failure_of_tls() -> None:
    """So the message does not blame the name or the firewall."""

    async def work(url: str) -> None:
        http = single(url.replace("http://", "https://"), FixedClock())
        assert (await failure(http)).reason == "tls_failure"
        await http.close()

    run(Scripted(Reply(status=200, body=b"{}")), work)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("Tue, 17 Nov 2026 21:01:30 GMT", 90),
        ("Tue, 17 Nov 2026 20:00:00 GMT", 1),
        ("Wed, 18 Nov 2026 21:00:00 GMT", 3600),
        ("Tue, 17 Nov 2026 17:01:30 +0000", None),
        ("Tue, 99 Nov 2026 17:01:30 GMT", None),
        ("GMT", None),
        (" GMT", None),
    ],
)
def test_a_retry_time_may_be_a_date(written: str, seconds: int | None) -> None:
    """RFC 9110 allows both; other values are ignored."""
    reply = ProviderReply(
        status=503, headers={"retry-after": written}, body=b"", target="GET /", came_at=int(NOW)
    )
    assert reply.retry_after == seconds
