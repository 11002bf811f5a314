"""Messages of a simulator when a session changes, over real HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, Final

import httpx2
import pytest
from stripe import WebhookSignature

from countersign_simulators.base import Reply, Request, Simulator
from countersign_simulators.persona import API_KEY, Persona
from countersign_simulators.persona_created import TEMPLATE_ID
from countersign_simulators.plaid import CLIENT_ID, SECRETS, Plaid
from countersign_simulators.plaid_created import TEMPLATE_ID as PLAID_TEMPLATE
from countersign_simulators.server import serve
from countersign_simulators.stripe import SENSITIVE_KEY, WEBHOOK_SECRET, Stripe
from tests.identity.asking import FixedClock

SECONDS: Final = 20.0


class Inbox(Stripe):
    """A receiver of messages."""

    def __init__(self) -> None:
        super().__init__(FixedClock().now)
        self.received: asyncio.Queue[Request] = asyncio.Queue()

    def answer(self, request: Request) -> Reply:
        self.received.put_nowait(request)
        return Reply(status=200)


Use = Callable[[httpx2.AsyncClient], Any]


def sent_by(
    make: Callable[[Callable[[], float]], Simulator], use: Use, count: int
) -> list[Request]:
    """The first messages after acts on a simulator."""

    async def run() -> list[Request]:
        inbox = Inbox()
        async with (
            serve(inbox) as receiver,
            serve(make(FixedClock().now), webhook_url=f"{receiver.url}/hook") as served,
            httpx2.AsyncClient(base_url=served.url, trust_env=False, verify=False) as client,
        ):
            await use(client)
            waiting = (asyncio.wait_for(inbox.received.get(), SECONDS) for _ in range(count))
            found = [await one for one in waiting]
            assert inbox.received.empty()
            return found

    return asyncio.run(run())


def names(messages: Sequence[Request], *path: str) -> list[str]:
    """A member of each message."""
    found = []
    for message in messages:
        value = json.loads(message.body)
        for name in path:
            value = value[name]
        found.append(value)
    return found


def test_stripe_sends_a_signed_event_for_every_change_of_the_status() -> None:
    """No event when the buyer only agrees; one for processing and one with the decision."""

    async def use(client: httpx2.AsyncClient) -> None:
        path, headers = (
            "/v1/identity/verification_sessions",
            {"authorization": f"Bearer {SENSITIVE_KEY}"},
        )
        made = (await client.post(path, data={"type": "document"}, headers=headers)).json()
        await client.post(made["url"])
        await client.post(made["url"], data={"outcome": "later"})
        await client.get(f"{path}/{made['id']}", headers=headers)

    messages = sent_by(Stripe, use, 2)
    kind = "identity.verification_session"
    assert names(messages, "type") == [f"{kind}.processing", f"{kind}.verified"]
    for message in messages:
        assert (message.method, message.path) == ("POST", "/hook")
        header, text = message.headers["stripe-signature"], message.body.decode()
        assert WebhookSignature.verify_header(text, header, WEBHOOK_SECRET)


def test_persona_sends_an_event_for_every_status() -> None:
    """Started, completed, approved."""

    async def use(client: httpx2.AsyncClient) -> None:
        body = {
            "data": {"attributes": {"inquiry-template-id": TEMPLATE_ID}},
            "meta": {"auto-create-one-time-link": True},
        }
        headers = {"authorization": f"Bearer {API_KEY}"}
        made = (await client.post("/api/v1/inquiries", json=body, headers=headers)).json()
        await client.post(made["meta"]["one-time-link"])
        await client.post(made["meta"]["one-time-link"], data={"outcome": "later"})
        await client.get(f"/api/v1/inquiries/{made['data']['id']}", headers=headers)

    messages = sent_by(Persona, use, 3)
    answer = names(messages, "data", "attributes", "name")
    assert answer == ["inquiry.started", "inquiry.completed", "inquiry.approved"]


@pytest.mark.parametrize("environment", ["production", "sandbox"])
def test_plaid_sends_a_status_update(environment: str) -> None:
    """With the environment of the verification."""
    mode = "live" if environment == "production" else "sandbox"

    async def use(client: httpx2.AsyncClient) -> None:
        body = {
            "client_id": CLIENT_ID,
            "secret": SECRETS[mode],
            "is_shareable": True,
            "template_id": PLAID_TEMPLATE,
            "client_user_id": "chk_1",
        }
        made = (await client.post("/identity_verification/create", json=body)).json()
        await client.post(made["shareable_url"])
        await client.post(made["shareable_url"], data={"outcome": "failed"})

    (message,) = sent_by(Plaid, use, 1)
    assert names([message], "webhook_code") == ["STATUS_UPDATED"]
    assert names([message], "environment") == [environment]


def test_a_failing_receiver_stops_nothing() -> None:
    """The simulator continues; the message is lost, as if a provider had given up."""

    async def run() -> list[int]:
        make = Stripe(FixedClock().now)
        async with (
            serve(make, webhook_url="http://127.0.0.1:9/") as served,
            httpx2.AsyncClient(base_url=served.url, trust_env=False, verify=False) as client,
        ):
            headers = {"authorization": f"Bearer {SENSITIVE_KEY}"}
            path, form = "/v1/identity/verification_sessions", {"type": "document"}
            made = [(await client.post(path, data=form, headers=headers)).json() for _ in range(2)]
            ends = [await client.post(one["url"], data={"outcome": "failed"}) for one in made]
            return [end.status_code for end in ends]

    assert asyncio.run(run()) == [200, 200]
