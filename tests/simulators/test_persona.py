"""The simulated Persona, judged by Persona's own OpenAPI description."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import jsonschema_rs
import pytest

from countersign.identity.json_reader import Fields
from countersign.identity.persona import PROOFS, QUERY, SESSION_ID, Persona
from countersign_simulators import persona as simulated
from countersign_simulators.base import Reply, Request
from countersign_simulators.persona_sessions import session_id
from tests.conftest import SHARED
from tests.identity.asking import FixedClock
from tests.simulators import published

SPECIFICATION: Final = SHARED / "specs" / "persona-inquiry.json"
RESPONSES: Final = {
    200: "/paths/~1inquiries~1{inquiry-id}/get/responses/200/content/application~1json/schema",
    400: "/components/responses/bad-request/content/application~1json/schema",
    401: "/components/responses/unauthorized/content/application~1json/schema",
    404: "/components/responses/not-found/content/application~1json/schema",
    429: "/components/responses/too-many-requests/content/application~1json/schema",
}
AUTHENTICATED: Final = {
    "ratelimit-limit",
    "ratelimit-remaining",
    "ratelimit-reset",
    "request-id",
    "persona-environment-id",
    "persona-organization-id",
}
IGNORED: Final = Fields(
    # Input of the buyer or the vendor; notes, labels and risk signals; times that the status
    # implies, and where in the flow the buyer is.
    "data(attributes(fields note behaviors tags creator reviewer-comment created-at updated-at",
    "started-at expires-at failed-at marked-for-review-at expired-at previous-step-name",
    "next-step-name))",
    # Other times and labels; the typed address; data of an unseen document.
    "included(attributes(created-at created-at-ts submitted-at submitted-at-ts completed-at-ts",
    "tags phone-number email-address document-issuing-date document-expiry-date",
    "document-issuing-subdivision document-number",
    # Pictures, whose addresses contain access tokens.
    "front-photo-url back-photo-url photo-urls selfie-photo selfie-photo-url video-url",
    "portrait-photo",
    # Other data of a document, how it was captured, and Persona's confidence.
    "name-middle name-suffix native-name-first native-name-middle native-name-last",
    "native-name-title nationality visa-status issue-date designations birthplace endorsements",
    "height sex restrictions vehicle-class capture-method entity-confidence-reasons",
    "entity-confidence-score from-reusable-persona age-in-years meets-minimum-age",
    "validated-issuer-key))",
)
"""Documented by Persona, and not requested."""
NOT_AS_DESCRIBED: Final = {"bad_gateway_html", "server_error", "truncated", "rate_limited"}
TWICE_OR_EXTRA: Final = {
    session_id(name) for name in ("LimitedOnce", "LimitedBriefly", "ExtraFields")
}


def specification() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(SPECIFICATION.read_text(encoding="utf-8"))
    return found


def at(document: Any, pointer: str) -> Any:  # noqa: ANN401 - any JSON
    """The value at a JSON pointer."""
    for part in pointer.removeprefix("#").split("/")[1:]:
        document = document[part.replace("~1", "/").replace("~0", "~")]
    return document


def get(
    simulator: simulated.Persona,
    path: str,
    *,
    method: str = "GET",
    key: str | None = simulated.API_KEY,
    query: tuple[tuple[str, str], ...] = (("include", "verifications"),),
    **headers: str,
) -> Reply:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if key is not None:
        sent["authorization"] = f"Bearer {key}"
    request = Request(method=method, path=path, query=query, headers=sent, body=b"")
    return simulator.answer(request)


def new() -> simulated.Persona:
    return simulated.Persona(FixedClock().now)


def inquiry(name: str) -> str:
    return f"/api/v1/inquiries/{session_id(name)}"


def judge(described: dict[str, Any], pointer: str) -> jsonschema_rs.Validator:
    """Judges by the schema at this place of the description."""
    schema = at(described, pointer) | {"components": described["components"]}
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True)


@pytest.mark.vectors
def test_every_inquiry_is_as_persona_describes_it() -> None:
    """By schemas that allow no further members; included resources by the schema of their type."""
    described = specification()
    answer = judge(described, RESPONSES[200])
    included = described["components"]["schemas"]["inquiry-included-objects"]
    by_type = {
        kind: judge(described, reference)
        for kind, reference in included["items"]["discriminator"]["mapping"].items()
    }
    simulator = new()
    judged: Counter[str] = Counter()
    for session in simulator.sessions:
        if session.scenario in NOT_AS_DESCRIBED or session.session_id in TWICE_OR_EXTRA:
            continue
        body = json.loads(get(simulator, f"/api/v1/inquiries/{session.session_id}").body)
        answer.validate(body)
        for resource in body["included"]:
            by_type[resource["type"]].validate(resource)
            judged[resource["type"]] += 1
        judged["inquiry"] += 1
    assert judged["inquiry"] > 35
    assert judged.keys() >= {
        "verification/government-id",
        "verification/aamva",
        "verification/database",
        "verification/selfie",
    }
    extra = json.loads(get(simulator, inquiry("ExtraFields")).body)
    assert not answer.is_valid(extra)


@pytest.mark.vectors
@pytest.mark.parametrize(
    ("status", "path", "key", "version"),
    [
        (400, inquiry("Verified"), simulated.API_KEY, "1999-01-01"),
        (401, inquiry("Verified"), None, "2025-12-08"),
        (401, inquiry("Verified"), "persona_production_of_somebody", "2025-12-08"),
        (404, "/api/v1/inquiries/inq_0000000000000000", simulated.API_KEY, "2025-12-08"),
        (429, inquiry("LimitedLong"), simulated.API_KEY, "2025-12-08"),
    ],
)
def test_every_error_is_as_persona_describes_it(
    status: int, path: str, key: str | None, version: str
) -> None:
    """The member is `details`, not the `detail` of JSON:API."""
    reply = get(new(), path, key=key, persona_version=version)
    assert reply.status == status
    body = json.loads(reply.body)
    judge(specification(), RESPONSES[status]).validate(body)
    assert body["errors"]


@pytest.mark.vectors
def test_every_field_that_persona_describes_is_sorted() -> None:
    """A new field of a new version fails here until somebody has decided what it means to us."""
    described = {without_kind(field) for field in fields(specification())}
    assert len(described) > 100
    unknown = {field for field in described if not published.is_known(field, Persona.words.fields)}
    assert {field for field in unknown if not published.is_known(field, IGNORED)} == set()


@pytest.mark.vectors
def test_no_requested_field_is_unknown_to_persona() -> None:
    """A misspelt path would be a field that is never read."""
    described = set(fields(specification()))
    attributes = {
        (kind, field.split(".")[3])
        for kind in PROOFS
        for field in described
        if field.startswith(f"included.{kind}.attributes.")
    }
    requested = {
        (name[len("fields[") : -1], attribute)
        for name, value in QUERY
        for attribute in value.split(",")
    }
    assert {(kind, name) for kind, name in requested if kind in PROOFS} <= attributes
    assert published.undescribed({without_kind(field) for field in described}, IGNORED) == set()


def without_kind(field: str) -> str:
    """The path without the kind of an included resource."""
    parts = field.split(".")
    return ".".join([parts[0], *parts[2:]]) if parts[0] == "included" else field


def fields(described: dict[str, Any]) -> Iterator[str]:
    """The dotted path of every member of a response, for included kinds only the ones in use."""
    answer = at(described, RESPONSES[200])
    yield from members(described, answer["properties"]["data"], "data")
    included = at(described, answer["properties"]["included"]["$ref"])
    for kind, reference in included["items"]["discriminator"]["mapping"].items():
        if kind in PROOFS:
            yield from members(described, {"$ref": reference}, f"included.{kind}")


def members(described: dict[str, Any], schema: dict[str, Any], path: str) -> Iterator[str]:
    """The leaves under a schema."""
    if "$ref" in schema:
        yield from members(described, at(described, schema["$ref"]), path)
    elif "items" in schema:
        yield from members(described, schema["items"], path)
    elif "allOf" in schema:
        for part in schema["allOf"]:
            yield from members(described, part, path)
    elif "properties" in schema:
        for name, inner in schema["properties"].items():
            yield from members(described, inner, f"{path}.{name}")
    else:
        yield path


def test_authenticated_answers_carry_personas_headers_and_others_do_not() -> None:
    """Limits, request and environment are shown to a key only."""
    for path in (inquiry("Verified"), "/api/v1/nothing"):
        assert {name.lower() for name, _ in get(new(), path).headers} >= AUTHENTICATED
        refused = {name.lower() for name, _ in get(new(), path, key=None).headers}
        assert refused.isdisjoint(AUTHENTICATED)


def test_nothing_is_included_unless_requested() -> None:
    """Since version 2025-10-27 the verifications come only with `include`."""
    assert "included" not in json.loads(get(new(), inquiry("Verified"), query=()).body)
    assert "included" in json.loads(get(new(), inquiry("Verified")).body)


def test_sparse_fields_leave_out_the_rest() -> None:
    """By the exact type, by the general one, and member by member inside `fields`."""
    query = (
        ("include", "verifications"),
        ("fields[inquiry]", "status,fields.birthdate"),
        ("fields[verification]", "status"),
    )
    body = json.loads(get(new(), inquiry("Verified"), query=query).body)
    attributes = body["data"]["attributes"]
    assert attributes.keys() == {"status", "fields"}
    assert attributes["fields"].keys() == {"birthdate"}
    assert body["included"][0]["attributes"] == {"status": "passed"}
    exact = (*query, ("fields[verification/government-id]", "birthdate"))
    body = json.loads(get(new(), inquiry("Verified"), query=exact).body)
    assert body["included"][0]["attributes"].keys() == {"birthdate"}


@pytest.mark.parametrize(
    ("style", "key"),
    [("kebab", "reference-id"), ("snake", "reference_id"), ("camel", "referenceId")],
)
def test_keys_are_inflected_except_inside_fields(style: str, key: str) -> None:
    """The names in `fields` are the template's own."""
    body = json.loads(get(new(), inquiry("Verified"), key_inflection=style).body)
    assert key in body["data"]["attributes"]
    assert "address-postal-code" in body["data"]["attributes"]["fields"]


