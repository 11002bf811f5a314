"""The simulated Onfido, judged by Onfido's published description and by its own SDK."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest

from countersign.identity.onfido import Onfido
from countersign_simulators import onfido as simulated
from countersign_simulators.base import Reply, Request, Session
from countersign_simulators.server import serve
from tests.identity.asking import FixedClock
from tests.simulators import published

UNREADABLE: Final = {"truncated", "oversized", "slow", "cut"}
REFUSED: Final = {
    "other_environment": 404,
    "rate_limited": 429,
    "server_error": 500,
    "bad_gateway": 502,
    "deleted": 410,
    "report_server_error": 500,
}


def onfido() -> simulated.Onfido:
    return simulated.Onfido(FixedClock().now)


def get(simulator: simulated.Onfido, path: str, token: str = simulated.TOKENS["live"]) -> Reply:
    headers = {"authorization": f"Token token={token}"}
    return simulator.answer(
        Request(method="GET", path=f"/v3.6/{path}", query=(), headers=headers, body=b"")
    )


def run_of(simulator: simulated.Onfido, session: Session) -> Reply:
    """The run; the second answer if the first one asks for patience."""
    first = get(simulator, f"workflow_runs/{session.session_id}")
    limited = first.status == 429
    return get(simulator, f"workflow_runs/{session.session_id}") if limited else first


@pytest.mark.vectors
def test_every_run_matches_onfidos_description(shared_vectors: Path) -> None:
    """An unknown status is the one thing that does not fit; errors have their shape too."""
    description = published.load(shared_vectors.parent / "specs" / "onfido-workflow-run.json")
    runs = published.validator(description, "workflow_run")
    errors = published.validator(description, "Error")
    simulator = onfido()
    for session in simulator.sessions:
        reply = run_of(simulator, session)
        if session.scenario in UNREADABLE | {"bad_gateway"}:
            continue
        body = json.loads(reply.body)
        if reply.status != 200:
            errors.validate(body)
            assert set(body["error"]) == {"type", "message", "fields"}
        else:
            assert runs.is_valid(body) is (session.scenario != "unknown_status"), session.scenario
            runs.validate(body | {"status": "processing"})


@pytest.mark.vectors
def test_every_field_that_onfido_describes_of_a_run_is_sorted(shared_vectors: Path) -> None:
    """A new field fails here until it is read or listed as ignored."""
    description = published.load(shared_vectors.parent / "specs" / "onfido-workflow-run.json")
    described = published.fields(description, "workflow_run")
    assert len(described) > 15
    assert published.unsorted(described, Onfido.words.fields) == set()
    assert published.undescribed(described, Onfido.words.fields) == set()


def members(model: Any, path: str = "") -> Iterator[str]:  # noqa: ANN401 - a model of the SDK
    """The dotted paths of everything that the SDK's model describes."""
    for name, field in model.model_fields.items():
        if name == "additional_properties":
            continue
        inner = [kind for kind in (field.annotation, *_inside(field.annotation)) if _is_model(kind)]
        listed = "[]" if "List" in str(field.annotation) else ""
        here = f"{path}{field.alias or name}{listed}"
        yield from members(inner[0], f"{here}.") if inner else (here,)


def _inside(kind: Any) -> Iterator[Any]:  # noqa: ANN401 - a type
    for argument in getattr(kind, "__args__", ()):
        yield argument
        yield from _inside(argument)


def _is_model(kind: object) -> bool:
    return isinstance(kind, type) and hasattr(kind, "model_fields")


def test_every_field_that_onfidos_sdk_describes_is_sorted() -> None:
    """Tasks and reports are not in the description at hand; the SDK is made from the whole."""
    from onfido import DocumentReport, Task, WorkflowRun  # noqa: PLC0415 - slow to import

    run, task, report = (set(members(model)) for model in (WorkflowRun, Task, DocumentReport))
    # A task has the report in its output, where its identifier is `uuid`.
    task |= {f"output.{field}" for field in report} | {"output.uuid"}
    assert len(run | task) > 150
    words = Onfido.words
    for described, known in ((run, words.fields), (task, words.further_fields)):
        assert published.unsorted(described - {"output"}, known) == set()
        assert published.undescribed(described, known) == set()


def with_sdk(simulator: simulated.Onfido) -> dict[str, object]:
    """Each run read by Onfido's own client: the last name in its report, or the error."""
    import onfido as sdk  # noqa: PLC0415 - slow: only the tests that need it pay

    def last_name(api: sdk.DefaultApi, run_id: UUID) -> str | None:
        for item in api.list_tasks(run_id):
            if item.task_def_id == "document_check" and item.id is not None:
                output = api.find_task(run_id, item.id).output
                report = api.find_report(output["uuid"]).actual_instance
                assert isinstance(report, sdk.DocumentReport)
                assert report.properties is not None
                return report.properties.last_name
        return None

    def use(url: str) -> dict[str, object]:
        found: dict[str, object] = {}
        settings = sdk.Configuration(host=f"{url}/v3.6", api_token=simulated.TOKENS["live"])
        # Else the SDK waits out a Retry-After.
        settings.retries = False
        with sdk.ApiClient(settings) as client:
            api = sdk.DefaultApi(client)
            for session in simulator.sessions:
                if session.scenario in UNREADABLE | {"unknown_status"}:
                    continue
                try:
                    run = api.find_workflow_run(UUID(session.session_id))
                    assert run.customer_user_id is not None
                    found[session.session_id] = last_name(api, UUID(session.session_id))
                except sdk.ApiException as error:
                    found[session.session_id] = error.status
        return found

    async def run() -> dict[str, object]:
        async with serve(simulator) as served:
            return await asyncio.to_thread(use, served.url)

    return asyncio.run(run())


