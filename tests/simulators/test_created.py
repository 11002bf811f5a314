"""Sessions that are created at Veriff, Didit and Onfido, from the first request to the end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, urlsplit

import pytest

from countersign.identity.base import IdentityProvider
from countersign.identity.model import Finding, ProviderResult, StartRequest
from countersign.identity.registry import IdentityProviders
from countersign_simulators.hosted import Outcome
from countersign_simulators.registry import SIMULATORS
from countersign_simulators.server import serve
from tests.identity.asking import NOW, FixedClock, keyed
from tests.simulators.creating import CLIENT, CREATE, FIND, REFERENCE, Made, choose, create, found
from tests.support.providers import Playing, playing
from tests.webhooks.receiver import running_receiver, until

T = TypeVar("T")
BACK: Final = "https://shop.example/c/chk_1/return?kept=1"
_DECLINED: Final = dict.fromkeys(("document_expired", "photo_blurred", "failed"), "Declined")
_LEFT: Final = ("consent_declined", "cancelled")
STATUS: Final[Mapping[str, Mapping[str, str]]] = {
    "veriff": {
        "document_expired": "resubmission_requested",
        "photo_blurred": "resubmission_requested",
        "failed": "declined",
        "expired": "expired",
        "*": "approved",
    }
    | dict.fromkeys(_LEFT, "abandoned"),
    "didit": {"expired": "Expired", "*": "Approved"}
    | _DECLINED
    | dict.fromkeys(_LEFT, "Abandoned"),
    "onfido": {"expired": "abandoned", "*": "approved"}
    | dict.fromkeys(_DECLINED, "declined")
    | dict.fromkeys(_LEFT, "abandoned"),
}
"""The provider's word for each outcome; `*` for all others."""
FINDINGS: Final[Mapping[str, Finding]] = {
    "approved": Finding.VERIFIED,
    "declined": Finding.FAILED,
    "resubmission_requested": Finding.REQUIRES_INPUT,
    "abandoned": Finding.CANCELED,
    "expired": Finding.EXPIRED,
}


@pytest.fixture(params=sorted(CREATE))
def provider(request: pytest.FixtureRequest) -> Iterator[Playing]:
    """Each of the three, with its clock at NOW."""
    with playing(request.param, clock=lambda: NOW) as played:
        yield played


def with_adapter(
    provider: Playing, use: Callable[[IdentityProvider[Any]], Coroutine[Any, Any, T]]
) -> T:
    """The adapter's result from the simulator, with the printed credentials."""
    credentials = json.dumps(dict(provider.simulator.credentials)).encode()

    async def run() -> T:
        adapter = IdentityProviders(keyed, FixedClock())(provider.name, credentials, provider.url)
        try:
            return await use(adapter)
        finally:
            await adapter.close()

    return asyncio.run(run())


def read(provider: Playing, made: Made) -> ProviderResult:
    """The adapter's result for the session."""
    return with_adapter(provider, lambda adapter: adapter.retrieve(made.session_id))


def test_a_session_leads_to_a_page_of_the_simulator(provider: Playing) -> None:
    """No two are alike, and no buyer has submitted anything."""
    made, other = create(provider, BACK), None
    if provider.name != "didit":
        other = create(provider, BACK)
        assert made.url != other.url
        assert made.session_id != other.session_id
    assert made.url.startswith(f"{provider.url}/")
    page = CLIENT.get(made.url)
    assert page.status_code == 200
    assert "This is a simulator" in page.text
    assert read(provider, made).outcome in {Finding.PENDING, Finding.REQUIRES_INPUT}


@pytest.mark.parametrize("outcome", [each.value for each in Outcome])
def test_every_outcome_is_retrieved_in_the_providers_words(provider: Playing, outcome: str) -> None:
    """Over real HTTP, with the reference of the creation; `later` at the second request."""
    made = create(provider, BACK)
    choose(made, outcome)
    first, second = found(provider, made), found(provider, made)
    words = STATUS[provider.name]
    assert second is not None
    assert second["status"] == words.get(outcome, words["*"])
    if outcome == "later":
        assert first is None or first["status"] in {"In Review", "processing"}
    else:
        assert first == second
    assert REFERENCE in json.dumps(second)


