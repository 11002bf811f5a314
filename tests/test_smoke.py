"""The shortest walk through the service."""

import httpx2
import pytest

pytestmark = pytest.mark.both_engines


def test_a_notice_can_be_fetched_and_acknowledged(client: httpx2.Client) -> None:
    notice = client.get("/v1/notices/ab1263").json()
    body = {"initials_per_line": ["JD" for _ in notice["bullets"]]}
    answer = client.post("/v1/notices/ab1263/acknowledge", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["ack_id"].startswith("ack_")
