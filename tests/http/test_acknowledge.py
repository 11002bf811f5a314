"""Acknowledging a notice: the rules over initials, versions and bodies, and their order."""

from __future__ import annotations

import re

import httpx2
import pytest

from countersign.core.access.key import Scope
from countersign.core.acknowledgments.model import Submission
from countersign.core.acknowledgments.schemas import AcknowledgmentRequest
from tests.http.backstage import Vendor, make_client, notice_file
from tests.http.calls import (
    SHIPPED_NOTICE,
    acknowledge,
    acknowledged,
    initials,
    message,
    refusal,
)
from tests.http.conftest import LIVE_NOTICE, Configured

BLANKS = {
    "nothing": "",
    "spaces": "  ",
    "tab and line break": "\t\n",
    "no-break space": "\u00a0",
    "ideographic space": "\u3000",
    "control characters": "\u0001\u009f",
    "zero width space": "\u200b",
    "word joiner": "\u2060",
    "right-to-left override": "\u202e",
    "soft hyphen": "\u00ad",
    "byte order mark": "\ufeff",
    "braille blank": "\u2800",
    "hangul filler": "\u3164",
    "variation selector": "\ufe0f",
    "tag characters": "\U000e0041",
    "combining mark alone": "\u0301",
    "spaces and combining marks": " \u0301 \u0302",
}
VISIBLE = ["J", "J.D.", "é", "e\u0301", "木", "Ж", "👍", "-", "0", "\u0915\u094d", "a\u200bb"]


def test_success_is_200_with_the_fields_of_the_interface_and_a_receipt(
    client: httpx2.Client,
) -> None:
    answer = acknowledge(client)
    assert answer.status_code == 200
    receipt = answer.json()
    assert {"ack_id", "notice_id", "notice_version", "receipt"} <= receipt.keys()
    assert re.fullmatch(r"ack_[0-9a-hjkmnp-tv-z]{26}", receipt["ack_id"])
    notice = client.get(f"/v1/notices/{SHIPPED_NOTICE}").json()
    assert receipt["notice_id"] == SHIPPED_NOTICE
    assert receipt["notice_version"] == notice["version"]


def test_every_acknowledgment_has_an_identifier_of_its_own(client: httpx2.Client) -> None:
    found = {acknowledge(client, session_id="cs_1").json()["ack_id"] for _ in range(3)}
    assert len(found) == 3


@pytest.mark.parametrize("difference", [-1, 1])
def test_another_number_of_initials_than_bullets_is_refused_with_both_numbers(
    client: httpx2.Client, difference: int
) -> None:
    lines = len(initials(client))
    answer = acknowledge(client, initials_per_line=["JD"] * (lines + difference))
    assert refusal(answer) == (422, "initials_count_mismatch")
    numbers = re.findall(r"\d+", message(answer))
    assert str(lines) in numbers
    assert str(lines + difference) in numbers


@pytest.mark.parametrize("number", [0, 1000])
def test_the_number_of_lines_is_judged_by_the_count_rule_alone(
    client: httpx2.Client, number: int
) -> None:
    answer = acknowledge(client, initials_per_line=["JD"] * number)
    assert refusal(answer) == (422, "initials_count_mismatch")


@pytest.mark.parametrize("blank", BLANKS.values(), ids=BLANKS.keys())
def test_blank_initials_are_refused(client: httpx2.Client, blank: str) -> None:
    lines = ["JD", blank, "JD", "JD"]
    assert refusal(acknowledge(client, initials_per_line=lines)) == (422, "empty_initials")


def test_the_refusal_of_blanks_names_every_blank_line(client: httpx2.Client) -> None:
    answer = acknowledge(client, initials_per_line=["JD", " ", "JD", "\u200b"])
    assert re.findall(r"\d+", message(answer)) == ["2", "4"]


@pytest.mark.parametrize("typed", VISIBLE)
def test_initials_that_can_be_seen_are_accepted(client: httpx2.Client, typed: str) -> None:
    stored = acknowledged(client, initials_per_line=[typed] * 4)
    assert stored["initials_per_line"] == [typed] * 4


def test_initials_are_kept_exactly_as_typed(client: httpx2.Client) -> None:
    """Neither trimmed, nor composed, nor changed in case."""
    typed = [" j.d. ", "e\u0301", "\u00e9\ufe0f", "ﬀ\u200d"]
    assert acknowledged(client, initials_per_line=typed)["initials_per_line"] == typed


