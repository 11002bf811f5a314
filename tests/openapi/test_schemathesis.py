"""Requests made from the committed document: the server obeys it, and refuses everything else."""

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

from tests.openapi.every_scope import key_of_a_person
from tests.support.depth import drawn
from tests.support.document import COMMITTED, JSON, Document, committed_document, resolved
from tests.support.service import Deployment, Server

# How an engine takes odd values is tried in tests/property.
pytestmark = [pytest.mark.long, pytest.mark.one_engine, pytest.mark.first_try]

EXAMPLES_PER_OPERATION = drawn(10)
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
    """The first request under the same Idempotency-Key."""
    method: str | None = None
    """GET without a body and POST with one, by default."""


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
        operation="clearOrder",
        status=400,
        reason="The published notices decide which product classes there are.",
        path="/v1/clearances",
        body={
            "ack_id": "a",
            "cbid": "b",
            "session_id": "c",
            "shipping_zip": "94110",
            "product_class": "toy",
        },
    ),
    Beyond(
        operation="fulfilOrder",
        status=400,
        reason="At least one thing has to be reported, and null is none.",
        path="/v1/clearances/clr_unknown/fulfilment",
        body={"carrier": None},
    ),
    Beyond(
        operation="overrideClearance",
        status=400,
        reason="A key names the user who decided; what is blank is a matter of Unicode.",
        path="/v1/clearances/clr_unknown/override",
        body={"reason": "case 4712", "claimed_user": None},
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
    Beyond(
        operation="reviewBuyer",
        status=400,
        reason="What has to be sent besides depends on the decision.",
        path="/v1/buyers/cbid_unknown/review",
        body={"decision": "accept_zip", "reason": "r"},
    ),
    Beyond(
        operation="listEvents",
        status=400,
        reason="`after` is an event that this account has.",
        path="/v1/events?after=evt_50czsav928ncqwvwewz2x8zh3j",
    ),
    Beyond(
        operation="createCheckoutSession",
        status=400,
        reason="What an address is made of is no matter of a pattern; what is collected needs its "
        "notice.",
        path="/v1/checkout_sessions",
        body={"return_url": "https://user@shop.example/", "session_id": "s", "notice_id": "n"},
    ),
    Beyond(
        operation="createWebhookEndpoint",
        status=400,
        reason="What an address is made of, and where it may lead to, is no matter of a pattern.",
        path="/v1/webhook_endpoints",
        body={"url": "https://user@shop.example.com/"},
    ),
    Beyond(
        operation="changeWebhookEndpoint",
        status=400,
        reason="The same; and either some types are named or every one is wanted.",
        method="PATCH",
        path="/v1/webhook_endpoints/{endpoint_id}",
        body={"url": "https://user@shop.example.com/"},
    ),
    Beyond(
        operation="rotateWebhookSecret",
        status=400,
        reason="To JSON Schema 60.0 is an integer.",
        path="/v1/webhook_endpoints/{endpoint_id}/rotate_secret",
        body={"overlap_seconds": 60.0},
    ),
    Beyond(
        operation="listWebhookDeliveries",
        status=400,
        reason="`after` is an event of this list.",
        path="/v1/webhook_endpoints/{endpoint_id}/deliveries?after=evt_50czsav928ncqwvwewz2x8zh3j",
    ),
    Beyond(
        operation="recoverWebhooks",
        status=400,
        reason="`since` is within the last 30 days.",
        path="/v1/webhook_endpoints/{endpoint_id}/recover",
        body={"since": "9999-01-01T00:00:00Z"},
    ),
    Beyond(
        operation="advanceTestClock",
        status=400,
        reason="A clock never goes back.",
        path="/v1/test/clock/advance",
        body={"to": "2020-01-01T00:00:00Z"},
    ),
    Beyond(
        operation="moveTestBuyer",
        status=400,
        reason="Only some states have reasons.",
        path="/v1/test/buyers",
        body={"cbid": "0", "status": "expired", "reasons": ["zip_mismatch"]},
    ),
    Beyond(
        operation="triggerEvent",
        status=400,
        reason="What the event is about has the kind of identifier that goes with it.",
        path="/v1/test/events",
        body={"type": "buyer.revoked", "object_id": "0"},
    ),
    Beyond(
        operation="planTestFault",
        status=400,
        reason="To JSON Schema 2.0 is an integer.",
        path="/v1/test/fault",
        body={"fault": "timeout", "calls": 2.0},
    ),
)
ALSO = {
    # A cursor may be from before the oldest event that is kept.
    "listEvents": (410,),
    # A fault that was planned for the sandbox is played.
    "verifyBuyer": (503,),
}
"""Refusals that depend on earlier requests."""
CURRENT = "/v1/checkout_sessions/current"
"""The operations of a client token: one request ends its session. `test_answers` walks them."""
REUSED = 422
"""Of every operation with an Idempotency-Key: it may have been used with another body."""
# Other possible responses to a request that fits the schema: not found (404), forbidden for this
# key (403), in conflict with the state (409), or too many tries (429).
ACCEPTED = ("2xx", "304", "403", "404", "409", "429")


