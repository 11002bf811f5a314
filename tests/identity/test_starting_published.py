"""Starting a session, compared with the providers' own libraries and descriptions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import plaid
import pytest
import stripe
from plaid.api.plaid_api import PlaidApi
from plaid.model.identity_verification_create_request import IdentityVerificationCreateRequest
from plaid.model.identity_verification_retry_request import IdentityVerificationRetryRequest

from countersign_simulators.base import Request
from countersign_simulators.server import serve
from tests.identity.starts import CASES, REFERENCE, RETURN, Receiver, asked, replied, start
from tests.simulators import published


def recorded(name: str, call: Callable[[str], object]) -> Request:
    """The requests of the provider's own library; its parsing of the response is irrelevant."""

    async def work() -> Request:
        replies = [replied(CASES[name], body) for _, body in CASES[name].replies]
        async with serve(Receiver(replies)) as served:
            await asyncio.to_thread(call, served.url)
            return served.requests[0]

    return asyncio.run(work())


def test_stripes_library_asks_for_the_same_session() -> None:
    """Every name of a member, and how lists and truth values are written in a form."""

    def create(url: str) -> object:
        client = stripe.StripeClient(
            "rk_live_1", base_addresses={"api": url}, max_network_retries=0
        )
        return client.v1.identity.verification_sessions.create(
            {
                "type": "document",
                "options": {
                    "document": {
                        "allowed_types": ["driving_license", "id_card"],
                        "require_matching_selfie": True,
                    }
                },
                "client_reference_id": REFERENCE,
                "return_url": RETURN,
            }
        )

    theirs = recorded("stripe", create)
    _, (ours,) = start(CASES["stripe"])
    assert (ours.method, ours.path, ours.query) == (theirs.method, theirs.path, theirs.query)
    assert sorted(asked(ours)[1]) == sorted(asked(theirs)[1])
    for header in ("content-type", "stripe-version"):
        assert ours.headers[header] == theirs.headers[header]
    assert "idempotency-key" in theirs.headers


def test_stripes_library_writes_the_metadata_key_in_the_same_way() -> None:
    """The reference is where `retrieve` reads it."""

    def create(url: str) -> object:
        client = stripe.StripeClient(
            "rk_live_1", base_addresses={"api": url}, max_network_retries=0
        )
        return client.v1.identity.verification_sessions.create(
            {
                "verification_flow": "vf_Example1234",
                "metadata": {"our order": REFERENCE},
                "return_url": RETURN,
            }
        )

    theirs = recorded("stripe", create)
    body = {**CASES["stripe"].replies[0][1], "metadata": {"our order": REFERENCE}}
    session, (ours,) = start(
        CASES["stripe"],
        [replied(CASES["stripe"], body)],
        subject_metadata_key="our order",
        verification_flow="vf_Example1234",
    )
    assert not isinstance(session, Exception)
    assert sorted(asked(ours)[1]) == sorted(asked(theirs)[1])


@pytest.mark.parametrize(
    ("endpoint", "read", "ended"),
    [
        ("create", IdentityVerificationCreateRequest._from_openapi_data, False),
        ("retry", IdentityVerificationRetryRequest._from_openapi_data, True),
    ],
)
def test_plaids_library_asks_for_the_same_verification(
    endpoint: str, read: Callable[..., object], *, ended: bool
) -> None:
    """The library checks each member's name, type and word."""
    case = CASES["plaid"]
    first = replied(case, case.replies[0][1] | ({"status": "failed"} if ended else {}))
    _, requests = start(case, [first, replied(case, case.replies[0][1])])
    ours = requests[-1]
    body = asked(ours)[1]

    def call(url: str) -> None:
        configuration = plaid.Configuration(
            host=url, api_key={"clientId": "client-id-1234", "secret": "a secret"}
        )
        with plaid.ApiClient(configuration) as client:
            request = read(**body, _check_type=True, _configuration=configuration)
            # It wants every member of the response; the request has been sent by then.
            with suppress(TypeError):
                getattr(PlaidApi(client), f"identity_verification_{endpoint}")(request)

    theirs = recorded("plaid", call)
    assert (ours.method, ours.path) == (theirs.method, theirs.path)
    assert asked(theirs)[1] == body
    for header in ("content-type", "plaid-version", "plaid-client-id"):
        assert ours.headers[header] == theirs.headers[header]


def test_onfidos_library_describes_our_applicant_and_our_run() -> None:
    """Its models refuse other languages, and keep unknown members apart."""
    import onfido  # noqa: PLC0415 - it has a thousand modules

    _, (applicant, run) = start(CASES["onfido"])
    for request, model in ((applicant, onfido.ApplicantBuilder), (run, onfido.WorkflowRunBuilder)):
        body = asked(request)[1]
        read: Any = model.from_dict(body)
        assert read.additional_properties == {}
        written = json.loads(json.dumps(read.to_dict(), default=str))
        assert {name: written[name] for name in body if name != "link"} == {
            name: value for name, value in body.items() if name != "link"
        }
    link = onfido.WorkflowRunLink.from_dict(asked(run)[1]["link"])
    assert link is not None
    assert link.additional_properties == {}


def test_onfidos_library_describes_the_run_that_we_read() -> None:
    """The address is where the library has it."""
    import onfido  # noqa: PLC0415 - as above

    run: Any = onfido.WorkflowRun.from_dict(CASES["onfido"].replies[1][1])
    assert run.additional_properties == {}
    assert (str(run.id), run.link.url) == (CASES["onfido"].session_id, CASES["onfido"].url)


PERSONA_ATTRIBUTES: Final = {
    *("template-id", "inquiry-template-id", "inquiry-template-version-id", "reference-id"),
    *("account-id", "creator-email-address", "theme-id", "theme-set-id", "redirect-uri", "note"),
    *("fields", "tags", "initial-step-name"),
}
"""Of the request, in Persona's OpenAPI description 2025-12-08, which allows no others."""


def test_personas_description_knows_every_attribute_of_our_inquiry() -> None:
    """It refuses others: the language goes into the link."""
    _, (making, _) = start(CASES["persona"])
    assert asked(making)[1].keys() == {"data", "meta"}
    assert asked(making)[1]["meta"] == {"auto-create-account": False}
    assert asked(making)[1]["data"].keys() == {"attributes"}
    assert asked(making)[1]["data"]["attributes"].keys() <= PERSONA_ATTRIBUTES


@pytest.mark.vectors
def test_personas_description_has_every_field_that_we_read(shared_vectors: Path) -> None:
    """Id, reference and end of an inquiry are where Persona describes them."""
    description = published.load(shared_vectors.parent / "specs" / "persona-inquiry.json")
    inquiry = description["components"]["schemas"]["inquiry"]["properties"]
    attributes = inquiry["attributes"]["properties"]
    assert {"type", "id"} <= inquiry.keys()
    assert CASES["persona"].replies[0][1]["data"]["attributes"].keys() <= attributes.keys()
