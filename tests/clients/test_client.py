"""Promises of the Python client beyond those of both clients."""

from __future__ import annotations

import hmac
import inspect
import json
import subprocess
import sys
import zipfile
from base64 import b64encode
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from traceback import TracebackException
from typing import assert_type

import httpx2
import msgspec
import pytest

from countersign_client import (
    AsyncCountersign,
    Countersign,
    CountersignError,
    InvalidClearanceToken,
    InvalidSignature,
    Page,
    Retries,
    SigningKeys,
    UnexpectedResponse,
    errors,
    types,
    verify_clearance_token,
)
from countersign_client.failure import ConnectionFailed
from countersign_client.resources import Notices
from countersign_client.retries import wait_before_next
from countersign_client.testing import SECRET, Answers, Refusal, webhook_message
from tests.clients.messages import messages
from tests.clients.tokens import ORDER, tokens
from tests.docs.markdown import ROOT
from tests.support.service import free_port

FOLDER = ROOT / "clients" / "python"
STATUS = {"cbid": "cbid_1", "status": "verified", "verified_at": None, "expires_at": None}


def client_of(answers: Answers) -> Countersign:
    return Countersign(
        api_key="csign_sk_test_x",
        base_url="https://countersign.example.com/",
        http_client=httpx2.Client(transport=answers.transport),
        sleep=lambda _: None,
    )


def test_types_follow_from_the_client() -> None:
    """A type checker knows the result of a call, with and without `await`."""

    def waits(client: Countersign) -> None:
        assert_type(client.notices.retrieve("ab1263"), types.Notice)
        assert_type(next(iter(client.events.list())), types.Event)
        assert_type(next(client.events.list().pages()), Page[types.Event])
        assert_type(client.acknowledgments.dossier("ack_x"), bytes)

    async def awaits(client: AsyncCountersign) -> None:
        assert_type(await client.notices.retrieve("ab1263"), types.Notice)
        async for event in client.events.list():
            assert_type(event, types.Event)

    assert callable(waits) is callable(awaits)


def test_a_method_shows_its_arguments_and_its_text() -> None:
    """`help` and editors have them, although a descriptor is in between."""
    found = vars(Notices)["acknowledge"]
    assert "initials_per_line" in inspect.signature(found.__wrapped__).parameters
    assert found.__doc__.startswith("Store a buyer's initials on every line.")


def test_results_are_frozen_and_times_have_a_zone() -> None:
    """A response cannot be changed by mistake."""
    now = "2026-11-20T21:31:00Z"
    client = client_of(Answers({"GET /v1/buyers/cbid_1/status": STATUS | {"verified_at": now}}))
    status = client.buyers.status("cbid_1")
    assert status.verified_at == datetime(2026, 11, 20, 21, 31, tzinfo=UTC)
    assert status.reasons == ()
    with pytest.raises(AttributeError):
        status.status = "revoked"  # type: ignore[misc]


def test_times_are_sent_in_utc() -> None:
    """From any zone, in queries and bodies; one without a zone is refused before sending."""
    answers = Answers(
        {
            "GET /v1/acknowledgments": {"data": [], "next_cursor": None},
            "POST /v1/test/clock/advance": {
                "now": "2026-11-20T21:31:00Z",
                "real_time": "2026-11-20T21:31:00Z",
                "ahead_seconds": 0,
            },
        }
    )
    client = client_of(answers)
    west = datetime(2026, 11, 20, 13, 31, tzinfo=timezone(timedelta(hours=-8)))
    client.sandbox.advance_clock(to=west)
    assert json.loads(answers.requests[0].content) == {"to": "2026-11-20T21:31:00Z"}
    assert list(client.acknowledgments.list(accepted_after=west)) == []
    assert answers.requests[1].url.params["accepted_after"] == "2026-11-20T21:31:00Z"
    with pytest.raises(ValueError, match="zone"):
        client.sandbox.advance_clock(to=datetime(2026, 11, 20))  # noqa: DTZ001 - refused
    assert len(answers.requests) == 2


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_an_identifier_that_would_change_the_path_is_refused(name: str) -> None:
    """Before anything is sent."""
    answers = Answers({})
    with pytest.raises(ValueError, match="identifier"):
        client_of(answers).notices.retrieve(name)
    assert answers.requests == []