def test_onfidos_sdk_reads_every_session() -> None:
    """Runs, tasks and reports, each as the SDK knows it; and the errors."""
    simulator = onfido()
    found = with_sdk(simulator)
    assert len(found) > 30
    refused = {"0f1d0000-0000-4000-8000-000000000013": 429} | {
        session.session_id: REFUSED[session.scenario]
        for session in simulator.sessions
        if session.scenario in REFUSED
    }
    for session in simulator.sessions:
        answer = found.get(session.session_id)
        if session.session_id in refused:
            assert answer == refused[session.session_id]
        else:
            assert answer is None or answer in session.personal
    assert {"Mudlarkson", "Thrumblecastle", 429, 404, 410} <= set(found.values())


def test_onfidos_sdk_verifies_every_webhook() -> None:
    """Signature and payload are those that the SDK's verifier reads."""
    import onfido as sdk  # noqa: PLC0415 - slow: only the tests that need it pay

    simulator = onfido()
    verifier = sdk.WebhookEventVerifier(simulated.WEBHOOK_TOKEN)
    for session in simulator.sessions:
        if session.scenario == "unknown_status":
            continue
        sent = simulator.webhook(session.session_id)
        event = verifier.read_payload(sent.body.decode(), dict(sent.headers)["X-SHA2-Signature"])
        assert event is not None
        assert event.payload is not None
        assert event.payload.object is not None
        assert event.payload.object.id == session.session_id


@pytest.mark.parametrize(
    ("method", "path", "token", "status", "kind"),
    [
        ("GET", "/v3.6/workflow_runs/x", "", 401, "authorization_error"),
        ("GET", "/v3.6/workflow_runs/x", "api_live_us.wrong", 401, "authorization_error"),
        ("GET", "/v3.6/workflow_runs/x", simulated.TOKENS["live"], 404, "resource_not_found"),
        ("GET", "/v3.6/reports/x", simulated.TOKENS["live"], 404, "resource_not_found"),
        ("GET", "/v2/workflow_runs", simulated.TOKENS["live"], 404, "resource_not_found"),
        ("GET", "/v3.6/", simulated.TOKENS["live"], 404, "resource_not_found"),
        (
            "POST",
            "/v3.6/workflow_runs/0f1d0000-0000-4000-8000-000000000001",
            simulated.TOKENS["live"],
            404,
            "resource_not_found",
        ),
        (
            "GET",
            "/v3.6/workflow_runs/0f1d0000-0000-4000-8000-000000000001/tasks/none",
            simulated.TOKENS["live"],
            404,
            "resource_not_found",
        ),
    ],
)
def test_errors_have_onfidos_shape(
    method: str, path: str, token: str, status: int, kind: str
) -> None:
    """With a type and a request id."""
    headers = {"authorization": f"Token token={token}"} if token else {}
    reply = onfido().answer(Request(method=method, path=path, query=(), headers=headers, body=b""))
    assert (reply.status, json.loads(reply.body)["error"]["type"]) == (status, kind)
    assert "X-Request-Id" in dict(reply.headers)


def test_each_environment_knows_its_own_runs_only() -> None:
    """A token of the sandbox sees the run of the sandbox, and no other."""
    ids = [session.session_id for session in onfido().sessions]
    seen = [
        i
        for i in ids
        if get(onfido(), f"workflow_runs/{i}", simulated.TOKENS["sandbox"]).status == 200
    ]
    assert seen == ["0f1d0000-0000-4000-8000-000000000042"]


def test_the_list_of_sessions_keeps_its_promises() -> None:
    """Well-formed identifiers, one part each but for `verified`, and all personal strings."""
    simulator = onfido()
    sessions = simulator.sessions
    plays = Counter(session.scenario for session in sessions)
    assert len({session.session_id for session in sessions}) == len(sessions)
    assert plays.pop("verified") > 5
    assert len(plays) > 20
    assert set(plays.values()) == {1}
    assert all(Onfido.session_id.fullmatch(session.session_id) for session in sessions)
    assert [s.session_id for s in sessions] == [s.session_id for s in onfido().sessions]
    checked = 0
    for session in sessions:
        listed = get(simulator, f"workflow_runs/{session.session_id}/tasks")
        for item in json.loads(listed.body) if listed.status == 200 else ():
            path = f"workflow_runs/{session.session_id}/tasks/{item['id']}"
            output = json.loads(get(simulator, path).body)["output"]
            for text in _personal(output):
                checked += 1
                assert text in session.personal, (session.session_id, text)
    assert checked > 100


def _personal(body: Any) -> set[str]:  # noqa: ANN401 - any JSON
    """The personal strings of a report."""
    read = (body or {}).get("properties", {})
    names = ("first_name", "last_name", "date_of_birth")
    numbers = [number["value"] for number in read.get("document_numbers", ())]
    street = read.get("address_lines", {}).get("street_address")
    found = (*(read.get(name) for name in names), *numbers, street)
    return {text for text in found if text is not None}
