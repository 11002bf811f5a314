"""Fetching notices, and the registry."""

from __future__ import annotations

import re

import httpx2
import pytest

from tests.http.backstage import Vendor, notice_file
from tests.http.calls import SHIPPED_NOTICE, acknowledge, initials, refusal
from tests.http.conftest import LIVE_NOTICE, LIVE_VERSION, Configured

pytestmark = pytest.mark.one_engine

FIELDS = [
    "notice_id",
    "version",
    "title",
    "heading",
    "bullets",
    "bullet_ids",
    "attestation_text",
    "source_law",
    "source_bill",
]


def test_a_notice_has_exactly_the_fields_of_the_interface(vendor: Vendor) -> None:
    notice = vendor.test.get(f"/v1/notices/{SHIPPED_NOTICE}").json()
    assert list(notice) == FIELDS
    assert notice["notice_id"] == SHIPPED_NOTICE
    lists = {"bullets", "bullet_ids"}
    assert all(isinstance(notice[name], str) and notice[name] for name in set(FIELDS) - lists)
    for name in lists:
        assert all(isinstance(line, str) and line for line in notice[name])
    assert notice["bullet_ids"] == ["A", "B", "C", "D"]


def test_retrieving_an_unknown_notice_is_notice_not_found(vendor: Vendor) -> None:
    assert refusal(vendor.test.get("/v1/notices/ab9999")) == (404, "notice_not_found")
    assert refusal(vendor.live.get("/v1/notices/ab9999")) == (404, "notice_not_found")


def test_live_keys_do_not_get_an_unreviewed_notice(vendor: Vendor) -> None:
    path = f"/v1/notices/{SHIPPED_NOTICE}"
    assert refusal(vendor.live.get(path)) == (409, "notice_not_reviewed")


def test_an_unreviewed_notice_counts_as_in_force_for_test_keys(vendor: Vendor) -> None:
    assert vendor.test.get(f"/v1/notices/{SHIPPED_NOTICE}").status_code == 200


def test_another_reviewed_notice_is_served_and_acknowledged_live(
    configured_vendor: Vendor,
) -> None:
    """No notice id and no number of lines is hard-coded."""
    live = configured_vendor.live
    notice = live.get(f"/v1/notices/{LIVE_NOTICE}").json()
    assert len(notice["bullets"]) == 3
    answer = acknowledge(live, notice_id=LIVE_NOTICE, initials_per_line=["A", "B", "C"])
    assert answer.status_code == 200, answer.text
    receipt = answer.json()
    assert (receipt["notice_id"], receipt["notice_version"]) == (LIVE_NOTICE, LIVE_VERSION)


def test_the_effective_version_with_the_latest_date_is_in_force(configured_vendor: Vendor) -> None:
    live = configured_vendor.live.get("/v1/notices/amended").json()
    assert (live["version"], len(live["bullets"])) == ("2", 3)


def test_test_keys_rehearse_a_draft_that_live_keys_do_not_get(configured_vendor: Vendor) -> None:
    test = configured_vendor.test.get("/v1/notices/amended").json()
    assert (test["version"], len(test["bullets"])) == ("3-draft", 4)


def test_an_older_version_is_given_when_asked_for(configured_vendor: Vendor) -> None:
    answer = configured_vendor.live.get("/v1/notices/amended", params={"version": "1"})
    assert answer.status_code == 200
    assert (answer.json()["version"], len(answer.json()["bullets"])) == ("1", 2)


def test_a_version_that_does_not_exist_is_notice_not_found(configured_vendor: Vendor) -> None:
    answer = configured_vendor.live.get("/v1/notices/amended", params={"version": "7"})
    assert refusal(answer) == (404, "notice_not_found")


def test_live_keys_do_not_get_an_unreviewed_version_by_name(configured_vendor: Vendor) -> None:
    answer = configured_vendor.live.get("/v1/notices/amended", params={"version": "3-draft"})
    assert refusal(answer) == (409, "notice_not_reviewed")


def test_a_notice_without_a_version_in_force_is_not_in_force(configured_vendor: Vendor) -> None:
    for notice_id in ("scheduled", "withdrawn", "enjoined"):
        for mode in ("test", "live"):
            answer = configured_vendor.client(mode).get(f"/v1/notices/{notice_id}")
            assert refusal(answer) == (409, "notice_not_in_force"), (notice_id, mode)


def test_a_withdrawn_version_can_still_be_read_by_name(configured_vendor: Vendor) -> None:
    """The holder of an old acknowledgment can see its text."""
    answer = configured_vendor.live.get("/v1/notices/withdrawn", params={"version": "1"})
    assert answer.json()["title"] == "Title of withdrawn 1"


def test_the_list_shows_the_version_in_force_for_the_mode_of_the_key(
    configured_vendor: Vendor,
) -> None:
    def listed(mode: str) -> dict[str, str | None]:
        page = configured_vendor.client(mode).get("/v1/notices").json()
        assert page["next_cursor"] is None
        return {row["notice_id"]: row["version"] for row in page["data"]}

    in_both = {"enjoined": None, "scheduled": None, LIVE_NOTICE: LIVE_VERSION, "withdrawn": None}
    live, test = listed("live"), listed("test")
    assert live.items() >= (in_both | {SHIPPED_NOTICE: None, "amended": "2"}).items()
    assert test.items() >= (in_both | {"amended": "3-draft"}).items()
    assert test[SHIPPED_NOTICE] is not None