def test_redacting_keeps_the_status_and_empties_the_fields() -> None:
    """`DELETE` redacts once; after that it is a conflict."""
    simulator = new()
    assert get(simulator, inquiry("Verified"), method="DELETE").status == 200
    body = json.loads(get(simulator, inquiry("Verified")).body)
    attributes = body["data"]["attributes"]
    assert attributes["status"] == "approved"
    assert attributes["redacted-at"] is not None
    assert {field["value"] for field in attributes["fields"].values()} == {None}
    assert body["included"] == []
    assert get(simulator, inquiry("Verified"), method="DELETE").status == 409


@pytest.mark.parametrize(("decision", "status"), [("approve", "approved"), ("decline", "declined")])
def test_a_reviewer_can_decide(decision: str, status: str) -> None:
    """So that a pending verification can be rehearsed to its end."""
    simulator = new()
    path = inquiry("NeedsReview")
    assert get(simulator, f"{path}/{decision}", method="POST").status == 200
    assert json.loads(get(simulator, path).body)["data"]["attributes"]["status"] == status


def test_the_parts_are_listed_as_promised() -> None:
    """Fixed identifiers that fit the pattern, no word twice but `verified`, personal strings."""
    sessions = new().sessions
    clock = FixedClock()
    clock.seconds += 86400 * 400
    later = simulated.Persona(clock.now).sessions
    assert [s.session_id for s in sessions] == [s.session_id for s in later]
    assert len({s.session_id for s in sessions}) == len(sessions)
    assert all(SESSION_ID.fullmatch(s.session_id) and len(s.session_id) == 32 for s in sessions)
    words = Counter(s.scenario for s in sessions)
    assert [word for word, times in words.items() if times > 1] == ["verified"]
    assert len(words) >= 14
    verified = [s for s in sessions if s.scenario == "verified"]
    assert len({s.shipping_zip for s in verified}) >= 3
    assert all(len(s.personal) >= 6 for s in verified)


def test_every_personal_string_is_really_in_the_inquiry() -> None:
    """Strings that a privacy test searches for were really sent to us."""
    simulator = new()
    for session in simulator.sessions:
        if session.scenario != "verified":
            continue
        path = f"/api/v1/inquiries/{session.session_id}"
        get(simulator, path)
        body = get(simulator, path).body.decode()
        if session.session_id != session_id("TypedOtherwise"):
            assert all(text in body for text in session.personal), session.scenario


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/inquiries/"),
        ("GET", "/api/v1/accounts"),
        ("POST", "/api/v1/inquiries/x/approve"),
        ("PUT", "/api/v1/inquiries"),
        ("GET", "/"),
        ("GET", "*"),
    ],
)
def test_any_request_has_an_answer_in_personas_shape(method: str, path: str) -> None:
    """An unknown path is Persona's 404; without a key it is its 401."""
    for key, status in ((simulated.API_KEY, 404), (None, 401)):
        reply = get(new(), path, method=method, key=key)
        assert reply.status == status
        assert json.loads(reply.body)["errors"][0]["title"]