def test_initials_have_at_most_32_characters_each(client: httpx2.Client) -> None:
    """Characters are code points, in any script."""
    longest = ["J" * 32, "木" * 32, "👍" * 32, "é" * 32]
    assert acknowledged(client, initials_per_line=longest)["initials_per_line"] == longest
    answer = acknowledge(client, initials_per_line=["JD", "JD", "J" * 33, "JD"])
    assert refusal(answer) == (400, "invalid_request")
    assert "$.initials_per_line[2]" in message(answer)


def test_session_and_cbid_are_opaque_up_to_255_characters(client: httpx2.Client) -> None:
    odd = "  cart ☃ 42/\\\"'\n"
    stored = acknowledged(client, session_id=odd, cbid="木" * 255)
    assert (stored["session_id"], stored["cbid"]) == (odd, "木" * 255)
    for name, answer in (
        ("session_id", acknowledge(client, session_id="x" * 256)),
        ("cbid", acknowledge(client, cbid="x" * 256)),
    ):
        assert refusal(answer) == (400, "invalid_request")
        assert f"$.{name}" in message(answer)


def test_an_unknown_cbid_does_not_fail_the_acknowledgment(client: httpx2.Client) -> None:
    assert acknowledged(client, cbid="cbid_of_nobody")["cbid"] == "cbid_of_nobody"


def test_the_shown_version_is_accepted_when_it_is_in_force(
    client: httpx2.Client,
) -> None:
    version = client.get(f"/v1/notices/{SHIPPED_NOTICE}").json()["version"]
    assert acknowledged(client, notice_version=version)["notice_version_source"] == "asserted"


def test_without_a_version_the_one_in_force_is_assumed(client: httpx2.Client) -> None:
    assert acknowledged(client)["notice_version_source"] == "assumed"


@pytest.mark.parametrize("shown", ["1", "9-later", "3-draft", "no such version", ""])
def test_another_version_than_the_one_in_force_is_a_mismatch(
    configured_vendor: Vendor, shown: str
) -> None:
    answer = acknowledge(configured_vendor.live, notice_id="amended", notice_version=shown)
    assert refusal(answer) == (409, "notice_version_mismatch")
    assert "2" in message(answer)


def test_an_unreviewed_notice_cannot_be_acknowledged_live(vendor: Vendor) -> None:
    answer = acknowledge(vendor.live, initials_per_line=["JD"] * 4)
    assert refusal(answer) == (409, "notice_not_reviewed")


@pytest.mark.parametrize("notice_id", ["scheduled", "withdrawn", "enjoined"])
@pytest.mark.parametrize("mode", ["test", "live"])
def test_a_notice_that_is_not_in_force_cannot_be_acknowledged(
    configured_vendor: Vendor, mode: str, notice_id: str
) -> None:
    client = configured_vendor.client(mode)
    answer = acknowledge(client, notice_id=notice_id, initials_per_line=["A", "B", "C"])
    assert refusal(answer) == (409, "notice_not_in_force")


def test_an_unknown_notice_cannot_be_acknowledged(vendor: Vendor) -> None:
    for client in (vendor.test, vendor.live):
        answer = acknowledge(client, notice_id="ab9999", initials_per_line=["JD"])
        assert refusal(answer) == (404, "notice_not_found")


