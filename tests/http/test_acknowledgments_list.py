"""Reading acknowledgments back: one by its id, and lists."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta

import httpx2
import pytest

from countersign.base.values import made_at_ms
from tests.http.backstage import Vendor
from tests.http.calls import SHIPPED_NOTICE, acknowledge, acknowledged, message, read_back, refusal

TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
FIELDS = [
    "ack_id",
    "livemode",
    "notice_id",
    "notice_version",
    "notice_version_source",
    "notice_digest",
    "initials_per_line",
    "session_id",
    "cbid",
    "order_reference",
    "ip",
    "ip_source",
    "peer_ip",
    "user_agent",
    "user_agent_source",
    "user_agent_truncated",
    "capture",
    "process",
    "accepted_at",
    "clearance_id",
    "evidence",
    "erased_at",
]


def make(client: httpx2.Client, number: int, **fields: object) -> list[str]:
    """Acknowledge `number` times, each in a separate millisecond; returns the ids, oldest first."""
    made = []
    for _ in range(number):
        made.append(acknowledge(client, initials_per_line=["A", "B", "C", "D"], **fields))  # type: ignore[arg-type]
        time.sleep(0.002)
    return [answer.json()["ack_id"] for answer in made]


def ids(answer: httpx2.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [row["ack_id"] for row in answer.json()["data"]]


def test_an_acknowledgment_is_read_back_with_exactly_these_fields(client: httpx2.Client) -> None:
    given = {
        "initials_per_line": ["A", "B", "C", "D"],
        "session_id": "cs_77",
        "cbid": "cbid_test_77",
        "order_reference": "100042",
        "ip": "203.0.113.7",
        "user_agent": "Browser/1.0",
    }
    notice = client.get(f"/v1/notices/{SHIPPED_NOTICE}/versions").json()["data"][0]
    receipt = acknowledge(client, **given).json()  # type: ignore[arg-type]
    assert receipt.pop("receipt"), "it is for its holder, and not kept"
    stored = read_back(client, receipt["ack_id"])
    assert list(stored) == FIELDS
    assert TIMESTAMP.fullmatch(stored.pop("accepted_at"))
    assert stored.pop("evidence")["status"] in {"pending", "sealed"}
    assert stored.pop("clearance_id") is None
    assert stored == receipt | given | {
        "livemode": False,
        "notice_version_source": "assumed",
        "notice_digest": notice["digest"],
        "ip_source": "body",
        "peer_ip": None,
        "user_agent_source": "body",
        "user_agent_truncated": False,
        "capture": "vendor_api",
        "process": None,
        "erased_at": None,
    }


def test_omitted_fields_are_null(client: httpx2.Client) -> None:
    stored = acknowledged(client)
    assert (stored["session_id"], stored["cbid"]) == (None, None)


def test_the_time_of_acceptance_is_the_time_of_the_call(client: httpx2.Client) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    accepted_at = datetime.fromisoformat(acknowledged(client)["accepted_at"])
    assert before <= accepted_at <= datetime.now(UTC)


@pytest.mark.parametrize(
    "ack_id",
    ["ack_00000000000000000000000000", "ack_", "nonsense", "cbid_00000000000000000000000000"],
)
def test_an_unknown_acknowledgment_is_not_found(client: httpx2.Client, ack_id: str) -> None:
    assert refusal(client.get(f"/v1/acknowledgments/{ack_id}")) == (404, "not_found")


def test_the_list_holds_the_same_items_as_single_reads(client: httpx2.Client) -> None:
    made = make(client, 2, session_id="cs_1")
    for ack_id in made:
        client.get(f"/v1/acknowledgments/{ack_id}/proof", headers={"Prefer": "wait=10"})
    page = client.get("/v1/acknowledgments").json()
    assert list(page) == ["data", "next_cursor"]
    assert page["data"] == [read_back(client, ack_id) for ack_id in reversed(made)]


def test_an_account_without_acknowledgments_has_an_empty_list(client: httpx2.Client) -> None:
    assert client.get("/v1/acknowledgments").json() == {"data": [], "next_cursor": None}


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 6, 100])
def test_pages_are_newest_first_and_hold_everything_once(client: httpx2.Client, limit: int) -> None:
    """Also where the last page is full."""
    made = make(client, 6)
    found: list[str] = []
    query = {"limit": str(limit)}
    while True:
        answer = client.get("/v1/acknowledgments", params=query)
        page = ids(answer)
        assert 0 < len(page) <= limit
        found += page
        cursor = answer.json()["next_cursor"]
        if cursor is None:
            break
        query["after"] = cursor
    assert found == made[::-1]


def test_an_acknowledgment_made_while_paging_shifts_no_page(client: httpx2.Client) -> None:
    made = make(client, 4)
    first = client.get("/v1/acknowledgments", params={"limit": "2"})
    make(client, 1)
    query = {"limit": "2", "after": first.json()["next_cursor"]}
    second = client.get("/v1/acknowledgments", params=query)
    assert ids(first) + ids(second) == made[::-1]


def test_lists_without_a_limit_have_at_most_20_rows(client: httpx2.Client) -> None:
    make(client, 21)
    answer = client.get("/v1/acknowledgments")
    assert len(ids(answer)) == 20
    assert answer.json()["next_cursor"] is not None


@pytest.mark.parametrize("limit", ["0", "101", "-1", "1.0", "ten", "", "٣", "+1", " 1"])
@pytest.mark.parametrize(
    "path", ["/v1/acknowledgments", "/v1/notices", f"/v1/notices/{SHIPPED_NOTICE}/versions"]
)
def test_a_limit_is_a_number_from_1_to_100(client: httpx2.Client, path: str, limit: str) -> None:
    answer = client.get(path, params={"limit": limit})
    assert refusal(answer) == (400, "invalid_request")
    assert "limit" in message(answer)


@pytest.mark.parametrize("cursor", ["", "ack_", "nonsense", "1", "cbid_0000"])
def test_an_invalid_cursor_is_refused(client: httpx2.Client, cursor: str) -> None:
    answer = client.get("/v1/acknowledgments", params={"after": cursor})
    assert refusal(answer) == (400, "invalid_request")
    assert "after" in message(answer)


def test_lists_can_be_narrowed_to_a_session_a_buyer_and_a_notice(
    configured_vendor: Vendor,
) -> None:
    client = configured_vendor.test
    by_fields = {
        (session, cbid, notice_id): acknowledge(
            client,
            notice_id=notice_id,
            session_id=session,
            cbid=cbid,
            initials_per_line=["A"] * lines,
        ).json()["ack_id"]
        for session in ("s1", "s2")
        for cbid in ("b1", "b2")
        for notice_id, lines in (("amended", 4), ("three-lines", 3))
    }
    for place, name in enumerate(("session_id", "cbid", "notice_id")):
        for value in {key[place] for key in by_fields}:
            wanted = {ack for key, ack in by_fields.items() if key[place] == value}
            found = ids(client.get("/v1/acknowledgments", params={name: value}))
            assert set(found) == wanted
            assert len(found) == len(wanted)
    query = {"session_id": "s1", "cbid": "b2", "notice_id": "amended"}
    assert ids(client.get("/v1/acknowledgments", params=query)) == [
        by_fields["s1", "b2", "amended"]
    ]
    assert ids(client.get("/v1/acknowledgments", params={"session_id": "b1"})) == []


def test_a_narrowed_list_can_be_paged(client: httpx2.Client) -> None:
    wanted: list[str] = []
    for _ in range(3):
        wanted += make(client, 1, session_id="mine")
        make(client, 1, session_id="other")
    query = {"session_id": "mine", "limit": "2"}
    first = client.get("/v1/acknowledgments", params=query)
    query["after"] = first.json()["next_cursor"]
    second = client.get("/v1/acknowledgments", params=query)
    assert ids(first) + ids(second) == wanted[::-1]
    assert second.json()["next_cursor"] is None


def test_accepted_after_is_inclusive(client: httpx2.Client) -> None:
    made = make(client, 3)
    query = {"accepted_after": _instant(made_at_ms(made[1]))}
    assert ids(client.get("/v1/acknowledgments", params=query)) == made[:0:-1]


def test_accepted_before_is_exclusive(client: httpx2.Client) -> None:
    made = make(client, 3)
    query = {"accepted_before": _instant(made_at_ms(made[1]))}
    assert ids(client.get("/v1/acknowledgments", params=query)) == [made[0]]


def test_neighbouring_ranges_neither_overlap_nor_leave_a_gap(client: httpx2.Client) -> None:
    made = make(client, 3)
    border = _instant(made_at_ms(made[1]))
    early = ids(client.get("/v1/acknowledgments", params={"accepted_before": border}))
    late = ids(client.get("/v1/acknowledgments", params={"accepted_after": border}))
    assert late + early == made[::-1]


def test_a_returned_time_finds_its_acknowledgment(client: httpx2.Client) -> None:
    (ack_id,) = make(client, 1)
    accepted_at = read_back(client, ack_id)["accepted_at"]
    assert ids(client.get("/v1/acknowledgments", params={"accepted_after": accepted_at})) == [
        ack_id
    ]
    assert ids(client.get("/v1/acknowledgments", params={"accepted_before": accepted_at})) == []


def test_times_can_be_given_in_any_zone(client: httpx2.Client) -> None:
    made = make(client, 2)
    border = _instant(made_at_ms(made[1]), offset_hours=-7)
    assert border.endswith("-07:00")
    assert ids(client.get("/v1/acknowledgments", params={"accepted_after": border})) == [made[1]]


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "2026-11-20", "2026-11-20T21:31:00", "2026-02-30T00:00:00Z", "1763674260"],
)
@pytest.mark.parametrize("name", ["accepted_after", "accepted_before"])
def test_an_invalid_time_is_refused(client: httpx2.Client, name: str, text: str) -> None:
    answer = client.get("/v1/acknowledgments", params={name: text})
    assert refusal(answer) == (400, "invalid_request")
    assert name in message(answer)


@pytest.mark.parametrize(
    "query",
    [
        "sesion_id=cs_1",
        "session_id=a&session_id=b",
        "session_id=%00",
        "session_id=%ff",
        "session_id=%ed%a0%80",
        "session_id",
        "session_id=" + "x" * 256,
        "notice_id=" + "x" * 256,
        "limit=1;after=x",
    ],
)
def test_a_query_with_a_mistake_is_refused(client: httpx2.Client, query: str) -> None:
    """A typo in a filter must not give the whole list."""
    assert refusal(client.get(f"/v1/acknowledgments?{query}")) == (400, "invalid_request")


def _instant(unix_ms: int, *, offset_hours: int = 0) -> str:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=unix_ms)
    if offset_hours:
        return (
            (moment + timedelta(hours=offset_hours))
            .isoformat(timespec="milliseconds")
            .replace("+00:00", f"{offset_hours:+03d}:00")
        )
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
