"""A provider in trouble: the right code, nothing half written, and the same request later works."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from countersign.base.values import Mode
from countersign.identity.transport import FAILURES, OPEN_SECONDS, ProviderHttp
from countersign_simulators.base import Reply
from tests.http.backstage import Operator, another_deployment
from tests.support.providers import Mood, playing
from tests.support.service import Server, free_port, running_server
from tests.verification.inside import Stage
from tests.verification.live import LiveVendor, live_vendor

TABLES = (
    "buyers", "verifications", "verification_evidence", "provider_sessions", "buyer_documents",
    "pending_sessions", "zip_attempts", "idempotency_keys", "events", "records", "shred_keys",
)  # fmt: skip
UNAVAILABLE = (503, "provider_unavailable")
MISCONFIGURED = (409, "verification_misconfigured")
STEP = timedelta(seconds=1)
JSON = (("Content-Type", "application/json"),)


def always(status: int, body: bytes = b"{}", **headers: str) -> Mood:
    """Answer everything so."""
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return lambda _, __: Reply(status=status, body=body, headers=JSON + named)


@dataclass(frozen=True)
class Fault:
    """A fault of the provider's response, and our response."""

    mood: Mood
    answer: tuple[int, str] = UNAVAILABLE
    retry_after: int | None = None