@pytest.mark.parametrize("outcome", [each.value for each in Outcome])
def test_the_adapter_reads_every_outcome(provider: Playing, outcome: str) -> None:
    """Page, response and adapter fit together, down to ZIP code, date of birth and reference."""
    made = create(provider, BACK)
    choose(made, outcome, "95814")
    if outcome == "later":
        assert read(provider, made).outcome is Finding.PENDING
    result = read(provider, made)
    words = STATUS[provider.name]
    assert result.outcome is FINDINGS[words.get(outcome, words["*"]).lower()]
    assert result.subject_reference == REFERENCE
    if result.outcome is Finding.VERIFIED:
        codes = {address.postal_code for address in result.addresses}
        assert codes == {"90210" if outcome == "wrong_zip" else "95814"}
        assert result.date_of_birth is not None
        assert (result.date_of_birth.year > 2008) is (outcome == "underage")
        assert result.unknown_fields == 0
    if outcome == "document_expired" and provider.name != "onfido":
        assert result.reason == "document_expired"
    if outcome == "photo_blurred" and provider.name != "onfido":
        assert result.reason == "document_unreadable"


@pytest.mark.parametrize("outcome", [each.value for each in Outcome])
def test_the_buyer_is_redirected_as_by_the_provider(provider: Playing, outcome: str) -> None:
    """Veriff and Onfido add nothing to the address; Didit adds its two parameters."""
    made = create(provider, BACK)
    reply = choose(made, outcome)
    if outcome == "never":
        assert (reply.status_code, "Location" in reply.headers) == (200, False)
        return
    assert reply.status_code == 303
    location = reply.headers["Location"]
    if provider.name != "didit":
        assert location == BACK
        return
    status = "In Review" if outcome == "later" else None
    decision = found(provider, made)
    assert decision is not None
    assert parse_qsl(urlsplit(location).query) == [
        ("kept", "1"),
        ("verificationSessionId", made.session_id),
        ("status", status or decision["status"]),
    ]


@pytest.mark.parametrize("locale", ["en", "es"])
def test_the_adapter_starts_a_session_that_it_reads(provider: Playing, locale: str) -> None:
    """The page of the session leads to the return address, and the session is ours."""
    wanted = StartRequest(reference=REFERENCE, return_url=BACK, locale=locale, key="chk_1.1")
    started = with_adapter(provider, lambda adapter: adapter.start(wanted))
    made = Made(started.session_id, started.url, {})
    assert made.url.startswith(provider.url)
    assert choose(made, "verified").headers["Location"].startswith(BACK)
    result = read(provider, made)
    assert (result.outcome, result.subject_reference) == (Finding.VERIFIED, REFERENCE)


def test_without_an_address_the_page_stays(provider: Playing) -> None:
    """No buyer is led away."""
    reply = choose(create(provider), "verified")
    assert (reply.status_code, "Location" in reply.headers) == (200, False)


def test_an_unknown_page_is_not_found(provider: Playing) -> None:
    """And the response is a page for people."""
    made = create(provider, BACK)
    reply = CLIENT.get(f"{made.url}x")
    assert reply.status_code == 404
    assert reply.headers["Content-Type"].startswith("text/html")


def test_a_check_that_was_begun_is_not_decided(provider: Playing) -> None:
    """The buyer has agreed, and closes the window."""
    made = create(provider, BACK)
    CLIENT.post(made.url, data={"zip": "94110"})
    assert read(provider, made).outcome in {Finding.PENDING, Finding.REQUIRES_INPUT}


MESSAGES: Final = {
    "veriff": ["started", "submitted", "approved"],
    "didit": ["In Progress", "In Review", "Approved"],
    "onfido": ["approved"],
}
"""The word of each message about a check that is begun, submitted, and decided later."""


def word(body: Any) -> str:  # noqa: ANN401 - any JSON
    """The message's word for the session."""
    found = body.get("action") or body.get("status")
    if "verification" in body:
        found = body["verification"]["status"]
    return str(body["payload"]["object"]["status"] if "payload" in body else found)


@pytest.mark.parametrize("name", sorted(CREATE))
def test_every_change_is_announced_as_the_provider_does(name: str) -> None:
    """Signed, in order, once each; the creation is no change. Onfido announces only the end."""
    simulator = SIMULATORS[name](FixedClock().now)
    credentials = json.dumps(dict(simulator.credentials)).encode()

    def play(at: str) -> str:
        made = CREATE[name](at, BACK)
        CLIENT.post(made.url, data={"zip": "94110"})
        choose(made, "later")
        FIND[name](at, made.session_id)
        return made.session_id

    async def run() -> list[str]:
        adapter = IdentityProviders(keyed, FixedClock())(name, credentials, None)
        async with running_receiver() as receiver:
            async with serve(simulator, webhook_url=receiver.url) as served:
                session_id = await asyncio.to_thread(play, served.url)
                await until(lambda: len(receiver.received) == len(MESSAGES[name]))
            for message in receiver.received:
                headers = {key.lower(): value for key, value in message.headers.items()}
                hint = await adapter.read_webhook(headers, message.body)
                assert hint is None or hint.session_id == session_id
            return [word(json.loads(message.body)) for message in receiver.received]

    assert asyncio.run(run()) == MESSAGES[name]
