"""Verifications that are created at the simulated Plaid, judged by its description and its SDK."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import httpx2
import pytest

from countersign_simulators import plaid as simulated
from countersign_simulators.plaid_created import TEMPLATE_ID
from tests.conftest import SHARED
from tests.simulators import published
from tests.simulators.walking import Walker, walk

pytestmark = pytest.mark.vectors
T = TypeVar("T")
SPECIFICATION: Final[Path] = SHARED / "specs" / "plaid-identity-verification.json"
ASKED: Final = {"is_shareable": True, "template_id": TEMPLATE_ID, "client_user_id": "chk_1.1"}


class Shop:
    """A client of Plaid."""

    def __init__(self, walker: Walker, environment: str = "live") -> None:
        self.walker = walker
        secret = simulated.SECRETS[environment]
        self.headers = {"plaid-client-id": simulated.CLIENT_ID, "plaid-secret": secret}
        description = published.load(SPECIFICATION)
        self.answer = published.validator(description, "IdentityVerificationGetResponse")

    def post(self, path: str, body: object) -> httpx2.Response:
        address = f"{self.walker.url}{path}"
        return httpx2.post(address, json=body, headers=self.headers, trust_env=False, verify=False)

    def create(self, **other: object) -> Any:  # noqa: ANN401 - any JSON
        made = self.post("/identity_verification/create", {**ASKED, **other})
        assert made.status_code == 200, made.text
        self.answer.validate(made.json())
        return made.json()

    def read(self, own_id: str) -> Any:  # noqa: ANN401 - any JSON
        found = self.post("/identity_verification/get", {"identity_verification_id": own_id})
        assert found.status_code == 200, found.text
        self.answer.validate(found.json())
        return found.json()

    def finish(self, outcome: str, zip_: str = "94110") -> tuple[Any, str | None]:
        made = self.create(client_user_id=f"chk_{outcome}")
        back = self.walker.finish(made["shareable_url"], outcome, zip_)
        return self.read(made["id"]), back


def at(use: Callable[[Shop], T], environment: str = "live") -> T:
    return walk(simulated.Plaid, lambda walker: use(Shop(walker, environment)))


def test_a_new_verification_has_a_shareable_url() -> None:
    """Of the simulator itself; none if it is not shareable."""

    def use(shop: Shop) -> None:
        made = shop.create()
        assert (made["status"], made["client_user_id"]) == ("active", "chk_1.1")
        start = f"{shop.walker.url}/verify/{made['id']}?key="
        assert made["shareable_url"].startswith(start)
        assert shop.read(made["id"])["steps"]["accept_tos"] == "active"
        shop.walker.submit(made["shareable_url"])
        assert shop.read(made["id"])["steps"]["accept_tos"] == "success"
        hidden = shop.create(is_shareable=False, client_user_id="chk_2")
        assert hidden["shareable_url"] is None

    at(use)


@pytest.mark.parametrize(
    ("outcome", "status", "step"),
    [
        ("verified", "success", None),
        ("underage", "success", None),
        ("wrong_zip", "success", None),
        ("document_expired", "success", None),
        ("never", "success", None),
        ("photo_blurred", "failed", "documentary_verification"),
        ("consent_declined", "failed", "accept_tos"),
        ("failed", "failed", "selfie_check"),
        ("later", "pending_review", None),
        ("cancelled", "canceled", None),
        ("expired", "expired", None),
    ],
)
def test_each_outcome_is_a_verification_as_plaid_describes_it(
    outcome: str, status: str, step: str | None
) -> None:
    """A shareable link leads nowhere in the end."""

    def use(shop: Shop) -> None:
        found, back = shop.finish(outcome, "95814")
        assert found["status"] == status
        assert back is None
        if step is not None:
            assert found["steps"][step] == "failed"
        documents = (found["documentary_verification"] or {}).get("documents", [])
        if status == "success":
            (document,) = documents
            data = document["extracted_data"]
            assert (data["address"]["postal_code"] == "95814") is (outcome != "wrong_zip")
            assert (data["date_of_birth"] > "2005") is (outcome == "underage")
            verdict = document["analysis"]["extracted_data"]["expiration_date"]
            assert (verdict == "expired") is (outcome == "document_expired")
        if outcome == "wrong_zip":
            assert found["kyc_check"]["address"]["postal_code"] == "no_match"

    at(use)


def test_a_later_decision_comes_after_one_retrieval() -> None:
    """`pending_review` first, then `success`."""

    def use(shop: Shop) -> None:
        found, _ = shop.finish("later")
        assert found["status"] == "pending_review"
        assert shop.read(found["id"])["status"] == "success"

    at(use)


def test_a_user_has_one_verification_for_each_template() -> None:
    """`is_idempotent` returns it; without it the second creation is refused."""

    def use(shop: Shop) -> None:
        made = shop.create()
        again = shop.create(is_idempotent=True)
        assert (again["id"], again["shareable_url"]) == (made["id"], made["shareable_url"])
        refused = shop.post("/identity_verification/create", ASKED)
        assert refused.status_code == 400
        assert shop.create(client_user_id="chk_1.2")["id"] != made["id"]

    at(use)


def test_a_retry_is_another_verification_of_the_same_user() -> None:
    """It names the previous one, and is returned by idempotent creations from then on."""

    def use(shop: Shop) -> None:
        first, _ = shop.finish("failed")
        subject = {"template_id": TEMPLATE_ID, "client_user_id": first["client_user_id"]}
        retried = shop.post(
            "/identity_verification/retry", {**subject, "strategy": "reset", "is_shareable": True}
        ).json()
        shop.answer.validate(retried)
        assert (retried["status"], retried["previous_attempt_id"]) == ("active", first["id"])
        assert shop.create(**subject, is_idempotent=True)["id"] == retried["id"]
        for wrong in (
            {"strategy": "reset", "client_user_id": "nobody"},
            {"strategy": "again"},
            {"strategy": "custom"},
            {"strategy": "reset", "steps": {}},
            {"strategy": "custom", "steps": {"selfie_check": True}},
        ):
            refused = shop.post("/identity_verification/retry", subject | wrong)
            assert refused.status_code == 400, wrong

    at(use)


def test_the_sandbox_is_a_separate_environment() -> None:
    """Neither environment sees the verifications of the other."""

    def use(shop: Shop) -> None:
        own_id = shop.create()["id"]
        live = Shop(shop.walker)
        asked = {"identity_verification_id": own_id}
        assert live.post("/identity_verification/get", asked).status_code == 400
        assert live.create()["id"] != own_id
        assert shop.read(own_id)["status"] == "active"

    at(use, "sandbox")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "MISSING_FIELDS"),
        ({**ASKED, "redirect": "x"}, "UNKNOWN_FIELDS"),
        ({**ASKED, "is_shareable": "yes"}, "INVALID_FIELD"),
        ({**ASKED, "template_id": "x"}, "INVALID_FIELD"),
        ({**ASKED, "language": "tlh"}, "INVALID_FIELD"),
        ({**ASKED, "client_user_id": ""}, "MISSING_FIELDS"),
        ({**ASKED, "user": {"ssn": "x"}}, "UNKNOWN_FIELDS"),
    ],
)
def test_members_unknown_to_plaid_are_refused(body: object, code: str) -> None:
    """400 in Plaid's shape, and no verification."""

    def use(shop: Shop) -> None:
        reply = shop.post("/identity_verification/create", body)
        assert reply.status_code == 400
        assert reply.json()["error_code"] == code

    at(use)