FAULTS: Mapping[str, Fault] = {
    "hangs": Fault(lambda _, reply: replace(reply, delay=60.0)),
    "429": Fault(always(429)),
    "429 with Retry-After": Fault(always(429, Retry_After="77"), retry_after=77),
    "429 with a Retry-After that is no number": Fault(always(429, Retry_After="soon")),
    "429 with an endless Retry-After": Fault(always(429, Retry_After="9" * 9), retry_after=3600),
    "500": Fault(always(500)),
    "502 in HTML": Fault(always(502, b"<html>Bad Gateway</html>")),
    "503 with Retry-After": Fault(always(503, Retry_After="9"), retry_after=9),
    "408": Fault(always(408)),
    "truncated JSON": Fault(lambda _, r: replace(r, body=r.body[: len(r.body) // 2])),
    "no body": Fault(always(200, b"")),
    "HTML": Fault(always(200, b"<html>Maintenance</html>")),
    "an array": Fault(always(200, b"[]")),
    "nested too deeply": Fault(always(200, b'{"a":' * 100_000)),
    "50 MB": Fault(always(200, b'{"id":"' + b"x" * 50_000_000 + b'"}')),
    "compressed": Fault(
        lambda _, r: replace(
            r, body=gzip.compress(r.body), headers=(*r.headers, ("Content-Encoding", "gzip"))
        )
    ),
    "wrong session id": Fault(lambda _, r: replace(r, body=r.body.replace(b'"vs_', b'"vs_x'))),
    "cut": Fault(lambda _, r: replace(r, cut_after=len(r.body) // 2)),
    "cut before the first byte": Fault(lambda _, r: replace(r, cut_after=0)),
    "redirect": Fault(always(302, b"", Location="/v1/elsewhere")),
    "unknown status": Fault(always(299)),
    "credentials refused": Fault(always(401), MISCONFIGURED),
    "permission refused": Fault(always(403), MISCONFIGURED),
}


@dataclass(frozen=True)
class Met:
    """The responses to the vendor during one fault, and after it."""

    vendor: LiveVendor
    asked: int
    trouble: httpx2.Response
    after: tuple[httpx2.Response, httpx2.Response, httpx2.Response]


@dataclass(frozen=True)
class Experience:
    """All faults, and the content of the tables before and after them."""

    met: Mapping[str, Met]
    before: Mapping[str, object]
    in_trouble: Mapping[str, object]


def contents(operator: Operator) -> dict[str, object]:
    """How much is in each table."""
    count = "SELECT count(*) AS n FROM "
    return {t: operator.rows(count + t)[0]["n"] for t in TABLES}


def send(vendor: LiveVendor) -> httpx2.Response:
    """Verify, under the Idempotency-Key of this vendor."""
    key = {"Idempotency-Key": f"order-of-{vendor.account_id}"}
    return vendor.verify(vendor.part("verified"), headers=key)


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run a server of this module alone: no one else writes, and the engine does not matter."""
    with running_server(another_deployment(tmp_path_factory.mktemp("faults") / "data")) as running:
        yield running


@pytest.fixture(scope="module")
def own_operator(own_server: Server) -> Iterator[Operator]:
    """Give the operator of that server's deployment."""
    with Operator(own_server.deployment) as made:
        yield made


@pytest.fixture(scope="module")
def experience(own_operator: Operator, own_server: Server) -> Iterator[Experience]:
    """All faults of a provider, concurrently: one of them takes 12 seconds."""
    with ExitStack() as stack:
        vendors, began = {}, time.time()
        for name in FAULTS:
            # Its sessions were decided at one time, not always a while ago.
            played = stack.enter_context(playing("stripe", clock=lambda: began))
            vendors[name] = stack.enter_context(live_vendor(own_operator, own_server, played))
        before = contents(own_operator)
        threads = stack.enter_context(ThreadPoolExecutor(len(FAULTS)))

        def trouble(name: str) -> tuple[httpx2.Response, int]:
            vendor = vendors[name]
            with vendor.playing.mood(FAULTS[name].mood):
                return send(vendor), vendor.playing.asked(vendor.part("verified"))

        troubled = dict(zip(FAULTS, threads.map(trouble, FAULTS), strict=True))
        in_trouble = contents(own_operator)
        met = {}
        for name, vendor in vendors.items():
            answer, asked = troubled[name]
            again = (send(vendor), send(vendor), vendor.verify(vendor.part("verified")))
            met[name] = Met(vendor, asked, answer, again)
        yield Experience(met, before, in_trouble)


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_has_its_code_and_retry_time(experience: Experience, name: str) -> None:
    """The body and `Retry-After`; the provider is not asked more often than three times."""
    fault, met = FAULTS[name], experience.met[name]
    answer = met.trouble
    assert (answer.status_code, answer.json()["error"]["code"]) == fault.answer
    assert 1 <= met.asked <= ProviderHttp.attempts
    if fault.answer == UNAVAILABLE:
        wait = int(answer.headers["Retry-After"])
        assert wait == fault.retry_after if fault.retry_after else 1 <= wait <= 3600
    else:
        assert "Retry-After" not in answer.headers


def test_during_a_fault_nothing_is_written(experience: Experience) -> None:
    """No buyer, no session, no evidence, no record, no kept answer."""
    assert experience.in_trouble == experience.before


@pytest.mark.parametrize("name", FAULTS)
def test_after_the_trouble_the_same_request_verifies(experience: Experience, name: str) -> None:
    """With one cbid from then on, under the same Idempotency-Key and without."""
    first, replayed, another = experience.met[name].after
    assert first.status_code == 200, first.text
    assert first.json()["status"] == "verified"
    assert "Idempotent-Replayed" not in first.headers
    assert replayed.content == first.content
    assert replayed.headers["Idempotent-Replayed"] == "true"
    assert another.json()["cbid"] == first.json()["cbid"]
    assert len(experience.met[name].vendor.rows("verifications")) == 1


# --- before there is an answer -----------------------------------------------------------------


def test_a_refused_connection_is_overcome_when_the_provider_listens_again(
    own_operator: Operator, own_server: Server
) -> None:
    """The same address, the same request."""
    port = free_port()
    with ExitStack() as stack:
        with playing("stripe", port=port) as gone:
            vendor = stack.enter_context(live_vendor(own_operator, own_server, gone))
        before = contents(own_operator)
        refused = send(vendor)
        assert (refused.status_code, refused.json()["error"]["code"]) == UNAVAILABLE
        assert int(refused.headers["Retry-After"]) >= 1
        assert contents(own_operator) == before
        stack.enter_context(playing("stripe", port=port))
        first = send(vendor)
        assert first.json()["status"] == "verified", first.text
        assert send(vendor).content == first.content


@pytest.mark.openssl
def test_an_untrusted_certificate_is_refused(
    own_operator: Operator, own_server: Server, tmp_path: Path
) -> None:
    """No request reaches its server: not even the credentials arrive."""
    made = [tmp_path / "key.pem", tmp_path / "cert.pem"]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
         "subjectAltName=IP:127.0.0.1", "-keyout", str(made[0]), "-out", str(made[1])],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made[1], made[0])
    with (
        playing("stripe", ssl=context) as stranger,
        playing("stripe") as right,
        live_vendor(own_operator, own_server, stranger) as vendor,
    ):
        assert stranger.url.startswith("https://")
        before = contents(own_operator)
        refused = send(vendor)
        assert (refused.status_code, refused.json()["error"]["code"]) == UNAVAILABLE
        assert stranger.served.requests == []
        assert contents(own_operator) == before
        vendor.configure(base_url=right.url)
        assert send(vendor).json()["status"] == "verified"


# --- the circuit breaker -----------------------------------------------------------------------


def test_the_breaker_opens_after_failures_in_a_row_and_closes_after_a_success(
    stage: Stage,
) -> None:
    """While it is open the provider is left alone; then one request tries, and one is enough."""
    vendor = stage.insider()
    session = vendor.part("verified")
    with vendor.playing.mood(always(500, Stripe_Should_Retry="false")):
        for number in range(1, FAILURES + 1):
            assert vendor.unavailable(session) >= 1
            assert vendor.playing.asked(session) == number
        assert 1 <= vendor.unavailable(session) <= OPEN_SECONDS + 1
        assert vendor.playing.asked(session) == FAILURES, "the breaker is open"
        stage.clock.now += STEP * OPEN_SECONDS
        vendor.unavailable(session)
        assert vendor.playing.asked(session) == FAILURES + 1, "one request tries"
        vendor.unavailable(session)
        assert vendor.playing.asked(session) == FAILURES + 1, "and it is open again"
    stage.clock.now += STEP * OPEN_SECONDS
    cbid = vendor.verify(session).cbid
    with vendor.playing.mood(always(500, Stripe_Should_Retry="false")):
        vendor.unavailable(session)
    assert vendor.verify(session).cbid == cbid, "it takes all failures to open it again"


def test_the_breaker_of_one_account_does_not_affect_another(stage: Stage) -> None:
    """Each has credentials of its own, and so troubles of its own."""
    first = stage.insider()
    second = stage.insider(first.playing)
    session = first.part("verified")
    with first.playing.mood(always(500, Stripe_Should_Retry="false")):
        for _ in range(FAILURES + 1):
            first.unavailable(session)
    assert first.unavailable(session) >= 1
    assert second.verify(session).view.status == "verified"


def test_concurrent_calls_share_one_breaker(stage: Stage) -> None:
    """Also the first calls of an account, for which the provider is set up at the same time."""
    vendor = stage.insider()
    providers = stage.opened.buyers.providers

    async def at_once() -> set[int]:
        calls = [providers.all_of(vendor.account_id, Mode.LIVE) for _ in range(20)]
        return {id(one.provider) for found in await asyncio.gather(*calls) for one in found}

    assert len(stage.do(at_once())) == 1
