"""Idempotency keys: one effect, and the first answer again."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass

import httpx2
import pytest

from tests.http.backstage import Operator, Vendor, make_client
from tests.http.calls import acknowledge, refusal
from tests.support.service import Server

LINES = ["A", "B", "C", "D"]


@dataclass(frozen=True)
class Act:
    """Something that has an effect, in two variants."""

    name: str
    path: str
    body: dict[str, object]
    other_body: dict[str, object]

    def __call__(
        self, client: httpx2.Client, key: str | None, *, other: bool = False
    ) -> httpx2.Response:
        headers = {} if key is None else {"Idempotency-Key": key}
        body = self.other_body if other else self.body
        return client.post(self.path, json=body, headers=headers)


ACTS = (
    Act(
        "acknowledge",
        "/v1/notices/ab1263/acknowledge",
        {"initials_per_line": LINES},
        {"initials_per_line": LINES[::-1]},
    ),
    Act(
        "verify",
        "/v1/buyers/verify",
        {"test_mode": True},
        {"test_mode": True, "shipping_zip": "94111"},
    ),
)


@pytest.fixture(params=ACTS, ids=lambda act: act.name)
def act(request: pytest.FixtureRequest) -> Act:
    """Give each operation that has an effect."""
    made: Act = request.param
    return made


def acknowledgments(client: httpx2.Client) -> int:
    return len(client.get("/v1/acknowledgments").json()["data"])


def test_the_first_response_is_repeated_byte_for_byte(client: httpx2.Client, act: Act) -> None:
    first = act(client, "k1")
    assert first.status_code == 200, first.text
    assert "Idempotent-Replayed" not in first.headers
    for _ in range(2):
        again = act(client, "k1")
        assert (again.status_code, again.content) == (200, first.content)
        assert again.headers["Idempotent-Replayed"] == "true"
        for name in ("Content-Type", "Cache-Control"):
            assert again.headers[name] == first.headers[name]


def test_a_replay_has_no_second_effect(client: httpx2.Client) -> None:
    for _ in range(3):
        acknowledge(client, initials_per_line=LINES, headers={"Idempotency-Key": "k1"})
    assert acknowledgments(client) == 1


def test_without_a_key_every_call_has_its_effect(client: httpx2.Client) -> None:
    for _ in range(2):
        acknowledge(client, initials_per_line=LINES)
    assert acknowledgments(client) == 2


def test_another_body_under_the_same_key_is_refused(client: httpx2.Client, act: Act) -> None:
    act(client, "k1")
    assert refusal(act(client, "k1", other=True)) == (422, "idempotency_key_reused")
    assert act(client, "k2", other=True).status_code == 200


def test_a_different_body_has_no_effect_and_spoils_nothing(client: httpx2.Client) -> None:
    headers = {"Idempotency-Key": "k1"}
    first = acknowledge(client, initials_per_line=LINES, headers=headers)
    acknowledge(client, initials_per_line=LINES[::-1], headers=headers)
    assert acknowledgments(client) == 1
    again = acknowledge(client, initials_per_line=LINES, headers=headers)
    assert again.content == first.content


@pytest.mark.both_engines
def test_a_request_that_is_still_running_is_in_progress(
    client: httpx2.Client, operator: Operator, act: Act
) -> None:
    """Of two concurrent requests, the second is refused, and the first has its effect."""
    act(client, None)
    with ThreadPoolExecutor(2) as threads:
        with operator.acts_held():
            calls = [threads.submit(act, client, "k1") for _ in range(2)]
            done, running = wait(calls, return_when=FIRST_COMPLETED)
            (second,) = (call.result() for call in done)
            assert refusal(second) == (409, "idempotency_in_progress")
            assert int(second.headers["Retry-After"]) >= 1
            other_body = act(client, "k1", other=True)
            assert refusal(other_body) == (422, "idempotency_key_reused")
        (first,) = (call.result() for call in running)
    assert first.status_code == 200, first.text
    again = act(client, "k1")
    assert (again.content, again.headers["Idempotent-Replayed"]) == (first.content, "true")


def test_errors_are_not_kept(client: httpx2.Client) -> None:
    """They are judged again: a corrected request succeeds under the same key."""
    headers = {"Idempotency-Key": "k1"}
    refused = acknowledge(client, initials_per_line=LINES[1:], headers=headers)
    assert refusal(refused) == (422, "initials_count_mismatch")
    corrected = acknowledge(client, initials_per_line=LINES, headers=headers)
    assert corrected.status_code == 200
    assert "Idempotent-Replayed" not in corrected.headers


def test_an_unavailable_provider_is_asked_again(client: httpx2.Client) -> None:
    for _ in range(2):
        answer = client.post(
            "/v1/buyers/verify",
            json={"test_mode": True, "provider_identity_session_id": "test_provider_unavailable"},
            headers={"Idempotency-Key": "k1"},
        )
        assert refusal(answer) == (503, "provider_unavailable")
        assert "Idempotent-Replayed" not in answer.headers


def test_a_key_belongs_to_one_account(vendor: Vendor, other_vendor: Vendor, act: Act) -> None:
    first, second = act(vendor.test, "k1"), act(other_vendor.test, "k1")
    assert (first.status_code, second.status_code) == (200, 200)
    assert first.content != second.content
    assert "Idempotent-Replayed" not in second.headers


def test_a_key_belongs_to_one_mode(configured_vendor: Vendor) -> None:
    answers = [
        acknowledge(
            configured_vendor.client(mode),
            notice_id="three-lines",
            headers={"Idempotency-Key": "k1"},
        )
        for mode in ("test", "live")
    ]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json()["ack_id"] != answers[1].json()["ack_id"]


def test_a_key_belongs_to_one_address(client: httpx2.Client) -> None:
    answers = [act(client, "k1") for act in ACTS]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert [next(iter(answer.json())) for answer in answers] == ["ack_id", "cbid"]


def test_all_keys_of_an_account_share_its_idempotency_keys(
    server: Server, operator: Operator, account: str, act: Act
) -> None:
    """A retry may come after the API key was rotated."""
    tokens = [key.token for key in operator.keys(account, [("test", None), ("test", None)])]
    contents = []
    for token in tokens:
        with make_client(server, token) as client:
            contents.append(act(client, "k1").content)
    assert contents[0] == contents[1]


def test_an_answer_is_forgotten_after_24_hours(
    client: httpx2.Client, operator: Operator, account: str
) -> None:
    headers = {"Idempotency-Key": "k1"}
    day_ms = 24 * 3600 * 1000

    def age(milliseconds: int) -> None:
        moved = operator.execute(
            "UPDATE idempotency_keys SET created_at = created_at - :ms,"
            " expires_at = expires_at - :ms WHERE account_id = :account",
            ms=milliseconds,
            account=account,
        )
        assert moved == 1
        operator.execute(
            "UPDATE kept_slots SET expires_at = expires_at - :ms WHERE expires_at - :ms IN"
            " (SELECT expires_at FROM idempotency_keys WHERE account_id = :account)",
            ms=milliseconds,
            account=account,
        )

    first = acknowledge(client, initials_per_line=LINES, headers=headers)
    age(day_ms - 60_000)
    kept = acknowledge(client, initials_per_line=LINES, headers=headers)
    assert kept.content == first.content
    age(60_000)
    later = acknowledge(client, initials_per_line=LINES[::-1], headers=headers)
    assert later.status_code == 200, later.text
    assert "Idempotent-Replayed" not in later.headers
    assert acknowledgments(client) == 2
    again = acknowledge(client, initials_per_line=LINES[::-1], headers=headers)
    assert again.content == later.content


def test_kept_answers_and_keys_are_not_readable_in_the_database(
    client: httpx2.Client, operator: Operator, account: str, act: Act
) -> None:
    answer = act(client, "a-memorable-key")
    (row,) = operator.rows("SELECT * FROM idempotency_keys WHERE account_id = :a", a=account)
    stored = b"".join(
        bytes(value) for value in row.values() if isinstance(value, bytes | memoryview)
    )
    identifier = next(iter(answer.json().values()))
    assert identifier.encode() not in stored
    assert b"memorable" not in stored
    assert len(stored) > len(answer.content)


@pytest.mark.parametrize("key", ["", "two words", "x" * 256, "tab\tkey", '""'])
def test_a_key_has_1_to_255_visible_characters(client: httpx2.Client, act: Act, key: str) -> None:
    answer = act(client, key)
    assert refusal(answer) == (400, "invalid_request")
    assert "Idempotency-Key" in answer.json()["error"]["message"]


@pytest.mark.parametrize("key", ["k", "x" * 255, "8e03978e-40d5-43dd-bc93-6894a57f9324", "~!{}"])
def test_any_visible_characters_make_a_key(client: httpx2.Client, act: Act, key: str) -> None:
    first = act(client, key)
    assert first.status_code == 200, first.text
    assert act(client, key).content == first.content


def test_a_quoted_key_is_the_same_key(client: httpx2.Client, act: Act) -> None:
    """The header of the standard in the making is a quoted string."""
    assert act(client, '"k1"').content == act(client, "k1").content
