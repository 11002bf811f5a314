"""The calls that a vendor's checkout makes, shortened for tests."""

from __future__ import annotations

from typing import Any

import httpx2

SHIPPED_NOTICE = "ab1263"
"""The notice of the interface that every deployment has from the start."""


def initials(client: httpx2.Client, notice_id: str = SHIPPED_NOTICE) -> list[str]:
    """Initials for each line of the notice."""
    answer = client.get(f"/v1/notices/{notice_id}")
    assert answer.status_code == 200, answer.text
    return ["JD" for _ in answer.json()["bullets"]]


def acknowledge(
    client: httpx2.Client,
    *,
    notice_id: str = SHIPPED_NOTICE,
    headers: dict[str, str] | None = None,
    **fields: object,
) -> httpx2.Response:
    """Acknowledge; initials that fit the notice are added unless given."""
    if "initials_per_line" not in fields:
        fields["initials_per_line"] = initials(client, notice_id)
    path = f"/v1/notices/{notice_id}/acknowledge"
    return client.post(path, json=fields, headers=headers or {})


def acknowledged(client: httpx2.Client, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    """Acknowledge, and read the stored acknowledgment back."""
    answer = acknowledge(client, **fields)
    assert answer.status_code == 200, answer.text
    return read_back(client, answer.json()["ack_id"])


def read_back(client: httpx2.Client, ack_id: str) -> dict[str, Any]:
    answer = client.get(f"/v1/acknowledgments/{ack_id}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def verify(client: httpx2.Client, **fields: object) -> httpx2.Response:
    """Verify a buyer in the sandbox."""
    return client.post("/v1/buyers/verify", json={"test_mode": True} | fields)


def refusal(answer: httpx2.Response) -> tuple[int, str]:
    """Status and code of an answer that must be a failure."""
    assert answer.status_code >= 400, answer.text
    return answer.status_code, answer.json()["error"]["code"]


def message(answer: httpx2.Response) -> str:
    """The words of a failure."""
    words: str = answer.json()["error"]["message"]
    return words