def test_a_request_wrong_in_every_way_is_answered_by_the_first_rule(
    configured: Configured, configured_vendor: Vendor
) -> None:
    """Route, method, key, scope, rate, size, media type, idempotency, notice, body, initials.

    Each step corrects only the reason of the last refusal.
    """
    operator, account = configured.operator, configured_vendor.account_id
    scopeless, spent, test, live = operator.keys(
        account, [("test", [Scope.NOTICES_READ]), ("test", None), ("test", None), ("live", None)]
    )
    version = configured_vendor.test.get("/v1/notices/amended").json()["version"]
    with make_client(configured.server, spent.token) as client:
        while client.get("/v1/notices").status_code != 429:
            pass

    steps: list[tuple[str, dict[str, object]]] = [
        ("not_found", {}),
        ("method_not_allowed", {"path": "/v1/notices/{}/acknowledge"}),
        ("unauthorized", {"method": "POST"}),
        ("invalid_api_key", {"key": "csign_sk_test_mistyped"}),
        ("forbidden", {"key": scopeless.token}),
        ("rate_limited", {"key": spent.token}),
        ("payload_too_large", {"key": test.token}),
        ("unsupported_media_type", {"body": b"{"}),
        ("invalid_request", {"type": "application/json"}),
        ("notice_not_found", {"idempotency": "a-key"}),
        ("notice_not_reviewed", {"notice": SHIPPED_NOTICE, "key": live.token}),
        ("notice_not_in_force", {"notice": "withdrawn"}),
        ("invalid_request", {"notice": "amended", "key": test.token}),
        ("notice_version_mismatch", {"body": b'{"initials_per_line":[""],"notice_version":"0"}'}),
        (
            "initials_count_mismatch",
            {"body": b'{"initials_per_line":[""],"notice_version":"%s"}' % version.encode()},
        ),
        ("empty_initials", {"body": b'{"initials_per_line":["A","","C","D"]}'}),
    ]
    request: dict[str, object] = {
        "path": "/v1/notice/{}/acknowledged",
        "method": "DELETE",
        "key": None,
        "notice": "unknown",
        "type": "text/plain",
        "body": b"{" * 70_000,
        "idempotency": "two words",
    }
    with make_client(configured.server) as client:
        for code, corrected in steps:
            request |= corrected
            answer = _send(client, request)
            assert refusal(answer)[1] == code, corrected
        assert _send(
            client, request | {"body": b'{"initials_per_line":["A","B","C","D"]}'}
        ).is_success


@pytest.mark.both_engines
def test_idempotency_is_judged_before_the_notice(
    configured: Configured, configured_vendor: Vendor
) -> None:
    """A retry gets its answer although the notice is out of force by now."""
    client, retry = configured_vendor.test, {"Idempotency-Key": "kept"}
    body = {"notice_id": "passing", "initials_per_line": ["A", "B", "C"], "headers": retry}
    configured.operator.publish(notice_file("passing", "1"))
    first = acknowledge(client, **body)  # type: ignore[arg-type]
    configured.operator.withdraw("passing", "1")
    again = acknowledge(client, **body)  # type: ignore[arg-type]
    assert (again.content, again.headers["Idempotent-Replayed"]) == (first.content, "true")
    for other in (["A", "B", "Z"], ["A"], "no list"):
        body["initials_per_line"] = other
        reused = acknowledge(client, **body)  # type: ignore[arg-type]
        assert refusal(reused) == (422, "idempotency_key_reused")
    unused = acknowledge(client, **body | {"headers": {"Idempotency-Key": "unused"}})  # type: ignore[arg-type]
    assert refusal(unused) == (409, "notice_not_in_force")
    assert len(client.get("/v1/acknowledgments").json()["data"]) == 1


def test_nothing_is_stored_for_a_refused_acknowledgment(client: httpx2.Client) -> None:
    for lines in (["JD"], ["JD", "", "JD", "JD"]):
        acknowledge(client, initials_per_line=lines)
    acknowledge(client, notice_version="other")
    assert client.get("/v1/acknowledgments").json()["data"] == []


def test_a_live_acknowledgment_is_marked_as_live(configured_vendor: Vendor) -> None:
    for mode, livemode in (("test", False), ("live", True)):
        stored = acknowledged(configured_vendor.client(mode), notice_id=LIVE_NOTICE)
        assert stored["livemode"] is livemode


def _send(client: httpx2.Client, request: dict[str, object]) -> httpx2.Response:
    headers = {
        # A refusal before the body is read ends the connection, with or without saying so.
        "Connection": "close",
        "Content-Type": str(request["type"]),
        "Idempotency-Key": str(request["idempotency"]),
    }
    if request["key"] is not None:
        headers["Authorization"] = f"Bearer {request['key']}"
    body = request["body"]
    assert isinstance(body, bytes)
    return client.request(
        str(request["method"]),
        str(request["path"]).format(request["notice"]),
        headers=headers,
        content=body,
    )


def test_no_member_of_the_request_is_dropped_silently() -> None:
    """Each is one of the submission, or in its origin with where it comes from."""
    given = {*AcknowledgmentRequest.__struct_fields__} - {"ip", "user_agent"}
    assert given == {*Submission.__struct_fields__} - {"origin", "initials_from"}
