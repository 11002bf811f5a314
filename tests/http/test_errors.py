"""Failures: every code is met, and all of them have one form."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain
from typing import Final

import pytest

from countersign.base.errors import REFUSALS, InternalError, Refusal, Retryable
from tests.http import wire
from tests.http.backstage import Operator, another_deployment, make_client
from tests.http.conftest import PUBLIC_URL, Configured
from tests.http.failures import (
    Caller,
    Failure,
    configured_failures,
    faults,
    make_caller,
    ordinary_failures,
)
from tests.http.failures_beyond import failures_beyond
from tests.http.test_pages import Page
from tests.http.trouble import Trouble, block, disconnect
from tests.support import postgres
from tests.support.service import Server

pytestmark = pytest.mark.one_engine

OF_THE_CONSOLE: Final = {
    *("account_exists", "account_not_found", "account_closed", "key_not_found", "key_not_usable"),
    *("unknown_subject", "on_hold", "notice_incomplete", "notice_version_conflict"),
    *("invalid_notice_file", "passkey_required", "people_refused", "not_granted"),
    *("link_on_machine", "person_not_found", "session_not_found", "second_person_required"),
    *("keys_remain", "secret_not_repeated"),
}
"""Where the console is on: `tests/staff` and `tests/people` meet them."""
DISCONNECTED: Final = {"storage_unavailable", "outcome_unknown"}
"""Met with a PostgreSQL alone: its connections can end."""


@pytest.fixture(scope="session")
def blocked(tmp_path_factory: pytest.TempPathFactory) -> Trouble:
    """Bring a SQLite deployment into trouble."""
    return block(another_deployment(tmp_path_factory.mktemp("blocked") / "data"))


@pytest.fixture(scope="session")
def disconnected(
    postgres_server: postgres.PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Trouble:
    """Bring a PostgreSQL deployment into trouble."""
    place = tmp_path_factory.mktemp("disconnected") / "data"
    return disconnect(another_deployment(place, postgres_server), postgres_server)


@pytest.fixture(
    scope="module", params=["all", pytest.param("disconnected", marks=pytest.mark.postgres)]
)
def failures(request: pytest.FixtureRequest, all_failures: list[Failure]) -> list[Failure]:
    """Every failure; separately, those of a database whose connections have ended."""
    if request.param == "all":
        return all_failures
    trouble: Trouble = request.getfixturevalue("disconnected")
    return trouble.failures


@pytest.fixture(scope="module")
def all_failures(
    server: Server, operator: Operator, configured: Configured, blocked: Trouble
) -> list[Failure]:
    """Give every failure that there is on SQLite."""
    shared = make_caller(operator, server.url)
    limited = make_caller(configured.operator, configured.server.url, PUBLIC_URL)
    return list(
        chain(
            ordinary_failures(shared),
            failures_beyond(shared),
            configured_failures(limited),
            blocked.failures,
        )
    )


def test_every_code_of_the_catalogue_can_be_met(all_failures: list[Failure]) -> None:
    here = {error.code for error in REFUSALS} - OF_THE_CONSOLE
    assert here - met(all_failures) == DISCONNECTED
    assert len(all_failures) > 200


@pytest.mark.postgres
def test_a_database_out_of_reach_has_codes_of_its_own(disconnected: Trouble) -> None:
    assert met(disconnected.failures) >= DISCONNECTED


def met(failures: list[Failure]) -> set[str]:
    """The codes in the answers."""
    begins = [re.match(rb'{"error":{"code":"(\w+)",', f.answer.body) for f in failures]
    return {begin[1].decode() for begin in begins if begin}


def test_every_failure_has_the_same_form(failures: list[Failure], server: Server) -> None:
    """The body, its type, and every header that is due; the framework's own failures included."""
    with make_client(server) as client:
        anchors = set(Page(client.get("/docs/errors").text).ids)
    found = [
        f"{failure.label}: {fault}" for failure in failures for fault in faults(failure, anchors)
    ]
    assert found == []


def test_every_failure_has_a_request_id_of_its_own(failures: list[Failure]) -> None:
    found = [failure.answer.headers["X-Request-Id"] for failure in failures]
    assert len(set(found)) == len(found)


def test_a_message_quotes_no_secret(failures: list[Failure]) -> None:
    for failure in failures:
        assert b"csign_sk_" not in failure.answer.body, failure.label
        assert b"SELECT" not in failure.answer.body, failure.label
        assert b"Traceback" not in failure.answer.body, failure.label


def test_an_internal_error_reveals_nothing(blocked: Trouble) -> None:
    """The log has it, under the identifier that the caller got."""
    (broken,) = [failure for failure in blocked.failures if failure.code == "internal_error"]
    error = {"code": InternalError.code, "message": InternalError().message}
    assert json.loads(broken.answer.body) == {"error": error}
    lines = [json.loads(line) for line in blocked.log.splitlines() if line.startswith("{")]
    request_id = broken.answer.headers["X-Request-Id"]
    own = [line["code"] for line in lines if line.get("request_id") == request_id]
    assert own == [InternalError.code]
    assert "OperationalError" in {line.get("kind") for line in lines}


def test_every_refusal_has_a_status_and_advice() -> None:
    """A missing one would be a bare 500."""

    def below(kind: type[Refusal]) -> Iterator[type[Refusal]]:
        for one in kind.__subclasses__():
            yield one
            yield from below(one)

    assert set(below(Refusal)) - {Retryable} == set(REFUSALS)
    codes = [error.code for error in REFUSALS]
    assert len(set(codes)) == len(codes)
    assert all(error.remedy for error in REFUSALS)


def test_a_blocked_service_still_reads(blocked: Trouble) -> None:
    assert [answer.status for answer in blocked.anyway] == [200, 200]


def test_requests_refused_as_blocked_were_not_stored(blocked: Trouble) -> None:
    """A retry acts, and once."""
    retried, listed = blocked.after
    assert retried.status == 200
    assert "Idempotent-Replayed" not in retried.headers
    assert listed.body.count(b'"ack_id"') == 1


@pytest.mark.postgres
def test_the_process_answers_while_its_database_does_not(disconnected: Trouble) -> None:
    assert [answer.status for answer in disconnected.anyway] == [200, 200]


@pytest.mark.postgres
def test_the_service_continues_once_its_database_is_back(disconnected: Trouble) -> None:
    """Without a restart, and with the very first request."""
    refused = [answer for answer in disconnected.after if answer.status != 200]
    assert refused == []


@pytest.mark.parametrize(
    "request_line",
    [
        b"GET /v1/notices/a b HTTP/1.1",
        b"GET /v1/notices/<script> HTTP/1.1",
        b"GET /v1/notices/\xff HTTP/1.1",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1",
        b"GET",
        b"\x16\x03\x01\x02\x00",
    ],
)
def test_malformed_http_is_refused_by_the_parser(caller: Caller, request_line: bytes) -> None:
    """It never becomes a request, so there is no JSON response; the server continues."""
    answer = wire.send(caller.url, request_line + b"\r\nHost: countersign\r\n\r\n")
    assert answer.status in {400, 431}
    assert answer.body == b""
    assert caller.send("/healthz", key=None).status == 200


@pytest.fixture
def caller(operator: Operator, server: Server) -> Caller:
    """Give someone who asks the shared server."""
    return make_caller(operator, server.url)