@pytest.mark.later
@pytest.mark.timeout(600)
def test_no_generated_request_finds_the_server_at_odds_with_its_document(
    server: Server, deployment: Deployment, tmp_path: Path
) -> None:
    operations = operation_ids(committed_document())
    left_out = [name for label, name in operations.items() if label.split()[1].startswith(CURRENT)]
    left_out += [one.id for one in Document(committed_document()).operations() if one.is_of_staff]
    options = [f"--exclude-operation-id={name}" for name in left_out]
    report = run_schemathesis(COMMITTED, server, deployment, tmp_path, *options)
    operations = {label: name for label, name in operations.items() if name not in left_out}
    assert report["operations"]["tested"] == len(operations)
    assert {phase: done["status"] for phase, done in report["phases"].items()} == dict.fromkeys(
        ("examples", "coverage", "fuzzing", "stateful"), "success"
    )
    # It warns of operations that refuse most requests that fit the schema; some are known.
    mismatch = report["warnings"].pop("validation_mismatch")
    assert {operations[label] for label in mismatch} <= _beyond().keys()
    assert not [name for name, found in report["warnings"].items() if found]

    # It was not refusals alone: requests of every operation were accepted.
    accepted = {
        operations[label]
        for label, phases in report["valid_rates"].items()
        if any(phase["accepted"] for phase in phases.values())
    }
    assert accepted == set(operations.values())


def test_a_refusal_that_schemathesis_has_to_expect_is_beyond_json_schema(
    server: Server, deployment: Deployment, tmp_path: Path
) -> None:
    key = key_of_a_person(deployment, deployment.account(f"{tmp_path.name} beyond"))
    with server.client(key) as client:
        _refuse_what_is_beyond(client)


def _refuse_what_is_beyond(client: httpx2.Client) -> None:
    document = Document(committed_document())
    made = client.post("/v1/webhook_endpoints", json={"url": "https://shop.example.com/"})
    endpoint_id = made.json()["endpoint_id"]
    for beyond in BEYOND_JSON_SCHEMA:
        method = beyond.method or ("GET" if beyond.body is None else "POST")
        path = beyond.path.format(endpoint_id=endpoint_id)
        assert document.operation(method, path).id == beyond.operation
        assert document.request_faults(method, path, beyond.body) == []
        headers = {}
        if beyond.first is not None:
            headers = {"Idempotency-Key": beyond.operation}
            before = client.request(method, path, json=beyond.first, headers=headers)
            assert before.status_code == 200, before.text
        answer = client.request(method, path, json=beyond.body, headers=headers)
        assert answer.status_code == beyond.status, beyond.reason


