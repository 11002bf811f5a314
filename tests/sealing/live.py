"""A deployment where live keys can acknowledge, with a reviewed notice."""

from __future__ import annotations

from pathlib import Path

import httpx2

from tests.cli.notice_files import write_notice
from tests.support.service import Deployment


def open_for_live(deployment: Deployment, folder: Path) -> tuple[str, Deployment]:
    """Publish and review a notice; gives a live key, and the deployment."""
    file = write_notice(folder / "notice.toml")
    published = deployment.read("notices", "publish", str(file))
    notice_id, version = published["notice_id"], published["version"]
    deployment.run(
        "notices", "review", notice_id, "--version", version, "--by", "me",
        "--against", "https://example.com/law",
    )  # fmt: skip
    return deployment.key(deployment.account("vendor"), "live"), deployment


def acknowledge_live(client: httpx2.Client) -> str:
    """Acknowledge the notice that is in force for live keys; gives the ack_id."""
    return answer_live(client)["ack_id"]


def answer_live(client: httpx2.Client) -> dict[str, str]:
    """The same; gives the whole answer."""
    (notice_id,) = [
        notice["notice_id"]
        for notice in client.get("/v1/notices").json()["data"]
        if client.get(f"/v1/notices/{notice['notice_id']}").status_code == 200
    ]
    lines = client.get(f"/v1/notices/{notice_id}").json()["bullets"]
    answer = client.post(
        f"/v1/notices/{notice_id}/acknowledge", json={"initials_per_line": ["JD"] * len(lines)}
    )
    assert answer.status_code == 200, answer.text
    found: dict[str, str] = answer.json()
    return found
