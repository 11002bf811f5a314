"""Inquiries that are created at the simulated Persona, judged by its OpenAPI description."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, TypeVar
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from countersign_simulators import persona as simulated
from countersign_simulators.persona_created import TEMPLATE_ID
from tests.simulators.test_persona import RESPONSES, judge, specification
from tests.simulators.walking import RETURN_URL, Walker, walk

pytestmark = pytest.mark.vectors
T = TypeVar("T")
INQUIRIES: Final = "/api/v1/inquiries"
ATTRIBUTES: Final = {
    "inquiry-template-id": TEMPLATE_ID,
    "reference-id": "chk_1",
    "redirect-uri": RETURN_URL,
}


class Shop:
    """A vendor of Persona."""

    def __init__(self, walker: Walker, key: str = simulated.API_KEY) -> None:
        self.walker = walker
        self.headers = {"authorization": f"Bearer {key}", "persona-version": "2025-12-08"}
        self.answer = judge(specification(), RESPONSES[200])

    def post(self, path: str, body: object = None, **headers: str) -> httpx2.Response:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return httpx2.post(
            f"{self.walker.url}{INQUIRIES}{path}",
            content=body if isinstance(body, bytes) else json.dumps(body or {}).encode(),
            headers=self.headers | sent,
            trust_env=False,
            verify=False,
        )

    def create(self, **attributes: object) -> tuple[str, str]:
        """The identifier and the one-time link of a new inquiry."""
        made = self.post("", {"data": {"attributes": {**ATTRIBUTES, **attributes}}})
        assert made.status_code == 201
        self.answer.validate({"data": made.json()["data"]})
        own_id: str = made.json()["data"]["id"]
        linked = self.post(f"/{own_id}/generate-one-time-link")
        assert linked.status_code == 200
        link: str = linked.json()["meta"]["one-time-link"]
        return own_id, link

    def get(self, own_id: str) -> httpx2.Response:
        address = f"{self.walker.url}{INQUIRIES}/{own_id}"
        query = {"include": "verifications"}
        return httpx2.get(
            address, params=query, headers=self.headers, trust_env=False, verify=False
        )

    def read(self, own_id: str) -> Any:  # noqa: ANN401 - any JSON
        body = self.get(own_id).json()
        self.answer.validate(body)
        return body

    def finish(self, outcome: str, zip_: str = "94110") -> tuple[Any, str | None]:
        """The inquiry of a buyer who finished it, and the redirect afterwards."""
        own_id, link = self.create()
        back = self.walker.finish(link, outcome, zip_)
        return self.read(own_id), back


def at(use: Callable[[Shop], T], key: str = simulated.API_KEY) -> T:
    return walk(simulated.Persona, lambda walker: use(Shop(walker, key)))


def test_a_new_inquiry_has_a_one_time_link_to_the_simulator() -> None:
    """It is `created` until the buyer agrees, then `pending`."""

    def use(shop: Shop) -> None:
        own_id, link = shop.create()
        attributes = shop.read(own_id)["data"]["attributes"]
        assert (attributes["status"], attributes["reference-id"]) == ("created", "chk_1")
        assert link.startswith(f"{shop.walker.url}/verify?code=us1-")
        shop.walker.submit(link)
        assert shop.read(own_id)["data"]["attributes"]["status"] == "pending"
        # The one-time link continues it: the identifier alone opens no page.
        assert not shop.walker.page(f"{shop.walker.url}/verify?inquiry-id={own_id}").is_success

    at(use)


@pytest.mark.parametrize(
    ("outcome", "status", "proofs", "answer"),
    [
        ("verified", "approved", ["passed"], "completed"),
        ("underage", "approved", ["passed"], "completed"),
        ("wrong_zip", "approved", ["passed"], "completed"),
        ("document_expired", "approved", ["passed"], "completed"),
        ("never", "approved", ["passed"], None),
        ("photo_blurred", "failed", ["failed"], "failed"),
        ("consent_declined", "failed", [], "failed"),
        ("failed", "declined", ["failed"], "completed"),
        ("later", "completed", ["passed"], "completed"),
        ("cancelled", "pending", [], None),
        ("expired", "expired", [], None),
    ],
)
def test_each_outcome_is_an_inquiry_as_persona_describes_it(
    outcome: str, status: str, proofs: list[str], answer: str | None
) -> None:
    """And leads back with Persona's parameters, if the inquiry is completed or failed."""

    def use(shop: Shop) -> None:
        inquiry, back = shop.finish(outcome, "95814")
        assert inquiry["data"]["attributes"]["status"] == status
        found = inquiry["included"]
        assert [one["attributes"]["status"] for one in found] == proofs
        for one in found:
            of_zip = one["attributes"]["address-postal-code"]
            assert (of_zip == "95814") is (outcome != "wrong_zip")
            assert (one["attributes"]["birthdate"] > "2005") is (outcome == "underage")
            expired = (
                one["attributes"]["expiration-date"] < inquiry["data"]["attributes"]["created-at"]
            )
            assert expired is (outcome == "document_expired")
        if answer is None:
            assert back is None
            return
        assert back is not None
        assert back.startswith(f"{RETURN_URL}&inquiry-id=inq_")
        query = parse_qs(urlsplit(back).query)
        assert query["inquiry-id"] == [inquiry["data"]["id"]]
        assert (query["reference-id"], query["status"]) == (["chk_1"], [answer])
        assert "name-first" in json.loads(query["fields"][0])

    at(use)