@pytest.mark.parametrize(
    ("key", "address"),
    [
        ("", "https://x.example"),
        ("k", ""),
        ("k", "countersign.example.com"),
        ("k", "https://"),
        ("k", "https://[x.example"),
        ("k", "https://x.example/?a=b"),
        ("k", "https://x.example/#a"),
        ("k", "https://user:password@x.example"),
        ("k", "https://x.example\n"),
    ],
)
def test_a_missing_key_or_address_is_named(
    key: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the client is made, not at the first call."""
    for name in ("COUNTERSIGN_API_KEY", "COUNTERSIGN_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match=r"pass (api_key|base_url), or set COUNTERSIGN_"):
        Countersign(api_key=key, base_url=address)


def test_no_error_and_no_representation_shows_the_key() -> None:
    """Logs contain no secret."""
    client = client_of(Answers({"GET /v1/buyers/x/status": Refusal(status=404, code="not_found")}))
    with pytest.raises(errors.NotFound) as caught:
        client.buyers.status("x")
    assert "csign_sk" not in f"{caught.value!r} {caught.value} {client!r}"


def test_a_report_of_an_error_does_not_show_the_key() -> None:
    """For example in the error pages of a framework, which show the variables of each function."""
    with (
        Countersign(
            api_key="csign_sk_test_x",
            base_url=f"http://127.0.0.1:{free_port()}",
            retries=Retries(attempts=1),
        ) as client,
        pytest.raises(ConnectionFailed) as caught,
    ):
        client.buyers.status("x")
    shown = TracebackException.from_exception(caught.value, capture_locals=True)
    assert "repeatable=True" in (report := "".join(shown.format()))
    assert "csign_sk" not in report.replace('api_key="csign_sk_test_x"', ""), report


@pytest.mark.parametrize("key", ["csign_sk_test_x\n", " csign_sk_test_x", "csign_sk_test_é"])
def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(key: str) -> None:
    """A line break at the end of a file is easily read with the key."""
    with pytest.raises(ValueError, match="line break") as caught:
        Countersign(api_key=key, base_url="https://x.example")
    assert "csign_sk" not in str(caught.value)
    client = client_of(Answers({}))
    with pytest.raises(ValueError, match="idempotency_key"):
        client.notices.acknowledge("ab1263", initials_per_line=["JD"], idempotency_key=key)


@pytest.mark.parametrize(
    ("status", "content", "coding"),
    [
        (409, b'{"error": {"code": "\xff", "message": ""}}', "identity"),
        (200, b"[" * 100_000, "identity"),
        (409, b'{"a":' + b"[" * 100_000, "identity"),
        (200, b"no gzip", "gzip"),
    ],
)
def test_a_response_raises_only_errors_of_the_client(
    status: int, content: bytes, coding: str
) -> None:
    """However broken it is: programs catch CountersignError alone."""

    def answer(_: httpx2.Request) -> httpx2.Response:
        stream = httpx2.ByteStream(content)
        return httpx2.Response(status, headers={"Content-Encoding": coding}, stream=stream)

    client = Countersign(
        api_key="k",
        base_url="https://x.example",
        http_client=httpx2.Client(transport=httpx2.MockTransport(answer)),
        sleep=lambda _: None,
    )
    with pytest.raises(CountersignError):
        client.buyers.status("x")


def test_a_list_with_circular_pages_ends() -> None:
    """With an error, since it is not known to be complete."""
    answers = Answers({"GET /v1/events": {"data": [], "next_cursor": "evt_1"}})
    with pytest.raises(UnexpectedResponse, match="itself"):
        list(client_of(answers).events.list())
    assert len(answers.requests) == 2


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_c2hvcnQ=", "whsec_é", "whpk_", "secret"])
def test_an_invalid_secret_verifies_nothing(secret: str) -> None:
    """With an empty one everyone could sign."""
    body, headers = webhook_message("buyer.failed", {"cbid": "c"})
    signature = b64encode(
        hmac.digest(
            b"",
            f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body,
            "sha256",
        )
    )
    forged = headers | {"webhook-signature": f"v1,{signature.decode()}"}
    with pytest.raises(ValueError, match="webhook secret"):
        client_of(Answers({})).webhooks.unwrap(body, forged, secret=secret)


def test_waits_never_add_up_to_more_than_allowed() -> None:
    """With any policy."""
    policy = Retries(attempts=100, wait_initial=1, wait_max=60, waits_max=10)
    waited, attempt = 0.0, 1
    lost = ConnectionFailed("", sent=False)
    while wait := wait_before_next(policy, lost, attempt=attempt, waited=waited, repeatable=False):
        waited, attempt = waited + wait, attempt + 1
    assert 5 < waited <= 10


def test_a_made_up_message_is_like_a_real_one() -> None:
    """It verifies with its secret, and no longer when it is changed or old."""
    body, headers = webhook_message(
        "buyer.failed", {"cbid": "c", "reasons": ["zip_mismatch"]}, now=1e9
    )
    client = client_of(Answers({}))
    event = client.webhooks.unwrap(body, headers, secret=SECRET, now=1e9 + 299)
    assert event.data == {"cbid": "c", "reasons": ["zip_mismatch"]}


def test_messages_are_judged() -> None:
    """Only messages signed by a server are accepted; no other exception is raised."""
    client = client_of(Answers({}))
    for message in messages():
        if message.authentic:
            event = client.webhooks.unwrap(message.body, message.headers, secret=message.secret)
            assert event.id == "evt_1"
        else:
            with pytest.raises(InvalidSignature):
                client.webhooks.unwrap(message.body, message.headers, secret=message.secret)


def test_tokens_are_judged() -> None:
    """Only a token that the service signed for this order is accepted."""
    for why, token, keys, allows in tokens():
        known = msgspec.convert({"keys": keys}, SigningKeys)
        if allows:
            assert verify_clearance_token(token, keys=known, **ORDER).sub == "clr_1"
        else:
            with pytest.raises(InvalidClearanceToken):
                pytest.fail(f"{why}: {verify_clearance_token(token, keys=known, **ORDER)}")


@pytest.mark.later  # it builds a package
def test_the_wheel_is_built_from_its_folder_alone(tmp_path: Path) -> None:
    """It has its types, and imports without the server, click or cryptography."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-build-isolation",
        "--no-deps",
        "--disable-pip-version-check",
        "--wheel-dir",
        str(tmp_path),
        str(FOLDER),
    ]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert "countersign_client/py.typed" in archive.namelist()
        archive.extractall(tmp_path / "installed")
    program = (
        "import sys\n"
        "for name in ('countersign', 'click', 'cryptography'): sys.modules[name] = None\n"
        f"sys.path.insert(0, {str(tmp_path / 'installed')!r})\n"
        "import countersign_client.testing as testing\n"
        "print(testing.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout.startswith(str(tmp_path))