def test_plaids_sdk_creates_a_verification() -> None:
    """With its models of the request and of the response."""
    import plaid as sdk  # noqa: PLC0415 - slow: only the test that needs it pays
    from plaid.api.plaid_api import PlaidApi  # noqa: PLC0415
    from plaid.model.identity_verification_create_request import (  # noqa: PLC0415
        IdentityVerificationCreateRequest,
    )
    from plaid.model.identity_verification_get_request import (  # noqa: PLC0415
        IdentityVerificationGetRequest,
    )
    from plaid.model.identity_verification_retry_request import (  # noqa: PLC0415
        IdentityVerificationRetryRequest,
    )
    from plaid.model.strategy import Strategy  # noqa: PLC0415

    def use(shop: Shop) -> list[str]:
        secret = simulated.SECRETS["live"]
        keys = {"clientId": simulated.CLIENT_ID, "secret": secret, "plaidVersion": "2020-09-14"}
        configuration = sdk.Configuration(host=shop.walker.url, api_key=keys)
        with sdk.ApiClient(configuration) as client:
            api = PlaidApi(client)
            made = api.identity_verification_create(IdentityVerificationCreateRequest(**ASKED))
            shop.walker.finish(made["shareable_url"], "verified")
            asked = IdentityVerificationGetRequest(identity_verification_id=made["id"])
            found = api.identity_verification_get(asked)
            again = IdentityVerificationRetryRequest(
                client_user_id=ASKED["client_user_id"],
                template_id=TEMPLATE_ID,
                strategy=Strategy("reset"),
            )
            retried = api.identity_verification_retry(again)
            return [str(one["status"]) for one in (made, found, retried)]

    assert at(use) == ["active", "success", "active"]
