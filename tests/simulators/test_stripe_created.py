"""Sessions that are created at the simulated Stripe, judged by Stripe's own SDK."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import httpx2
import pytest
import stripe as sdk
from stripe.identity import VerificationReport, VerificationSession

from countersign_simulators import stripe as simulated
from countersign_simulators.stripe_created import VERIFICATION_FLOW
from tests.simulators.walking import RETURN_URL, SUBMITTED, Walker, walk

T = TypeVar("T")
SESSIONS: Final = "/v1/identity/verification_sessions"
EXPAND: Final = [
    "verified_outputs.dob",
    "last_verification_report.document.expiration_date",
    "last_verification_report.document.number",
]
ASKED: Final[Any] = {
    "type": "document",
    "client_reference_id": "chk_1",
    "return_url": RETURN_URL,
    "metadata": {"attempt": "1"},
    "options": {"document": {"require_matching_selfie": True, "require_live_capture": True}},
}


class Shop:
    """A vendor with Stripe's own client."""

    def __init__(self, walker: Walker, key: str = simulated.SENSITIVE_KEY) -> None:
        self.walker, self.key = walker, key
        client = sdk.StripeClient(
            key,
            base_addresses={"api": walker.url},
            http_client=sdk.RequestsClient(timeout=20),
            max_network_retries=0,
        )
        self.sessions = client.v1.identity.verification_sessions

    def create(self, **other: Any) -> VerificationSession:  # noqa: ANN401 - of the SDK
        asked: Any = ASKED | other
        return self.sessions.create(asked)

    def finish(self, outcome: str, zip_: str = "94110") -> VerificationSession:
        """Create a session, let the buyer finish it, and retrieve it."""
        made = self.create()
        assert made.url is not None
        self.walker.finish(made.url, outcome, zip_)
        return self.read(made.id)

    def read(self, session_id: str) -> VerificationSession:
        return self.sessions.retrieve(session_id, {"expand": EXPAND})

    def post(self, form: Mapping[str, str], **headers: str) -> httpx2.Response:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent["authorization"] = f"Bearer {self.key}"
        address = self.walker.url + SESSIONS
        return httpx2.post(address, data=dict(form), headers=sent, trust_env=False, verify=False)


def at(use: Callable[[Shop], T], key: str = simulated.SENSITIVE_KEY) -> T:
    return walk(simulated.Stripe, lambda walker: use(Shop(walker, key)))


def test_the_sdk_creates_a_session_with_a_page() -> None:
    """`requires_input`, with a link of the simulator itself and the sent members."""

    def use(shop: Shop) -> None:
        made = shop.create()
        assert (made.status, made.livemode, made.type) == ("requires_input", True, "document")
        assert made.client_reference_id == "chk_1"
        assert made.metadata["attempt"] == "1"
        assert made.options is not None
        assert made.options["document"]["require_matching_selfie"] is True
        assert made.url is not None
        assert made.url.startswith(f"{shop.walker.url}/start/live_")
        assert shop.read(made.id).url == made.url
        assert made.id in [one.id for one in shop.sessions.list({"limit": 1}).data]
        assert "verified_outputs" not in made

    at(use)


def test_a_test_key_makes_sessions_of_the_test_mode() -> None:
    """They are not live, and no live key sees them."""

    def use(shop: Shop) -> None:
        made = shop.create()
        assert made.livemode is False
        assert made.url is not None
        assert "/start/test_" in made.url
        shop.walker.finish(made.url, "verified")
        assert (shop.read(made.id).status, shop.read(made.id).livemode) == ("verified", False)
        with pytest.raises(sdk.InvalidRequestError, match="similar object exists in test mode"):
            Shop(shop.walker).read(made.id)

    at(use, simulated.TEST_KEY)


@pytest.mark.parametrize("outcome", [*SUBMITTED[:3], "never"])
def test_a_genuine_document_is_verified(outcome: str) -> None:
    """Age and ZIP code are facts about the person, which Stripe returns and does not judge."""

    def use(shop: Shop) -> None:
        session = shop.finish(outcome, "95814")
        assert session.status == "verified"
        assert session.url is None
        outputs = session.verified_outputs
        assert outputs is not None
        assert outputs.dob is not None
        assert outputs.dob.year is not None
        assert (outputs.dob.year > 2005) is (outcome == "underage")
        assert outputs.address is not None
        assert (outputs.address.postal_code == "95814") is (outcome != "wrong_zip")
        report = session.last_verification_report
        assert isinstance(report, VerificationReport)
        assert report.document is not None
        assert report.document.status == "verified"

    at(use)


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        ("document_expired", "document_expired"),
        ("photo_blurred", "document_unverified_other"),
        ("consent_declined", "consent_declined"),
        ("failed", "selfie_manipulated"),
        ("expired", "abandoned"),
    ],
)
def test_a_failed_check_returns_to_requires_input(outcome: str, code: str) -> None:
    """With Stripe's reason, and a link for another submission."""

    def use(shop: Shop) -> None:
        session = shop.finish(outcome)
        assert session.status == "requires_input"
        assert session.last_error is not None
        assert session.last_error.code == code
        assert session.url is not None
        shop.walker.finish(session.url, "verified")
        assert shop.read(session.id).status == "verified"

    at(use)


