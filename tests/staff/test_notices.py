"""Staff check, publish, review and withdraw notices without a file on the server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from countersign.core.access.role import Role
from tests.http.backstage import notice_json
from tests.staff.conftest import Desk, Person

pytestmark = pytest.mark.both_engines
LAW = "https://law.example/text"


@pytest.fixture
def reviewer(desk: Desk) -> Iterator[Person]:
    """Give another owner of the deployment."""
    with desk.person() as made:
        yield made


def test_a_notice_is_checked_published_reviewed_and_taken_out_of_force(
    desk: Desk, owner: Person, reviewer: Person
) -> None:
    """With its history, and the differences from the previous version, part by part."""
    first, second = notice_json("console", "1", lines=2), notice_json("console", "2", lines=3)
    checked = owner.post("/v1/notices/check", {"notice": first})
    assert (checked["version"], checked["new"], checked["compared_with"]) == ("1", True, None)
    owner.post("/v1/notices/publish", {"notice": first})
    place = "/v1/notices/console"
    review = {"version": "1", "by": "Ada Moreno", "against": LAW}
    alone = owner.post(f"{place}/review", review, 409)["error"]
    assert alone["code"] == "second_person_required"
    assert reviewer.post(f"{place}/review", review)["type"] == "reviewed"
    owner.post("/v1/notices/publish", {"notice": second})
    compared = owner.get(f"{place}/compare?old=1&new=2")["differences"]
    assert {"bullet line-3", "version", "title"} <= {one["part"] for one in compared}
    assert next(one for one in compared if one["part"] == "bullet line-3")["before"] is None
    reviewer.post(f"{place}/review", review | {"version": "2"})
    owner.post(f"{place}/withdraw", {"version": "2", "reason": "a mistake"})
    stopped = {"version": "1", "reason": "a court", "enjoined": True}
    owner.post(f"{place}/withdraw", stopped)
    # It counts as a review, so not by the person who published that version.
    alone = owner.post(f"{place}/reinstate", review, 409)["error"]
    assert alone["code"] == "second_person_required"
    reviewer.post(f"{place}/reinstate", review)
    listed = owner.get("/v1/notices/lifecycle?notice_id=console")["data"]
    assert [(one["version"], one["live"]) for one in listed] == [
        ("1", "in_force"),
        ("2", "withdrawn"),
    ]
    assert [one["type"] for one in listed[0]["events"]] == [
        *("published", "reviewed", "enjoined", "reinstated"),
    ]
    rest = owner.get("/v1/notices/lifecycle?limit=1&notice_id=console")
    after = rest["next_cursor"].replace(" ", "%20")
    assert owner.get(f"/v1/notices/lifecycle?notice_id=console&after={after}")["data"] == listed[1:]
    assert (
        owner.get("/v1/audit?subject=console&action=notice_reviewed")["data"][0]["actor"]
        == reviewer.id
    )


def test_errors_in_a_file_are_reported(owner: Person, reviewer: Person) -> None:
    """All mistakes at once; published content never changes."""
    wrong = {**notice_json("fixed", "1"), "id": "X Y", "bullets": []}
    refused = owner.post("/v1/notices/check", {"notice": wrong}, 422)["error"]
    assert refused["code"] == "invalid_notice_file"
    assert {"id", "bullets"} == {one.partition(":")[0] for one in refused["message"].split("\n")}
    odd = {**notice_json("fixed", "1"), "note": "x"}
    said = owner.post("/v1/notices/check", {"notice": odd}, 400)["error"]["message"]
    assert said == "Unknown field - at `$.notice.note`."
    owner.post("/v1/notices/check", {"file": 'id = "x"'}, 400)
    owner.post("/v1/notices/publish", {"notice": notice_json("fixed", "1")})
    other = owner.post("/v1/notices/publish", {"notice": notice_json("fixed", "1", lines=4)}, 409)
    assert other["error"]["code"] == "notice_version_conflict"
    unknown = {"version": "9", "by": "Ada", "against": LAW}
    assert (
        reviewer.post("/v1/notices/fixed/review", unknown, 404)["error"]["code"]
        == "notice_not_found"
    )
    wrong = unknown | {"version": "1", "against": "no address"}
    reviewer.post("/v1/notices/fixed/review", wrong, 400)


def test_a_gap_is_not_closed_by_leaving_its_name_out(owner: Person) -> None:
    """Unless a reason for the completeness is given."""
    gap = notice_json("gap", "1") | {"text_gaps": ["(E)"]}
    assert owner.post("/v1/notices/check", {"notice": gap})["text_gaps"] == ["(E)"]
    owner.post("/v1/notices/publish", {"notice": gap})
    same = notice_json("gap", "1") | {"version": "2"}
    refused = owner.post("/v1/notices/publish", {"notice": same}, 409)
    assert refused["error"]["code"] == "notice_incomplete"
    owner.post("/v1/notices/publish", {"notice": same, "gap_closed": "counsel has compared it"})


def test_a_check_is_for_people_who_may_publish(desk: Desk) -> None:
    """Parsing a caller's text costs more than a read."""
    with desk.operator.vendor(desk.server) as shop:
        body = {"notice": notice_json("no", "1")}
        assert shop.test.post("/v1/notices/check", json=body).status_code == 403


def test_notices_belong_to_no_single_account(desk: Desk) -> None:
    """They are common to all accounts."""
    with (
        desk.operator.vendor(desk.server) as shop,
        desk.person(Role.OWNER, shop.account_id, "live") as person,
    ):
        refused = person.client.post("/v1/notices/publish", json={"notice": notice_json("no", "1")})
        assert refused.status_code == 403
