"""Frequent acts of these tests: acknowledge, prove, check a log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx2

from countersign_evidence.policy import Policy, parse_policy
from countersign_evidence.verification import Verdict
from tests.support.service import Deployment

NOTICE = "ab1263"
INITIALS = ["JD", "J.D.", "jd", "JD"]


def acknowledge(client: httpx2.Client, **fields: Any) -> str:  # noqa: ANN401 - any JSON
    """Acknowledge the shipped notice; gives the ack_id."""
    body = {"initials_per_line": INITIALS} | fields
    answer = client.post(f"/v1/notices/{NOTICE}/acknowledge", json=body)
    assert answer.status_code == 200, answer.text
    ack_id: str = answer.json()["ack_id"]
    return ack_id


def evidence_of(client: httpx2.Client, ack_id: str) -> dict[str, Any]:
    """The `evidence` of an acknowledgment as it is read back."""
    found: dict[str, Any] = client.get(f"/v1/acknowledgments/{ack_id}").json()["evidence"]
    return found


def get(client: httpx2.Client, ack_id: str, what: str, query: str = "") -> bytes:
    """A proof, certificate or dossier; waits for sealing."""
    answer = client.get(
        f"/v1/acknowledgments/{ack_id}/{what}{query}", headers={"Prefer": "wait=10"}
    )
    assert answer.status_code == 200, answer.text
    return answer.content


def shown(verdict: Verdict) -> Mapping[str, Any]:
    """The personal fields of the acknowledgment that a dossier shows."""
    assert verdict.dossier
    (found,) = verdict.dossier.of("acknowledgment")
    return found.shown


def policy_of(deployment: Deployment, mode: str = "test") -> Policy:
    """The policy that the operator hands out."""
    return parse_policy(deployment.run("log", "policy", "--mode", mode).stdout.encode())


def check(deployment: Deployment) -> dict[str, Any]:
    """The output of `countersign log check`."""
    done = deployment.run("log", "check", "--json", check=False)
    found: dict[str, Any] = json.loads(done.stdout)
    assert (done.returncode == 0) == (found["findings"] == [])
    return found