def test_a_later_decision_is_processing_first() -> None:
    """One retrieval sees `processing`, the next the decision."""

    def use(shop: Shop) -> None:
        session = shop.finish("later")
        assert (session.status, session.url) == ("processing", None)
        assert shop.read(session.id).status == "verified"

    at(use)


def test_a_cancelled_session_stays_cancelled() -> None:
    """On the page or over the API; its page has no form any more."""

    def use(shop: Shop) -> None:
        assert shop.finish("cancelled").status == "canceled"
        made = shop.create()
        assert made.url is not None
        assert shop.sessions.cancel(made.id).status == "canceled"
        assert "<form" not in shop.walker.page(made.url).text
        assert shop.read(made.id).status == "canceled"

    at(use)


def test_a_session_can_be_redacted() -> None:
    """A verified one, like those of the list."""

    def use(shop: Shop) -> None:
        redacted = shop.sessions.redact(shop.finish("verified").id)
        assert redacted.redaction is not None
        assert redacted.redaction.status == "processing"

    at(use)


def test_the_buyer_is_redirected_to_the_return_url_unchanged() -> None:
    """Stripe adds nothing to it; without one, or with an expired link, the page stays."""

    def use(shop: Shop) -> None:
        for outcome in ("verified", "failed", "consent_declined", "later", "cancelled"):
            made = shop.create()
            assert made.url is not None
            assert shop.walker.finish(made.url, outcome) == RETURN_URL
        for outcome in ("never", "expired"):
            made = shop.create()
            assert made.url is not None
            assert shop.walker.finish(made.url, outcome) is None
        bare = shop.sessions.create({"type": "document"})
        assert bare.url is not None
        assert shop.walker.finish(bare.url, "verified") is None

    at(use)


def test_an_idempotency_key_makes_one_session() -> None:
    """The same request gets the same response; another one is refused, as by Stripe."""

    def use(shop: Shop) -> None:
        first, again = (
            shop.sessions.create(ASKED, {"idempotency_key": "chk_1.1"}) for _ in range(2)
        )
        assert again.id == first.id
        assert again.last_response is not None
        assert again.last_response.headers["idempotent-replayed"] == "true"
        other = shop.sessions.create(ASKED, {"idempotency_key": "chk_1.2"})
        assert other.id != first.id
        changed: Any = ASKED | {"client_reference_id": "x"}
        with pytest.raises(sdk.IdempotencyError):
            shop.sessions.create(changed, {"idempotency_key": "chk_1.1"})

    at(use)


@pytest.mark.parametrize(
    ("form", "code", "param"),
    [
        ({}, "parameter_missing", "type"),
        ({"type": "face"}, None, "type"),
        ({"type": "document", "reference": "x"}, "parameter_unknown", "reference"),
        ({"type": "document", "return_url": "shop"}, "url_invalid", "return_url"),
        ({"type": "document", "return_url": "http://["}, "url_invalid", "return_url"),
        ({"type": "document", "client_reference_id": ""}, "parameter_invalid_empty", None),
        ({"verification_flow": "vf_unknown"}, "resource_missing", "verification_flow"),
        ({"type": "document", "options[document][require_selfie]": "true"}, None, None),
        ({"type": "document", "options[document][require_live_capture]": "yes"}, None, None),
    ],
)
def test_members_unknown_to_stripe_are_refused(
    form: Mapping[str, str], code: str | None, param: str | None
) -> None:
    """400 in Stripe's shape, and no session."""

    def use(shop: Shop) -> None:
        reply = shop.post(form)
        assert reply.status_code == 400
        error = reply.json()["error"]
        assert error["type"] == "invalid_request_error"
        assert code is None or error["code"] == code
        assert param is None or error["param"] == param

    at(use)


def test_json_is_no_form() -> None:
    """Stripe takes forms only."""

    def use(shop: Shop) -> None:
        reply = shop.post({}, content_type="application/json")
        assert reply.status_code == 400

    at(use)


def test_a_flow_of_the_dashboard_replaces_a_type() -> None:
    """The session names it."""

    def use(shop: Shop) -> None:
        made = shop.sessions.create({"verification_flow": VERIFICATION_FLOW})
        assert made.verification_flow == VERIFICATION_FLOW

    at(use)
