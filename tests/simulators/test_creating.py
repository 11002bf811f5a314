"""Refusals of Veriff, Didit and Onfido when a session is created, each in its own form."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign_simulators import didit, onfido, veriff
from countersign_simulators.base import Reply, Request
from countersign_simulators.didit_created import WORKFLOW as DIDIT_WORKFLOW
from countersign_simulators.hosted import Outcome
from countersign_simulators.onfido_created import WORKFLOW as ONFIDO_WORKFLOW
from countersign_simulators.registry import SIMULATORS
from tests.identity.asking import JUNK, FixedClock
from tests.simulators import published
from tests.simulators.creating import CLIENT, choose, create, found, post, signature
from tests.support.providers import Playing, playing

NO_ONE: Final = "00000000-0000-4000-8000-000000000000"
SAFE: Final = "https://shop.example/back"


@pytest.fixture
def played(request: pytest.FixtureRequest) -> Iterator[Playing]:
    """The simulator that the test names."""
    with playing(request.param) as running:
        yield running


at_veriff = pytest.mark.parametrize("played", ["veriff"], indirect=True)
at_didit = pytest.mark.parametrize("played", ["didit"], indirect=True)
at_onfido = pytest.mark.parametrize("played", ["onfido"], indirect=True)


AT: Final = {
    "veriff": ("/v1/sessions", {"x-auth-client": veriff.API_KEY}),
    "didit": ("/v3/session/", {"x-api-key": didit.API_KEY}),
    "onfido": (
        "/v3.6/workflow_runs",
        {"authorization": f"Token token={onfido.TOKENS['live']}"},
    ),
}
"""The path of creation, and the key."""
MEMBERS: Final = ("verification", "callback", "vendorData", "workflow_id", "link", "metadata")


def sent(name: str, body: bytes) -> Reply:
    """The response to a body, right out of the simulator."""
    path, headers = AT[name]
    headers = headers | {"content-type": "application/json"}
    request = Request(method="POST", path=path, query=(), headers=headers, body=body)
    return SIMULATORS[name](FixedClock().now).answer(request)


@pytest.mark.parametrize("name", AT)
@given(body=st.dictionaries(st.sampled_from(MEMBERS), JUNK) | JUNK)
def test_every_odd_body_gets_an_answer(name: str, body: object) -> None:
    """Whatever is sent, the simulator returns a session or an error."""
    for raw in (json.dumps(body).encode(), json.dumps({"verification": body}).encode()):
        reply = sent(name, raw)
        assert reply.status in {201, 400, 422}
        assert json.loads(reply.body)


@pytest.mark.parametrize("name", AT)
@pytest.mark.parametrize(
    "raw", [b"", b"{", b"\xff", b"[" * 100_000, b'{"verification": NaN}', b'"\\ud800"']
)
def test_invalid_json_is_refused(name: str, raw: bytes) -> None:
    """In the form of any other error."""
    assert sent(name, raw).status in {400, 422}


@at_veriff
@pytest.mark.parametrize(
    ("verification", "status", "code"),
    [
        ({}, 201, None),
        ({"callback": SAFE, "vendorData": "x" * 1000, "lang": "es"}, 201, None),
        ({"callback": "http://127.0.0.1:9/back"}, 201, None),
        (None, 400, "1102"),
        ([], 400, "1104"),
        ({"callback": "http://shop.example/back"}, 400, "1302"),
        ({"callback": "javascript:alert(1)"}, 400, "1302"),
        ({"callback": f"{SAFE}\n"}, 400, "1302"),
        ({"vendorData": "x" * 1001}, 400, "1500"),
        ({"vendorData": 7}, 400, "1501"),
        ({"vendordata": "x"}, 400, "1104"),
        ({"endUserId": "buyer-7"}, 400, "1104"),
        ({"person": {"firstName": "A", "birthday": "1990-01-01"}}, 400, "1104"),
        ({"document": {"type": "LIBRARY_CARD"}}, 400, "1104"),
        ({"consents": [{"type": "ine"}]}, 400, "1104"),
    ],
)
def test_veriff_accepts_bodies_as_its_page_describes(
    played: Playing, verification: object, status: int, code: str | None
) -> None:
    """Members that are unknown or misspelt are invalid parameters; return addresses are HTTPS."""
    body = {} if verification is None else {"verification": verification}
    reply = post(f"{played.url}/v1/sessions", body, x_auth_client=veriff.API_KEY)
    assert reply.status_code == status
    assert reply.json().get("code") == code
    assert reply.json()["status"] == ("success" if code is None else "fail")


@at_veriff
@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, "1101"),
        ({"x_auth_client": "wrong"}, "1102"),
        ({"x_auth_client": veriff.API_KEY, "x_hmac_signature": "0" * 64}, "1802"),
    ],
)
def test_veriff_requires_the_key_and_a_right_signature_if_there_is_one(
    played: Playing, headers: Mapping[str, str], code: str
) -> None:
    """The one POST that Veriff does not require to be signed."""
    reply = post(f"{played.url}/v1/sessions", {"verification": {}}, **headers)
    assert (reply.status_code, reply.json()["code"]) == (401, code)


@at_veriff
def test_veriff_signs_the_new_session(played: Playing) -> None:
    """The response of the creation carries the HMAC of its body."""
    reply = post(
        f"{played.url}/v1/sessions",
        {"verification": {"vendorData": "b"}},
        x_auth_client=veriff.API_KEY,
    )
    assert reply.headers["x-hmac-signature"] == signature(reply.content)
    answer = reply.json()["verification"]
    assert set(answer) == {"id", "url", "vendorData", "host", "status", "sessionToken"}
    assert answer["url"] == f"{answer['host']}/v/{answer['sessionToken']}"
    assert (answer["status"], answer["host"]) == ("created", played.url)


@at_veriff
def test_veriff_lets_a_buyer_repeat_a_blurred_photo_in_the_same_session(played: Playing) -> None:
    """A resubmission is requested at the same address."""
    made = create(played, SAFE)
    choose(made, "photo_blurred")
    choose(made, "verified")
    decision = found(played, made)
    assert decision is not None
    assert decision["status"] == "approved"


@at_didit
@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"workflow_id": ...}, "workflow_id"),
        ({"workflow_id": "kyc"}, "workflow_id"),
        ({"workflow_id": NO_ONE}, "workflow_id"),
        ({"callback": "shop"}, "callback"),
        ({"callback_method": "nobody"}, "callback_method"),
        ({"language": "Spanish"}, "language"),
        ({"metadata": 7}, "metadata"),
        ({"vendor-data": "b"}, "vendor-data"),
        ({"contact_details": {"mail": "b@buyer.example"}}, "contact_details.mail"),
    ],
)
def test_didit_names_what_is_wrong_with_a_field(
    played: Playing, changes: Mapping[str, Any], named: str
) -> None:
    """400 with the field and its reasons."""
    body = {"workflow_id": DIDIT_WORKFLOW, "vendor_data": "b"} | dict(changes)
    wanted = {name: value for name, value in body.items() if value is not ...}
    reply = post(f"{played.url}/v3/session/", wanted, x_api_key=didit.API_KEY)
    assert reply.status_code == 400
    assert set(reply.json()) == {named}
    assert all(isinstance(reason, str) for reason in reply.json()[named])


@at_didit
def test_didit_wants_the_key_and_the_slash(played: Playing) -> None:
    """As for every other operation."""
    body = {"workflow_id": DIDIT_WORKFLOW}
    assert post(f"{played.url}/v3/session/", body).status_code == 403
    assert post(f"{played.url}/v3/session/", body, x_api_key="wrong").status_code == 401
    assert post(f"{played.url}/v3/session", body, x_api_key=didit.API_KEY).status_code == 301


@at_didit
def test_didit_returns_the_unfinished_session_of_the_same_buyer(played: Playing) -> None:
    """With the new callback and metadata; a session that has ended is not used again."""

    def make(**changes: object) -> dict[str, Any]:
        body = {"workflow_id": DIDIT_WORKFLOW} | changes
        reply = post(f"{played.url}/v3/session/", body, x_api_key=didit.API_KEY)
        assert reply.status_code == 201
        answer: dict[str, Any] = reply.json()
        return answer

    first = make(vendor_data="b", callback=SAFE)
    second = make(vendor_data="b", callback=f"{SAFE}/2", metadata={"a": 1})
    assert (second["session_id"], second["url"]) == (first["session_id"], first["url"])
    assert (second["callback"], second["metadata"]) == (f"{SAFE}/2", {"a": 1})
    reply = CLIENT.post(first["url"], data={"outcome": "failed"})
    assert reply.headers["Location"].startswith(f"{SAFE}/2?verificationSessionId=")
    assert make(vendor_data="b")["session_id"] != first["session_id"]
    assert make()["session_id"] != make()["session_id"]


def at_onfido_post(played: Playing, path: str, body: object, mode: str = "live") -> Any:  # noqa: ANN401
    token = f"Token token={onfido.TOKENS[mode]}"
    return post(f"{played.url}/v3.6/{path}", body, authorization=token)


@at_onfido
@pytest.mark.parametrize(
    ("path", "body", "named"),
    [
        ("applicants", {"first_name": "A"}, "last_name"),
        ("applicants", {"first_name": "A", "last_name": "<b>"}, "last_name"),
        ("applicants", {"first_name": "A", "last_name": "B", "dob": "1990-2-3"}, "dob"),
        ("applicants", {"first_name": "A", "last_name": "B", "born": "1990-02-03"}, "born"),
        ("applicants", [], "body"),
        ("workflow_runs", {"workflow_id": ONFIDO_WORKFLOW}, "applicant_id"),
        (
            "workflow_runs",
            {"workflow_id": ONFIDO_WORKFLOW, "applicant_id": NO_ONE},
            "applicant_id",
        ),
        ("workflow_runs", {"workflow_id": "kyc", "applicant_id": NO_ONE}, "workflow_id"),
        (
            "workflow_runs",
            {
                "workflow_id": ONFIDO_WORKFLOW,
                "applicant_id": NO_ONE,
                "link": {"language": "en"},
            },
            "link.language",
        ),
        (
            "workflow_runs",
            {
                "workflow_id": ONFIDO_WORKFLOW,
                "applicant_id": NO_ONE,
                "link": {"completed_redirect": SAFE},
            },
            "link.completed_redirect",
        ),
    ],
)
@pytest.mark.vectors
def test_onfido_names_what_is_wrong_with_a_field(
    played: Playing, path: str, body: object, named: str, shared_vectors: Path
) -> None:
    """422 in the shape of the published error."""
    reply = at_onfido_post(played, path, body)
    assert reply.status_code == 422
    description = published.load(shared_vectors.parent / "specs" / "onfido-workflow-run.json")
    published.validator(description, "Error").validate(reply.json())
    assert reply.json()["error"]["type"] == "validation_error"
    assert set(reply.json()["error"]["fields"]) == {named}


@at_onfido
def test_onfido_keeps_its_environments_apart(played: Playing) -> None:
    """A run of the sandbox is made with an applicant of the sandbox, and is seen only there."""
    names = {"first_name": "A", "last_name": "B"}
    applicant = at_onfido_post(played, "applicants", names, "sandbox").json()
    assert applicant["sandbox"] is True
    wanted = {"applicant_id": applicant["id"], "workflow_id": ONFIDO_WORKFLOW}
    assert at_onfido_post(played, "workflow_runs", wanted).status_code == 422
    run = at_onfido_post(played, "workflow_runs", wanted, "sandbox").json()
    for mode, status in (("live", 404), ("sandbox", 200)):
        headers = {"Authorization": f"Token token={onfido.TOKENS[mode]}"}
        reply = CLIENT.get(f"{played.url}/v3.6/workflow_runs/{run['id']}", headers=headers)
        assert reply.status_code == status


@at_onfido
@pytest.mark.vectors
def test_every_state_of_a_created_run_matches_onfidos_description(
    played: Playing, shared_vectors: Path
) -> None:
    """From the creation to each end; only a completed run has been at the document."""
    description = published.load(shared_vectors.parent / "specs" / "onfido-workflow-run.json")
    runs = published.validator(description, "workflow_run")
    for outcome in Outcome:
        made = create(played, SAFE)
        runs.validate(made.answers)
        assert made.answers["status"] == "awaiting_input"
        choose(made, outcome)
        first, run = found(played, made), found(played, made)
        assert first is not None
        assert run is not None
        for each in (first, run):
            runs.validate({name: value for name, value in each.items() if name != "reports"})
        assert bool(run["reports"]) is (run["status"] in {"approved", "declined"})


@at_onfido
def test_onfidos_sdk_creates_a_run_and_reads_it_to_the_end(played: Playing) -> None:
    """Applicant, run with its link, and the report, each as the SDK knows it."""
    import onfido as sdk  # noqa: PLC0415 - slow: only the tests that need it pay

    settings = sdk.Configuration(host=f"{played.url}/v3.6", api_token=onfido.TOKENS["live"])
    with sdk.ApiClient(settings) as client:
        api = sdk.DefaultApi(client)
        applicant = api.create_applicant(
            sdk.ApplicantBuilder(first_name="Anonymous", last_name="Buyer")
        )
        run = api.create_workflow_run(
            sdk.WorkflowRunBuilder(
                applicant_id=applicant.id,
                workflow_id=UUID(ONFIDO_WORKFLOW),
                customer_user_id="chk_1",
                link=sdk.WorkflowRunLink(completed_redirect_url=SAFE, language="es_ES"),
            )
        )
        assert run.link is not None
        assert run.link.url is not None
        reply = CLIENT.post(run.link.url, data={"zip": "95501", "outcome": "verified"})
        assert reply.headers["Location"] == SAFE
        again = api.find_workflow_run(run.id)
        assert again.status == "approved"
        assert (again.customer_user_id, again.applicant_id) == ("chk_1", applicant.id)
        (check,) = (each for each in api.list_tasks(run.id) if each.task_def_id == "document_check")
        assert check.id is not None
        output = api.find_task(run.id, check.id).output
        report = api.find_report(output["uuid"]).actual_instance
        assert isinstance(report, sdk.DocumentReport)
        assert report.properties is not None
        assert report.properties.address_lines is not None
        assert report.properties.address_lines.postal_code == "95501"
    message = played.simulator.webhook(str(run.id))
    event = sdk.WebhookEventVerifier(onfido.WEBHOOK_TOKEN).read_payload(
        message.body.decode(), dict(message.headers)["X-SHA2-Signature"]
    )
    assert event is not None
    assert event.payload is not None
    assert event.payload.object is not None
    assert (event.payload.object.id, event.payload.object.status) == (str(run.id), "approved")


@at_onfido
@pytest.mark.parametrize("outcome", ["expired", "cancelled", "consent_declined"])
def test_onfido_leads_to_another_address_when_the_link_is_over(
    played: Playing, outcome: str
) -> None:
    """`expired_redirect_url`; without it the page stays."""
    names = {"first_name": "A", "last_name": "B"}
    applicant = at_onfido_post(played, "applicants", names).json()["id"]
    for link, expected in (
        ({"completed_redirect_url": SAFE, "expired_redirect_url": f"{SAFE}/late"}, f"{SAFE}/late"),
        ({"completed_redirect_url": SAFE}, None),
    ):
        wanted = {"applicant_id": applicant, "workflow_id": ONFIDO_WORKFLOW, "link": link}
        url = at_onfido_post(played, "workflow_runs", wanted).json()["link"]["url"]
        assert CLIENT.post(url, data={"outcome": outcome}).headers.get("Location") == expected
