"""Requests made from the committed document: the server keeps to it, and says no to all else."""

from __future__ import annotations

import json
import subprocess
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.document import COMMITTED, JSON, Document, committed_document
from tests.support.service import Deployment, Server

EXAMPLES_PER_OPERATION = 30
SEED = 1263
OWN_CHECK = Path(__file__).with_name("error_code_check.py")


@dataclass(frozen=True, kw_only=True)
class Beyond:
    """A refusal of what fits the schema, because JSON Schema cannot state the rule."""

    operation: str
    status: int
    reason: str
    path: str
    """With `body`, a request that is refused in this way though it fits the schema."""
    body: Mapping[str, Any] | None = None
    first: Mapping[str, Any] | None = None
    """What was sent before under the same Idempotency-Key."""


BEYOND_JSON_SCHEMA = (
    Beyond(
        operation="clearOrder",
        status=422,
        reason="An Idempotency-Key may have been used with another body.",
        path="/v1/clearances",
        body={"ack_id": "a", "cbid": "b", "session_id": "c", "shipping_zip": "94110"},
        first={"ack_id": "a", "cbid": "b", "session_id": "d", "shipping_zip": "94110"},
    ),
    Beyond(
        operation="fulfilOrder",
        status=400,
        reason="At least one thing has to be reported, and null is none.",
        path="/v1/clearances/clr_unknown/fulfilment",
        body={"carrier": None},
    ),
    Beyond(
        operation="acknowledgeNotice",
        status=422,
        reason="The notice decides how many initials there are; what is blank is a matter of "
        "Unicode; an Idempotency-Key may have been used with another body.",
        path="/v1/notices/ab1263/acknowledge",
        body={"initials_per_line": []},
    ),
    Beyond(
        operation="listNoticeVersions",
        status=400,
        reason="`after` is one of the versions that this notice has.",
        path="/v1/notices/ab1263/versions?after=1999-01-01",
    ),
    Beyond(
        operation="verifyBuyer",
        status=422,
        reason="Only the provider knows its sessions; an Idempotency-Key may have been used with "
        "another body.",
        path="/v1/buyers/verify",
        body={"provider_identity_session_id": "test_session_not_found", "test_mode": True},
    ),
)
# What else may answer a request that fits the schema: there is no such thing (404), this key may
# not (403), it does not go with how things stand (409), or too much was tried (429).
ACCEPTED = ("2xx", "304", "403", "404", "409", "429")


@pytest.mark.timeout(300)
def test_no_generated_request_finds_the_server_at_odds_with_its_document(
    server: Server, deployment: Deployment, tmp_path: Path
) -> None:
    report = run_schemathesis(COMMITTED, server, deployment, tmp_path)

    operations = operation_ids(committed_document())
    assert report["operations"]["tested"] == len(operations)
    assert {phase: done["status"] for phase, done in report["phases"].items()} == dict.fromkeys(
        ("examples", "coverage", "fuzzing", "stateful"), "success"
    )
    assert not [name for name, found in report["warnings"].items() if found]

    # It was not refusals alone: requests of every operation were accepted.
    accepted = {
        operations[label]
        for label, phases in report["valid_rates"].items()
        if any(phase["accepted"] for phase in phases.values())
    }
    assert accepted == set(operations.values())


def test_a_refusal_that_schemathesis_is_told_to_expect_is_beyond_json_schema(
    client: httpx2.Client,
) -> None:
    document = Document(committed_document())
    for beyond in BEYOND_JSON_SCHEMA:
        method = "GET" if beyond.body is None else "POST"
        assert document.operation(method, beyond.path).id == beyond.operation
        assert document.request_faults(method, beyond.path, beyond.body) == []
        headers = {}
        if beyond.first is not None:
            headers = {"Idempotency-Key": beyond.operation}
            before = client.request(method, beyond.path, json=beyond.first, headers=headers)
            assert before.status_code == 200, before.text
        answer = client.request(method, beyond.path, json=beyond.body, headers=headers)
        assert answer.status_code == beyond.status, beyond.reason


