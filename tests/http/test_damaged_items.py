"""A list marks what cannot be decrypted, and shows the rest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2

from tests.http.backstage import Operator
from tests.http.calls import acknowledged


@contextmanager
def damaged(operator: Operator, table: str, column: str, key: str, id_: str) -> Iterator[None]:
    """Overwrite encrypted data, and restore it: other tests use the same deployment."""
    change = f"UPDATE {table} SET {column} = :value WHERE {key} = :id"  # noqa: S608 - our own names
    query = f"SELECT {column} AS kept FROM {table} WHERE {key} = :id"  # noqa: S608
    [row] = operator.rows(query, id=id_)
    operator.execute(change, id=id_, value=bytes(1))
    try:
        yield
    finally:
        operator.execute(change, id=id_, value=bytes(row["kept"]))


def test_a_list_marks_an_acknowledgment_that_cannot_be_decrypted(
    client: httpx2.Client, operator: Operator
) -> None:
    """Alone it is refused, as evidence that is damaged."""
    broken, whole = (acknowledged(client, session_id=each) for each in ("one", "two"))
    with damaged(operator, "disclosures", "payload", "record_id", broken["ack_id"]):
        listed = client.get("/v1/acknowledgments").raise_for_status().json()["data"]
        assert [item["ack_id"] for item in listed] == [whole["ack_id"], broken["ack_id"]]
        assert listed[0] == whole | {"evidence": listed[0]["evidence"]}
        hidden = {"initials_per_line", "session_id", "ip", "ip_source", "peer_ip", "user_agent"}
        hidden |= {"user_agent_source", "user_agent_truncated"}
        nothing = dict.fromkeys(hidden)
        assert listed[1] == broken | nothing | {
            "unreadable": True,
            "evidence": listed[1]["evidence"],
        }
        alone = client.get(f"/v1/acknowledgments/{broken['ack_id']}")
        assert alone.json()["error"]["code"] == "evidence_damaged"


def test_a_list_marks_a_checkout_session_that_cannot_be_decrypted(
    client: httpx2.Client, operator: Operator
) -> None:
    """It has not ended for that."""
    body = {"session_id": "one", "notice_id": "ab1263", "return_url": "https://shop.example/"}
    made = [client.post("/v1/checkout_sessions", json=body).json() for _ in range(2)]
    ids = [each["checkout_session_id"] for each in made]
    with damaged(operator, "checkout_sessions", "content", "id", ids[0]):
        listed = client.get("/v1/checkout_sessions").raise_for_status().json()["data"]
        assert [item["checkout_session_id"] for item in listed] == ids[::-1]
        assert [item.get("unreadable") for item in listed] == [None, True]
        assert [item["status"] for item in listed] == ["open", "open"]


def test_an_export_marks_an_acknowledgment_that_cannot_be_decrypted(
    client: httpx2.Client, operator: Operator
) -> None:
    """It goes on with the next one."""
    broken, whole = (acknowledged(client, session_id=each) for each in ("one", "two"))
    with damaged(operator, "disclosures", "payload", "record_id", broken["ack_id"]):
        account = operator.rows(
            "SELECT account_id FROM records WHERE id = :id", id=broken["ack_id"]
        )[0]["account_id"]
        words = ("acknowledgments", "export", "--account", account, "--mode", "test")
        done = operator.deployment.run(*words, "--format", "jsonl")
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        assert [(row["ack_id"], row["session_id"], row["unreadable"]) for row in rows] == [
            (whole["ack_id"], "two", False),
            (broken["ack_id"], None, True),
        ]