def test_a_listed_notice_has_exactly_these_fields(vendor: Vendor) -> None:
    page = vendor.test.get("/v1/notices").json()
    assert list(page) == ["data", "next_cursor"]
    words = ["notice_id", "title", "jurisdiction", "language", "version", "versions"]
    assert [list(row) for row in page["data"]] == [words] * len(page["data"]) != []


def test_the_list_of_notices_can_be_paged(configured_vendor: Vendor) -> None:
    whole = [row["notice_id"] for row in configured_vendor.test.get("/v1/notices").json()["data"]]
    found: list[str] = []
    cursor: str | None = None
    while True:
        query = {"limit": "2"} | ({"after": cursor} if cursor else {})
        page = configured_vendor.test.get("/v1/notices", params=query).json()
        assert len(page["data"]) <= 2
        found += [row["notice_id"] for row in page["data"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert found == whole == sorted(whole)


def test_versions_are_listed_newest_first_with_their_state(
    configured_vendor: Vendor,
) -> None:
    def standing(mode: str) -> list[tuple[str, str]]:
        page = configured_vendor.client(mode).get("/v1/notices/amended/versions").json()
        return [(row["version"], row["status"]) for row in page["data"]]

    assert standing("live") == [
        ("3-draft", "not_reviewed"),
        ("9-later", "scheduled"),
        ("2", "in_force"),
        ("1", "superseded"),
    ]
    assert standing("test") == [
        ("3-draft", "in_force"),
        ("9-later", "scheduled"),
        ("2", "superseded"),
        ("1", "superseded"),
    ]


def test_versions_out_of_force_say_why(configured_vendor: Vendor) -> None:
    for notice_id in ("withdrawn", "enjoined"):
        page = configured_vendor.live.get(f"/v1/notices/{notice_id}/versions").json()
        assert [row["status"] for row in page["data"]] == [notice_id]


def test_the_list_of_versions_can_be_paged(configured_vendor: Vendor) -> None:
    path = "/v1/notices/amended/versions"
    first = configured_vendor.live.get(path, params={"limit": "3"}).json()
    query = {"limit": "3", "after": first["next_cursor"]}
    second = configured_vendor.live.get(path, params=query).json()
    found = [row["version"] for row in first["data"] + second["data"]]
    assert found == ["3-draft", "9-later", "2", "1"]
    assert second["next_cursor"] is None


def test_a_version_shows_its_known_gaps(vendor: Vendor) -> None:
    page = vendor.test.get(f"/v1/notices/{SHIPPED_NOTICE}/versions").json()
    (version,) = page["data"]
    assert list(version) == [
        "notice_id",
        "version",
        "status",
        "digest",
        "lines",
        "effective_from",
        "published_at",
        "reviewed_at",
        "reviewed_against",
        "source_url",
        "editorial",
        "text_gaps",
    ]
    assert version["lines"] == len(initials(vendor.test))
    assert version["reviewed_at"] is None
    assert set(version["editorial"]) == {"title", "attestation_text"}
    assert version["text_gaps"]


def test_the_versions_of_an_unknown_notice_are_notice_not_found(vendor: Vendor) -> None:
    assert refusal(vendor.test.get("/v1/notices/ab9999/versions")) == (404, "notice_not_found")


def test_an_operators_act_on_a_notice_applies_to_a_running_server(
    configured: Configured, configured_vendor: Vendor
) -> None:
    """Published, reviewed, withdrawn: no restart in between."""
    live, operator = configured_vendor.live, configured.operator
    path = "/v1/notices/fleeting"
    assert refusal(live.get(path)) == (404, "notice_not_found")
    operator.publish(notice_file("fleeting", "1"), reviewed=False)
    assert refusal(live.get(path)) == (409, "notice_not_reviewed")
    operator.publish(notice_file("fleeting", "1"), reviewed=True)
    assert live.get(path).status_code == 200
    operator.withdraw("fleeting", "1")
    assert refusal(live.get(path)) == (409, "notice_not_in_force")


def test_an_injunction_stops_a_running_server_until_a_version_is_reinstated(
    configured: Configured, configured_vendor: Vendor
) -> None:
    """Live keys get no version, not even an earlier one; test keys get the earlier one."""
    operator, path = configured.operator, "/v1/notices/stopped"
    initials = {"initials_per_line": ["AB"] * 2}

    def answers(client: httpx2.Client) -> list[object]:
        shown = client.get(path).json()
        stored = client.post(f"{path}/acknowledge", json=initials).json()
        return [
            shown.get("version") or shown["error"]["code"],
            stored.get("notice_version") or stored["error"]["code"],
        ]

    operator.publish(notice_file("stopped", "1", lines=2))
    operator.publish(notice_file("stopped", "2", lines=2, effective_from="2021-01-01"))
    assert answers(configured_vendor.live) == ["2", "2"]
    operator.withdraw("stopped", "2", enjoined=True)
    assert answers(configured_vendor.live) == ["notice_not_in_force"] * 2
    assert answers(configured_vendor.test) == ["1", "1"]
    listed = configured_vendor.live.get(f"{path}/versions").json()["data"]
    assert [version["status"] for version in listed] == ["enjoined", "enjoined"]
    operator.reinstate("stopped", "1")
    assert answers(configured_vendor.live) == ["1", "1"]


def test_a_reviewed_version_names_the_official_text_with_its_times_in_utc(
    configured_vendor: Vendor,
) -> None:
    page = configured_vendor.live.get(f"/v1/notices/{LIVE_NOTICE}/versions").json()
    (version,) = page["data"]
    assert version["reviewed_against"] == "https://law.example/1"
    for name in ("published_at", "reviewed_at"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", version[name])