@pytest.mark.parametrize("deployment", ["sqlite"], indirect=True)
def test_the_generated_requests_do_notice_a_document_that_is_wrong(
    server: Server, deployment: Deployment, tmp_path: Path
) -> None:
    """So that a run without failures means something: each lie is found by its own check."""
    document = committed_document()
    paths = document["paths"]
    paths["/healthz"]["get"]["security"] = [{"key": []}]
    codes = paths["/v1/notices/{notice_id}/versions"]["get"]["responses"]["400"]["content"][JSON]
    codes["examples"] = {}
    notices = paths["/v1/notices"]["get"]
    notices["parameters"][0]["schema"]["maximum"] = 50
    notices["responses"]["200"]["headers"]["X-Missing"] = {
        "required": True,
        "schema": {"type": "string"},
    }
    acknowledgments = paths["/v1/acknowledgments"]["get"]
    del acknowledgments["responses"]["400"]
    (limit,) = (p for p in acknowledgments["parameters"] if p["name"] == "limit")
    limit["example"] = limit["schema"]["maximum"] = 1000
    document["components"]["schemas"]["Readiness"]["required"].append("missing")
    lying = tmp_path / "lying.json"
    lying.write_text(json.dumps(document))

    told = ("getHealth", "getReadiness", "listNotices", "listNoticeVersions", "listAcknowledgments")
    options = ["--phases", "coverage", *(f"--include-operation-id={name}" for name in told)]
    report = run_schemathesis(lying, server, deployment, tmp_path, *options, fails=True)

    found = {
        (failure["type"], operation)
        for failure in report["failures"]
        for operation in failure["operations"]
    }
    assert found >= {
        ("IgnoredAuth", "GET /healthz"),
        ("CustomFailure", "GET /v1/notices/{notice_id}/versions"),
        ("RejectedPositiveData", "GET /v1/acknowledgments"),
        ("AcceptedNegativeData", "GET /v1/notices"),
        ("MissingHeaders", "GET /v1/notices"),
        ("JsonSchemaError", "GET /readyz"),
        ("UndefinedStatusCode", "GET /v1/acknowledgments"),
    }


def run_schemathesis(
    document: Path,
    server: Server,
    deployment: Deployment,
    directory: Path,
    *options: str,
    fails: bool = False,
) -> dict[str, Any]:
    """Run every phase and every check as two accounts that must not see each other's objects."""
    keys = {name: deployment.key(deployment.account(f"{directory.name} {name}")) for name in "ab"}
    entries = [
        {"name": name, "fixedHeaders": [{"name": "Authorization", "value": f"Bearer {key}"}]}
        for name, key in keys.items()
    ]
    (directory / "keys.json").write_text(json.dumps({"auth": entries}))
    (directory / "schemathesis.toml").write_text(configuration())
    done = subprocess.run(
        [
            Path(sysconfig.get_path("scripts")) / "st",
            *("--config-file", "schemathesis.toml"),
            *("run", document, "--url", server.url),
            *("--continue-on-failure", "--checks", "all", *options),
            *("--report", "json", "--report-json-path", "report.json"),
        ],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == int(fails), done.stdout + done.stderr
    report: dict[str, Any] = json.loads((directory / "report.json").read_text())
    return report


def configuration() -> str:
    """The settings, as TOML; a string of JSON is one of TOML too."""
    lines = [
        f"seed = {SEED}",
        f"hooks = {json.dumps(str(OWN_CHECK))}",
        "[auth.wfc]",
        'path = "keys.json"',
        'user = "a"',
        'peers = ["a", "b"]',
        "[generation]",
        f"max-examples = {EXAMPLES_PER_OPERATION}",
        "[output.sanitization]",
        "enabled = false",
        "[checks.positive_data_acceptance]",
        f"expected-statuses = {json.dumps(ACCEPTED)}",
    ]
    for beyond in BEYOND_JSON_SCHEMA:
        lines += [
            "[[operations]]",
            f"include-operation-id = {json.dumps(beyond.operation)}",
            "[operations.checks.positive_data_acceptance]",
            f"expected-statuses = {json.dumps([*ACCEPTED, beyond.status])}",
        ]
    return "\n".join(lines) + "\n"


def operation_ids(document: Mapping[str, Any]) -> dict[str, str]:
    """The operations by what schemathesis calls them: method and path."""
    return {
        f"{method.upper()} {path}": operation["operationId"]
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }
