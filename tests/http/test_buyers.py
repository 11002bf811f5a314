"""Verifying buyers and personal_columns their status: the sandbox, and what live keys get."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import httpx2
import pytest

from tests.http.backstage import Operator, Vendor
from tests.http.calls import message, refusal, verify
from tests.sandbox.calls import advance

TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
CBID = re.compile(r"cbid_test_[0-9a-hjkmnp-tv-z]{26}")
UNPROVEN = {
    "test_pending": ("pending", None),
    "test_requires_input": ("requires_input", ["identity_requires_input"]),
    "test_failed": ("failed", ["identity_failed"]),
    "test_underage": ("failed", ["age_below_minimum"]),
    "test_zip_mismatch": ("failed", ["zip_mismatch"]),
}
"""Session ids of the sandbox that come to no verification: status and reasons."""
PROVEN = {"vs_anything": "verified", "test_expired": "expired", "test_revoked": "revoked"}
"""Session ids of the sandbox with a verification behind them, now or before."""
PLAYED = [*UNPROVEN, *PROVEN]


def status(client: httpx2.Client, cbid: str) -> httpx2.Response:
    return client.get(f"/v1/buyers/{cbid}/status")


def moment(text: str) -> datetime:
    assert TIMESTAMP.fullmatch(text)
    return datetime.fromisoformat(text)


def test_a_verified_buyer_gets_a_cbid_an_expiry_and_the_promise_of_instant_purchases(
    client: httpx2.Client,
) -> None:
    answer = verify(client, provider_identity_session_id="vs_1", shipping_zip="94111")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert list(body) == ["cbid", "status", "expires_at", "message"]
    assert CBID.fullmatch(body["cbid"])
    assert body["status"] == "verified"
    assert moment(body["expires_at"]) > datetime.now(UTC)
    assert "later purchases at integrated vendors will be instant" in body["message"].lower()


def test_the_status_of_a_verified_buyer_has_exactly_the_fields_of_the_interface(
    client: httpx2.Client,
) -> None:
    verified = verify(client, provider_identity_session_id="vs_1").json()
    answer = status(client, verified["cbid"])
    assert answer.status_code == 200
    body = answer.json()
    assert list(body) == ["cbid", "status", "verified_at", "expires_at"]
    assert (body["cbid"], body["status"]) == (verified["cbid"], "verified")
    assert body["expires_at"] == verified["expires_at"]
    assert moment(body["verified_at"]) <= datetime.now(UTC) < moment(body["expires_at"])


@pytest.mark.parametrize(
    ("session_id", "state", "reasons"), [(s, *played) for s, played in UNPROVEN.items()]
)
def test_the_sandbox_simulates_every_outcome_that_proves_nothing(
    client: httpx2.Client, session_id: str, state: str, reasons: list[str] | None
) -> None:
    answer = verify(client, provider_identity_session_id=session_id, shipping_zip="94111")
    assert answer.status_code == 200
    body = answer.json()
    assert (body["status"], body["expires_at"], body.get("reasons")) == (state, None, reasons)
    assert CBID.fullmatch(body["cbid"])
    assert body["message"]
    found = status(client, body["cbid"]).json()
    assert found == {
        "cbid": body["cbid"],
        "status": state,
        "verified_at": None,
        "expires_at": None,
        **({} if reasons is None else {"reasons": reasons}),
    }


def test_the_sandbox_simulates_a_buyer_with_an_expired_verification(client: httpx2.Client) -> None:
    body = verify(client, provider_identity_session_id="test_expired").json()
    assert body["status"] == "expired"
    assert moment(body["expires_at"]) < datetime.now(UTC)
    answer = status(client, body["cbid"]).json()
    assert answer["status"] == "expired"
    assert moment(answer["verified_at"]) < moment(answer["expires_at"]) < datetime.now(UTC)


def test_the_sandbox_simulates_a_revoked_buyer(client: httpx2.Client) -> None:
    body = verify(client, provider_identity_session_id="test_revoked").json()
    assert body["status"] == "revoked"
    assert status(client, body["cbid"]).json()["status"] == "revoked"


def test_the_sandbox_simulates_an_unknown_session(
    client: httpx2.Client, operator: Operator, account: str
) -> None:
    answer = verify(client, provider_identity_session_id="test_session_not_found")
    assert refusal(answer) == (422, "provider_session_not_found")
    assert _written(operator, account) == 0


def test_the_sandbox_simulates_a_failing_provider(
    client: httpx2.Client, operator: Operator, account: str
) -> None:
    answer = verify(client, provider_identity_session_id="test_provider_unavailable")
    assert refusal(answer) == (503, "provider_unavailable")
    assert int(answer.headers["Retry-After"]) >= 1
    assert _written(operator, account) == 0


def test_no_field_but_test_mode_is_required_in_the_sandbox(client: httpx2.Client) -> None:
    answer = client.post("/v1/buyers/verify", json={"test_mode": True})
    assert answer.status_code == 200
    assert answer.json()["status"] == "verified"


def test_the_sandbox_gives_the_same_bytes_again(client: httpx2.Client) -> None:
    """The first call fixes the times: when the clock has moved on, they have not."""
    cases = [{"provider_identity_session_id": s, "shipping_zip": "94111"} for s in PLAYED]
    first = [verify(client, **case).content for case in cases]
    cbids = [httpx2.Response(200, content=content).json()["cbid"] for content in first]
    found = [status(client, cbid).content for cbid in cbids]
    advance(client, seconds=1)
    assert [verify(client, **case).content for case in cases] == first
    assert [status(client, cbid).content for cbid in cbids] == found


def test_a_cbid_is_a_function_of_account_session_and_zip(
    vendor: Vendor, other_vendor: Vendor
) -> None:
    cases = [
        {"provider_identity_session_id": "vs_1", "shipping_zip": "94111"},
        {"provider_identity_session_id": "vs_2", "shipping_zip": "94111"},
        {"provider_identity_session_id": "vs_1", "shipping_zip": "94112"},
        {"provider_identity_session_id": "vs_1"},
        {"shipping_zip": "94111"},
        {},
    ]
    found = [
        verify(owner.test, **case).json()["cbid"]
        for owner in (vendor, other_vendor)
        for case in cases
    ]
    assert len(set(found)) == 2 * len(cases)
    again = [verify(vendor.test, **case).json()["cbid"] for case in cases]
    assert again == found[: len(cases)]


def test_an_unknown_buyer_is_not_found_in_these_words(vendor: Vendor) -> None:
    for cbid in ("cbid_test_00000000000000000000000000", "cbid_1", "nonsense", "%00"):
        for mode in ("test", "live"):
            answer = status(vendor.client(mode), cbid)
            assert refusal(answer) == (404, "not_found")
            assert "not found" in message(answer)


@pytest.mark.parametrize("body", [{}, {"test_mode": False}, {"test_mode": None}])
def test_a_test_key_needs_test_mode(client: httpx2.Client, body: dict[str, object]) -> None:
    assert refusal(client.post("/v1/buyers/verify", json=body)) == (403, "mode_mismatch")


def test_a_live_key_refuses_test_mode(vendor: Vendor) -> None:
    """A checkout can never mistake the sandbox for the real thing."""
    full = {"provider_identity_session_id": "vs_1", "shipping_zip": "94111"}
    for fields in ({}, full):
        assert refusal(verify(vendor.live, **fields)) == (403, "mode_mismatch")


@pytest.mark.parametrize("mode", [{}, {"test_mode": False}, {"test_mode": None}])
def test_live_verification_needs_a_session_and_a_zip(
    vendor: Vendor, mode: dict[str, object]
) -> None:
    given = {"provider_identity_session_id": "vs_1", "shipping_zip": "94111"}
    for missing in given:
        body = mode | {name: value for name, value in given.items() if name != missing}
        answer = vendor.live.post("/v1/buyers/verify", json=body)
        assert refusal(answer) == (400, "invalid_request")
        assert f"$.{missing}" in message(answer)


def test_live_verification_without_a_provider_is_not_configured(
    vendor: Vendor, operator: Operator
) -> None:
    body = {"provider_identity_session_id": "vs_1", "shipping_zip": "94111-1234"}
    answer = vendor.live.post("/v1/buyers/verify", json=body)
    assert refusal(answer) == (409, "verification_not_configured")
    assert _written(operator, vendor.account_id) == 0


@pytest.mark.parametrize("code", ["94111", "00501", "94111-1234"])
def test_a_zip_has_five_digits_or_nine(client: httpx2.Client, code: str) -> None:
    assert verify(client, shipping_zip=code).status_code == 200


@pytest.mark.parametrize(
    "code",
    [
        "",
        "9411",
        "941111",
        "94111-",
        "94111-123",
        "94111 1234",
        " 94111",
        "94111\n",
        "٩٤١١١",
        "A1B2C",
    ],
)
def test_an_invalid_zip_is_refused(client: httpx2.Client, code: str) -> None:
    answer = verify(client, shipping_zip=code)
    assert refusal(answer) == (400, "invalid_request")
    assert "$.shipping_zip" in message(answer)


@pytest.mark.parametrize("name", ["provider_identity_session_id", "subject_reference"])
def test_identifiers_of_others_have_1_to_255_characters(client: httpx2.Client, name: str) -> None:
    assert verify(client, **{name: "木" * 255}).status_code == 200
    for text in ("", "x" * 256):
        answer = verify(client, **{name: text})
        assert refusal(answer) == (400, "invalid_request")
        assert f"$.{name}" in message(answer)


def test_the_sixth_zip_for_one_buyer_in_a_day_is_refused(client: httpx2.Client) -> None:
    """A ZIP must not become an oracle for where someone lives."""
    answers = [_try_zip(client, f"9411{n}") for n in range(6)]
    assert [answer.status_code for answer in answers] == [200] * 5 + [429]
    assert refusal(answers[5]) == (429, "rate_limited")
    assert 1 <= int(answers[5].headers["Retry-After"]) <= timedelta(days=1).total_seconds()


def test_a_zip_tried_before_is_no_new_guess(client: httpx2.Client) -> None:
    """The same five digits count once, however they are written."""
    for n in range(5):
        assert _try_zip(client, f"9411{n}").status_code == 200
    for code in ("94110", "94114", "94112-0001"):
        assert _try_zip(client, code).status_code == 200
    assert refusal(_try_zip(client, "94119")) == (429, "rate_limited")


def test_guesses_count_for_one_buyer_and_one_account(vendor: Vendor, other_vendor: Vendor) -> None:
    for n in range(5):
        _try_zip(vendor.test, f"9411{n}")
    assert refusal(_try_zip(vendor.test, "94119")) == (429, "rate_limited")
    assert _try_zip(vendor.test, "94119", session_id="vs_another").status_code == 200
    assert _try_zip(other_vendor.test, "94119").status_code == 200


def test_a_refused_guess_reveals_nothing_and_writes_nothing(
    client: httpx2.Client, operator: Operator, account: str
) -> None:
    for n in range(5):
        _try_zip(client, f"9411{n}", session_id="test_zip_mismatch")
    before = _written(operator, account)
    answer = _try_zip(client, "94119", session_id="test_zip_mismatch")
    assert refusal(answer) == (429, "rate_limited")
    assert _written(operator, account) == before == 5


def test_a_day_later_another_zip_may_be_tried(
    client: httpx2.Client, operator: Operator, account: str
) -> None:
    for n in range(5):
        _try_zip(client, f"9411{n}")
    day_ms = 24 * 3600 * 1000
    moved = operator.execute(
        "UPDATE zip_attempts SET at = at - :day WHERE account_id = :account",
        day=day_ms,
        account=account,
    )
    assert moved == 5
    assert _try_zip(client, "94119").status_code == 200


def _try_zip(
    client: httpx2.Client, code: str, session_id: str = "vs_of_one_buyer"
) -> httpx2.Response:
    return verify(client, provider_identity_session_id=session_id, shipping_zip=code)


def _written(operator: Operator, account_id: str) -> int:
    """How many buyers the account has; each has one verification behind it."""
    (count,) = operator.rows(
        "SELECT (SELECT count(*) FROM buyers WHERE account_id = :a) AS buyers,"
        " (SELECT count(*) FROM verifications WHERE account_id = :a) AS verifications",
        a=account_id,
    )
    assert count["buyers"] == count["verifications"]
    return int(count["buyers"])