def test_a_later_decision_comes_after_one_retrieval() -> None:
    """`completed` first, then `approved`."""

    def use(shop: Shop) -> None:
        inquiry, _ = shop.finish("later")
        assert inquiry["data"]["attributes"]["status"] == "completed"
        again = shop.read(inquiry["data"]["id"])
        assert again["data"]["attributes"]["status"] == "approved"

    at(use)


def test_inquiries_can_be_expired_decided_and_redacted() -> None:
    """Over the API, like those of the list."""

    def use(shop: Shop) -> None:
        own_id, link = shop.create()
        assert shop.post(f"/{own_id}/expire").json()["data"]["attributes"]["status"] == "expired"
        assert "<form" not in shop.walker.page(link).text
        inquiry, _ = shop.finish("failed")
        own_id = inquiry["data"]["id"]
        assert shop.post(f"/{own_id}/approve").status_code == 200
        assert shop.read(own_id)["data"]["attributes"]["status"] == "approved"
        address = f"{shop.walker.url}{INQUIRIES}/{own_id}"
        assert (
            httpx2.delete(address, headers=shop.headers, trust_env=False, verify=False).status_code
            == 200
        )
        assert shop.read(own_id)["data"]["attributes"]["redacted-at"] is not None

    at(use)


def test_a_sandbox_key_creates_in_the_sandbox() -> None:
    """Every response names its environment; no key of another environment sees the inquiry."""

    def use(shop: Shop) -> None:
        own_id, link = shop.create()
        shop.walker.finish(link, "verified")
        assert shop.get(own_id).headers["persona-environment-id"] == simulated.SANDBOX_ID
        assert Shop(shop.walker).get(own_id).status_code == 404

    at(use, simulated.SANDBOX_KEY)


def test_an_idempotency_key_makes_one_inquiry() -> None:
    """The first response is repeated, also an error; another request is a conflict."""

    def use(shop: Shop) -> None:
        body = {"data": {"attributes": ATTRIBUTES}}
        first, again = (shop.post("", body, idempotency_key="chk_1.1") for _ in range(2))
        assert first.status_code == again.status_code == 201
        assert first.json() == again.json()
        assert shop.post("", body, idempotency_key="chk_1.2").json() != first.json()
        assert shop.post("", {}, idempotency_key="chk_1.1").status_code == 409

    at(use)


def test_the_creation_can_ask_for_the_link() -> None:
    """`meta` of the newest description: null unless requested."""

    def use(shop: Shop) -> None:
        body = {"data": {"attributes": ATTRIBUTES}}
        plain = shop.post("", body).json()["meta"]
        assert plain == dict.fromkeys(("session-token", "one-time-link", "one-time-link-short"))
        linked = shop.post("", body | {"meta": {"auto-create-one-time-link": True}}).json()
        assert shop.walker.page(linked["meta"]["one-time-link"]).is_success

    at(use)


@pytest.mark.parametrize(
    "body",
    [
        b"[",
        [],
        {},
        {"data": {}},
        {"data": {"attributes": {}}},
        {"data": {"attributes": {"inquiry-template-id": "itmpl_Unknown0"}}},
        {"data": {"attributes": {**ATTRIBUTES, "template-id": "tmpl_1"}}},
        {"data": {"attributes": {**ATTRIBUTES, "return-url": RETURN_URL}}},
        {"data": {"attributes": {**ATTRIBUTES, "reference-id": 7}}},
        {"data": {"attributes": ATTRIBUTES, "type": "inquiry"}},
        {"data": {"attributes": ATTRIBUTES}, "meta": {"auto-create-account": "yes"}},
        {
            "data": {"attributes": ATTRIBUTES},
            "meta": {
                "auto-create-account": False,
                "auto-create-account-reference-id": "x",
            },
        },
        {
            "data": {"attributes": ATTRIBUTES},
            "meta": {"one-time-link-expiration-seconds": True},
        },
    ],
)
def test_members_unknown_to_persona_are_refused(body: object) -> None:
    """400 as the description has it, and no inquiry."""

    def use(shop: Shop) -> None:
        reply = shop.post("", body)
        assert reply.status_code == 400
        judge(specification(), RESPONSES[400]).validate(reply.json())

    at(use)


def test_a_link_needs_an_inquiry_and_a_period_above_zero() -> None:
    """404 and 400."""

    def use(shop: Shop) -> None:
        assert shop.post("/inq_unknown/generate-one-time-link").status_code == 404
        own_id, _ = shop.create()
        wrong = {"meta": {"expires-in-seconds": 0}}
        assert shop.post(f"/{own_id}/generate-one-time-link", wrong).status_code == 400

    at(use)