@pytest.mark.later
@pytest.mark.parametrize("deployment", ["sqlite"], indirect=True)
def test_the_generated_requests_detect_a_wrong_document(
    server: Server, deployment: Deployment, tmp_path: Path
) -> None:
    """So that a run without failures means something: each lie is detected by its own check."""
    document = committed_document()
    paths = document["paths"] = resolved(document["paths"], document)
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

    seen = ("getHealth", "getReadiness", "listNotices", "listNoticeVersions", "listAcknowledgments")
    options = ["--phases", "coverage", *(f"--include-operation-id={name}" for name in seen)]
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
    owners = {name: deployment.account(f"{directory.name} {name}") for name in "ab"}
    deployment.run("accounts", "clearance", "set", owners["a"], "--overrides-per-day", "9")
    keys = {name: key_of_a_person(deployment, owner) for name, owner in owners.items()}
    with server.client(keys["a"]) as client:
        known = {"fulfilOrder": {"clearance_id": _cleared(client)}}
        known["overrideClearance"] = {"clearance_id": _refused(client)}
        known["reviewBuyer"] = {"cbid": _waiting(client)}
    entries = [
        {"name": name, "fixedHeaders": [{"name": "Authorization", "value": f"Bearer {key}"}]}
        for name, key in keys.items()
    ]
    (directory / "keys.json").write_text(json.dumps({"auth": entries}))
    (directory / "schemathesis.toml").write_text(configuration(known))
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
        timeout=570,
        check=False,
    )
    assert done.returncode == int(fails), done.stdout + done.stderr
    report: dict[str, Any] = json.loads((directory / "report.json").read_text())
    return report


def _cleared(client: httpx2.Client) -> str:
    """The id of the clearance of an order, whose members no random request finds together."""
    session = {"provider_identity_session_id": "vs_schemathesis", "shipping_zip": "94110"}
    buyer = client.post("/v1/buyers/verify", json={**session, "test_mode": True}).json()
    order = {"cbid": buyer["cbid"], "session_id": "cs_8f14e45f"}
    path = "/v1/notices/ab1263"
    lines = len(client.get(path).json()["bullets"])
    initials = {"initials_per_line": ["JD"] * lines}
    acknowledged = client.post(f"{path}/acknowledge", json=order | initials).json()
    question = order | {"ack_id": acknowledged["ack_id"], "shipping_zip": "94110"}
    answer = client.post("/v1/clearances", json=question).json()
    assert answer["cleared"], answer
    clearance_id: str = answer["clearance_id"]
    return clearance_id


def _refused(client: httpx2.Client) -> str:
    """The id of the clearance of an order that was refused, and can be overridden."""
    order = {"ack_id": "a", "cbid": "b", "session_id": "cs_refused", "shipping_zip": "94110"}
    answer = client.post("/v1/clearances", json=order | {"product_class": "accessory"}).json()
    clearance_id: str = answer["clearance_id"]
    return clearance_id


def _waiting(client: httpx2.Client) -> str:
    """The cbid of a buyer in the review queue."""
    session = {"provider_identity_session_id": "test_zip_mismatch", "shipping_zip": "94110"}
    cbid: str = client.post("/v1/buyers/verify", json={**session, "test_mode": True}).json()["cbid"]
    return cbid


def configuration(known: Mapping[str, Mapping[str, str]]) -> str:
    """The settings, as TOML; a string of JSON is one of TOML too.

    `known` has path parameters of existing objects.
    """
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
    for operation, statuses in _beyond().items():
        refusals = [*ACCEPTED, *map(str, sorted(statuses))]
        lines += ["[[operations]]", f"include-operation-id = {json.dumps(operation)}"]
        for name, value in known.get(operation, {}).items():
            lines.append(f"parameters = {{ {name} = {json.dumps(value)} }}")
        lines += [
            "[operations.checks.positive_data_acceptance]",
            f"expected-statuses = {json.dumps(refusals)}",
            "[operations.checks.not_a_server_error]",
            f"expected-statuses = {json.dumps(['2xx', '3xx', '4xx', *refusals])}",
        ]
    return "\n".join(lines) + "\n"


def _beyond() -> dict[str, set[int]]:
    """By operation, refusals of requests that fit the schema."""
    found = {operation: set(statuses) for operation, statuses in ALSO.items()}
    for beyond in BEYOND_JSON_SCHEMA:
        found.setdefault(beyond.operation, set()).add(beyond.status)
    for operation in Document(committed_document()).operations():
        if "Idempotency-Key" in {p["name"] for p in operation.definition["parameters"]}:
            found.setdefault(operation.id, set()).add(REUSED)
    return found


def operation_ids(document: Mapping[str, Any]) -> dict[str, str]:
    """The operations by what schemathesis calls them: method and path."""
    return {
        f"{method.upper()} {path}": operation["operationId"]
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }
