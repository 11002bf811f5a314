"""The simulated Stripe Identity, judged by Stripe's own SDK."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import pytest
import stripe as sdk
from stripe.identity import VerificationReport, VerificationSession

from countersign.identity.stripe import SESSION_ID, Stripe
from countersign_simulators import stripe as simulated
from countersign_simulators.base import Request
from countersign_simulators.server import serve
from countersign_simulators.stripe_sessions import session_id
from tests.identity.asking import FixedClock
from tests.simulators import published
from tests.simulators.published import STRIPE_ERROR_CODES

T = TypeVar("T")
EXPAND: Final = [
    "verified_outputs.dob",
    "last_verification_report",
    "last_verification_report.document.expiration_date",
]


def with_sdk(use: Callable[[sdk.StripeClient], T], *, key: str = simulated.SENSITIVE_KEY) -> T:
    """The result of Stripe's own client with the simulator, over a real socket."""

    async def run() -> T:
        async with serve(simulated.Stripe(FixedClock().now)) as served:
            client = sdk.StripeClient(
                key,
                base_addresses={"api": served.url},
                http_client=sdk.RequestsClient(timeout=20),
                max_network_retries=0,
            )
            return await asyncio.to_thread(use, client)

    return asyncio.run(run())


def retrieved(
    name: str, expand: list[str], *, key: str = simulated.SENSITIVE_KEY
) -> VerificationSession:
    return with_sdk(
        lambda client: client.v1.identity.verification_sessions.retrieve(
            session_id(name), {"expand": expand}
        ),
        key=key,
    )


def members(model: type, path: str = "") -> Iterator[str]:
    """The dotted paths of everything that the SDK describes."""
    inner: dict[str, type] = getattr(model, "_inner_class_types", {}) or {
        name.lower(): kind for name, kind in vars(model).items() if isinstance(kind, type)
    }
    by_name = {name.replace("_", ""): kind for name, kind in inner.items()}
    for name in model.__annotations__:
        if name.startswith("_") or name == "OBJECT_NAME":
            continue
        kind = by_name.get(name.replace("_", ""))
        if name == "last_verification_report":
            kind = VerificationReport
        if kind is None:
            yield f"{path}{name}"
        else:
            yield from members(kind, f"{path}{name}.")


def test_every_field_that_stripes_sdk_describes_is_sorted() -> None:
    """A new field of a new SDK fails here until it is read or listed as ignored."""
    described = set(members(VerificationSession))
    assert len(described) > 70
    assert published.unsorted(described, Stripe.words.fields) == set()


def test_no_field_is_sorted_that_stripe_does_not_have() -> None:
    """A misspelt path would be a field that is never read."""
    described = set(members(VerificationSession))
    assert published.undescribed(described, Stripe.words.fields) == set()


def test_the_sdk_reads_a_verified_session() -> None:
    """With its indexed `expand[0]=…`, and with the types that it promises."""
    session = retrieved("Verified", EXPAND)
    assert session.status == "verified"
    outputs = session.verified_outputs
    assert outputs is not None
    assert outputs.dob is not None
    assert (outputs.dob.year, outputs.first_name) == (1987, "Zaphira")
    report = session.last_verification_report
    assert isinstance(report, VerificationReport)
    assert report.document is not None
    assert report.document.expiration_date is not None
    assert report.verification_session == session.id


def test_the_parent_alone_does_not_show_the_birth() -> None:
    """`verified_outputs` leaves `dob` out, and `last_verification_report` the expiry."""
    session = retrieved("Verified", ["verified_outputs", "last_verification_report"])
    assert session.verified_outputs is not None
    assert "dob" not in session.verified_outputs
    report = session.last_verification_report
    assert isinstance(report, VerificationReport)
    assert report.document is not None
    assert not {"expiration_date", "number", "dob"} & set(report.document.to_dict())


def test_nothing_is_expanded_unless_requested() -> None:
    """The report is its identifier, and the outputs are not there at all."""
    session = retrieved("Verified", [])
    assert "verified_outputs" not in session
    assert session.last_verification_report == session_id("Verified").replace("vs_", "vr_")


def test_the_sdk_meets_stripes_errors() -> None:
    """403 for a key without the permission, 404, 401 and 429, each as the SDK knows it."""
    with pytest.raises(sdk.PermissionError, match="To access sensitive verification results"):
        retrieved("Verified", EXPAND, key=simulated.SECRET_KEY)
    with pytest.raises(sdk.InvalidRequestError, match="No such VerificationSession") as missing:
        retrieved("NobodyHasThis", [])
    assert missing.value.code == "resource_missing"
    with pytest.raises(sdk.InvalidRequestError, match="similar object exists in test mode"):
        retrieved("OtherMode", [])
    with pytest.raises(sdk.InvalidRequestError, match="cannot be expanded"):
        retrieved("Verified", ["everything"])
    with pytest.raises(sdk.AuthenticationError, match="Invalid API Key"):
        retrieved("Verified", [], key="rk_live_of_somebody_else")
    with pytest.raises(sdk.RateLimitError):
        retrieved("LimitedForGood", [])


def test_a_test_key_sees_the_test_mode_only() -> None:
    """The two modes of an account are separate."""
    assert retrieved("OtherMode", [], key=simulated.TEST_KEY).livemode is False
    with pytest.raises(sdk.InvalidRequestError):
        retrieved("Verified", [], key=simulated.TEST_KEY)


def test_reports_and_lists_are_served_too() -> None:
    """A report by its own identifier, with and without its sensitive members, and pages.

    No filter is ignored: unsupported ones are refused.
    """

    def use(
        client: sdk.StripeClient,
    ) -> tuple[VerificationReport, VerificationReport, int, int, set[str]]:
        report_id = session_id("Verified").replace("vs_", "vr_")
        reports = client.v1.identity.verification_reports
        plain = reports.retrieve(report_id)
        full = reports.retrieve(report_id, {"expand": ["document.number"]})
        sessions = client.v1.identity.verification_sessions
        page = sessions.list()
        paged = len(list(sessions.list({"limit": 7}).auto_paging_iter()))
        canceled = {one.status for one in sessions.list({"status": "canceled"}).data}
        with pytest.raises(sdk.InvalidRequestError, match="unknown parameter"):
            sessions.list({"related_customer": "cus_1"})
        return plain, full, len(page.data), paged, canceled

    plain, full, listed, paged, canceled = with_sdk(use)
    assert plain.document is not None
    assert "number" not in plain.document
    assert full.document is not None
    assert str(full.document.number).startswith("Q7714093")
    assert listed == 10
    assert paged > 40
    assert canceled == {"canceled"}


def test_redacting_and_canceling_follow_stripes_rules() -> None:
    """A verified session can be redacted, a fresh one canceled, a processing one neither."""

    def use(client: sdk.StripeClient) -> tuple[str, str]:
        sessions = client.v1.identity.verification_sessions
        redacted = sessions.redact(session_id("Verified"))
        canceled = sessions.cancel(session_id("NotStarted"))
        with pytest.raises(sdk.InvalidRequestError):
            sessions.redact(session_id("Processing"))
        assert redacted.redaction is not None
        return redacted.redaction.status, canceled.status

    assert with_sdk(use) == ("processing", "canceled")


def test_the_parts_are_listed_as_promised() -> None:
    """Fixed identifiers that fit the pattern, no word twice but `verified`, personal strings."""
    sessions = simulated.Stripe(FixedClock().now).sessions
    later = simulated.Stripe(FixedClock(FixedClock().seconds + 86400 * 400).now).sessions
    assert [s.session_id for s in sessions] == [s.session_id for s in later]
    assert len({s.session_id for s in sessions}) == len(sessions)
    assert all(SESSION_ID.fullmatch(s.session_id) for s in sessions)
    words = Counter(s.scenario for s in sessions)
    assert [word for word, times in words.items() if times > 1] == ["verified"]
    assert {f"error_{code}" for code in STRIPE_ERROR_CODES} <= set(words)
    verified = [s for s in sessions if s.scenario == "verified"]
    assert len({s.shipping_zip for s in verified}) >= 3
    assert all(len(s.personal) >= 6 for s in verified)


def test_every_personal_string_is_really_in_the_session() -> None:
    """Except the date of birth, which Stripe writes in parts."""
    simulator = simulated.Stripe(FixedClock().now)
    wanted = ("verified_outputs.dob", "last_verification_report.document.number")
    for session in simulator.sessions:
        if session.scenario != "verified":
            continue
        query = tuple(("expand[]", path) for path in wanted)
        request = Request(
            method="GET",
            path=f"/v1/identity/verification_sessions/{session.session_id}",
            query=query,
            headers={"authorization": f"Bearer {simulated.SENSITIVE_KEY}"},
            body=b"",
        )
        simulator.answer(request)
        body = simulator.answer(request).body.decode()
        born = json.loads(body)["verified_outputs"]["dob"]
        written = "{year:04}-{month:02}-{day:02}".format(**born)
        assert all(text in body or text == written for text in session.personal)


@pytest.mark.parametrize(
    "request_",
    [
        ("GET", "/v1/identity/verification_sessions/"),
        ("GET", "/v1/customers"),
        ("PUT", "/v1/identity/verification_sessions"),
        ("POST", "/v1/identity/verification_sessions/x/redact"),
        ("GET", "/"),
        ("GET", "*"),
    ],
)
def test_any_request_has_an_answer_in_stripes_shape(request_: tuple[str, str]) -> None:
    """An unknown path is Stripe's 404; without a key it is its 401."""
    simulator = simulated.Stripe(FixedClock().now)
    for key, status in ((simulated.SENSITIVE_KEY, 404), ("", 401)):
        headers = {"authorization": f"Bearer {key}"} if key else {}
        method, path = request_
        reply = simulator.answer(
            Request(method=method, path=path, query=(), headers=headers, body=b"")
        )
        assert reply.status == status
        error: dict[str, Any] = json.loads(reply.body)["error"]
        assert error["type"] == "invalid_request_error"
